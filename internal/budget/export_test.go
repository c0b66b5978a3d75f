package budget

// SetIncarnation makes the book the incarnation of that name, before Run.
func (b *Book) SetIncarnation(id string) { b.self.id = id }
