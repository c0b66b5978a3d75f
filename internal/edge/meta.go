package edge

import (
	"cmp"
	"net/http"
	"strings"
	"unicode/utf8"

	xhtml "golang.org/x/net/html"
	"golang.org/x/net/html/charset"

	"deckle/internal/htmlstream"
)

// HeadMeta is what a page says of itself in metas of its head, as text: at most
// [htmlstream.MaxMetas] of them, none empty, each at most 1 KiB, and none to be
// trusted more than its page. What it calls its canonical URL is not among it:
// nobody has checked that.
type HeadMeta struct {
	Sections []string // of article:section
	Tags     []string // of article:tag
}

// metaSection and metaTag are properties of Open Graph's article (ogp.me).
const (
	metaSection = "article:section"
	metaTag     = "article:tag"
)

func headMetas() []string { return []string{metaSection, metaTag} }

// tellHead gives what the head of a page says of itself to whoever wants to know.
// Other statuses than 200 say nothing about the page that a URL stands for.
func (e *Edge) tellHead(r *http.Request, site string, status int, doc document) func(*htmlstream.Writer) {
	if e.config.Head == nil || status != http.StatusOK {
		return nil
	}
	return func(w *htmlstream.Writer) {
		metas := w.Metas()
		if len(metas) == 0 {
			return
		}
		m := headMeta(metas, cmp.Or(w.Charset(), doc.charset))
		if len(m.Sections)+len(m.Tags) > 0 {
			e.config.Head(site, e.url(r), m)
		}
	}
}

// url is what the reader asked for, with its query.
func (e *Edge) url(r *http.Request) string {
	return e.config.TrustedProxies.Scheme(r) + "://" + e.config.TrustedProxies.Host(r) + pathAndQuery(r.RequestURI)
}

func headMeta(metas []htmlstream.Meta, label string) (m HeadMeta) {
	for _, meta := range metas {
		text := metaText(meta.Content, label)
		switch {
		case text == "":
		case meta.Property == metaSection:
			m.Sections = append(m.Sections, text)
		default:
			m.Tags = append(m.Tags, text)
		}
	}
	return m
}

// metaText is the value of an attribute as a browser would read it, in the charset
// of a label.
func metaText(raw []byte, label string) string {
	// The value is put where its references are decoded as those of an attribute.
	// What ends a value is ASCII, in every charset that we inject into.
	quoted := strings.ReplaceAll(decodeText(raw, label), `"`, "&#34;")
	z := xhtml.NewTokenizer(strings.NewReader(`<a b="` + quoted + `">`))
	z.Next()
	z.TagName()
	_, value, _ := z.TagAttr()
	return strings.TrimSpace(strings.ToValidUTF8(string(value), "\ufffd"))
}

// decodeText is text of a page in UTF-8. Where nobody names the charset, what can
// be UTF-8 is, and the rest is what browsers take it for.
func decodeText(raw []byte, label string) string {
	encoding, name := charset.Lookup(label)
	switch {
	case strings.HasPrefix(name, "utf-"), // in a meta, UTF-16 means UTF-8
		name == "" && utf8.Valid(raw):
		return string(raw)
	case name == "":
		encoding, _ = charset.Lookup("windows-1252")
	}
	text, err := encoding.NewDecoder().Bytes(raw)
	if err != nil {
		return ""
	}
	return string(text)
}
