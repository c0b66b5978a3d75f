package web_test

import (
	"slices"
	"strings"
	"testing"

	"deckle/internal/sim/browser"
	"deckle/web"
)

// What goes wrong in a page is told to its publisher, once.
func testHeartbeats(t *testing.T, b *browser.Browser) {
	for name, tt := range map[string]struct {
		page readerPage
		set  func(*readerSite)
		want string
	}{
		"a tag without a site":         {page: readerPage{bare: true, first: `<script async src="/_deckle/deckle.js"></script>`}, want: "script no_pub"},
		"a page without a slot":        {page: readerPage{tag: true, body: "<p>text</p>"}, want: "slot none"},
		"a slot without an element":    {page: readerPage{body: "<p>text</p>"}, want: "slot missing"},
		"a site that nobody knows":     {set: func(s *readerSite) { s.status["/v1/serve/batch"] = 404 }, want: "serve status_404"},
		"a server that hangs up":       {set: func(s *readerSite) { s.status["/v1/serve/batch"] = -1 }, want: "serve network"},
		"an answer that is null":       {set: func(s *readerSite) { s.body["/v1/serve/batch"] = "null" }, want: "serve no_answer"},
		"an answer that is HTML":       {set: func(s *readerSite) { s.body["/v1/serve/batch"] = "<!doctype html>" }, want: "serve no_answer"},
		"an array that cannot map":     {page: readerPage{first: `<script>Array.prototype.map = () => { throw new Error("mine") }</script>`}, want: "script exception"},
		"an array that cannot filter":  {page: readerPage{first: `<script>Array.prototype.filter = () => { throw new Error("mine") }</script>`}, want: "script exception"},
		"an object that has a body":    {page: readerPage{body: "<p>text</p>", first: `<script>Object.prototype.body = "mine"</script>`}, want: "slot missing"},
		"an element of that name":      {page: readerPage{first: `<script>customElements.define("deckle-magazine", class extends HTMLElement {})</script>`}, want: "render exception"},
		"a policy without our element": {page: readerPage{tag: true, csp: "script-src ORIGIN" + web.TagPath}, want: "render module"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startReaderSite(t, tt.page)
			if tt.set != nil {
				s.change(tt.set)
			}
			p := b.Open(t, s.url, browser.Desktop())
			wait(t, tt.want, func() bool { return slices.Contains(s.heard(), tt.want) })
			browser.Eval[any](p, frames)
			if got := strings.Join(s.heard(), ", "); got != tt.want {
				t.Errorf("heard %q, want %q alone", got, tt.want)
			}
			for _, m := range p.Console() {
				if m.IsException() {
					t.Errorf("the page saw %s", m)
				}
			}
		})
	}
}
