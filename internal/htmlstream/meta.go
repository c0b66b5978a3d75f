package htmlstream

import (
	"bytes"
	"slices"
)

// Bounds of what [Writer.Metas] tells of a document.
const (
	MaxMetas       = 16  // of any property
	MaxMetaContent = 256 // bytes as they stand in the document; longer ones are left out
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

// Charset is the label of the document's charset, as far as the document says it
// itself: "utf-8" for a byte order mark, which weighs more than a Content-Type, else
// that of the first meta that has one, if [Options.CharsetKnown] is not set. "" is
// none.
func (w *Writer) Charset() string { return string(w.s.label[:w.s.nlabel]) }

// maxLabel is the most bytes that a label of a charset has. The longest of the
// WHATWG Encoding standard has 19.
const maxLabel = 24

// A metaTag collects what a meta start tag says about the charset, and of the
// properties that are wanted. Names and values that it has no room for are none
// that it looks for.
type metaTag struct {
	attr  [16]byte // name of the attribute that is being read, in lower case
	nattr int
	value [MaxMetaContent]byte // and the start of its value
	nval  int
	cut   bool // the value goes on

	label     [maxLabel]byte // of charset
	nlabel    int
	content   [MaxMetaContent]byte
	ncontent  int
	whole     bool // content is all of it
	httpEquiv bool // it is http-equiv=content-type
	property  int  // 1 + index of the property that is wanted; 0: none

	seen [3]bool // charset, content, http-equiv: the first of each counts
}

// reset makes m ready for another tag.
func (m *metaTag) reset() {
	m.nattr, m.nval, m.cut, m.nlabel, m.ncontent, m.httpEquiv, m.property, m.seen = 0, 0, false, 0, 0, false, 0, [3]bool{}
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

// val takes a part of its value.
func (m *metaTag) val(b []byte) {
	n := copy(m.value[m.nval:], b)
	m.nval += n
	m.cut = m.cut || n < len(b)
}

// endAttr takes the attribute that has been read. Properties are those that are
// wanted: metas have them as property (RDFa), or as name.
func (m *metaTag) endAttr(properties []string) {
	value := m.value[:m.nval]
	switch string(m.attr[:min(m.nattr, len(m.attr))]) {
	case "charset":
		if !m.seen[0] {
			m.nlabel = copy(m.label[:], bytes.TrimFunc(value, isSpaceRune))
		}
		m.seen[0] = true
	case "content":
		if !m.seen[1] {
			m.ncontent = copy(m.content[:], value)
			m.whole = !m.cut
		}
		m.seen[1] = true
	case "http-equiv":
		if !m.seen[2] {
			m.httpEquiv = bytes.EqualFold(value, []byte("content-type"))
		}
		m.seen[2] = true
	case "property", "name":
		if m.property == 0 {
			m.property = 1 + indexOf(properties, bytes.TrimFunc(value, isSpaceRune))
		}
	}
	m.nattr, m.nval, m.cut = 0, 0, false
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
	if m.httpEquiv {
		return charsetIn(m.content[:m.ncontent])
	}
	return nil
}

// wantsMetas reports whether a meta that comes now is told.
func (s *scanner) wantsMetas() bool {
	return len(s.properties) > 0 && len(s.metas) < MaxMetas && s.templates == 0 && s.nforeign == 0 && s.phase <= phaseAfterHead
}

// metaTagEnds takes a meta; what follows starts at the place at.
func (s *scanner) metaTagEnds(at int64) {
	if m := &s.meta; m.property > 0 && m.whole && m.seen[1] && s.wantsMetas() {
		s.metas = append(s.metas, Meta{s.properties[m.property-1], bytes.Clone(m.content[:m.ncontent])})
	}
	if s.wantsCharset() {
		s.metaEnds(s.meta.charset(), at)
	}
}
