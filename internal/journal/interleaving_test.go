package journal_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"deckle/internal/journal"
	"deckle/internal/store"
	"deckle/internal/store/memory"
)

// A plan is what callers do, and what the store does to them.
type plan struct {
	config  journal.Config
	callers [][]step // each does its steps one after the other
	faults  []memory.Fault
	ends    time.Duration // when Run's context does
}

// A step is one Append.
type step struct {
	pause   time.Duration // before it
	events  int
	timeout time.Duration // of its context
	invalid bool

	first int // request id of its first event
	call
}

func anyPlan() *rapid.Generator[plan] {
	short := rapid.SampledFrom([]time.Duration{0, 0, time.Microsecond, ms, 2 * ms, 3 * ms, 20 * ms})
	long := rapid.SampledFrom([]time.Duration{ms, 10 * ms, time.Second, 3 * time.Second, time.Minute, time.Minute})
	fault := rapid.Custom(func(t *rapid.T) memory.Fault {
		f := memory.Fault{Delay: short.Draw(t, "delay")}
		switch rapid.IntRange(0, 9).Draw(t, "fault") {
		case 0:
			f.LoseAnswer = true
		case 1:
			f.Refuse = store.ErrUnavailable
		case 2:
			f.Refuse = store.ErrFull
		case 3:
			f.Delay = long.Draw(t, "hangs")
		}
		return f
	})
	steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		return step{
			pause:   short.Draw(t, "pause"),
			events:  rapid.IntRange(1, 4).Draw(t, "events"),
			timeout: long.Draw(t, "timeout"),
			invalid: rapid.IntRange(0, 19).Draw(t, "invalid") == 0,
		}
	}), 1, 6)
	return rapid.Custom(func(t *rapid.T) plan {
		return plan{
			config: journal.Config{
				MaxEvents: rapid.SampledFrom([]int{4, 7, 512}).Draw(t, "MaxEvents"),
				Queue:     rapid.SampledFrom([]int{6, 1_000}).Draw(t, "Queue"),
			},
			callers: rapid.SliceOfN(steps, 1, 8).Draw(t, "callers"),
			faults:  rapid.SliceOfN(fault, 0, 30).Draw(t, "faults"),
			ends:    rapid.SampledFrom([]time.Duration{0, 5 * ms, time.Hour}).Draw(t, "ends"),
		}
	})
}

// Whatever the store does: what was acknowledged is in the log exactly once, at the
// sequence that was told, together and in the order of its caller; what was refused
// is not; and there is nothing else.
func TestAcknowledgedIsInTheLogOnceAndInOrder(t *testing.T) {
	t.Parallel()
	var acknowledged, refused, unsure int
	rapid.Check(t, func(r *rapid.T) {
		p := anyPlan().Draw(r, "plan")
		var envelopes [][]journal.Record
		synctest.Test(t, func(t *testing.T) { envelopes = p.run(t) })
		places := map[string]place{}
		for _, records := range envelopes {
			for _, rec := range records {
				if before, ok := places[rec.RequestID]; ok {
					r.Fatalf("%s is in the log at %v and at %v", rec.RequestID, before, place{rec.Seq, rec.Index})
				}
				places[rec.RequestID] = place{rec.Seq, rec.Index}
			}
		}
		for _, steps := range p.callers {
			var last place
			for _, s := range steps {
				switch at := s.places(places); {
				case s.err == nil:
					acknowledged++
					last = s.check(r, at, last)
				case s.mayBeWritten():
					unsure++
				default:
					refused++
					if len(at) > 0 {
						r.Fatalf("%+v was refused, and is in the log at %v", s, at)
					}
				}
				s.forget(places)
			}
		}
		if len(places) > 0 {
			r.Fatalf("nobody appended %v", places)
		}
	})
	if acknowledged == 0 || refused == 0 || unsure == 0 {
		t.Errorf("%d acknowledged, %d refused, %d unsure: the plans show too little", acknowledged, refused, unsure)
	}
}

// run does what is planned, and returns what is in the log in the end.
func (p *plan) run(t *testing.T) [][]journal.Record {
	log := memory.NewLog()
	log.Fail(p.faults...)
	j := journal.New(log, p.config, journal.NewMetrics(), slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithTimeout(t.Context(), p.ends)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- j.Run(ctx) }()

	callers := make(chan struct{}, len(p.callers))
	for i, steps := range p.callers {
		go func() {
			defer func() { callers <- struct{}{} }()
			for n := range steps {
				s := &steps[n]
				s.first = 1 + 1_000*i + 10*n
				s.do(t.Context(), j)
			}
		}()
	}
	for range p.callers {
		<-callers
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run ended with %v", err)
	}
	return read(t, log)
}

func (s *step) do(ctx context.Context, j *journal.Journal) {
	time.Sleep(s.pause)
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	var events []journal.Event
	for i := range s.events {
		e := view(s.first + i)
		if s.invalid {
			e.Site = ""
		}
		events = append(events, e)
	}
	start := time.Now()
	s.seq, s.err = j.Append(ctx, events...)
	s.after = time.Since(start)
}

// mayBeWritten reports whether an error leaves open what happened.
func (s *step) mayBeWritten() bool {
	_, invalid := errors.AsType[*journal.FieldError](s.err)
	return !invalid && !errors.Is(s.err, journal.ErrBusy) && !errors.Is(s.err, journal.ErrClosed) && !errors.Is(s.err, store.ErrTooLarge)
}

// A place is where an event is in the log.
type place struct {
	seq   store.Seq
	index int
}

func (p place) before(q place) bool { return p.seq < q.seq || p.seq == q.seq && p.index < q.index }

// places are those of a step's events that are in the log.
func (s *step) places(of map[string]place) (at []place) {
	for i := range s.events {
		if p, ok := of[fmt.Sprintf("%016x", s.first+i)]; ok {
			at = append(at, p)
		}
	}
	return at
}

func (s *step) forget(places map[string]place) {
	for i := range s.events {
		delete(places, fmt.Sprintf("%016x", s.first+i))
	}
}

// check judges the places of a step that was acknowledged, and returns its last one.
func (s *step) check(r *rapid.T, at []place, last place) place {
	if len(at) != s.events || s.after > 2*time.Second {
		r.Fatalf("%+v is in the log at %v", *s, at)
	}
	for i, p := range at {
		if p.seq != s.seq || p.index != at[0].index+i || !last.before(p) {
			r.Fatalf("%+v is in the log at %v, and the caller's last one at %v", *s, at, last)
		}
	}
	return at[len(at)-1]
}
