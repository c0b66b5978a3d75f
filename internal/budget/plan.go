package budget

import (
	"slices"
	"sync/atomic"
	"time"

	"deckle"
)

// A line is one budget: a campaign's total, a campaign's day, an advertiser's day.
type line struct {
	name string
	kind Kind
	date string // "" for a total

	open   atomic.Pointer[[]*lease] // what Reserve takes from, oldest first; never nil
	wanted atomic.Bool              // a lease has been asked for, and nobody has looked yet

	// The rest is guarded by the book's lock.

	terms    *terms   // nil while no campaign pays from it
	record   record   // as far as is known; the store decides
	revision uint64   // of record; 0: there is none
	unread   bool     // its value is of a form that is not known: it is left alone
	held     []*lease // those of record that this incarnation took, oldest first; also closed ones
	fresh    *lease   // taken, and its event is not known to be durable; nobody reserves from it

	seen uint64 // newest revision that has been told of; a removal has one as well

	sealing map[string]time.Time // seals that are on their way to the fold

	busy, again bool // a worker is at it; and has to look again
}

// reserve takes price from one of the leases, and returns it; nil where none has as
// much.
func (l *line) reserve(price deckle.Money) *lease {
	for _, one := range *l.open.Load() {
		if one.reserve(price) {
			return one
		}
	}
	return nil
}

// affords reports whether one of the leases has as much as price.
func (l *line) affords(price deckle.Money) bool {
	return slices.ContainsFunc(*l.open.Load(), func(one *lease) bool { return one.left() >= price })
}

// short reports whether the newest lease is half used: time to take another one.
func (l *line) short() bool {
	open := *l.open.Load()
	return len(open) == 0 || open[len(open)-1].halfUsed()
}

// reopen lets Reserve take from those held leases that are not closed.
func (l *line) reopen() {
	open := make([]*lease, 0, len(l.held))
	for _, one := range l.held {
		if !one.closed.Load() {
			open = append(open, one)
		}
	}
	l.open.Store(&open)
}

func (l *line) mine(id string) *lease {
	for _, one := range l.held {
		if one.id == id {
			return one
		}
	}
	return nil
}

// A plan is what should happen to a line next. Making one changes nothing.
type plan struct {
	journal *lease   // its event goes to the journal, then it may be reserved from
	shut    []*lease // to be closed, before next is written
	next    record   // to be written, where write says so
	write   bool
	remove  bool // the line itself: its day is long past
	take    deckle.Money
	settled []settlement
	seal    []string // their ends are in the store, and no token names them any more
}

type settlement struct {
	lease string
	spent deckle.Money
}

func (p *plan) nothing() bool {
	return p.journal == nil && len(p.shut) == 0 && !p.write && !p.remove && len(p.seal) == 0
}

// plan decides, in this order: what has been sealed is settled; what can be of no use
// any more is closed; what is closed and can be redeemed no more is sealed; and where
// little is left, a lease is taken from what is free.
func (b *Book) plan(l *line, now time.Time) (p plan) {
	if l.unread {
		return p
	}
	p.next = record{Settled: l.record.Settled, Outside: b.outside(l)}
	p.write = p.next.Outside > l.record.Outside
	p.journal = l.fresh
	var open []*lease // what stays open
	closing := false  // something will come back
	for _, g := range l.record.Leases {
		if spent, ok := b.paid(l, &g, now); ok {
			p.next.Settled += spent
			p.settled = append(p.settled, settlement{g.ID, spent})
			p.write = true
			continue
		}
		one := l.mine(g.ID)
		if b.sealable(l, &g, one, now) {
			p.seal = append(p.seal, g.ID)
		}
		switch {
		case g.Node != b.self.id:
			closing = closing || b.endOf(&g) != 0
		case one == nil && l.fresh != nil && l.fresh.id == g.ID:
		case one == nil && g.Closed == 0: // an answer was lost: it was never reserved from
			g.Closed, p.write, closing = now.UnixMilli(), true, true
		case one == nil:
			closing = true
		case one.closed.Load():
			closing = true
			if g.Closed == 0 {
				g.Closed, p.write = now.UnixMilli(), true
			}
		default:
			open = append(open, one)
		}
		p.next.Leases = append(p.next.Leases, g)
	}
	b.planUse(l, now, &p, open, closing)
	p.remove = b.removable(l, &p, now)
	return p
}

// outside is what a campaign has spent that no lease of its total has paid for: at least
// what was known before. Of a lease that the fold does not know, or not any more, it is
// taken that it has paid for all.
func (b *Book) outside(l *line) deckle.Money {
	if l.kind != CampaignTotal || l.terms == nil || !b.config.Fold.Warm() {
		return l.record.Outside
	}
	// The sum comes first: what is folded meanwhile makes it too small, and not too large.
	spent := b.config.Fold.SpendTotal(campaignOf(l.name)) - l.record.Settled
	for i := range l.record.Leases {
		g := &l.record.Leases[i]
		if folded, known := b.config.Fold.Lease(g.ID); known {
			spent -= folded.Spent
		} else {
			spent -= g.Amount
		}
	}
	return max(spent, l.record.Outside)
}

// planUse decides which of the open leases are closed, and whether one is taken.
func (b *Book) planUse(l *line, now time.Time, p *plan, open []*lease, closing bool) {
	t := l.terms
	if t == nil { // its day is over, or its campaigns are; one that comes back takes new leases
		b.shut(p, now, open...)
		return
	}
	// A cut takes effect from the newest lease on.
	over := p.next.committed() - t.budget
	for i := len(open) - 1; i >= 0 && over > 0; i-- {
		over -= open[i].amount
		b.shut(p, now, open[i])
		open, closing = open[:i], true
	}
	// What is worn out comes back sooner when it is not waited for.
	for len(open) > 1 && open[0].left() < t.highest {
		b.shut(p, now, open[0])
		open, closing = open[1:], true
	}
	free := t.budget - p.next.committed()
	short := len(open) == 0 || open[len(open)-1].halfUsed() || open[len(open)-1].left() < t.highest
	if !short || free <= 0 || l.fresh != nil || len(p.next.Leases) >= maxLeases || !b.mayTake(l, now) {
		return
	}
	if free >= t.highest {
		p.take = size(t, free, burn(open, now), b.holds.lasts+failover, b.alive())
		p.write = true
		return
	}
	// The last bit, which pays for less than the highest price: with what comes back, or
	// with what the last lease has left, it may be more.
	switch {
	case closing:
	case len(open) > 0 && open[len(open)-1].left() < t.highest:
		b.shut(p, now, open...)
	case len(open) == 0:
		p.take, p.write = free, true
	}
}

// shut plans the end of leases.
func (b *Book) shut(p *plan, now time.Time, leases ...*lease) {
	for _, one := range leases {
		p.shut = append(p.shut, one)
		for i := range p.next.Leases {
			if g := &p.next.Leases[i]; g.ID == one.id && g.Closed == 0 {
				g.Closed, p.write = now.UnixMilli(), true
			}
		}
	}
}

// size is how much is taken of what is free, where that is at least the highest price.
// It lasts for a while at the rate of late, and is no less than an eighth of the node's
// share; it is never more than half of that, so that a node that is gone stops no
// campaign. Of what is less than two of the highest price it is all.
func size(t *terms, free, perSecond deckle.Money, lasts time.Duration, nodes int) deckle.Money {
	if free < 2*t.highest {
		return free
	}
	share := free / deckle.Money(nodes)
	want := max(perSecond*deckle.Money(lasts/time.Second), share/8)
	return max(min(want, share/2), t.highest)
}

// failover is more than a cluster's store takes to find a new leader.
const failover = 15 * time.Second

// burn is how much a second is reserved, as the open leases tell. A lease that is new says
// little.
func burn(open []*lease, now time.Time) deckle.Money {
	if len(open) == 0 {
		return 0
	}
	var used deckle.Money
	for _, one := range open {
		used += one.amount - one.left()
	}
	return used / deckle.Money(max(now.Sub(open[0].taken), failover)/time.Second)
}

// forgets is after how long the fold of the journal may have forgotten a sealed lease;
// it does so after 48 hours of its own time.
const forgets = 24 * time.Hour

// paid is what a lease has paid for, once its seal has been folded, so that it is never
// more. Of a lease that was closed so long ago that the fold may have forgotten its
// seal, it is all of it: that is never too little.
func (b *Book) paid(l *line, g *grant, now time.Time) (deckle.Money, bool) {
	folded, known := b.config.Fold.Lease(g.ID)
	if known {
		return folded.Spent, folded.Sealed != 0
	}
	_, asked := l.sealing[g.ID] // by us: the fold has yet to come to it
	if asked || b.endOf(g) == 0 || b.sinceNoted(g, now) < forgets || !b.config.Fold.Warm() {
		return 0, false
	}
	return g.Amount, true
}

// sealable reports whether a lease can be sealed without a loss: its end is in the
// store, and no token that names it can be redeemed any more.
func (b *Book) sealable(l *line, g *grant, mine *lease, now time.Time) bool {
	if asked, ok := l.sealing[g.ID]; ok && now.Sub(asked) < sealAgain || !b.config.Fold.Warm() {
		return false
	}
	switch {
	case mine != nil:
		return g.Closed != 0 && mine.idle()
	case g.Node == b.self.id:
		return g.Closed != 0 // nobody has ever reserved from it
	}
	end := b.nodeEnd(g.Node)
	return end != 0 && now.Sub(time.UnixMilli(end)) >= b.holds.lasts
}

// sealAgain is after how long a seal that has not been folded is told again.
const sealAgain = 10 * time.Second

// removable reports whether the line can be forgotten: nothing is out, and its day is
// over in every time zone, at every clock that takes leases.
func (b *Book) removable(l *line, p *plan, now time.Time) bool {
	if l.date == "" || l.revision == 0 || l.terms != nil || len(l.record.Leases) > 0 || p.take > 0 {
		return false
	}
	day, err := time.Parse(time.DateOnly, l.date)
	return err == nil && now.Sub(day) > keepLines
}

// keepLines is how long after the beginning of its date, in UTC, a line is kept.
const keepLines = 4 * 24 * time.Hour

// holdsNothing reports whether a line need not be remembered.
func (l *line) holdsNothing() bool {
	return l.revision == 0 && l.terms == nil && len(l.held) == 0 && l.fresh == nil && !l.unread && !l.busy
}

// forget drops what is in memory of leases that are not in the record.
func (l *line) forget(gone func(*lease)) {
	l.held = slices.DeleteFunc(l.held, func(one *lease) bool {
		if l.record.has(one.id) {
			return false
		}
		one.close()
		gone(one)
		return true
	})
	for id := range l.sealing {
		if !l.record.has(id) {
			delete(l.sealing, id)
		}
	}
	l.reopen()
}
