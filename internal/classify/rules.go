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
//
// Rules take up to 0.1 s to compile, and no page waits for that: until an edit's rules
// are ready the ones before it go on, as if the edit had come so much later, which it
// does on other nodes anyway. Only the first rules of a site since the start, before
// which there are none, are waited for, by the pages of that site.
type rulebook struct {
	log *slog.Logger

	mu    sync.Mutex // guards the writing of sites
	sites atomic.Pointer[map[string]*siteRules]
}

// siteRules are the rules of a site: those that are in force.
type siteRules struct {
	first     sync.Once
	newest    atomic.Pointer[revision]
	compiling atomic.Bool // a newer revision
}

// A revision is the rules of one revision of a site.
type revision struct {
	of   *catalog.Site      // which is never changed, so that its address tells revisions apart
	text *template.Template // nil: they cannot be read

	// before is the revision that this one has replaced, without the ones before it: for
	// those who still have that snapshot.
	before *revision
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
		for _, id := range rules.of.CategoryRules[i].Categories {
			found = add(found, id, Rule)
		}
	}
	return found
}

// rulesOf are the rules of a site, or those before them while they are compiled.
func (b *rulebook) rulesOf(site *catalog.Site) *revision {
	s := b.site(site.ID)
	s.first.Do(func() { s.newest.Store(&revision{of: site, text: b.compile(site)}) })
	r := s.newest.Load()
	switch {
	case r.of == site:
		return r
	case r.before != nil && r.before.of == site:
		return r.before
	case !s.compiling.Swap(true):
		go func() {
			defer s.compiling.Store(false)
			s.newest.Store(&revision{of: site, text: b.compile(site), before: &revision{of: r.of, text: r.text}})
		}()
	}
	return r
}

// site is where the rules of a site are.
func (b *rulebook) site(id string) *siteRules {
	if s := b.known(id); s != nil {
		return s
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.known(id); s != nil {
		return s
	}
	next := map[string]*siteRules{id: {}}
	if sites := b.sites.Load(); sites != nil {
		maps.Copy(next, *sites)
	}
	b.sites.Store(&next)
	return next[id]
}

func (b *rulebook) known(id string) *siteRules {
	if sites := b.sites.Load(); sites != nil {
		return (*sites)[id]
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
