package projection_test

import (
	"math"
	"testing"
	"time"

	"deckle/internal/journal"
	"deckle/internal/projection"
)

// ahead is a journal of one Monday morning, in which an older program let in events
// of clocks that are days and millennia ahead, the second of 99 impressions and others.
func ahead() *history {
	h := newHistory()
	at := func(n int, e journal.Event) { h.addAt(monday.Add(time.Duration(n)*time.Second), e) }
	at(0, journal.Event{Kind: journal.Lease, At: monday, Lease: "l1", Line: "campaign/c1/2026-03-02", Amount: math.MaxInt32})
	for n := range 99 {
		e := impression(n)
		e.Price = 1_000
		if n == 1 {
			e.At = monday.AddDate(0, 0, 4)
		}
		at(n, e)
	}
	at(100, journal.Event{Kind: journal.Seal, At: monday.AddDate(7_000, 0, 0), Lease: "l1", Line: "campaign/c1/2026-03-02"})
	at(101, impression(0)) // is known still
	return h
}

// One event of a clock far ahead takes nothing from the day that all others are of.
func TestAnEventFarAheadTakesNoDay(t *testing.T) {
	h := ahead()
	hot := fold(t, h, projection.Config{})
	if got := hot.Spend("c1", monday); got != 99_000 {
		t.Errorf("the campaign has spent %d today, want 99000", got)
	}
	if got := hot.SpendAdvertiser("a1", monday); got != 99_000 {
		t.Errorf("the advertiser has spent %d today, want 99000", got)
	}
	if got := hot.SpendTotal("c1"); got != 99_000 {
		t.Errorf("the campaign has spent %d, want 99000", got)
	}
	if got := hot.Impressions(projection.Duplicate); got != 1 {
		t.Errorf("%d duplicates, want 1", got)
	}
	if lease, ok := hot.Lease("l1"); !ok || lease.Sealed == 0 || lease.Spent != 99_000 {
		t.Errorf("the lease is %+v, %v", lease, ok)
	}
}

// And the reports have it on that day too, and are the same when they are made anew:
// in one go, or from where the journal was cut, before or behind such an event.
func TestAnEventFarAheadIsReportedWhenItCame(t *testing.T) {
	h := ahead()
	for _, until := range []int{1, 2, 3, 50, 101} {
		path := foldedFile(t, h, until)
		foldFile(t, path, h, h.last())
		if _, differences, err := verify(t, path, h); err != nil || len(differences) > 0 {
			t.Errorf("cut at %d: %v, %v", until, differences, err)
		}
		tables := open(t, path, projection.Report{})
		rows, err := tables.Report(t.Context(), projection.Filter{}, projection.ByDay)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) != 1 || rows[0].Day != "2026-03-02" || rows[0].Spend != 99_000 || rows[0].Unbilled.Duplicate != 1 {
			t.Errorf("cut at %d: got %+v", until, rows)
		}
		if _, at, _ := tables.Freshness("report"); at.After(monday.Add(journal.MaxAhead)) {
			t.Errorf("cut at %d: journal time is %v", until, at)
		}
	}
}
