package catalog

import (
	"bufio"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Limits of a taxonomy. The IAB's have up to 1,600 categories in four tiers.
const (
	maxCategories = 20_000
	maxTiers      = 8
)

// A Taxonomy is a forest of categories. It is immutable.
type Taxonomy struct {
	Name          string // "IAB Content Taxonomy 3.0"
	Source        string
	Date          string // when the source was read; "" for a table that was loaded
	FirstTierOnly bool   // what is below is not known, and no id has an ancestor

	categories map[string]category
	order      []string // ids as the source has them
}

type category struct {
	name, parent string
}

//go:embed taxonomy/content-3.0.tsv
var contentTable string

//go:embed taxonomy/ad-product-2.0.tsv
var productTable string

const iabTaxonomies = "github.com/InteractiveAdvertisingBureau/Taxonomies"

// ContentTaxonomy is the first tier of the IAB Content Taxonomy 3.0.
func ContentTaxonomy() *Taxonomy { return builtIn("IAB Content Taxonomy 3.0", contentTable) }

// ProductTaxonomy is the first tier of the IAB Ad Product Taxonomy 2.0.
func ProductTaxonomy() *Taxonomy { return builtIn("IAB Ad Product Taxonomy 2.0", productTable) }

func builtIn(name, table string) *Taxonomy {
	t, err := LoadTaxonomy(name, strings.NewReader(table))
	if err != nil {
		panic(err) // a table of our own
	}
	t.Source, t.Date, t.FirstTierOnly = iabTaxonomies, "2026-11-30", true
	return t
}

// LoadTaxonomy reads a taxonomy as the IAB publishes it: tab-separated, one
// category a line, the columns by their header (Unique ID, Parent, Name, and Tier 1
// and on, if there are any). Lines that are empty or begin with # are skipped.
//
// In the published tables some categories are their own parents. Such a one stands
// below the category that its tiers name, or in the first tier. An id that is there
// twice, a parent that is not there, and a cycle are [*InvalidError].
func LoadTaxonomy(name string, r io.Reader) (*Taxonomy, error) {
	l := taxonomyLoader{
		Taxonomy: &Taxonomy{Name: name, Source: "loaded", categories: map[string]category{}},
		paths:    map[string]string{},
	}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		l.line(n, strings.TrimPrefix(lines.Text(), "\ufeff"))
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("load taxonomy %s: %w", name, err)
	}
	l.finish()
	return l.Taxonomy, l.problems.err()
}

// ReadTaxonomies reads the operator's full tables from the files content.tsv and
// ad-product.tsv of a folder. For a file that is not there it gives the built-in
// table. A table that is refused is an error that wraps [ErrInvalid].
func ReadTaxonomies(dir string) (content, products *Taxonomy, err error) {
	content, err = readTaxonomy(ContentTaxonomy(), filepath.Join(dir, "content.tsv"))
	if err != nil {
		return nil, nil, err
	}
	products, err = readTaxonomy(ProductTaxonomy(), filepath.Join(dir, "ad-product.tsv"))
	return content, products, err
}

func readTaxonomy(builtIn *Taxonomy, path string) (*Taxonomy, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return builtIn, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read taxonomy: %w", err)
	}
	defer f.Close()
	t, err := LoadTaxonomy(builtIn.Name, f)
	if err != nil {
		return nil, fmt.Errorf("read taxonomy %s: %w", path, err)
	}
	t.Source = path
	return t, nil
}

// A taxonomyLoader reads one table.
type taxonomyLoader struct {
	*Taxonomy
	problems problems

	columns map[string]int    // by header; nil before it
	rows    []taxonomyRow     // in the order of the source
	paths   map[string]string // id by tiers, joined by tabs
}

type taxonomyRow struct {
	id, parent string
	path       string // its tiers; "" where there are none
	place      string // for problems
}

func (l *taxonomyLoader) line(n int, text string) {
	cells := strings.Split(text, "\t")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	switch {
	case strings.HasPrefix(text, "#") || strings.Join(cells, "") == "":
	case l.columns == nil:
		l.header(cells)
	case len(l.rows) < maxCategories:
		l.row(fmt.Sprintf("line %d", n), cells)
	case len(l.rows) == maxCategories:
		l.problems.add(fmt.Sprintf("line %d", n), "", "more than %d categories", maxCategories)
		l.rows = append(l.rows, taxonomyRow{}) // said once
	}
}

// header takes the line with the names of the columns; titles above it are skipped.
func (l *taxonomyLoader) header(cells []string) {
	if slices.Contains(cells, "Unique ID") {
		l.columns = map[string]int{}
		for i, c := range cells {
			l.columns[c] = i + 1
		}
	}
}

func (l *taxonomyLoader) cell(cells []string, columns ...string) string {
	for _, c := range columns {
		if i := l.columns[c]; i > 0 && i <= len(cells) {
			return cells[i-1]
		}
	}
	return ""
}

func (l *taxonomyLoader) row(place string, cells []string) {
	id, name := l.cell(cells, "Unique ID"), l.cell(cells, "Name")
	var tiers []string
	for i := 1; i <= maxTiers; i++ {
		if tier := l.cell(cells, fmt.Sprintf("Tier %d", i)); tier != "" {
			tiers = append(tiers, tier)
		}
	}
	row := taxonomyRow{id: id, parent: l.cell(cells, "Parent", "Parent ID"), path: strings.Join(tiers, "\t"), place: place}
	switch _, twice := l.categories[id]; {
	case !idPattern.MatchString(id):
		l.problems.add(place, "1 to 64 of A-Z a-z 0-9 _ -", "%s is not an id", quote(id))
		return
	case twice:
		l.problems.add(place, "", "%s is there twice", quote(id))
		return
	case name == "":
		l.problems.add(place, "", "%s has no name", quote(id))
	}
	l.categories[id] = category{name: name}
	l.order = append(l.order, id)
	l.rows = append(l.rows, row)
	if row.path != "" {
		l.paths[row.path] = id
	}
}

// finish puts every category below its parent, now that all are known.
func (l *taxonomyLoader) finish() {
	if l.columns == nil {
		l.problems.add("", `tab-separated, with the columns "Unique ID", "Parent" and "Name"`, "has no header")
	}
	for _, row := range l.rows {
		if row.id == "" {
			continue
		}
		parent := row.parent
		if parent == row.id {
			parent = l.byTiers(row)
		}
		if _, ok := l.categories[parent]; !ok && parent != "" {
			l.problems.add(row.place, "", "the parent %s of %q is not there", quote(parent), row.id)
			continue
		}
		l.categories[row.id] = category{name: l.categories[row.id].name, parent: parent}
	}
	for _, row := range l.rows {
		l.checkCycle(row)
	}
}

// byTiers is the id of the category that the tiers of a row name above it.
func (l *taxonomyLoader) byTiers(row taxonomyRow) string {
	i := strings.LastIndexByte(row.path, '\t')
	if i < 0 {
		return ""
	}
	return l.paths[row.path[:i]]
}

func (l *taxonomyLoader) checkCycle(row taxonomyRow) {
	tiers := 0
	for id := row.id; id != ""; id = l.categories[id].parent {
		if tiers++; tiers > maxTiers {
			l.problems.add(row.place, "", "%q is in or below a cycle of parents, or deeper than %d tiers", row.id, maxTiers)
			return
		}
	}
}

// CategoryName is the name of a category.
func (t *Taxonomy) CategoryName(id string) (string, bool) {
	c, ok := t.categories[id]
	return c.name, ok
}

// Parent is the category above, "" for one of the first tier and for unknown ids.
func (t *Taxonomy) Parent(id string) string { return t.categories[id].parent }

// Categories are all ids, in the order of the source. The list is shared.
func (t *Taxonomy) Categories() []string { return t.order }

// within reports whether a category is another one, or below it.
func (t *Taxonomy) within(id, other string) bool {
	for ; id != ""; id = t.Parent(id) {
		if id == other {
			return true
		}
	}
	return false
}
