package classify

import (
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"

	"deckle"
	"deckle/internal/catalog"
	"deckle/internal/template"
)

// A rulebook has the compiled rules of every site that was asked for.
type rulebook struct {
	log *slog.Logger

	mu    sync.Mutex // held while rules are compiled
	sites atomic.Pointer[map[string]*siteRules]
}

// siteRules are the rules of one revision of a site.
type siteRules struct {
	of   *catalog.Site // which is never changed, so that its address tells revisions apart
	text *template.Template
}

// categories are those that the rules of a site give a page, in the order of the
// rules, at most [MaxCategories].
func (b *rulebook) categories(site *catalog.Site, url string) (found []Category) {
	if len(site.CategoryRules) == 0 {
		return nil
	}
	rules := b.rulesOf(site)
	if rules.text == nil {
		return nil
	}
	for _, i := range rules.text.Match(template.Normalize(url), make([]int, 0, 8)) {
		for _, id := range site.CategoryRules[i].Categories {
			found = add(found, id, Rule)
		}
	}
	return found
}

func (b *rulebook) rulesOf(site *catalog.Site) *siteRules {
	if r := b.known(site); r != nil {
		return r
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.known(site); r != nil {
		return r
	}
	r := &siteRules{of: site, text: b.compile(site)}
	next := map[string]*siteRules{}
	if sites := b.sites.Load(); sites != nil {
		maps.Copy(next, *sites)
	}
	next[site.ID] = r
	b.sites.Store(&next)
	return r
}

func (b *rulebook) known(site *catalog.Site) *siteRules {
	sites := b.sites.Load()
	if sites == nil {
		return nil
	}
	if r := (*sites)[site.ID]; r != nil && r.of == site {
		return r
	}
	return nil
}

// compile makes one automaton of all rules: they are patterns as in templates, and
// each stands for a slot there. Nil: the rules cannot be read.
func (b *rulebook) compile(site *catalog.Site) *template.Template {
	patterns := make([]template.Patterns, len(site.CategoryRules))
	for i, rule := range site.CategoryRules {
		patterns[i].Include = []string{rule.Path}
	}
	t, err := template.New(template.Settings{}, make([]deckle.Slot, len(patterns)), patterns)
	if err != nil { // the catalog takes no such rule
		b.log.Error("category rules cannot be read", "site", site.ID, "err", err)
		return nil
	}
	return t
}
