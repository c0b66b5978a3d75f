package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"deckle"
	"deckle/internal/config"
	"deckle/internal/template"
)

type matchCmd struct {
	File string   `arg:"" help:"A template file (creative-opportunities.toml)."`
	URLs []string `arg:"" name:"url" help:"URLs or paths of the site."`
}

// Run prints, for every URL, which slots it has, by which pattern and with which
// ad unit path, and which slots it just misses. A template file with an error has
// no slots: its problems are printed, and the exit status is 1.
func (c *matchCmd) Run(out io.Writer) error {
	t, patterns, problems := config.LoadPatterns(c.File, config.SiteDefaults{})
	if t == nil {
		if _, err := problems.WriteTo(out); err != nil {
			return err
		}
		return exitError{1}
	}
	for _, u := range c.URLs {
		if !strings.HasPrefix(u, "/") && !strings.Contains(u, "://") {
			return fmt.Errorf("%q is neither a path, which begins with /, nor a URL with its scheme", u)
		}
		if err := (explainer{t, patterns}).explain(out, u); err != nil {
			return err
		}
	}
	return nil
}

// An explainer says in words what a template does with a URL.
type explainer struct {
	template *template.Template
	patterns []template.Patterns // by slot, as written
}

func (e explainer) explain(out io.Writer, address string) error {
	path := template.Normalize(address)
	if _, err := fmt.Fprintln(out, path); err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	found := 0
	for _, x := range e.template.Explain(path) {
		line := e.line(x, deckle.Section(path))
		if x.Outcome == template.Matches {
			if found++; found > template.MaxSlotsPerPage {
				line += fmt.Sprintf("\tnot used: a page has %d slots at most", template.MaxSlotsPerPage)
			}
		}
		if line != "" {
			fmt.Fprintln(w, "  "+line)
		}
	}
	if found == 0 {
		fmt.Fprintln(w, "  no slot: the page is passed on as it is")
	}
	if !e.template.Enabled {
		fmt.Fprintln(w, "  enabled = false: the site has no ads")
	}
	return w.Flush() // the writer keeps the first error of those above
}

// line is what is to be said of one slot; "" for one that has nothing to do with
// the page.
func (e explainer) line(x template.Explanation, section string) string {
	s := &e.template.Slots[x.Slot]
	switch x.Outcome {
	case template.Matches:
		return fmt.Sprintf("slot\t%s\t%s\t%s", s.ID, e.include(x), unit(s, section))
	case template.Excluded:
		return fmt.Sprintf("excluded\t%s\t%s\tbut exclude[%d] %q", s.ID, e.include(x), x.Exclude, e.patterns[x.Slot].Exclude[x.Exclude])
	case template.NearMiss:
		return fmt.Sprintf("near miss\t%s\t%s\t%s", s.ID, e.include(x), x.Hint)
	}
	return ""
}

// include names the pattern that decided.
func (e explainer) include(x template.Explanation) string {
	return fmt.Sprintf("page_patterns[%d] %q", x.Include, e.patterns[x.Slot].Include[x.Include])
}

// unit is where the slot's ad comes from.
func unit(s *deckle.Slot, section string) string {
	if s.Kind == deckle.Magazine {
		return "magazine"
	}
	return s.UnitPath(section)
}
