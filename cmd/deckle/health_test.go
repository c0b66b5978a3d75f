package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"deckle/internal/obs"
	"deckle/internal/store"
	"deckle/internal/store/memory"
)

// A stream whose writes fail is told in readiness at once, and given up after ten
// seconds; one that is full is told, and not given up, since opening it again
// would not help; one good write ends it.
func TestHealthOfWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wedged := make(chan struct{}, 1)
		h := &health{part: "catalog", wedged: wedged}
		kv := memory.NewKV()
		w := watchedKV{kv, h}
		put := func(key string) { _, _ = w.Put(t.Context(), key, []byte("x"), 0) }
		isWedged := func() bool {
			select {
			case <-wedged:
				return true
			default:
				return false
			}
		}

		put("a")
		put("a") // a lost race is no failure
		if c := h.check(); c.State != obs.OK {
			t.Errorf("after a conflict: %+v", c)
		}
		kv.Fail(memory.Fault{Refuse: store.ErrUnavailable})
		put("b")
		if c := h.check(); c.State != obs.Degraded || !strings.Contains(c.Note, "unavailable") {
			t.Errorf("after a failure: %+v", c)
		}
		<-time.After(wedgedAfter)
		h.wrote(context.Canceled) // says nothing
		if isWedged() {
			t.Error("given up without a write")
		}
		kv.Fail(memory.Fault{Refuse: store.ErrUnavailable})
		put("b")
		if !isWedged() {
			t.Error("not given up")
		}
		put("b")
		if c := h.check(); c.State != obs.OK {
			t.Errorf("after a good write: %+v", c)
		}
		for range 2 {
			kv.Fail(memory.Fault{Refuse: store.ErrFull})
			put("c")
			<-time.After(wedgedAfter)
		}
		if c := h.check(); c.State != obs.Degraded || !strings.Contains(c.Note, "full") || isWedged() {
			t.Errorf("when full: %+v", c)
		}
		if !errors.Is(errWedged, store.ErrUnavailable) {
			t.Error("a wedged store would not be opened again")
		}
	})
}

// Metrics that were given back can be registered again.
func TestLentMetrics(t *testing.T) {
	r := prometheus.NewRegistry()
	for range 2 {
		l := &lent{Registerer: r}
		if err := l.Register(prometheus.NewCounter(prometheus.CounterOpts{Name: "x"})); err != nil {
			t.Fatal(err)
		}
		l.giveBack()
	}
}
