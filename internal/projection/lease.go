package projection

import (
	"deckle"
	"deckle/internal/journal"
	"deckle/internal/store"
)

// Billing says whether an impression counts as spend, and why not.
type Billing uint8

// The fold's verdicts on an impression, in the order in which they are looked for.
const (
	Billed         Billing = iota
	Duplicate              // its request id has had an impression
	Sealed                 // one of its leases was not open: sealed at an earlier place of the journal, or never taken
	LeaseExhausted         // one of its leases had not as much left
)

// String is the reason as reports have it: "duplicate", "sealed", "lease_exhausted".
func (b Billing) String() string {
	return [...]string{"billed", "duplicate", "sealed", "lease_exhausted"}[b]
}

// A Lease is a part of a line's budget, and what it has paid for.
type Lease struct {
	ID, Line      string
	Amount, Spent deckle.Money
	Sealed        store.Seq // the envelope of its seal; 0 = it still pays
}

// ledger is the state of the leases, by id.
type ledger map[string]*Lease

// open adds a lease, unless it has been sealed before its own event came.
func (l ledger) open(rec *journal.Record) {
	if l[rec.Lease] == nil {
		l[rec.Lease] = &Lease{ID: rec.Lease, Line: rec.Line, Amount: rec.Amount}
	}
}

// seal ends a lease, also one whose own event is still to come, and reports whether
// it was open until then.
func (l ledger) seal(rec *journal.Record) bool {
	l.open(&journal.Record{Event: journal.Event{Lease: rec.Lease, Line: rec.Line}})
	lease := l[rec.Lease]
	if lease.Sealed != 0 {
		return false
	}
	lease.Sealed = rec.Seq
	return true
}

// pay takes price from every lease, or from none and says why. A lease that is not
// known may never have been taken, or have been sealed and forgotten: the verdict is
// the same, so that it is that of the tables, which forget no lease.
func (l ledger) pay(price deckle.Money, leases []string) Billing {
	verdict := Billed
	for _, id := range leases {
		switch lease := l[id]; {
		case lease == nil || lease.Sealed != 0:
			return Sealed
		case price > lease.Amount-lease.Spent:
			verdict = LeaseExhausted
		}
	}
	if verdict == Billed {
		for _, id := range leases {
			l[id].Spent += price
		}
	}
	return verdict
}
