package htmlstream

import (
	"bytes"
	"slices"
)

// Bounds of what [Writer.Metas] tells of a document.
const (
	MaxMetas       = 16  // of any property
	MaxMetaContent = 256 // bytes as they stand in the document; longer ones are left out

	MaxPolicies = 16
	MaxPolicy   = 8 << 10 // bytes as they stand in the document
)

// A Meta is a meta element in head with a property that was asked for.
type Meta struct {
	Property string // as in [Options.Metas]

	// Content is the attribute as it stands in the document: in its charset, with
	// character references.
	Content []byte
}

// Metas are the metas with a property of [Options.Metas] that have been passed so
// far, in document order. From the time when HeadEnd is filled they are all.
func (w *Writer) Metas() []Meta { return w.s.metas }

// Policies are the contents of the metas with a Content-Security-Policy that have
// been passed so far, in document order, as they stand in the document. One that is
// longer than MaxPolicy, or one too many, is told as 'none' for scripts: whoever asks
// must not take it for leave.
//
// A meta counts as far as a parser puts it into head; a browser takes no notice of
// others.
func (w *Writer) Policies() [][]byte { return w.s.policies }

// Charset is the label of the document's charset, as far as the document says it
// itself: "utf-8" for a byte order mark, which weighs more than a Content-Type, else
// that of the first meta that has one, if [Options.CharsetKnown] is not set. "" is
// none.
func (w *Writer) Charset() string { return string(w.s.label[:w.s.nlabel]) }

// maxCharsetContent is how far into a content a charset is looked for.
const maxCharsetContent = 96

// maxLabel is the most bytes that a label of a charset has. The longest of the
// WHATWG Encoding standard has 19.
const maxLabel = 24

// A metaTag collects what a meta start tag says about the charset and about policy,
// and of the properties that are wanted. Names and values that it has no room for are
// none that it looks for.
type metaTag struct {
	attr  [16]byte // name of the attribute that is being read, in lower case
	nattr int
	value []byte // and its value
	cut   bool   // which goes on

	label    [maxLabel]byte // of charset
	nlabel   int
	content  []byte
	whole    bool // content is all of it
	equiv    equiv
	property int // 1 + index of the property that is wanted; 0: none

	seen [3]bool // charset, content, http-equiv: the first of each counts

	// room is where value and content begin. What does not fit is allocated, once a
	// document.
	room [2][MaxMetaContent]byte
}

// An equiv is the value of http-equiv, of those that matter.
type equiv uint8

const (
	equivOther equiv = iota
	equivContentType
	equivPolicy
)

func equivOf(value []byte) equiv {
	switch {
	case bytes.EqualFold(value, []byte("content-type")):
		return equivContentType
	case bytes.EqualFold(value, []byte("content-security-policy")):
		return equivPolicy
	}
	return equivOther
}

// reset makes m ready for another tag.
func (m *metaTag) reset() {
	if m.value == nil {
		m.value, m.content = m.room[0][:0], m.room[1][:0]
	}
	m.value, m.content = m.value[:0], m.content[:0]
	m.nattr, m.cut, m.nlabel, m.whole, m.equiv, m.property, m.seen = 0, false, 0, false, equivOther, 0, [3]bool{}
}

// name takes a part of the name of an attribute.
func (m *metaTag) name(b []byte) {
	for _, c := range b {
		if m.nattr < len(m.attr) {
			m.attr[m.nattr] = lower(c)
		}
		m.nattr++
	}
}

// val takes a part of its value, of which at most is kept.
func (m *metaTag) val(b []byte, most int) {
	n := min(len(b), most-len(m.value))
	m.value = append(m.value, b[:n]...)
	m.cut = m.cut || n < len(b)
}

// endAttr takes the attribute that has been read. Properties are those that are
// wanted: metas have them as property (RDFa), or as name.
func (m *metaTag) endAttr(properties []string) {
	switch string(m.attr[:min(m.nattr, len(m.attr))]) {
	case "charset":
		if !m.seen[0] {
			m.nlabel = copy(m.label[:], bytes.TrimFunc(m.value, isSpaceRune))
		}
		m.seen[0] = true
	case "content":
		if !m.seen[1] {
			m.content, m.value = m.value, m.content
			m.whole = !m.cut
		}
		m.seen[1] = true
	case "http-equiv":
		if !m.seen[2] {
			m.equiv = equivOf(m.value)
		}
		m.seen[2] = true
	case "property", "name":
		if m.property == 0 {
			m.property = 1 + indexOf(properties, bytes.TrimFunc(m.value, isSpaceRune))
		}
	}
	m.nattr, m.value, m.cut = 0, m.value[:0], false
}

// indexOf finds a property, whatever its case; -1: it is not wanted.
func indexOf(properties []string, name []byte) int {
	return slices.IndexFunc(properties, func(p string) bool {
		return len(p) == len(name) && bytes.EqualFold([]byte(p), name)
	})
}

// charset returns the label that the tag declares, or none. It is valid until the
// next tag.
func (m *metaTag) charset() []byte {
	if m.nlabel > 0 {
		return m.label[:m.nlabel]
	}
	if m.equiv == equivContentType {
		return charsetIn(m.content[:min(len(m.content), maxCharsetContent)])
	}
	return nil
}

// inHead reports whether a meta that comes now is in head, outside of templates.
func (s *scanner) inHead() bool {
	return s.templates == 0 && s.nforeign == 0 && s.phase <= phaseAfterHead
}

// wantsMetas reports whether metas are told at all.
func (s *scanner) wantsMetas() bool { return len(s.properties) > 0 || s.wantsPolicies }

// mostContent is how much of the value of an attribute matters.
func (s *scanner) mostContent() int {
	if s.wantsPolicies {
		return MaxPolicy
	}
	return MaxMetaContent
}

// metaTagEnds takes a meta; what follows starts at the place at.
func (s *scanner) metaTagEnds(at int64) {
	m := &s.meta
	if m.property > 0 && m.whole && len(m.content) <= MaxMetaContent && len(s.metas) < MaxMetas {
		s.metas = append(s.metas, Meta{s.properties[m.property-1], bytes.Clone(m.content)})
	}
	if m.equiv == equivPolicy && m.seen[1] && s.wantsPolicies {
		s.addPolicy(m)
	}
	if !s.charsetKnown {
		s.metaEnds(m.charset(), at)
	}
}

func (s *scanner) addPolicy(m *metaTag) {
	switch {
	case len(s.policies) == MaxPolicies:
		s.policies[MaxPolicies-1] = []byte(forbidding)
	case !m.whole:
		s.policies = append(s.policies, []byte(forbidding))
	default:
		s.policies = append(s.policies, bytes.Clone(m.content))
	}
}

// forbidding is told in place of a policy that nobody can judge.
const forbidding = "script-src 'none'"
