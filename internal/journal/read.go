package journal

import (
	"context"
	"errors"
	"fmt"

	"deckle/internal/store"
)

// ErrGap says that messages of the log are missing.
var ErrGap = errors.New("messages are missing")

// Read calls yield for every event from the envelope at from on, in order, and
// waits for more when it has read all. 0 is the beginning, as is 1. It returns nil
// when ctx is done, and yield's error when it returns one.
//
// An envelope is read whole or not at all. One that cannot be read stops it, with
// an error that names the sequence and wraps [ErrCorrupt] or [ErrNewer], and so do
// missing ones, with [ErrGap]: whoever counts must not count past what it does not
// know.
//
// What a record points to is yield's to keep.
func (j *Journal) Read(ctx context.Context, from store.Seq, yield func(Record) error) error {
	var (
		next   = max(from, 1)
		reader decoder
		events []Event
	)
	return j.log.Read(ctx, next, func(m store.Message) (err error) {
		if m.Seq != next {
			return fmt.Errorf("read journal: sequence %d follows where %d should: %w", m.Seq, next, ErrGap)
		}
		next++
		if events, err = reader.decode(events[:0], m.Data); err != nil {
			return fmt.Errorf("read journal: sequence %d: %w", m.Seq, err)
		}
		for i, e := range events {
			if err := yield(Record{Seq: m.Seq, Index: i, Event: e}); err != nil {
				return err
			}
		}
		return nil
	})
}

// Last is the sequence of the newest envelope: who has read up to it has read
// everything that was acknowledged before the call. 0 when there is none.
func (j *Journal) Last(ctx context.Context) (store.Seq, error) {
	state, err := j.log.State(ctx)
	if err != nil {
		return 0, fmt.Errorf("ask for the end of the journal: %w", err)
	}
	return state.Last, nil
}
