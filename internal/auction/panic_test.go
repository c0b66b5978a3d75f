package auction_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckle"
	"deckle/internal/auction"
	"deckle/internal/auction/auctiontest"
)

// A fault of ours costs one auction, one answer or one notice; it is counted and
// told with its stack, and Done closes all the same.
func TestPanicsInAuctions(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*auction.Request, *auction.Provider)
		part   string
	}{
		{"in a dialect", func(_ *auction.Request, p *auction.Provider) {
			p.Dialect = plain{url: "http://p/", decode: func() { panic("decode") }}
		}, "provider"},
		{"in picking", func(r *auction.Request, _ *auction.Provider) {
			r.Buckets = deckle.PriceBuckets{Ranges: []deckle.PriceRange{{Max: 5e6}}} // an increment of zero
		}, "auction"},
		{"in counting", func(r *auction.Request, _ *auction.Provider) {
			r.Site.ID = "\xff" // no label
		}, "auction"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, p := request(), provider("p")
				tt.change(r, &p)
				m := auction.NewMetrics()
				var log bytes.Buffer
				h := auction.New(auction.Config{
					Providers: []auction.Provider{p},
					Dial:      auctiontest.Network{"p": auctiontest.Replies(auctiontest.OK(answer(offer("s", "1", "1"))))}.Dial,
				}, m, slog.New(slog.NewTextHandler(&log, nil)))
				if res := h.Start(t.Context(), r).Result(); len(res.Winners) != 0 {
					t.Errorf("winners = %+v, want none", res.Winners)
				}
				h.Close()
				if diff := cmp.Diff(map[string]int{tt.part: 1}, counted(t, m, "deckle_panics_total", "part")); diff != "" {
					t.Errorf("panics (-want +got):\n%s", diff)
				}
				if got := log.String(); !strings.Contains(got, "level=ERROR") || !strings.Contains(got, "goroutine ") {
					t.Errorf("log = %s, want an error with its stack", got)
				}
			})
		})
	}
}

// A worker that survives one notice fires the next.
func TestPanicInANotice(t *testing.T) {
	m := auction.NewMetrics()
	n := auction.NewNotifier(auction.NotifierConfig{Workers: 1, Timeout: 50 * time.Millisecond}, m, slog.New(slog.DiscardHandler))
	n.Through(roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.URL.Path == "/panic" {
			panic("notice")
		}
		return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Request: r}, nil
	}))
	ctx, cancel := context.WithCancel(t.Context())
	for _, path := range []string{"/panic", "/ok", "/panic", "/ok"} {
		n.Selected(selected("http://n.example" + path))
	}
	cancel()
	if err := n.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"ok": 2, "dropped": 2}, counted(t, m, "deckle_notices_total", "outcome")); diff != "" {
		t.Errorf("notices (-want +got):\n%s", diff)
	}
	if got := counted(t, m, "deckle_panics_total", "part")["notice"]; got != 2 {
		t.Errorf("%d panics, want 2", got)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
