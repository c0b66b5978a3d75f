package journaltest

import (
	"time"

	"deckle/internal/journal"
)

// A told is an event with the moment at which it is taken. What is taken at one
// moment is taken in the order in which it was made.
type told struct {
	at    time.Time
	order int
	journal.Event
}

// A queue is a heap of what is going to be told, the next first.
type queue []told

func (q queue) Len() int      { return len(q) }
func (q queue) Swap(a, b int) { q[a], q[b] = q[b], q[a] }
func (q *queue) Push(x any)   { *q = append(*q, x.(told)) }

func (q queue) Less(a, b int) bool {
	if !q[a].at.Equal(q[b].at) {
		return q[a].at.Before(q[b].at)
	}
	return q[a].order < q[b].order
}

func (q *queue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	*q = (*q)[:last]
	return x
}
