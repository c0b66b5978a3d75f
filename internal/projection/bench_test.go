package projection_test

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

	"deckle/internal/projection"
	"deckle/internal/store"
)

// BenchmarkTables folds a busy day into a new report.db.
func BenchmarkTables(b *testing.B) {
	h := traffic(100_000, 1)
	b.ReportAllocs()
	dir, n := b.TempDir(), 0
	for b.Loop() {
		n++
		tables := open(b, filepath.Join(dir, fmt.Sprint(n)))
		if err := tables.FoldTo(b.Context(), h, h.last()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(h.records())*b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkHot folds it in memory, envelopes decoded from their bytes.
func BenchmarkHot(b *testing.B) {
	l := traffic(100_000, 1)
	b.ReportAllocs()
	for b.Loop() {
		warmUp(b, l)
	}
	b.ReportMetric(float64(100_000*b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkRestart is what a node does before it is ready, with 1,000,000 events in
// the journal; and how much memory it then holds.
func BenchmarkRestart(b *testing.B) {
	l := traffic(1_000_000, 1)
	var before, after runtime.MemStats
	for b.Loop() {
		b.StopTimer()
		runtime.GC()
		runtime.ReadMemStats(&before)
		b.StartTimer()
		hot := warmUp(b, l)
		b.StopTimer()
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB")
		runtime.KeepAlive(hot)
		b.StartTimer()
	}
	b.ReportMetric(float64(1_000_000*b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkEngagement is what a batch asks of each of its candidates.
func BenchmarkEngagement(b *testing.B) {
	hot := fold(b, traffic(100_000, 1), projection.Config{})
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			hot.Engagement("site-1", "mag-1-1-1", monday)
		}
	})
}

func warmUp(b *testing.B, l store.Log) *projection.Hot {
	hot := projection.NewHot(projection.Config{}, quiet)
	ctx, stop := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- hot.Run(ctx, l) }()
	if err := hot.Wait(ctx); err != nil {
		b.Fatal(err)
	}
	stop()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	return hot
}
