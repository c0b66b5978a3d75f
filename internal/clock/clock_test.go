package clock_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"deckle/internal/clock"
	"deckle/internal/obs"
	"deckle/internal/store"
	"deckle/internal/store/memory"
)

// run runs a clock until the test ends.
func run(t *testing.T, kv store.KV, c clock.Config) *clock.Clock {
	t.Helper()
	cl := clock.New(kv, c)
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
			kv := memory.NewKV()
			kv.Skew(c.store)
			cl := run(t, kv, clock.Config{MaxSkew: c.max})
			synctest.Wait()
			mustBe(t, cl, c.ok, c.word)
		})
	}
}

func TestBeforeTheFirstMeasurement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := memory.NewKV()
		kv.Close()
		cl := run(t, kv, clock.Config{})
		synctest.Wait()
		mustBe(t, cl, false, "not been compared")
		if note := cl.Check().Note; !strings.Contains(note, "unavailable") {
			t.Errorf("note %q does not say why", note)
		}
		kv.Reopen()
		pass(5 * time.Second)
		mustBe(t, cl, true, "")
	})
}

func TestANodeComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := memory.NewKV()
		cl := run(t, kv, clock.Config{})
		pass(time.Second)
		kv.Skew(2 * time.Minute)
		mustBe(t, cl, true, "")
		pass(30 * time.Second)
		mustBe(t, cl, false, "2m0s behind")
		kv.Skew(0)
		pass(30 * time.Second)
		mustBe(t, cl, true, "")
	})
}

// Leaving service and coming back are said once each, and a start is nothing to say.
func TestLog(t *testing.T) {
	for _, skews := range [][]time.Duration{{0, 0, 2 * time.Minute, 2 * time.Minute, 0, 0}, {2 * time.Minute, 2 * time.Minute, 0}} {
		synctest.Test(t, func(t *testing.T) {
			kv := memory.NewKV()
			kv.Skew(skews[0])
			var log bytes.Buffer
			run(t, kv, clock.Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
			pass(time.Second)
			for _, skew := range skews[1:] {
				kv.Skew(skew)
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
			kv := memory.NewKV()
			kv.Skew(skew)
			cl := run(t, kv, clock.Config{})
			synctest.Wait()
			kv.Close()
			pass(time.Hour)
			if is, why := cl.Ready(); is != ok {
				t.Errorf("ready: %v %q, want %v", is, why, ok)
			}
			if note := cl.Check().Note; !strings.Contains(note, "store is closed") {
				t.Errorf("note %q does not say that nothing is measured", note)
			}
		})
	}
}

// A slow write tells less, and what it does not tell counts against the node. One
// that takes too long tells nothing.
func TestSlowWrites(t *testing.T) {
	for _, c := range []struct {
		skew, takes time.Duration // how far the store's clock is ahead, and how long a write takes before it is stamped
		ok          bool
	}{
		{56 * time.Second, 4 * time.Second, true},  // 58 ± 2: it is stamped at the very end
		{57 * time.Second, 4 * time.Second, false}, // 59 ± 2
		{0, 61 * time.Second, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			kv := memory.NewKV()
			kv.Skew(c.skew)
			kv.Fail(memory.Fault{Delay: c.takes})
			cl := run(t, kv, clock.Config{})
			pass(c.takes)
			if ok, why := cl.Ready(); ok != c.ok {
				t.Errorf("%v ahead, after %v: ready %v %q, want %v", c.skew, c.takes, ok, why, c.ok)
			}
			pass(30 * time.Second) // without a delay
			mustBe(t, cl, true, "")
		})
	}
}

// A write whose answer is lost is not the end of measuring.
func TestLostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := memory.NewKV()
		kv.Fail(memory.Fault{}, memory.Fault{LoseAnswer: true})
		cl := run(t, kv, clock.Config{})
		synctest.Wait()
		kv.Skew(time.Hour)
		pass(time.Minute) // lost, conflict, and a good one
		if kv.Pending() > 0 {
			t.Fatal("nothing was lost")
		}
		mustBe(t, cl, false, "1h0m0s behind")
	})
}

// Several nodes on one bucket do not hinder each other.
func TestNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := memory.NewKV()
		nodes := []*clock.Clock{run(t, kv, clock.Config{}), run(t, kv, clock.Config{}), run(t, kv, clock.Config{})}
		pass(5 * time.Minute)
		for _, n := range nodes {
			mustBe(t, n, true, "")
			if c := n.Check(); c.Note != "0s behind the store's" {
				t.Errorf("note %q", c.Note)
			}
		}
	})
}

// The engine, embedded, has the node's own clock.
func TestOnTheEngine(t *testing.T) {
	s, err := store.Open(t.Context(), store.Config{DataDir: t.TempDir()}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	cl := run(t, s.Pages(), clock.Config{})
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
}

func TestFigure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := memory.NewKV()
		kv.Skew(-3 * time.Second)
		cl := run(t, kv, clock.Config{})
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
