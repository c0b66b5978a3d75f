package budget_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"deckle"
	"deckle/internal/budget"
	"deckle/internal/journal"
	"deckle/internal/projection"
	"deckle/internal/store"
)

// A mutant is a node with one of the rules taken out. Histories must find each.
type mutant struct {
	name string
	rare bool // it takes histories to find it: with DECKLE_SLOW=1 only
	with func(p *parts)
}

var mutants = []mutant{
	{"compare-and-set without a revision", false, func(p *parts) {
		p.kv = func(kv store.KV) store.KV { return blindKV{kv} }
	}},
	{"reserves before the lease's event is durable", false, func(p *parts) {
		p.journal = func(j budget.Journal) budget.Journal { return &hastyJournal{Journal: j} }
	}},
	{"settles before the seal is folded", true, func(p *parts) {
		asked := &sync.Map{}
		p.journal = func(j budget.Journal) budget.Journal { return notingJournal{j, asked} }
		p.fold = func(f budget.Fold) budget.Fold { return hastyFold{f, asked} }
	}},
	{"uses a lease again after a restart", false, func(p *parts) {
		p.incarnation = "always"
	}},
	{"believes a write that nobody has answered", true, func(p *parts) {
		p.kv = func(kv store.KV) store.KV { return credulousKV{kv} }
	}},
	{"writes a line without the leases of others", false, func(p *parts) {
		p.kv = func(kv store.KV) store.KV { return forgetfulKV{kv} }
	}},
	{"settles with another sum than was paid", false, func(p *parts) {
		p.fold = func(f budget.Fold) budget.Fold { return generousFold{f} }
	}},
	{"a total forgets what was spent without it", true, func(p *parts) {
		p.fold = func(f budget.Fold) budget.Fold { return otherTotal{f, 0} }
	}},
	{"a total counts twice what was spent without it", false, func(p *parts) {
		p.fold = func(f budget.Fold) budget.Fold { return otherTotal{f, 2} }
	}},
}

func TestHistoriesFindMutants(t *testing.T) {
	t.Parallel()
	tries := 60
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			if m.rare && os.Getenv("DECKLE_SLOW") == "" {
				t.Skip("rare: set DECKLE_SLOW=1")
			}
			for seed := range uint64(tries) {
				_, err := tellHistory(t, seeded{rand.New(rand.NewPCG(seed, 0))}, 140, func(h *history, n *nodeParts) parts {
					p := h.honest(n)
					m.with(&p)
					return p
				})
				if err != nil {
					if os.Getenv("DECKLE_SLOW") != "" || testing.Verbose() {
						t.Logf("found in history %d: %v", seed, err)
					}
					return
				}
			}
			t.Errorf("not found in %d histories", tries)
		})
	}
}

type seeded struct{ *rand.Rand }

func (s seeded) upTo(n int) int { return s.IntN(n) }

// blindKV writes over whatever there is.
type blindKV struct{ store.KV }

func (k blindKV) Put(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	written, err := k.KV.Put(ctx, key, value, revision)
	for errors.Is(err, store.ErrConflict) && !strings.HasPrefix(key, "node/") {
		var e store.Entry
		if e, err = k.Get(ctx, key); err == nil {
			written, err = k.KV.Put(ctx, key, value, e.Revision)
		}
	}
	return written, err
}

// hastyJournal says that leases are durable before they are.
type hastyJournal struct {
	budget.Journal
	mu   sync.Mutex
	kept []journal.Event
}

func (j *hastyJournal) Append(ctx context.Context, events ...journal.Event) (store.Seq, error) {
	j.mu.Lock()
	if events[0].Kind == journal.Lease {
		j.kept = append(j.kept, events...)
		j.mu.Unlock()
		return 1, nil
	}
	events = append(j.kept, events...)
	j.kept = nil
	j.mu.Unlock()
	return j.Journal.Append(ctx, events...)
}

// notingJournal notes what was sealed.
type notingJournal struct {
	budget.Journal
	asked *sync.Map
}

func (j notingJournal) Append(ctx context.Context, events ...journal.Event) (store.Seq, error) {
	seq, err := j.Journal.Append(ctx, events...)
	for _, e := range events {
		if e.Kind == journal.Seal {
			j.asked.Store(e.Lease, true)
		}
	}
	return seq, err
}

// hastyFold has folded what has been told and not yet come.
type hastyFold struct {
	budget.Fold
	asked *sync.Map
}

func (f hastyFold) Lease(id string) (projection.Lease, bool) {
	l, known := f.Fold.Lease(id)
	if _, sealed := f.asked.Load(id); sealed {
		l.Sealed, known = 1, true
	}
	return l, known
}

// generousFold has leases pay for half of what they have, whatever they paid.
type generousFold struct{ budget.Fold }

func (f generousFold) Lease(id string) (projection.Lease, bool) {
	l, known := f.Fold.Lease(id)
	if l.Sealed != 0 {
		l.Spent = l.Amount / 2
	}
	return l, known
}

// otherTotal has campaigns spend so many times what they have.
type otherTotal struct {
	budget.Fold
	times deckle.Money
}

func (f otherTotal) SpendTotal(campaign string) deckle.Money {
	return f.times * f.Fold.SpendTotal(campaign)
}

// credulousKV takes silence for success.
type credulousKV struct{ store.KV }

func (k credulousKV) Put(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	written, err := k.KV.Put(ctx, key, value, revision)
	if errors.Is(err, store.ErrUnavailable) && !errors.Is(err, errKilled) && !strings.HasPrefix(key, "node/") {
		return revision + 1, nil
	}
	return written, err
}

// forgetfulKV knows the leases of one node only: of the last in the list.
type forgetfulKV struct{ store.KV }

func (k forgetfulKV) Watch(ctx context.Context, yield func(store.Change) error) error {
	return k.KV.Watch(ctx, func(c store.Change) error {
		if len(c.Value) > 0 && !strings.HasPrefix(c.Key, "node/") {
			c.Value = withoutOthers(c.Value)
		}
		return yield(c)
	})
}

func withoutOthers(value []byte) []byte {
	var line map[string]any
	if err := json.Unmarshal(value, &line); err != nil {
		panic(fmt.Sprintf("%s: %v", value, err))
	}
	leases, _ := line["leases"].([]any)
	if len(leases) == 0 {
		return value
	}
	last := leases[len(leases)-1].(map[string]any)["node"]
	line["leases"] = slices.DeleteFunc(leases, func(g any) bool { return g.(map[string]any)["node"] != last })
	out, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	return out
}
