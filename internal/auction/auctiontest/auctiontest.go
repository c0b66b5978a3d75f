// Package auctiontest is what every dialect has to pass: bidders that misbehave in
// every way that we could think of, on the wire and in what they bid, and what the
// page gets all the same, when, and what is counted.
//
// Every bidder of the suite is asked beside a quick and honest one, whose bid the
// page must never lose.
package auctiontest

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"deckle"
	"deckle/internal/auction"
)

// A Dialect is a dialect under test.
type Dialect struct {
	// New makes the dialect for a provider at a URL without a path: http://host.
	New func(url string) auction.Dialect

	// Answer is the body of a provider's answer with those offers, in one currency;
	// empty: what the dialect takes for granted. A price's text is a JSON number.
	Answer func(currency string, offers ...auction.Offer) string

	// Seeds are bodies of answers that fuzzing starts from, beside those of Answer.
	Seeds [][]byte
}

// Run runs the whole suite.
func (d Dialect) Run(t *testing.T) {
	t.Run("faults end on time", d.faultsEndOnTime)
	t.Run("faults over sockets", d.faultsOverSockets)
	t.Run("offers", d.offers)
	t.Run("arrival does not matter", d.arrival)
	t.Run("mutants", d.mutants)
}

// deadline is A_deadline of the suite's auctions, from their start.
const deadline = 300 * time.Millisecond

// Offer is one of that seat which wins slot "top" where no other is better.
func Offer(seat, id, price string) auction.Offer {
	return auction.Offer{Seat: seat, ID: id, ImpID: "top", Price: price, W: 300, H: 250, AdM: "<b>" + seat + "</b>"}
}

// Request is that of a page with the slots "top" and "side", which every dialect
// has a name for.
func Request() *auction.Request {
	dense, _ := deckle.Granularity("dense")
	slot := func(id deckle.SlotID, formats ...deckle.Size) deckle.Slot {
		return deckle.Slot{
			ID: id, Kind: deckle.GPT, GAMUnitPath: "/1/" + string(id), Formats: formats, Floor: 500_000,
			Prebid: deckle.PrebidParams{StoredRequest: string(id)}, APSID: string(id),
		}
	}
	return &auction.Request{
		ID: "req-1", Currency: "USD", Buckets: dense,
		Site:  auction.Site{ID: "site-1", Domain: "news.example", BAdv: []string{"rival.example"}, BCat: []string{"IAB7"}},
		Slots: []deckle.Slot{slot("top", deckle.Size{W: 300, H: 250}), slot("side", deckle.Size{W: 300, H: 250}, deckle.Size{W: 300, H: 600})},
	}
}

// quick is the honest bidder's answer.
func (d Dialect) quick() string { return OK(d.Answer("", Offer("quick", "q", "1"))) }

func (d Dialect) provider(name, url string) auction.Provider {
	return auction.Provider{Name: name, Dialect: d.New(url), Timeout: 30 * time.Second}
}

// faultsEndOnTime: whatever a bidder does, the auction ends when all have answered
// or at A_deadline, to the nanosecond, and has the other's bid.
func (d Dialect) faultsEndOnTime(t *testing.T) {
	for _, f := range d.faults() {
		t.Run(f.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := Network{"quick": Late(50*time.Millisecond, d.quick()), "odd": f.serve}
				m, figures := metrics(t)
				h := auction.New(auction.Config{
					Providers: []auction.Provider{d.provider("odd", "http://odd"), d.provider("quick", "http://quick")},
					Dial:      n.Dial,
				}, m, slog.New(slog.DiscardHandler))
				ctx, cancel := context.WithTimeoutCause(t.Context(), deadline, errors.New("A_deadline"))
				defer cancel()

				start := time.Now()
				res := h.Start(ctx, Request()).Result()
				want := 50 * time.Millisecond
				if f.status == auction.StatusTimeout {
					want = deadline
				}
				if took := time.Since(start); took != want || res.Elapsed != want {
					t.Errorf("took %v and says %v, want %v", took, res.Elapsed, want)
				}
				if res.Deadline != (f.status == auction.StatusTimeout) {
					t.Errorf("Deadline = %v", res.Deadline)
				}
				f.check(t, res)
				f.checkCounted(t, figures())

				// A bidder whose socket has been abandoned must notice: the bubble does
				// not end while a goroutine of either side is left.
				cancel()
				h.Close()
				if took := time.Since(start); took != want {
					t.Errorf("goroutines outlived the auction by %v", took-want)
				}
			})
		})
	}
}

// faultsOverSockets: the same bidders over real sockets, with time for a busy
// machine.
func (d Dialect) faultsOverSockets(t *testing.T) {
	var waiting sync.WaitGroup // of those that are about time, all at once
	defer waiting.Wait()
	for _, f := range d.faults() {
		switch {
		case f.exact:
		case f.status == auction.StatusTimeout:
			waiting.Go(func() { t.Run(f.name, func(t *testing.T) { d.faultOverSockets(t, f, 1500*time.Millisecond) }) })
		default:
			t.Run(f.name, func(t *testing.T) { d.faultOverSockets(t, f, 20*time.Second) })
		}
	}
}

func (d Dialect) faultOverSockets(t *testing.T, f fault, limit time.Duration) {
	quick, odd := Listen(t, Replies(d.quick())), Listen(t, f.serve)
	h := auction.New(auction.Config{
		Providers: []auction.Provider{d.provider("odd", odd), d.provider("quick", quick)},
	}, auction.NewMetrics(), slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	start := time.Now()
	res := h.Start(ctx, Request()).Result()
	if took := time.Since(start); took > limit+5*time.Second {
		t.Errorf("took %v, want at most %v", took, limit)
	}
	f.check(t, res)
	cancel()
	h.Close()
}

// check looks at what the page gets, and how the bidders are reported.
func (f fault) check(t *testing.T, res *auction.Result) {
	t.Helper()
	if len(res.Winners) != 1 || res.Winners[0].Seat != f.winner {
		t.Errorf("winners = %+v, want %s", res.Winners, f.winner)
	}
	if len(res.Providers) != 2 || res.Providers[1].Status != auction.StatusBid {
		t.Fatalf("providers = %+v, want odd and a bid of quick", res.Providers)
	}
	odd := res.Providers[0]
	if odd.Status != f.status {
		t.Errorf("status of odd = %s, want %s", odd.Status, f.status)
	}
	if len(odd.NonBids)+len(f.nonBids) > 0 {
		if diff := cmp.Diff(f.nonBids, odd.NonBids); diff != "" {
			t.Errorf("non-bids of odd (-want +got):\n%s", diff)
		}
	}
}

// checkCounted looks at the metrics.
func (f fault) checkCounted(t *testing.T, got map[string]float64) {
	t.Helper()
	want := map[string]float64{
		"deckle_auctions_total outcome=won site=site-1":                                   1,
		"deckle_provider_calls_total provider=odd status=" + string(f.status):             1,
		"deckle_provider_calls_total provider=quick status=bid":                           1,
		"deckle_winners_total bidder=" + f.winner + " bucket=" + f.bucket() + " slot=top": 1,
	}
	if f.status == auction.StatusTimeout {
		want["deckle_auction_deadlines_total site=site-1"] = 1
	}
	for reason, n := range f.nonBids {
		want["deckle_nonbids_total provider=odd reason="+string(reason)] = float64(n)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
}

func (f fault) bucket() string {
	if f.winner == "quick" {
		return "1.00"
	}
	return "2.00"
}

// metrics gives metrics, and what they have counted so far: a series that has
// nothing to count is not there.
func metrics(t *testing.T) (*auction.Metrics, func() map[string]float64) {
	t.Helper()
	m, registry := auction.NewMetrics(), prometheus.NewPedanticRegistry()
	if err := m.Register(registry); err != nil {
		t.Fatal(err)
	}
	return m, func() map[string]float64 {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		counted := map[string]float64{}
		for _, family := range families {
			for _, series := range family.GetMetric() {
				name := family.GetName()
				for _, l := range series.GetLabel() {
					name += " " + l.GetName() + "=" + l.GetValue()
				}
				if v := series.GetCounter().GetValue(); v > 0 {
					counted[name] = v
				}
			}
		}
		return counted
	}
}
