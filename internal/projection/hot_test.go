package projection_test

import (
	"context"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"deckle/internal/journal"
	"deckle/internal/obs"
	"deckle/internal/projection"
	"deckle/internal/store"
)

var quiet = slog.New(slog.DiscardHandler)

// fold returns a fold of all of h.
func fold(t interface {
	Helper()
	Fatal(...any)
}, h *history, c projection.Config,
) *projection.Hot {
	t.Helper()
	hot := projection.NewHot(c, quiet)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- hot.Run(ctx, h) }()
	if err := hot.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return hot
}

// near reports whether two weights are the same but for rounding.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

func sameEngagement(a, b projection.Engagement) bool {
	return near(a.Impressions, b.Impressions) && near(a.Clicks, b.Clicks) && near(a.Folds, b.Folds) && a.Shown == b.Shown
}

// The fold knows of any journal what a judge who looks at every event knows.
func TestHotIsWhatTheJudgeSays(t *testing.T) {
	checks(t, 500)
	rapid.Check(t, func(t *rapid.T) {
		h := drawHistory(t)
		c := projection.Config{HardHour: rapid.Bool().Draw(t, "hour")}
		hot, j := fold(t, h, c), newJudge(h.records(), c, true)
		end := time.UnixMilli(j.events[len(j.events)-1].latest).UTC()
		later := end.Add(time.Duration(rapid.IntRange(0, 5_000).Draw(t, "minutes later")) * time.Minute)

		for b, n := range j.billings() {
			if got := hot.Impressions(projection.Billing(b)); got != n {
				t.Fatalf("%v impressions: %d, want %d", projection.Billing(b), got, n)
			}
		}
		for campaign, advertiser := range map[string]string{"c1": "a1", "c2": "a2"} {
			of := func(r journal.Record) bool { return r.Campaign == campaign }
			if got, want := hot.SpendTotal(campaign), j.spend(of, time.Time{}); got != want {
				t.Fatalf("%s spent %d, want %d", campaign, got, want)
			}
			for back := range 3 {
				day := end.AddDate(0, 0, -back)
				if got, want := hot.Spend(campaign, day), j.spend(of, day); got != want {
					t.Fatalf("%s spent %d %d days ago, want %d", campaign, got, back, want)
				}
				if got, want := hot.SpendAdvertiser(advertiser, day), j.spend(of, day); got != want {
					t.Fatalf("%s spent %d %d days ago, want %d", advertiser, got, back, want)
				}
			}
			if got := hot.Spend(campaign, end.AddDate(0, 0, -3)); got != 0 {
				t.Fatalf("%s: the spend of three days ago is still there", campaign)
			}
		}
		checkWindows(t, hot, j, c, later)
	})
}

func checkWindows(t *rapid.T, hot *projection.Hot, j *judge, c projection.Config, now time.Time) {
	for _, site := range []string{"s1", "s2"} {
		for _, creative := range []string{"k1", "k2"} {
			want := j.engagement
			if c.HardHour {
				want = j.hour
			}
			if got, want := hot.Engagement(site, creative, now), want(site, creative, now); !sameEngagement(got, want) {
				t.Fatalf("engagement of %s on %s: %+v, want %+v", creative, site, got, want)
			}
		}
		got, want := hot.Traffic(site, now), j.shape(site, now)
		for hour := range got {
			if !near(got[hour], want[hour]) {
				t.Fatalf("traffic of %s at %d: %v, want %v", site, hour, got[hour], want[hour])
			}
		}
	}
}

// Leases are the judge's too, until they are forgotten two days after their seal.
func TestHotLeases(t *testing.T) {
	checks(t, 500)
	rapid.Check(t, func(t *rapid.T) {
		h := drawHistory(t)
		hot, j := fold(t, h, projection.Config{}), newJudge(h.records(), projection.Config{}, true)
		for _, id := range leaseIDs {
			got, ok := hot.Lease(id)
			if ok != j.known(id) {
				t.Fatalf("lease %s is known: %v, want %v", id, ok, !ok)
			}
			if !ok {
				continue
			}
			want := projection.Lease{ID: id, Line: got.Line, Amount: j.amount(id), Spent: j.spent(id), Sealed: j.sealed(id)}
			if got != want {
				t.Fatalf("lease %+v, want %+v", got, want)
			}
		}
	})
}

// A quiet week takes weight from what readers did and leaves its ratios.
func TestQuietWeekKeepsTheRatios(t *testing.T) {
	h := newHistory()
	for i := range 60 {
		e := impression(i)
		h.add(e)
		if i%7 == 0 {
			e.Kind, e.Price, e.Leases = journal.Click, 0, nil
			h.add(e)
		}
	}
	hot := fold(t, h, projection.Config{})
	before := hot.Engagement("s1", "k1", monday)
	if before.Shown < 60 || before.Clicks == 0 {
		t.Fatalf("not enough to see: %+v", before)
	}
	for _, later := range []time.Duration{7 * 24 * time.Hour, 20 * 365 * 24 * time.Hour} {
		after := hot.Engagement("s1", "k1", monday.Add(later))
		if want := float64(min(before.Shown, 50)); !near(after.Impressions, want) {
			t.Errorf("n = %v after %v, want %v", after.Impressions, later, want)
		}
		if !near(after.Clicks/after.Impressions, before.Clicks/before.Impressions) {
			t.Errorf("click rate %v after %v, was %v", after.Clicks/after.Impressions, later, before.Clicks/before.Impressions)
		}
	}
}

// An event of a node whose clock is ahead of the reader's counts, in either window.
func TestEngagementOfTheNearFuture(t *testing.T) {
	h := newHistory()
	h.add(impression(0))
	for _, hour := range []bool{false, true} {
		hot := fold(t, h, projection.Config{HardHour: hour})
		if e := hot.Engagement("s1", "k1", monday.Add(-2*time.Minute)); e.Impressions != 1 {
			t.Errorf("with HardHour %v: %+v", hour, e)
		}
	}
}

// A hard hour is the minute of the clock and the 59 before it, also for what is told
// late.
func TestHardHour(t *testing.T) {
	now := monday.Add(10*time.Hour + 30*time.Second)
	for age, want := range map[time.Duration]float64{0: 2, 59 * time.Minute: 2, 60 * time.Minute: 1} {
		for _, late := range []bool{false, true} {
			fresh, old := impression(0), impression(1)
			fresh.At, old.At = now, now.Add(-age)
			h := newHistory()
			if late {
				h.add(fresh, old)
			} else {
				h.add(old, fresh)
			}
			hot := fold(t, h, projection.Config{HardHour: true})
			if e := hot.Engagement("s1", "k1", now); e.Impressions != want || e.Shown != 2 {
				t.Errorf("%v old, late %v: %+v, want %v", age, late, e, want)
			}
			if e := hot.Engagement("s1", "k1", now.Add(time.Hour)); e.Impressions != 0 {
				t.Errorf("an hour later: %+v", e)
			}
		}
	}
}

// It is warm when it has what was in the journal at the start, and not before.
func TestWarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHistory()
		slow := &gate{Log: h, pass: make(chan struct{})}
		for range 3 {
			h.add(journal.Event{Kind: journal.Lease, At: monday, Lease: "l", Line: "campaign/c", Amount: 1})
		}
		hot := projection.NewHot(projection.Config{}, quiet)
		go hot.Run(t.Context(), slow)
		for seq := range 3 {
			synctest.Wait()
			if hot.Warm() || hot.Check().State != obs.NotReady {
				t.Fatalf("warm after %d of 3 envelopes", seq)
			}
			slow.pass <- struct{}{}
		}
		synctest.Wait()
		if c := hot.Check(); !hot.Warm() || c.State != obs.OK || hot.Seq() != 3 {
			t.Errorf("after all of it: %+v", c)
		}
	})
}

// gate lets one envelope through at a time.
type gate struct {
	store.Log
	pass chan struct{}
}

func (g *gate) Read(ctx context.Context, from store.Seq, yield func(store.Message) error) error {
	return g.Log.Read(ctx, from, func(m store.Message) error {
		select {
		case <-g.pass:
			return yield(m)
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// An id is known from its event on for as long as it may be told again, and not for
// ever.
func TestFolded(t *testing.T) {
	remember := time.Duration(projection.Config{}.Remember()) * time.Millisecond
	for later, known := range map[time.Duration]bool{0: true, remember: true, 2 * remember: false} {
		first, last := impression(0), impression(1)
		last.At = first.At.Add(later)
		h := newHistory()
		h.add(first)
		h.add(last)
		hot := fold(t, h, projection.Config{})
		if got := hot.Folded(first.ID()); got != known {
			t.Errorf("folded %v ago: known %v, want %v", later, got, known)
		}
		if !hot.Folded(last.ID()) || hot.Folded(journal.Click.ID(last.RequestID)) {
			t.Error("the last event is not known, or one of another kind is")
		}
	}
}

func TestEmptyJournalIsWarm(t *testing.T) {
	if hot := fold(t, newHistory(), projection.Config{}); hot.Seq() != 0 {
		t.Error("folded something")
	}
}

// The fold forgets a lease some time after its seal, the tables do not; what becomes of
// an impression that names one is the same in both.
func TestVerdictsLongAfterASeal(t *testing.T) {
	seal := func(after time.Duration) []journal.Event {
		return []journal.Event{
			{Kind: journal.Lease, At: monday, Lease: "l1", Line: "campaign/c1", Amount: 250},
			{Kind: journal.Seal, At: monday, Lease: "l1", Line: "campaign/c1"},
			happened(journal.View, 0, func(e *journal.Event) { e.At = monday.Add(after) }),
			happened(journal.Impression, 0, func(e *journal.Event) { e.At = monday.Add(after) }),
		}
	}
	for _, after := range []time.Duration{time.Second, 47 * time.Hour, 49 * time.Hour, 400 * time.Hour} {
		h := newHistory()
		for _, e := range seal(after) {
			h.add(e)
		}
		hot := fold(t, h, projection.Config{})
		rows, err := reported(t, seal(after)...).Report(t.Context(), projection.Filter{})
		if err != nil || len(rows) != 1 {
			t.Fatal(rows, err)
		}
		want := projection.Unbilled{Sealed: 1}
		got := projection.Unbilled{Sealed: hot.Impressions(projection.Sealed), LeaseExhausted: hot.Impressions(projection.LeaseExhausted)}
		if got != want || rows[0].Unbilled != want {
			t.Errorf("%v after the seal the fold says %+v, the tables %+v, want %+v", after, got, rows[0].Unbilled, want)
		}
	}
}

// A store out of reach is asked again and nothing is counted twice; a journal that
// cannot be read ends the fold and takes the node out of service.
func TestHotFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHistory()
		lease := journal.Event{Kind: journal.Lease, At: monday, Lease: "l", Line: "campaign/c", Amount: 10}
		h.add(lease, impression(0))
		h.Close()
		hot := projection.NewHot(projection.Config{}, quiet)
		go hot.Run(t.Context(), h)
		synctest.Wait()
		if c := hot.Check(); c.State != obs.NotReady {
			t.Errorf("store out of reach: %+v", c)
		}
		h.Reopen()
		time.Sleep(10 * time.Second) // of the bubble
		if c := hot.Check(); c.State != obs.OK || !hot.Warm() {
			t.Errorf("store back: %+v", c)
		}
		h.Close()
		synctest.Wait()
		if c := hot.Check(); c.State != obs.Degraded || !strings.Contains(c.Note, "waits") {
			t.Errorf("store out of reach of a warm node: %+v", c)
		}
		h.Reopen()
		time.Sleep(10 * time.Second)
		if c := hot.Check(); c.State != obs.OK {
			t.Errorf("store back again: %+v", c)
		}
		if n := hot.Impressions(projection.Duplicate); n != 0 {
			t.Errorf("%d impressions were folded again", n)
		}
		if _, err := h.Append(t.Context(), "x", []byte("not an envelope")); err != nil {
			t.Fatal(err)
		}
		h.add(lease)
		synctest.Wait()
		if c := hot.Check(); c.State != obs.Degraded || !strings.Contains(c.Note, "stopped") {
			t.Errorf("corrupt journal: %+v", c)
		}
		time.Sleep(time.Minute)
		if hot.Seq() != 1 {
			t.Error("went on after a corrupt envelope")
		}
	})
}

// Readers see whole events while the fold goes on. The race detector judges.
func TestHotIsReadWhileItFolds(t *testing.T) {
	h := traffic(5_000, 5)
	hot := projection.NewHot(projection.Config{}, quiet)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- hot.Run(ctx, h) }()
	for !hot.Warm() {
		hot.Engagement("site-1", "mag-1-1-1", monday)
		hot.Traffic("site-1", monday)
		hot.Spend("camp-1-1", monday)
		hot.Lease("l")
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
