package dashboard

import (
	"cmp"
	"fmt"
	"slices"

	"deckle/internal/catalog"
)

// defaultPaper is what a page without a background is printed on by the magazine.
const defaultPaper = "#faf7f1"

// colourNotes say which colours of pages could not be read, by the names of their
// fields, and what becomes of them.
func colourNotes(pages []catalog.Page) map[string]string {
	notes := map[string]string{}
	for i, p := range pages {
		saved := p
		saved.CorrectColors()
		at := fmt.Sprintf("pages[%d].", i)
		for _, c := range []struct {
			name, given, saved, what string
			least                    float64
		}{
			{"ink", p.Ink, saved.Ink, "text", catalog.TextContrast},
			{"accent", p.Accent, saved.Accent, "what has to be seen", catalog.AccentContrast},
		} {
			contrast, ok := catalog.Contrast(c.given, cmp.Or(p.Background, defaultPaper))
			if !ok || contrast >= c.least {
				continue
			}
			becomes := "It is saved as " + c.saved + "."
			if c.saved == c.given {
				becomes = "Readers get the ink of the magazine instead."
			}
			on := "its background"
			if p.Background == "" {
				on = "the magazine’s own paper"
			}
			notes[at+c.name] = fmt.Sprintf("Too close to %s: %.2f to 1, and %s needs %g. %s", on, contrast, c.what, c.least, becomes)
		}
	}
	return notes
}

// wereCorrected reports whether colours were not saved as they were entered.
func wereCorrected(entered, saved []catalog.Page) bool {
	return !slices.EqualFunc(entered, saved, func(a, b catalog.Page) bool { return a.Ink == b.Ink && a.Accent == b.Accent })
}
