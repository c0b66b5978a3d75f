package budget

import (
	"slices"
	"sync/atomic"
	"time"

	"deckle"
	"deckle/internal/catalog"
	"deckle/internal/journal"
)

// A lease is a part of a line's budget that this node may reserve from. All but the
// counters is fixed.
type lease struct {
	id     string
	amount deckle.Money
	taken  time.Time

	free   atomic.Int64 // what may still be reserved; far below zero once it is closed
	holds  atomic.Int64 // reservations whose token may still be redeemed, or is about to be made
	closed atomic.Bool
}

// closed is more than any amount: taken from what is free it leaves nothing to reserve.
const closed = 1 << 61

func newLease(id string, amount deckle.Money, now time.Time) *lease {
	l := &lease{id: id, amount: amount, taken: now}
	l.free.Store(int64(amount))
	return l
}

// reserve takes price, or reports that there is not as much. Whoever closes the lease
// afterwards sees the hold: it is counted before the price is taken.
func (l *lease) reserve(price deckle.Money) bool {
	if l.free.Load() < int64(price) {
		return false
	}
	l.holds.Add(1)
	for {
		free := l.free.Load()
		if free < int64(price) {
			l.holds.Add(-1)
			return false
		}
		if l.free.CompareAndSwap(free, free-int64(price)) {
			return true
		}
	}
}

// close ends reserving.
func (l *lease) close() {
	if !l.closed.Swap(true) {
		l.free.Add(-closed)
	}
}

// idle reports whether a closed lease has no token that may still be redeemed.
func (l *lease) idle() bool { return l.closed.Load() && l.holds.Load() == 0 }

// left is what may be reserved.
func (l *lease) left() deckle.Money { return deckle.Money(max(l.free.Load(), 0)) }

// unspent is what is neither reserved nor paid, also of a closed lease.
func (l *lease) unspent() deckle.Money {
	free := l.free.Load()
	if free < -closed/2 {
		free += closed
	}
	return deckle.Money(max(free, 0))
}

// halfUsed reports whether it is time for another one.
func (l *lease) halfUsed() bool { return l.free.Load() < int64(l.amount)/2 }

// Reserve takes price from each budget of a campaign, so that the impression can be
// paid, and returns the ids of the leases that will pay it, which its token carries.
// It is refused (ok is false, nothing is taken) where one of the budgets has nothing
// left, or no lease has been taken of it yet.
//
// What is reserved is held until the impression has been folded, at the longest for
// the time that its token can be redeemed. requestID is that of the filled slot, 16
// lower-case hexadecimal digits; one that is held already is refused. now is when the
// token is made.
//
// It is done in memory, may be called concurrently, and takes well below a microsecond.
// The ids are shared and must not be changed.
func (b *Book) Reserve(campaign *catalog.Campaign, advertiser *catalog.Advertiser, price deckle.Money, requestID string, now time.Time) (leases []string, ok bool) {
	id, valid := journal.ParseRequestID(requestID)
	if !valid || price < 0 {
		b.metrics.refuse(refusedInvalid)
		return nil, false
	}
	x := b.index.Load()
	purse := x.purse(campaign.ID, advertiser.ID, now)
	if purse == nil {
		b.metrics.refuse(refusedUnknown)
		if x.of != b.config.Snapshot() {
			b.nudge()
		}
		return nil, false
	}
	taken := hold{price: price}
	for i, l := range purse.lines {
		if taken.leases[i] = l.reserve(price); taken.leases[i] == nil {
			taken.end(false)
			b.want(l)
			for _, other := range purse.lines[i+1:] {
				if other.short() {
					b.want(other) // so that they come together
				}
			}
			b.metrics.refuse(refusal(l.kind))
			return nil, false
		}
		if l.short() {
			b.want(l)
		}
	}
	if !b.holds.add(id, taken, now) {
		taken.end(false)
		b.metrics.refuse(refusedInvalid)
		return nil, false
	}
	b.metrics.reserved.Inc()
	return purse.ids(&taken.leases), true
}

// Afford reports whether Reserve would grant a price at this moment. Nothing is held,
// asked for or counted.
func (b *Book) Afford(campaign *catalog.Campaign, advertiser *catalog.Advertiser, price deckle.Money, now time.Time) bool {
	purse := b.index.Load().purse(campaign.ID, advertiser.ID, now)
	return purse != nil && !slices.ContainsFunc(purse.lines, func(l *line) bool { return !l.affords(price) })
}

// Release gives back what was reserved for a slot that is given up before anybody has
// its token. It does nothing where nothing is held.
func (b *Book) Release(requestID string) {
	if id, ok := journal.ParseRequestID(requestID); ok {
		if h, ok := b.holds.take(id); ok {
			h.end(false)
		}
	}
}

// Folded is told what the fold of the journal has counted: an impression as spend, a
// seal as the end of a lease. It is meant for [projection.Hot.Notify], and is quick.
func (b *Book) Folded(rec *journal.Record) {
	switch rec.Kind {
	case journal.Impression:
		id, _ := journal.ParseRequestID(rec.RequestID)
		h, held := b.holds.take(id)
		if held {
			h.end(true)
		}
		for _, lease := range rec.Leases {
			if held && h.on(lease) {
				continue
			}
			// Its hold had ended: it was told late, or to another node.
			if l := b.leases.find(lease); l != nil {
				l.free.Add(-int64(rec.Price))
			}
		}
	case journal.Seal:
		if l := b.leases.find(rec.Lease); l != nil {
			l.close() // by somebody else, if it was not closed; what it holds is not billed any more
		}
		b.mu.Lock()
		l := b.lines[rec.Line]
		b.mu.Unlock()
		if l != nil {
			b.queue.push(l, later) // it can be settled
		}
	}
}
