package projection

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"deckle/internal/journal"
	"deckle/internal/obs"
	"deckle/internal/store"
)

const (
	maxBatch = 2_000 // events: a lock of some 50 ms
	maxAhead = 64    // envelopes that are read while a transaction commits
)

// A folder keeps one projection going.
type folder struct {
	projection Projection
	at         cursor // owned by fold

	shown  atomic.Pointer[cursor] // what at was, for those who ask; never nil
	health health
}

// A cursor is how far a projection has come, as it is on disk.
type cursor struct {
	seq             store.Seq       // the last envelope that was folded, all of it; 0 = none
	event           journal.EventID // its last event
	time            journalTime
	events, repeats int64
}

// Run folds what the journal has and what comes, until ctx is done. A projection
// that fails stops and says so in [Tables.Checks], and the others go on; Run waits for
// ctx all the same. What may pass (a full disk, a store out of reach) is tried again.
func (t *Tables) Run(ctx context.Context, log store.Log) error {
	var g sync.WaitGroup
	for _, f := range t.folders {
		g.Go(func() {
			f.health.keepGoing(ctx, t.log.With("projection", f.projection.Name()), func() error { return t.fold(ctx, log, f, forever) })
		})
	}
	g.Wait()
	<-ctx.Done()
	return nil
}

// forever is beyond the end of every journal.
const forever = store.Seq(math.MaxUint64)

// fold reads the journal from the cursor to the envelope until, and folds it in
// batches. While one is committed the next is read.
func (t *Tables) fold(ctx context.Context, log store.Log, f *folder, until store.Seq) error {
	if err := t.load(ctx, f); err != nil {
		return err
	}
	if err := t.examine(ctx, log, f); err != nil {
		return err
	}
	f.health.reached()
	if f.at.seq >= until {
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	came := make(chan []journal.Record, maxAhead)
	g.Go(func() error {
		defer close(came)
		err := journal.Read(ctx, log, f.at.seq+1, func(envelope []journal.Record) error {
			select {
			case came <- envelope:
			case <-ctx.Done():
				return ctx.Err()
			}
			if envelope[0].Seq >= until {
				return errEnough
			}
			return nil
		})
		if errors.Is(err, errEnough) {
			return nil // not an error, which would hide one of the other side
		}
		return err
	})
	g.Go(func() error {
		for envelope := range came {
			if err := t.step(ctx, f, t.gather(envelope, came)); err != nil {
				return err
			}
		}
		return nil
	})
	return g.Wait()
}

// gather returns first and what else has come, up to a batch.
func (t *Tables) gather(first []journal.Record, came <-chan []journal.Record) [][]journal.Record {
	batch := [][]journal.Record{first}
	for n := len(first); n < t.batch; {
		select {
		case envelope, ok := <-came:
			if !ok {
				return batch
			}
			batch = append(batch, envelope)
			n += len(envelope)
		default:
			return batch
		}
	}
	return batch
}

// step folds a batch: its rows, the ids that are remembered, and the cursor, in one
// transaction.
func (t *Tables) step(ctx context.Context, f *folder, batch [][]journal.Record) error {
	next := f.at
	err := t.transact(ctx, func(tx *Tx) error {
		for _, envelope := range batch {
			if err := t.apply(tx, f.projection, &next, envelope); err != nil {
				return fmt.Errorf("fold envelope %d: %w", envelope[0].Seq, err)
			}
		}
		return saveCursor(tx, f.projection.Name(), next)
	})
	if err != nil {
		return err
	}
	f.moveTo(next)
	f.health.recovered()
	return nil
}

// apply folds one envelope and moves at behind it.
func (t *Tables) apply(tx *Tx, p Projection, at *cursor, envelope []journal.Record) error {
	for i := range envelope {
		rec := &envelope[i]
		before := at.time.generation(t.config.remember())
		at.time = at.time.after(rec)
		if now := at.time.generation(t.config.remember()); now != before {
			if err := forget(tx, p.Name(), at.time.oldest(t.config.remember())); err != nil {
				return err
			}
		}
		at.event = rec.ID()
		first, err := remember(tx, p.Name(), at.event, at.time)
		if err != nil {
			return err
		}
		at.events++
		if first {
			err = p.Apply(tx, *rec)
		} else {
			at.repeats++
			err = p.Repeat(tx, *rec)
		}
		if err != nil {
			return err
		}
	}
	at.seq = envelope[0].Seq
	return nil
}

// remember reports whether a projection meets id for the first time, and writes it
// down.
func remember(tx *Tx, projection string, id journal.EventID, now journalTime) (first bool, err error) {
	changed, err := tx.Exec(`INSERT INTO seen (projection, id, time) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, projection, id[:], int64(now))
	return changed == 1, err
}

// forget deletes the ids that were written down before a time. It looks at each of
// them, which is cheaper than an index: an id comes and goes more often than a
// generation ends.
func forget(tx *Tx, projection string, before journalTime) error {
	_, err := tx.Exec(`DELETE FROM seen WHERE projection = ? AND time < ?`, projection, int64(before))
	return err
}

func saveCursor(tx *Tx, projection string, c cursor) error {
	_, err := tx.Exec(`INSERT INTO cursors (projection, seq, event, time, events, repeats) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET seq = excluded.seq, event = excluded.event, time = excluded.time,
			events = excluded.events, repeats = excluded.repeats`,
		projection, int64(c.seq), c.event[:], int64(c.time), c.events, c.repeats)
	return err
}

// load reads the cursor as it is on disk.
func (t *Tables) load(ctx context.Context, f *folder) error {
	c, err := loadCursor(ctx, t.reader, f.projection.Name())
	if err != nil {
		return err
	}
	f.moveTo(c)
	return nil
}

func (f *folder) moveTo(c cursor) {
	f.at = c
	f.shown.Store(&c)
}

func loadCursor(ctx context.Context, db *sql.DB, projection string) (cursor, error) {
	var c cursor
	var seq int64
	var event []byte
	err := db.QueryRowContext(ctx, `SELECT seq, event, time, events, repeats FROM cursors WHERE projection = ?`, projection).
		Scan(&seq, &event, (*int64)(&c.time), &c.events, &c.repeats)
	if errors.Is(err, sql.ErrNoRows) {
		return cursor{}, nil
	}
	if err != nil {
		return cursor{}, fmt.Errorf("read cursor: %w", damaged(err))
	}
	c.seq = store.Seq(seq)
	copy(c.event[:], event)
	return c, nil
}

// examine makes sure that the journal goes on where the projection stands: that no
// event between is missing, and that it is the same journal.
func (t *Tables) examine(ctx context.Context, log store.Log, f *folder) error {
	state, err := log.State(ctx)
	if err != nil {
		return err
	}
	switch {
	case f.at.seq > state.Last:
		return fmt.Errorf("%w: it has %d envelopes, and this one %d", ErrOtherJournal, f.at.seq, state.Last)
	case f.at.seq+1 < state.First:
		return fmt.Errorf("envelopes %d to %d: %w", f.at.seq+1, state.First-1, journal.ErrGap)
	case f.at.seq < max(state.First, 1):
		return nil // nothing of what we have folded is still there
	}
	var last journal.Record
	err = journal.Read(ctx, log, f.at.seq, func(envelope []journal.Record) error {
		last = envelope[len(envelope)-1]
		return errEnough
	})
	if !errors.Is(err, errEnough) {
		return err
	}
	if last.ID() != f.at.event {
		return fmt.Errorf("%w: envelope %d is another one", ErrOtherJournal, f.at.seq)
	}
	return nil
}

// errEnough ends a Read whose yield has what it wanted.
var errEnough = errors.New("enough")

// Checks say, for readiness, how far each projection has come, and which does not
// go on. None of them takes a node out of service: ads are served without reports.
func (t *Tables) Checks() []obs.Check {
	var checks []obs.Check
	for _, f := range t.folders {
		at := f.shown.Load().seq
		checks = append(checks, f.health.check("projection "+f.projection.Name(), obs.Degraded, fmt.Sprintf("folded to envelope %d", at)))
	}
	return checks
}
