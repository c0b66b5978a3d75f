package sim_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/google/go-cmp/cmp"

	"deckle/internal/sim"
	"deckle/internal/sim/browser"
)

// Prebid.js and Prebid Universal Creative, unmodified, run against the Prebid Server
// and the ad server of this package: bids come, targeting is set, the winning
// markup goes through Prebid.js's own bridge, and a low price loses to the house.
// So what our client is tested with is not made to its measure.
func TestPrebidJSRunsInTheWorld(t *testing.T) {
	t.Parallel()
	bundle, universal := npm(t)
	b := browser.Start(t)
	tests := []struct {
		name    string
		options sim.AdServerOptions
	}{
		{"universal creative, setConfig", sim.AdServerOptions{UniversalCreative: universal}},
		{"own creative, older interface", sim.AdServerOptions{OlderInterface: true}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := start(t, sim.Options{AdServer: test.options})
			w.Publisher.Handle("/prebid.js", sim.Page{Chunks: []string{bundle}, Header: http.Header{"Content-Type": {"text/javascript"}}})
			w.Publisher.Handle("/", sim.Page{Chunks: []string{prebidPage(t, w)}})
			page := b.Open(t, w.PublisherURL, browser.Desktop())
			page.WaitFor(`seen.rendered.length === 2 && seen.ended.length === 4 && seen.viewable.includes('top')`)
			page.Screenshot("prebidjs")
			checkRendered(t, page)
			checkServed(t, w)
			checkNotices(t, w)
		})
	}
}

// checkRendered looks at the page: who has rendered, and at which size.
func checkRendered(t *testing.T, page *browser.Page) {
	t.Helper()
	got := browser.Eval[map[string]any](page, `({
		rendered: seen.rendered.sort(), failed: seen.failed, ended: seen.ended.map(String).sort(),
		sizes: ['top', 'stored', 'cheap', 'none'].map((id) => {
			const frame = document.getElementById(id).querySelector('iframe');
			return frame ? id + ' ' + frame.offsetWidth + 'x' + frame.offsetHeight : id;
		}),
	})`)
	want := map[string]any{
		"rendered": []any{"stored", "top"}, "failed": []any{},
		"ended": []any{"cheap,false", "none,true", "stored,false", "top,false"},
		"sizes": []any{"top 728x90", "stored 300x250", "cheap 728x90", "none"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("page (-want +got):\n%s", diff)
	}
	if errs := page.Errors(); len(errs) > 0 {
		t.Errorf("console errors: %q", errs)
	}
}

// checkServed looks at the ad server: what targeting came, and what was served.
func checkServed(t *testing.T, w *sim.World) {
	t.Helper()
	if n := len(w.AdServer.Requests()); n != 1 {
		t.Errorf("%d ad requests, want one with all slots", n)
	}
	got := map[string]string{}
	for _, s := range w.AdServer.Served() {
		unit := s.UnitPath[strings.LastIndexByte(s.UnitPath, '/')+1:]
		got[unit] = fmt.Sprint(s.LineItem, " ", s.Targeting["hb_pb"], " ", s.Targeting["hb_bidder"], " ", s.Targeting["hb_size"])
	}
	want := map[string]string{
		"top": "prebid [1.80] [automatad] [728x90]", "stored": "prebid [4.00] [automatad] [300x250]",
		"cheap": "house [0.20] [optidigital] [728x90]", "empty": "empty [5.10] [pwbid] [728x90]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("served (-want +got):\n%s", diff)
	}
}

// checkNotices looks at the bidders: an impression and burl for each rendered bid
// and for no other. Prebid.js leaves the price macro in a Prebid Server's burl.
func checkNotices(t *testing.T, w *sim.World) {
	t.Helper()
	want := []string{"burl automatad ${AUCTION_PRICE}", "burl automatad ${AUCTION_PRICE}", "imp automatad 1.87", "imp automatad 4.01"}
	var got []string
	every := time.NewTicker(10 * time.Millisecond)
	defer every.Stop()
	for end := time.Now().Add(browser.Patience); ; <-every.C { // the page has rendered before they are there
		got = nil
		for _, e := range w.Prebid.Events() {
			if e.Kind == "imp" || e.Kind == "burl" {
				seat, _, _ := strings.Cut(e.Bid, "-")
				got = append(got, e.Kind+" "+seat+" "+e.Price)
			}
		}
		if len(got) >= len(want) || time.Now().After(end) {
			break
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("notices (-want +got):\n%s", diff)
	}
}

// prebidPage is a page as a publisher writes it for Prebid.js and GPT.
func prebidPage(t *testing.T, w *sim.World) string {
	t.Helper()
	html, err := os.ReadFile("testdata/prebidjs/page.html")
	if err != nil {
		t.Fatal(err)
	}
	return replaceURLs(w, string(html))
}

// replaceURLs puts the addresses of the world into a page.
func replaceURLs(w *sim.World, html string) string {
	return strings.NewReplacer("PREBID_URL", w.PrebidURL, "GPT_URL", w.GPTURL()).Replace(html)
}

// npm builds Prebid.js and reads Prebid Universal Creative from web/node_modules.
func npm(t *testing.T) (bundle string, universal []byte) {
	t.Helper()
	web := filepath.Join("..", "..", "web")
	universal, err := os.ReadFile(filepath.Join(web, "node_modules", "prebid-universal-creative", "dist", "banner.js"))
	if err != nil {
		t.Fatalf("%v\nThis test runs unmodified Prebid.js: install it with `npm ci` in web/, as `make test` does.", err)
	}
	entry, err := os.ReadFile("testdata/prebidjs/entry.js")
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs(web)
	if err != nil {
		t.Fatal(err)
	}
	built := api.Build(api.BuildOptions{
		Stdin:  &api.StdinOptions{Contents: string(entry), ResolveDir: root},
		Bundle: true, Format: api.FormatIIFE, Target: api.ES2020, Platform: api.PlatformBrowser,
		MinifySyntax: true, LogLevel: api.LogLevelSilent,
	})
	if len(built.Errors) > 0 {
		t.Fatalf("bundle Prebid.js: %v", built.Errors[0].Text)
	}
	return string(built.OutputFiles[0].Contents), universal
}
