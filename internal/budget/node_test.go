package budget_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"deckle"
	"deckle/internal/budget"
	"deckle/internal/journal"
	"deckle/internal/obs"
	"deckle/internal/store"
	"deckle/internal/store/memory"
)

// startCuttable starts a machine that can be cut off from everything.
func (w *world) startCuttable() (*machine, *nodeParts) {
	n := newNodeParts()
	return w.start(parts{
		kv:  func(kv store.KV) store.KV { return cutKV{kv, n} },
		log: func(l store.Log) store.Log { return lateLog{l, n} },
	}), n
}

// A node that is cut off spends what it holds and no more. Others take it for gone and
// go on with its leases; when it is back it begins anew, and nothing has been charged
// that was not there.
func TestNodeThatWasTakenForGone(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.inn(1_000_000, 100_000, 0)
		cut, n := w.startCuttable()
		defer cut.stop()
		w.leased(cut, campDay, innDay)
		time.Sleep(20 * time.Second)
		n.set(&n.cut, true)
		other := w.start(parts{})
		defer other.stop()
		w.leased(other, campDay, innDay)

		var kept []ad
		for range 100 {
			a, ok := cut.reserve("autumn", 1000)
			if !ok {
				break
			}
			kept = append(kept, a)
		}
		if len(kept) != 12 { // an eighth of 100
			t.Errorf("%d impressions while it was cut off", len(kept))
		}
		if c := other.Checks()[0]; c.State != obs.OK {
			t.Errorf("the other says %+v", c)
		}
		w.eventually(holdTime+2*time.Minute, "its lease is settled", func() bool { return other.line(campDay).Leases == 1 })
		if got := other.spend("autumn", 300, 1000); got != 100 {
			t.Errorf("the other shows %d, want all 100", got)
		}
		n.heal()
		time.Sleep(time.Second)
		for _, a := range kept {
			cut.beacon(a)
		}
		time.Sleep(time.Second)
		if got := other.hot.SpendTotal("autumn"); got != 100_000 {
			t.Errorf("%d spent of 100,000", got)
		}
		w.put(campaign("autumn", "inn", 300_000, 0))
		w.eventually(20*time.Second, "it is one of us again", func() bool {
			a, ok := cut.reserve("autumn", 1000)
			return ok && incarnation(a.leases[0]) != incarnation(kept[0].leases[0])
		})
	})
}

// incarnation is which start of which node took a lease.
func incarnation(lease string) string {
	id, _, _ := strings.Cut(lease, ".")
	return id
}

// A node that begins anew while a lease is being taken does not use that one: others may
// have sealed it.
func TestNodeThatBeginsAnewWhileItTakesALease(t *testing.T) {
	t.Parallel()
	for name, with := range map[string]func(*parts, *slowLine){
		"while it is written":   func(p *parts, s *slowLine) { p.kv = s.bucket },
		"while it is journaled": func(p *parts, s *slowLine) { p.journal = s.journal },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				w.inn(1_000_000, 100_000, 0)
				slow := &slowLine{name: campDay, taken: make(chan struct{}), goOn: make(chan struct{})}
				p := parts{incarnation: "first"}
				with(&p, slow)
				m := w.start(p)
				defer m.stop()
				<-slow.taken
				e, err := w.leases.Get(w.ctx, "node/first")
				if err != nil {
					w.Fatal(err)
				}
				gone := fmt.Appendf(nil, `{"v":1,"ended":%d}`, time.Now().UnixMilli())
				if _, err := w.leases.Put(w.ctx, "node/first", gone, e.Revision); err != nil {
					w.Fatal(err)
				}
				time.Sleep(20 * time.Second) // its next sign of life
				close(slow.goOn)
				w.eventually(time.Minute, "it reserves", func() bool {
					a, ok := m.reserve("autumn", 1000)
					for _, lease := range a.leases {
						if incarnation(lease) == "first" {
							w.Fatalf("from %v, taken before it began anew", a.leases)
						}
					}
					return ok
				})
			})
		})
	}
}

// A slowLine is a line whose first lease is taken at once, which takes long to be told.
type slowLine struct {
	name        string
	taken, goOn chan struct{}
	once        sync.Once
}

func (s *slowLine) wait() {
	s.once.Do(func() {
		close(s.taken)
		<-s.goOn
	})
}

func (s *slowLine) bucket(kv store.KV) store.KV { return slowLineKV{kv, s} }

type slowLineKV struct {
	store.KV
	*slowLine
}

func (k slowLineKV) Put(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	written, err := k.KV.Put(ctx, key, value, revision)
	if key == k.name {
		k.wait()
	}
	return written, err
}

func (s *slowLine) journal(j budget.Journal) budget.Journal { return slowLineJournal{j, s} }

type slowLineJournal struct {
	budget.Journal
	*slowLine
}

func (j slowLineJournal) Append(ctx context.Context, events ...journal.Event) (store.Seq, error) {
	seq, err := j.Journal.Append(ctx, events...)
	if events[0].Kind == journal.Lease && events[0].Line == j.name {
		j.wait()
	}
	return seq, err
}

// A short outage takes nothing from a node: it goes on with its leases, and what it has
// reserved meanwhile is paid.
func TestShortOutage(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.inn(1_000_000, 100_000, 0)
		cut, n := w.startCuttable()
		defer cut.stop()
		other := w.start(parts{})
		defer other.stop()
		w.leased(cut, campDay, innDay)
		n.set(&n.cut, true)
		time.Sleep(holdTime - 10*time.Second)
		a, ok := cut.reserve("autumn", 1000)
		n.heal()
		if !ok {
			t.Fatal("refused while it was cut off")
		}
		time.Sleep(time.Minute)
		b, ok := cut.reserve("autumn", 1000)
		if !ok || b.leases[0] != a.leases[0] {
			t.Errorf("afterwards: %v from %v, before from %v", ok, b.leases, a.leases)
		}
		cut.beacon(a)
		cut.beacon(b)
		time.Sleep(time.Second)
		if got := other.hot.SpendTotal("autumn"); got != 2000 {
			t.Errorf("%d spent of 2,000", got)
		}
	})
}

// A node that hears late of what others write asks the leader when its own writes meet
// another revision; and what it hears late is not taken for what is now: it has
// reserved since from leases that an older line does not have.
func TestLateNews(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.inn(1_000_000, 100_000, 0)
		m, n := w.startCuttable()
		defer m.stop()
		w.leased(m, campDay, innDay)
		var ads []ad
		reserve := func(n int) {
			for range n {
				if a, ok := m.reserve("autumn", 1000); ok {
					ads = append(ads, a)
				}
				time.Sleep(time.Second)
			}
		}
		n.set(&n.stale, true)
		reserve(8) // and takes another lease: the news of that is what comes late
		other := w.start(parts{})
		defer other.stop()
		w.leased(other, campDay, innDay)
		reserve(52)
		if l := m.line(campDay); l.Leases < 4 || len(ads) < 40 {
			t.Fatalf("%d impressions from %+v", len(ads), l)
		}
		n.heal()
		time.Sleep(30 * time.Second)
		for _, a := range ads {
			m.beacon(a)
		}
		time.Sleep(time.Second)
		if got, want := m.hot.SpendTotal("autumn"), deckle.Money(1000*len(ads)); got != want {
			t.Errorf("%d paid of %d", got, want)
		}
	})
}

// A lease whose answer was lost is never reserved from, and comes back at once.
func TestOrphansAreSealed(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.inn(1_000_000, 100_000, 0)
		m := w.start(parts{})
		defer m.stop()
		w.eventually(5*time.Second, "it lives", func() bool { return w.log.Pending() == 0 && len(m.Checks()) > 0 })
		w.leases.Fail(memory.Fault{LoseAnswer: true}, memory.Fault{LoseAnswer: true}, memory.Fault{LoseAnswer: true})
		w.leased(m, campDay, innDay)
		w.eventually(10*time.Second, "there are no orphans", func() bool {
			return m.line(campDay).Leases == 1 && m.line(innDay).Leases == 1
		})
		if l := m.line(campDay); l.Settled != 0 || l.Free != l.Leased {
			t.Errorf("after the orphans: %+v", l)
		}
	})
}

// What a lease has paid for is forgotten by the fold two days after its seal. One that was
// not settled by then counts as spent, all of it: what was spent of a total is never
// spent again.
func TestForgottenLeases(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.inn(1_000_000, 100_000, 20_000)
		first := w.start(parts{})
		w.leased(first, campDay, campTotal, innDay)
		if got := first.spend("autumn", 2, 1000); got != 2 {
			t.Fatalf("%d impressions", got)
		}
		was := first.line(campTotal)
		first.stop() // seals, and settles nothing
		time.Sleep(72 * time.Hour)
		later := w.start(parts{kv: func(store.KV) store.KV { return memory.NewKV() }})
		later.beacon(ad{"autumn", "inn", 1, w.request(), []string{"of nobody"}, time.Now()}) // the journal's time goes on
		later.kill()

		second := w.start(parts{})
		defer second.stop()
		w.leased(second, "campaign/autumn/2000-01-04", campTotal)
		if l := second.line(campTotal); l.Settled != was.Settled+was.Leased {
			t.Errorf("%d are settled; before the end it was %+v", l.Settled, was)
		}
		got, want := second.spend("autumn", 200, 1000), int(20_000-was.Settled-was.Leased)/1000
		if got != want {
			t.Errorf("%d more impressions, want %d", got, want)
		}
	})
}

// A value that this program could not have written is left alone, and said.
func TestUnknownForms(t *testing.T) {
	t.Parallel()
	for _, value := range []string{
		"", "x", "[]", "{}", `{"v":2,"settled":0}`, `{"v":1,"settled":0,"owner":"new"}`, `{"v":1,"settled":-1}`, `{"v":1,"settled":0,"outside":-1}`, `{"v":1,"settled":9223372036854775807,"outside":1}`,
		`{"v":1,"settled":0,"leases":[{"id":"a","node":"b","amount":0}]}`,
		`{"v":1,"settled":9223372036854775807,"leases":[{"id":"a","node":"b","amount":1}]}`,
		`{"v":1,"settled":0,"settled":5}`, `{"v":1,"settled":0}{}`,
	} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				w.inn(1_000_000, 100_000, 0)
				if _, err := w.leases.Put(w.ctx, campDay, []byte(value), 0); err != nil {
					t.Fatal(err)
				}
				m := w.start(parts{})
				defer m.stop()
				w.leased(m, innDay)
				if _, ok := m.reserve("autumn", 1000); ok {
					t.Error("reserved from a line that cannot be read")
				}
				if c := m.Checks()[0]; c.State != obs.Degraded || !strings.Contains(c.Note, "1 lines are of a form") {
					t.Errorf("check = %+v", c)
				}
				e, err := w.leases.Get(w.ctx, campDay)
				if err != nil || string(e.Value) != value {
					t.Errorf("it is %q now, %v", e.Value, err)
				}
			})
		})
	}
}

// Ids that no token could have, and those that are held, reserve nothing.
func TestRequestIDs(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.inn(1_000_000, 100_000, 0)
		m := w.start(parts{})
		defer m.stop()
		w.leased(m, campDay, innDay)
		c, _ := w.catalog.Snapshot().Campaign("autumn")
		a, _ := w.catalog.Snapshot().Advertiser("inn")
		before := m.line(campDay).Free
		for _, id := range []string{"", "r1", "0123456789ABCDEF", "0123456789abcde", "0123456789abcdef0"} {
			if _, ok := m.Reserve(c, a, 1, id, time.Now()); ok {
				t.Errorf("reserved for %q", id)
			}
			m.Release(id)
		}
		if _, ok := m.Reserve(c, a, -1, w.request(), time.Now()); ok {
			t.Error("reserved less than nothing")
		}
		id := w.request()
		if _, ok := m.Reserve(c, a, 7, id, time.Now()); !ok {
			t.Fatal("refused")
		}
		if _, ok := m.Reserve(c, a, 7, id, time.Now()); ok {
			t.Error("reserved twice for one slot")
		}
		if got := m.line(campDay).Free; got != before-7 {
			t.Errorf("%d free, want %d", got, before-7)
		}
	})
}

// Names of lines are those that the journal takes.
func TestLineNames(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		budget.TotalLine("c"): "campaign/c", budget.DayLine("c", "2026-11-30"): "campaign/c/2026-11-30",
		budget.AdvertiserLine("a", "2026-11-30"): "advertiser/a/2026-11-30",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// countingKV counts writes of lines.
type countingKV struct {
	store.KV
	n *atomic.Int64
}

func (k countingKV) Put(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if !strings.HasPrefix(key, "node/") {
		k.n.Add(1)
	}
	return k.KV.Put(ctx, key, value, revision)
}

// How often a day of steady traffic writes, on one node and on three: with 10,000
// campaigns less than one hundredth of what a store takes, which is 470 a second.
func TestWritesOfADay(t *testing.T) {
	t.Parallel()
	if os.Getenv("DECKLE_SLOW") == "" {
		t.Skip("a day of traffic; set DECKLE_SLOW=1")
	}
	for _, nodes := range []int{1, 3} {
		inWorld(t, func(w *world) {
			w.put(advertiser("inn", 1_000_000_000))
			w.put(campaign("autumn", "inn", 90_000_000, 0))
			var n atomic.Int64
			var all []*machine
			for range nodes {
				m := w.start(parts{kv: func(kv store.KV) store.KV { return countingKV{kv, &n} }})
				defer m.kill()
				w.leased(m, campDay, innDay)
				all = append(all, m)
			}
			shown := 0
			for i := range 24*3600 - 60 {
				m := all[i%nodes]
				if a, ok := m.reserve("autumn", 1000); ok {
					shown++
					if i%10 > 0 {
						m.beacon(a)
					}
				}
				time.Sleep(time.Second)
			}
			perSecond := float64(n.Load()) * 10_000 / 86_400
			t.Logf("%d nodes: %d impressions, %d writes of two lines; %.0f a second with 10,000 campaigns", nodes, shown, n.Load(), perSecond)
			if perSecond > 470 || shown < 80_000 {
				t.Error("too many writes, or too few impressions")
			}
		})
	}
}
