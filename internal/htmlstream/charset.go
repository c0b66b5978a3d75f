package htmlstream

import "bytes"

// prescanned is how many bytes a browser searches for a meta that names the
// charset, before it parses.
const prescanned = 1024

// A signature is what a document starts with and what tells its encoding.
type signature string

const (
	utf8BOM    signature = "\xef\xbb\xbf"
	utf16beBOM signature = "\xfe\xff"
	utf16leBOM signature = "\xff\xfe"

	// The start of an XML declaration in UTF-16, which browsers sniff where
	// nothing else names the charset.
	utf16leXML signature = "<\x00?\x00x\x00"
	utf16beXML signature = "\x00<\x00?\x00x"

	maxSignature = len(utf16leXML)
)

func (s signature) isBOM() bool { return s == utf8BOM || s == utf16beBOM || s == utf16leBOM }

// signatureOf returns the signature that p starts with, or none.
func signatureOf(p []byte) signature {
	for _, s := range [...]signature{utf8BOM, utf16beBOM, utf16leBOM, utf16leXML, utf16beXML} {
		if len(p) >= len(s) && string(p[:len(s)]) == string(s) {
			return s
		}
	}
	return ""
}

// mayBeSignature reports whether p is the start of a signature, but not all of it.
func mayBeSignature(p []byte) bool {
	for _, s := range [...]signature{utf8BOM, utf16beBOM, utf16leBOM, utf16leXML, utf16beXML} {
		if len(p) < len(s) && string(p) == string(s[:len(p)]) {
			return true
		}
	}
	return false
}

// A metaTag collects what a meta start tag says about the charset. Names and
// values that it has no room for are none that it looks for.
type metaTag struct {
	attr  [16]byte // name of the attribute that is being read, in lower case
	nattr int
	value [96]byte // and the start of its value
	nval  int

	label     [24]byte // of charset
	nlabel    int
	content   [96]byte
	ncontent  int
	httpEquiv bool // it is http-equiv=content-type

	seen [3]bool // charset, content, http-equiv: the first of each counts
}

// reset makes m ready for another tag.
func (m *metaTag) reset() {
	m.nattr, m.nval, m.nlabel, m.ncontent, m.httpEquiv, m.seen = 0, 0, 0, 0, false, [3]bool{}
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
func (m *metaTag) val(b []byte) { m.nval += copy(m.value[m.nval:], b) }

// endAttr takes the attribute that has been read.
func (m *metaTag) endAttr() {
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
		}
		m.seen[1] = true
	case "http-equiv":
		if !m.seen[2] {
			m.httpEquiv = bytes.EqualFold(value, []byte("content-type"))
		}
		m.seen[2] = true
	}
	m.nattr, m.nval = 0, 0
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

// charsetIn extracts a charset from the content of a meta, by the algorithm of
// the HTML standard of that name.
func charsetIn(content []byte) []byte {
	const name = "charset"
	for i := 0; i+len(name) <= len(content); i++ {
		if !bytes.EqualFold(content[i:i+len(name)], []byte(name)) {
			continue
		}
		rest := bytes.TrimLeftFunc(content[i+len(name):], isSpaceRune)
		if len(rest) == 0 || rest[0] != '=' {
			continue
		}
		rest = bytes.TrimLeftFunc(rest[1:], isSpaceRune)
		if len(rest) > 0 && (rest[0] == '"' || rest[0] == '\'') {
			label, _, closed := bytes.Cut(rest[1:], rest[:1])
			if !closed {
				return nil
			}
			return bytes.TrimFunc(label, isSpaceRune)
		}
		if end := bytes.IndexAny(rest, " \t\n\f\r;"); end >= 0 {
			rest = rest[:end]
		}
		return rest
	}
	return nil
}

// asciiSafe reports whether ASCII bytes mean themselves throughout a document
// whose meta has this label. A meta that says UTF-16 is read as UTF-8; the
// labels of the encodings that browsers refuse to decode are left out too.
func asciiSafe(label []byte) bool {
	for _, p := range [...]string{"iso-2022-", "csiso2022", "hz-gb-2312", "replacement"} {
		if len(label) >= len(p) && bytes.EqualFold(label[:len(p)], []byte(p)) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func isLetter(c byte) bool { c |= 0x20; return 'a' <= c && c <= 'z' }

func isSpace(c byte) bool {
	return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f'
}

func isSpaceRune(r rune) bool { return r < 0x80 && isSpace(byte(r)) }
