package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"deckle/internal/config"
	"deckle/internal/sim"
	"deckle/internal/sim/browser"
)

// A demoSite is the demo in this process: the world outside, and run in front.
type demoSite struct {
	world *sim.World
	url   string // of the magazine with Deckle in front
	admin string
}

// startDemo runs the demo until the test ends. edit changes its two files.
func startDemo(t *testing.T, o sim.Options, edit func(toml, template string) (string, string)) *demoSite {
	t.Helper()
	return startSite(t, o, stockDesk, edit)
}

// startSite is startDemo with another stock.
func startSite(t *testing.T, o sim.Options, stock stocking, edit func(toml, template string) (string, string)) *demoSite {
	t.Helper()
	world, err := sim.Start(context.WithoutCancel(t.Context()), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	d, ended := serveDemo(t, ctx, world, stock, edit)
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
		if err := world.Close(); err != nil {
			t.Errorf("close the world: %v", err)
		}
	})
	return d
}

// serveDemo runs the real thing in front of a world until ctx is done, and returns
// when it listens.
func serveDemo(t testing.TB, ctx context.Context, world *sim.World, stock stocking, edit func(toml, template string) (string, string)) (*demoSite, <-chan error) {
	t.Helper()
	listen, admin := freeAddr(t), freeAddr(t)
	dir := t.TempDir()
	cfg, err := demoConfig(world, dir, listen, admin)
	if err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		cfg = editFiles(t, dir, edit)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, cfg, options{reachable: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, stock: stock})
	}()
	within(t, func() bool {
		c, err := net.Dial("tcp", listen)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return &demoSite{world: world, url: "http://" + listen, admin: "http://" + admin}, ended
}

// within waits until done, and fails the test if that takes too long.
func within(t testing.TB, done func() bool) {
	t.Helper()
	timeout := time.After(browser.Patience)
	every := time.NewTicker(5 * time.Millisecond)
	defer every.Stop()
	for !done() {
		select {
		case <-every.C:
		case <-timeout:
			t.Fatal("it takes too long")
		}
	}
}

func freeAddr(t testing.TB) string {
	t.Helper()
	addr, err := free(t.Context(), "", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

func editFiles(t testing.TB, dir string, edit func(toml, template string) (string, string)) *config.Config {
	t.Helper()
	main, slots := filepath.Join(dir, "deckle.toml"), filepath.Join(dir, "creative-opportunities.toml")
	a, errA := os.ReadFile(main)
	b, errB := os.ReadFile(slots)
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	toml, template := edit(string(a), string(b))
	if err := os.WriteFile(main, []byte(toml), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(slots, []byte(template), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, problems := config.Load(main)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// events are the bids of which bidders have heard something, by kind, sorted.
func (d *demoSite) events(kind string) []string {
	var bids []string
	for _, e := range d.world.Prebid.Events() {
		if e.Kind == kind {
			bids = append(bids, e.Bid)
		}
	}
	slices.Sort(bids)
	return bids
}

// waitForEvents waits until bidders have heard of n bids, and returns them.
func (d *demoSite) waitForEvents(t *testing.T, kind string, n int) []string {
	t.Helper()
	within(t, func() bool { return len(d.events(kind)) >= n })
	return d.events(kind)
}

// spy is put into a page before anything else: it keeps what GPT says, and the
// targeting with which each slot was asked for.
const spy = `<script>window.seen = {requested: [], rendered: []};
window.googletag = window.googletag || {cmd: []};
googletag.cmd.push(() => {
	const keys = s => Object.fromEntries(['hb_pb', 'hb_bidder', 'hb_adid', 'ts_initial', 'pos'].map(k => [k, s.getTargeting(k).join()]));
	googletag.pubads().addEventListener('slotRequested', e => seen.requested.push({path: e.slot.getAdUnitPath(), div: e.slot.getSlotElementId(), ...keys(e.slot)}));
	googletag.pubads().addEventListener('slotRenderEnded', e => seen.rendered.push({div: e.slot.getSlotElementId(), empty: e.isEmpty}));
});</script>`

// A requested is one slot as GPT asked the ad server for it.
type requested struct {
	Path, Div string
	HBPB      string `json:"hb_pb"`
	Bidder    string `json:"hb_bidder"`
	AdID      string `json:"hb_adid"`
	Initial   string `json:"ts_initial"`
	Pos       string
}

// testPage is a page of the test's own, at a path below /20 unless it says
// otherwise, with elements for slots.
func (d *demoSite) testPage(path string, head string, divs ...string) string {
	var body strings.Builder
	for _, id := range divs {
		fmt.Fprintf(&body, `<div id="%s" style="min-width:300px;min-height:250px"></div>`, id)
	}
	d.world.Publisher.Handle(path, sim.Page{Chunks: []string{
		"<!doctype html><html><head><title>t</title>" + spy + head + `<script async src="` + d.world.GPTURL() + `"></script></head><body>`,
		body.String() + "</body></html>",
	}})
	return d.url + path
}

// slots is a template with one slot per stored imp, on every page.
func slots(extra string, ids ...string) string {
	var b strings.Builder
	b.WriteString("[creative_opportunities]\ngam_network_id = \"123\"\nauction_timeout_ms = 1000\n" + extra + "\n")
	for _, id := range ids {
		fmt.Fprintf(&b, "[[slot]]\nid = %q\npage_patterns = [\"/**\"]\nformats = [{ width = 300, height = 250 }]\n[slot.targeting]\npos = \"atf\"\n", id)
	}
	return b.String()
}

func only(template string) func(string, string) (string, string) {
	return func(toml, _ string) (string, string) { return toml, template }
}

// The demo as a person sees it: bids decided on the server, in a real page.
func TestDemoInBrowser(t *testing.T) {
	d := startDemo(t, sim.Options{Latency: sim.Latency{Prebid: 80 * time.Millisecond, Origin: 40 * time.Millisecond}}, nil)
	if err := stocked(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	b := browser.Start(t)
	for name, view := range map[string]browser.View{"desktop": browser.Desktop(), "phone": browser.Phone()} {
		p := b.Open(t, d.url+sim.SampleArticle, view)
		slots := browser.Eval[int](p, `__ts_ad_slots.filter((slot) => slot.kind === 'gpt').length`)
		bids := browser.Eval[map[string]map[string]any](p, `__ts_bids`)
		if slots < 3 || len(bids) < 2 {
			t.Errorf("%s: %d slots, bids %v", name, slots, bids)
		}
		if left := browser.Eval[int](p, `document.querySelectorAll('[data-deckle]').length`); left != 0 {
			t.Errorf("%s: %d of our elements stay in the page", name, left)
		}
		p.WaitFor(`googletag.pubads().getSlots().length === ` + fmt.Sprint(slots))
		p.WaitFor(`document.querySelectorAll('.ad iframe').length === ` + fmt.Sprint(slots))
		p.WaitFor(`document.querySelectorAll('.ad deckle-magazine').length === 2`)
		p.ScreenshotWhole("demo-article-" + name)
		if errs := p.Errors(); len(errs) > 0 {
			t.Errorf("%s: the console has %q", name, errs)
		}
	}
	p := b.Open(t, d.url+"/", browser.Desktop())
	p.WaitFor(`document.querySelectorAll('.ad iframe').length >= 2`)
	p.ScreenshotWhole("demo-home")
}

// Every slot is defined once with its unit path and element, asked for with the
// bucket of its bid, and rendered through the bridge; each winner is told once
// that it was selected, and each that was rendered that it may be billed.
func TestBidsBecomeAds(t *testing.T) {
	universal := readUniversalCreative(t)
	for name, o := range map[string]sim.AdServerOptions{
		"both interfaces":               {},
		"the older interface":           {OlderInterface: true},
		"unmodified universal creative": {UniversalCreative: universal},
	} {
		t.Run(name, func(t *testing.T) {
			// article_sidebar and home_feed win; article_end's only bid is below the
			// price of the house's own ads, which the ad server prefers.
			d := startDemo(t, sim.Options{AdServer: o}, only(slots("", "article_sidebar", "home_feed", "article_end")))
			page := d.testPage("/2026/test", "", "article_sidebar", "home_feed", "article_end")
			p := browser.Start(t).Open(t, page, browser.Desktop())
			p.WaitFor(`seen.rendered.length === 3`)

			got := browser.Eval[[]requested](p, `seen.requested`)
			bids := browser.Eval[map[string]map[string]any](p, `__ts_bids`)
			want := map[string][2]string{"article_sidebar": {"3.40", "pwbid"}, "home_feed": {"2.35", "automatad"}}
			if len(got) != 3 {
				t.Fatalf("requested %+v", got)
			}
			for _, r := range got {
				if r.Path != "/123/"+r.Div || r.Initial != "1" || r.Pos != "atf" {
					t.Errorf("requested %+v", r)
				}
				if w, ok := want[r.Div]; ok && (r.HBPB != w[0] || r.Bidder != w[1]) {
					t.Errorf("%s asked for with %s of %s, want %s of %s", r.Div, r.HBPB, r.Bidder, w[0], w[1])
				}
				if r.AdID != bids[r.Div]["hb_adid"] {
					t.Errorf("%s: hb_adid %q, in __ts_bids %v", r.Div, r.AdID, bids[r.Div]["hb_adid"])
				}
			}

			impressions := d.waitForEvents(t, "imp", 2)
			billed := d.waitForEvents(t, "burl", 2)
			selected := d.waitForEvents(t, "nurl", 3)
			p.Navigate(d.url + "/about:blank-like-404") // whatever was still to be told has been
			if got := d.events("burl"); !slices.Equal(got, impressions) || !slices.Equal(got, billed) {
				t.Errorf("billed %v, rendered %v", got, impressions)
			}
			if got := d.events("nurl"); len(slices.Compact(got)) != 3 || !slices.Equal(got, selected) {
				t.Errorf("selected %v", got)
			}
		})
	}
}

func readUniversalCreative(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile("../../web/node_modules/prebid-universal-creative/dist/creative.js")
	if err != nil {
		t.Fatalf("npm packages are missing, `make test` installs them: %v", err)
	}
	return b
}

// Late bids come in the body, and become ads all the same.
func TestLateBidsBecomeAds(t *testing.T) {
	d := startDemo(t, sim.Options{Latency: sim.Latency{Prebid: 300 * time.Millisecond}}, only(slots("head_hold_ms = 0", "article_sidebar")))
	d.world.Publisher.Handle("/2026/late", sim.Page{Pause: 500 * time.Millisecond, Chunks: []string{
		"<!doctype html><html><head><title>t</title>" + spy + `<script async src="` + d.world.GPTURL() + `"></script></head><body><div id="article_sidebar"></div><p>`,
		"the rest</body></html>",
	}})
	p := browser.Start(t).Open(t, d.url+"/2026/late", browser.Desktop())
	p.WaitFor(`seen.rendered.length === 1`)
	if got := browser.Eval[[]requested](p, `seen.requested`); len(got) != 1 || got[0].HBPB != "3.40" {
		t.Errorf("requested %+v", got)
	}
	d.waitForEvents(t, "burl", 1)
}

// A reader who has refused sees the house's ads; no bidder hears of the page.
func TestRefusedInBrowser(t *testing.T) {
	d := startDemo(t, sim.Options{}, nil)
	p := browser.Start(t).Open(t, d.url+"/preferences/refuse?from="+url.QueryEscape(sim.SampleArticle), browser.Desktop())
	p.WaitFor(`window.googletag && googletag.pubads && googletag.pubads().getSlots().length > 0`)
	p.WaitFor(`document.querySelectorAll('.ad iframe').length > 0`)
	p.ScreenshotWhole("demo-refused")
	if got := browser.Eval[bool](p, `window.__ts_bids === undefined`); !got {
		t.Error("bids in a refused page")
	}
	for _, s := range d.world.AdServer.Served() {
		for key := range s.Targeting {
			if strings.HasPrefix(key, "hb_") {
				t.Errorf("%s was asked for with %s", s.UnitPath, key)
			}
		}
	}
	if n := len(d.world.Prebid.Requests()); n != 0 {
		t.Errorf("bidders were asked %d times", n)
	}
}

// burl_on = "render" bills on the ad server's word alone.
func TestBURLOnRender(t *testing.T) {
	d := startDemo(t, sim.Options{}, func(toml, _ string) (string, string) {
		return strings.Replace(toml, "account_id", "burl_on = \"render\"\naccount_id", 1), slots("", "article_sidebar")
	})
	p := browser.Start(t).Open(t, d.testPage("/2026/render", "", "article_sidebar"), browser.Desktop())
	p.WaitFor(`seen.rendered.length === 1`)
	if got := d.waitForEvents(t, "burl", 1); len(got) != 1 {
		t.Errorf("billed %v", got)
	}
}

// Bids of strangers execute nothing in the page, whatever they hold.
func TestHostileBidsExecuteNothing(t *testing.T) {
	ids := []string{"hostile-script", "hostile-separators", "hostile-quotes", "hostile-urls", "hostile-parent"}
	d := startDemo(t, sim.Options{}, only(slots("", ids...)))
	p := browser.Start(t).Open(t, d.testPage("/2026/hostile", "", ids...), browser.Desktop())
	p.WaitFor(fmt.Sprintf(`seen.rendered.length === %d`, len(ids)))
	d.waitForEvents(t, "burl", 3) // of the three whose own burl is there: the bridge has given out their markup
	d.waitForEvents(t, "ran", 1)  // the script that reaches for the page has run to its end
	p.Screenshot("hostile")
	for _, check := range []struct{ expression, what string }{
		{`typeof window.` + sim.HostileMark, "undefined"},
		{`document.title`, "t"},
		{`location.pathname`, "/2026/hostile"},
		{`document.cookie`, ""},
		{`String(document.querySelectorAll('body > *').length)`, fmt.Sprint(len(ids))},
	} {
		if got := browser.Eval[string](p, check.expression); got != check.what {
			t.Errorf("%s = %q, want %q", check.expression, got, check.what)
		}
	}
	if bids := browser.Eval[map[string]map[string]any](p, `__ts_bids`); len(bids) != len(ids) {
		t.Errorf("bids %v", bids)
	}
	if bad := browser.Eval[[]string](p, `Object.values(__ts_bids).flatMap(b => [b.burl, b.nurl]).filter(u => u && !/^https?:/.test(u))`); len(bad) > 0 {
		t.Errorf("notices to %q", bad)
	}
}

// What the browser must be able to keep for ever, and what it must not.
func TestClientIsImmutable(t *testing.T) {
	d := startDemo(t, sim.Options{}, nil)
	req, err := http.NewRequest("GET", d.url+sim.SampleArticle, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("User-Agent", "Mozilla/5.0")
	req.Header.Set("Accept", "text/html")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	_, src, _ := strings.Cut(string(body), `"src":"`)
	src, _, _ = strings.Cut(src, `"`)
	client, err := http.Get(d.url + src)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Body.Close()
	if got := client.Header.Get("Cache-Control"); client.StatusCode != 200 || got != "public, max-age=31536000, immutable" {
		t.Errorf("%s: %d, %q", src, client.StatusCode, got)
	}
}
