package projection_test

import (
	"context"
	"testing"
	"time"

	"deckle"
	"deckle/internal/journal"
	"deckle/internal/projection"
)

// Of leases it tells all that the fold knows and nothing else, once, and not before the
// fold knows it.
func TestNotifiesOfLeases(t *testing.T) {
	t.Parallel()
	h := traffic(6_000, 7)
	for _, r := range h.records()[:500] { // told again, and sealed twice
		switch r.Kind {
		case journal.Impression:
			h.add(r.Event)
		case journal.Lease:
			seal := journal.Event{Kind: journal.Seal, At: r.At.Add(time.Hour), Lease: r.Lease, Line: r.Line}
			h.add(seal, seal)
		}
	}
	hot := projection.NewHot(projection.Config{Window: 24 * time.Hour}, quiet)
	paid, sealed, early := map[string]deckle.Money{}, map[string]int{}, 0
	hot.Notify(func(r *journal.Record) {
		switch r.Kind {
		case journal.Impression:
			for _, id := range r.Leases {
				paid[id] += r.Price
				if l, _ := hot.Lease(id); l.Spent != paid[id] {
					early++
				}
			}
		case journal.Seal:
			sealed[r.Lease]++
			if l, _ := hot.Lease(r.Lease); l.Sealed != r.Seq {
				early++
			}
		default:
			t.Errorf("told of %v", r.Kind)
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- hot.Run(ctx, h) }()
	if err := hot.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if early > 0 || len(paid) == 0 || len(sealed) == 0 {
		t.Errorf("%d leases paid and %d were sealed; %d times the fold did not know", len(paid), len(sealed), early)
	}
	for id, n := range sealed {
		if n != 1 {
			t.Errorf("the seal of %s is told %d times", id, n)
		}
	}
	for _, r := range h.records() {
		if r.Kind != journal.Lease {
			continue
		}
		l, known := hot.Lease(r.Lease)
		if l.Spent != paid[r.Lease] || known && (l.Sealed != 0) != (sealed[r.Lease] > 0) {
			t.Errorf("%+v, told that it paid %d and was sealed %d times", l, paid[r.Lease], sealed[r.Lease])
		}
	}
}
