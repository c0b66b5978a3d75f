package auction

import (
	"sync"
	"time"
)

// When a circuit opens, and for how long.
const (
	maxFailures = 10 // in a row
	minPause    = time.Second
	maxPause    = 30 * time.Second
)

// A circuit keeps calls from a provider that has failed many times in a row: pages
// do not wait for it, and it is not asked more while it recovers. From time to time
// one call is let through, and its success closes the circuit.
//
// Failures are those of the provider as a whole, for every site. That a page's own
// request is refused, that its reader leaves, or that it had too little time, is none.
type circuit struct {
	mu       sync.Mutex
	failures int           // in a row
	pause    time.Duration // before the next trial; 0: closed
	until    time.Time     // of that trial
	trying   bool          // it is under way
}

// allow reports whether the provider may be called now. Whoever is allowed tells
// [circuit.report] how it went. A call that is not fair, because it has too little
// time to show anything, is never the trial of an open circuit.
func (c *circuit) allow(now time.Time, fair bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.pause == 0:
		return true
	case c.trying || !fair || now.Before(c.until):
		return false
	}
	c.trying = true
	return true
}

// A health is what one call says of its provider.
type health int

const (
	nothingLearned health = iota
	healthy
	failing
)

// report takes what a call has come to, and returns whether the circuit is open
// from now on.
func (c *circuit) report(now time.Time, h health) (open bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch h {
	case healthy:
		c.failures, c.pause, c.trying = 0, 0, false
	case failing:
		if c.failures++; c.pause == 0 && c.failures >= maxFailures {
			c.pause, c.until = minPause, now.Add(minPause)
		} else if c.trying {
			c.pause = min(2*c.pause, maxPause)
			c.until, c.trying = now.Add(c.pause), false
		}
	case nothingLearned:
		c.trying = false
	}
	return c.pause > 0
}
