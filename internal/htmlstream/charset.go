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
