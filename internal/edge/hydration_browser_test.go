package edge_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/google/go-cmp/cmp"

	"deckle/internal/auction"
	"deckle/internal/edge"
	"deckle/internal/sim/browser"
	"deckle/internal/template"
	"deckle/web"
)

// hydrate is testdata/hydrate.jsx with React, from npm.
func hydrate(t *testing.T) (script string) {
	t.Helper()
	modules, err := filepath.Abs(filepath.Join("..", "..", "web", "node_modules"))
	if err != nil {
		t.Fatal(err)
	}
	result := api.Build(api.BuildOptions{
		EntryPoints: []string{filepath.Join("testdata", "hydrate.jsx")},
		Bundle:      true, Format: api.FormatIIFE, Platform: api.PlatformBrowser, NodePaths: []string{modules},
		Define: map[string]string{"process.env.NODE_ENV": `"development"`}, // it says what does not match
	})
	if len(result.Errors) > 0 {
		t.Fatalf("build with React: %s; `make tools` brings it", result.Errors[0].Text)
	}
	return string(result.OutputFiles[0].Contents)
}

// A slowPage gives a page in pieces.
type slowPage struct {
	script string
	pages  map[string]string // by path
}

func (s *slowPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/plain/hydrate.js" {
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		_, _ = io.WriteString(w, s.script)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	for rest := s.pages[r.URL.Path]; rest != ""; {
		n := min(800, len(rest))
		_, _ = io.WriteString(w, rest[:n])
		_ = http.NewResponseController(w).Flush()
		if rest = rest[n:]; rest != "" {
			wait(40 * ms)
		}
	}
}

// TestHydration lets React hydrate a page, as a whole document and as an element of
// one, while bids arrive early and late: it finds what it has rendered, and after the
// load the page is the origin's.
func TestHydration(t *testing.T) {
	t.Parallel()
	origin := &slowPage{script: hydrate(t), pages: map[string]string{"/plain/render": "<script src=/plain/hydrate.js></script>"}}
	without := httptest.NewServer(origin)
	t.Cleanup(without.Close)
	b := browser.Start(t)
	renderer := b.Open(t, without.URL+"/plain/render", browser.Desktop())
	for _, what := range []string{"document", "element"} {
		origin.pages["/"+what] = browser.Eval[string](renderer, fmt.Sprintf(`window.pages.%s()`, what))
	}
	s := setup{
		sockets: true, client: web.Client(),
		site:     func(s *edge.Site) { s.Hosts = []string{"127.0.0.1"} },
		settings: func(s *template.Settings) { s.AuctionTimeout, s.HeadHold = 10*time.Second, 0 },
		provider: func(p *auction.Provider) { p.Timeout = 10 * time.Second },
	}
	for _, late := range []time.Duration{0, 100 * ms, 600 * ms} {
		with := httptest.NewServer(newWorld(t, s, origin.ServeHTTP, bids(late, "1")).edge)
		t.Cleanup(with.Close)
		for _, what := range []string{"document", "element"} {
			t.Run(fmt.Sprintf("%s, bids after %v", what, late), func(t *testing.T) {
				if late != 100*ms && os.Getenv("DECKLE_SLOW") == "" {
					t.Skip("DECKLE_SLOW is not set")
				}
				plain := b.Open(t, without.URL+"/"+what, browser.Desktop())
				ours := b.Open(t, with.URL+"/"+what, browser.Desktop())
				plain.WaitFor(`window.hydrated`)
				ours.WaitFor(`window.hydrated && window.__ts_bids?.top && window.deckle && !document.querySelector('[data-deckle]')`)
				if found := browser.Eval[[]string](ours, `window.mismatches`); len(found) > 0 {
					t.Errorf("React found another page: %q", found)
				}
				for _, e := range ours.Errors() {
					if !strings.Contains(e, "favicon") {
						t.Errorf("the page says %s", e)
					}
				}
				const page = `document.documentElement.outerHTML`
				if diff := cmp.Diff(browser.Eval[string](plain, page), browser.Eval[string](ours, page)); diff != "" {
					t.Errorf("after the load: %s", diff)
				}
			})
		}
	}
}
