package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"deckle/internal/store"
)

// BenchmarkAppend measures single durable messages of 400 bytes: what the journal
// groups upon.
func BenchmarkAppend(b *testing.B) {
	for _, callers := range []int{1, 16, 256} {
		b.Run(fmt.Sprint(callers, " callers"), func(b *testing.B) {
			b.ReportAllocs()
			st := open(b, store.Config{DataDir: b.TempDir()})
			took := make([]time.Duration, b.N)
			var next atomic.Int64
			var wg sync.WaitGroup
			b.ResetTimer()
			for range callers {
				wg.Go(func() {
					for i := next.Add(1) - 1; i < int64(b.N); i = next.Add(1) - 1 {
						id := fmt.Sprint(i)
						start := time.Now()
						if _, err := st.Journal().Append(b.Context(), id, message(id)); err != nil {
							b.Error(err)
						}
						took[i] = time.Since(start)
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			slices.Sort(took)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
			b.ReportMetric(float64(took[b.N/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[b.N*99/100].Microseconds()), "p99-µs")
		})
	}
}

// BenchmarkRead measures reading envelopes of 8 KiB from the start, and opening
// the store that has them.
func BenchmarkRead(b *testing.B) {
	const n = 5000
	c := store.Config{DataDir: b.TempDir()}
	st := open(b, c)
	var wg sync.WaitGroup
	for w := range 50 {
		wg.Go(func() {
			for i := w; i < n; i += 50 {
				if _, err := st.Journal().Append(b.Context(), fmt.Sprint(i), make([]byte, 8<<10)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := st.Close(); err != nil {
		b.Fatal(err)
	}
	var opening, reading time.Duration
	for b.Loop() {
		start := time.Now()
		st, err := store.Open(context.Background(), c, discard)
		if err != nil {
			b.Fatal(err)
		}
		opened := time.Now()
		enough := errors.New("enough")
		err = st.Journal().Read(context.Background(), 1, func(m store.Message) error {
			if m.Seq == n {
				return enough
			}
			return nil
		})
		if !errors.Is(err, enough) {
			b.Fatal(err)
		}
		opening, reading = opening+opened.Sub(start), reading+time.Since(opened)
		if err := st.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n*b.N)/reading.Seconds(), "messages/s")
	b.ReportMetric(float64(opening.Milliseconds())/float64(b.N), "open-ms")
}
