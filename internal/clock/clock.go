// Package clock takes a node out of service whose clock is too far from the
// store's.
//
// Tokens of one node are verified by others, by their clocks. That is harmless as
// long as two of them differ by less than max_skew, and so as long as none is
// further than half of it from the one clock that all can read: the store's. A node
// beyond that answers no batch and takes no beacon. Pages go on: nothing in them is
// compared across nodes.
//
// Nothing is written for it: a store that is full has a time all the same, and so
// nobody who fills it takes a node out of service.
package clock

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"deckle/internal/obs"
)

// A Source is a clock that all nodes can read: [store.Store] is one. Now asks whoever
// stamps what is written, and returns an error when that does not answer.
type Source interface {
	Now(ctx context.Context) (time.Time, error)
}

// Config configures a [Clock]. The zero value is ready to use.
type Config struct {
	// MaxSkew is the most by which the clocks of two nodes may differ. Defaults to 2
	// minutes.
	MaxSkew time.Duration

	// Every is the time between two measurements. Defaults to 30 seconds.
	Every time.Duration

	Log *slog.Logger // defaults to silence
}

func (c Config) withDefaults() Config {
	if c.MaxSkew == 0 {
		c.MaxSkew = 2 * time.Minute
	}
	if c.Every == 0 {
		c.Every = 30 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// again is the time to the next measurement after one that failed.
const again = 5 * time.Second

// A Clock knows how far this node's clock is off the store's. All methods may be
// called concurrently.
type Clock struct {
	source Source
	config Config
	offset prometheus.GaugeFunc

	mu   sync.Mutex
	last measurement // zero: there has been none
	err  error       // why the newest attempt gave none
}

// A measurement is what one question to the store has told.
type measurement struct {
	offset time.Duration // of the store's clock from ours; positive: ours is behind
	within time.Duration // the offset is right to ± this: half of how long the answer took
	at     time.Time
}

// New makes a clock that compares itself with a source. It knows nothing until
// [Clock.Run].
func New(source Source, c Config) *Clock {
	cl := &Clock{source: source, config: c.withDefaults()}
	cl.offset = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "deckle", Subsystem: "clock", Name: "offset_seconds",
		Help: "How far the store's clock is ahead of this node's, as last measured.",
	}, func() float64 { return cl.newest().offset.Seconds() })
	return cl
}

// Register makes the clock's figure known to r.
func (c *Clock) Register(r prometheus.Registerer) error { return r.Register(c.offset) }

// Run measures until ctx is done; then it returns nil.
func (c *Clock) Run(ctx context.Context) error {
	inService := true // as far as has been said
	for {
		next := c.config.Every
		m, err := c.measure(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			next = min(next, again)
		}
		c.note(m, err)
		inService = c.say(inService)
		select {
		case <-time.After(next):
		case <-ctx.Done():
			return nil
		}
	}
}

// say logs when the node leaves service or comes back, once there has been a
// measurement, and returns whether it is in service.
func (c *Clock) say(inService bool) bool {
	ok, why := c.Ready()
	switch {
	case c.newest().at.IsZero() || ok == inService:
		return inService
	case ok:
		c.config.Log.Info("this node's clock is right again: it answers batches and takes beacons")
	default:
		c.config.Log.Warn("this node answers no batches and takes no beacons", "reason", why)
	}
	return ok
}

// measure asks once and compares the store's time with ours before and after.
func (c *Clock) measure(ctx context.Context) (measurement, error) {
	before := time.Now()
	theirs, err := c.source.Now(ctx)
	if err != nil {
		return measurement{}, err
	}
	half := time.Since(before) / 2
	if half > c.limit()/2 {
		return measurement{}, fmt.Errorf("the answer took %v: too long to tell the store's time from", 2*half)
	}
	return measurement{offset: theirs.Sub(before.Add(half)), within: half, at: before}, nil
}

func (c *Clock) note(m measurement, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
	if err == nil {
		c.last = m
	}
}

func (c *Clock) newest() measurement {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// limit is how far off a clock may be.
func (c *Clock) limit() time.Duration { return c.config.MaxSkew / 2 }

// Ready reports whether this node may answer batches and take beacons, and if not,
// why. It may not before the first measurement. While the store is out of reach
// what was measured last holds: a clock drifts by seconds in a day.
func (c *Clock) Ready() (ok bool, why string) {
	m := c.newest()
	switch {
	case m.at.IsZero():
		return false, "this node's clock has not been compared with the store's yet"
	case m.offset.Abs()+m.within > c.limit():
		return false, fmt.Sprintf("this node's clock is %s the store's, %v are allowed: set it right (NTP)", m, c.limit())
	}
	return true, ""
}

// String says how the clock stands: "1m3.2s behind".
func (m measurement) String() string {
	word := "behind"
	if m.offset < 0 {
		word = "ahead of"
	}
	return fmt.Sprintf("%v %s", m.offset.Abs().Round(time.Millisecond), word)
}

// Check says the same for readiness. A node that may not is not ready; its pages go
// on all the same, so whoever wants it to keep their traffic degrades that.
func (c *Clock) Check() obs.Check {
	check := obs.Check{Part: "clock", State: obs.OK}
	ok, why := c.Ready()
	c.mu.Lock()
	defer c.mu.Unlock()
	if check.Note = why; !ok {
		check.State = obs.NotReady
	} else {
		check.Note = fmt.Sprintf("%v the store's", c.last)
	}
	if c.err != nil {
		check.Note += "; the last measurement failed: " + c.err.Error()
	}
	return check
}
