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

// send writes an envelope to the log, and tries until deadline. A lost
// acknowledgement is asked for again with the same message id, so that the log has
// the envelope once.
func (j *Journal) send(ctx context.Context, deadline time.Time, data []byte) (store.Seq, error) {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	id := messageID(data)
	err := fmt.Errorf("nobody waits for it any more: %w", store.ErrUnavailable)
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, maxPause) {
		var seq store.Seq
		if seq, err = j.attempt(ctx, id, data); err == nil {
			return seq, nil
		}
		if !retryable(err) {
			break
		}
		j.metrics.retries.Inc()
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
	return 0, fmt.Errorf("append to journal: %w", err)
}

func (j *Journal) attempt(ctx context.Context, id string, data []byte) (store.Seq, error) {
	ctx, cancel := context.WithTimeout(ctx, j.config.Attempt)
	defer cancel()
	return j.log.Append(ctx, id, data)
}

// retryable reports whether another try may help soon: not when the store is full,
// and not when it refuses the message for what it is.
func retryable(err error) bool {
	return errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrFull)
}

// messageID is the id by which the log knows an envelope again: 128 bits of the hash
// of its bytes, the same for every try and on every node.
func messageID(data []byte) string {
	sum := sha256.Sum256(data)
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}
