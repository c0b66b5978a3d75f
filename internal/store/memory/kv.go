package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"deckle/internal/store"
)

// A KV is a store.KV in memory.
type KV struct {
	faults

	mu       sync.Mutex
	board    board
	newest   map[string]store.Change // removals as well
	revision uint64
}

// NewKV makes an empty bucket.
func NewKV() *KV {
	return &KV{board: board{changed: make(chan struct{})}, newest: map[string]store.Change{}}
}

// Get is that of store.KV.
func (k *KV) Get(ctx context.Context, key string) (store.Entry, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Entry{}, fmt.Errorf("get: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.board.closed {
		return store.Entry{}, fmt.Errorf("get: %w: %w", store.ErrUnavailable, errClosed)
	}
	if ctx.Err() != nil {
		return store.Entry{}, fmt.Errorf("get: %w: %w", store.ErrUnavailable, context.Cause(ctx))
	}
	c, ok := k.newest[key]
	if !ok || c.Deleted {
		return store.Entry{}, fmt.Errorf("get %s: %w", key, store.ErrNotFound)
	}
	e := c.Entry
	e.Value = slices.Clone(e.Value)
	return e, nil
}

// Put is that of store.KV.
func (k *KV) Put(ctx context.Context, key string, value []byte, revision uint64) (written uint64, err error) {
	if len(value) > store.MaxMessage {
		return 0, fmt.Errorf("put %s: %w", key, store.ErrTooLarge)
	}
	err = k.set(ctx, "put", store.Change{Entry: store.Entry{Key: key, Value: slices.Clone(value)}}, revision, &written)
	return written, err
}

// Delete is that of store.KV.
func (k *KV) Delete(ctx context.Context, key string, revision uint64) error {
	return k.set(ctx, "delete", store.Change{Entry: store.Entry{Key: key}, Deleted: true}, revision, new(uint64))
}

// set makes c the newest of its key by compare-and-set. written is 0 where an
// error says so or nothing was to be written.
func (k *KV) set(ctx context.Context, operation string, c store.Change, revision uint64, written *uint64) error {
	if err := store.CheckKey(c.Key); err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	var got uint64
	err := k.write(ctx, operation+" "+c.Key, func() error {
		now := k.now()
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.board.closed {
			return fmt.Errorf("%w: %w", store.ErrUnavailable, errClosed)
		}
		var current uint64
		if old, ok := k.newest[c.Key]; ok && !old.Deleted {
			current = old.Revision
		}
		if current != revision {
			return fmt.Errorf("%w: it is %d", store.ErrConflict, current)
		}
		if c.Deleted && current == 0 {
			return nil
		}
		k.revision++
		c.Revision, c.Time = k.revision, now
		k.newest[c.Key] = c
		got = c.Revision
		k.board.turn()
		return nil
	})
	if err == nil {
		*written = got
	}
	return err
}

// Watch is that of store.KV. Like the engine it keeps one value of a key: one
// that was replaced before the watcher came to it is not told.
func (k *KV) Watch(ctx context.Context, yield func(store.Change) error) error {
	var seen uint64
	complete := false
	for {
		changes, changed, err := k.since(seen)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		for _, c := range changes {
			if err := yield(c); err != nil {
				return err
			}
			seen = c.Revision
			if ctx.Err() != nil {
				return nil
			}
		}
		if !complete {
			complete = true
			if err := yield(store.Change{Complete: true}); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// since returns the changes after a revision, in order, and what is closed at the
// next one.
func (k *KV) since(revision uint64) ([]store.Change, <-chan struct{}, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.board.closed {
		return nil, nil, fmt.Errorf("watch: %w: %w", store.ErrUnavailable, errClosed)
	}
	var changes []store.Change
	for c := range maps.Values(k.newest) {
		if c.Revision > revision {
			c.Value = slices.Clone(c.Value)
			changes = append(changes, c)
		}
	}
	slices.SortFunc(changes, func(a, b store.Change) int { return int(a.Revision) - int(b.Revision) })
	return changes, k.board.changed, nil
}

// Close makes every call, also those that wait, end with ErrUnavailable. What is
// in the bucket stays: see Reopen.
func (k *KV) Close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.board.closed = true
	k.board.turn()
}

// Reopen is the bucket after a restart.
func (k *KV) Reopen() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.board.closed = false
}
