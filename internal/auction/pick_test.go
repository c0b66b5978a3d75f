package auction_test

import (
	"fmt"
	"log/slog"
	"math/big"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"deckle"
	"deckle/internal/auction"
	"deckle/internal/auction/auctiontest"
)

// Every slot goes to the best bid of all providers, and the winners come in the
// order of the slots, whoever has which.
func TestBestOfAllProviders(t *testing.T) {
	on := func(slot string, o auction.Offer) auction.Offer { o.ImpID = slot; return o }
	synctest.Test(t, func(t *testing.T) {
		r := request()
		r.Slots = append(r.Slots, deckle.Slot{ID: "side", Formats: r.Slots[0].Formats}, deckle.Slot{ID: "foot", Formats: r.Slots[0].Formats})
		first := answer(on("foot", offer("a", "1", "1")), on("side", offer("a", "2", "3")), on("top", offer("a", "3", "1")))
		second := answer(on("side", offer("b", "1", "2")), on("foot", offer("b", "2", "2")), on("top", offer("b", "3", "2")))
		n := auctiontest.Network{"first": auctiontest.Replies(auctiontest.OK(first)), "second": auctiontest.Replies(auctiontest.OK(second))}
		h := house(auction.Config{Providers: []auction.Provider{provider("first"), provider("second")}, Dial: n.Dial})
		var got []string
		for _, w := range h.Start(t.Context(), r).Result().Winners {
			got = append(got, string(w.Slot)+" "+w.Provider+" "+w.Paid)
		}
		h.Close()
		if diff := cmp.Diff([]string{"top second 2", "side first 3", "foot second 2"}, got); diff != "" {
			t.Errorf("winners (-want +got):\n%s", diff)
		}
	})
}

// What a winner takes along, field by field.
func TestWinnerFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const a = `{"BidID": "b-1", "Currency": "eur", "NBR": 8, "NonBids": [{"Reason": "seat_timeout"}, {"Reason": "seat_timeout"}], "Offers": [{
			"Seat": "kargo", "ID": "1", "ImpID": "top", "AdID": "ad", "Price": "1.50", "W": 300, "H": 250, "Exp": 60,
			"AdM": "<i>${AUCTION_PRICE} ${AUCTION_CURRENCY} ${AUCTION_BID_ID} ${AUCTION_ID}</i>",
			"CrID": "cr", "DealID": "D", "ADomain": ["a.example"],
			"NURL": "http://n.example/?p=${AUCTION_PRICE}", "BURL": "https://b.example/?p=${AUCTION_PRICE}"
		}]}`
		for _, fire := range []bool{false, true} {
			p := provider("p")
			p.FireNURL = fire
			h := house(auction.Config{
				Providers: []auction.Provider{p}, Dial: auctiontest.Network{"p": auctiontest.Replies(auctiontest.OK(a))}.Dial,
				Currency: auction.Rates{Base: "USD", Units: map[string]*big.Rat{"EUR": big.NewRat(108, 100)}},
			})
			res := h.Start(t.Context(), request()).Result()
			h.Close()
			want := auction.Winner{
				Bid: auction.Bid{
					Provider: "p", Seat: "kargo", ID: "1", Slot: "top", Price: 1_620_000, Paid: "1.50", PaidCur: "EUR",
					Size: deckle.Size{W: 300, H: 250}, AdM: "<i>1.50 EUR b-1 req-1</i>", CrID: "cr", DealID: "D",
					ADomain: []string{"a.example"}, NURL: "http://n.example/?p=1.50", BURL: "https://b.example/?p=1.50",
					Expires: 60e9,
				},
				AdID: res.Winners[0].AdID, Bucket: "1.62", EdgeNURL: fire,
			}
			if diff := cmp.Diff([]auction.Winner{want}, res.Winners); diff != "" {
				t.Errorf("winners (-want +got):\n%s", diff)
			}
			if got := res.Providers[0].NBR; got != 8 {
				t.Errorf("NBR = %d, want 8", got)
			}
			if got := res.Providers[0].NonBids; len(got) != 1 || got[auction.ReasonSeatTimeout] != 2 {
				t.Errorf("non-bids = %v, want the provider's two", got)
			}
		}
	})
}

// A notice's URL may grow by its macros to twice what it may be; one that nobody
// could open is counted, and the bid stands without it.
func TestNoticeURLsThatGrow(t *testing.T) {
	for times, want := range map[int]bool{31: true, 32: false} { // 512 bytes each, up to 16 KiB
		t.Run(fmt.Sprint(times), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := offer("s", "1", "1")
				o.AdID = strings.Repeat("x", 512)
				o.BURL = "https://b.example/?" + strings.Repeat("${AUCTION_AD_ID}", times)
				m := auction.NewMetrics()
				h := auction.New(auction.Config{
					Providers: []auction.Provider{provider("p")}, Dial: auctiontest.Network{"p": auctiontest.Replies(auctiontest.OK(answer(o)))}.Dial,
				}, m, slog.New(slog.DiscardHandler))
				w := h.Start(t.Context(), request()).Result().Winners[0]
				h.Close()
				bad := counted(t, m, "deckle_notices_total", "outcome")["bad_url"]
				if kept := w.BURL != ""; kept != want || kept == (bad == 1) {
					t.Errorf("burl of %d bytes, %d counted; want it kept: %v", len(w.BURL), bad, want)
				}
			})
		})
	}
}
