package journal_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckle/internal/journal"
	"deckle/internal/store/memory"
)

// An event may be an hour ahead of the node's clock and no more, alone or among
// others; then none of them is written.
func TestAppendRefusesWhatIsAhead(t *testing.T) {
	t.Parallel()
	inWorld(t, journal.Config{}, func(w *world) {
		e := view(1)
		e.At = time.Now().Add(journal.MaxAhead)
		if _, err := w.Append(w.t.Context(), e); err != nil {
			w.t.Errorf("at the bound: %v", err)
		}
		for _, ahead := range []time.Duration{journal.MaxAhead + time.Millisecond, 4 * 24 * time.Hour, 250 * 365 * 24 * time.Hour} {
			e := view(3)
			e.At = time.Now().Add(ahead)
			_, err := w.Append(w.t.Context(), view(2), e)
			if field, ok := errors.AsType[*journal.FieldError](err); !ok || field.Field != "At" || field.Kind != journal.View {
				w.t.Errorf("%v ahead: got %v", ahead, err)
			}
		}
		if got := w.content(); got != "1" {
			w.t.Errorf("the journal has %s", got)
		}
	})
}

// What an older program let in is read at the store's time, to the millisecond as
// every time; what is within the bound, or late, is read as it is.
func TestReadBoundsWhatIsAhead(t *testing.T) {
	t.Parallel()
	inWorld(t, journal.Config{}, func(w *world) {
		taken := time.Now().Add(1_500 * time.Microsecond)
		written := []time.Duration{
			-80 * time.Hour, 0, journal.MaxAhead + time.Millisecond, journal.MaxAhead + 2*time.Millisecond,
			96 * time.Hour, 70 * 365 * 24 * time.Hour,
		}
		bounded := time.Now().Add(time.Millisecond).UTC()
		want := []time.Time{w.start.Add(-80 * time.Hour).UTC(), w.start.UTC(), w.start.Add(journal.MaxAhead + time.Millisecond).UTC(), bounded, bounded, bounded}
		log := memory.NewLog()
		log.Skew(time.Until(taken))
		events := views(1, 2, 3, 4, 5, 6)
		for i := range events {
			events[i].At = w.start.Add(written[i])
		}
		if _, err := log.Append(w.t.Context(), "a", encode(w.t, events...)); err != nil {
			w.t.Fatal(err)
		}
		var got []time.Time
		for _, r := range read(w.t, log)[0] {
			got = append(got, r.At)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			w.t.Error(diff)
		}
	})
}
