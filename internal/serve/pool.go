package serve

import (
	"slices"
	"strings"
	"time"

	"deckle/internal/catalog"
)

// A contender is a candidate for the slots of one page.
type contender struct {
	*catalog.Candidate
	affinity float64 // confidence of the category × 0.7 for each step up
	category int     // of the page's categories, the one that gives the affinity
	recent   bool    // its campaign was rendered seconds ago
	fate     Reason  // what keeps it from all slots; Nothing for one that takes part

	// From the first auction of the page on, for those that take part.
	engagement float64 // mean
	meanScore  float64
	sampled    float64 // engagement
	score      float64 // of the sample
	refused    bool    // a budget could not pay for it: it sets nobody's price
}

// pooled reports whether the contender is in the lookup pool, but for its shape.
func (c *contender) pooled() bool { return c.fate == Nothing || c.fate > WrongShape }

// A head is the next candidate of one category's pool.
type head struct {
	catalog.Pool
	next int
}

// index finds the contenders: the candidates of the page's categories on this site,
// each once, by its best category.
func index(p *Pipeline) {
	p.heads = p.heads[:0]
	for _, c := range p.Page.Categories {
		p.heads = append(p.heads, head{Pool: p.Catalog.Lookup(p.Site.ID, c.ID)})
	}
	for c, ok := p.nextContender(); ok; c, ok = p.nextContender() {
		if !c.InSchedule(p.Now) {
			c.fate = NotRunning
		}
		c.recent = slices.Contains(p.Recent, c.Campaign.ID)
		p.contenders = append(p.contenders, c)
	}
}

// nextContender merges the pools, which are in the order of the creatives' ids.
func (p *Pipeline) nextContender() (c contender, ok bool) {
	var least string
	for i := range p.heads {
		h := &p.heads[i]
		if h.next == h.Len() {
			continue
		}
		if candidate, _ := h.At(h.next); !ok || candidate.Creative.ID < least {
			least, ok = candidate.Creative.ID, true
		}
	}
	for i := range p.heads {
		h := &p.heads[i]
		if h.next == h.Len() {
			continue
		}
		candidate, factor := h.At(h.next)
		if candidate.Creative.ID != least {
			continue
		}
		h.next++
		if affinity := p.Page.Categories[i].Confidence * factor; c.Candidate == nil || affinity > c.affinity {
			c = contender{Candidate: candidate, affinity: affinity, category: i}
		}
	}
	return c, ok
}

// find is the contender with a creative, nil for none.
func (p *Pipeline) find(creative string) *contender {
	i, found := slices.BinarySearchFunc(p.contenders, creative, func(c contender, id string) int {
		return strings.Compare(c.Creative.ID, id)
	})
	if !found {
		return nil
	}
	return &p.contenders[i]
}

// recency sells no page of which nothing fresh is known.
func recency(p *Pipeline) {
	if p.Known {
		window := time.Duration(p.Site.FreshnessHours) * time.Hour
		age := max(p.Now.Sub(p.Page.At), 0) // another node's clock may be ahead
		p.decision.Fresh = max(window-age, 0)
	}
	p.stale = p.decision.Fresh == 0
	if p.stale {
		p.drop(Stale, func(*contender) bool { return true })
	}
}

// drop gives a fate to those contenders that still take part.
func (p *Pipeline) drop(fate Reason, whom func(*contender) bool) {
	for i := range p.contenders {
		if c := &p.contenders[i]; c.fate == Nothing && whom(c) {
			c.fate = fate
		}
	}
}

// frequency drops the campaigns whose creatives this browser has seen too often.
func frequency(p *Pipeline) {
	if len(p.Seen) == 0 {
		return
	}
	clear(p.seen)
	for creative, n := range p.Seen {
		// A creative that is deleted was seen all the same.
		if r, ok := p.Catalog.Record(catalog.KindCreative, creative); ok {
			campaign := r.Entity.(*catalog.Creative).Campaign
			p.seen[campaign] = p.seen[campaign].plus(n)
		}
	}
	p.drop(Capped, func(c *contender) bool {
		limit := c.Campaign.FrequencyCap
		return limit != nil && p.seen[c.Campaign.ID].per(limit.Per) >= limit.Count
	})
}

// pacing drops the campaigns that sit this batch out.
func pacing(p *Pipeline) {
	if p.Pace == nil {
		return
	}
	clear(p.campaigns)
	p.distinct = p.distinct[:0]
	for i := range p.contenders {
		c := &p.contenders[i]
		if _, known := p.campaigns[c.Campaign]; c.fate == Nothing && !known {
			p.campaigns[c.Campaign] = len(p.distinct)
			p.distinct = append(p.distinct, c.Campaign)
		}
	}
	p.held = append(p.held[:0], make([]bool, len(p.distinct))...)
	p.Pace(p.Site, p.distinct, p.held, p.Random, p.Now)
	p.drop(Paced, func(c *contender) bool { return p.held[p.campaigns[c.Campaign]] })
}

// exclusion keeps the page free of the advertisers whose ads the reader has
// bookmarked on other slots of the site, and names the bookmarks among those that
// are dead. An advertiser goes with all its campaigns and creatives, since each has
// one owner.
func exclusion(p *Pipeline) {
	clear(p.excluded)
	for i := range p.Pins {
		if pin := &p.Pins[i]; !p.asks(pin.Slot) {
			p.exclude(pin.Creative)
		}
	}
	if len(p.excluded) > 0 {
		p.drop(Excluded, func(c *contender) bool { return p.excluded[c.Advertiser.ID] })
	}
}

func (p *Pipeline) exclude(creative string) {
	if p.removed(creative) {
		if !slices.Contains(p.decision.StalePins, creative) {
			p.decision.StalePins = append(p.decision.StalePins, creative)
		}
		return
	}
	if c, ok := p.Catalog.Creative(creative); ok {
		if campaign, ok := p.Catalog.Campaign(c.Campaign); ok {
			p.excluded[campaign.Advertiser] = true
		}
	}
}

// removed reports whether the catalog proves that an ad has been taken off the site.
// Nothing else ends a bookmark.
func (p *Pipeline) removed(creative string) bool {
	removed, _ := p.Catalog.Removed(p.Site.ID, creative, p.Now)
	return removed
}

func (s Seen) plus(n Seen) Seen {
	return Seen{add(s.Hour, n.Hour), add(s.Day, n.Day), add(s.Week, n.Week)}
}

// add stays at the most, which is above every cap.
func add(a, b uint32) uint32 {
	if sum := a + b; sum >= a {
		return sum
	}
	return ^uint32(0)
}

func (s Seen) per(period catalog.Period) int {
	switch period {
	case catalog.PerHour:
		return int(s.Hour)
	case catalog.PerDay:
		return int(s.Day)
	}
	return int(s.Week)
}
