package edge_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"deckle"
	"deckle/internal/consent"
	"deckle/internal/edge"
	"deckle/internal/template"
)

// cacheable is an origin whose answers may be kept, page or not.
func cacheable(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", contentType)
		h.Set("Cache-Control", "public, max-age=600")
		h.Set("Expires", "Mon, 30 Nov 2026 12:10:00 GMT")
		h.Set("Surrogate-Key", "articles")
		h.Set("Etag", `"1"`)
		h.Set("Last-Modified", "Mon, 30 Nov 2026 12:00:00 GMT")
		h.Set("X-Asked", strings.Join([]string{r.Header.Get("If-None-Match"), r.Header.Get("Range")}, "|"))
		_, _ = io.WriteString(w, body)
	}
}

// visitors ask for one page in every way that the gate tells apart.
func visitors(path string) map[string]*http.Request {
	with := func(name, value string) *http.Request {
		r := navigation(path)
		r.Header.Del(name)
		if value != "" {
			r.Header.Set(name, value)
		}
		r.Header.Set("If-None-Match", `"1"`)
		return r
	}
	program := with("Sec-Fetch-Dest", "")
	program.Header.Del("Accept")
	return map[string]*http.Request{
		"a reader":         with("X-Nothing", ""),
		"a bot":            with("User-Agent", "Googlebot"),
		"no agent":         with("User-Agent", ""),
		"a prefetch":       with("Sec-Purpose", "prefetch;prerender"),
		"a frame":          with("Sec-Fetch-Dest", "iframe"),
		"a refusal by GPC": with("Sec-GPC", "1"),
		"an old browser":   with("Sec-Fetch-Dest", ""),
		"a cache":          program,
	}
}

func fetching(s *edge.Site) { s.Fetch = true }

// With bids = "fetch" a page is the same for everybody, and may be kept as its origin
// says; nobody is asked for bids.
func TestFetchedBids(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := setup{
			site:   func(s *edge.Site) { s.Fetch, s.ServerTiming = true, true },
			config: func(c *edge.Config) { c.Consent = consent.Config{UnknownPlace: consent.PlaceGDPR} },
		}
		w := newWorld(t, s, cacheable("text/html; charset=utf-8", page), func(http.ResponseWriter, *http.Request) { t.Error("a bidder was asked") })
		first := ""
		for name, r := range visitors("/x") {
			a := w.get(t.Context(), r)
			if first == "" {
				first = a.body()
			}
			if diff := cmp.Diff(first, a.body()); diff != "" {
				t.Errorf("%s gets another page: %s", name, diff)
			}
			for field, want := range map[string]string{
				"Cache-Control": "public, max-age=600", "Expires": "Mon, 30 Nov 2026 12:10:00 GMT", "Surrogate-Key": "articles",
				"Etag": "", "Last-Modified": "", "Content-Length": "", "Server-Timing": "", "X-Asked": "|",
			} {
				if got := a.header.Get(field); got != want {
					t.Errorf("%s: %s = %q, want %q", name, field, got, want)
				}
			}
		}
		var block struct {
			Slots []struct {
				DeadlineMS int `json:"deadline_ms"`
			}
			Skip   *string
			Client struct{ Bids string }
		}
		a := w.get(t.Context(), navigation("/x"))
		if !a.block(t, "slots", &block) || len(block.Slots) != 1 || block.Slots[0].DeadlineMS != 0 || block.Skip != nil || block.Client.Bids != "fetch" {
			t.Errorf("block %+v in %s", block, a.body())
		}
		if withoutOurs(a.body()) != page || strings.Contains(a.body(), `data-deckle="bids"`) {
			t.Errorf("page is %s", a.body())
		}
	})
}

// What is no page is not touched at all; and a page that was asked for as something
// else is not kept, since a cache would show it to readers.
func TestWhatIsNotShared(t *testing.T) {
	ask := func(name, value string) *http.Request {
		r := navigation("/x")
		r.Header.Set(name, value)
		r.Header.Set("Accept", "*/*")
		r.Header.Set("If-None-Match", `"1"`)
		return r
	}
	for name, c := range map[string]struct {
		r           *http.Request
		contentType string
		cached      bool
		asked       string
	}{
		"a picture":              {ask("Sec-Fetch-Dest", "image"), "image/png", true, `"1"|`},
		"a film, in parts":       {ask("Range", "bytes=0-9"), "video/mp4", true, `"1"|bytes=0-9`},
		"what a script asks":     {ask("Sec-Fetch-Dest", "empty"), "application/json", true, `"1"|`},
		"a page that it asks":    {ask("Sec-Fetch-Dest", "empty"), "text/html", false, `"1"|`},
		"a page, in parts":       {ask("Range", "bytes=0-9"), "text/html", false, `"1"|bytes=0-9`},
		"a picture by its page":  {ask("Sec-Fetch-Dest", "document"), "image/png", true, "|"},
		"a page for no document": {ask("Sec-Fetch-Dest", "style"), "text/html", false, `"1"|`},
	} {
		for site, s := range map[string]setup{"fetch": {site: fetching}, "spa": spaSite()} {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, s, cacheable(c.contentType, page), hang)
				a := w.get(t.Context(), c.r)
				if a.body() != page || a.header.Get("X-Asked") != c.asked {
					t.Errorf("%s, %s: asked for %q, got %q", site, name, a.header.Get("X-Asked"), a.body())
				}
				if got := a.header.Get("Cache-Control") == "public, max-age=600" && a.header.Get("Etag") == `"1"`; got != c.cached {
					t.Errorf("%s, %s: may be kept: %v, want %v; header %v", site, name, got, c.cached, a.header)
				}
			})
		}
	}
}

// spaSite has slots on /slots only, and the client everywhere.
func spaSite() setup {
	return setup{
		settings: func(s *template.Settings) { s.SPA = true },
		slots:    []deckle.Slot{slot("top")}, patterns: []template.Patterns{{Include: []string{"/slots"}}},
	}
}

// With spa = true the client is in every page, and in those without slots it is the
// same for everybody.
func TestSinglePageSite(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, spaSite(), cacheable("text/html; charset=utf-8", page), bids(0, "1"))
		var block struct {
			Slots  []any
			Client struct {
				SPA  bool
				Bids *string
			}
		}
		first := ""
		for name, r := range visitors("/x") {
			a := w.get(t.Context(), r)
			if first == "" {
				first = a.body()
			}
			if a.body() != first || a.header.Get("Cache-Control") != "public, max-age=600" || a.header.Get("Etag") != "" {
				t.Errorf("%s gets another page: %v %s", name, a.header, a.body())
			}
		}
		a := w.get(t.Context(), navigation("/x"))
		if !a.block(t, "slots", &block) || block.Slots == nil || len(block.Slots) != 0 || !block.Client.SPA || block.Client.Bids != nil {
			t.Errorf("block %+v in %s", block, a.body())
		}
		a = w.get(t.Context(), navigation("/slots"))
		if !a.block(t, "slots", &block) || len(block.Slots) != 1 || !block.Client.SPA || a.header.Get("Cache-Control") != "private, no-store" {
			t.Errorf("with slots: block %+v, header %v", block, a.header)
		}
	})
}

// HEAD has the header that the page has.
func TestHeadOfASharedPage(t *testing.T) {
	for site, s := range map[string]setup{"fetch": {site: fetching}, "spa": spaSite()} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t, s, cacheable("text/html", page), hang)
			r := navigation("/x")
			want := w.get(t.Context(), r).header
			r = navigation("/x")
			r.Method = http.MethodHead
			got := w.get(t.Context(), r).header
			want.Del("Link") // preconnect is for those who get the page
			want.Del("Date")
			got.Del("Date")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s", site, diff)
			}
		})
	}
}

// What a site's switch turns off stays off, and other methods are not for pages.
func TestSharedAndSwitchedOff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := setup{site: func(s *edge.Site) { s.Fetch, s.Enabled = true, false }, settings: func(s *template.Settings) { s.SPA = true }}
		w := newWorld(t, s, cacheable("text/html", page), hang)
		if a := w.get(t.Context(), navigation("/x")); a.body() != page || a.header.Get("Etag") == "" {
			t.Errorf("switched off: %v %s", a.header, a.body())
		}
		w = newWorld(t, setup{site: fetching, settings: s.settings}, cacheable("text/html", page), hang)
		r := navigation("/x")
		r.Method = http.MethodPost
		if a := w.get(t.Context(), r); a.body() != page || a.header.Get("Etag") == "" {
			t.Errorf("POST: %v %s", a.header, a.body())
		}
	})
}
