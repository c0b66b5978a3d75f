package telemetry

import (
	"cmp"
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/sync/errgroup"

	"deckle/internal/store"
)

// Config configures a [Recorder]. The zero value records nothing.
type Config struct {
	// Log gives the store's auctions log, or nil while there is none. A nil function:
	// events do not go into a store.
	Log func() store.Log

	// ExportFile gets one JSON line an event. Empty: there is none.
	ExportFile string

	// RotateAt is how many bytes the file has before another is begun. Defaults to
	// 64 MiB.
	RotateAt int64

	// Keep is how many full files are kept beside it: FILE.1 is the newest. Defaults
	// to 8.
	Keep int

	// Queue is how many events may wait for each sink. Defaults to 4096.
	Queue int

	// SkipSample is of how many page views without an auction one becomes an event.
	// Defaults to 100.
	SkipSample int
}

// A Recorder takes events and writes them in the background. Record may be called
// concurrently.
type Recorder struct {
	sinks   []*sink
	sample  uint64
	skipped atomic.Uint64
	metrics *Metrics
}

// A sink is one destination with its queue of lines.
type sink struct {
	name  string
	queue chan []byte
	run   func(ctx context.Context, q queue) // until q has ended
}

// A queue is what a sink reads its lines from.
type queue struct {
	lines <-chan []byte
	ended <-chan struct{} // nothing will be added any more
}

// next waits for a line. It reports false when there will be none.
func (q queue) next() ([]byte, bool) {
	select {
	case line := <-q.lines:
		return line, true
	case <-q.ended:
	}
	select {
	case line := <-q.lines:
		return line, true
	default:
		return nil, false
	}
}

// What is written at once at most. A message of the store is one fsync, so that a
// busy node writes many events in one; an idle one does not wait for more.
const (
	maxBatchLines = 256
	maxBatchBytes = 256 << 10
)

// batch waits for a line, takes what else is there, and says how many they are. It
// gives none when there will be none.
func (q queue) batch() (lines []byte, n int) {
	line, ok := q.next()
	if !ok {
		return nil, 0
	}
	for n = 1; n < maxBatchLines && len(lines)+len(line) < maxBatchBytes; n++ {
		lines = append(lines, line...)
		select {
		case line = <-q.lines:
		default:
			return lines, n
		}
	}
	return append(lines, line...), n
}

// New makes a recorder. Events wait, within their bounds, until [Recorder.Run] is
// called.
func New(c Config, log *slog.Logger) *Recorder {
	r := &Recorder{metrics: newMetrics(), sample: uint64(cmp.Or(c.SkipSample, 100))}
	add := func(name string, run func(context.Context, queue)) {
		r.sinks = append(r.sinks, &sink{name, make(chan []byte, cmp.Or(c.Queue, 4096)), run})
		r.metrics.of(name)
	}
	if c.Log != nil {
		add(sinkStore, (&stream{log: c.Log, metrics: r.metrics, id: newID()}).run)
	}
	if c.ExportFile != "" {
		f := &file{path: c.ExportFile, rotateAt: cmp.Or(c.RotateAt, 64<<20), keep: cmp.Or(c.Keep, 8), metrics: r.metrics, log: log}
		add(sinkFile, f.run)
	}
	return r
}

// Metrics are the recorder's figures, to be registered once.
func (r *Recorder) Metrics() *Metrics { return r.metrics }

// Record takes one event. It never blocks: what a sink has no room for is dropped
// there, and counted. Of page views without an auction it takes one in SkipSample.
func (r *Recorder) Record(e Event) {
	if len(r.sinks) == 0 {
		return
	}
	if e.Outcome != OutcomeRun {
		if r.sample > 1 {
			if r.skipped.Add(1)%r.sample != 1 {
				return
			}
			e.Sample = int(r.sample)
		}
	}
	e.At = e.At.UTC().Truncate(time.Millisecond)
	line, err := json.Marshal(&e, json.Deterministic(true))
	if err != nil { // our own type
		panic("telemetry: an event does not encode: " + err.Error())
	}
	line = append(line, '\n')
	for _, s := range r.sinks {
		select {
		case s.queue <- line:
		default:
			r.metrics.add(s.name, outcomeDropped, 1)
		}
	}
}

// Run writes events until ctx ends, then those that wait, for a second at most. It
// may be called once, and returns nil. Nothing may be recorded after ctx has ended:
// it would be lost without being counted.
func (r *Recorder) Run(ctx context.Context) error {
	const drain = time.Second
	writing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var g errgroup.Group
	for _, s := range r.sinks {
		g.Go(func() error {
			s.run(writing, queue{s.queue, ctx.Done()})
			return nil
		})
	}
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(drain, cancel)
		context.AfterFunc(writing, func() { timer.Stop() })
	})
	defer stop()
	return g.Wait()
}
