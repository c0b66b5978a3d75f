package journal

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"deckle/internal/store"
)

// Errors of Append that say that nothing was written. Both wrap
// [store.ErrUnavailable], as does every error of Append that another try may cure.
var (
	// ErrBusy says that as many events wait as may wait.
	ErrBusy = fmt.Errorf("journal is busy: %w", store.ErrUnavailable)

	// ErrClosed says that the journal is closing and takes nothing more.
	ErrClosed = fmt.Errorf("journal is closed: %w", store.ErrUnavailable)
)

// Config configures a [Journal]. The zero value is ready to use.
type Config struct {
	// Wait is how long Append waits for an event to be durable. Defaults to 2 s.
	Wait time.Duration

	// Fill is how long an envelope waits for company. Defaults to 2 ms.
	Fill time.Duration

	// Attempt is how long the store may take to acknowledge an envelope before it is
	// asked again, with the same message id. Defaults to 1 s.
	Attempt time.Duration

	// Queue is how many events may wait, those under way included; what comes on top
	// is refused with [ErrBusy] at once. They wait encoded, some 60 bytes each and never
	// more than 4 KB. Defaults to 65,536.
	Queue int

	// MaxEvents is how many events an envelope takes, at most 1,024. Defaults to 512.
	MaxEvents int

	// MaxBytes is how long an envelope may be, from 64 KiB to [store.MaxMessage].
	// Defaults to 512 KiB.
	MaxBytes int
}

// A Journal appends events to a log. All methods but Run may be called
// concurrently. [Read] needs none.
type Journal struct {
	log     store.Log
	config  Config
	metrics *Metrics
	slog    *slog.Logger
	wake    chan struct{} // tells Run that an envelope may be ready to leave

	mu      sync.Mutex
	closed  bool
	filling *envelope   // what Append joins; nil when nobody waits
	full    []*envelope // older ones that are waiting to leave, oldest first
	pending int         // events of all envelopes, that under way included
	crowd   int         // calls in the envelope that left last
	trouble error       // of the envelope that ended last
	spare   *encoder    // of it, to be used again
}

// An envelope is one message of the log in the making. Until it leaves it belongs to
// the journal's lock, then to Run, and when done is closed to everybody.
type envelope struct {
	*encoder
	calls    int
	kinds    [Seal + 1]int // events by kind
	began    time.Time     // when the first call joined
	deadline time.Time     // when the last call stops waiting

	done chan struct{}
	seq  store.Seq // if err is nil
	err  error
}

// New makes a journal on log. Appends wait until [Journal.Run] is called.
func New(log store.Log, c Config, m *Metrics, l *slog.Logger) *Journal {
	c.Wait = cmp.Or(c.Wait, 2*time.Second)
	c.Fill = cmp.Or(c.Fill, 2*time.Millisecond)
	c.Attempt = cmp.Or(c.Attempt, time.Second)
	c.Queue = cmp.Or(c.Queue, 65_536)
	c.MaxEvents = min(cmp.Or(c.MaxEvents, 512), maxEvents)
	c.MaxBytes = min(max(cmp.Or(c.MaxBytes, 512<<10), 64<<10), store.MaxMessage)
	return &Journal{log: log, config: c, metrics: m, slog: l, wake: make(chan struct{}, 1)}
}

// Append writes events, next to each other and in this order, and returns the
// sequence of their envelope when they are durable. It waits no longer than
// [Config.Wait] and not beyond the end of ctx.
//
// An invalid event is a [*FieldError], as is one whose At is more than [MaxAhead]
// ahead of this node's clock; more events than one envelope takes are
// [store.ErrTooLarge]. Of these nothing is written. Other errors wrap
// [store.ErrUnavailable] or the cause of ctx's end, and the events may be written all
// the same, now or later, unless it is [ErrBusy], [ErrClosed] or [store.ErrFull]. Times
// lose what is below a millisecond.
//
// The events are the caller's again when Append returns.
func (j *Journal) Append(ctx context.Context, events ...Event) (store.Seq, error) {
	if len(events) == 0 {
		return 0, nil
	}
	start := time.Now()
	seq, err := j.append(ctx, start, events)
	j.metrics.appended(ctx, time.Since(start), err)
	return seq, err
}

func (j *Journal) append(ctx context.Context, start time.Time, events []Event) (store.Seq, error) {
	if ctx.Err() != nil {
		return 0, fmt.Errorf("append to journal: %w", context.Cause(ctx))
	}
	size := headerBytes + checksumBytes
	for i := range events {
		if err := events[i].Validate(); err != nil {
			return 0, fmt.Errorf("append to journal: event %d: %w", i, err)
		}
		if err := events[i].checkAhead(start); err != nil {
			return 0, fmt.Errorf("append to journal: event %d: %w", i, err)
		}
		size += longest(&events[i])
	}
	if len(events) > j.config.MaxEvents || size > j.config.MaxBytes {
		return 0, fmt.Errorf("append to journal: %d events at once: %w", len(events), store.ErrTooLarge)
	}
	e, err := j.join(events, size, start)
	if err != nil {
		return 0, err
	}
	timer := time.NewTimer(j.config.Wait)
	defer timer.Stop()
	select {
	case <-e.done:
		return e.seq, e.err
	case <-ctx.Done():
		return 0, fmt.Errorf("append to journal: %w", context.Cause(ctx))
	case <-timer.C:
		return 0, fmt.Errorf("append to journal: not durable within %v: %w", j.config.Wait, store.ErrUnavailable)
	}
}

// join writes events, which take at most size bytes, into the envelope that is
// filling.
func (j *Journal) join(events []Event, size int, start time.Time) (*envelope, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.closed:
		return nil, ErrClosed
	case j.pending+len(events) > j.config.Queue:
		return nil, ErrBusy
	}
	if e := j.filling; e != nil && (e.events+len(events) > j.config.MaxEvents || len(e.buf)+size > j.config.MaxBytes) {
		j.full = append(j.full, e)
		j.filling = nil
	}
	if j.filling == nil {
		j.filling = &envelope{encoder: j.encoder(size), began: time.Now(), done: make(chan struct{})}
	}
	e := j.filling
	for i := range events {
		e.add(&events[i])
		e.kinds[events[i].Kind]++
	}
	e.calls++
	if d := start.Add(j.config.Wait); d.After(e.deadline) {
		e.deadline = d
	}
	j.pending += len(events)
	if e.calls == 1 || e.calls == j.crowd {
		j.signal()
	}
	return e, nil
}

// encoder is for a new envelope.
func (j *Journal) encoder(capacity int) *encoder {
	w := j.spare
	if j.spare = nil; w == nil {
		w = newEncoder(capacity)
	}
	return w
}

// signal makes Run look again.
func (j *Journal) signal() {
	select {
	case j.wake <- struct{}{}:
	default: // it is going to look anyway
	}
}

// Run commits what is appended until ctx ends. Then it takes nothing more, commits
// what waits, which takes no longer than [Config.Wait], and returns nil. End ctx
// after the servers have drained, and close the store after Run has returned. Run is
// called once.
func (j *Journal) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		j.mu.Lock()
		j.closed = true
		j.mu.Unlock()
		j.signal()
	})
	defer stop()
	for e := j.next(); e != nil; e = j.next() {
		j.commit(context.WithoutCancel(ctx), e)
	}
	return nil
}

// next waits for an envelope that is ready to leave; nil when the journal is closed
// and empty.
func (j *Journal) next() *envelope {
	timer := time.NewTimer(j.config.Fill)
	defer timer.Stop()
	for {
		e, wait, closed := j.take()
		if e != nil || closed {
			return e
		}
		timer.Reset(wait)
		select {
		case <-j.wake:
		case <-timer.C:
		}
	}
}

// take takes the envelope that leaves next from the queue. When none is ready, wait
// is how long until one may be, as things are.
func (j *Journal) take() (e *envelope, wait time.Duration, closed bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch e = j.filling; {
	case len(j.full) > 0:
		e, j.full = j.full[0], j.full[1:]
	case e == nil:
		return nil, time.Hour, j.closed
	default:
		// A crowd of one waits for nobody.
		if wait = j.config.Fill - time.Since(e.began); wait > 0 && e.calls < j.crowd && !j.closed {
			return nil, wait, false
		}
		j.filling = nil
	}
	j.crowd = e.calls
	return e, 0, false
}

// commit sends an envelope until it is acknowledged, refused, or nobody waits for it
// any more, and tells its callers.
func (j *Journal) commit(ctx context.Context, e *envelope) {
	data := e.seal()
	e.seq, e.err = j.send(ctx, e.deadline, data)
	j.metrics.committed(e, len(data))

	j.mu.Lock()
	before := j.trouble
	j.trouble = e.err
	j.pending -= e.events
	j.spare = e.encoder
	j.spare.reset()
	j.mu.Unlock()
	close(e.done)

	// A store that is gone is told of twice: when it goes, and when it is back.
	switch {
	case e.err != nil && before == nil:
		j.slog.LogAttrs(ctx, slog.LevelError, "the journal cannot be written", slog.Any("err", e.err))
	case e.err == nil && before != nil:
		j.slog.LogAttrs(ctx, slog.LevelInfo, "the journal is written again")
	}
}

// Err is why the last envelope could not be written; nil when it was.
func (j *Journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.trouble
}
