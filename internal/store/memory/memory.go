// Package memory is a store that lives in memory: the twin of package store for
// tests in a synctest bubble, which the engine cannot be in.
//
// It is as strict as the engine, and its faults come when a test says so. Time is
// that of the bubble.
package memory

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"deckle/internal/store"
)

// A Fault is what goes wrong with one write. Its parts may be combined; the zero
// Fault is none.
type Fault struct {
	// Delay is how long the write waits before anything else happens. A context that
	// ends first ends it, with nothing written.
	Delay time.Duration

	// Refuse is the error that the write returns, with nothing written. It should wrap
	// one of package store.
	Refuse error

	// LoseAnswer returns ErrUnavailable after the write has happened.
	LoseAnswer bool
}

// faults are those of the next writes, in order, and how the store's clock is
// off.
type faults struct {
	mu   sync.Mutex
	next []Fault
	skew time.Duration
}

// Fail gives the next writes these faults, one each.
func (f *faults) Fail(next ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next = append(f.next, next...)
}

// Pending is how many faults have not happened yet.
func (f *faults) Pending() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.next)
}

// Skew sets the store's clock ahead of the bubble's.
func (f *faults) Skew(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.skew = d
}

func (f *faults) now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Now().Add(f.skew)
}

// write does what a write does, with the next fault. The write is not waited for
// under any lock.
func (f *faults) write(ctx context.Context, operation string, do func() error) error {
	f.mu.Lock()
	var fault Fault
	if len(f.next) > 0 {
		fault, f.next = f.next[0], f.next[1:]
	}
	f.mu.Unlock()

	if fault.Delay > 0 {
		select {
		case <-time.After(fault.Delay):
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w: %w", operation, store.ErrUnavailable, context.Cause(ctx))
	}
	if fault.Refuse != nil {
		return fmt.Errorf("%s: %w", operation, fault.Refuse)
	}
	if err := do(); err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	if fault.LoseAnswer {
		return fmt.Errorf("%s: %w: the answer was lost", operation, store.ErrUnavailable)
	}
	return nil
}

var errClosed = errors.New("store is closed")

// A board tells those who wait that something has changed.
type board struct {
	changed chan struct{} // closed at the next change
	closed  bool
}

func (b *board) turn() {
	close(b.changed)
	b.changed = make(chan struct{})
}
