// Package budget keeps every budget: what has been settled and what is leased is
// never more than it, and a lease never pays for more than its amount, at every moment,
// on any number of nodes, after any crash.
//
// A budget is a line: a campaign's total, a campaign's day, an advertiser's day, where
// a day is a date in the advertiser's time zone. A node takes a part of a line, a lease,
// and reserves from it in memory; the price of an impression is reserved from each line
// that it counts for. What an impression costs is counted by the fold of the journal
// (package projection), which holds each lease to its amount and bills nothing after
// its seal, so that what is spent of a lease is known to all once its seal is folded.
//
// # What is written, in which order, and what a crash in between means
//
//  1. A lease is taken: one compare-and-set of the line adds it, and is refused where
//     settled + leases would be more than the budget. When the answer is lost, the lease
//     may be there all the same: nobody reserves from it, and it is sealed (step 4).
//  2. Its event goes to the journal. Before that is durable nobody reserves from it;
//     after a crash nobody ever does, since a process is another incarnation each time it
//     starts, and reserves only from leases that it has taken itself.
//  3. It is closed when it is of no use any more (used up, its day over, the budget cut,
//     no campaign wants it): first in memory, then its end is noted in the line. When a
//     node ends, its presence notes the end of all its leases at once.
//  4. When no token that names it can be redeemed any more, its seal goes to the journal.
//     A seal that is told twice seals once. One that comes too early costs the publisher
//     impressions, and the advertiser nothing.
//  5. When its seal has been folded, one compare-and-set removes it and adds what it has
//     paid for to what is settled. That happens once, since the lease vanishes with it.
//
// None of this is decided by a clock: a clock says only when the next step is worth
// taking. A compare-and-set that meets another revision reads the line again and
// decides anew.
//
// # A total that is set late
//
// A total budget counts what a campaign has ever been billed for, also while it had no
// total and no lease of one paid: the fold knows that sum, and whatever of it no lease of
// the line has paid for is noted in the line as outside. That only grows, and is written
// with the same compare-and-set as the leases, so that it is never too much: the leases
// that are compared with are those that there are. What was reserved before a total was
// set is paid all the same, as with a cut, and is outside as soon as it is folded.
//
// # The end of a node
//
// A node that ends in order reserves nothing more, notes so in its presence, and
// seals at once every lease that no token names. What is left is sealed by whoever is
// there when the last token has ended, some six minutes later, as after a crash. A
// campaign goes on meanwhile with what is not leased: at least half of what was free
// when the newest lease was taken, until two impressions are left.
//
// An end is in the store before a seal is in the journal. So a lease whose end is not
// noted has never been sealed, and one whose end was noted long ago and which the fold
// does not know may have been: the fold forgets what was sealed two days ago. Of such a
// lease, which takes an outage of that length, all is counted as spent.
package budget

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"deckle"
	"deckle/internal/catalog"
	"deckle/internal/journal"
	"deckle/internal/projection"
	"deckle/internal/store"
)

// A Journal is where leases and seals become events. Append returns when they are
// durable; after an error they may be all the same, and are told again.
type Journal interface {
	Append(ctx context.Context, events ...journal.Event) (store.Seq, error)
}

// A Fold is what the journal has told so far.
//
// Lease is what a lease has paid for; one whose seal is in it pays nothing more.
// SpendTotal is what a campaign has been billed for on all days. Warm reports whether
// all has been folded that there was at the start: until then not to know a lease means
// nothing. All are quick and may be called concurrently.
type Fold interface {
	Lease(id string) (projection.Lease, bool)
	SpendTotal(campaign string) deckle.Money
	Warm() bool
}

// Config configures a [Book]. KV, Journal, Fold and Snapshot are needed.
type Config struct {
	KV       store.KV                 // the bucket of leases
	Journal  Journal                  // that of this node
	Fold     Fold                     // of the same journal; [Book.Folded] is told of it
	Snapshot func() *catalog.Snapshot // the catalog as this node knows it

	// BeaconWindow is for how long an impression is taken after its token was made.
	// Defaults to 3 minutes.
	BeaconWindow time.Duration

	// MaxSkew is the most by which the clocks of two nodes may differ. Defaults to 2
	// minutes.
	MaxSkew time.Duration

	// Grace is for how much longer a reservation is held: until an impression that was
	// taken in the last instant has been folded. Defaults to 15 seconds.
	Grace time.Duration

	// Beat is the time between two signs of life. Defaults to 15 seconds.
	Beat time.Duration

	// Workers is how many lines are written at a time. Defaults to 32.
	Workers int

	Log *slog.Logger // defaults to silence
}

// tokenBucket is the precision of a token's time.
const tokenBucket = time.Minute

func (c Config) withDefaults() Config {
	c.BeaconWindow = cmp.Or(c.BeaconWindow, 3*time.Minute)
	c.MaxSkew = cmp.Or(c.MaxSkew, 2*time.Minute)
	c.Grace = cmp.Or(c.Grace, 15*time.Second)
	c.Beat = cmp.Or(c.Beat, 15*time.Second)
	c.Workers = cmp.Or(c.Workers, 32)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// A Book reserves from the budgets of all campaigns. All methods but Run may be called
// concurrently.
type Book struct {
	config  Config
	metrics *Metrics
	holds   *holds
	leases  leases // those that this incarnation may have reserved from
	queue   *queue
	nudged  chan struct{} // holds one token while the lines should be looked over

	// index is what every Reserve reads. It is replaced as a whole and never changed.
	index atomic.Pointer[index]

	mu       sync.Mutex
	lines    map[string]*line
	nodes    map[string]node
	self     self
	followed bool  // all that the store has is known
	trouble  error // of the newest call of the store; nil when it was answered
}

// New makes a book that knows of no lease. It reserves nothing until [Book.Run].
func New(c Config) *Book {
	c = c.withDefaults()
	b := &Book{
		config: c,
		holds:  newHolds(c.BeaconWindow + tokenBucket + c.MaxSkew + c.Grace),
		leases: leases{byID: map[string]*lease{}},
		queue:  newQueue(c.Workers),
		nudged: make(chan struct{}, 1),
		lines:  map[string]*line{},
		nodes:  map[string]node{},
	}
	b.metrics = newMetrics(b)
	b.index.Store(&index{})
	b.begin()
	return b
}

// line is the one of that name. The book's lock is held.
func (b *Book) line(name string, k Kind) *line {
	l := b.lines[name]
	if l == nil {
		l = &line{name: name, kind: k, sealing: map[string]time.Time{}}
		_, l.date, _ = parseLine(name)
		l.open.Store(&[]*lease{})
		b.lines[name] = l
	}
	return l
}

// want asks for a lease of a line, soon. Once it has been asked for, it is not again
// until somebody has looked.
func (b *Book) want(l *line) {
	if !l.wanted.Load() && !l.wanted.Swap(true) {
		b.queue.push(l, urgent)
	}
}

// nudge asks for a look over all lines.
func (b *Book) nudge() {
	select {
	case b.nudged <- struct{}{}:
	default: // somebody is going to look anyway
	}
}

// leases are leases by their ids.
type leases struct {
	mu   sync.RWMutex
	byID map[string]*lease
}

func (s *leases) find(id string) *lease {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byID[id]
}

func (s *leases) add(l *lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byID[l.id] = l
}

func (s *leases) remove(l *lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, l.id)
}
