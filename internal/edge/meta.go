package edge

// HeadMeta is what a page says of itself in metas of its head, as text in UTF-8:
// bounded in number and length, and no more to be trusted than any page.
type HeadMeta struct {
	Sections []string // of article:section
	Tags     []string // of article:tag
}
