package projection_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"deckle"
	"deckle/internal/journal"
	"deckle/internal/projection"
	"deckle/internal/store"
)

// A history is a journal in a slice. It may grow while it is read.
type history struct {
	mu        sync.Mutex
	envelopes []projection.Envelope // from first on
	first     store.Seq             // 0 = 1
	more      chan struct{}         // closed and replaced when it grows
	fail      error                 // what Read and State return, once
}

func (h *history) Read(ctx context.Context, from store.Seq, yield func(projection.Envelope) error) error {
	for next := max(from, 1); ; next++ {
		e, err := h.wait(ctx, next)
		if err != nil || ctx.Err() != nil {
			return err
		}
		if err := yield(e); err != nil {
			return err
		}
	}
}

// wait returns the envelope at seq when there is one; when ctx is done it returns
// nothing.
func (h *history) wait(ctx context.Context, seq store.Seq) (projection.Envelope, error) {
	for {
		h.mu.Lock()
		err := h.fail
		h.fail = nil
		first := max(h.first, 1)
		if err == nil && seq < first {
			err = journal.ErrGap
		}
		if err == nil && int(seq-first) < len(h.envelopes) {
			defer h.mu.Unlock()
			return h.envelopes[seq-first], nil
		}
		if h.more == nil {
			h.more = make(chan struct{})
		}
		more := h.more
		h.mu.Unlock()
		if err != nil {
			return projection.Envelope{}, err
		}
		select {
		case <-more:
		case <-ctx.Done():
			return projection.Envelope{}, nil
		}
	}
}

func (h *history) State(context.Context) (store.LogState, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.fail; err != nil {
		h.fail = nil
		return store.LogState{}, err
	}
	first := max(h.first, 1)
	return store.LogState{First: first, Last: first + store.Seq(len(h.envelopes)) - 1}, nil
}

// add appends one envelope.
func (h *history) add(events ...journal.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := projection.Envelope{Seq: max(h.first, 1) + store.Seq(len(h.envelopes))}
	for i, event := range events {
		e.Records = append(e.Records, journal.Record{Seq: e.Seq, Index: i, Event: event})
	}
	h.envelopes = append(h.envelopes, e)
	if h.more != nil {
		close(h.more)
		h.more = nil
	}
}

func (h *history) last() store.Seq { return max(h.first, 1) + store.Seq(len(h.envelopes)) - 1 }

func (h *history) records() (all []journal.Record) {
	for _, e := range h.envelopes {
		all = append(all, e.Records...)
	}
	return all
}

// monday is the day on which every history begins.
var monday = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

// drawHistory draws a journal of few names, so that everything meets everything:
// repeats within and beyond what is remembered, leases that are too small, sealed or
// unknown, clocks that differ, silent days.
func drawHistory(t *rapid.T) *history {
	h := &history{}
	at := monday.Add(time.Duration(rapid.IntRange(0, 6*24).Draw(t, "hour")) * time.Hour)
	for range rapid.IntRange(1, 40).Draw(t, "envelopes") {
		var events []journal.Event
		for range rapid.IntRange(1, 6).Draw(t, "events") {
			at = at.Add(rapid.SampledFrom([]time.Duration{
				0, 0, time.Second, time.Minute, 7 * time.Minute, 50 * time.Minute, 66 * time.Minute, 3 * time.Hour, 27 * time.Hour, 75 * time.Hour,
			}).Draw(t, "later"))
			e := drawEvent(t)
			e.At = at.Add(-rapid.SampledFrom([]time.Duration{0, 0, 0, time.Second, 2 * time.Minute}).Draw(t, "clock"))
			events = append(events, e)
		}
		h.add(events...)
	}
	return h
}

var leaseIDs = []string{"l1", "l2", "l3", "l4"}

func drawEvent(t *rapid.T) journal.Event {
	kind := rapid.SampledFrom([]journal.Kind{
		journal.Impression, journal.Impression, journal.Impression, journal.View, journal.Click, journal.CTA,
		journal.Fold, journal.Unfold, journal.Lease, journal.Lease, journal.Seal,
	}).Draw(t, "kind")
	if kind == journal.Lease || kind == journal.Seal {
		e := journal.Event{Kind: kind, Lease: rapid.SampledFrom(leaseIDs).Draw(t, "lease"), Line: "campaign/c1/2026-03-02"}
		if kind == journal.Lease {
			e.Amount = deckle.Money(rapid.IntRange(1, 5_000).Draw(t, "amount"))
		}
		return e
	}
	e := journal.Event{
		Kind: kind, Site: rapid.SampledFrom([]string{"s1", "s2"}).Draw(t, "site"), Slot: "top", Version: 1,
		Campaign:  rapid.SampledFrom([]string{"c1", "c2"}).Draw(t, "campaign"),
		Creative:  rapid.SampledFrom([]string{"k1", "k2"}).Draw(t, "creative"),
		URL:       "https://example.com/a",
		RequestID: fmt.Sprintf("%016x", rapid.IntRange(0, 30).Draw(t, "request")),
		Dogeared:  rapid.IntRange(0, 5).Draw(t, "dogeared") == 5,
		Suspect:   journal.Suspect(rapid.SampledFrom([]int{0, 0, 0, 0, 0, 2}).Draw(t, "suspect")),
	}
	e.Advertiser = map[string]string{"c1": "a1", "c2": "a2"}[e.Campaign]
	if kind == journal.Impression && !e.Dogeared {
		e.Price = deckle.Money(rapid.SampledFrom([]int{0, 100, 700}).Draw(t, "price"))
		e.Leases = rapid.SliceOfNDistinct(rapid.SampledFrom(append(leaseIDs, "never")), 1, 3, rapid.ID[string]).Draw(t, "leases")
	}
	return e
}

// impression is the n-th of different impressions, all on Monday morning.
func impression(n int) journal.Event {
	return journal.Event{
		Kind: journal.Impression, At: monday.Add(time.Duration(n) * time.Millisecond), Site: "s1", Slot: "top", Advertiser: "a1", Campaign: "c1",
		Creative: "k1", Version: 1, URL: "https://example.com/a", RequestID: fmt.Sprintf("%016x", 1_000+n), Price: 100, Leases: []string{"l1"},
	}
}

// traffic makes n events as a busy day has them, fifty an envelope, for benchmarks
// and long tests. One in fifty is a repeat.
func traffic(n int, seed uint64) *history {
	h, r := &history{}, rand.New(rand.NewPCG(seed, 0))
	t := &trafficMaker{rand: r, at: monday}
	for left := n; left > 0; left -= 50 {
		var events []journal.Event
		for range min(left, 50) {
			events = append(events, t.next())
		}
		h.add(events...)
	}
	return h
}

type trafficMaker struct {
	rand     *rand.Rand
	at       time.Time
	made     int
	recent   [500]journal.Event
	pending  []journal.Event
	lease    [500]string // of each campaign
	payments [500]int
}

func (t *trafficMaker) next() journal.Event {
	t.at = t.at.Add(time.Duration(t.rand.IntN(20)) * time.Millisecond)
	var e journal.Event
	switch {
	case t.made > len(t.recent) && t.rand.IntN(50) == 0:
		return t.recent[t.rand.IntN(len(t.recent))]
	case len(t.pending) > 0:
		e, t.pending = t.pending[0], t.pending[1:]
		e.At = t.at
	default:
		e = t.slot()
	}
	t.recent[t.made%len(t.recent)] = e
	t.made++
	return e
}

// slot is the impression of a filled slot, and puts what follows it on pending; or
// the lease that has to come first.
func (t *trafficMaker) slot() journal.Event {
	c := t.rand.IntN(len(t.lease))
	if t.payments[c] == 0 {
		line := fmt.Sprintf("campaign/camp-%d/2026-03-02", c)
		if old := t.lease[c]; old != "" {
			t.pending = append(t.pending, journal.Event{Kind: journal.Seal, Lease: old, Line: line})
		}
		t.lease[c] = fmt.Sprintf("lease-%d-%d", c, t.made)
		t.payments[c] = 40
		return journal.Event{Kind: journal.Lease, At: t.at, Lease: t.lease[c], Line: line, Amount: 40_000}
	}
	t.payments[c]--
	e := journal.Event{
		Kind: journal.Impression, At: t.at, Site: fmt.Sprintf("site-%d", t.rand.IntN(5)), Slot: "sidebar-1",
		Advertiser: fmt.Sprintf("adv-%d", c/5), Campaign: fmt.Sprintf("camp-%d", c), Creative: fmt.Sprintf("creative-%d-%d", c, t.rand.IntN(2)),
		Version: 1, URL: "https://example.com/autumn-hikes", Category: "IAB20", RequestID: fmt.Sprintf("%016x", t.rand.Uint64()),
		Price: 1_000, Leases: []string{t.lease[c]},
	}
	follow := func(k journal.Kind) {
		f := e
		f.Kind, f.Price, f.Leases = k, 0, nil
		t.pending = append(t.pending, f)
	}
	follow(journal.View)
	if t.rand.IntN(10) == 0 {
		follow(journal.Click)
	}
	if t.rand.IntN(50) == 0 {
		follow(journal.Fold)
	}
	return e
}

// Every event that the tests make could be in a journal.
func TestHistoriesAreValid(t *testing.T) {
	for _, r := range traffic(5_000, 1).records() {
		if err := r.Validate(); err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		for _, r := range drawHistory(t).records() {
			if err := r.Validate(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
