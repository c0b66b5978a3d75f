package prebid_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"deckle/internal/auction"
	"deckle/internal/prebid"
)

// thinking answers every request on l with body, after a while, and on no more than
// a goroutine a connection.
func thinking(tb testing.TB, l net.Listener, after time.Duration, body []byte) {
	tb.Helper()
	answer := append(fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", len(body)), body...)
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer c.Close()
				r := bufio.NewReader(c)
				for readRequest(r) {
					<-time.After(after)
					if _, err := c.Write(answer); err != nil {
						return
					}
				}
			})
		}
	})
	tb.Cleanup(func() {
		_ = l.Close()
		conns.Wait()
	})
}

// readRequest reads past one request, without a byte of garbage.
func readRequest(r *bufio.Reader) bool {
	length := 0
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return false
		}
		if len(line) == 2 {
			_, err := r.Discard(length)
			return err == nil
		}
		if digits, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			for _, d := range bytes.TrimSpace(digits) {
				length = 10*length + int(d-'0')
			}
		}
	}
}

// What an auction takes beyond its slowest bidder, at so many auctions a second
// whatever they take (open loop): three slots, three seats behind one Prebid Server
// that needs 50 ms, and a second one that needs 30 ms. A bare timer of 50 ms beside
// them shows how late this machine is by itself.
//
//	go test -run '^$' -bench Overhead -benchtime 2000x ./internal/prebid
func BenchmarkOverhead(b *testing.B) {
	const slowest = 50 * time.Millisecond
	for _, rate := range []int{20, 100, 500} {
		b.Run(fmt.Sprintf("%d a second", rate), func(b *testing.B) {
			r, body := threeByThree(b)
			var providers []auction.Provider
			for name, after := range map[string]time.Duration{"first": slowest, "second": 30 * time.Millisecond} {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					b.Fatal(err)
				}
				thinking(b, l, after, body)
				d := prebid.New(prebid.Config{ServerURL: "http://" + l.Addr().String()})
				providers = append(providers, auction.Provider{Name: name, Dialect: d, Timeout: 10 * time.Second})
			}
			h := auction.New(auction.Config{Providers: providers}, auction.NewMetrics(), slog.New(slog.DiscardHandler))
			b.Cleanup(h.Close)
			took := openLoop(b, rate, func() {
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				defer cancel()
				if res := h.Start(ctx, r).Result(); len(res.Winners) != 3 {
					b.Errorf("result = %+v", res)
				}
			})
			late := openLoop(b, rate, func() { <-time.After(slowest) })
			beyond := func(h *hdrhistogram.Histogram, quantile float64) float64 {
				return (time.Duration(h.ValueAtQuantile(quantile)) - slowest).Seconds() * 1000
			}
			b.ReportMetric(beyond(took, 50), "p50-ms")
			b.ReportMetric(beyond(took, 99), "p99-ms")
			b.ReportMetric(beyond(late, 50), "timer-p50-ms")
			b.ReportMetric(beyond(late, 99), "timer-p99-ms")
			b.ReportMetric(0, "ns/op") // says the rate, and nothing else
		})
	}
}

// openLoop does b.N things, each begun at its moment however long those before it
// take, and gives how long they took from that moment.
func openLoop(b *testing.B, rate int, do func()) *hdrhistogram.Histogram {
	b.Helper()
	var mu sync.Mutex
	took := hdrhistogram.New(1, int64(10*time.Second), 3)
	var running sync.WaitGroup
	start := time.Now()
	for i := range b.N {
		at := start.Add(time.Duration(i) * time.Second / time.Duration(rate))
		<-time.After(time.Until(at))
		running.Go(func() {
			do()
			mu.Lock()
			defer mu.Unlock()
			_ = took.RecordValue(int64(time.Since(at)))
		})
	}
	running.Wait()
	return took
}
