package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"deckle/internal/sim/browser"
	"deckle/web"
)

// A hostilePage is a page that gives our elements a hard time, with what the edge
// would write into it.
type hostilePage struct {
	name   string
	csp    string // Content-Security-Policy
	nonce  string // on the runners
	head   string // the origin's, after hole 1
	body   string
	bids   string // hole 2, whole; default: block and runner
	client string // the member client, but for its src; default: gpt.js is the page's affair
	want   string // a JavaScript expression that becomes true
}

const (
	slotsData = `[{"id":"top","gam_unit_path":"/1/top","div_id":"top","formats":[[300,250]],"targeting":{},"kind":"gpt","deadline_ms":400}]`
	bidsData  = `{"top":{"hb_adid":"AD1","hb_pb":"1.00","w":300,"h":250}}`
	bidsBlock = `<script type="application/json" data-deckle="bids">` + bidsData + `</script>`

	// The client runs, knows the slots and the bids, and has left no element of ours behind.
	settled = `Array.isArray(window.__ts_ad_slots) && window.__ts_bids?.top?.hb_adid === 'AD1' &&
		window.deckle && !Array.isArray(window.deckle.cmd) && window.googletag.cmd.length === 2 &&
		!document.querySelector('[data-deckle], script[src*="client-"]')`
)

var hostilePages = []hostilePage{
	{name: "plain"},
	{name: "base href", head: `<base href="https://elsewhere.example/deep/">`},
	{
		name:  "nonce, strict-dynamic and Trusted Types with one policy",
		csp:   "script-src 'nonce-abc' 'strict-dynamic'; require-trusted-types-for 'script'; trusted-types deckle",
		nonce: "abc", client: `"gpt":"load","gpt_url":"ORIGIN/gpt.js"`,
		want: settled + ` && window.gptLoaded === 1`,
	},
	{
		name: "hashes, and the client by its URL",
		csp:  "default-src 'none'; script-src " + web.Hash(web.SlotsRunner()) + " " + web.Hash(web.BidsRunner()) + " ORIGIN" + web.ClientPath(),
	},
	{
		name: "a policy that stops the runner of hole 2",
		csp:  "script-src " + web.Hash(web.SlotsRunner()) + " 'self'",
		bids: bidsBlock,
	},
	{
		// The markup block stays: it is the client that would take it.
		name: "Trusted Types that have no policy for us, and so no client",
		csp:  "require-trusted-types-for 'script'; trusted-types site",
		want: `window.__ts_ad_slots && window.__ts_bids && !window.deckle &&
			!document.querySelector('[data-deckle=slots], [data-deckle=bids]')`,
	},
	{
		name: "patched prototypes and globals",
		head: `<script>
			Array.prototype.extra = function () { throw Error('extra') };
			Object.prototype.hb_extra = 'inherited';
			window.fetch = window.MutationObserver = () => { throw Error('patched') };
			navigator.sendBeacon = null;
		</script>`,
		want: `window.__ts_bids && window.deckle`,
	},
	{
		name: "document.write of the whole body",
		body: `<script>document.write('<div id="top"></div><p>written')</script>`,
	},
	{
		name: "blocks that are not JSON",
		bids: `<script type="application/json" data-deckle="bids">{"top":</script><script>` + web.BidsRunner() + `</script>`,
		want: `window.__ts_ad_slots && window.deckle && window.__ts_bids === undefined && !document.querySelector('[data-deckle]')`,
	},
	{
		name: "bids with hostile names",
		bids: `<script type="application/json" data-deckle="bids">{"__proto__":{"hb_adid":"X","polluted":1},"top":{"hb_adid":"AD1","burl":"javascript:window.ran=1"}}</script><script>` + web.BidsRunner() + `</script>`,
		want: settled + ` && ({}).polluted === undefined && window.ran === undefined`,
	},
}

// html is the page as the edge delivers it.
func (p hostilePage) html(origin string) string {
	open := "<script>"
	if p.nonce != "" {
		open = `<script nonce="` + p.nonce + `">`
	}
	client, bids := p.client, p.bids
	if client == "" {
		client = `"gpt":"page","gpt_url":"https://gpt.example/gpt.js"`
	}
	if bids == "" {
		bids = bidsBlock + open + web.BidsRunner() + "</script>"
	}
	hole1 := fmt.Sprintf(`<script type="application/json" data-deckle="slots">{"slots":%s,"client":{"src":%q,"init":"early",%s}}</script>%s%s</script>`,
		slotsData, web.ClientPath(), client, open, web.SlotsRunner())
	markup := `<script type="application/json" data-deckle="markup">{"AD1":"<b>ad</b>"}</script>`
	html := "<!doctype html><html><head>" + hole1 + p.head + bids + `</head><body><div id="top"></div>` + p.body + markup + "</body></html>"
	return strings.ReplaceAll(html, "ORIGIN", origin)
}

// TestHostilePages opens pages that get in our way, in a real browser. Whatever
// they do, our elements are gone afterwards and the page has seen no error of ours.
func TestHostilePages(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	for _, p := range hostilePages {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			mux := http.NewServeMux()
			mux.Handle(web.Prefix, web.Client())
			mux.HandleFunc("/gpt.js", func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprint(w, "window.gptLoaded = (window.gptLoaded || 0) + 1")
			})
			srv := httptest.NewServer(mux)
			t.Cleanup(srv.Close)
			mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Security-Policy", strings.ReplaceAll(p.csp, "ORIGIN", srv.URL))
				fmt.Fprint(w, p.html(srv.URL))
			})
			page := b.Open(t, srv.URL+"/", browser.Desktop())
			want := p.want
			if want == "" {
				want = settled
			}
			page.WaitFor(want)
			for _, m := range page.Console() {
				if m.IsException() {
					t.Errorf("the page saw an error: %s", m)
				}
			}
		})
	}
}
