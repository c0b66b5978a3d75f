package auction

import "strings"

// macros are the substitution macros of OpenRTB 2.6 section 4.4, for a bid that
// has won.
type macros struct {
	request  string
	currency string
	bidID    string
	offer    *Offer
}

// fill replaces every ${AUCTION_…} that OpenRTB knows, also where $, { and }
// are percent-encoded, and leaves all others as they are. It reports false if the
// result would have more than limit bytes: a bid can name a long value a thousand
// times.
//
// Values are percent-encoded, which is right in a URL and inert in markup and
// scripts. Where the macro itself is percent-encoded it stands in a URL that is a
// parameter of another one; its value is encoded once more for that.
func (m *macros) fill(s string, limit int) (string, bool) {
	const mark = "AUCTION_"
	var b strings.Builder
	done := 0 // s[:done] is in b
	for at := 0; ; {
		i := strings.Index(s[at:], mark)
		if i < 0 {
			break
		}
		at += i
		start, encodedOpen, ok := opening(s[done:at])
		name := macroName(s[at+len(mark):])
		next := at + len(mark) + len(name)
		closing, encodedClose, ok2 := closing(s[next:])
		value, known := m.value(name)
		if !ok || !ok2 || !known {
			at = next
			continue
		}
		b.WriteString(s[done : done+start])
		value = escape(value)
		if encodedOpen || encodedClose {
			value = escape(value)
		}
		b.WriteString(value)
		at = next + closing
		done = at
		if b.Len() > limit {
			return "", false
		}
	}
	if done == 0 {
		return s, len(s) <= limit
	}
	b.WriteString(s[done:])
	return b.String(), b.Len() <= limit
}

// value is what a macro stands for, by the part of its name after AUCTION_.
func (m *macros) value(name string) (string, bool) {
	switch name {
	case "ID":
		return m.request, true
	case "BID_ID":
		return m.bidID, true
	case "IMP_ID":
		return m.offer.ImpID, true
	case "SEAT_ID":
		return m.offer.Seat, true
	case "AD_ID":
		return m.offer.AdID, true
	case "PRICE":
		return m.offer.Price, true
	case "CURRENCY":
		return m.currency, true
	case "MBR":
		return "1", true // clearing price / bid price, in a first-price auction
	case "LOSS":
		return "0", true // bid won
	case "MIN_TO_WIN":
		return "", true // optional; it would tell one bidder what another has bid
	}
	return "", false
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

// macroName is the run of A to Z and _ at the start of s.
func macroName(s string) string {
	i := 0
	for i < len(s) && (s[i] == '_' || s[i] >= 'A' && s[i] <= 'Z') {
		i++
	}
	return s[:i]
}

// escape percent-encodes all but the unreserved characters of RFC 3986.
func escape(s string) string {
	const hex = "0123456789ABCDEF"
	plain := func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
	}
	n := 0
	for i := range len(s) {
		if !plain(s[i]) {
			n++
		}
	}
	if n == 0 {
		return s
	}
	b := make([]byte, 0, len(s)+2*n)
	for i := range len(s) {
		if c := s[i]; plain(c) {
			b = append(b, c)
		} else {
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(b)
}
