package htmlstream

import "bytes"

func (s *scanner) startName(endTag bool) {
	s.state, s.endTag, s.nname, s.long = inTagName, endTag, 0, false
	if s.nforeign > 0 {
		s.mark = -1 // nothing goes in before it
	}
}

func (s *scanner) tagName(p []byte, i int) int {
	most := maxName
	if s.nforeign > 0 {
		most = maxForeignName
	}
	n := s.nname
	for ; i < len(p); i++ {
		c := p[i]
		if c <= '>' && endsName(c) {
			s.nname = n
			s.named()
			s.state = inBeforeAttr
			if s.points != 0 {
				return i
			}
			return s.attribute(p, i)
		}
		if n == most {
			s.nname, s.long = n, true
			s.named()
			s.state = inLongTagName
			return i
		}
		s.name[n] = lower(c)
		n++
	}
	s.nname = n
	return i
}

func (s *scanner) longTagName(c byte, i int) int {
	if endsName(c) {
		s.state = inBeforeAttr
		return i
	}
	return i + 1
}

// named takes the name of a tag, and settles what that does to the document. What
// depends on the end of the tag follows in tagEnds.
func (s *scanner) named() {
	at := s.mark
	s.mark = -1
	name := s.name[:s.nname]
	s.tag = 0
	switch {
	case !s.long:
		s.tag = classify(name)
	case s.nforeign > 0:
		s.giveUp()
		return
	}
	if s.endTag {
		s.endTagNamed(s.tag, name, at)
		return
	}
	s.startTagNamed(s.tag, at)
	s.wantMeta = s.tag&tagMeta != 0 && s.inHead() && (!s.charsetKnown || s.wantsMetas())
	if s.wantMeta {
		s.meta.reset()
	}
}

// attribute scans a tag outside of attribute values.
func (s *scanner) attribute(p []byte, i int) int {
	for i < len(p) {
		if s.state == inAttrName {
			if i = s.attrName(p, i); i == len(p) {
				return i
			}
		}
		c := p[i]
		i++
		switch {
		case c == '>':
			s.selfEnds = s.state == inSelfClosing
			s.endAttr()
			s.tagEnds(i)
			return i
		case c == '=' && (s.state == inAttrName || s.state == inAfterAttrName):
			s.state = inBeforeValue
			if i = s.beforeValue(p, i); i < len(p) && s.state != inBeforeAttr {
				i = s.value(p, i)
			}
		case isSpace(c):
			if s.state == inAttrName {
				s.state = inAfterAttrName
			} else if s.state != inAfterAttrName {
				s.state = inBeforeAttr
			}
		case c == '/':
			s.state = inSelfClosing
		default: // a = too starts a name here
			s.endAttr()
			s.state = inAttrName
			if s.wantMeta {
				s.meta.name(p[i-1 : i])
			}
		}
	}
	return i
}

// attrName scans the name of an attribute up to the byte that ends it.
func (s *scanner) attrName(p []byte, i int) int {
	start := i
	for i < len(p) && (p[i] > '>' || p[i] != '=' && !endsName(p[i])) {
		i++
	}
	if s.wantMeta {
		s.meta.name(p[start:i])
	}
	return i
}

// endsName reports whether c ends the name of a tag.
func endsName(c byte) bool { return c == '>' || c == '/' || isSpace(c) }

func (s *scanner) endAttr() {
	if s.wantMeta {
		s.meta.endAttr(s.properties)
	}
}

// beforeValue scans what is between = and the value.
func (s *scanner) beforeValue(p []byte, i int) int {
	for ; i < len(p); i++ {
		switch c := p[i]; {
		case isSpace(c):
		case c == '"' || c == '\'':
			s.quote, s.state = c, inQuotedValue
			return i + 1
		case c == '>': // no value at all
			s.state = inBeforeAttr
			return i
		default:
			s.state = inUnquotedValue
			return i
		}
	}
	return i
}

// value scans the value of an attribute.
func (s *scanner) value(p []byte, i int) int {
	end, next := -1, inBeforeAttr
	if s.state == inQuotedValue {
		end, next = bytes.IndexByte(p[i:], s.quote), inAfterValue
	} else {
		for j, c := range p[i:] {
			if c <= '>' && (c == '>' || isSpace(c)) {
				end = j
				break
			}
		}
	}
	if end < 0 {
		end = len(p) - i
	} else {
		s.state = next
	}
	if s.wantMeta {
		s.meta.val(p[i:i+end], s.mostContent())
	}
	i += end
	if next == inAfterValue && s.state == next {
		i++ // the quote
	}
	return i
}

// tagEnds takes the > of a tag; what follows starts at p[i].
func (s *scanner) tagEnds(i int) {
	s.state = inText
	if !s.endTag {
		if s.nforeign > 0 || s.tag&tagForeign != 0 {
			s.openForeign(s.tag, s.name[:s.nname], s.selfEnds)
		} else if s.tag&tagPlaintext != 0 {
			s.giveUp() // all that follows is its text
			return
		} else if s.tag&rawText != 0 {
			s.nraw = copy(s.raw[:], s.name[:s.nname])
			s.state = inRaw
			return
		}
	}
	if s.wantMeta {
		s.wantMeta = false
		s.metaTagEnds(s.base + int64(i))
	}
	s.boundary(s.base + int64(i))
}
