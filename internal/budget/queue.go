package budget

import (
	"context"
	"sync"
)

// queued says how a line waits.
type queued uint8

const (
	notQueued queued = iota
	later            // somebody should look at it
	urgent           // a reader has waited for it in vain, or soon will
)

// A queue is the lines that wait for somebody to look at them, urgent ones first. A
// line is in it once for each urgency, at most.
type queue struct {
	wake chan struct{} // one token for each worker that may have something to do

	mu     sync.Mutex
	urgent []*line
	later  []*line
	marks  map[*line]queued
}

func newQueue(workers int) *queue {
	return &queue{wake: make(chan struct{}, workers), marks: map[*line]queued{}}
}

func (q *queue) push(l *line, how queued) {
	q.mu.Lock()
	before := q.marks[l]
	if before < how {
		q.marks[l] = how
		if how == urgent {
			q.urgent = append(q.urgent, l)
		} else {
			q.later = append(q.later, l)
		}
	}
	q.mu.Unlock()
	if before < how {
		select {
		case q.wake <- struct{}{}:
		default: // every worker is awake
		}
	}
}

// pop waits for a line, and returns nil when ctx is done.
func (q *queue) pop(ctx context.Context) *line {
	for {
		if l := q.next(); l != nil || ctx.Err() != nil {
			return l
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
		}
	}
}

// next is the line whose turn it is; nil when none waits.
func (q *queue) next() *line {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.urgent)+len(q.later) > 0 {
		list, how := &q.urgent, urgent
		if len(q.urgent) == 0 {
			list, how = &q.later, later
		}
		l := (*list)[0]
		(*list)[0] = nil
		if *list = (*list)[1:]; len(*list) == 0 {
			*list = nil
		}
		if q.marks[l] == how { // else it was in the other list as well, and has been done
			delete(q.marks, l)
			return l
		}
	}
	return nil
}

// waiting is how many lines wait, and how many of them urgently.
func (q *queue) waiting() (all, hurry int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, how := range q.marks {
		if how == urgent {
			hurry++
		}
	}
	return len(q.marks), hurry
}
