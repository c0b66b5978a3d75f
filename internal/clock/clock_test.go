package clock_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"deckle/internal/clock"
	"deckle/internal/obs"
	"deckle/internal/store"
)

// A source is the store's clock, as a test wants it.
type source struct {
	mu    sync.Mutex
	skew  time.Duration // from ours
	takes time.Duration // until the next answer
	err   error
}

func (s *source) set(f func(*source)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

func (s *source) isOff(by time.Duration) { s.set(func(s *source) { s.skew = by }) }
func (s *source) fails(err error)        { s.set(func(s *source) { s.err = err }) }

func (s *source) Now(context.Context) (time.Time, error) {
	s.mu.Lock()
	takes := s.takes
	s.takes = 0
	s.mu.Unlock()
	<-time.After(takes)
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.skew), s.err
}

// run runs a clock until the test ends.
func run(t *testing.T, s clock.Source, c clock.Config) *clock.Clock {
	t.Helper()
	cl := clock.New(s, c)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- cl.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return cl
}

// pass lets time go by in a bubble, and everything happen that it brings.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func mustBe(t *testing.T, cl *clock.Clock, want bool, part string) {
	t.Helper()
	ok, why := cl.Ready()
	if ok != want || !strings.Contains(why, part) || ok && why != "" {
		t.Errorf("ready: %v %q; want %v and %q", ok, why, want, part)
	}
	state := obs.OK
	if !want {
		state = obs.NotReady
	}
	if c := cl.Check(); c.State != state || c.Part != "clock" {
		t.Errorf("check %+v, want %s", c, state)
	}
}

// A node beyond half of max_skew from the store's time takes itself out, in either
// direction, and comes back by itself.
func TestOffset(t *testing.T) {
	for _, c := range []struct {
		store time.Duration // the store's clock, from ours
		max   time.Duration
		ok    bool
		word  string
	}{
		{0, 0, true, ""},
		{time.Minute, 0, true, ""},
		{-time.Minute, 0, true, ""},
		{time.Minute + time.Millisecond, 0, false, "1m0.001s behind the store's, 1m0s are allowed"},
		{-time.Minute - time.Millisecond, 0, false, "1m0.001s ahead of the store's, 1m0s are allowed"},
		{6 * time.Second, 10 * time.Second, false, "6s behind"},
		{time.Hour, 4 * time.Hour, true, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &source{}
			s.isOff(c.store)
			cl := run(t, s, clock.Config{MaxSkew: c.max})
			synctest.Wait()
			mustBe(t, cl, c.ok, c.word)
		})
	}
}

func TestBeforeTheFirstMeasurement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		s.fails(store.ErrUnavailable)
		cl := run(t, s, clock.Config{})
		synctest.Wait()
		mustBe(t, cl, false, "not been compared")
		if note := cl.Check().Note; !strings.Contains(note, "unavailable") {
			t.Errorf("note %q does not say why", note)
		}
		s.fails(nil)
		pass(5 * time.Second)
		mustBe(t, cl, true, "")
	})
}

func TestANodeComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		cl := run(t, s, clock.Config{})
		pass(time.Second)
		s.isOff(2 * time.Minute)
		mustBe(t, cl, true, "")
		pass(30 * time.Second)
		mustBe(t, cl, false, "2m0s behind")
		s.isOff(0)
		pass(30 * time.Second)
		mustBe(t, cl, true, "")
	})
}

// Leaving service and coming back are said once each, and a start is nothing to say.
func TestLog(t *testing.T) {
	for _, skews := range [][]time.Duration{{0, 0, 2 * time.Minute, 2 * time.Minute, 0, 0}, {2 * time.Minute, 2 * time.Minute, 0}} {
		synctest.Test(t, func(t *testing.T) {
			s := &source{}
			s.isOff(skews[0])
			var log bytes.Buffer
			run(t, s, clock.Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
			pass(time.Second)
			for _, skew := range skews[1:] {
				s.isOff(skew)
				pass(30 * time.Second)
			}
			text := log.String()
			if n := strings.Count(text, "\n"); n != 2 || strings.Count(text, "2m0s behind") != 1 || strings.Count(text, "right again") != 1 {
				t.Errorf("%d lines: %s", n, text)
			}
		})
	}
}

// What was measured last holds while the store is out of reach.
func TestStoreOutOfReach(t *testing.T) {
	for skew, ok := range map[time.Duration]bool{0: true, time.Hour: false} {
		synctest.Test(t, func(t *testing.T) {
			s := &source{}
			s.isOff(skew)
			cl := run(t, s, clock.Config{})
			synctest.Wait()
			s.fails(store.ErrUnavailable)
			pass(time.Hour)
			if is, why := cl.Ready(); is != ok {
				t.Errorf("ready: %v %q, want %v", is, why, ok)
			}
			if note := cl.Check().Note; !strings.Contains(note, "store is unavailable") {
				t.Errorf("note %q does not say that nothing is measured", note)
			}
		})
	}
}

// A slow answer tells less, and what it does not tell counts against the node. One
// that takes too long tells nothing.
func TestSlowAnswers(t *testing.T) {
	for _, c := range []struct {
		skew, takes time.Duration // how far the store's clock is ahead, and how long an answer takes
		ok          bool
	}{
		{56 * time.Second, 4 * time.Second, true},  // 58 ± 2: it is stamped at the very end
		{57 * time.Second, 4 * time.Second, false}, // 59 ± 2
		{0, 61 * time.Second, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &source{}
			s.isOff(c.skew)
			s.set(func(s *source) { s.takes = c.takes })
			cl := run(t, s, clock.Config{})
			pass(c.takes)
			if ok, why := cl.Ready(); ok != c.ok {
				t.Errorf("%v ahead, after %v: ready %v %q, want %v", c.skew, c.takes, ok, why, c.ok)
			}
			pass(30 * time.Second) // without a delay
			mustBe(t, cl, true, "")
		})
	}
}

// The engine, embedded, has the node's own clock; also when it takes nothing more, so
// that a node that is started on a full disk is in service.
func TestOnTheEngine(t *testing.T) {
	for name, reserve := range map[string]int64{"with room": 0, "full": 1 << 62} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := store.Open(t.Context(), store.Config{DataDir: t.TempDir(), Reserve: reserve}, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			_, err = s.Leases().Put(t.Context(), "a", []byte("1"), 0)
			if full := reserve > 0; full != errors.Is(err, store.ErrFull) {
				t.Fatalf("a write: %v", err)
			}
			cl := run(t, s, clock.Config{})
			deadline := time.After(20 * time.Second)
			for look := time.Tick(5 * time.Millisecond); ; {
				if ok, _ := cl.Ready(); ok {
					return
				}
				select {
				case <-look:
				case <-deadline:
					t.Fatal(cl.Ready())
				}
			}
		})
	}
}

func TestFigure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		s.isOff(-3 * time.Second)
		cl := run(t, s, clock.Config{})
		synctest.Wait()
		registry := prometheus.NewRegistry()
		if err := cl.Register(registry); err != nil {
			t.Fatal(err)
		}
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		if got := families[0].Metric[0].GetGauge().GetValue(); got != -3 {
			t.Errorf("offset %v, want -3", got)
		}
	})
}
