package track

import (
	"context"
	"errors"
	"sync"

	"deckle/internal/journal"
)

// remembered is how many ids a generation has: two of them, some 40 bytes an id,
// are 5 MB. It only has to last until the fold has come to them, and until then there
// is nothing wrong with writing an event again.
const remembered = 1 << 16

// once lets an event be written once: those that come while it is on its way wait for
// it, and those that come later find it among the last that were durable.
type once struct {
	size int // of a generation

	mu         sync.Mutex
	flights    map[journal.EventID]*flight
	young, old map[journal.EventID]struct{} // durable
}

// A flight is an event on its way to the journal.
type flight struct {
	done chan struct{} // closed when it has ended
	err  error         // then; nil when the event is durable
}

var errNotWritten = errors.New("the event was not written")

func newOnce(size int) *once {
	return &once{size: size, flights: map[journal.EventID]*flight{}, young: map[journal.EventID]struct{}{}}
}

// do calls write, unless the event is known to be durable or on its way; then it
// returns what becomes of that. nil says that the event is durable. ctx ends the
// waiting for another's write, never the own one.
func (o *once) do(ctx context.Context, id journal.EventID, write func() error) error {
	f, mine := o.join(id)
	switch {
	case f == nil:
		return nil
	case !mine:
		select {
		case <-f.done:
			return f.err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	f.err = errNotWritten // as long as write has not returned, and it may panic
	defer o.land(id, f)
	f.err = write()
	return f.err
}

// join gives the event's flight, which is the caller's when there was none; nil when
// the event is durable.
func (o *once) join(id journal.EventID) (f *flight, mine bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.young[id]; ok {
		return nil, false
	}
	if _, ok := o.old[id]; ok {
		return nil, false
	}
	if f := o.flights[id]; f != nil {
		return f, false
	}
	f = &flight{done: make(chan struct{})}
	o.flights[id] = f
	return f, true
}

// land ends a flight.
func (o *once) land(id journal.EventID, f *flight) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.flights, id)
	if f.err == nil {
		if len(o.young) >= o.size {
			o.young, o.old = map[journal.EventID]struct{}{}, o.young
		}
		o.young[id] = struct{}{}
	}
	close(f.done)
}
