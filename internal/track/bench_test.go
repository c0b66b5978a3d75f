package track_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"deckle/internal/journal"
	"deckle/internal/store"
	"deckle/internal/store/memory"
	"deckle/internal/token"
	"deckle/internal/track"
)

// instant is a journal whose disk takes no time, so that only the handler is measured.
type instant struct{}

func (instant) Append(context.Context, ...journal.Event) (store.Seq, error) { return 1, nil }

// discard is an answer that nobody reads.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(status int)      { d.status = status }

// unlimited takes everything from everybody.
func unlimited(c *track.Config) {
	c.Limits = track.DefaultLimits()
	c.Limits.Refuse.Burst, c.Limits.Sights.Burst = 1<<40, 1<<40
}

// beacons are n requests for events of different slots.
func (n *node) beacons(many int) []*http.Request {
	requests := make([]*http.Request, many)
	for i := range requests {
		b := filled(i)
		b.RequestID = strconv.FormatUint(1<<60+uint64(i), 16)
		r := httptest.NewRequest(http.MethodGet, n.beacon(token.Imp, b), nil)
		r.Header = browser.Clone()
		r.RemoteAddr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{203, byte(i >> 16), byte(i >> 8), byte(i)}), 4_000).String()
		requests[i] = r
	}
	return requests
}

// BenchmarkBeacon is what a beacon costs apart from the disk: the first time, and
// when it is told again.
func BenchmarkBeacon(b *testing.B) {
	for name, different := range map[string]int{"first": 200_000, "repeat": 1} {
		b.Run(name, func(b *testing.B) {
			n := newNode(b, memory.NewLog(), func(c *track.Config) {
				unlimited(c)
				c.Journal = instant{}
			})
			h, requests := n.handlers["/v1/imp"], n.beacons(different)
			w := &discard{header: http.Header{}}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				h.ServeHTTP(w, requests[i%different])
				if w.status != http.StatusNoContent {
					b.Fatal(w.status)
				}
				i++
			}
		})
	}
}

// BenchmarkCrowd is 256 readers who each tell one event after the other, on the real
// store: every answer waits for the disk.
func BenchmarkCrowd(b *testing.B) {
	const readers = 256
	st := openStore(b, b.TempDir(), 0)
	n := newNode(b, st.Journal(), unlimited)
	h, requests := n.handlers["/v1/imp"], n.beacons(b.N)
	var mu sync.Mutex
	took := hdrhistogram.New(1, int64(10*time.Second/time.Microsecond), 3)
	next := make(chan *http.Request)
	var all sync.WaitGroup
	b.ResetTimer()
	for range readers {
		all.Go(func() {
			for r := range next {
				w, start := &discard{header: http.Header{}}, time.Now()
				h.ServeHTTP(w, r)
				us := time.Since(start).Microseconds()
				mu.Lock()
				err := took.RecordValue(us)
				mu.Unlock()
				if w.status != http.StatusNoContent || err != nil {
					b.Errorf("%d after %d µs: %v", w.status, us, err)
				}
			}
		})
	}
	for _, r := range requests {
		next <- r
	}
	close(next)
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(took.ValueAtQuantile(50))/1_000, "p50-ms")
	b.ReportMetric(float64(took.ValueAtQuantile(99))/1_000, "p99-ms")
}
