package edge_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckle/internal/auction"
	"deckle/internal/edge"
	"deckle/internal/sim/browser"
	"deckle/internal/template"
	"deckle/web"
)

// delicatePages are pages whose looks depend on which elements stand where. A | is
// where the origin pauses.
var delicatePages = map[string]string{
	"stripes": `<style>li:nth-child(odd){background:#ccc} li:last-child{color:red} ul>:first-child{font-weight:bold}</style>
		</head><body><ul><li>one</li>|<li>two</li>|<li>three</li></ul><p>after</p>|<p>end</p>`,
	"neighbours": `<style>h2+p{font-size:2em} p+p{margin:0} div:empty{height:40px;background:blue} p:only-child{color:green}</style>
		</head><body><h2>title</h2>|<p>first</p>|<p>second</p><div></div><div>|</div><section><p>alone</p></section>|`,
	"grid": `<style>main{display:grid;grid-template-columns:repeat(3,1fr);gap:8px} main>*{background:#eee} .f{display:flex;gap:4px}</style>
		</head><body><main><b>1</b>|<b>2</b><b>3</b>|<b>4</b></main><div class=f><i>a</i>|<i>b</i></div>`,
	"the body's own children": `<style>body>:first-child{background:gold} body>:nth-child(2){background:silver} body>:last-child{background:tan} body{counter-reset:x} p::before{counter-increment:x;content:counter(x)}</style>
		</head><body>|<p>one</p>|<p>two</p>text|<p>three</p>`,
	"no tags of its own": `<title>t</title><p>one|<p>two|<p>three`,
	"a table": `<style>tr:nth-child(2n){background:#ccc} td:first-child{font-weight:bold}</style>
		</head><body><table>|<tr><td>1<td>2|<tr><td>3<td>4</table>|<p>after</p>`,
}

// What a framework that hydrates the page would see at its moments: while it is being
// parsed, when it has been, and once everything has loaded.
const (
	snap = `<script>(window.snaps ??= []).push(document.documentElement.outerHTML)</script>`
	also = `<script defer src=/plain/defer.js></script>`

	// less is without what may stand there for a while: the client's element, until it
	// runs, and the markup, which it takes.
	less = `.replace(/<script async="" src="[^"]*\/_deckle\/.*?<\/script>|<script type="application\/json" data-deckle="markup">.*?<\/script>/gs, '')`

	looks = `JSON.stringify(Array.from(document.body.querySelectorAll('*'), (e) => {
		const {x, y, width, height} = e.getBoundingClientRect();
		const {color, backgroundColor, fontSize, fontWeight} = getComputedStyle(e);
		return [e.localName, x, y, width, height, color, backgroundColor, fontSize, fontWeight];
	}), null, 1)`
)

// TestPagesLookTheSame opens pages with us and without, while late bids arrive in their
// middle: no script of theirs ever sees an element of ours in their body but the markup
// that waits at its end, and after the load nothing of us is there, or can be seen.
func TestPagesLookTheSame(t *testing.T) {
	t.Parallel()
	origin := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/plain/defer.js" {
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprint(w, `window.snaps.push(document.documentElement.outerHTML)`)
			return
		}
		name, _ := url.PathUnescape(strings.TrimPrefix(r.URL.Path, "/"))
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		for i, part := range strings.Split("<!doctype html><html><head>"+also+delicatePages[name], "|") {
			if i > 0 {
				wait(40 * ms)
				fmt.Fprint(w, map[bool]string{true: snap}[i == 2])
			}
			fmt.Fprint(w, part)
			_ = http.NewResponseController(w).Flush()
		}
	}
	without := httptest.NewServer(http.HandlerFunc(origin))
	t.Cleanup(without.Close)
	s := setup{
		sockets: true, client: web.Client(),
		site:     func(s *edge.Site) { s.Hosts = []string{"127.0.0.1"} },
		settings: func(s *template.Settings) { s.AuctionTimeout, s.HeadHold = 10*time.Second, 0 },
		provider: func(p *auction.Provider) { p.Timeout = 10 * time.Second },
	}
	with := httptest.NewServer(newWorld(t, s, origin, bids(60*ms, "1")).edge)
	t.Cleanup(with.Close)
	b := browser.Start(t)
	for name := range delicatePages {
		t.Run(name, func(t *testing.T) {
			if name != "the body's own children" && os.Getenv("DECKLE_SLOW") == "" {
				t.Skip("DECKLE_SLOW is not set")
			}
			path := "/" + url.PathEscape(name)
			plain := b.Open(t, without.URL+path, browser.Desktop())
			ours := b.Open(t, with.URL+path, browser.Desktop())
			ours.WaitFor(`window.__ts_bids?.top && window.deckle && !document.querySelector('[data-deckle]')`)
			for what, expression := range map[string]string{
				"the page":                   `document.documentElement.outerHTML`,
				"its looks":                  looks,
				"what it saw on the way":     `(window.snaps[0] ?? '')` + less,
				"what it saw when it parsed": `window.snaps.at(-1)` + less,
			} {
				if diff := cmp.Diff(browser.Eval[string](plain, expression), browser.Eval[string](ours, expression)); diff != "" {
					t.Errorf("%s is another: %s", what, diff)
				}
			}
		})
	}
}
