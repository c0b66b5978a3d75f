package auction

import (
	"context"
	"net/http/httptrace"
	"sync"
	"time"
)

// A network estimates how much of a call's time is on the way: what a call took
// beyond what the provider says that it needed itself, or, where it says nothing,
// how long a connection took to be made, which is one round trip.
//
// It is smoothed as TCP smooths its round trips (RFC 6298): a mean, and a mean
// deviation from it.
type network struct {
	mu        sync.Mutex
	mean, dev time.Duration
	observed  bool
	told      bool // by the provider; round trips do not count any more
}

// estimate is how long the way there and back takes, on the safe side.
func (n *network) estimate() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mean + 2*n.dev
}

// called takes a call that took so long, of which the provider says that it needed
// took itself; 0: it says nothing.
func (n *network) called(elapsed, took time.Duration) {
	if took <= 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.told {
		n.told, n.observed = true, false
	}
	n.observe(max(0, elapsed-took))
}

// connected takes the time of a connection's making.
func (n *network) connected(elapsed time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.told {
		n.observe(elapsed)
	}
}

// observe needs mu.
func (n *network) observe(d time.Duration) {
	if !n.observed {
		n.observed, n.mean, n.dev = true, d, d/2
		return
	}
	n.dev += ((n.mean - d).Abs() - n.dev) / 4
	n.mean += (d - n.mean) / 8
}

// traced is ctx for a call whose connection, if it makes one, is observed. It may be
// made after the call has ended, for the next one.
func (n *network) traced(ctx context.Context) context.Context {
	n.mu.Lock()
	told := n.told
	n.mu.Unlock()
	if told {
		return ctx
	}
	var mu sync.Mutex // a dialer may try two addresses at once
	started := map[string]time.Time{}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		ConnectStart: func(_, address string) {
			mu.Lock()
			defer mu.Unlock()
			started[address] = time.Now()
		},
		ConnectDone: func(_, address string, err error) {
			mu.Lock()
			defer mu.Unlock()
			if start, ok := started[address]; ok && err == nil {
				n.connected(time.Since(start))
			}
		},
	})
}
