package token

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxToken is far more than the longest token of what a batch may name.
const maxToken = 16 << 10

// opened is a token taken apart. Nothing in it has been proved.
type opened struct {
	payload string
	mac     string            // as it was received
	raw     [maxFields]string // the payload's fields, escaped
	bad     bool              // one that was read is not in its one encoding
}

const maxFields = beaconFields

// open takes apart a token that must have so many fields.
func open(text string, fields int) (opened, error) {
	payload, mac, ok := strings.Cut(text, ".")
	if !ok || strings.Contains(mac, ".") || len(text) > maxToken {
		return opened{}, &Error{BadFormat}
	}
	var room [512]byte // enough for most, so that they are decoded without an allocation
	decoded, err := encoding.AppendDecode(room[:0], []byte(payload))
	if err != nil || encoding.EncodedLen(len(decoded)) != len(payload) { // line breaks were skipped
		return opened{}, &Error{BadPayload}
	}
	o := opened{payload: string(decoded), mac: mac}
	if !o.split(fields) || !utf8.ValidString(o.payload) {
		return opened{}, &Error{BadPayload}
	}
	return o, nil
}

// split cuts the payload, and reports whether it has exactly so many fields.
func (o *opened) split(fields int) bool {
	rest, more := o.payload, true
	for i := range fields {
		if !more {
			return false
		}
		o.raw[i], rest, more = strings.Cut(rest, "|")
	}
	return !more
}

// end is where field i ends in the payload.
func (o *opened) end(i int) int {
	end := i // separators
	for _, raw := range o.raw[:i+1] {
		end += len(raw)
	}
	return end
}

func (o *opened) text(i int) string {
	s, ok := unescape(o.raw[i], '|')
	o.bad = o.bad || !ok
	return s
}

// number reads a decimal number of at most so many bits.
func (o *opened) number(i, bits int) uint64 {
	raw := o.raw[i]
	n, err := strconv.ParseUint(raw, 10, bits)
	o.bad = o.bad || err != nil || raw[0] == '0' && len(raw) > 1
	return n
}

// bytes reads exactly len(dst) bytes of base64url.
func (o *opened) bytes(i int, dst []byte) {
	raw := o.raw[i]
	if len(raw) != encoding.EncodedLen(len(dst)) {
		o.bad = true
		return
	}
	n, err := encoding.Decode(dst, []byte(raw))
	o.bad = o.bad || err != nil || n != len(dst)
}

func (o *opened) nonce(i int) {
	var nonce [nonceBytes]byte
	o.bytes(i, nonce[:])
}

const upperHex = "0123456789ABCDEF"

// appendEscaped appends s with % and the separator written as % and two hexadecimal
// digits.
func appendEscaped[T string | []byte](b []byte, s T, separator byte) []byte {
	plain := 0 // where what has not been appended begins
	for i := range len(s) {
		if c := s[i]; c == '%' || c == separator {
			b = append(append(b, s[plain:i]...), '%', upperHex[c>>4], upperHex[c&15])
			plain = i + 1
		}
	}
	return append(b, s[plain:]...)
}

// unescape undoes appendEscaped, and reports whether raw is what that would write.
// There is no separator in raw.
func unescape(raw string, separator byte) (string, bool) {
	if strings.IndexByte(raw, '%') < 0 {
		return raw, true
	}
	b := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c == '%' {
			var ok bool
			if c, ok = escaped(raw[i+1:], separator); !ok {
				return "", false
			}
			i += 2
		}
		b = append(b, c)
	}
	return string(b), true
}

// escaped is the character whose two hexadecimal digits s begins with.
func escaped(s string, separator byte) (byte, bool) {
	for _, c := range [...]byte{'%', separator} {
		if len(s) >= 2 && s[0] == upperHex[c>>4] && s[1] == upperHex[c&15] {
			return c, true
		}
	}
	return 0, false
}
