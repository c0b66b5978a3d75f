package edge_test

import (
	"io"
	"net/http"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"deckle"
	"deckle/internal/edge"
	"deckle/internal/template"
)

// A told is what Config.Head was told.
type told struct {
	Site, URL string
	Meta      edge.HeadMeta
}

// told asks for a page and gives what Config.Head was told of it.
func toldOf(t *testing.T, s setup, r *http.Request, origin http.HandlerFunc) (got []told) {
	t.Helper()
	config := s.config
	s.config = func(c *edge.Config) {
		c.Head = func(site, url string, m edge.HeadMeta) { got = append(got, told{site, url, m}) }
		if config != nil {
			config(c)
		}
	}
	newWorld(t, s, origin, bids(0, "1")).get(t.Context(), r)
	return got
}

// typed answers with bytes as they are.
func typed(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, body)
	}
}

func TestHeadIsTold(t *testing.T) {
	const section = `<meta property=article:section content="`
	for name, c := range map[string]struct {
		contentType, head string
		want              edge.HeadMeta
	}{
		"section and tags":      {"text/html; charset=utf-8", section + `Travel"><meta property=article:tag content=a><meta property=article:tag content=b>`, edge.HeadMeta{Sections: []string{"Travel"}, Tags: []string{"a", "b"}}},
		"references":            {"text/html; charset=utf-8", section + `Food &amp; Drink &#39;&quot;&#x1F370;">`, edge.HeadMeta{Sections: []string{`Food & Drink '"🍰`}}},
		"references of a value": {"text/html; charset=utf-8", section + `a&copy=b &copyc &copy;">`, edge.HeadMeta{Sections: []string{"a&copy=b &copyc ©"}}},
		"a quote in it":         {"text/html; charset=utf-8", `<meta property=article:section content='a"> <b c="d'>`, edge.HeadMeta{Sections: []string{`a"> <b c="d`}}},
		"white space":           {"text/html; charset=utf-8", section + "\n Travel \t\">" + section + " \">", edge.HeadMeta{Sections: []string{"Travel"}}},
		"charset of the header": {"text/html; charset=Shift_JIS", section + "\x97\xb7\x8ds\">", edge.HeadMeta{Sections: []string{"旅行"}}},
		"charset of a meta":     {"text/html", "<meta charset=iso-8859-2>" + section + "Cestov\xe1n\xed\">", edge.HeadMeta{Sections: []string{"Cestování"}}},
		"the header's counts":   {"text/html; charset=utf-8", "<meta charset=iso-8859-2>" + section + "Cestování\">", edge.HeadMeta{Sections: []string{"Cestování"}}},
		"a mark counts more":    {"text/html; charset=iso-8859-2", "", edge.HeadMeta{Sections: []string{"Cestování"}}},
		"UTF-16 in a meta":      {"text/html", "<meta charset=utf-16le>" + section + "Cestování\">", edge.HeadMeta{Sections: []string{"Cestování"}}},
		"no charset, UTF-8":     {"text/html", section + "Cestování\">", edge.HeadMeta{Sections: []string{"Cestování"}}},
		"no charset, not UTF-8": {"text/html; charset=nonsense", section + "Caf\xe9\">", edge.HeadMeta{Sections: []string{"Café"}}},
		"broken UTF-8":          {"text/html; charset=utf-8", section + "Caf\xe9\">", edge.HeadMeta{Sections: []string{"Caf\ufffd"}}},
	} {
		t.Run(name, func(t *testing.T) {
			body := "<!doctype html><head>" + c.head + "</head><p>x"
			if name == "a mark counts more" {
				body = "\ufeff<head>" + section + "Cestování\"></head>"
			}
			bubble(t, func(t *testing.T) {
				got := toldOf(t, setup{}, navigation("/a/b?p=1&utm_source=x"), typed(c.contentType, body))
				want := []told{{"test", "http://www.test/a/b?p=1&utm_source=x", c.want}}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// Once for every whole page with slots, whoever asks for it and whatever becomes of
// its auction; never for anything else.
func TestWhenHeadIsTold(t *testing.T) {
	const doc = `<head><meta property=article:section content=Travel></head><p>x`
	page := typed("text/html; charset=utf-8", doc)
	withStatus := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, doc)
		}
	}
	with := func(name, value string) *http.Request {
		r := navigation("/x")
		r.Header.Set(name, value)
		return r
	}
	head := navigation("/x")
	head.Method = "HEAD"
	magazine := slot("top")
	magazine.Kind = deckle.Magazine
	for name, c := range map[string]struct {
		setup  setup
		r      *http.Request
		origin http.HandlerFunc
		want   int
	}{
		"a page":                  {setup{}, navigation("/x"), page, 1},
		"no auction":              {setup{config: func(c *edge.Config) { c.AuctionEnabled = false }}, navigation("/x"), page, 1},
		"magazine slots":          {setup{slots: []deckle.Slot{magazine}, patterns: []template.Patterns{{Include: []string{"/**"}}}}, navigation("/x"), page, 1},
		"a bot":                   {setup{}, with("User-Agent", "Googlebot"), page, 1},
		"a prefetch":              {setup{}, with("Sec-Purpose", "prefetch"), page, 1},
		"no slot":                 {setup{}, navigation("/plain"), page, 0},
		"HEAD":                    {setup{}, head, page, 0},
		"a frame":                 {setup{}, with("Sec-Fetch-Dest", "iframe"), page, 0},
		"203":                     {setup{}, navigation("/x"), withStatus(203), 0},
		"404":                     {setup{}, navigation("/x"), withStatus(404), 0},
		"404 with slots":          {setup{site: func(s *edge.Site) { s.ErrorPages = true }}, navigation("/x"), withStatus(404), 0},
		"switched off":            {setup{site: func(s *edge.Site) { s.Enabled = false }}, navigation("/x"), page, 0},
		"not HTML":                {setup{}, navigation("/x"), typed("text/plain", doc), 0},
		"nothing said":            {setup{}, navigation("/x"), typed("text/html; charset=utf-8", "<head></head>"), 0},
		"nothing but white space": {setup{}, navigation("/x"), typed("text/html; charset=utf-8", "<head><meta property=article:tag content=' '></head>"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				if got := toldOf(t, c.setup, c.r, c.origin); len(got) != c.want {
					t.Errorf("told %v, want %d", got, c.want)
				}
			})
		})
	}
}

// The URL is the one that the reader sees, where a trusted proxy is in between.
func TestURLOfHead(t *testing.T) {
	for trusted, want := range map[string]string{
		"192.0.2.0/24": "https://blog.test/x?q",
		"10.0.0.0/8":   "http://www.test/x?q",
	} {
		bubble(t, func(t *testing.T) {
			r := navigation("/x?q")
			r.Header.Set("X-Forwarded-Proto", "https")
			r.Header.Set("X-Forwarded-Host", "blog.test")
			s := setup{
				site:   func(s *edge.Site) { s.Hosts = []string{"www.test", "blog.test"} },
				config: func(c *edge.Config) { c.TrustedProxies = edge.Peers{netip.MustParsePrefix(trusted)} },
			}
			got := toldOf(t, s, r, typed("text/html", "<meta property=article:tag content=a><p>"))
			if len(got) != 1 || got[0].URL != want {
				t.Errorf("told %v, want %s", got, want)
			}
		})
	}
}
