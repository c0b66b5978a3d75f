package memory

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"deckle/internal/store"
)

// window is how long an id is remembered.
const window = 2 * time.Minute

// A Log is a store.Log in memory.
type Log struct {
	faults

	mu       sync.Mutex
	board    board
	messages []store.Message // the first has sequence first
	first    store.Seq
	bytes    uint64
	taken    map[string]store.Message // by id; those older than the window mean nothing
	limit    uint64                   // bytes; 0 for none
}

// NewLog makes an empty log.
func NewLog() *Log {
	return &Log{first: 1, board: board{changed: make(chan struct{})}, taken: map[string]store.Message{}}
}

// Append is that of store.Log.
func (l *Log) Append(ctx context.Context, id string, data []byte) (seq store.Seq, err error) {
	if err := store.CheckID(id); err != nil {
		return 0, fmt.Errorf("append: %w", err)
	}
	err = l.write(ctx, "append", func() (err error) {
		seq, err = l.add(id, data)
		return err
	})
	if err != nil {
		return 0, err
	}
	return seq, nil
}

func (l *Log) add(id string, data []byte) (store.Seq, error) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.board.closed {
		return 0, fmt.Errorf("%w: %w", store.ErrUnavailable, errClosed)
	}
	if len(data) > store.MaxMessage {
		return 0, store.ErrTooLarge
	}
	if m, ok := l.taken[id]; ok && now.Sub(m.Time) < window {
		return m.Seq, nil
	}
	if l.limit > 0 && l.bytes+uint64(len(data)) > l.limit {
		return 0, store.ErrFull
	}
	m := store.Message{Seq: l.first + store.Seq(len(l.messages)), Time: now, Data: slices.Clone(data)}
	l.messages = append(l.messages, m)
	l.bytes += uint64(len(data))
	l.taken[id] = m
	l.board.turn()
	return m.Seq, nil
}

// Limit makes the log full at so many bytes of messages; 0 for never.
func (l *Log) Limit(bytes uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limit = bytes
}

// Purge removes the messages before a place, as the archive does.
func (l *Log) Purge(before store.Seq) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(max(before, l.first)-l.first, store.Seq(len(l.messages)))
	for _, m := range l.messages[:n] {
		l.bytes -= uint64(len(m.Data))
	}
	l.messages = slices.Clone(l.messages[n:])
	l.first += n
}

// Read is that of store.Log. The data that it yields is overwritten when yield
// returns: whoever keeps it learns so.
func (l *Log) Read(ctx context.Context, from store.Seq, yield func(store.Message) error) error {
	next := max(from, 1)
	if st, err := l.State(ctx); ctx.Err() != nil {
		return nil
	} else if err != nil {
		return err
	} else if next > st.Last+1 {
		return fmt.Errorf("read: %w: it ends at message %d, and %d is asked for", store.ErrDamaged, st.Last, next)
	}
	for {
		m, changed, err := l.at(next)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if changed != nil {
			select {
			case <-changed:
			case <-ctx.Done():
			}
			continue
		}
		lent := slices.Clone(m.Data)
		m.Data = lent
		err = yield(m)
		clear(lent)
		if err != nil {
			return err
		}
		next = m.Seq + 1
	}
}

// at returns the first message from a place on, or what is closed when there may
// be one.
func (l *Log) at(seq store.Seq) (store.Message, <-chan struct{}, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := max(seq, l.first) - l.first
	switch {
	case l.board.closed:
		return store.Message{}, nil, fmt.Errorf("read: %w: %w", store.ErrUnavailable, errClosed)
	case i < store.Seq(len(l.messages)):
		return l.messages[i], nil, nil
	default:
		return store.Message{}, l.board.changed, nil
	}
}

// State is that of store.Log.
func (l *Log) State(ctx context.Context) (store.LogState, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.board.closed {
		return store.LogState{}, fmt.Errorf("state: %w: %w", store.ErrUnavailable, errClosed)
	}
	if ctx.Err() != nil {
		return store.LogState{}, fmt.Errorf("state: %w: %w", store.ErrUnavailable, context.Cause(ctx))
	}
	return store.LogState{First: l.first, Last: l.first + store.Seq(len(l.messages)) - 1, Bytes: l.bytes}, nil
}

// Close makes every call, also those that wait, end with ErrUnavailable. What is
// in the log stays: see Reopen.
func (l *Log) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.board.closed = true
	l.board.turn()
}

// Reopen is the log after a restart.
func (l *Log) Reopen() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.board.closed = false
}
