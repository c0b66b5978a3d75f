package budget

import (
	"fmt"
	"slices"
	"strings"

	"deckle"
	"deckle/internal/obs"
)

// A Line is how a budget is, as this node knows it.
type Line struct {
	Name string // campaign/ID, campaign/ID/DATE, advertiser/ID/DATE
	Kind Kind
	Date string // in the advertiser's time zone; "" for a total

	Budget  deckle.Money // by the catalog; 0 where no campaign pays from it now
	Settled deckle.Money // spent by leases that have ended; of a total, before it was set as well
	Spent   deckle.Money // Settled, and what the leases that are out have paid for so far
	Leased  deckle.Money // amounts of the leases that are out, on all nodes
	Held    deckle.Money // reserved on this node, and neither paid nor given back
	Free    deckle.Money // what this node may still reserve before it takes another lease
	Leases  int          // that are out, on all nodes; those that wait for their end included

	// Cut says that the budget was made smaller than what is settled and leased. That
	// takes effect as the leases end, within some minutes.
	Cut bool
}

// Line says how the budget of that name is; see [TotalLine], [DayLine] and
// [AdvertiserLine].
func (b *Book) Line(name string) (Line, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l, ok := b.lines[name]
	if !ok {
		return Line{}, false
	}
	return b.status(l), true
}

// Lines are all budgets that are known, in the order of their names: those that
// campaigns pay from, and of days past for as long as they are kept.
func (b *Book) Lines() []Line {
	b.mu.Lock()
	defer b.mu.Unlock()
	lines := make([]Line, 0, len(b.lines))
	for _, l := range b.lines {
		lines = append(lines, b.status(l))
	}
	slices.SortFunc(lines, func(a, b Line) int { return strings.Compare(a.Name, b.Name) })
	return lines
}

func (b *Book) status(l *line) Line {
	s := Line{
		Name: l.name, Kind: l.kind, Date: l.date,
		Settled: l.record.ended(), Spent: l.record.ended(), Leased: l.record.leased(), Leases: len(l.record.Leases),
	}
	if l.terms != nil {
		s.Budget = l.terms.budget
		s.Cut = l.record.committed() > s.Budget
	}
	for i := range l.record.Leases {
		id := l.record.Leases[i].ID
		folded, _ := b.config.Fold.Lease(id)
		s.Spent += folded.Spent
		if one := l.mine(id); one != nil {
			s.Free += one.left()
			s.Held += max(one.amount-one.unspent()-folded.Spent, 0)
		}
	}
	return s
}

// covered counts the lines that campaigns pay from, with and without a lease here.
func (b *Book) covered() (with, without int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.lines {
		switch {
		case l.terms == nil:
		case len(*l.open.Load()) > 0:
			with++
		default:
			without++
		}
	}
	return with, without
}

// Checks say how the book is. It takes no node out of service: what has no lease is
// not served.
func (b *Book) Checks() []obs.Check {
	with, without := b.covered()
	_, hurry := b.queue.waiting()
	b.mu.Lock()
	followed, trouble := b.followed, b.trouble
	unread := 0
	for _, l := range b.lines {
		if l.unread {
			unread++
		}
	}
	b.mu.Unlock()
	c := obs.Check{Part: "budget", State: obs.OK, Note: fmt.Sprintf("%d lines leased, %d not", with, without)}
	switch {
	case trouble != nil:
		c.State = obs.Degraded
		c.Note += fmt.Sprintf("; what is leased is spent, and nothing more: %v", trouble)
	case !followed:
		c.State, c.Note = obs.Degraded, "the leases are being read"
	case unread > 0:
		c.State = obs.Degraded
		c.Note += fmt.Sprintf("; %d lines are of a form that is not known, and are left alone", unread)
	case hurry > 0:
		c.Note += fmt.Sprintf(", %d asked for", hurry)
	}
	return []obs.Check{c}
}
