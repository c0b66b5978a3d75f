package journal

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"deckle/internal/store"
)

// Pauses between attempts to write an envelope.
const (
	firstPause = 10 * time.Millisecond
	maxPause   = 250 * time.Millisecond
)

// send writes an envelope to the log. A lost acknowledgement is asked for again with
// the same message id, so that the log has the envelope once.
func (j *Journal) send(ctx context.Context, deadline time.Time, data []byte) (store.Seq, error) {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	id := messageID(data)
	last := store.ErrUnavailable // nobody waits for it: it has not been tried
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, maxPause) {
		seq, err := j.attempt(ctx, id, data)
		if err == nil {
			return seq, nil
		}
		if !retryable(err) {
			return 0, fmt.Errorf("append to journal: %w", err)
		}
		last = err
		j.metrics.retries.Inc()
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
	if !errors.Is(last, store.ErrUnavailable) { // the attempt's own time limit
		last = fmt.Errorf("%w: %w", store.ErrUnavailable, last)
	}
	return 0, fmt.Errorf("append to journal: gave up: %w", last)
}

func (j *Journal) attempt(ctx context.Context, id string, data []byte) (store.Seq, error) {
	ctx, cancel := context.WithTimeout(ctx, j.config.Attempt)
	defer cancel()
	return j.log.Append(ctx, id, data)
}

// retryable reports whether another try may help soon: not when the store is full,
// and not when it refuses the message for what it is.
func retryable(err error) bool {
	if errors.Is(err, store.ErrFull) || errors.Is(err, store.ErrTooLarge) {
		return false
	}
	return errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
}

// messageID is the id by which the log knows an envelope again: 128 bits of the hash
// of its bytes, the same for every try and on every node.
func messageID(data []byte) string {
	sum := sha256.Sum256(data)
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}
