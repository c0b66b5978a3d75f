package journal_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"deckle/internal/journal"
	"deckle/internal/journal/journaltest"
	"deckle/internal/store"
)

// openStore opens the real, embedded store in a folder.
func openStore(t testing.TB, folder string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{DataDir: folder}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// runJournal runs a journal until the returned function is called.
func runJournal(t testing.TB, log store.Log) (j *journal.Journal, end func()) {
	t.Helper()
	j = journal.New(log, journal.Config{}, journal.NewMetrics(), slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var run sync.WaitGroup
	run.Go(func() { _ = j.Run(ctx) })
	end = func() {
		cancel()
		run.Wait()
	}
	t.Cleanup(end)
	return j, end
}

// What was acknowledged is there after a restart, each caller's in order.
func TestOnTheRealStore(t *testing.T) {
	t.Parallel()
	const callers, each = 40, 25
	folder := t.TempDir()
	s := openStore(t, folder)
	j, end := runJournal(t, s.Journal())
	var calls sync.WaitGroup
	var acknowledged [callers][each]place
	for c := range callers {
		calls.Go(func() {
			for i := range each {
				seq, err := j.Append(t.Context(), view(1_000*c+2*i), view(1_000*c+2*i+1))
				if err != nil {
					t.Error(err)
					return
				}
				acknowledged[c][i].seq = seq
			}
		})
	}
	calls.Wait()
	end()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = openStore(t, folder)
	places := map[string]place{}
	envelopes := read(t, s.Journal())
	for _, records := range envelopes {
		for _, r := range records {
			places[r.RequestID] = place{r.Seq, r.Index}
		}
	}
	if len(places) != 2*callers*each {
		t.Errorf("%d events are in the journal, want %d", len(places), 2*callers*each)
	}
	if len(envelopes) > callers*each/3 {
		t.Errorf("%d calls are in %d envelopes: they do not commit in groups", callers*each, len(envelopes))
	}
	for c := range callers {
		var last place
		for i := range each {
			a, b := places[fmt.Sprintf("%016x", 1_000*c+2*i)], places[fmt.Sprintf("%016x", 1_000*c+2*i+1)]
			if a.seq != acknowledged[c][i].seq || b != (place{a.seq, a.index + 1}) || !last.before(a) {
				t.Fatalf("caller %d, call %d: %v and %v after %v, and was told %d", c, i, a, b, last, acknowledged[c][i].seq)
			}
			last = b
		}
	}
}

// BenchmarkAppend is how many events become durable in a second, and how long each
// caller waits, on the real store with its files in a temporary folder.
func BenchmarkAppend(b *testing.B) {
	for _, callers := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) { benchmarkAppend(b, callers) })
	}
}

func benchmarkAppend(b *testing.B, callers int) {
	log := openStore(b, b.TempDir()).Journal()
	j, _ := runJournal(b, log)
	events := journaltest.New(9, journaltest.Config{}).Take(10_000)
	var next atomic.Int64
	took := make([]time.Duration, b.N)
	var calls sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for range callers {
		calls.Go(func() {
			for i := next.Add(1) - 1; i < int64(b.N); i = next.Add(1) - 1 {
				e := events[i%int64(len(events))]
				e.At = e.At.Add(time.Duration(i) * time.Millisecond) // no envelope is one of before
				start := time.Now()
				if _, err := j.Append(b.Context(), e); err != nil {
					b.Error(err)
					return
				}
				took[i] = time.Since(start)
			}
		})
	}
	calls.Wait()
	b.StopTimer()
	slices.Sort(took)
	state, err := log.State(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1_000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1_000, "p99-ms")
	b.ReportMetric(float64(b.N)/float64(state.Last), "events/envelope")
	b.ReportMetric(float64(state.Bytes)/float64(b.N), "B/event")
}

// BenchmarkRead is a restart: reading a journal from its beginning.
func BenchmarkRead(b *testing.B) {
	log := openStore(b, b.TempDir()).Journal()
	j, _ := runJournal(b, log)
	g := journaltest.New(10, journaltest.Config{})
	const n = 100_000
	for range n / 500 {
		if _, err := j.Append(b.Context(), g.Take(500)...); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		read(b, log)
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
