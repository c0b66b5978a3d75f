package auction_test

import (
	"testing"
	"testing/synctest"
	"time"

	"deckle/internal/auction"
	"deckle/internal/auction/auctiontest"
)

func TestOrder(t *testing.T) {
	deal := func(o auction.Offer) auction.Offer { o.DealID = "D"; return o }
	for _, tt := range []struct {
		name        string
		preferDeals bool
		offers      []auction.Offer
		want        string // bid id
	}{
		{"price", false, []auction.Offer{offer("a", "1", "1"), offer("b", "2", "1.000001")}, "2"},
		{"seat", false, []auction.Offer{offer("b", "1", "1"), offer("a", "2", "1")}, "2"},
		{"bid id", false, []auction.Offer{offer("a", "2", "1"), offer("a", "1", "1")}, "1"},
		{"deals count for nothing", false, []auction.Offer{deal(offer("a", "1", "1")), offer("b", "2", "2")}, "2"},
		{"deals first", true, []auction.Offer{offer("b", "2", "2"), deal(offer("a", "1", "1"))}, "1"},
		{"the better deal", true, []auction.Offer{deal(offer("a", "1", "1")), deal(offer("b", "2", "2"))}, "2"},
		{"equal when rounded", false, []auction.Offer{offer("b", "1", "1.0000001"), offer("a", "2", "0.9999999")}, "2"},
	} {
		r := request()
		r.PreferDeals = tt.preferDeals
		if got := judge(t, auction.Config{}, r, auction.Answer{Offers: tt.offers}).Winners[0].ID; got != tt.want {
			t.Errorf("%s: bid %s wins, want %s", tt.name, got, tt.want)
		}
	}
}

// The configured order of providers breaks ties, not who answers first.
func TestProvidersBreakTies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := auctiontest.Network{
			"first":  auctiontest.Late(200*time.Millisecond, auctiontest.OK(answer(offer("z", "9", "1")))),
			"second": auctiontest.Replies(auctiontest.OK(answer(offer("a", "1", "1")))),
		}
		h := house(auction.Config{Providers: []auction.Provider{provider("first"), provider("second")}, Dial: n.Dial})
		if w := h.Start(t.Context(), request()).Result().Winners[0]; w.Provider != "first" {
			t.Errorf("%s wins, want first", w.Provider)
		}
		h.Close()
	})
}
