package budget_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"deckle"
	"deckle/internal/budget"
	"deckle/internal/catalog"
	"deckle/internal/journal"
	"deckle/internal/projection"
	"deckle/internal/store"
	"deckle/internal/store/memory"
)

// many is a catalog of n campaigns, ten of each advertiser.
func many(t testing.TB, n int) *catalog.Catalog {
	c := catalog.New(memory.NewKV(), memory.NewKV(), catalog.Config{})
	put := func(e catalog.Entity) {
		if _, err := c.Put(t.Context(), e, catalog.Write{By: "tester"}); err != nil {
			t.Fatalf("put %s %s: %v", e.Kind(), e.EntityID(), err)
		}
	}
	put(&catalog.Publisher{ID: "yuki", Name: "Yuki Media", Currency: "USD"})
	for i := range n {
		owner := fmt.Sprintf("adv-%d", i/10)
		if i%10 == 0 {
			put(advertiser(owner, 500_000_000))
		}
		put(campaign(fmt.Sprintf("camp-%d", i), owner, 100_000_000, 1_000_000_000))
	}
	ctx, stop := context.WithCancel(t.Context())
	var g sync.WaitGroup
	g.Go(func() { _ = c.Run(ctx) })
	t.Cleanup(func() { stop(); g.Wait() })
	<-c.Loaded()
	return c
}

// A bookOn is a book on some store, as a process has it.
type bookOn struct {
	*budget.Book
	hot  *projection.Hot
	jnl  *journal.Journal
	stop func()
}

func runBook(t testing.TB, leases store.KV, log store.Log, c *catalog.Catalog) *bookOn {
	b := &bookOn{hot: projection.NewHot(projection.Config{}, quiet), jnl: journal.New(log, journal.Config{}, journal.NewMetrics(), quiet)}
	b.Book = budget.New(budget.Config{KV: leases, Journal: b.jnl, Fold: b.hot, Snapshot: c.Snapshot, Log: quiet})
	b.hot.Notify(b.Folded)
	ctx, cancel := context.WithCancel(t.Context())
	after, cancelAfter := context.WithCancel(context.Background())
	var book, others sync.WaitGroup
	others.Go(func() { _ = b.jnl.Run(after) })
	others.Go(func() { _ = b.hot.Run(after, log) })
	book.Go(func() { _ = b.Run(ctx) })
	b.stop = sync.OnceFunc(func() { cancel(); book.Wait(); cancelAfter(); others.Wait() })
	t.Cleanup(b.stop)
	return b
}

func openStore(t testing.TB, dir string) *store.Store {
	s, err := store.Open(t.Context(), store.Config{DataDir: dir}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// leasedAll waits until every line has a lease.
func (b *bookOn) leasedAll(t testing.TB, lines int) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); ; {
		with, _ := b.Covered()
		if with >= lines {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d lines have a lease: %v", with, lines, b.Checks())
		}
		pause := time.NewTimer(50 * time.Millisecond)
		<-pause.C
	}
}

// reserved waits until a campaign may reserve.
func (b *bookOn) reserved(t testing.TB, c *catalog.Catalog, n int) {
	t.Helper()
	campaign, _ := c.Snapshot().Campaign(fmt.Sprintf("camp-%d", n))
	owner, _ := c.Snapshot().Advertiser(campaign.Advertiser)
	for try := uint64(1); ; try++ {
		if _, ok := b.Reserve(campaign, owner, 1000, hexID(try), time.Now()); ok {
			return
		}
		pause := time.NewTimer(2 * time.Millisecond)
		<-pause.C
	}
}

// How long a start takes, on the engine: until a campaign that is asked for may serve,
// until every line of every campaign has a lease, and the same after an end in order.
func BenchmarkStart(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		b.Run(fmt.Sprintf("campaigns=%d", n), func(b *testing.B) {
			c := many(b, n)
			lines := 2*n + n/10
			for b.Loop() {
				s := openStore(b, b.TempDir())
				start := time.Now()
				first := runBook(b, s.Leases(), s.Journal(), c)
				first.reserved(b, c, n-1)
				b.ReportMetric(time.Since(start).Seconds(), "s/asked")
				first.leasedAll(b, lines)
				b.ReportMetric(time.Since(start).Seconds(), "s/first")
				start = time.Now()
				first.stop()
				b.ReportMetric(time.Since(start).Seconds(), "s/stop")
				start = time.Now()
				second := runBook(b, s.Leases(), s.Journal(), c)
				second.leasedAll(b, lines)
				b.ReportMetric(time.Since(start).Seconds(), "s/again")
				second.stop()
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(lines), "lines")
		})
	}
}

// benchBook has a lease of every line in memory.
func benchBook(t testing.TB, campaigns int) (*bookOn, *catalog.Snapshot) {
	c := many(t, campaigns)
	b := runBook(t, memory.NewKV(), memory.NewLog(), c)
	b.leasedAll(t, 2*campaigns+campaigns/10)
	return b, c.Snapshot()
}

func hexID(n uint64) string { return fmt.Sprintf("%016x", n) }

func BenchmarkReserve(b *testing.B) {
	book, s := benchBook(b, 10)
	c, _ := s.Campaign("camp-3")
	a, _ := s.Advertiser(c.Advertiser)
	ids := make([]string, 1<<16)
	for i := range ids {
		ids[i] = hexID(uint64(i) * 0x9E3779B97F4A7C15)
	}
	now := time.Now()
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		id := ids[i%len(ids)]
		i++
		if _, ok := book.Reserve(c, a, 1, id, now); !ok {
			b.Fatal("refused")
		}
		book.Release(id)
	}
}

func BenchmarkReserveParallel(b *testing.B) {
	book, s := benchBook(b, 100)
	var n atomic.Uint64
	now := time.Now()
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		mine := n.Add(1)
		c, _ := s.Campaign(fmt.Sprintf("camp-%d", mine%100))
		a, _ := s.Advertiser(c.Advertiser)
		id := hexID(mine * 0x9E3779B97F4A7C15)
		for p.Next() {
			if _, ok := book.Reserve(c, a, 1, id, now); !ok {
				b.Fatal("refused")
			}
			book.Release(id)
		}
	})
}

// A reservation allocates nothing but, in the long run, the memory of its hold.
func TestReserveAllocatesNothing(t *testing.T) {
	book, s := benchBook(t, 10)
	c, _ := s.Campaign("camp-3")
	a, _ := s.Advertiser(c.Advertiser)
	now, id := time.Now(), hexID(7)
	if n := testing.AllocsPerRun(1000, func() {
		if _, ok := book.Reserve(c, a, 1, id, now); !ok {
			t.Fatal("refused")
		}
		book.Release(id)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// However many batches reserve at once, a lease is not reserved from beyond its
// amount, and nothing is lost of it.
func TestReservationsAtOnce(t *testing.T) {
	t.Parallel()
	book, s := benchBook(t, 10)
	c, _ := s.Campaign("camp-3")
	a, _ := s.Advertiser(c.Advertiser)
	name := budget.TotalLine(c.ID)
	var next, reserved atomic.Uint64
	var g sync.WaitGroup
	const price = 997
	for range 8 {
		g.Go(func() {
			for range 4_000 {
				id := hexID(next.Add(1))
				if _, ok := book.Reserve(c, a, price, id, time.Now()); ok {
					if reserved.Add(1)%3 == 0 {
						book.Release(id)
						reserved.Add(^uint64(0))
					}
				}
			}
		})
	}
	g.Wait()
	l, _ := book.Line(name)
	if want := deckle.Money(reserved.Load() * price); l.Held != want {
		t.Errorf("%d held, %d reserved", l.Held, want)
	}
	if l.Held+l.Free > l.Leased {
		t.Errorf("more is reserved than leased: %+v", l)
	}
}

// What a node with 10,000 campaigns does every second, and whenever the catalog has
// changed.
func BenchmarkLook(b *testing.B) {
	book, _ := benchBook(b, 10_000)
	b.Run("lines", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			book.Look(time.Now())
		}
	})
	b.Run("index", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			book.Reindex(time.Now())
		}
	})
}
