package journal_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"deckle/internal/journal"
	"deckle/internal/journal/journaltest"
	"deckle/internal/store"
	"deckle/internal/store/memory"
)

// fill writes messages to a log as they are.
func fill(t testing.TB, messages ...[]byte) *memory.Log {
	t.Helper()
	log := memory.NewLog()
	for i, m := range messages {
		if _, err := log.Append(t.Context(), string(rune('a'+i)), m); err != nil {
			t.Fatal(err)
		}
	}
	return log
}

func encode(t testing.TB, events ...journal.Event) []byte {
	t.Helper()
	data, err := journal.Encode(events)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Records have their places, from wherever reading begins, and are the reader's to
// keep.
func TestReadingFromASequence(t *testing.T) {
	t.Parallel()
	events := journaltest.New(6, journaltest.Config{}).Take(9)
	log := fill(t, encode(t, events[:2]...), encode(t, events[2:3]...), encode(t, events[3:]...))
	var all [][]journal.Record
	n := 0
	for seq, size := range []int{2, 1, 6} {
		var records []journal.Record
		for i := range size {
			records = append(records, journal.Record{Seq: store.Seq(seq + 1), Index: i, Event: events[n]})
			n++
		}
		all = append(all, records)
	}
	for from, want := range [][][]journal.Record{all, all, all[1:], all[2:]} {
		var got [][]journal.Record
		ctx, cancel := context.WithCancel(t.Context())
		err := journal.Read(ctx, log, store.Seq(from), func(r []journal.Record) error {
			if got = append(got, r); len(got) == len(want) {
				cancel()
			}
			return nil
		})
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("from %d: %v\n%s", from, err, diff)
		}
	}
}

// Reading goes on with what is appended later.
func TestReadingWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := memory.NewLog()
		got := make(chan store.Seq, 10)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- journal.Read(ctx, log, 0, func(r []journal.Record) error {
				got <- r[0].Seq
				return nil
			})
		}()
		synctest.Wait()
		for i, id := range []string{"a", "b"} {
			if _, err := log.Append(ctx, id, encode(t, view(i))); err != nil {
				t.Fatal(err)
			}
			if seq := <-got; seq != store.Seq(i+1) {
				t.Errorf("got %d, want %d", seq, i+1)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestAnErrorOfYieldEndsReading(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	calls := 0
	err := journal.Read(t.Context(), fill(t, encode(t, view(1)), encode(t, view(2))), 0, func([]journal.Record) error {
		calls++
		return enough
	})
	if !errors.Is(err, enough) || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

// Whoever counts does not count past what it does not know.
func TestWhatCannotBeReadStopsReading(t *testing.T) {
	t.Parallel()
	good := encode(t, view(1), view(2))
	for name, c := range map[string]struct {
		log   *memory.Log
		is    error
		names string
		read  int
	}{
		"foreign": {fill(t, good, []byte("hello"), good), journal.ErrCorrupt, "sequence 2: no mark", 1},
		"damaged": {fill(t, good, append(good[:len(good)-1:len(good)-1], 0), good), journal.ErrCorrupt, "sequence 2: wrong checksum", 1},
		"newer":   {fill(t, envelope(7, good[2:]...)), journal.ErrNewer, "sequence 1: encoding version 7", 0},
		"half":    {fill(t, good, envelope(1, append(good[2:len(good)-4:len(good)-4], 99, 0, 0)...)), journal.ErrNewer, "sequence 2: event 2: kind 99", 1},
		"purged":  {purged(fill(t, good, good, good)), journal.ErrGap, "sequence 3 comes where 1 should", 0},
	} {
		read := 0
		err := journal.Read(t.Context(), c.log, 0, func([]journal.Record) error {
			read++
			return nil
		})
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.names) || read != c.read {
			t.Errorf("%s: read %d, then %v", name, read, err)
		}
	}
}

func purged(log *memory.Log) *memory.Log {
	log.Purge(3)
	return log
}
