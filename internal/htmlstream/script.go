package htmlstream

import "bytes"

// rawText scans raw text, RCDATA and script data up to the next <.
func (s *scanner) rawText(p []byte, i int) int {
	n := bytes.IndexByte(p[i:], '<')
	if n < 0 {
		return len(p)
	}
	s.state, s.back = inRawLess, inRaw
	i += n + 1
	if i < len(p) {
		return s.rawLess(p[i], i)
	}
	return i
}

// rawLess scans what follows a < in raw text.
func (s *scanner) rawLess(c byte, i int) int {
	switch {
	case c == '/':
		s.state, s.matched = inRawEndName, 0
		return i + 1
	case c == '!' && s.tag&tagScript != 0:
		s.state = inEscapeStart
		return i + 1
	}
	s.state = s.back
	return i
}

// rawEndName scans what follows </ in raw text: the name that ends it, or else
// s.back goes on.
func (s *scanner) rawEndName(p []byte, i int) int {
	for ; i < len(p); i++ {
		c := p[i]
		if s.matched == s.nraw {
			s.state = s.back
			if endsName(c) {
				s.endTag, s.state, s.run = true, inBeforeAttr, false
			}
			return i
		}
		if lower(c) != s.raw[s.matched] {
			s.state = s.back
			return i
		}
		s.matched++
	}
	return i
}

// scriptEscape scans the few bytes that start or end an escape in script data.
func (s *scanner) scriptEscape(c byte, i int) int {
	switch s.state {
	case inEscapeStart:
		return s.dashOr(c, i, inEscapeStartDash)
	case inEscapeStartDash:
		s.dashes = 2
		return s.dashOr(c, i, inEscaped)
	case inEscapedLess:
		switch {
		case c == '/':
			s.state, s.matched, s.back = inRawEndName, 0, inEscaped
			return i + 1
		case isLetter(c):
			s.state, s.matched = inEscapeName, 0
			return i
		}
		s.state = inEscaped
		return i
	case inDoubleLess:
		if c == '/' {
			s.state, s.matched = inDoubleEndName, 0
			return i + 1
		}
		s.state = inDoubleEscaped
		return i
	case inEscapeName:
		return s.scriptName(c, i, inEscaped, inDoubleEscaped)
	}
	return s.scriptName(c, i, inDoubleEscaped, inEscaped)
}

// dashOr goes to next after a dash, and back to script data otherwise.
func (s *scanner) dashOr(c byte, i int, next state) int {
	if c == '-' {
		s.state = next
		return i + 1
	}
	s.state = inRaw
	return i
}

// scriptName scans what may be the name script. It goes to yes when it is that
// name, and to no at the first byte that tells that it is not.
func (s *scanner) scriptName(c byte, i int, no, yes state) int {
	const name = "script"
	switch {
	case s.matched < len(name) && lower(c) == name[s.matched]:
		s.matched++
		return i + 1
	case s.matched == len(name) && endsName(c):
		s.state, s.dashes = yes, 0
		return i + 1
	}
	s.state, s.dashes = no, 0
	return i
}

// escaped scans script data after <!--, where <script hides one </script>.
func (s *scanner) escaped(p []byte, i int) int {
	for ; i < len(p); i++ {
		switch c := p[i]; {
		case c == '-':
			s.dashes = min(s.dashes+1, 2)
		case c == '<':
			s.dashes = 0
			if s.state == inEscaped {
				s.state = inEscapedLess
			} else {
				s.state = inDoubleLess
			}
			return i + 1
		case c == '>' && s.dashes == 2:
			s.state = inRaw
			return i + 1
		default:
			s.dashes = 0
		}
	}
	return i
}
