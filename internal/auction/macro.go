package auction

import (
	"iter"
	"strings"
)

// macros are the values of the substitution macros of OpenRTB 2.6 section 4.4, for
// one bid, as if it had won.
type macros [macroCount]macroValue

// A macroValue is a value with what it takes to know its length wherever it
// stands, without looking at it again: a bid can name one of 512 bytes thousands
// of times.
type macroValue struct {
	text    string
	escaped int // so many bytes of text are percent-encoded
}

// size is the length of the value as it is filled in.
func (v macroValue) size(nested bool) int {
	if nested {
		return len(v.text) + 4*v.escaped // %25XX
	}
	return len(v.text) + 2*v.escaped // %XX
}

// A macroName is what stands behind AUCTION_.
type macroName int

const (
	macroID macroName = iota
	macroBidID
	macroImpID
	macroSeatID
	macroAdID
	macroPrice
	macroCurrency
	macroMBR
	macroLoss
	macroMinToWin
	macroCount
)

// macrosOf gives the values for an offer of answer bidID to a request.
func macrosOf(request, bidID, currency string, o *Offer) macros {
	var m macros
	for name, text := range [macroCount]string{
		macroID:       request,
		macroBidID:    bidID,
		macroImpID:    o.ImpID,
		macroSeatID:   o.Seat,
		macroAdID:     o.AdID,
		macroPrice:    o.Price,
		macroCurrency: currency,
		macroMBR:      "1", // clearing price / bid price, in a first-price auction
		macroLoss:     "0", // bid won
		macroMinToWin: "",  // optional; it would tell one bidder what another has bid
	} {
		m[name] = macroValue{text, escapes(text)}
	}
	return m
}

// size is how many bytes fill would make of s. It takes time in proportion to s,
// not to its result.
func (m *macros) size(s string) int {
	n := len(s)
	for f := range macrosIn(s) {
		n += m[f.name].size(f.nested) - (f.end - f.start)
	}
	return n
}

// blank reports whether fill would make nothing of s but white space: some macros
// stand for nothing.
func (m *macros) blank(s string) bool {
	done := 0
	for f := range macrosIn(s) {
		if m[f.name].text != "" || strings.TrimSpace(s[done:f.start]) != "" {
			return false
		}
		done = f.end
	}
	return strings.TrimSpace(s[done:]) == ""
}

// fill replaces every ${AUCTION_…} that OpenRTB knows, also where $, { and }
// are percent-encoded, and leaves all others as they are. It reports false, and
// builds nothing, if the result would have more than limit bytes.
//
// Values are percent-encoded, which is right in a URL and inert in markup and
// scripts. Where the macro itself is percent-encoded it stands in a URL that is a
// parameter of another one; its value is encoded once more for that.
func (m *macros) fill(s string, limit int) (string, bool) {
	size := m.size(s)
	if size > limit {
		return "", false
	}
	var b strings.Builder
	done := 0 // s[:done] is in b
	for f := range macrosIn(s) {
		b.Grow(size - b.Len()) // once
		value := escape(m[f.name].text)
		if f.nested {
			value = escape(value)
		}
		b.WriteString(s[done:f.start])
		b.WriteString(value)
		done = f.end
	}
	if done == 0 {
		return s, true
	}
	b.WriteString(s[done:])
	return b.String(), true
}

// A foundMacro is text[start:end].
type foundMacro struct {
	name       macroName
	start, end int
	nested     bool // percent-encoded, wholly or in part
}

// macrosIn finds the macros of s in their order. They do not overlap.
func macrosIn(s string) iter.Seq[foundMacro] {
	const mark = "AUCTION_"
	return func(yield func(foundMacro) bool) {
		done := 0 // the end of the last macro
		for at := 0; ; {
			i := strings.Index(s[at:], mark)
			if i < 0 {
				return
			}
			at += i
			start, nested, opened := opening(s[done:at])
			start += done
			word := capitals(s[at+len(mark):])
			at += len(mark) + len(word)
			closing, nested2, closed := closing(s[at:])
			name, known := macroNamed(word)
			if !opened || !closed || !known {
				continue
			}
			at += closing
			done = at
			if !yield(foundMacro{name, start, at, nested || nested2}) {
				return
			}
		}
	}
}

func macroNamed(word string) (macroName, bool) {
	switch word {
	case "ID":
		return macroID, true
	case "BID_ID":
		return macroBidID, true
	case "IMP_ID":
		return macroImpID, true
	case "SEAT_ID":
		return macroSeatID, true
	case "AD_ID":
		return macroAdID, true
	case "PRICE":
		return macroPrice, true
	case "CURRENCY":
		return macroCurrency, true
	case "MBR":
		return macroMBR, true
	case "LOSS":
		return macroLoss, true
	case "MIN_TO_WIN":
		return macroMinToWin, true
	}
	return 0, false
}

// opening finds "${" at the end of s, each plain or percent-encoded, and returns
// where it starts.
func opening(s string) (start int, encoded, ok bool) {
	s, e1, ok1 := cutSuffix(s, "{", "%7b")
	s, e2, ok2 := cutSuffix(s, "$", "%24")
	return len(s), e1 || e2, ok1 && ok2
}

func cutSuffix(s, plain, code string) (rest string, encoded, ok bool) {
	if rest, ok := strings.CutSuffix(s, plain); ok {
		return rest, false, true
	}
	n := len(s) - len(code)
	if n >= 0 && strings.EqualFold(s[n:], code) {
		return s[:n], true, true
	}
	return s, false, false
}

// closing finds "}" at the start of s, plain or percent-encoded, and returns its
// length.
func closing(s string) (n int, encoded, ok bool) {
	switch {
	case strings.HasPrefix(s, "}"):
		return 1, false, true
	case len(s) >= 3 && strings.EqualFold(s[:3], "%7d"):
		return 3, true, true
	}
	return 0, false, false
}

// capitals is the run of A to Z and _ at the start of s.
func capitals(s string) string {
	i := 0
	for i < len(s) && (s[i] == '_' || s[i] >= 'A' && s[i] <= 'Z') {
		i++
	}
	return s[:i]
}

// escape percent-encodes all but the unreserved characters of RFC 3986.
func escape(s string) string {
	const hex = "0123456789ABCDEF"
	n := escapes(s)
	if n == 0 {
		return s
	}
	b := make([]byte, 0, len(s)+2*n)
	for i := range len(s) {
		if c := s[i]; isUnreserved(c) {
			b = append(b, c)
		} else {
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(b)
}

// escapes is how many bytes of s escape encodes.
func escapes(s string) (n int) {
	for i := range len(s) {
		if !isUnreserved(s[i]) {
			n++
		}
	}
	return n
}

func isUnreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
}
