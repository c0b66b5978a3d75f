package main

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"deckle/internal/sim"
	"deckle/internal/sim/browser"
)

// With bids = "fetch" the page is the same for everybody and keeps its origin's
// caching, and its ads come all the same: the client asks for the bids.
func TestFetchedBidsBecomeAds(t *testing.T) {
	d := startDemo(t, sim.Options{}, func(toml, _ string) (string, string) {
		return strings.Replace(toml, "[[site]]\n", "[[site]]\nbids = \"fetch\"\n", 1), slots("", "article_sidebar", "home_feed")
	})
	url := d.testPage("/2026/fetched", "", "article_sidebar", "home_feed")
	p := browser.Start(t).Open(t, url, browser.Desktop())
	p.WaitFor(`window.seen && seen.rendered.length === 2`)
	asked := browser.Eval[[]requested](p, `seen.requested`)
	for _, r := range asked {
		if r.HBPB == "" || r.AdID == "" || r.Initial != "1" {
			t.Errorf("asked for without a bid: %+v", r)
		}
	}
	if len(asked) != 2 {
		t.Errorf("asked for %d slots, want 2", len(asked))
	}
	d.waitForEvents(t, "imp", 2)

	_, reader, err := fetch(t.Context(), http.DefaultTransport, url)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get(url) // a bot, to us
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("Cache-Control") != "" {
		t.Errorf("Cache-Control = %q, and the origin has none", resp.Header.Get("Cache-Control"))
	}
	bot, err := io.ReadAll(resp.Body)
	if err != nil || string(bot) != reader {
		t.Errorf("a bot gets another page: %s, %v", bot, err)
	}
}
