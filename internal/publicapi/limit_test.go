package publicapi_test

import (
	"encoding/binary"
	"net/netip"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"deckle/internal/publicapi"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// address is the n-th of many.
func address(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, 0xCB000000+n)))
}

// used takes all that an address has.
func used(t *testing.T, l *publicapi.Limiter, a netip.Addr, now time.Time, burst int) {
	t.Helper()
	for i := range burst {
		if _, ok := l.Allow(a, now); !ok {
			t.Fatalf("request %d of %d was refused", i+1, burst)
		}
	}
	if _, ok := l.Allow(a, now); ok {
		t.Fatalf("more than %d requests", burst)
	}
}

func TestLimiter(t *testing.T) {
	l := publicapi.NewLimiter(publicapi.Limit{PerMinute: 60, Burst: 3})
	a := netip.MustParseAddr("203.0.113.7")
	used(t, l, a, noon, 3)
	if after, _ := l.Allow(a, noon.Add(400*time.Millisecond)); after.Round(time.Millisecond) != 600*time.Millisecond {
		t.Errorf("ask again after %v, want 600ms", after)
	}
	if _, ok := l.Allow(a, noon.Add(time.Second)); !ok {
		t.Error("refused after a second, which brings one")
	}
	used(t, l, netip.MustParseAddr("203.0.113.8"), noon, 3)
	used(t, l, netip.Addr{}, noon, 3) // of a connection without one
}

// One machine has many addresses, and one address several forms.
func TestAddressesThatAreOne(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", true},
		{"2001:db8:1:2::1", "2001:db8:1:3::1", false},
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"192.0.2.1", "::c000:201", false},
		{"fe80::1%eth0", "fe80::1%eth1", true},
	} {
		l := publicapi.NewLimiter(publicapi.Limit{PerMinute: 1, Burst: 1})
		used(t, l, netip.MustParseAddr(c.a), noon, 1)
		if _, ok := l.Allow(netip.MustParseAddr(c.b), noon); ok == c.same {
			t.Errorf("%s and %s are one: %v, want %v", c.a, c.b, !ok, c.same)
		}
	}
}

// With the day ends what was counted, and by what addresses were known.
func TestLimiterForgetsByDay(t *testing.T) {
	l := publicapi.NewLimiter(publicapi.Limit{PerMinute: 1, Burst: 2})
	a, midnight := address(1), noon.Add(12*time.Hour)
	used(t, l, a, midnight.Add(-time.Second), 2)
	before := publicapi.Hash(l, a, midnight.Add(-time.Second))
	used(t, l, a, midnight, 2)
	if after := publicapi.Hash(l, a, midnight); after == before {
		t.Error("the address has the same hash on another day")
	}
	if other := publicapi.NewLimiter(publicapi.Limit{PerMinute: 1, Burst: 2}); publicapi.Hash(other, a, noon) == before {
		t.Error("the address has the same hash elsewhere")
	}
}

// Any number of addresses take no more than the memory that there is, and the one
// that asks all the time is not forgotten over them.
func TestLimiterIsBounded(t *testing.T) {
	l := publicapi.NewLimiter(publicapi.Limit{PerMinute: 1, Burst: 5})
	used(t, l, address(0), noon, 5)
	for n := range uint32(300_000) {
		l.Allow(address(n+1), noon)
		if n%5_000 == 0 {
			if _, ok := l.Allow(address(0), noon); ok {
				t.Fatalf("forgotten after %d others", n)
			}
		}
	}
	if got := publicapi.Remembered(l); got > 65_536 {
		t.Errorf("%d addresses are remembered", got)
	}
}

// In no stretch of time an address has more than its burst and what the stretch
// brings.
func TestLimiterHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := publicapi.Limit{PerMinute: rapid.IntRange(1, 6_000).Draw(t, "per minute"), Burst: rapid.IntRange(1, 50).Draw(t, "burst")}
		l := publicapi.NewLimiter(limit)
		now := noon
		var taken []time.Time
		for range rapid.IntRange(1, 200).Draw(t, "requests") {
			now = now.Add(time.Duration(rapid.IntRange(0, 2_000).Draw(t, "ms")) * time.Millisecond)
			after, ok := l.Allow(address(1), now)
			if ok {
				taken = append(taken, now)
			} else if _, ok := l.Allow(address(1), now.Add(after+time.Millisecond)); !ok {
				t.Fatalf("refused again after %v", after)
			} else {
				now = now.Add(after + time.Millisecond)
				taken = append(taken, now)
			}
		}
		for i := range taken {
			for j := i; j < len(taken); j++ {
				brought := taken[j].Sub(taken[i]).Minutes() * float64(limit.PerMinute)
				if n := j - i + 1; float64(n) > float64(limit.Burst)+brought+1e-6 {
					t.Fatalf("%d requests in %v with %+v", n, taken[j].Sub(taken[i]), limit)
				}
			}
		}
	})
}

// Many ask at once, over a midnight.
func TestLimiterConcurrently(t *testing.T) {
	l := publicapi.NewLimiter(publicapi.Limit{PerMinute: 1, Burst: 100})
	var mu sync.Mutex
	allowed := 0
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 100 {
				if _, ok := l.Allow(address(1), noon); ok {
					mu.Lock()
					allowed++
					mu.Unlock()
				}
				l.Allow(address(2), noon.Add(24*time.Hour))
			}
		})
	}
	all.Wait()
	if allowed < 100 { // going back and forth over midnight forgets, which never refuses
		t.Errorf("%d of a burst of 100", allowed)
	}
}

func BenchmarkLimiter(b *testing.B) {
	l := publicapi.NewLimiter(publicapi.Limit{PerMinute: 600, Burst: 600})
	var readers [20_000]netip.Addr
	for n := range readers {
		readers[n] = address(uint32(n))
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		l.Allow(readers[n%len(readers)], noon)
		n++
	}
}
