package track

import (
	"context"

	"deckle/internal/journal"
)

// Once is what makes an event be written once.
type Once struct{ *once }

// NewOnce has generations of so many ids.
func NewOnce(size int) Once { return Once{newOnce(size)} }

// Do writes an event, unless it has been.
func (o Once) Do(ctx context.Context, id journal.EventID, write func() error) error {
	return o.do(ctx, id, write)
}

// Held is how many ids and flights there are.
func (o Once) Held() int { return len(o.young) + len(o.old) + len(o.flights) }
