package serve

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"slices"

	"deckle"
	"deckle/internal/catalog"
	"deckle/internal/quality"
)

// A slot is one imp of the batch on its way to an outcome.
type slot struct {
	*Imp
	area    int
	pin     string // creative of the bookmark on it; "" for none
	outcome *Outcome
}

// line puts the slots into slot order: with a bookmark before without, larger before
// smaller, else as the batch has them.
func (p *Pipeline) line() {
	p.slots = p.slots[:0]
	for i := range p.Imps {
		imp := &p.Imps[i]
		p.slots = append(p.slots, slot{Imp: imp, area: imp.W * imp.H, pin: p.Batch.pin(imp.ID), outcome: &p.decision.Outcomes[i]})
	}
	slices.SortStableFunc(p.slots, func(a, b slot) int {
		switch {
		case a.pin != "" && b.pin == "":
			return -1
		case a.pin == "" && b.pin != "":
			return 1
		}
		return b.area - a.area
	})
}

// pin honours the bookmarks whose ads are in the lookup pool, before anything is
// auctioned: no auctioned ad may stand beside one of its own advertiser. Caps,
// pacing, budgets, floors and what else is on the page do not bind them. Bookmarks
// of ads that are gone are named; of all others nothing is said, and they are kept.
func pin(p *Pipeline) {
	for i := range p.slots {
		s := &p.slots[i]
		if s.pin == "" {
			continue
		}
		c := p.find(s.pin)
		switch {
		case c == nil || !c.pooled() || !c.Fits(s.size()):
			s.outcome.PinRemoved = p.removed(s.pin)
		case !p.honored(c):
			s.outcome.Winner, s.outcome.Honored = c.Candidate, true
			s.outcome.Category, s.outcome.RequestID = p.Page.Categories[c.category].ID, p.newRequestID()
		}
	}
	for i := range p.slots {
		p.use(p.slots[i].outcome.Winner)
	}
}

// honored reports whether a bookmark of the same ad has been honoured already: it
// is on the page once.
func (p *Pipeline) honored(c *contender) bool {
	return slices.ContainsFunc(p.slots, func(s slot) bool { return s.outcome.Winner == c.Candidate })
}

// use takes the advertiser of a winner, if there is one, with all its campaigns and
// creatives, out of what is auctioned on this page.
func (p *Pipeline) use(w *catalog.Candidate) {
	if w != nil {
		p.drop(Used, func(c *contender) bool { return c.Advertiser.ID == w.Advertiser.ID })
	}
}

// A ranked is a contender at its place in an auction.
type ranked struct {
	score  float64
	i      int32 // in contenders
	rival  int32 // the runner-up when it wins; -1 for none
	recent bool
}

// auction ranks those who may have the slot by their sampled scores, and finds for
// each the runner-up that sets its price should it win.
func auction(p *Pipeline) {
	p.ranking = p.ranking[:0]
	if p.Site.Status == catalog.Warmup {
		return
	}
	p.scoreAll()
	p.findFloors()
	for _, r := range p.order {
		if p.fate(&p.contenders[r.i]) == Nothing {
			p.ranking = append(p.ranking, r)
		}
	}
	p.findRivals()
}

// fate is what keeps a contender from the slot.
func (p *Pipeline) fate(c *contender) Reason {
	switch {
	case !c.pooled():
		return c.fate
	case !c.Fits(p.slot.size()):
		return WrongShape
	case c.fate != Nothing:
		return c.fate
	case c.Campaign.MaxCPM < p.floors[c.category]:
		return BelowFloor
	}
	return Nothing
}

// scoreAll scores the contenders, once a page: whoever wins has left before the next
// slot, so that one draw for each is as good as one for each slot.
//
// The best comes first; those whose campaigns were seen seconds ago come after all
// others, so that they win where nobody else does.
func (p *Pipeline) scoreAll() {
	if p.scored {
		return
	}
	p.scored = true
	for i := range p.contenders {
		c := &p.contenders[i]
		if c.fate != Nothing {
			continue
		}
		stats := p.Stats(p.Site.ID, c.Creative.ID, p.Now)
		weight := quality.Score(1, c.Campaign.MaxCPM, p.Site.BidWeight)
		c.engagement, c.sampled = quality.MeanEngagement(stats, c.affinity), quality.SampleEngagement(p.Random, stats, c.affinity)
		c.meanScore, c.score = c.engagement*weight, c.sampled*weight
		p.order = append(p.order, ranked{score: c.score, i: int32(i), rival: -1, recent: c.recent})
	}
	slices.SortFunc(p.order, func(a, b ranked) int {
		if a.recent != b.recent {
			if a.recent {
				return 1
			}
			return -1
		}
		return cmp.Or(cmp.Compare(b.score, a.score), int(a.i-b.i))
	})
}

// findFloors finds the floor of the slot for each of the page's categories. The most
// particular one applies: the slot's, be it from its template or from the site, else
// the category's or the next one's above it, else the site's.
func (p *Pipeline) findFloors() {
	own := p.Site.Floors.Slots[p.slot.ID]
	if p.SlotFloor != nil {
		own = max(own, p.SlotFloor(p.Site.ID, p.slot.ID))
	}
	p.floors = p.floors[:0]
	for _, c := range p.Page.Categories {
		floor := own
		for id := c.ID; floor == 0 && id != ""; id = p.parent(id) {
			floor = p.Site.Floors.Categories[id]
		}
		p.floors = append(p.floors, quality.RoundFloor(cmp.Or(floor, p.Site.Floors.Site)))
	}
}

func (p *Pipeline) parent(category string) string {
	if p.Parent == nil {
		return ""
	}
	return p.Parent(category)
}

// Rivals are the two best of a category by mean score, of two advertisers, so that
// whoever wins has one of another; -1 for none.
type rivals struct{ first, second int32 }

// findRivals goes through the ranking from its end: when it is somebody's turn to
// win, all before it have been refused, and set no price.
func (p *Pipeline) findRivals() {
	p.rivals = p.rivals[:0]
	for range p.Page.Categories {
		p.rivals = append(p.rivals, rivals{-1, -1})
	}
	for i := len(p.ranking) - 1; i >= 0; i-- {
		r := &p.ranking[i]
		c := &p.contenders[r.i]
		best := &p.rivals[c.category]
		r.rival = best.first
		if r.rival >= 0 && p.contenders[r.rival].Advertiser.ID == c.Advertiser.ID {
			r.rival = best.second
		}
		if !c.refused {
			p.rank(best, r.i)
		}
	}
}

// rank takes one more into the best two.
func (p *Pipeline) rank(best *rivals, i int32) {
	better := func(than int32) bool { return than < 0 || p.contenders[i].meanScore > p.contenders[than].meanScore }
	first := best.first
	switch {
	case first >= 0 && p.contenders[first].Advertiser.ID == p.contenders[i].Advertiser.ID:
		if better(first) {
			best.first = i
		}
	case better(first):
		*best = rivals{i, first}
	case better(best.second):
		best.second = i
	}
}

// reservation gives the slot to the first of the ranking that can pay its price.
func reservation(p *Pipeline) {
	o, id := p.slot.outcome, p.newRequestID()
	for i := range p.ranking {
		r := &p.ranking[i]
		c := &p.contenders[r.i]
		price := p.clear(r)
		leases, ok := p.Reserve(c.Campaign, c.Advertiser, price.Imp(), id, p.Now)
		if !ok {
			c.refused = true
			continue
		}
		o.Winner, o.Category, o.Price = c.Candidate, p.Page.Categories[c.category].ID, price
		o.RequestID, o.Leases = id, leases
		return
	}
	o.Reason = p.whyEmpty()
}

// clear is what a contender pays for the slot.
func (p *Pipeline) clear(r *ranked) deckle.CPM {
	c := &p.contenders[r.i]
	runnerUp := 0.0
	if r.rival >= 0 {
		runnerUp = p.contenders[r.rival].meanScore
	}
	return quality.Clear(runnerUp, c.engagement, p.Site.BidWeight, p.floors[c.category], c.Campaign.MaxCPM)
}

// whyEmpty is the reason of a slot that nobody has got.
func (p *Pipeline) whyEmpty() Reason {
	switch {
	case p.Site.Status == catalog.Warmup:
		return Warmup
	case p.stale:
		return Stale
	case len(p.ranking) > 0:
		return Budget
	}
	furthest := Nothing
	for i := range p.contenders {
		furthest = max(furthest, p.fate(&p.contenders[i]))
	}
	return furthest.ofSlot()
}

// newRequestID names a filled slot.
func (p *Pipeline) newRequestID() string {
	var id [8]byte
	binary.BigEndian.PutUint64(id[:], p.Random.Uint64())
	return hex.EncodeToString(id[:])
}
