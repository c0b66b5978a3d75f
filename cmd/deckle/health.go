package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"deckle/internal/obs"
	"deckle/internal/store"
)

// wedgedAfter is for how long every write of a stream may fail before the store is
// opened anew: after a failed write to disk the engine can stay stopped for good.
const wedgedAfter = 10 * time.Second

// errWedged ends a store whose writes have failed for too long. What it wraps may
// pass: the store is opened again.
var errWedged = fmt.Errorf("writes have failed for %v: %w", wedgedAfter, store.ErrUnavailable)

// health is how the writes to one stream of a store go.
type health struct {
	part   string
	wedged chan<- struct{} // has room for one

	mu    sync.Mutex
	last  error     // of the last write; nil: it succeeded, or was refused for its own sake
	since time.Time // from when on every write has failed
}

// wrote notes how a write went.
func (h *health) wrote(err error) {
	if errors.Is(err, context.Canceled) {
		return // its writer went away
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !errors.Is(err, store.ErrUnavailable) {
		h.last = nil
		return
	}
	if h.last == nil {
		h.since = time.Now()
	}
	h.last = err
	if time.Since(h.since) >= wedgedAfter && !errors.Is(err, store.ErrFull) {
		select {
		case h.wedged <- struct{}{}:
		default:
		}
	}
}

func (h *health) check() obs.Check {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last == nil {
		return obs.Check{Part: h.part, State: obs.OK}
	}
	return obs.Check{Part: h.part, State: obs.Degraded, Note: fmt.Sprintf("the last write failed, since %s: %v", h.since.UTC().Format(time.RFC3339), h.last)}
}

// watchedLog and watchedKV tell a health how their writes go.
type watchedLog struct {
	store.Log
	health *health
}

// Append is the log's.
func (w watchedLog) Append(ctx context.Context, id string, data []byte) (store.Seq, error) {
	seq, err := w.Log.Append(ctx, id, data)
	w.health.wrote(err)
	return seq, err
}

type watchedKV struct {
	store.KV
	health *health
}

// Put is the bucket's.
func (w watchedKV) Put(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	rev, err := w.KV.Put(ctx, key, value, revision)
	w.health.wrote(err)
	return rev, err
}

// Delete is the bucket's.
func (w watchedKV) Delete(ctx context.Context, key string, revision uint64) error {
	err := w.KV.Delete(ctx, key, revision)
	w.health.wrote(err)
	return err
}

// spaceCheck says whether a store has room for writes at all.
func spaceCheck(ctx context.Context, st *store.Store) obs.Check {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	status, err := st.Status(ctx)
	switch {
	case err != nil:
		return obs.Check{Part: "store", State: obs.Degraded, Note: err.Error()}
	case status.Free >= 0 && status.Free < store.DefaultReserve:
		return obs.Check{Part: "store", State: obs.Degraded, Note: fmt.Sprintf("the disk is full: %d MiB are free, below %d MiB nothing is written", status.Free>>20, store.DefaultReserve>>20)}
	}
	return obs.Check{Part: "store", State: obs.OK}
}

// lent registers metrics that are given back when what they count ends, so that it
// can be opened again.
type lent struct {
	prometheus.Registerer
	collectors []prometheus.Collector
}

// Register makes a collector known until giveBack.
func (l *lent) Register(c prometheus.Collector) error {
	err := l.Registerer.Register(c)
	if err == nil {
		l.collectors = append(l.collectors, c)
	}
	return err
}

func (l *lent) giveBack() {
	for _, c := range l.collectors {
		l.Unregister(c)
	}
}
