package catalog

import (
	"iter"
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
	wanted  map[string][]entry // by every category that a campaign wants, sorted by creative
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

// index builds the indexes of the sites that have changed, and keeps the others.
func (s *Snapshot) index(last *Snapshot, d dirty) {
	s.paths = last.paths
	if d.kinds[KindCreative] || d.kinds[KindCampaign] || d.kinds[KindAdvertiser] {
		ids := s.ids[KindCreative]()
		s.paths = make([]path, len(ids))
		for i, id := range ids {
			s.paths[i] = s.path(s.records[KindCreative][id])
		}
	}
	for id, site := range s.records[KindSite] {
		if site.Deleted || !s.sells(site.Entity.(*Site)) {
			continue
		}
		if kept := last.sites[id]; kept != nil && !d.all && !d.sites[id] {
			s.sites[id] = kept
			continue
		}
		s.sites[id] = s.indexSite(site.Entity.(*Site))
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

// indexSite finds every creative's standing on a site, in the order of their ids.
func (s *Snapshot) indexSite(site *Site) *siteIndex {
	index := &siteIndex{wanted: map[string][]entry{}}
	approvals := s.approvals[site.ID]
	candidates := make([]Candidate, 0, len(s.paths)) // never grows: entries point into it
	for i := range s.paths {
		p := &s.paths[i]
		a := approvals[p.creative.ID]
		st := s.standing(site, p, a)
		if !st.inPlace || st.creative.Status != Active || st.advertiser.Status != Active {
			continue
		}
		if st.waits(a) {
			index.waiting = append(index.waiting, st.waiting(a))
		}
		if st.approval == nil || st.why != "" {
			continue
		}
		candidates = append(candidates, st.candidate())
		for _, category := range st.campaign.Categories {
			index.wanted[category] = append(index.wanted[category], entry{&candidates[len(candidates)-1], 1})
		}
	}
	index.inherit(s.config.Content)
	return index
}

func (st *standing) candidate() Candidate {
	return Candidate{
		Site: st.site, Creative: st.creative, Campaign: st.campaign, Advertiser: st.advertiser,
		Version: st.approval.Version, Content: st.version.Content, PagesJSON: st.version.pagesJSON,
		Domain: st.version.domain, Start: st.start, End: st.end,
	}
}

// inherit adds to every wanted category what is wanted above it. A category that
// nobody wants has the list of the next one above that somebody does, by Lookup.
func (x *siteIndex) inherit(t *Taxonomy) {
	full := make(map[string][]entry, len(x.wanted))
	for category := range x.wanted {
		x.inheritInto(full, category, t)
	}
	x.wanted = full
}

// inheritInto makes the full list of a category, after the one above it.
func (x *siteIndex) inheritInto(full map[string][]entry, category string, t *Taxonomy) {
	if full[category] != nil {
		return
	}
	own := x.wanted[category]
	scale := 1.0
	for above := t.Parent(category); above != ""; above = t.Parent(above) {
		scale *= decay
		if x.wanted[above] != nil {
			x.inheritInto(full, above, t)
			own = merge(own, full[above], scale)
			break
		}
	}
	full[category] = own
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
