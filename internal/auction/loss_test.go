package auction_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"deckle"
	"deckle/internal/auction"
	"deckle/internal/auction/auctiontest"
)

// fired gives the URLs that a notifier fires for a result, sorted.
func fired(t *testing.T, r *auction.Result) (urls []string) {
	t.Helper()
	n := auction.NewNotifier(auction.NotifierConfig{}, auction.NewMetrics(), slog.New(slog.DiscardHandler))
	var mu sync.Mutex
	n.Through(roundTripper(func(req *http.Request) (*http.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		urls = append(urls, req.URL.String())
		return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Request: req}, nil
	}))
	n.Selected(r)
	n.Selected(r) // no second time
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := n.Run(ctx); err != nil {
		t.Fatal(err)
	}
	slices.Sort(urls)
	return urls
}

// Every offer that has not won is told why, by OpenRTB's codes, where its provider
// wants that; nobody is told what another has bid.
func TestLossNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		with := func(id, price string, change func(*auction.Offer)) auction.Offer {
			o := offer("seat", id, price)
			o.LURL = "https://loss.example/" + id + "?l=${AUCTION_LOSS}&p=${AUCTION_PRICE}&m=${AUCTION_MIN_TO_WIN}&b=${AUCTION_MBR}&i=${AUCTION_IMP_ID}"
			o.NURL = "https://win.example/" + id + "?l=${AUCTION_LOSS}"
			if change != nil {
				change(&o)
			}
			return o
		}
		r := request()
		r.Slots[0].Floor = 500_000
		r.PreferDeals = true
		r.Slots = append(r.Slots, deckle.Slot{ID: "side", Formats: r.Slots[0].Formats})
		body := answer(
			with("lower", "1", nil),
			with("floor", "0.1", nil),
			with("price", "0", nil),
			with("imp", "3", func(o *auction.Offer) { o.ImpID = "x" }),
			with("size", "3", func(o *auction.Offer) { o.W = 1 }),
			with("deal", "1.5", func(o *auction.Offer) { o.DealID = "D" }),
			with("side", "2", func(o *auction.Offer) { o.ImpID = "side" }),
			with("under", "1", func(o *auction.Offer) { o.ImpID = "side" }),
			with("bad-url", "1", func(o *auction.Offer) { o.LURL = "javascript:alert(1)" }),
			with("silent", "1", func(o *auction.Offer) { o.LURL = "" }),
		)
		loss := func(id, code, imp string) string {
			return fmt.Sprintf("https://loss.example/%s?l=%s&p=&m=&b=&i=%s", id, code, imp)
		}
		for lurl, want := range map[bool][]string{
			false: {"https://win.example/deal?l=0", "https://win.example/side?l=0"},
			true: {
				loss("floor", "100", "top"), loss("imp", "3", "x"), loss("lower", "103", "top"), loss("price", "9", "top"), loss("size", "203", "top"),
				loss("under", "102", "side"), "https://win.example/deal?l=0", "https://win.example/side?l=0",
			},
		} {
			p := provider("p")
			p.FireNURL, p.FireLURL = true, lurl
			h := house(auction.Config{Providers: []auction.Provider{p}, Dial: auctiontest.Network{"p": auctiontest.Replies(auctiontest.OK(body))}.Dial})
			res := h.Start(t.Context(), r).Result()
			h.Close()
			if diff := cmp.Diff(want, fired(t, res)); diff != "" {
				t.Errorf("lurl %v: fired (-want +got):\n%s", lurl, diff)
			}
		}
	})
}

// One answer causes 256 loss notices at most.
func TestLossNoticesAreBounded(t *testing.T) {
	var a auction.Answer
	for i := range 1000 {
		o := offer("s", fmt.Sprint(i), "0")
		o.LURL = "https://loss.example/"
		a.Offers = append(a.Offers, o)
	}
	synctest.Test(t, func(t *testing.T) {
		p := auction.Provider{Name: "p", FireLURL: true, Dialect: decoded{"http://p/", a}}
		h := house(auction.Config{Providers: []auction.Provider{p}, Dial: auctiontest.Network{"p": auctiontest.Replies(auctiontest.OK("{}"))}.Dial})
		res := h.Start(t.Context(), request()).Result()
		h.Close()
		if got := len(fired(t, res)); got != 256 {
			t.Errorf("%d loss notices, want 256", got)
		}
	})
}
