package auction_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deckle"
	"deckle/internal/auction"
	"deckle/internal/auction/auctiontest"
)

// bombs are n offers of random structure that ask for as much work as an offer can:
// their markup fits only until its macros are filled in. All are dearer than 1.
func bombs(n int) []auction.Offer {
	rnd := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[rnd.IntN(len(of))] }
	offers := make([]auction.Offer, n)
	for i := range offers {
		o := offer(fmt.Sprintf("seat-%d", rnd.IntN(50)), fmt.Sprint(i), fmt.Sprint(2+rnd.IntN(100)))
		o.AdID = strings.Repeat(pick("\n", "%", "<\x00", "é"), 200+rnd.IntN(50))
		o.DealID = pick("", "D")
		var b strings.Builder
		for b.Len() < 900 {
			b.WriteString(pick("${AUCTION_AD_ID}", "%24%7BAUCTION_AD_ID%7D", "%24{AUCTION_AD_ID}", "AUCTION_", "${AUCTION_X}", "<b>"))
		}
		o.AdM = strings.Repeat("%24%7BAUCTION_AD_ID%7D", 100) + b.String()
		offers[i] = o
	}
	return offers
}

// Markup that grows beyond its limit by its macros is never built, however many
// bids bring some: what is allocated is the measure of work, and the same every
// time.
func TestMacroBombsAreNotBuilt(t *testing.T) {
	const n = 1600
	honest := offer("honest", "h", "1")
	allocated := func(offers []auction.Offer) (*auction.Result, uint64) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		res := judge(t, auction.Config{}, request(), auction.Answer{Offers: offers})
		runtime.ReadMemStats(&after)
		return res, after.TotalAlloc - before.TotalAlloc
	}
	_, fair := allocated([]auction.Offer{honest})
	res, got := allocated(append(bombs(n), honest))
	if len(res.Winners) != 1 || res.Winners[0].Seat != "honest" {
		t.Errorf("winners = %+v, want the honest one", res.Winners)
	}
	if tooLarge := res.Providers[0].NonBids[auction.ReasonMarkupTooLarge]; tooLarge != n {
		t.Errorf("%d bids too large, want %d", tooLarge, n)
	}
	if most := fair + 2<<20; got > most {
		t.Errorf("%d bytes allocated, want at most %d", got, most)
	}
}

// An answer is judged within its time or not at all: after the end of the context
// no other offer is looked at.
func TestJudgingEndsWithItsTime(t *testing.T) {
	h := house(auction.Config{Providers: []auction.Provider{provider("p")}})
	for _, left := range []int{0, 10, 100} { // of 100 offers
		ctx := &expiring{Context: t.Context(), left: left}
		if _, err := h.Judge(ctx, request(), auction.Answer{Offers: bombs(100)}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("err = %v, want the context's", err)
		}
		if ctx.asked != left+1 {
			t.Errorf("asked %d times whether there is time, want %d", ctx.asked, left+1)
		}
	}
	h.Close()
}

// expiring is a context that ends when it has been asked so many times.
type expiring struct {
	context.Context
	left, asked int
}

func (c *expiring) Err() error {
	if c.asked++; c.asked > c.left {
		return context.DeadlineExceeded
	}
	return nil
}

// What has arrived in time and been understood too late is a timeout.
func TestUnderstoodTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := auctiontest.Network{"p": auctiontest.Replies(auctiontest.OK(answer(offer("s", "1", "1"))))}
		p := provider("p")
		p.Timeout = 100 * time.Millisecond
		p.Dialect = plain{url: "http://p/", decode: func() { <-time.After(150 * time.Millisecond) }}
		h := house(auction.Config{Providers: []auction.Provider{p}, Dial: n.Dial})
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		defer cancel()
		res := h.Start(ctx, request()).Result()
		if got := statuses(res)["p"]; got != auction.StatusTimeout || len(res.Winners) != 0 {
			t.Errorf("status %s, winners %+v; want a timeout", got, res.Winners)
		}
		h.Close()
	})
}

// What is left to do after the deadline depends on the slots, not on the bids.
func TestFewCandidatesAreKept(t *testing.T) {
	h := house(auction.Config{Providers: []auction.Provider{provider("p")}})
	r := request()
	r.Slots = append(r.Slots, deckle.Slot{ID: "side", Formats: r.Slots[0].Formats})
	var a auction.Answer
	for i := range 500 {
		o := offer("s", fmt.Sprint(i), fmt.Sprint(1+i))
		o.ImpID = []string{"top", "side"}[i%2]
		a.Offers = append(a.Offers, o)
	}
	j, err := h.Judge(t.Context(), r, a)
	if err != nil || j.Bids != 500 || len(j.Kept) != 16 {
		t.Fatalf("%d bids, %d kept, %v; want 500, 16 for two slots", j.Bids, len(j.Kept), err)
	}
	for i, id := range []string{"498", "496", "494", "492", "490", "488", "486", "484", "499", "497"} {
		if j.Kept[i] != id {
			t.Errorf("kept %v, want the best of each slot", j.Kept)
			break
		}
	}
	h.Close()
}

func TestOffersAreBounded(t *testing.T) {
	var a auction.Answer
	for i := range auction.MaxOffers + 3 {
		a.Offers = append(a.Offers, offer("s", fmt.Sprint(i), fmt.Sprint(1+i)))
	}
	res := judge(t, auction.Config{}, request(), a)
	p := res.Providers[0]
	if p.Bids != auction.MaxOffers || p.NonBids[auction.ReasonTooMany] != 3 {
		t.Errorf("%d bids and non-bids %v, want %d and 3 too_many", p.Bids, p.NonBids, auction.MaxOffers)
	}
	if got, want := res.Winners[0].Paid, fmt.Sprint(auction.MaxOffers); got != want {
		t.Errorf("paid %s, want %s, the best of those", got, want)
	}
}

// A bidid stands in as many places as bids name it.
func TestLongBidIDIsNone(t *testing.T) {
	for n, want := range map[int]int{512: 512, 513: 0} {
		o := offer("s", "1", "1")
		o.AdM = "<${AUCTION_BID_ID}>"
		a := auction.Answer{BidID: strings.Repeat("b", n), Offers: []auction.Offer{o}}
		if got := len(judge(t, auction.Config{}, request(), a).Winners[0].AdM) - len("<>"); got != want {
			t.Errorf("bidid of %d bytes: %d are filled in, want %d", n, got, want)
		}
	}
}
