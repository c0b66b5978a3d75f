package budget_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"deckle"
	"deckle/internal/budget"
	"deckle/internal/catalog"
	"deckle/internal/journal"
	"deckle/internal/projection"
	"deckle/internal/store"
	"deckle/internal/store/memory"
)

var quiet = slog.New(slog.DiscardHandler)

// holdTime is how long a reservation is held: window, bucket, skew, grace.
const holdTime = 3*time.Minute + time.Minute + 2*time.Minute + 15*time.Second

// A world is what nodes share: the bucket of leases, the log of the journal, and a
// catalog.
type world struct {
	testing.TB
	ctx     context.Context
	leases  *memory.KV
	log     *memory.Log
	catalog *catalog.Catalog

	requests uint64
}

// inWorld runs f in a synctest bubble. Its time begins at midnight UTC on 2000-01-01.
func inWorld(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		w := newWorld(t, ctx)
		defer synctest.Wait()
		defer stop()
		f(w)
	})
}

func newWorld(t testing.TB, ctx context.Context) *world {
	w := &world{TB: t, ctx: ctx, leases: memory.NewKV(), log: memory.NewLog(), catalog: catalog.New(memory.NewKV(), memory.NewKV(), catalog.Config{})}
	go func() { _ = w.catalog.Run(ctx) }()
	<-w.catalog.Loaded()
	w.put(&catalog.Publisher{ID: "yuki", Name: "Yuki Media", Currency: "USD"})
	return w
}

func (w *world) put(e catalog.Entity) {
	w.Helper()
	now, _ := w.catalog.Get(w.ctx, e.Kind(), e.EntityID())
	r, err := w.catalog.Put(w.ctx, e, catalog.Write{By: "tester", Revision: now.Revision})
	if err == nil {
		err = w.catalog.WaitFor(w.ctx, r.Revision)
	}
	if err != nil {
		w.Fatalf("put %s %s: %v", e.Kind(), e.EntityID(), err)
	}
}

func advertiser(id string, daily deckle.Money) *catalog.Advertiser {
	return &catalog.Advertiser{ID: id, Publisher: "yuki", Name: "An Inn", DailyBudget: daily, TimeZone: "UTC"}
}

// campaign pays at most 1,000 micros for an impression.
func campaign(id, advertiser string, daily, total deckle.Money) *catalog.Campaign {
	return &catalog.Campaign{
		ID: id, Advertiser: advertiser, Categories: []string{"653"}, ProductCategory: "1529",
		MaxCPM: 1_000_000, DailyBudget: daily, TotalBudget: total, LandingURL: "https://www.inn.example/stay",
	}
}

// A machine is one start of one process: its journal, its fold and its book.
type machine struct {
	*budget.Book
	w    *world
	hot  *projection.Hot
	jnl  *journal.Journal
	gate *gate
	stop func() // in order
	kill func() // without a word to the store
}

// parts are what a machine may have between itself and the store.
type parts struct {
	kv      func(store.KV) store.KV
	log     func(store.Log) store.Log
	fold    func(budget.Fold) budget.Fold
	journal func(budget.Journal) budget.Journal
	catalog func() *catalog.Snapshot

	incarnation string // instead of a fresh one
}

func (w *world) start(with parts) *machine {
	w.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	g := &gate{}
	var kv store.KV = gatedKV{w.leases, g}
	var log store.Log = gatedLog{w.log, g}
	if with.kv != nil {
		kv = with.kv(kv)
	}
	if with.log != nil {
		log = with.log(log)
	}
	m := &machine{w: w, gate: g, hot: projection.NewHot(projection.Config{}, quiet), jnl: journal.New(log, journal.Config{}, journal.NewMetrics(), quiet)}
	c := budget.Config{KV: kv, Journal: m.jnl, Fold: m.hot, Snapshot: w.catalog.Snapshot, Workers: 4}
	if with.fold != nil {
		c.Fold = with.fold(m.hot)
	}
	if with.journal != nil {
		c.Journal = with.journal(m.jnl)
	}
	if with.catalog != nil {
		c.Snapshot = with.catalog
	}
	m.Book = budget.New(c)
	m.hot.Notify(m.Folded)
	if with.incarnation != "" {
		m.SetIncarnation(with.incarnation)
	}

	var books, others sync.WaitGroup
	after, cancelOthers := context.WithCancel(w.ctx)
	others.Go(func() { _ = m.hot.Run(after, log) })
	others.Go(func() { _ = m.jnl.Run(after) })
	books.Go(func() { _ = m.Run(ctx) })
	m.stop = sync.OnceFunc(func() {
		cancel()
		books.Wait()
		cancelOthers()
		others.Wait()
	})
	m.kill = func() {
		g.shut()
		m.stop()
	}
	return m
}

// request is a fresh request id.
func (w *world) request() string {
	w.requests++
	return fmt.Sprintf("%016x", w.requests*0x9E3779B97F4A7C15)
}

// An ad is a slot that was filled: what its beacon's token says.
type ad struct {
	campaign, advertiser string
	price                deckle.Money
	request              string
	leases               []string
	at                   time.Time
}

// reserve reserves for a campaign as the catalog has it.
func (m *machine) reserve(campaign string, price deckle.Money) (ad, bool) {
	c, ok := m.w.catalog.Snapshot().Campaign(campaign)
	if !ok {
		m.w.Fatalf("no campaign %s", campaign)
	}
	a, _ := m.w.catalog.Snapshot().Advertiser(c.Advertiser)
	out := ad{campaign: c.ID, advertiser: a.ID, price: price, request: m.w.request(), at: time.Now()}
	out.leases, ok = m.Reserve(c, a, price, out.request, out.at)
	out.leases = slices.Clone(out.leases)
	return out, ok
}

// beacon journals the impression of an ad.
func (m *machine) beacon(a ad) {
	m.w.Helper()
	if err := m.tell(a); err != nil {
		m.w.Fatal(err)
	}
}

func (m *machine) tell(a ad) error {
	_, err := m.jnl.Append(m.w.ctx, journal.Event{
		Kind: journal.Impression, At: time.Now(), Site: "blog", Slot: "top", Advertiser: a.advertiser, Campaign: a.campaign, Creative: "m",
		Version: 1, URL: "https://blog.example/", RequestID: a.request, Price: a.price, Leases: a.leases,
	})
	return err
}

// line is how a machine sees a budget.
func (m *machine) line(name string) budget.Line {
	l, _ := m.Line(name)
	return l
}

// eventually waits, in the bubble's time, until something is so.
func (w *world) eventually(within time.Duration, what string, is func() bool) {
	w.Helper()
	for end := time.Now().Add(within); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("not within %v: %s", within, what)
		}
	}
}

// A gate shuts out a process that has been killed: nothing of it reaches the store.
type gate struct {
	mu     sync.Mutex
	closed bool
	left   int  // writes until it is killed; 0: it is not going to be
	lose   bool // the last write happens, and nobody is told
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

// shutAfter kills the process at its n-th write from now on, just before or just after
// it has happened.
func (g *gate) shutAfter(n int, happens bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left, g.lose = n, happens
}

func (g *gate) isShut() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

var errKilled = fmt.Errorf("killed: %w", store.ErrUnavailable)

// pass does a write, unless the process is dead.
func (g *gate) pass(write func() error) error {
	g.mu.Lock()
	if g.left > 0 {
		g.left--
		g.closed = g.closed || g.left == 0
		if g.closed && g.lose {
			g.mu.Unlock()
			_ = write()
			return errKilled
		}
	}
	closed := g.closed
	g.mu.Unlock()
	if closed {
		return errKilled
	}
	return write()
}

type gatedKV struct {
	store.KV
	*gate
}

func (k gatedKV) Put(ctx context.Context, key string, value []byte, revision uint64) (written uint64, err error) {
	err = k.pass(func() (err error) {
		written, err = k.KV.Put(ctx, key, value, revision)
		return err
	})
	return written, err
}

func (k gatedKV) Delete(ctx context.Context, key string, revision uint64) error {
	return k.pass(func() error { return k.KV.Delete(ctx, key, revision) })
}

type gatedLog struct {
	store.Log
	*gate
}

func (l gatedLog) Append(ctx context.Context, id string, data []byte) (seq store.Seq, err error) {
	err = l.pass(func() (err error) {
		seq, err = l.Log.Append(ctx, id, data)
		return err
	})
	return seq, err
}
