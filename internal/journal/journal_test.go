package journal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"deckle/internal/journal"
	"deckle/internal/store"
	"deckle/internal/store/memory"
)

// A world is a journal that runs on a log in memory, in the time of a bubble.
type world struct {
	*journal.Journal
	t     *testing.T
	log   *memory.Log
	lines bytes.Buffer // what is logged
	calls sync.WaitGroup
	start time.Time
	close func() // ends Run and waits for it
}

func inWorld(t *testing.T, c journal.Config, f func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, log: memory.NewLog(), start: time.Now()}
		w.Journal = journal.New(w.log, c, journal.NewMetrics(), slog.New(slog.NewTextHandler(&w.lines, nil)))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		w.close = sync.OnceFunc(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("Run ended with %v", err)
			}
		})
		f(w)
		w.calls.Wait()
		w.close()
	})
}

// A call is an Append that has returned.
type call struct {
	seq   store.Seq
	err   error
	after time.Duration // the world's beginning
}

// begin appends events with these request ids in the background, and returns when
// they wait.
func (w *world) begin(ids ...int) <-chan call { return w.beginIn(w.t.Context(), ids...) }

func (w *world) beginIn(ctx context.Context, ids ...int) <-chan call {
	done := make(chan call, 1)
	w.calls.Go(func() {
		seq, err := w.Append(ctx, views(ids...)...)
		done <- call{seq, err, time.Since(w.start)}
	})
	synctest.Wait()
	return done
}

func views(ids ...int) []journal.Event {
	events := make([]journal.Event, len(ids))
	for i, id := range ids {
		events[i] = view(id)
	}
	return events
}

// view is a valid event with a request id, of the last days before a bubble's time
// begins.
func view(id int) journal.Event {
	return journal.Event{
		Kind: journal.View, At: time.UnixMilli(946_000_000_000 + int64(uint32(id))).UTC(), Site: "garden", Slot: "s", Advertiser: "a", Campaign: "c", Creative: "m",
		Version: 1, URL: "https://garden.example/", RequestID: fmt.Sprintf("%016x", id),
	}
}

// at checks when a call returned, and that its events are durable at a sequence.
func (w *world) wantDurable(c <-chan call, after time.Duration, seq store.Seq) {
	w.t.Helper()
	if got := <-c; got != (call{seq, nil, after}) {
		w.t.Errorf("got %+v, want sequence %d after %v", got, seq, after)
	}
}

func (w *world) wantError(c <-chan call, after time.Duration, is error) {
	w.t.Helper()
	if got := <-c; !errors.Is(got.err, is) || got.after != after || got.seq != 0 {
		w.t.Errorf("got %+v, want %v after %v", got, is, after)
	}
}

// content is the request ids in the log, envelope by envelope: "1 2 | 3".
func (w *world) content() string {
	w.t.Helper()
	var envelopes []string
	for _, records := range read(w.t, w.log) {
		var ids []string
		for _, r := range records {
			var id int
			if _, err := fmt.Sscanf(r.RequestID, "%x", &id); err != nil {
				w.t.Fatal(err)
			}
			ids = append(ids, fmt.Sprint(id))
		}
		envelopes = append(envelopes, strings.Join(ids, " "))
	}
	return strings.Join(envelopes, " | ")
}

func (w *world) wantContent(want string) {
	w.t.Helper()
	if got := w.content(); got != want {
		w.t.Errorf("the log has %q, want %q", got, want)
	}
}

// read reads all envelopes that a log has.
func read(t testing.TB, log store.Log) (envelopes [][]journal.Record) {
	t.Helper()
	state, err := log.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if state.Last == 0 {
		return nil
	}
	enough := errors.New("enough")
	err = journal.Read(t.Context(), log, 0, func(records []journal.Record) error {
		envelopes = append(envelopes, records)
		if records[0].Seq == state.Last {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Fatal(err)
	}
	return envelopes
}

const ms = time.Millisecond

// A lone caller waits for the disk, and for nobody.
func TestOneCallerWaitsForTheDiskOnly(t *testing.T) {
	t.Parallel()
	inWorld(t, journal.Config{}, func(w *world) {
		w.log.Fail(memory.Fault{Delay: 3 * ms}, memory.Fault{}, memory.Fault{Delay: 1 * ms})
		w.wantDurable(w.begin(1), 3*ms, 1)
		w.wantDurable(w.begin(2), 3*ms, 2)
		w.wantDurable(w.begin(3), 4*ms, 3)
		w.wantContent("1 | 2 | 3")
	})
}

// What comes while an envelope is on its way is the next one, and leaves as soon as
// that is acknowledged.
func TestAnEnvelopeFillsWhileTheOneBeforeIsAcknowledged(t *testing.T) {
	t.Parallel()
	inWorld(t, journal.Config{}, func(w *world) {
		w.log.Fail(memory.Fault{Delay: 5 * ms}, memory.Fault{Delay: 5 * ms})
		a := w.begin(1)
		b, c := w.begin(2, 3), w.begin(4)
		time.Sleep(4 * ms)
		d := w.begin(5)
		w.wantDurable(a, 5*ms, 1)
		w.wantDurable(b, 10*ms, 2)
		w.wantDurable(c, 10*ms, 2)
		w.wantDurable(d, 10*ms, 2)
		w.wantContent("1 | 2 3 4 5")
	})
}

// crowd makes the journal's last envelope one of three calls, and returns when it is
// durable, at 1 ms.
func (w *world) crowd() {
	w.log.Fail(memory.Fault{Delay: ms})
	w.begin(101)
	for i := range 3 {
		w.begin(102 + i)
	}
	w.calls.Wait()
}

// After a crowd an envelope waits for company: 2 ms from its first call.
func TestAnEnvelopeWaitsTwoMillisecondsForCompany(t *testing.T) {
	t.Parallel()
	inWorld(t, journal.Config{}, func(w *world) {
		w.crowd()
		a := w.begin(1)
		time.Sleep(1 * ms)
		b := w.begin(2)
		w.wantDurable(a, 3*ms, 3)
		w.wantDurable(b, 3*ms, 3)

		// The crowd was one of two: it takes one more that is as large as that.
		c := w.begin(3)
		time.Sleep(1 * ms)
		d := w.begin(4)
		w.wantDurable(c, 4*ms, 4)
		w.wantDurable(d, 4*ms, 4)

		// And then there is nobody any more, which is known after 2 ms.
		w.wantDurable(w.begin(5), 6*ms, 5)
		w.wantDurable(w.begin(6), 6*ms, 6)
		w.wantContent("101 | 102 103 104 | 1 2 | 3 4 | 5 | 6")
	})
}

func TestEventsOfOneCallStayTogether(t *testing.T) {
	t.Parallel()
	inWorld(t, journal.Config{MaxEvents: 4}, func(w *world) {
		w.log.Fail(memory.Fault{Delay: ms})
		w.begin(1)
		w.begin(2, 3, 4)
		w.begin(5, 6) // does not fit any more
		w.begin(7, 8)
		w.begin(9)
		w.calls.Wait()
		w.wantContent("1 | 2 3 4 | 5 6 7 8 | 9")
	})
}

// An envelope is never longer than MaxBytes, and never shorter than it need be by
// more than one call.
func TestEnvelopesAreBounded(t *testing.T) {
	t.Parallel()
	inWorld(t, journal.Config{MaxBytes: 1}, func(w *world) { // the least: 64 KiB
		w.log.Fail(memory.Fault{Delay: ms})
		w.begin(1)
		for i := range 100 {
			e := view(2 + i)
			e.URL += fmt.Sprint(i) + strings.Repeat("/", 2_000)
			w.calls.Go(func() {
				if _, err := w.Append(w.t.Context(), e); err != nil {
					w.t.Error(err)
				}
			})
		}
		w.calls.Wait()
		var sizes []int
		ctx, cancel := context.WithCancel(w.t.Context())
		err := w.log.Read(ctx, 2, func(m store.Message) error {
			sizes = append(sizes, len(m.Data))
			if m.Seq == 5 {
				cancel()
			}
			return nil
		})
		if err != nil || len(sizes) != 4 {
			w.t.Fatal(sizes, err)
		}
		for _, n := range sizes[:3] {
			if n > 64<<10 || n < 60<<10 {
				w.t.Errorf("envelopes of %v bytes, want 60 to 64 KiB", sizes)
			}
		}
	})
}

// An acknowledgement that is lost is asked for again, and the log has one message.
func TestALostAcknowledgementIsNoSecondMessage(t *testing.T) {
	t.Parallel()
	inWorld(t, journal.Config{}, func(w *world) {
		w.log.Fail(memory.Fault{LoseAnswer: true}, memory.Fault{LoseAnswer: true}, memory.Fault{Delay: 5 * ms})
		a := w.begin(1)
		b := w.begin(2)
		w.wantDurable(a, 35*ms, 1) // pauses of 10 and 20 ms
		w.wantDurable(b, 35*ms, 2)
		w.wantContent("1 | 2")
		if w.log.Pending() > 0 {
			w.t.Error("not every fault has happened")
		}
	})
}

// The store is asked less and less often: pauses of 10, 20, 40, 80, 160 and then 250
// ms.
func TestRetriesSlowDown(t *testing.T) {
	t.Parallel()
	inWorld(t, journal.Config{}, func(w *world) {
		for range 11 {
			w.log.Fail(memory.Fault{Refuse: store.ErrUnavailable})
		}
		w.wantDurable(w.begin(1), 1_810*ms, 1)
	})
}

// A store that hangs is asked again after a second.
func TestAStoreThatHangsIsAskedAgain(t *testing.T) {
	t.Parallel()
	inWorld(t, journal.Config{}, func(w *world) {
		w.log.Fail(memory.Fault{Delay: time.Hour}, memory.Fault{Delay: 7 * ms})
		w.wantDurable(w.begin(1), 1_017*ms, 1)
	})
}

// An append waits for two seconds, and no longer.
func TestWaitingIsBounded(t *testing.T) {
	t.Parallel()
	inWorld(t, journal.Config{}, func(w *world) {
		w.log.Close()
		a := w.begin(1)
		time.Sleep(1500 * ms)
		b := w.begin(2) // in the next envelope
		time.Sleep(499 * ms)
		if err := w.Err(); err != nil {
			w.t.Errorf("gave up early: %v", err)
		}
		w.wantError(a, 2_000*ms, store.ErrUnavailable)
		synctest.Wait()
		if err := w.Err(); !errors.Is(err, store.ErrUnavailable) {
			w.t.Errorf("Err is %v", err)
		}
		w.wantError(b, 3_500*ms, store.ErrUnavailable)
		w.log.Reopen()
		w.wantDurable(w.begin(3), 3_500*ms, 1)
		if err := w.Err(); err != nil {
			w.t.Errorf("Err is %v after a success", err)
		}
		w.wantContent("3")
		if got := strings.Count(w.lines.String(), "\n"); got != 2 || !strings.Contains(w.lines.String(), "written again") {
			w.t.Errorf("logged, instead of that the store is gone and back:\n%s", &w.lines)
		}
	})
}

// An envelope that fails fails its callers, and nobody else.
func TestAFailureFailsExactlyItsCallers(t *testing.T) {
	t.Parallel()
	for _, is := range []error{store.ErrFull, store.ErrTooLarge, errors.New("unheard of")} {
		inWorld(t, journal.Config{}, func(w *world) {
			w.log.Fail(memory.Fault{Delay: ms}, memory.Fault{Delay: ms, Refuse: is}, memory.Fault{Delay: ms})
			a := w.begin(1)
			b, c := w.begin(2), w.begin(3)
			time.Sleep(ms)
			synctest.Wait()
			d := w.begin(4)
			w.wantDurable(a, 1*ms, 1)
			w.wantError(b, 2*ms, is)
			w.wantError(c, 2*ms, is)
			w.wantDurable(d, 4*ms, 2) // 1 ms for the crowd of two, 1 for the disk
			w.wantContent("1 | 4")
		})
	}
}

// Who does not wait any more is told at once; the event is written all the same.
func TestTheEndOfAContextEndsTheWaiting(t *testing.T) {
	t.Parallel()
	inWorld(t, journal.Config{}, func(w *world) {
		w.log.Fail(memory.Fault{Delay: 100 * ms})
		gone := errors.New("reader went away")
		ctx, cancel := context.WithCancelCause(w.t.Context())
		a, b := w.beginIn(ctx, 1), w.beginIn(ctx, 2)
		time.Sleep(30 * ms)
		cancel(gone)
		w.wantError(a, 30*ms, gone)
		w.wantError(b, 30*ms, gone)
		w.wantError(w.beginIn(ctx, 3), 30*ms, gone)
		w.wantDurable(w.begin(4), 100*ms, 2)
		w.wantContent("1 | 2 4")
	})
}

// The queue pushes back.
func TestTheQueueIsBounded(t *testing.T) {
	t.Parallel()
	inWorld(t, journal.Config{Queue: 4}, func(w *world) {
		w.log.Fail(memory.Fault{Delay: 10 * ms}, memory.Fault{Delay: 10 * ms})
		a, b := w.begin(1, 2), w.begin(3)
		refused := w.begin(4, 5)
		w.wantError(refused, 0, journal.ErrBusy)
		c := w.begin(6)
		w.wantError(w.begin(7), 0, store.ErrUnavailable)
		w.wantDurable(a, 10*ms, 1)
		d := w.begin(8, 9)
		w.wantDurable(b, 20*ms, 2)
		w.wantDurable(c, 20*ms, 2)
		w.wantDurable(d, 20*ms, 3)
		w.wantContent("1 2 | 3 6 | 8 9")
	})
}

// A journal that ends commits what it has taken, and takes nothing more.
func TestTheEndOfRunDrains(t *testing.T) {
	t.Parallel()
	inWorld(t, journal.Config{MaxEvents: 4}, func(w *world) {
		w.crowd() // so that an envelope would wait for company
		w.log.Fail(memory.Fault{Delay: 10 * ms})
		a, b, c := w.begin(1, 2), w.begin(3, 4), w.begin(5)
		ended := make(chan time.Duration, 1)
		w.calls.Go(func() {
			w.close()
			ended <- time.Since(w.start)
		})
		synctest.Wait()
		w.wantError(w.begin(6), ms, journal.ErrClosed)
		w.wantDurable(a, 11*ms, 3)
		w.wantDurable(b, 11*ms, 3)
		w.wantDurable(c, 11*ms, 4)
		if got := <-ended; got != 11*ms {
			w.t.Errorf("ended after %v", got)
		}
		w.wantError(w.begin(7), 11*ms, store.ErrUnavailable)
	})
}

// A journal that ends waits for no company.
func TestTheEndOfRunIsAtOnce(t *testing.T) {
	t.Parallel()
	inWorld(t, journal.Config{}, func(w *world) {
		w.crowd()
		a := w.begin(1)
		w.close()
		w.wantDurable(a, ms, 3)
	})
}

// Nobody waits long for a journal that ends without its store.
func TestTheEndOfRunIsBounded(t *testing.T) {
	t.Parallel()
	inWorld(t, journal.Config{MaxEvents: 1}, func(w *world) {
		w.log.Close()
		a, b, c := w.begin(1), w.begin(2), w.begin(3)
		w.close()
		if got := time.Since(w.start); got != 2*time.Second {
			w.t.Errorf("ended after %v", got)
		}
		for _, call := range []<-chan call{a, b, c} {
			w.wantError(call, 2*time.Second, store.ErrUnavailable)
		}
	})
}

func TestAnInvalidEventWritesNothing(t *testing.T) {
	t.Parallel()
	inWorld(t, journal.Config{MaxEvents: 3}, func(w *world) {
		bad := view(2)
		bad.URL += "?email=a@b.example"
		_, err := w.Append(w.t.Context(), view(1), bad)
		if f, ok := errors.AsType[*journal.FieldError](err); !ok || f.Field != "URL" || errors.Is(err, store.ErrUnavailable) {
			w.t.Errorf("got %v, want one about the URL", err)
		}
		if strings.Contains(err.Error(), "b.example") {
			w.t.Errorf("the error tells what the reader's URL has: %v", err)
		}
		w.wantError(w.begin(1, 2, 3, 4), 0, store.ErrTooLarge)
		if seq, err := w.Append(w.t.Context()); seq != 0 || err != nil {
			w.t.Errorf("no events: got %d, %v", seq, err)
		}
		w.wantContent("")
	})
}

// The events are the caller's again at once, and what they point to is not looked at
// later.
func TestEventsBelongToTheCaller(t *testing.T) {
	t.Parallel()
	inWorld(t, journal.Config{}, func(w *world) {
		w.log.Fail(memory.Fault{Delay: 10 * ms})
		a := w.begin(1)
		ctx, cancel := context.WithCancel(w.t.Context())
		events := views(2, 3)
		w.calls.Go(func() { _, _ = w.Append(ctx, events...) })
		synctest.Wait()
		cancel()
		synctest.Wait()
		clear(events)
		b := w.begin(4)
		w.wantDurable(a, 10*ms, 1)
		w.wantDurable(b, 10*ms, 2)
		w.wantContent("1 | 2 3 4")
	})
}

// A call that no envelope has room for is refused, and not what comes after it.
func TestACallIsNotLargerThanAnEnvelope(t *testing.T) {
	t.Parallel()
	inWorld(t, journal.Config{MaxBytes: 1}, func(w *world) { // the least: 64 KiB
		long := views(make([]int, 33)...)
		for i := range long {
			long[i].URL += strings.Repeat("/", 2_000)
		}
		if _, err := w.Append(w.t.Context(), long...); !errors.Is(err, store.ErrTooLarge) {
			w.t.Errorf("got %v, want %v", err, store.ErrTooLarge)
		}
		w.wantDurable(w.begin(1), 0, 1)
	})
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, m := memory.NewLog(), journal.NewMetrics()
		registry := prometheus.NewPedanticRegistry()
		if err := m.Register(registry); err != nil {
			t.Fatal(err)
		}
		j := journal.New(log, journal.Config{}, m, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- j.Run(ctx) }()

		fold := view(3)
		fold.Kind = journal.Fold
		log.Fail(memory.Fault{LoseAnswer: true}, memory.Fault{}, memory.Fault{Refuse: store.ErrFull})
		_, _ = j.Append(ctx, view(1), view(2), fold)
		_, _ = j.Append(ctx, view(4))
		_, _ = j.Append(ctx, journal.Event{})
		_, _ = j.Append(ctx, make([]journal.Event, 1)...)
		cancel()
		<-ended
		_, _ = j.Append(ctx, view(5))
		_, _ = j.Append(t.Context(), view(5))

		state, err := log.State(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := testutil.GatherAndCompare(registry, strings.NewReader(fmt.Sprintf(`
# HELP deckle_journal_append_failures_total Appends that failed, by reason: invalid, too_large, busy, closed, full, canceled, unavailable, other.
# TYPE deckle_journal_append_failures_total counter
deckle_journal_append_failures_total{reason="canceled"} 1
deckle_journal_append_failures_total{reason="closed"} 1
deckle_journal_append_failures_total{reason="full"} 1
deckle_journal_append_failures_total{reason="invalid"} 2
# HELP deckle_journal_bytes_total Bytes of committed envelopes.
# TYPE deckle_journal_bytes_total counter
deckle_journal_bytes_total %d
# HELP deckle_journal_envelopes_total Envelopes, by what became of them: committed, failed.
# TYPE deckle_journal_envelopes_total counter
deckle_journal_envelopes_total{outcome="committed"} 1
deckle_journal_envelopes_total{outcome="failed"} 1
# HELP deckle_journal_events_total Durable events, by kind.
# TYPE deckle_journal_events_total counter
deckle_journal_events_total{kind="fold"} 1
deckle_journal_events_total{kind="view"} 2
# HELP deckle_journal_retries_total Attempts to write an envelope that failed and may be repeated.
# TYPE deckle_journal_retries_total counter
deckle_journal_retries_total 1
`, state.Bytes)), "deckle_journal_append_failures_total", "deckle_journal_bytes_total", "deckle_journal_envelopes_total",
			"deckle_journal_events_total", "deckle_journal_retries_total"); err != nil {
			t.Error(err)
		}
	})
}
