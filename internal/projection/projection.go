// Package projection folds the journal into what the rest of Deckle reads: tables
// for reports ([Tables], in SQLite) and hot state for decisions ([Hot], in memory).
//
// Both are pure functions of the journal: the same journal gives the same rows and
// the same state, on every node, whenever it is folded and however it was cut into
// batches. There is no clock in them; what has to end, ends by journal time, which
// is the latest [journal.Event.At] so far, as [journal.Read] bounds it: no event is
// more than [journal.MaxAhead] ahead of the store's clock. Every event counts once by its id, and a
// suspect one counts as suspect and as nothing else.
//
// The journal comes as the [store.Log] that it is in, envelope by envelope. Nothing
// waits for a projection: it follows the journal in goroutines of its own, and one
// that fails stops alone and says so in its [obs.Check].
package projection

import (
	"errors"
	"time"

	"deckle/internal/journal"
)

// A Projection folds the journal into tables of its own in report.db.
//
// Both methods depend on nothing but tx and rec: no clock, no network, no random
// numbers, nothing kept between two calls. An error stops the projection where it
// is, and nothing of the batch has happened.
type Projection interface {
	// Name is the projection's key among the cursors. It is on disk and never
	// changes.
	Name() string

	// Apply folds an event that is told for the first time.
	Apply(tx *Tx, rec journal.Record) error

	// Repeat is called in place of Apply for an event that has been applied.
	Repeat(tx *Tx, rec journal.Record) error
}

var (
	// ErrDamaged says that report.db is not a database that we could have written,
	// or that it has been damaged. The next start makes it anew, as does `deckle
	// replay`: it holds nothing that the journal does not.
	ErrDamaged = errors.New("report.db is damaged")

	// ErrOtherJournal says that report.db was folded from another journal than the
	// one that there is. Nothing is touched then: somebody may have put the wrong one
	// there.
	ErrOtherJournal = errors.New("report.db was made from another journal (deckle replay makes it anew from this one)")

	// ErrNewer says that report.db was made by a newer version of Deckle. It is treated
	// as a damaged one.
	ErrNewer = errors.New("report.db is of a newer version of Deckle")
)

// Config is what a fold depends on besides the journal. The zero value is ready to
// use.
type Config struct {
	// Window is the longest time for which a token may be redeemed: the longest of
	// the windows of beacons, clicks and folds. Defaults to 30 minutes.
	Window time.Duration

	// HardHour counts engagement over the last hour, instead of with a half-life of
	// a day ([reader].engagement_window = "1h").
	HardHour bool
}

// remember is for how long of journal time an event id is known at least. A token
// can be told until its window has passed at the node with the slowest clock, and
// once more by a client that kept it.
func (c Config) remember() time.Duration {
	window := c.Window
	if window <= 0 {
		window = 30 * time.Minute
	}
	return 2*window + 5*time.Minute
}
