package projection

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"deckle/internal/obs"
	"deckle/internal/store"
)

// retryPeriod is how long a fold waits after a failure that may pass.
const retryPeriod = 5 * time.Second

// errEnded says that reading the journal ended, which it should not.
var errEnded = errors.New("the journal ended")

// health says whether a fold goes on.
type health struct {
	mu      sync.Mutex
	err     error // why it does not; nil when it does, as far as is known
	stopped bool  // it will not before the next start
}

// keepGoing runs fold until ctx is done or it fails for good. What may pass is
// tried again.
func (h *health) keepGoing(ctx context.Context, log *slog.Logger, fold func() error) {
	for {
		err := cmp.Or(fold(), errEnded)
		if ctx.Err() != nil {
			return
		}
		again := errors.Is(err, store.ErrUnavailable) || passing(err)
		if h.failed(err, again) {
			log.Error("projection does not go on", "again", again, "err", err)
		}
		if !again {
			return
		}
		select {
		case <-time.After(retryPeriod):
		case <-ctx.Done():
			return
		}
	}
}

// failed notes a failure and reports whether it is another one than the last.
func (h *health) failed(err error, again bool) (other bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	other = h.err == nil || h.err.Error() != err.Error()
	h.err, h.stopped = err, !again
	return other
}

// recovered notes that the fold has gone on.
func (h *health) recovered() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = nil
}

// reached notes that the store answers; a disk may still be full.
func (h *health) reached() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if errors.Is(h.err, store.ErrUnavailable) {
		h.err = nil
	}
}

// check says how the fold is: ok with note, or bad with the reason.
func (h *health) check(part string, bad obs.State, note string) obs.Check {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.stopped:
		return obs.Check{Part: part, State: bad, Note: note + ", and stopped: " + h.err.Error()}
	case h.err != nil:
		return obs.Check{Part: part, State: bad, Note: note + ", and waits: " + h.err.Error()}
	}
	return obs.Check{Part: part, State: obs.OK, Note: note}
}
