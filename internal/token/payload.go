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
	mac     string // as it was received
	raw     [maxFields]string
}

const maxFields = 14

// open takes apart a token that must have so many fields.
func open(text string, fields int) (*opened, error) {
	payload, mac, ok := strings.Cut(text, ".")
	if !ok || strings.Contains(mac, ".") || len(text) > maxToken {
		return nil, &Error{BadFormat}
	}
	decoded, err := encoding.DecodeString(payload)
	if err != nil || encoding.EncodedLen(len(decoded)) != len(payload) { // line breaks were skipped
		return nil, &Error{BadPayload}
	}
	o := &opened{payload: string(decoded), mac: mac}
	rest, n := o.payload, 0
	for more := true; more; n++ {
		if n == fields {
			return nil, &Error{BadPayload}
		}
		o.raw[n], rest, more = strings.Cut(rest, "|")
	}
	if n != fields || !utf8.ValidString(o.payload) {
		return nil, &Error{BadPayload}
	}
	return o, nil
}

// end is where field i ends in the payload.
func (o *opened) end(i int) int {
	end := i // separators
	for _, raw := range o.raw[:i+1] {
		end += len(raw)
	}
	return end
}

// A reader reads fields in their one encoding, and remembers whether all were.
type reader struct {
	o   *opened
	bad bool
}

func (r *reader) text(i int) string {
	s, ok := unescape(r.o.raw[i], '|')
	r.bad = r.bad || !ok
	return s
}

// number reads a decimal number of at most so many bits.
func (r *reader) number(i, bits int) uint64 {
	raw := r.o.raw[i]
	n, err := strconv.ParseUint(raw, 10, bits)
	r.bad = r.bad || err != nil || raw[0] == '0' && len(raw) > 1
	return n
}

// bytes reads exactly len(dst) bytes of base64url.
func (r *reader) bytes(i int, dst []byte) {
	raw := r.o.raw[i]
	if len(raw) != encoding.EncodedLen(len(dst)) {
		r.bad = true
		return
	}
	n, err := encoding.Decode(dst, []byte(raw))
	r.bad = r.bad || err != nil || n != len(dst)
}

func (r *reader) nonce(i int) {
	var nonce [nonceBytes]byte
	r.bytes(i, nonce[:])
}

const upperHex = "0123456789ABCDEF"

// appendEscaped appends s with % and the separator written as % and two hexadecimal
// digits.
func appendEscaped(b []byte, s string, separator byte) []byte {
	if strings.IndexByte(s, '%') < 0 && strings.IndexByte(s, separator) < 0 {
		return append(b, s...)
	}
	for i := range len(s) {
		if c := s[i]; c == '%' || c == separator {
			b = append(b, '%', upperHex[c>>4], upperHex[c&15])
		} else {
			b = append(b, c)
		}
	}
	return b
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
