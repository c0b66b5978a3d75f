package budget

// SetIncarnation makes the book the incarnation of that name, before Run.
func (b *Book) SetIncarnation(id string) { b.self.id = id }

// Covered counts the lines that campaigns pay from, with and without a lease here.
func (b *Book) Covered() (with, without int) { return b.covered() }
