package catalog

import "io"

// A Taxonomy is a tree of categories.
type Taxonomy struct {
	Name   string // "IAB Content Taxonomy 3.0"
	Source string
	Date   string // when the source was read
}

// ContentTaxonomy is the first tier of the IAB Content Taxonomy 3.0.
func ContentTaxonomy() *Taxonomy { return nil }

// ProductTaxonomy is the first tier of the IAB Ad Product Taxonomy 2.0.
func ProductTaxonomy() *Taxonomy { return nil }

// LoadTaxonomy reads a taxonomy as the IAB publishes it: tab-separated, one
// category a line, with the columns Unique ID, Parent and Name.
func LoadTaxonomy(name string, r io.Reader) (*Taxonomy, error) { return nil, nil }

// CategoryName is the name of a category.
func (t *Taxonomy) CategoryName(id string) (string, bool) { return "", false }

// Parent is the category above, "" for one of the first tier and for unknown ids.
func (t *Taxonomy) Parent(id string) string { return "" }

// Categories are all ids, in the order of the source.
func (t *Taxonomy) Categories() []string { return nil }
