package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"deckle/internal/store"
)

// ErrGap says that messages are missing where reading should begin: they have been
// purged.
var ErrGap = errors.New("messages are missing")

// Read calls yield with the events of every envelope of a log from the sequence
// from on, in order, and waits for more when it has read all. 0 is the beginning, as
// is 1. It returns nil when ctx is done, yield's error when it returns one, and
// otherwise what ended the log's Read.
//
// An envelope is read whole or not at all. One that cannot be read stops it, with
// an error that names the sequence and wraps [ErrCorrupt] or [ErrNewer], and so do
// purged ones, with [ErrGap]: whoever counts must not count past what it does not
// know.
//
// An At that is more than [MaxAhead] ahead of the store's time of the envelope is
// that time in its record: Append lets none of them in, but an older journal may have
// some.
//
// The records are yield's to keep.
func Read(ctx context.Context, log store.Log, from store.Seq, yield func([]Record) error) error {
	var (
		next   = max(from, 1)
		reader decoder
		events []Event
	)
	return log.Read(ctx, next, func(m store.Message) (err error) {
		if m.Seq != next {
			return fmt.Errorf("read journal: sequence %d comes where %d should: %w", m.Seq, next, ErrGap)
		}
		next++
		if events, err = reader.decode(events[:0], m.Data); err != nil {
			return fmt.Errorf("read journal: sequence %d: %w", m.Seq, err)
		}
		records := make([]Record, len(events))
		for i, e := range events {
			if e.checkAhead(m.Time) != nil {
				e.At = m.Time.UTC().Truncate(time.Millisecond)
			}
			records[i] = Record{Seq: m.Seq, Index: i, Event: e}
		}
		return yield(records)
	})
}
