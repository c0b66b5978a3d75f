package landing

import (
	"bytes"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/html"
)

// A Page is what a page says of itself. Texts are one line of plain text each.
type Page struct {
	URL         string // where it was in the end, behind redirects
	Site        string
	Title       string
	Description string
	Sections    []Section // headings with what stands below them, in the order of the page
	Pictures    []Picture // those that it shows itself by first, then the others
	Theme       string    // #rrggbb: the colour that it wants around it; "" for none
	Accent      string    // #rrggbb: the most frequent colour that is one; "" for none
}

// A Section is a heading and the first paragraph below it.
type Section struct {
	Heading string
	Text    string
	Picture *Picture // the first one below the heading; nil: none
}

// A Picture is one that a page shows.
type Picture struct {
	URL string // absolute
	Alt string // what it shows, in the page's words
}

// Bounds of what is kept of a page.
const (
	maxSections = 12
	maxPictures = 16
	maxText     = 2000 // characters
	minText     = 40   // of a paragraph that says something
)

// parse reads as much of a page as there is. Markup that is not well formed gives less,
// never an error: it goes from tag to tag and builds no tree, so that no nesting costs
// more than it is long.
func parse(text []byte, at *url.URL) *Page {
	p := parser{page: &Page{URL: at.String()}, base: at, meta: map[string]string{}, colours: map[string]int{}}
	z := html.NewTokenizer(bytes.NewReader(text))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return p.finish(at)
		case html.StartTagToken:
			p.start(z, true)
		case html.SelfClosingTagToken:
			p.start(z, false)
		case html.EndTagToken:
			name, _ := z.TagName()
			p.end(string(name))
		case html.TextToken:
			p.text(z)
		}
	}
}

type parser struct {
	page    *Page
	base    *url.URL
	meta    map[string]string // by name or property; the first one counts
	titles  []string          // title, h1
	shown   []Picture         // in the text
	colours map[string]int    // how often, of those that are colours
	skip    int               // how deep we are in what is not the page's text
	in      string            // the element whose text is taken
	taken   strings.Builder
	raw     bool // what follows is no text of the page
}

// aside are elements whose text is not what the page is about.
func aside(name string) bool {
	switch name {
	case "nav", "footer", "aside", "form", "svg", "noscript", "template", "dialog":
		return true
	}
	return false
}

// isRaw reports whether what stands in an element is data of it, and never markup.
func isRaw(name string) bool {
	switch name {
	case "script", "textarea", "iframe", "noembed", "noframes", "xmp":
		return true
	}
	return false
}

// isBreak reports whether words do not go on behind an element.
func isBreak(name string) bool { return name == "br" || name == "div" || name == "li" || name == "tr" }

func (p *parser) start(z *html.Tokenizer, opens bool) {
	raw, more := z.TagName()
	name := string(raw)
	attrs := map[string]string{}
	for more {
		var key, value []byte
		key, value, more = z.TagAttr()
		if _, twice := attrs[string(key)]; !twice {
			attrs[string(key)] = string(value)
		}
	}
	p.countColours(attrs["style"])
	p.raw = opens && isRaw(name)
	switch {
	case aside(name) && opens:
		p.skip++
	case isBreak(name):
		p.taken.WriteByte(' ')
	case name == "base" && attrs["href"] != "":
		if base, err := p.base.Parse(attrs["href"]); err == nil {
			p.base = base
		}
	case name == "meta":
		p.takeMeta(attrs)
	case name == "link" && strings.EqualFold(attrs["rel"], "image_src"):
		p.takeMeta(map[string]string{"name": "image_src", "content": attrs["href"]})
	case name == "img" && p.skip == 0:
		p.takePicture(attrs)
	case name == "title" || name == "h1" || name == "h2" || name == "h3" || name == "p" || name == "style":
		p.end(p.in) // an element that was not closed
		p.in = name
	}
}

func (p *parser) takeMeta(attrs map[string]string) {
	key := strings.ToLower(attrs["property"])
	if key == "" {
		key = strings.ToLower(attrs["name"])
	}
	if _, known := p.meta[key]; !known && strings.TrimSpace(attrs["content"]) != "" {
		p.meta[key] = attrs["content"]
	}
}

// notPictures stand in the addresses of what decorates a page.
var notPictures = regexp.MustCompile(`(?i)logo|icon|sprite|avatar|pixel|badge|spacer|tracking|\.svg([?#]|$)`)

func (p *parser) takePicture(attrs map[string]string) {
	src := attrs["src"]
	for _, lazy := range []string{"data-src", "data-original", "data-lazy-src"} {
		if attrs[lazy] != "" {
			src = attrs[lazy]
		}
	}
	src = resolve(p.base, src)
	small := func(side string) bool {
		n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(side), "px"))
		return err == nil && n < 200
	}
	if src == "" || len(p.shown) >= maxPictures || notPictures.MatchString(src) || small(attrs["width"]) || small(attrs["height"]) {
		return
	}
	picture := Picture{URL: src, Alt: line(attrs["alt"])}
	p.shown = append(p.shown, picture)
	if n := len(p.page.Sections); n > 0 && p.page.Sections[n-1].Picture == nil {
		p.page.Sections[n-1].Picture = &picture
	}
}

func (p *parser) text(z *html.Tokenizer) {
	if p.raw || p.in == "" || p.taken.Len() > 4*maxText && p.in != "style" {
		return
	}
	if p.skip == 0 || p.in == "title" || p.in == "style" {
		p.taken.Write(z.Text())
	}
}

// end takes the text of an element that has come to its end.
func (p *parser) end(name string) {
	p.raw = p.raw && !isRaw(name)
	if aside(name) && p.skip > 0 {
		p.skip--
	}
	if name == "" || name != p.in {
		if isBreak(name) {
			p.taken.WriteByte(' ')
		}
		return
	}
	raw := p.taken.String()
	p.taken.Reset()
	p.in = ""
	if name == "style" {
		p.countColours(raw)
		return
	}
	p.take(name, Clip(line(raw), maxText))
}

func (p *parser) take(name, text string) {
	sections := p.page.Sections
	switch {
	case text == "":
	case name == "title", name == "h1":
		p.titles = append(p.titles, text)
	case name == "p":
		if n := len(sections); n > 0 && sections[n-1].Text == "" && len(text) >= minText {
			sections[n-1].Text = text
		} else if n == 0 && p.meta["first paragraph"] == "" && len(text) >= minText {
			p.meta["first paragraph"] = text
		}
	case len(sections) < maxSections:
		p.page.Sections = append(sections, Section{Heading: text})
	}
}

// finish decides between what a page says more than once.
func (p *parser) finish(at *url.URL) *Page {
	p.end(p.in)
	page := p.page
	first := func(texts ...string) string {
		for _, t := range texts {
			if t = line(t); t != "" {
				return Clip(t, maxText)
			}
		}
		return ""
	}
	page.Title = first(append([]string{p.meta["og:title"], p.meta["twitter:title"]}, p.titles...)...)
	page.Description = first(p.meta["og:description"], p.meta["description"], p.meta["twitter:description"], p.meta["first paragraph"])
	page.Site = first(p.meta["og:site_name"], p.meta["application-name"], strings.TrimPrefix(at.Hostname(), "www."))
	page.Sections = slices.DeleteFunc(page.Sections, func(s Section) bool { return s.Text == "" && s.Picture == nil })
	for _, key := range []string{"og:image:secure_url", "og:image", "og:image:url", "twitter:image", "twitter:image:src", "image_src"} {
		p.addPicture(Picture{URL: resolve(p.base, p.meta[key]), Alt: first(p.meta["og:image:alt"], p.meta["twitter:image:alt"])})
	}
	for _, picture := range p.shown {
		p.addPicture(picture)
	}
	page.Theme = hex(strings.TrimSpace(p.meta["theme-color"]))
	page.Accent = p.accent()
	return page
}

func (p *parser) addPicture(picture Picture) {
	known := slices.ContainsFunc(p.page.Pictures, func(other Picture) bool { return other.URL == picture.URL })
	if picture.URL != "" && !known {
		p.page.Pictures = append(p.page.Pictures, picture)
	}
}

// line is text as one line without anything that cannot be printed.
func line(text string) string {
	text = strings.ToValidUTF8(text, " ")
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), unicode.IsControl(r):
			return ' '
		case unicode.Is(unicode.Cf, r) && r != '\u200d': // a joiner is a part of many letters
			return -1
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// Clip cuts a text at a word, so that it has at most n characters.
func Clip(text string, n int) string {
	runes := []rune(text)
	if len(runes) <= n {
		return text
	}
	cut := string(runes[:n-1])
	if at := strings.LastIndexByte(cut, ' '); at > len(cut)/2 {
		cut = cut[:at]
	}
	return strings.TrimRight(cut, " ,;:") + "…"
}
