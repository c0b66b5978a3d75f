package budget

import "time"

// SetIncarnation makes the book the incarnation of that name, before Run.
func (b *Book) SetIncarnation(id string) { b.self.id = id }

// Covered counts the lines that campaigns pay from, with and without a lease here.
func (b *Book) Covered() (with, without int) { return b.covered() }

// Look looks over all lines once.
func (b *Book) Look(now time.Time) { b.sweep(now) }

// Reindex makes the index anew, whether or not it has to be.
func (b *Book) Reindex(now time.Time) {
	b.index.Store(&index{campaigns: b.index.Load().campaigns})
	b.reindex(now)
}
