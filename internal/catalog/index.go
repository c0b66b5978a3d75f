package catalog

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"deckle"
)

// decay is what a step from a page's category up to the one that a campaign wants
// takes from its affinity.
const decay = 0.7

// A Candidate is a creative that may be shown on a site. It is immutable.
type Candidate struct {
	Site       *Site
	Creative   *Creative // as it is now; what is shown is Content
	Campaign   *Campaign
	Advertiser *Advertiser
	Version    uint32    // the last approved one
	Content    *Content  // of that version
	PagesJSON  []byte    // Content.Pages as the wire has them
	Domain     string    // registrable, of the landing page
	Start, End time.Time // of the campaign; zero for none. End is the first instant after it
}

// InSchedule reports whether the campaign runs at a moment.
func (c *Candidate) InSchedule(now time.Time) bool {
	return !now.Before(c.Start) && (c.End.IsZero() || now.Before(c.End))
}

// Fits reports whether the creative may fill a slot of that size.
func (c *Candidate) Fits(size deckle.Size) bool {
	return len(c.Content.Shapes) == 0 || slices.Contains(c.Content.Shapes, Shape{size.W, size.H})
}

// A siteIndex is what may be shown on one site.
type siteIndex struct {
	own     map[string][]entry // by category, of the campaigns that want it; sorted by creative, never empty
	wanted  map[string][]entry // the same, together with those that want a category above it
	waiting []Waiting          // for approval
}

// An entry is a candidate of a category with its affinity.
type entry struct {
	candidate *Candidate
	affinity  float64
}

// A Pool is what a page of one category may have on a site.
type Pool struct {
	entries []entry
	scale   float64
}

// Len is how many candidates there are.
func (p Pool) Len() int { return len(p.entries) }

// At is a candidate with its affinity factor: 1 where the campaign wants this very
// category, 0.7 for each step up to the one that it wants. Each candidate is there
// once, in the order of the creatives' ids.
func (p Pool) At(i int) (*Candidate, float64) {
	return p.entries[i].candidate, p.entries[i].affinity * p.scale
}

// All gives each candidate with its affinity factor, as At does.
func (p Pool) All() iter.Seq2[*Candidate, float64] {
	return func(yield func(*Candidate, float64) bool) {
		for i := range p.entries {
			if !yield(p.At(i)) {
				return
			}
		}
	}
}

// Lookup finds the candidates of a category on a site: those of campaigns that want
// it or a category above it. Whether they run now and fit the slot is for the
// caller to ask. It takes no lock and allocates nothing.
func (s *Snapshot) Lookup(site, category string) Pool {
	index := s.sites[site]
	if index == nil {
		return Pool{}
	}
	for scale := 1.0; category != ""; scale *= decay {
		if entries := index.wanted[category]; entries != nil {
			return Pool{entries, scale} // what is wanted above is in it
		}
		category = s.config.Content.Parent(category)
	}
	return Pool{}
}

// index brings the indexes of the sites up to date, and keeps those on which nothing
// has changed.
func (s *Snapshot) index(last *Snapshot, d dirty) {
	for id, r := range s.records[KindSite] {
		site := r.Entity.(*Site)
		if r.Deleted || !s.sells(site) {
			continue
		}
		switch kept := last.sites[id]; {
		case kept == nil || d.all || d.whole[id]:
			s.sites[id] = s.indexSite(site)
		case d.everySite || d.sites[id]:
			s.sites[id] = s.patchSite(site, kept, last, d.creatives)
		default:
			s.sites[id] = kept
		}
	}
}

// findPaths finds the paths of all creatives, unless they are known.
func (s *Snapshot) findPaths() {
	if s.paths != nil {
		return
	}
	ids := s.ids[KindCreative]()
	s.paths = make([]path, len(ids))
	for i, id := range ids {
		s.paths[i] = s.path(s.records[KindCreative][id])
	}
}

// sells reports whether a site's publisher is there and its currency is the one of
// deckle.toml, which may have changed since the site was saved.
func (s *Snapshot) sells(site *Site) bool {
	publisher, ok := s.Publisher(site.Publisher)
	if !ok {
		return false
	}
	for _, facts := range s.config.Sites {
		if facts.ID == site.ID {
			return facts.Currency == publisher.Currency
		}
	}
	return s.config.Sites == nil
}

// indexSite finds every creative's standing on a site.
func (s *Snapshot) indexSite(site *Site) *siteIndex {
	s.findPaths()
	index := &siteIndex{own: map[string][]entry{}, wanted: map[string][]entry{}}
	for i := range s.paths {
		if c := index.examine(s, site, &s.paths[i]); c != nil {
			for _, category := range c.Campaign.Categories {
				index.own[category] = append(index.own[category], entry{c, 1})
			}
		}
	}
	for category := range index.own {
		index.inherit(category, s.config.Content)
	}
	return index
}

// patchSite is an index in which some creatives have been looked at again. What the
// kept one has is not changed: others are reading it.
func (s *Snapshot) patchSite(site *Site, kept *siteIndex, last *Snapshot, creatives map[string]bool) *siteIndex {
	index := &siteIndex{own: maps.Clone(kept.own), wanted: maps.Clone(kept.wanted)}
	for _, w := range kept.waiting {
		if !creatives[w.Creative] {
			index.waiting = append(index.waiting, w)
		}
	}
	touched := map[string]bool{}
	for id := range creatives {
		for _, category := range last.categories(id) {
			touched[category] = true
			index.take(category, id)
		}
		r, known := s.records[KindCreative][id]
		if !known {
			continue // what a document will leave to a person is noted before it comes
		}
		p := s.path(r)
		if c := index.examine(s, site, &p); c != nil {
			for _, category := range c.Campaign.Categories {
				touched[category] = true
				index.put(category, c)
			}
		}
	}
	index.inheritAgain(touched, s.config.Content)
	return index
}

// categories are those that a creative's campaign wants.
func (s *Snapshot) categories(creative string) []string {
	r, known := s.records[KindCreative][creative]
	if !known {
		return nil
	}
	if p := s.path(r); p.campaign != nil {
		return p.campaign.Categories
	}
	return nil
}

// examine finds a creative's standing on a site: it may wait for approval, and be a
// candidate, or else nil.
func (x *siteIndex) examine(s *Snapshot, site *Site, p *path) *Candidate {
	approvals := s.approvals[site.ID][p.creative.ID]
	st := s.standing(site, p, approvals)
	if !st.inPlace || !st.buys || st.creative.Status != Active || st.advertiser.Status != Active {
		return nil
	}
	if st.waits(approvals) {
		x.waiting = append(x.waiting, st.waiting(approvals))
	}
	if st.approval == nil || st.why != "" {
		return nil
	}
	return &Candidate{
		Site: st.site, Creative: st.creative, Campaign: st.campaign, Advertiser: st.advertiser,
		Version: st.approval.Version, Content: st.version.Content, PagesJSON: st.version.pagesJSON,
		Domain: st.version.domain, Start: st.start, End: st.end,
	}
}

// find is where a creative is in the own list of a category, or would be.
func (x *siteIndex) find(category, creative string) (int, bool) {
	return slices.BinarySearchFunc(x.own[category], creative, func(e entry, id string) int {
		return strings.Compare(e.candidate.Creative.ID, id)
	})
}

// take takes a creative out of a copy of a category's list.
func (x *siteIndex) take(category, creative string) {
	i, found := x.find(category, creative)
	switch list := x.own[category]; {
	case found && len(list) == 1:
		delete(x.own, category)
	case found:
		x.own[category] = slices.Concat(list[:i], list[i+1:])
	}
}

// put puts a candidate into a copy of a category's list.
func (x *siteIndex) put(category string, c *Candidate) {
	i, _ := x.find(category, c.Creative.ID) // it has been taken out
	list := x.own[category]
	x.own[category] = slices.Concat(list[:i], []entry{{c, 1}}, list[i:])
}

// inheritAgain makes the full lists of the categories that have been touched, and of
// those below them.
func (x *siteIndex) inheritAgain(touched map[string]bool, t *Taxonomy) {
	stale := func(category string) bool {
		for ; category != ""; category = t.Parent(category) {
			if touched[category] {
				return true
			}
		}
		return false
	}
	maps.DeleteFunc(x.wanted, func(category string, _ []entry) bool { return stale(category) })
	for category := range x.own {
		x.inherit(category, t)
	}
}

// inherit makes the full list of a category that is wanted, unless it is there: its
// own, and that of the next one above that is wanted. A category that nobody wants
// has the list of the next one above that somebody does, by Lookup.
func (x *siteIndex) inherit(category string, t *Taxonomy) {
	if x.wanted[category] != nil {
		return
	}
	list, scale := x.own[category], 1.0
	for above := t.Parent(category); above != ""; above = t.Parent(above) {
		scale *= decay
		if x.own[above] != nil {
			x.inherit(above, t)
			list = merge(list, x.wanted[above], scale)
			break
		}
	}
	x.wanted[category] = list
}

// merge joins two lists by creative; where one is in both, the nearer category
// counts.
func merge(near, far []entry, scale float64) []entry {
	out := make([]entry, 0, len(near)+len(far))
	for len(near) > 0 || len(far) > 0 {
		order := -1
		switch {
		case len(near) == 0:
			order = 1
		case len(far) > 0:
			order = strings.Compare(near[0].candidate.Creative.ID, far[0].candidate.Creative.ID)
		}
		if order <= 0 {
			out = append(out, near[0])
			near = near[1:]
		} else {
			out = append(out, entry{far[0].candidate, far[0].affinity * scale})
		}
		if order >= 0 {
			far = far[1:]
		}
	}
	return out
}
