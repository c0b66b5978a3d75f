package auction_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"deckle"
	"deckle/internal/auction"
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
		n := network{
			"first":  late(200*time.Millisecond, ok(answer(offer("z", "9", "1")))),
			"second": replies(ok(answer(offer("a", "1", "1")))),
		}
		h := house(auction.Config{Providers: []auction.Provider{provider("first"), provider("second")}, Dial: n.dial})
		if w := h.Start(t.Context(), request()).Result().Winners[0]; w.Provider != "first" {
			t.Errorf("%s wins, want first", w.Provider)
		}
		h.Close()
	})
}

// Who wins, with what, and what is counted do not depend on which provider
// answers when, nor on how it orders its seats and their bids.
func TestArrivalDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := request()
		r.Slots = append(r.Slots, deckle.Slot{ID: "side", Formats: r.Slots[0].Formats})
		r.PreferDeals = rapid.Bool().Draw(rt, "prefer deals")
		answers := rapid.SliceOfN(rapid.SliceOfN(drawOffer, 0, 8), 1, 3).Draw(rt, "answers")

		want := arrive(t, r, answers, make([]int, len(answers)))
		for range 4 {
			shuffled := make([][]auction.Offer, len(answers))
			for i := range answers {
				shuffled[i] = rapid.Permutation(answers[i]).Draw(rt, "order of offers")
			}
			delays := rapid.SliceOfN(rapid.IntRange(0, 3), len(answers), len(answers)).Draw(rt, "delays")
			if diff := cmp.Diff(want, arrive(t, r, shuffled, delays)); diff != "" {
				rt.Fatalf("another order, another result (-want +got):\n%s", diff)
			}
		}
	})
}

// drawOffer draws from so few values that ties and duplicates are common.
var drawOffer = rapid.Custom(func(t *rapid.T) auction.Offer {
	o := offer(
		rapid.SampledFrom([]string{"a", "b"}).Draw(t, "seat"),
		rapid.SampledFrom([]string{"1", "2", "3", ""}).Draw(t, "id"),
		rapid.SampledFrom([]string{"1", "1.0", "2", "0", "1e0"}).Draw(t, "price"),
	)
	o.ImpID = rapid.SampledFrom([]string{"top", "side", "side", "none"}).Draw(t, "impid")
	o.DealID = rapid.SampledFrom([]string{"", "", "D", "E"}).Draw(t, "deal")
	o.AdM = rapid.SampledFrom([]string{"x", "y", ""}).Draw(t, "markup")
	return o
})

// arrive gives what an auction comes to when the providers answer after so many
// milliseconds: winners without their random ids, and the providers' counts.
func arrive(t *testing.T, r *auction.Request, answers [][]auction.Offer, delays []int) (out []string) {
	synctest.Test(t, func(t *testing.T) {
		n := make(network)
		var providers []auction.Provider
		for i, offers := range answers {
			name := fmt.Sprintf("p%d", i)
			n[name] = late(time.Duration(delays[i])*time.Millisecond, ok("{}"))
			providers = append(providers, auction.Provider{Name: name, Dialect: decoded{"http://" + name + "/", auction.Answer{Offers: offers}}})
		}
		h := house(auction.Config{Providers: providers, Dial: n.dial})
		res := h.Start(t.Context(), r).Result()
		h.Close()
		for _, w := range res.Winners {
			w.AdID = ""
			out = append(out, fmt.Sprintf("%+v", w))
		}
		for _, p := range res.Providers {
			out = append(out, fmt.Sprintf("%s %s %d %v", p.Name, p.Status, p.Bids, p.NonBids))
		}
	})
	return slices.Clip(out)
}
