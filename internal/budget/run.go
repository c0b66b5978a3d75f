package budget

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"deckle/internal/journal"
	"deckle/internal/store"
)

const (
	lookEvery = time.Second
	lookPause = 50 * time.Millisecond // between two looks, however much happens
	retry     = time.Second           // after the store did not answer
	maxMoves  = 8                     // of a line in one go
	endWithin = 3 * time.Second
)

// Run takes, seals and settles leases until ctx is done; then it reserves nothing more,
// gives back what it can (see the package comment), which takes no longer than three
// seconds, and returns nil. End ctx after the servers have drained, and end the journal
// after Run has returned. Run is called once.
//
// A store that cannot be reached is asked again: what is leased is spent meanwhile, and
// nothing more.
func (b *Book) Run(ctx context.Context) error {
	var g sync.WaitGroup
	g.Go(func() { b.follow(ctx) })
	g.Go(func() { b.live(ctx) })
	g.Go(func() { b.look(ctx) })
	for range b.config.Workers {
		g.Go(func() { b.work(ctx) })
	}
	g.Wait()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
	defer cancel()
	b.end(last)
	return nil
}

// follow keeps what is known of the bucket up to date.
func (b *Book) follow(ctx context.Context) {
	for {
		err := b.config.KV.Watch(ctx, func(c store.Change) error {
			b.told(&c)
			return nil
		})
		if ctx.Err() != nil {
			return
		}
		b.note(err)
		if !pause(ctx, retry) {
			return
		}
	}
}

// pause waits, and reports whether ctx is not done.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// told takes over a change of the bucket.
func (b *Book) told(c *store.Change) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.Complete {
		b.followed = true
		b.nudge()
		return
	}
	if id, ok := strings.CutPrefix(c.Key, nodePrefix); ok {
		b.toldNode(id, c)
		return
	}
	if c.Deleted && b.lines[c.Key] == nil {
		return // of a day long past
	}
	if k, _, ok := parseLine(c.Key); ok {
		b.toldLine(b.line(c.Key, k), c)
	}
}

// toldLine takes over a line as the store has it, unless a newer one is known. The
// book's lock is held.
func (b *Book) toldLine(l *line, c *store.Change) {
	if c.Revision <= l.seen {
		return
	}
	l.seen, l.revision, l.unread = c.Revision, c.Revision, false
	if c.Deleted {
		l.revision, l.record = 0, record{}
	} else if r, err := decodeRecord(c.Value); err != nil {
		l.unread = true
		b.config.Log.Error("a budget line cannot be read, and is left alone", "line", l.name, "err", err)
		return
	} else {
		l.record = r
	}
	l.forget(b.leases.remove)
}

// look looks over all lines, again and again.
func (b *Book) look(ctx context.Context) {
	for {
		now := time.Now()
		b.holds.expire(now)
		b.reindex(now)
		b.sweep(now)
		if !pause(ctx, lookPause) {
			return
		}
		select {
		case <-b.nudged:
		case <-time.After(lookEvery - lookPause):
		case <-ctx.Done():
			return
		}
	}
}

// sweep queues every line for which there is something to do. It takes the lock for a
// few lines at a time: nobody waits for all of them.
func (b *Book) sweep(now time.Time) {
	const few = 64
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.followed {
		return
	}
	all := make([]*line, 0, len(b.lines))
	for _, l := range b.lines {
		all = append(all, l)
	}
	for i, l := range all {
		if i%few == few-1 {
			b.mu.Unlock()
			b.mu.Lock()
		}
		l.wanted.Store(false)
		if p := b.plan(l, now); !p.nothing() {
			b.queue.push(l, later)
		} else if l.holdsNothing() {
			delete(b.lines, l.name)
		}
	}
}

// work takes one line after another from the queue.
func (b *Book) work(ctx context.Context) {
	for {
		l := b.queue.pop(ctx)
		if l == nil {
			return
		}
		if err := b.move(ctx, l); err != nil && ctx.Err() == nil {
			b.note(err)
			if !pause(ctx, retry) {
				return
			}
		}
	}
}

// move does what there is to do for a line. One worker does so at a time.
func (b *Book) move(ctx context.Context, l *line) error {
	b.mu.Lock()
	if l.busy {
		l.again = true
		b.mu.Unlock()
		return nil
	}
	l.busy, l.again = true, false
	b.mu.Unlock()

	var err error
	more := true
	for moves := 0; more && err == nil && moves < maxMoves; moves++ {
		more, err = b.moveOnce(ctx, l)
	}

	b.mu.Lock()
	l.busy = false
	again := l.again
	b.mu.Unlock()
	if again { // what is left for other reasons waits for the next look
		b.queue.push(l, urgent)
	}
	return err
}

// moveOnce makes one write, the next one of the plan, and reports whether there may be
// another.
func (b *Book) moveOnce(ctx context.Context, l *line) (more bool, err error) {
	now := time.Now()
	b.mu.Lock()
	if !b.followed {
		b.mu.Unlock()
		return false, nil
	}
	if l.fresh != nil && l.terms == nil {
		l.fresh = nil // nobody has reserved from it, and nobody will
	}
	p := b.plan(l, now)
	for _, one := range p.shut {
		one.close()
		b.metrics.step(stepClosed)
	}
	if len(p.shut) > 0 {
		l.reopen()
	}
	var taken *lease
	if p.take > 0 {
		taken = newLease(b.self.lease(), p.take, now)
		p.next.Leases = append(p.next.Leases, grant{ID: taken.id, Node: b.self.id, Amount: taken.amount})
	}
	revision := l.revision
	b.mu.Unlock()

	switch {
	case p.journal != nil:
		return true, b.publish(ctx, l, p.journal)
	case p.write:
		return true, b.write(ctx, l, &p, taken, revision)
	case p.remove:
		return true, b.remove(ctx, l, revision)
	case len(p.seal) > 0:
		return true, b.seal(ctx, l, p.seal)
	}
	return false, nil
}

// write writes a line by compare-and-set. Where it has another revision, it is read
// again.
func (b *Book) write(ctx context.Context, l *line, p *plan, taken *lease, revision uint64) error {
	value, err := p.next.encode()
	if err != nil {
		return fmt.Errorf("encode line %s: %w", l.name, err)
	}
	start := time.Now()
	written, err := b.config.KV.Put(ctx, l.name, value, revision)
	b.metrics.wrote(time.Since(start))
	if errors.Is(err, store.ErrConflict) {
		b.metrics.conflicts.Inc()
		return b.reread(ctx, l)
	}
	if err != nil {
		return fmt.Errorf("write line %s: %w", l.name, err)
	}
	b.note(nil)
	b.metrics.stepped(stepSettled, len(p.settled))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.toldLine(l, &store.Change{Entry: store.Entry{Key: l.name, Value: value, Revision: written}})
	if taken != nil && l.record.has(taken.id) && b.self.took(taken.id) {
		l.fresh = taken
	}
	return nil
}

// reread takes over what the leader has of a line.
func (b *Book) reread(ctx context.Context, l *line) error {
	e, err := b.config.KV.Get(ctx, l.name)
	c := store.Change{Entry: e}
	missing := errors.Is(err, store.ErrNotFound)
	if err != nil && !missing {
		return fmt.Errorf("read line %s: %w", l.name, err)
	}
	b.note(nil)
	b.mu.Lock()
	defer b.mu.Unlock()
	if missing {
		l.revision, l.record = 0, record{}
		l.forget(b.leases.remove)
		return nil
	}
	b.toldLine(l, &c)
	return nil
}

// remove forgets a line whose day is long past.
func (b *Book) remove(ctx context.Context, l *line, revision uint64) error {
	err := b.config.KV.Delete(ctx, l.name, revision)
	if errors.Is(err, store.ErrConflict) {
		return b.reread(ctx, l)
	}
	if err != nil {
		return fmt.Errorf("remove line %s: %w", l.name, err)
	}
	b.note(nil)
	b.mu.Lock()
	defer b.mu.Unlock()
	l.revision, l.record = 0, record{}
	return nil
}

// publish puts a lease's event into the journal, and then lets Reserve take from it.
func (b *Book) publish(ctx context.Context, l *line, one *lease) error {
	_, err := b.config.Journal.Append(ctx, journal.Event{
		Kind: journal.Lease, At: time.Now(), Lease: one.id, Line: l.name, Amount: one.amount,
	})
	if err != nil {
		return fmt.Errorf("journal lease of %s: %w", l.name, err)
	}
	b.note(nil)
	b.metrics.step(stepTaken)
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.fresh != one {
		return nil // it was given up meanwhile
	}
	l.fresh = nil
	if l.record.has(one.id) {
		l.held = append(l.held, one)
		b.leases.add(one)
		l.reopen()
		l.wanted.Store(false)
	}
	return nil
}

// seal puts the seals of leases into the journal. They are settled once they have been
// folded.
func (b *Book) seal(ctx context.Context, l *line, ids []string) error {
	now := time.Now()
	events := make([]journal.Event, len(ids))
	b.mu.Lock()
	for i, id := range ids {
		l.sealing[id] = now
		events[i] = journal.Event{Kind: journal.Seal, At: now, Lease: id, Line: l.name}
	}
	b.mu.Unlock()
	if _, err := b.config.Journal.Append(ctx, events...); err != nil {
		return fmt.Errorf("journal seal of %s: %w", l.name, err)
	}
	b.note(nil)
	b.metrics.stepped(stepSealed, len(ids))
	return nil
}

// note keeps how the store is. One that is gone is told of twice: when it goes, and
// when it is back.
func (b *Book) note(err error) {
	b.mu.Lock()
	before := b.trouble
	b.trouble = err
	b.mu.Unlock()
	switch {
	case err != nil && before == nil:
		b.config.Log.LogAttrs(context.Background(), slog.LevelError, "no leases can be taken: what is leased is spent, and nothing more", slog.Any("err", err))
	case err == nil && before != nil:
		b.config.Log.Info("leases are taken again")
	}
}
