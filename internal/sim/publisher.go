package sim

import (
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// PublisherOptions configures a [Publisher]. The zero value is a site without ads.
type PublisherOptions struct {
	// Latency is how long a page takes from its request to its last byte. It comes
	// in three parts: head and masthead, the content, the footer.
	Latency time.Duration

	// GPTURL is where the pages load Google Publisher Tag from. Empty: they do not.
	GPTURL string
}

// A Publisher is the site behind Deckle: Slow Lines, a small travel magazine
// with a front page, four sections, articles at /2026/11/…, a newsletter form and
// three links that write a TC string. Its pages have empty containers for ads
// ("div-…") and load gpt.js, as publishers' pages do, and nothing else for ads.
//
// A test gives it pages of its own, and their faults, with [Publisher.Handle].
type Publisher struct {
	options  PublisherOptions
	mux      http.ServeMux
	requests record[Request]

	mu    sync.Mutex
	pages map[string]Page // by path
}

//go:embed magazine
var magazine embed.FS

// TC strings of a reader who has accepted everything for a few vendors, and of one
// who has refused everything.
const (
	TCAccepted = "CQdZmkAQdZmkAAfABAENCWEoAP_gAEPgAAYgHJwBQAaABMAYyA0oByYAmQAQAmAAAAAA.IAAA.YAAAAAAAAAAA"
	TCRefused  = "CQdZmkAQdZmkAAfABAENCWEgAAAAAAAAAAYgAAAAAAAA.IAAA.YAAAAAAAAAAA"
	tcCookie   = "euconsent-v2"
)

// NewPublisher makes the magazine.
func NewPublisher(o PublisherOptions) *Publisher {
	p := &Publisher{options: o, pages: map[string]Page{}}
	pages := template.Must(template.ParseFS(magazine, "magazine/pages.html"))
	p.mux.HandleFunc("GET /{$}", p.page(pages, "home", p.home))
	p.mux.HandleFunc("GET /{section}/{$}", p.page(pages, "section", p.section))
	p.mux.HandleFunc("GET /2026/11/{slug}/{$}", p.page(pages, "article", p.article))
	p.mux.HandleFunc("GET /pictures/{name}", p.picture)
	p.mux.HandleFunc("GET /preferences/{choice}", preferences)
	p.mux.HandleFunc("POST /newsletter", p.page(pages, "plain", p.newsletter))
	p.mux.HandleFunc("GET /style.css", static("magazine/style.css", "text/css; charset=utf-8"))
	p.mux.HandleFunc("GET /favicon.svg", static("magazine/favicon.svg", "image/svg+xml"))
	p.mux.HandleFunc("GET /favicon.ico", static("magazine/favicon.svg", "image/svg+xml"))
	p.mux.HandleFunc("/", p.page(pages, "plain", p.notFound))
	return p
}

// Requests are what the site has been asked, oldest first.
func (p *Publisher) Requests() []Request { return p.requests.snapshot() }

// Handle answers requests for a path with page from now on, whatever their method.
func (p *Publisher) Handle(path string, page Page) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pages[path] = page
}

func (p *Publisher) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	note(&p.requests, r)
	p.mu.Lock()
	page, given := p.pages[r.URL.Path]
	p.mu.Unlock()
	if given {
		page.serve(w, r)
		return
	}
	p.mux.ServeHTTP(w, r)
}

// view is what the templates see.
type view struct {
	Title, Heading, Description string
	At                          string // path of the section
	GPTURL                      string
	From                        string // path of the page, for the way back
	Consent                     string // what the reader has answered
	Sections                    []section
	Lead                        article
	Articles                    []article

	status int
}

// SectionName is the name of the article's section.
func (v view) SectionName(a article) string {
	i := slices.IndexFunc(v.Sections, func(s section) bool { return s.Path == a.Section })
	return v.Sections[i].Name
}

// Card is what the template "card" sees.
func (v view) Card(a article) any {
	return struct {
		Article article
		Section string
	}{a, v.SectionName(a)}
}

// page answers with the template of that name around what fill has filled in.
func (p *Publisher) page(pages *template.Template, name string, fill func(*view, *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := &view{
			GPTURL: p.options.GPTURL, From: r.URL.EscapedPath(), Consent: consentOf(r),
			Sections: sections(), status: http.StatusOK,
		}
		fill(v, r)
		body := name
		if v.status != http.StatusOK {
			body = "plain"
		}
		var parts []string
		for _, part := range []string{"top", body, "bottom"} {
			var buf strings.Builder
			if err := pages.ExecuteTemplate(&buf, part, v); err != nil {
				panic(fmt.Errorf("template %s: %w", part, err)) // our own template, tested on every page
			}
			parts = append(parts, buf.String())
		}
		Page{
			Status: v.status, Chunks: parts, Gzip: true,
			FirstByte: p.options.Latency / 2, Pause: p.options.Latency / 4,
			Header: http.Header{
				"Cache-Control": {"public, max-age=60"},
				"Etag":          {`"` + strconv.FormatUint(hash(v.Title+v.Consent), 36) + `"`},
				"Vary":          {"Cookie"}, // the footer says what the reader has answered
			},
		}.serve(w, r)
	}
}

func (p *Publisher) home(v *view, _ *http.Request) {
	all := articles()
	v.Title, v.Description = "Slow Lines", "Journeys by rail, by water and on foot."
	v.Lead, v.Articles = all[0], all[1:]
}

func (p *Publisher) section(v *view, r *http.Request) {
	i := slices.IndexFunc(v.Sections, func(s section) bool { return s.Path == r.PathValue("section") })
	if i < 0 {
		p.notFound(v, r)
		return
	}
	s := v.Sections[i]
	v.At, v.Heading, v.Title, v.Description = s.Path, s.Name, s.Name+" · Slow Lines", s.Line
	v.Articles = slices.DeleteFunc(articles(), func(a article) bool { return a.Section != s.Path })
}

func (p *Publisher) article(v *view, r *http.Request) {
	all := articles()
	i := slices.IndexFunc(all, func(a article) bool { return a.Slug == r.PathValue("slug") })
	if i < 0 {
		p.notFound(v, r)
		return
	}
	v.Lead, v.At = all[i], all[i].Section
	v.Title, v.Description = v.Lead.Title+" · Slow Lines", v.Lead.Stand
	v.Articles = slices.Delete(all, i, i+1)[:4]
}

func (p *Publisher) newsletter(v *view, r *http.Request) {
	_, _ = io.Copy(io.Discard, http.MaxBytesReader(nil, r.Body, 1<<20))
	v.Title, v.Heading, v.Description = "Thank you · Slow Lines", "Thank you", "The next letter will find you."
}

func (p *Publisher) notFound(v *view, _ *http.Request) {
	v.status = http.StatusNotFound
	v.Title, v.Heading = "Not here · Slow Lines", "There is no such platform"
	v.Description = "The page may have left already, or it never called here."
}

// picture serves the picture of an article.
func (p *Publisher) picture(w http.ResponseWriter, r *http.Request) {
	slug, isSVG := strings.CutSuffix(r.PathValue("name"), ".svg")
	i := slices.IndexFunc(articles(), func(a article) bool { return a.Slug == slug })
	if !isSVG || i < 0 {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "image/svg+xml")
	w.Header().Set("Cache-Control", "public, max-age=3600")
	_, _ = io.WriteString(w, landscape(i, slug, articles()[i].Section))
}

// preferences writes or deletes the TC string, as a consent dialog does, and goes
// back to where the reader was.
func preferences(w http.ResponseWriter, r *http.Request) {
	c := &http.Cookie{Name: tcCookie, Path: "/", MaxAge: 365 * 24 * 3600, SameSite: http.SameSiteLaxMode}
	switch r.PathValue("choice") {
	case "accept":
		c.Value = TCAccepted
	case "refuse":
		c.Value = TCRefused
	case "forget":
		c.MaxAge = -1
	default:
		http.NotFound(w, r)
		return
	}
	http.SetCookie(w, c)
	w.Header().Set("Cache-Control", "no-store")
	back := r.FormValue("from")
	if u, err := url.Parse(back); err != nil || u.Host != "" || u.Scheme != "" || !strings.HasPrefix(back, "/") || strings.HasPrefix(back, "/\\") {
		back = "/"
	}
	http.Redirect(w, r, back, http.StatusSeeOther)
}

// consentOf says what the reader has answered.
func consentOf(r *http.Request) string {
	c, err := r.Cookie(tcCookie)
	switch {
	case errors.Is(err, http.ErrNoCookie):
		return "you have not been asked"
	case c.Value == TCAccepted:
		return "you have accepted"
	case c.Value == TCRefused:
		return "you have refused"
	}
	return "you have answered elsewhere"
}

func static(name, mediaType string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		body, err := magazine.ReadFile(name)
		if err != nil {
			panic(err) // embedded
		}
		w.Header().Set("Content-Type", mediaType)
		w.Header().Set("Cache-Control", "public, max-age=3600")
		_, _ = w.Write(body)
	}
}
