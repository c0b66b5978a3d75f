package projection

import (
	"context"
	"fmt"

	"deckle/internal/journal"
	"deckle/internal/store"
)

// FromLog returns the journal that is in l, envelope by envelope.
func FromLog(l store.Log) Source { return logSource{l} }

type logSource struct{ log store.Log }

func (s logSource) Read(ctx context.Context, from store.Seq, yield func(Envelope) error) error {
	next := max(from, 1)
	return s.log.Read(ctx, next, func(m store.Message) error {
		if m.Seq != next {
			return fmt.Errorf("envelopes %d to %d: %w", next, m.Seq-1, journal.ErrGap)
		}
		next++
		events, err := journal.Decode(m.Data)
		if err != nil {
			return fmt.Errorf("envelope %d: %w", m.Seq, err)
		}
		e := Envelope{Seq: m.Seq, Records: make([]journal.Record, len(events))}
		for i, event := range events {
			e.Records[i] = journal.Record{Seq: m.Seq, Index: i, Event: event}
		}
		return yield(e)
	})
}

func (s logSource) State(ctx context.Context) (store.LogState, error) { return s.log.State(ctx) }
