package auction_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"deckle"
	"deckle/internal/auction"
	"deckle/internal/auction/auctiontest"
)

func TestMetrics(t *testing.T) {
	m := auction.NewMetrics()
	registry := prometheus.NewPedanticRegistry()
	if err := m.Register(registry); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		bad := offer("<b>", "2", "-1")
		n := auctiontest.Network{"p": auctiontest.Replies(auctiontest.OK(answer(offer("kargo", "1", "1.239"), bad))), "slow": auctiontest.Hang}
		h := auction.New(auction.Config{Providers: []auction.Provider{provider("p"), provider("slow")}, Dial: n.Dial}, m, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		h.Start(ctx, request()).Result()
		cancel()
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		h.Start(ctx, request()).Result() // its providers are not counted
		h.Close()
	})
	want := `
# HELP deckle_auction_deadlines_total Auctions that A_deadline ended before every provider had answered.
# TYPE deckle_auction_deadlines_total counter
deckle_auction_deadlines_total{site="site-1"} 1
# HELP deckle_auctions_total Auctions, by how they ended: won, empty, canceled.
# TYPE deckle_auctions_total counter
deckle_auctions_total{outcome="canceled",site="site-1"} 1
deckle_auctions_total{outcome="won",site="site-1"} 1
# HELP deckle_nonbids_total Offers and seats that could win nothing, by reason.
# TYPE deckle_nonbids_total counter
deckle_nonbids_total{provider="p",reason="invalid_price"} 1
# HELP deckle_provider_calls_total Calls to providers, by status.
# TYPE deckle_provider_calls_total counter
deckle_provider_calls_total{provider="p",status="bid"} 1
deckle_provider_calls_total{provider="slow",status="timeout"} 1
# HELP deckle_winners_total Winning bids by slot, seat and hb_pb.
# TYPE deckle_winners_total counter
deckle_winners_total{bidder="kargo",bucket="1.23",slot="top"} 1
`
	names := []string{"deckle_auction_deadlines_total", "deckle_auctions_total", "deckle_nonbids_total", "deckle_provider_calls_total", "deckle_winners_total"}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(registry, "deckle_provider_seconds"); err != nil || n != 2 {
		t.Errorf("%d latency series, %v; want one a provider", n, err)
	}
}

// Seats are strangers' words: they can neither be any text nor any number of texts.
func TestSeatLabelsAreBounded(t *testing.T) {
	m := auction.NewMetrics()
	win := func(seat, price string) {
		synctest.Test(t, func(t *testing.T) {
			n := auctiontest.Network{"p": auctiontest.Replies(auctiontest.OK(answer(offer(seat, "1", price))))}
			h := auction.New(auction.Config{Providers: []auction.Provider{provider("p")}, Dial: n.Dial}, m, slog.New(slog.DiscardHandler))
			h.Start(t.Context(), request()).Result()
			h.Close()
		})
	}
	for _, seat := range []string{"Kargo", "a b", "é", "a\n", strings.Repeat("s", 64)} {
		win(seat, "1")
	}
	got := counted(t, m, "deckle_winners_total", "bidder")
	if got["other"] != 4 || len(got) != 2 {
		t.Errorf("bidders = %v, want four others and one of 64 characters", got)
	}
	for i := range 120 {
		win(fmt.Sprintf("seat-%d", i), "1")
	}
	if got := counted(t, m, "deckle_winners_total", "bidder"); len(got) != 101 || got["other"] != 25 {
		t.Errorf("%d bidders, %d others; want 100 and one for the others", len(got), got["other"])
	}
}

// Slots times bidders times buckets are many: beyond a cap they share one series.
func TestWinnerSeriesAreBounded(t *testing.T) {
	m := auction.NewCappedMetrics(20)
	synctest.Test(t, func(t *testing.T) {
		for i := range 30 {
			n := auctiontest.Network{"p": auctiontest.Replies(auctiontest.OK(answer(offer("s", "1", fmt.Sprintf("1.%02d", i)))))}
			h := auction.New(auction.Config{Providers: []auction.Provider{provider("p")}, Dial: n.Dial}, m, slog.New(slog.DiscardHandler))
			h.Start(t.Context(), request()).Result()
			h.Close()
		}
	})
	if got := counted(t, m, "deckle_winners_total", "bucket"); len(got) != 21 || got["other"] != 10 {
		t.Errorf("%d series, %d others; want 20 and one for the other 10", len(got), got["other"])
	}
}

// Codes that a browser has made up share one label.
func TestUnlistedSlotsShareALabel(t *testing.T) {
	m := auction.NewMetrics()
	synctest.Test(t, func(t *testing.T) {
		n := auctiontest.Network{"p": auctiontest.Replies(auctiontest.OK(good))}
		h := auction.New(auction.Config{Providers: []auction.Provider{provider("p")}, Dial: n.Dial}, m, slog.New(slog.DiscardHandler))
		r := request()
		h.Start(t.Context(), r).Result()
		r = request()
		r.Unlisted = map[deckle.SlotID]bool{r.Slots[0].ID: true}
		h.Start(t.Context(), r).Result()
		h.Close()
	})
	if got := counted(t, m, "deckle_winners_total", "slot"); got["top"] != 1 || got["other"] != 1 || len(got) != 2 {
		t.Errorf("slots = %v, want top and other", got)
	}
}
