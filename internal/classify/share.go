package classify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"deckle/internal/store"
)

// record is the value of a page in the bucket. It says nothing of the page but what
// it is about.
type record struct {
	At         int64            `json:"at"` // ms since 1970
	Categories []recordCategory `json:"categories"`
}

type recordCategory struct {
	ID         string  `json:"id"`
	Confidence float64 `json:"confidence"`
	Source     Source  `json:"source"`
}

func encode(p Page) ([]byte, error) {
	r := record{At: p.At.UnixMilli()}
	for _, c := range p.Categories {
		r.Categories = append(r.Categories, recordCategory(c))
	}
	return json.Marshal(r)
}

func decode(value []byte) (Page, error) {
	var r record
	if err := json.Unmarshal(value, &r); err != nil {
		return Page{}, fmt.Errorf("read page: %w", err)
	}
	p := Page{At: time.UnixMilli(r.At)}
	if n := len(r.Categories); n < 1 || n > MaxCategories {
		return Page{}, fmt.Errorf("read page: it has %d categories", n)
	}
	for _, c := range r.Categories {
		if c.ID == "" || !(c.Confidence > 0 && c.Confidence <= 1) {
			return Page{}, fmt.Errorf("read page: category %q with confidence %v", c.ID, c.Confidence)
		}
		p.Categories = append(p.Categories, Category(c))
	}
	return p, nil
}

// watchAgain is how long a watch that has failed rests.
const watchAgain = time.Second

// follow learns what the bucket has and gets, until ctx is done.
func (c *Classifier) follow(ctx context.Context) error {
	for ctx.Err() == nil {
		err := c.kv.Watch(ctx, func(change store.Change) error {
			if !change.Complete && !change.Deleted {
				c.told(change.Entry)
			}
			return nil
		})
		if err != nil && ctx.Err() == nil {
			c.log.Warn("pages of other nodes are not followed", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(watchAgain):
		}
	}
	return nil
}

// told takes an entry of the bucket. One that we cannot read is counted; the bucket
// may hold what other parts, or later versions, keep there.
func (c *Classifier) told(e store.Entry) {
	key, err := parseKey(e.Key)
	if err != nil {
		return
	}
	p, err := decode(e.Value)
	if err != nil {
		c.metrics.unreadable.Inc()
		return
	}
	c.memory.told(key, p, e.Revision)
}

// write writes what is on the queue, one after the other, until ctx is done.
func (c *Classifier) write(ctx context.Context) error {
	for {
		select {
		case key := <-c.queue:
			if c.limit.Wait(ctx) != nil {
				return nil
			}
			c.metrics.writes.WithLabelValues(c.writePage(ctx, key)).Inc()
		case <-ctx.Done():
			return nil
		}
	}
}

// writePage writes a page and says what became of it. Where another node was first,
// what that wrote counts, unless it is old.
func (c *Classifier) writePage(ctx context.Context, key pageKey) (outcome string) {
	p, revision, skip := c.memory.toWrite(key)
	if skip != "" {
		return skip
	}
	value, err := encode(p)
	if err != nil {
		return writeFailed
	}
	written, err := c.kv.Put(ctx, key.String(), value, revision)
	if errors.Is(err, store.ErrConflict) {
		if written, err = c.overwrite(ctx, key, p, value); err == nil && written == 0 {
			return writeElsewhere
		}
	}
	if err != nil {
		return writeFailed
	}
	c.memory.told(key, p, written)
	return writeDone
}

// overwrite writes a page over a revision that we did not know of. It returns 0, and
// learns what is there, if that is as good as ours.
func (c *Classifier) overwrite(ctx context.Context, key pageKey, p Page, value []byte) (uint64, error) {
	e, err := c.kv.Get(ctx, key.String())
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return 0, err
	}
	if there, err := decode(e.Value); err == nil && p.At.Sub(there.At) < refresh {
		c.memory.told(key, there, e.Revision)
		return 0, nil
	}
	return c.kv.Put(ctx, key.String(), value, e.Revision)
}
