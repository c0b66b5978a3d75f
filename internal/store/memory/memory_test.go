package memory_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"deckle/internal/store"
	"deckle/internal/store/memory"
	"deckle/internal/store/storetest"
)

// The contract holds in a bubble too.
func TestContractInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memory.NewLog()
		for i := range 3 {
			if seq, err := l.Append(t.Context(), fmt.Sprint(i), []byte("x")); err != nil || seq != store.Seq(i+1) {
				t.Fatal(seq, err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		ended := make(chan error)
		go func() {
			ended <- l.Read(ctx, 2, func(store.Message) error { n++; return nil })
		}()
		synctest.Wait()
		if n != 2 {
			t.Errorf("%d messages from 2 on, want 2", n)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestContract(t *testing.T) {
	storetest.Log(t, func(*testing.T) store.Log { return memory.NewLog() })
	storetest.KV(t, func(*testing.T) store.KV { return memory.NewKV() })
	storetest.Blobs(t, func(*testing.T) store.Blobs { return memory.NewBlobs() })
}

func TestFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memory.NewLog()
		l.Fail(
			memory.Fault{Refuse: store.ErrFull},
			memory.Fault{LoseAnswer: true},
			memory.Fault{},
			memory.Fault{Delay: time.Second},
			memory.Fault{Delay: time.Hour},
		)
		if _, err := l.Append(t.Context(), "a", nil); !errors.Is(err, store.ErrFull) {
			t.Errorf("refused: %v", err)
		}
		if _, err := l.Append(t.Context(), "a", nil); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("answer lost: %v", err)
		}
		if seq, err := l.Append(t.Context(), "a", nil); err != nil || seq != 1 {
			t.Errorf("the retry = %d, %v; want the place of the first", seq, err)
		}
		start := time.Now()
		if seq, err := l.Append(t.Context(), "b", nil); err != nil || seq != 2 || time.Since(start) != time.Second {
			t.Errorf("delayed = %d, %v after %v", seq, err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := l.Append(ctx, "c", nil); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("too slow: %v", err)
		}
		if st, err := l.State(t.Context()); err != nil || st.Last != 2 || l.Pending() != 0 {
			t.Errorf("state = %+v, %v; %d faults to come", st, err, l.Pending())
		}
	})
}

// An id is forgotten after two minutes, by the store's clock.
func TestWindowAndSkew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memory.NewLog()
		appendAt := func(want store.Seq) {
			t.Helper()
			if seq, err := l.Append(t.Context(), "a", nil); err != nil || seq != want {
				t.Errorf("append = %d, %v; want %d", seq, err, want)
			}
		}
		appendAt(1)
		time.Sleep(2*time.Minute - time.Nanosecond)
		appendAt(1)
		time.Sleep(time.Nanosecond)
		appendAt(2)
		l.Skew(time.Hour)
		appendAt(3)
		var times []time.Duration
		err := l.Read(t.Context(), 1, func(m store.Message) error {
			if times = append(times, time.Until(m.Time)); len(times) == 3 {
				return store.ErrNotFound // any
			}
			return nil
		})
		if !errors.Is(err, store.ErrNotFound) || times[0] != -2*time.Minute || times[2] != time.Hour {
			t.Errorf("times are %v, %v", times, err)
		}
	})
}

func TestCloseAndPurge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, k := memory.NewLog(), memory.NewKV()
		for i := range 4 {
			if _, err := l.Append(t.Context(), fmt.Sprint(i), []byte("1234")); err != nil {
				t.Fatal(err)
			}
		}
		l.Purge(3)
		if st, err := l.State(t.Context()); err != nil || st != (store.LogState{First: 3, Last: 4, Bytes: 8}) {
			t.Errorf("state = %+v, %v", st, err)
		}
		l.Limit(12)
		if _, err := l.Append(t.Context(), "fits", []byte("1234")); err != nil {
			t.Error(err)
		}
		if _, err := l.Append(t.Context(), "not", []byte("1")); !errors.Is(err, store.ErrFull) {
			t.Errorf("append to a full log: %v", err)
		}
		ended := make(chan error, 2)
		go func() { ended <- l.Read(t.Context(), 1, func(store.Message) error { return nil }) }()
		go func() { ended <- k.Watch(t.Context(), func(store.Change) error { return nil }) }()
		synctest.Wait()
		l.Close()
		k.Close()
		for range 2 {
			if err := <-ended; !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("ended with %v, want ErrUnavailable", err)
			}
		}
		_, err := k.Put(t.Context(), "a", nil, 0)
		if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("put: %v", err)
		}
		l.Reopen()
		k.Reopen()
		if st, err := l.State(t.Context()); err != nil || st.Last != 5 {
			t.Errorf("reopened: %+v, %v", st, err)
		}
		if _, err := k.Put(t.Context(), "a", nil, 0); err != nil {
			t.Error(err)
		}
	})
}
