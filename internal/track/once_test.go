package track_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"deckle/internal/journal"
	"deckle/internal/track"
)

func idOf(n int) journal.EventID { return journal.View.ID(fmt.Sprint(n)) }

// It remembers the last that were written, at least one generation of them and at
// most two.
func TestOnceIsBounded(t *testing.T) {
	const size = 100
	o, written := track.NewOnce(size), 0
	write := func() error { written++; return nil }
	for i := range 1_000 {
		for back := range min(i, size) + 1 { // itself, and then those that must be known
			if err := o.Do(t.Context(), idOf(i-back), write); err != nil || written != i+1 {
				t.Fatalf("%d were written, want %d: %v", written, i+1, err)
			}
		}
		if o.Held() > 2*size {
			t.Fatalf("%d ids are held", o.Held())
		}
	}
	if err := o.Do(t.Context(), idOf(0), write); err != nil || written != 1_001 {
		t.Errorf("the first of all is still known")
	}
}

// What was not written is as if nobody had tried, for whoever waited too.
func TestOnceAfterFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, broken := track.NewOnce(10), errors.New("broken")
		for name, fail := range map[string]func() error{
			"error": func() error { synctest.Wait(); return broken },
			"panic": func() error { synctest.Wait(); panic(broken) },
		} {
			waited := make(chan error, 1)
			func() {
				defer func() { _ = recover() }()
				_ = o.Do(t.Context(), idOf(1), func() error {
					go func() { waited <- o.Do(t.Context(), idOf(1), nil) }()
					return fail()
				})
			}()
			if err := <-waited; err == nil {
				t.Errorf("%s: who waited was told that it was written", name)
			}
			if o.Held() != 0 {
				t.Errorf("%s: %d ids are held", name, o.Held())
			}
		}
		if err := o.Do(t.Context(), idOf(1), func() error { return nil }); err != nil || o.Held() != 1 {
			t.Errorf("another try: %v", err)
		}
	})
}
