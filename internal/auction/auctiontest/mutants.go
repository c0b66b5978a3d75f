package auctiontest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"deckle"
	"deckle/internal/auction"
)

// mutants: answers that have been changed at random cause no panic and no winner
// that is none, and take no more memory than answers do. DECKLE_SLOW=1 makes it
// 100,000 of them.
func (d Dialect) mutants(t *testing.T) {
	n := 1_000
	if os.Getenv("DECKLE_SLOW") != "" {
		n = 100_000
	}
	good := []byte(d.Answer("", Offer("odd", "1", "2"), Offer("even", "2", "1.5"), Offer("odd", "3", "0.7")))
	seeds := append(slices.Clone(d.Seeds), good)
	for _, b := range biddings() {
		seeds = append(seeds, []byte(d.Answer(b.currency, b.offers...)), good)
	}
	r := Request()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	statuses := map[auction.Status]int{}
	for i := range n {
		random := rand.New(rand.NewPCG(uint64(i), 0))
		body := mutate(random, seeds)
		res := d.judge(t, r, body)
		checkWinners(t, r, res)
		statuses[res.Providers[0].Status]++
		if t.Failed() {
			t.Fatalf("mutant %d: %.2000q", i, body)
		}
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / uint64(n); each > 1<<20 {
		t.Errorf("%d bytes allocated an auction, want at most 1 MiB", each)
	}
	if statuses[auction.StatusBid] < n/20 || statuses[auction.StatusParse] < n/20 {
		t.Errorf("statuses = %v: hardly anything was tested", statuses)
	}
	t.Logf("%d mutants: %v", n, statuses)
}

// judge is what comes of one answer. Every answer has a house of its own: it would
// not ask a provider again that has failed so often.
func (d Dialect) judge(t *testing.T, r *auction.Request, body []byte) *auction.Result {
	h := auction.New(auction.Config{
		Providers: []auction.Provider{d.provider("odd", "http://odd")},
		Dial:      func(context.Context, string, string) (net.Conn, error) { return DialBody(body), nil },
	}, auction.NewMetrics(), slog.New(slog.DiscardHandler))
	defer h.Close()
	return h.Start(t.Context(), r).Result()
}

// mutate changes one of seeds in one to four places, mostly in one.
func mutate(r *rand.Rand, seeds [][]byte) []byte {
	b := slices.Clone(seeds[r.IntN(len(seeds))])
	for range 1 + r.IntN(2)*r.IntN(4) {
		if len(b) == 0 {
			return b
		}
		i := r.IntN(len(b))
		j := min(len(b), i+1+r.IntN(16))
		switch r.IntN(6) {
		case 0:
			b[i] = byte(r.Uint32())
		case 1:
			b = slices.Delete(b, i, j)
		case 2:
			b = slices.Insert(b, i, slices.Clone(b[i:j])...)
		case 3:
			b = slices.Insert(b, i, []byte(words[r.IntN(len(words))])...)
		case 4: // another value in place of one
			end := i + 1 + strings.IndexAny(string(b[i:])+",", ",}")
			b = slices.Replace(b, i, min(end, len(b)), []byte(words[r.IntN(len(words))])...)
		case 5:
			other := seeds[r.IntN(len(seeds))]
			b = append(b[:i:i], other[min(i, len(other)):]...)
		}
	}
	return b
}

var words = [...]string{
	`null`, `true`, `-1`, `0`, `1e400`, `1e-400`, `9007199254740993`, `"`, `\u0000`, `\ud800`, `{`, `}`, `[`, `]`, `,`, `:`,
	`"impid":"side"`, `"price":99`, `"w":300,"h":600`, `"adm":""`, `"seat":"odd"`, `"id":"o"`, `"mtype":2`, `"cur":"EUR"`,
	`"__proto__"`, "\xff", "<script>", "http:", "${AUCTION_PRICE}", `[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[`,
}

// DialBody is a connection to a server that answers 200 with body.
func DialBody(body []byte) net.Conn {
	near, far := net.Pipe()
	go func() {
		defer func() { _ = far.Close() }()
		req, err := http.ReadRequest(bufio.NewReader(far))
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, req.Body)
		_, _ = fmt.Fprintf(far, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}()
	return near
}

// checkWinners says of a result that it has at most one winner a slot, and of each
// what CheckWinner says.
func checkWinners(t *testing.T, r *auction.Request, res *auction.Result) {
	t.Helper()
	filled := map[deckle.SlotID]bool{}
	for i := range res.Winners {
		w := &res.Winners[i]
		if filled[w.Slot] {
			t.Errorf("slot %s has two winners", w.Slot)
		}
		filled[w.Slot] = true
		CheckWinner(t, r, w)
	}
}

// CheckWinner says again, from the outside, what no winner of an auction of
// [Request] may be.
func CheckWinner(t testing.TB, r *auction.Request, w *auction.Winner) {
	t.Helper()
	i := slices.IndexFunc(r.Slots, func(s deckle.Slot) bool { return s.ID == w.Slot })
	if i < 0 {
		t.Fatalf("%q is no slot of the page", w.Slot)
	}
	slot := r.Slots[i]
	for rule, holds := range map[string]bool{
		"its price is in bounds":       w.Price >= max(slot.Floor, 1) && w.Price <= deckle.MaxCPM,
		"its bucket is of its price":   w.Bucket == r.Buckets.Bucket(w.Price),
		"it fits":                      slices.Contains(slot.Formats, w.Size),
		"it has markup":                strings.TrimSpace(w.AdM) != "" && len(w.AdM) <= 64<<10,
		"it is secure":                 !strings.Contains(w.AdM, "http:") || strings.Contains(w.AdM, "https"),
		"it has names":                 w.ID != "" && w.Seat != "" && len(w.Seat) <= 64 && len(w.AdID) == 22,
		"its advertiser is welcome":    !slices.Contains(w.ADomain, "rival.example"),
		"it expires":                   w.Expires > 0 && w.Expires <= deckle.MaxBidAge,
		"its nurl is a URL, or absent": w.NURL == "" || strings.HasPrefix(strings.ToLower(w.NURL), "http"),
		"its burl is a URL, or absent": w.BURL == "" || strings.HasPrefix(strings.ToLower(w.BURL), "http"),
	} {
		if !holds {
			t.Errorf("not so: %s, of %.2000s", rule, fmt.Sprintf("%+v", w))
		}
	}
}
