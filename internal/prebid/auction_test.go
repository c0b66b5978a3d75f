package prebid_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"deckle/internal/auction"
	"deckle/internal/auction/auctiontest"
	"deckle/internal/prebid"
)

// canned answers every request on l with the same body, without a byte of
// garbage of its own, so that a benchmark measures our side alone.
func canned(tb testing.TB, l net.Listener, body []byte) {
	tb.Helper()
	answer := append(fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", len(body)), body...)
	var conns []net.Conn
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns = append(conns, c)
			go serveCanned(c, answer)
		}
	}()
	tb.Cleanup(func() {
		_ = l.Close()
		<-done
		for _, c := range conns {
			_ = c.Close()
		}
	})
}

func serveCanned(c net.Conn, answer []byte) {
	for r := bufio.NewReader(c); readRequest(r); {
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}

// compact is a capture's response as a server sends it.
func compact(tb testing.TB, c capture) []byte {
	v := jsontext.Value(c.Response).Clone()
	if err := v.Compact(); err != nil {
		tb.Fatal(err)
	}
	return v
}

// auctioneer holds auctions with one Prebid Server on loopback that always gives
// the same answer.
func auctioneer(tb testing.TB, body []byte) *auction.House {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	canned(tb, l, body)
	d := prebid.New(prebid.Config{ServerURL: "http://" + l.Addr().String(), AccountID: "acct-1"})
	h := auction.New(auction.Config{Providers: []auction.Provider{{Name: "prebid", Dialect: d}}}, auction.NewMetrics(), slog.New(slog.DiscardHandler))
	tb.Cleanup(h.Close)
	return h
}

// threeByThree is three-imps with the bid that optidigital did not make.
func threeByThree(tb testing.TB) (*auction.Request, []byte) {
	c := readCapture(tb, "three-imps")
	body := compact(tb, c)
	foot := `{"id":"optidigital-three-imps-2","impid":"foot","price":0.3,"adm":"<a href=\"https://optidigital.example/\">x</a>","w":970,"h":250,"mtype":1}`
	body = bytes.Replace(body, []byte(`],"seat":"optidigital"`), []byte(`,`+foot+`],"seat":"optidigital"`), 1)
	return c.request(), body
}

// One page's auction, three slots and three seats, over loopback, its Prebid
// Server's work not included.
func BenchmarkAuction(b *testing.B) {
	r, body := threeByThree(b)
	h := auctioneer(b, body)
	b.ReportAllocs()
	before := cpuTime(b)
	for b.Loop() {
		hold3(b, h, r)
	}
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op") // a busy machine changes ns/op
}

// cpuTime is what this process has used of all CPUs.
func cpuTime(tb testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func hold3(tb testing.TB, h *auction.House, r *auction.Request) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	res := h.Start(ctx, r).Result()
	if len(res.Winners) != 3 || res.Providers[0].Bids != 9 {
		tb.Fatalf("winners = %+v, %+v", res.Winners, res.Providers)
	}
}

// The same without a network: what encoding and decoding cost.
func BenchmarkDialect(b *testing.B) {
	r, body := threeByThree(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := dialect.Encode(r, time.Second); err != nil {
			b.Fatal(err)
		}
		if _, err := dialect.Decode(r, body); err != nil {
			b.Fatal(err)
		}
	}
}

// An auction's memory has a ceiling, since every page holds one.
func TestAuctionAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates too")
	}
	r, body := threeByThree(t)
	h := auctioneer(t, body)
	hold3(t, h, r) // connects, fills pools
	const n = 200
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range n {
		hold3(t, h, r)
	}
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) / n; got > 40<<10 {
		t.Errorf("%d bytes an auction, want at most 40 KiB", got)
	}
}

// FuzzAnswer puts any body through a whole auction and looks at who wins.
func FuzzAnswer(f *testing.F) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		c := readCapture(f, strings.TrimSuffix(filepath.Base(name), ".json"))
		_, body := c.body(f)
		f.Add(body)
	}
	c := readCapture(f, "tie")
	r := c.request()
	r.Slots[0].Floor = 10_000
	r.Site.BAdv = []string{"rival.example"}
	f.Fuzz(func(t *testing.T, body []byte) {
		d := prebid.New(prebid.Config{ServerURL: "http://pbs.example"})
		h := auction.New(auction.Config{
			Providers: []auction.Provider{{Name: "prebid", Dialect: d}},
			Dial:      func(context.Context, string, string) (net.Conn, error) { return auctiontest.DialBody(body), nil },
		}, auction.NewMetrics(), slog.New(slog.DiscardHandler))
		defer h.Close()
		res := h.Start(t.Context(), r).Result()
		if len(res.Winners) > 1 {
			t.Fatalf("%d winners for one slot", len(res.Winners))
		}
		for _, w := range res.Winners {
			auctiontest.CheckWinner(t, r, &w)
		}
	})
}
