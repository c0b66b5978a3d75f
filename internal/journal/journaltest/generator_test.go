package journaltest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"deckle/internal/journal"
	"deckle/internal/journal/journaltest"
)

func TestSameSeedMakesTheSameEvents(t *testing.T) {
	t.Parallel()
	a := journaltest.New(7, journaltest.Config{}).Take(5_000)
	b := journaltest.New(7, journaltest.Config{}).Take(5_000)
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
	c := journaltest.New(8, journaltest.Config{}).Take(5_000)
	if cmp.Equal(a, c) {
		t.Error("another seed makes the same events")
	}
}

// What must hold for a journal holds, and everything that a reader of it must cope
// with occurs.
func TestEventsArePlausible(t *testing.T) {
	t.Parallel()
	const n = 100_000
	var (
		kinds                               [journal.Seal + 1]int
		seen                                = map[journal.EventID]bool{}
		leases                              = map[string]string{} // by id: "taken", "sealed"
		again, suspect, dogeared, sealed    int
		backwards, unverified, advertisered int
		last                                journal.Event
	)
	g := journaltest.New(1, journaltest.Config{})
	for range n {
		e := g.Next()
		if err := e.Validate(); err != nil {
			t.Fatalf("%v in %+v", err, e)
		}
		kinds[e.Kind]++
		count(&again, seen[e.ID()])
		seen[e.ID()] = true
		count(&suspect, e.Suspect != 0)
		count(&dogeared, e.Dogeared)
		count(&backwards, e.At.Before(last.At))
		count(&unverified, e.Kind == journal.Unfold && !e.Verified)
		count(&advertisered, len(e.Leases) == 2)
		for _, l := range e.Leases {
			if leases[l] == "" {
				t.Fatalf("lease %s pays before it was taken", l)
			}
			count(&sealed, leases[l] == "sealed")
		}
		switch {
		case e.Kind == journal.Lease && leases[e.Lease] == "":
			leases[e.Lease] = "taken"
		case e.Kind == journal.Seal && leases[e.Lease] == "taken":
			leases[e.Lease] = "sealed"
		case e.Kind == journal.Lease || e.Kind == journal.Seal:
			t.Fatalf("%s of a lease that is %q", e.Kind, leases[e.Lease])
		}
		last = e
	}
	for k := journal.Impression; k <= journal.Seal; k++ {
		count(&kinds[0], kinds[k] == 0)
	}
	for what, n := range map[string]int{
		"told again": again, "suspect": suspect, "dog-eared": dogeared, "after the seal": sealed,
		"out of order": backwards, "anonymous unfold": unverified, "with two leases": advertisered,
	} {
		if n == 0 {
			t.Errorf("no event is %s", what)
		}
	}
	if kinds[0] > 0 {
		t.Errorf("kinds are missing: %v", kinds)
	}
}

func count(n *int, is bool) {
	if is {
		*n++
	}
}

func BenchmarkNext(b *testing.B) {
	g := journaltest.New(1, journaltest.Config{})
	for b.Loop() {
		g.Next()
	}
}
