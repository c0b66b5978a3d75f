package telemetry

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"time"

	"deckle/internal/store"
)

// How long is waited before a store that could not answer is asked again.
const (
	minRetry = 100 * time.Millisecond
	maxRetry = 5 * time.Second
)

// A stream writes events into the store's auctions log, several lines a message.
type stream struct {
	log     func() store.Log
	metrics *Metrics
	id      string // of this process, so that a message that is sent again is known
	sent    uint64
}

func newID() string { return rand.Text() }

func (s *stream) run(ctx context.Context, q queue) {
	for {
		lines, n := q.batch()
		if n == 0 {
			return
		}
		s.append(ctx, lines, n)
	}
}

// append writes one message. It asks an unavailable store again until ctx ends;
// what comes meanwhile waits in the queue, and is dropped when that is full.
func (s *stream) append(ctx context.Context, lines []byte, n int) {
	s.sent++
	id := "a-" + s.id + "-" + strconv.FormatUint(s.sent, 10)
	for pause := minRetry; ; pause = min(2*pause, maxRetry) {
		err := store.ErrUnavailable
		if log := s.log(); log != nil {
			_, err = log.Append(ctx, id, lines)
		}
		switch {
		case err == nil:
			s.metrics.add(sinkStore, outcomeWritten, n)
			return
		case !errors.Is(err, store.ErrUnavailable) || !wait(ctx, pause):
			s.metrics.add(sinkStore, outcomeFailed, n)
			return
		}
	}
}

// wait reports false if ctx ends before d is over.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
