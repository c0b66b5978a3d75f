package auctiontest

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"deckle/internal/auction"
)

type counts = map[auction.NonBidReason]int

// A bidding is what a bidder offers, and what comes of it. Its best offer would
// beat quick's if it were one.
type bidding struct {
	name     string
	currency string
	offers   []auction.Offer
	winner   string // "quick" or "odd"
	nonBids  counts
}

// biddings are offers that break a rule. What is left of their answer is used.
func biddings() []bidding {
	odd := func(change func(*auction.Offer)) auction.Offer {
		o := Offer("odd", "o", "2")
		change(&o)
		return o
	}
	one := func(name string, reason auction.NonBidReason, change func(*auction.Offer)) bidding {
		return bidding{name: name, offers: []auction.Offer{odd(change)}, winner: "quick", nonBids: counts{reason: 1}}
	}
	good := Offer("odd", "good", "1.5")
	return []bidding{
		one("an imp that is none", auction.ReasonUnknownImp, func(o *auction.Offer) { o.ImpID = "bottom" }),
		one("an imp with a name of JavaScript's", auction.ReasonUnknownImp, func(o *auction.Offer) { o.ImpID = "__proto__" }),
		one("no imp", auction.ReasonUnknownImp, func(o *auction.Offer) { o.ImpID = "" }),
		one("no id", auction.ReasonMissingID, func(o *auction.Offer) { o.ID = "" }),
		one("an id of 513 bytes", auction.ReasonMalformed, func(o *auction.Offer) { o.ID = strings.Repeat("i", 513) }),
		one("a seat of 65 bytes", auction.ReasonMalformed, func(o *auction.Offer) { o.Seat = strings.Repeat("s", 65) }),
		one("a price of zero", auction.ReasonInvalidPrice, func(o *auction.Offer) { o.Price = "0" }),
		one("a negative price", auction.ReasonInvalidPrice, func(o *auction.Offer) { o.Price = "-2" }),
		one("a price beyond all numbers", auction.ReasonInvalidPrice, func(o *auction.Offer) { o.Price = "1e400" }),
		one("a price beyond all prices", auction.ReasonInvalidPrice, func(o *auction.Offer) { o.Price = "1000001" }),
		one("a price of a thousand digits", auction.ReasonInvalidPrice, func(o *auction.Offer) { o.Price = strings.Repeat("9", 1000) }),
		one("a price that rounds to nothing", auction.ReasonInvalidPrice, func(o *auction.Offer) { o.Price = "0.0000001" }),
		one("a price below the floor", auction.ReasonBelowFloor, func(o *auction.Offer) { o.Price = "0.4999994" }),
		one("another size", auction.ReasonSize, func(o *auction.Offer) { o.W, o.H = 728, 90 }),
		one("half a size", auction.ReasonSize, func(o *auction.Offer) { o.H = 0 }),
		one("a negative size", auction.ReasonSize, func(o *auction.Offer) { o.W, o.H = -300, -250 }),
		one("a video", auction.ReasonMediaType, func(o *auction.Offer) { o.MType = 2 }),
		one("no markup", auction.ReasonNoMarkup, func(o *auction.Offer) { o.AdM = "" }),
		one("white space for markup", auction.ReasonNoMarkup, func(o *auction.Offer) { o.AdM = " \n\t" }),
		one("macros for nothing as markup", auction.ReasonNoMarkup, func(o *auction.Offer) { o.AdM = " ${AUCTION_AD_ID}\n${AUCTION_MIN_TO_WIN} " }),
		one("markup of 64 KiB and a byte", auction.ReasonMarkupTooLarge, func(o *auction.Offer) { o.AdM = strings.Repeat("x", 64<<10+1) }),
		one("markup that its macros blow up", auction.ReasonMarkupTooLarge, func(o *auction.Offer) {
			o.ID, o.AdM = strings.Repeat("i", 500), strings.Repeat("${AUCTION_AD_ID}", 2000)
			o.AdID = o.ID
		}),
		one("insecure markup", auction.ReasonInsecureMarkup, func(o *auction.Offer) { o.AdM = `<img src="http://a.example/">` }),
		one("a blocked advertiser", auction.ReasonBlockedADomain, func(o *auction.Offer) { o.ADomain = []string{"a.example", "https://Shop.RIVAL.example/x"} }),
		one("a blocked category", auction.ReasonBlockedCategory, func(o *auction.Offer) { o.Cat = []string{"IAB7-28"} }),
		one("a life before now", auction.ReasonMalformed, func(o *auction.Offer) { o.Exp = -1 }),
		{name: "a currency that is none", currency: "XXX", offers: []auction.Offer{odd(func(*auction.Offer) {})}, winner: "quick", nonBids: counts{auction.ReasonCurrency: 1}},
		{name: "bytes that are no text", offers: []auction.Offer{odd(func(o *auction.Offer) { o.CrID = "\xff\xfe" })}, winner: "odd"},
		{name: "a life of a thousand years", offers: []auction.Offer{odd(func(o *auction.Offer) { o.Exp = 1 << 40 })}, winner: "odd"},
		{
			name: "one id twice", winner: "odd", nonBids: counts{auction.ReasonDuplicateID: 1},
			offers: []auction.Offer{Offer("odd", "o", "1.5"), Offer("odd", "o", "2")},
		},
		{
			name: "one good bid among bad ones", winner: "odd", nonBids: counts{auction.ReasonUnknownImp: 1, auction.ReasonInvalidPrice: 1, auction.ReasonSize: 1},
			offers: []auction.Offer{
				odd(func(o *auction.Offer) { o.ImpID = "x" }), odd(func(o *auction.Offer) { o.Price = "0" }), good,
				odd(func(o *auction.Offer) { o.W = 1 }),
			},
		},
	}
}

// offers: an offer that breaks a rule is a non-bid with its reason; the rest of
// its answer is used, and so is everybody else's.
func (d Dialect) offers(t *testing.T) {
	for _, b := range biddings() {
		t.Run(b.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := Network{"quick": Replies(d.quick()), "odd": Replies(OK(d.Answer(b.currency, b.offers...)))}
				h := d.house(n, "odd", "quick")
				res := h.Start(t.Context(), Request()).Result()
				h.Close()
				status := auction.StatusBid
				if b.winner == "quick" {
					status = auction.StatusNoBid
				}
				fault{winner: b.winner, status: status, nonBids: b.nonBids}.check(t, res)
				for i := range res.Winners {
					CheckWinner(t, Request(), &res.Winners[i])
				}
			})
		})
	}
}

func (d Dialect) house(n Network, names ...string) *auction.House {
	c := auction.Config{Dial: n.Dial}
	for _, name := range names {
		c.Providers = append(c.Providers, d.provider(name, "http://"+name))
	}
	return auction.New(c, auction.NewMetrics(), slog.New(slog.DiscardHandler))
}

// arrival: who wins, with what, and what is counted do not depend on which
// provider answers when, nor on how it orders its bids.
func (d Dialect) arrival(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := Request()
		r.PreferDeals = rapid.Bool().Draw(rt, "prefer deals")
		answers := rapid.SliceOfN(rapid.SliceOfN(rapid.Custom(drawOffer), 0, 8), 1, 3).Draw(rt, "answers")

		want := d.arrive(t, r, answers, make([]int, len(answers)))
		for range 4 {
			shuffled := make([][]auction.Offer, len(answers))
			for i := range answers {
				shuffled[i] = rapid.Permutation(answers[i]).Draw(rt, "order of offers")
			}
			delays := rapid.SliceOfN(rapid.IntRange(0, 3), len(answers), len(answers)).Draw(rt, "delays")
			if diff := cmp.Diff(want, d.arrive(t, r, shuffled, delays)); diff != "" {
				rt.Fatalf("another order, another result (-want +got):\n%s", diff)
			}
		}
	})
}

// drawOffer draws from so few values that ties and duplicates are common.
func drawOffer(t *rapid.T) auction.Offer {
	o := Offer(
		rapid.SampledFrom([]string{"a", "b"}).Draw(t, "seat"),
		rapid.SampledFrom([]string{"1", "2", "3", ""}).Draw(t, "id"),
		rapid.SampledFrom([]string{"1", "1.0", "2", "0", "1e0", "0.4"}).Draw(t, "price"),
	)
	o.ImpID = rapid.SampledFrom([]string{"top", "side", "side", "none"}).Draw(t, "impid")
	o.DealID = rapid.SampledFrom([]string{"", "", "D", "E"}).Draw(t, "deal")
	o.AdM = rapid.SampledFrom([]string{"x", "y", ""}).Draw(t, "markup")
	return o
}

// arrive gives what an auction comes to when the providers answer after so many
// milliseconds: winners without their random ids, and the providers' counts.
func (d Dialect) arrive(t *testing.T, r *auction.Request, answers [][]auction.Offer, delays []int) (out []string) {
	synctest.Test(t, func(t *testing.T) {
		n := make(Network)
		var names []string
		for i, offers := range answers {
			name := fmt.Sprintf("p%d", i)
			names = append(names, name)
			n[name] = Late(time.Duration(delays[i])*time.Millisecond, OK(d.Answer("", offers...)))
		}
		h := d.house(n, names...)
		res := h.Start(t.Context(), r).Result()
		h.Close()
		for _, w := range res.Winners {
			CheckWinner(t, r, &w)
			w.AdID = ""
			out = append(out, fmt.Sprintf("%+v", w))
		}
		for _, p := range res.Providers {
			out = append(out, fmt.Sprintf("%s %s %d %v", p.Name, p.Status, p.Bids, p.NonBids))
		}
	})
	return slices.Clip(out)
}
