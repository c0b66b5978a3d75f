package serve

import (
	"cmp"
	"slices"
	"time"

	"deckle"
	"deckle/internal/catalog"
)

// maxExplained is how many candidates an explanation tells of, for the page and for
// each slot: those that came furthest, the best first.
const maxExplained = 50

// An Explanation says why the slots of a page got what they got, with the numbers.
// There is nothing of the reader in it but what the batch had said. Prices are micros
// of the site's currency for a thousand impressions.
type Explanation struct {
	Site   string         `json:"site"`
	Status catalog.Status `json:"status"` // of the site
	URL    string         `json:"url"`    // of the page, without query
	At     time.Time      `json:"at"`

	Categories   []ExplainedCategory `json:"categories"`
	ClassifiedAt time.Time           `json:"classifiedAt,omitzero"` // zero: nobody has said what the page is about
	FreshUntil   time.Time           `json:"freshUntil,omitzero"`
	Stale        bool                `json:"stale"` // nothing is auctioned

	BidWeight float64 `json:"bidWeight"` // α of the score

	Steps      []ExplainedStep      `json:"steps"`      // of the page
	Candidates []ExplainedCandidate `json:"candidates"` // those that came furthest first
	LeftOut    int                  `json:"leftOut"`    // of Candidates: there are so many more
	Slots      []ExplainedSlot      `json:"slots"`      // in the order in which they were decided
	StalePins  []string             `json:"stalePins"`
}

// An ExplainedCategory is one thing that the page is about.
type ExplainedCategory struct {
	ID         string  `json:"id"`
	Confidence float64 `json:"confidence"`
	Source     string  `json:"source"` // rule, section, tag …
}

// An ExplainedStep is how many candidates took part before a step and after it.
type ExplainedStep struct {
	Name string `json:"name"`
	In   int    `json:"in"`
	Out  int    `json:"out"`
}

// An ExplainedCandidate is what became of a candidate on the page as a whole.
type ExplainedCandidate struct {
	Creative   string     `json:"creative"`
	Version    uint32     `json:"version"`
	Campaign   string     `json:"campaign"`
	Advertiser string     `json:"advertiser"`
	Category   string     `json:"category"`       // of the page, for which it is priced
	Affinity   float64    `json:"affinity"`       // confidence × 0.7 for each step up
	Fate       string     `json:"fate,omitempty"` // filled, honored, what kept it from all slots, or "" for one that took part
	Recent     bool       `json:"recent,omitempty"`
	Bid        deckle.CPM `json:"bid"`

	// Score is nil where nothing was auctioned, or where it took no part.
	Score *ExplainedScore `json:"score,omitempty"`
}

// An ExplainedScore is what a candidate is ranked and priced by.
type ExplainedScore struct {
	Impressions float64 `json:"impressions"` // n, as c and f decayed
	Clicks      float64 `json:"clicks"`
	Folds       float64 `json:"folds"`
	Shown       int64   `json:"shown"` // N

	SampledEngagement float64 `json:"sampledEngagement"`
	MeanEngagement    float64 `json:"meanEngagement"`
	Score             float64 `json:"score"`     // of the sample: who wins
	MeanScore         float64 `json:"meanScore"` // of the mean: what the winner pays
}

// An ExplainedSlot is what became of a slot.
type ExplainedSlot struct {
	ID      string `json:"id"`
	W       int    `json:"w"`
	H       int    `json:"h"`
	Outcome string `json:"outcome"` // filled, honored, or the reason of its being empty

	Pin      string `json:"pin,omitempty"`      // creative of the reader's bookmark
	PinGone  bool   `json:"pinGone,omitempty"`  // the catalog proves that it has been taken off
	Creative string `json:"creative,omitempty"` // the winner

	Steps      []ExplainedStep      `json:"steps,omitempty"` // none where a bookmark was honoured
	Contenders []ExplainedContender `json:"contenders,omitempty"`
	LeftOut    int                  `json:"leftOut"` // of Contenders
}

// An ExplainedContender is what became of a candidate in one slot, with its turn in
// the order of the scores.
type ExplainedContender struct {
	Creative    string     `json:"creative"`
	Fate        string     `json:"fate"` // filled, outbid, budget, or what kept it from the slot
	Floor       deckle.CPM `json:"floor"`
	Score       float64    `json:"score,omitzero"`
	RunnerUp    string     `json:"runnerUp,omitempty"`    // creative that sets its price; "" for none
	Price       deckle.CPM `json:"price,omitzero"`        // what it pays, or would pay
	Reservation string     `json:"reservation,omitempty"` // granted or refused; "" where nobody asked
}

// Fates that are not reasons.
const (
	fateFilled  = "filled"
	fateHonored = "honored"
	fateOutbid  = "outbid"
)

// String is what became of the slot, in a word: filled, honored, or the reason of
// its being empty.
func (o *Outcome) String() string {
	switch {
	case o.Honored:
		return fateHonored
	case o.Winner != nil:
		return fateFilled
	}
	return o.Reason.String()
}

// Explain answers a question as [Pipeline.Decide] does, and says why.
func (p *Pipeline) Explain(q Question) (*Decision, *Explanation) {
	p.begin(q, &Explanation{
		Site: q.Site.ID, Status: q.Site.Status, URL: withoutQuery(q.URL), At: q.Now, BidWeight: q.Site.BidWeight,
		Categories: []ExplainedCategory{}, Candidates: []ExplainedCandidate{}, StalePins: []string{},
	})
	p.run()
	return &p.decision, p.explained
}

// taking is how many contenders take part; only where it is to be explained.
func (p *Pipeline) taking() (n int) {
	if p.explained == nil {
		return 0
	}
	for i := range p.contenders {
		if p.contenders[i].fate == Nothing {
			n++
		}
	}
	return n
}

func (p *Pipeline) explainStep(name string, in int) {
	if p.explained != nil {
		p.explained.Steps = append(p.explained.Steps, ExplainedStep{name, in, p.taking()})
	}
}

// explainSlot tells of the slot that has just been decided.
func (p *Pipeline) explainSlot() {
	if p.explained == nil {
		return
	}
	s, o := p.slot, p.slot.outcome
	e := ExplainedSlot{ID: s.ID, W: s.W, H: s.H, Outcome: o.String(), Pin: s.pin, PinGone: o.PinRemoved}
	if o.Winner != nil {
		e.Creative = o.Winner.Creative.ID
	}
	if !o.Honored && o.Reason != Warmup && o.Reason != Stale {
		p.explainAuction(&e)
	}
	p.explained.Slots = append(p.explained.Slots, e)
}

// explainAuction tells of those in the ranking, in their turns, and then of those
// that were kept from the slot.
func (p *Pipeline) explainAuction(e *ExplainedSlot) {
	granted := 0
	for i := range p.ranking {
		x := p.explainTurn(&p.ranking[i])
		switch {
		case x.Creative == e.Creative:
			x.Fate, x.Reservation, granted = fateFilled, "granted", 1
		case granted == 0:
			x.Fate, x.Reservation = Budget.String(), "refused"
		}
		e.Contenders = append(e.Contenders, x)
	}
	e.Steps = []ExplainedStep{{"auction", len(p.contenders), len(p.ranking)}, {"reservation", len(p.ranking), granted}}
	for _, c := range p.byFate(p.fate) {
		if fate := p.fate(c); fate != Nothing { // else it is in the ranking
			e.Contenders = append(e.Contenders, ExplainedContender{Creative: c.Creative.ID, Fate: fate.String(), Floor: p.floors[c.category]})
		}
	}
	e.LeftOut = max(len(e.Contenders)-maxExplained, 0)
	e.Contenders = e.Contenders[:len(e.Contenders)-e.LeftOut]
}

// explainTurn tells of one of the ranking as of one whose turn did not come.
func (p *Pipeline) explainTurn(r *ranked) ExplainedContender {
	c := &p.contenders[r.i]
	x := ExplainedContender{Creative: c.Creative.ID, Fate: fateOutbid, Floor: p.floors[c.category], Score: r.score, Price: p.clear(r)}
	if r.rival >= 0 {
		x.RunnerUp = p.contenders[r.rival].Creative.ID
	}
	return x
}

// byFate are all contenders: those that came furthest first, of those the ones with
// the best scores.
func (p *Pipeline) byFate(fate func(*contender) Reason) []*contender {
	all := make([]*contender, len(p.contenders))
	for i := range p.contenders {
		all[i] = &p.contenders[i]
	}
	distance := func(c *contender) int {
		if f := fate(c); f != Nothing {
			return int(f)
		}
		return len(reasonNames)
	}
	slices.SortStableFunc(all, func(a, b *contender) int {
		return cmp.Or(distance(b)-distance(a), cmp.Compare(b.score, a.score), cmp.Compare(b.affinity, a.affinity))
	})
	return all
}

// explainPage tells of the page, once all slots are decided.
func (p *Pipeline) explainPage() {
	e := p.explained
	if e == nil {
		return
	}
	for _, c := range p.Page.Categories {
		e.Categories = append(e.Categories, ExplainedCategory{c.ID, c.Confidence, string(c.Source)})
	}
	if p.Known {
		e.ClassifiedAt, e.FreshUntil = p.Page.At, p.Page.At.Add(time.Duration(p.Site.FreshnessHours)*time.Hour)
	}
	e.Stale = p.stale
	e.StalePins = append(e.StalePins, p.decision.StalePins...)
	all := p.byFate(func(c *contender) Reason { return c.fate })
	e.LeftOut = max(len(all)-maxExplained, 0)
	for _, c := range all[:len(all)-e.LeftOut] {
		e.Candidates = append(e.Candidates, p.explainCandidate(c))
	}
}

func (p *Pipeline) explainCandidate(c *contender) ExplainedCandidate {
	x := ExplainedCandidate{
		Creative: c.Creative.ID, Version: c.Version, Campaign: c.Campaign.ID, Advertiser: c.Advertiser.ID,
		Category: p.Page.Categories[c.category].ID, Affinity: c.affinity,
		Fate: c.fate.String(), Recent: c.recent, Bid: c.Campaign.MaxCPM,
	}
	for i := range p.slots {
		if o := p.slots[i].outcome; o.Winner == c.Candidate {
			x.Fate = o.String()
		}
	}
	if c.score > 0 {
		s := p.Stats(p.Site.ID, c.Creative.ID, p.Now)
		x.Score = &ExplainedScore{
			Impressions: s.Impressions, Clicks: s.Clicks, Folds: s.Folds, Shown: s.Shown,
			SampledEngagement: c.sampled, MeanEngagement: c.engagement, Score: c.score, MeanScore: c.meanScore,
		}
	}
	return x
}
