package classify

import (
	"slices"
	"strings"
	"unicode"

	"deckle/internal/catalog"
)

// Bounds of what is looked at, whoever sent it.
const (
	maxTexts = 64  // sections and tags of a page, each
	maxText  = 512 // bytes of one
)

// names finds a category by its name.
type names map[string]string // id, by normalized name

// namesOf are the names of a taxonomy. Where several categories have one name
// ("Comedy" is a film, a book and a broadcast), it means the one nearest to the
// first tier, and of those the first in the source.
func namesOf(t *catalog.Taxonomy) names {
	n, tiers := names{}, map[string]int{}
	for _, id := range t.Categories() {
		text, _ := t.CategoryName(id)
		name, tier := normalize(text), tierOf(t, id)
		if _, taken := n[name]; name != "" && (!taken || tier < tiers[name]) {
			n[name], tiers[name] = id, tier
		}
	}
	return n
}

func tierOf(t *catalog.Taxonomy, id string) (tier int) {
	for ; id != ""; id = t.Parent(id) {
		tier++
	}
	return tier
}

// normalize makes names equal that differ in case, in signs, or in how "and" is
// written: "Food & Drink", "food and drink", "FOOD-AND-DRINK".
func normalize(text string) string {
	var b strings.Builder
	gap := false
	for _, r := range strings.ReplaceAll(text, "&", " and ") {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) {
			gap = true
			continue
		}
		if gap && b.Len() > 0 {
			b.WriteByte(' ')
		}
		gap = false
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// categories are those that a page names itself: the most certain first, at most
// [MaxCategories].
func (n names) categories(m Meta) (found []Category) {
	for _, text := range firstOf(m.Sections) {
		if id, ok := n.section(text); ok {
			found = add(found, id, Section)
		}
	}
	for _, text := range firstOf(m.Tags) {
		for part := range strings.FieldsFuncSeq(text, separatesTags) {
			if id, ok := n[normalize(part)]; ok {
				found = add(found, id, Tag)
			}
		}
	}
	return found
}

func firstOf(texts []string) []string { return texts[:min(len(texts), maxTexts)] }

// section finds the category of a section: its whole name, else the innermost part
// of a path like "Sports > Football" that is one.
func (n names) section(text string) (id string, ok bool) {
	if len(text) > maxText {
		return "", false
	}
	if id, ok = n[normalize(text)]; ok {
		return id, true
	}
	for _, part := range slices.Backward(strings.FieldsFunc(text, separatesSections)) {
		if id, ok = n[normalize(part)]; ok {
			return id, true
		}
	}
	return "", false
}

func separatesSections(r rune) bool { return strings.ContainsRune(">/|»›,;", r) }
func separatesTags(r rune) bool     { return r == ',' || r == ';' }

// add appends a category, unless it is there already or there is no room.
func add(to []Category, id string, s Source) []Category {
	if len(to) == MaxCategories || slices.ContainsFunc(to, func(c Category) bool { return c.ID == id }) {
		return to
	}
	return append(to, Category{ID: id, Confidence: s.confidence(), Source: s})
}
