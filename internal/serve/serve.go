// Package serve decides which magazine ad fills which slot of a page, and at what
// price: bookmarked ads first and free, the rest by a quality-adjusted auction.
//
// [Pipeline.Decide] is the whole decision, as the list [steps]. It is pure: what it
// depends on is in a [Question] and a [Market], time and chance included, and it
// knows nothing of HTTP. [Server] asks it for POST /v1/serve/batch, mints the tokens
// of what it decided and writes the answer. Nothing on that path waits for a lock of
// ours, a disk or the network.
//
// What a browser tells about its reader (pins, counts, recent campaigns) is used for
// its one answer, and neither kept nor logged.
package serve

import (
	"math/rand/v2"
	"time"

	"deckle"
	"deckle/internal/catalog"
	"deckle/internal/classify"
	"deckle/internal/quality"
)

// steps are the pipeline, in the order of the contract. Those before slotSteps look
// at the whole page and run once; the others run for each slot that is still open, in
// slot order. What the first two leave is the lookup pool.
var steps = [...]struct {
	name string
	run  func(*Pipeline)
}{
	{"index", index},             // which ads want a page like this, on this site, at this time?
	{"recency", recency},         // is what we know of the page fresh?
	{"frequency", frequency},     // has this browser seen the campaign too often?
	{"pacing", pacing},           // does its budget last the day?
	{"exclusion", exclusion},     // is the advertiser bookmarked elsewhere on the page?
	{"pin", pin},                 // did the reader choose this very ad?
	{"auction", auction},         // who comes first, and who sets the price?
	{"reservation", reservation}, // is the money there?
}

// slotSteps is the first of the steps that run for each slot.
const slotSteps = 6

// A Question is all that is particular to one batch. What it points to is only read.
type Question struct {
	*Batch
	Site    *catalog.Site
	Catalog *catalog.Snapshot
	Page    classify.Page // what the batch's page is about
	Known   bool          // false: nobody knows what it is about
	Now     time.Time
	Random  rand.Source // of samples and request ids
}

// A Market is what the batches of all pages are decided by. Its functions are called
// concurrently and must not block. Only Stats and Reserve must be set.
type Market struct {
	// Stats are what readers did with a creative on a site.
	Stats func(site, creative string, now time.Time) quality.Stats

	// Reserve holds the price of one impression for a request id, in the budgets of a
	// campaign and its advertiser; false: one of them is short, and nothing is held.
	Reserve Reserve

	// SlotFloor is the floor that a slot has in its template, 0 for none.
	SlotFloor func(site, slot string) deckle.CPM

	// Pace sets held[i] for each of a page's campaigns that sits this batch out, so
	// that its budget lasts the day. No campaign is there twice; the order is the same
	// for the same page and catalog. Defaults to holding nobody back.
	Pace func(site *catalog.Site, campaigns []*catalog.Campaign, held []bool, random rand.Source, now time.Time)

	// Parent is the content category above one, "" for none: a category without a
	// floor of its own has that of the next one above. Defaults to none.
	Parent func(category string) string
}

// Reserve is the function of a [Market]. The leases that will pay are by id.
type Reserve func(campaign *catalog.Campaign, advertiser *catalog.Advertiser, price deckle.Money, requestID string, now time.Time) (leases []string, ok bool)

// A Decision is the answer to a [Question].
type Decision struct {
	Outcomes []Outcome // in the order of the batch's imps, one for each

	// StalePins are the creatives that are bookmarked on slots which are not in the
	// batch, and that the catalog proves to be gone. Each is there once.
	StalePins []string

	// Fresh is how long what is known of the page will be fresh; 0 where it is out of
	// date, or where nothing is known.
	Fresh time.Duration
}

// An Outcome is what becomes of one slot.
type Outcome struct {
	Imp    *Imp
	Winner *catalog.Candidate // nil: there is none
	Reason Reason             // why there is none

	Honored    bool // Winner is the reader's bookmark: free
	PinRemoved bool // the slot's bookmark is of an ad that the catalog proves to be gone

	Category  string     // of the page, for which Winner was priced
	Price     deckle.CPM // 0 where it is honored
	RequestID string     // 16 lower-case hexadecimal digits, fresh for each winner
	Leases    []string   // that will pay for it
}

// A Pipeline decides one batch after another. It keeps its memory in between, so it
// is not for concurrent use.
type Pipeline struct {
	Market
	Question

	contenders []contender // sorted by the id of the creative
	slots      []slot      // in slot order
	slot       *slot       // at which the steps of a slot are
	stale      bool        // what is known of the page is not good enough to sell it
	decision   Decision
	explained  *Explanation // nil: nobody asked why

	// Memory of single steps.
	heads     []head                    // of index
	seen      map[string]Seen           // of frequency: by campaign
	campaigns map[*catalog.Campaign]int // of pacing: place in distinct
	distinct  []*catalog.Campaign
	held      []bool
	excluded  map[string]bool // of exclusion: advertisers
	order     []ranked        // of auction: who takes part, the best first
	scored    bool
	ranking   []ranked // those of order that may have the slot
	floors    []deckle.CPM
	rivals    []rivals
}

// NewPipeline makes a pipeline.
func NewPipeline(m Market) *Pipeline {
	return &Pipeline{
		Market:    m,
		seen:      map[string]Seen{},
		campaigns: map[*catalog.Campaign]int{},
		excluded:  map[string]bool{},
	}
}

// Decide answers a question. The decision's lists are the pipeline's, until its next
// one. The batch must be valid, as [Batch.validate] says.
func (p *Pipeline) Decide(q Question) *Decision {
	p.begin(q, nil)
	p.run()
	return &p.decision
}

// begin forgets the last question.
func (p *Pipeline) begin(q Question, explained *Explanation) {
	p.Question, p.explained = q, explained
	p.contenders, p.order, p.scored = p.contenders[:0], p.order[:0], false
	p.decision = Decision{Outcomes: p.decision.Outcomes[:0], StalePins: p.decision.StalePins[:0]}
	for i := range q.Imps {
		p.decision.Outcomes = append(p.decision.Outcomes, Outcome{Imp: &q.Imps[i]})
	}
	p.line()
}

// forget drops what a browser has told, and lets go of the catalog.
func (p *Pipeline) forget() {
	p.Question, p.explained, p.slot = Question{}, nil, nil
	clear(p.contenders)
	clear(p.slots)
	clear(p.decision.Outcomes)
	clear(p.decision.StalePins)
	clear(p.heads)
	clear(p.seen)
	clear(p.excluded)
	clear(p.campaigns)
	clear(p.distinct)
}

// run takes the steps.
func (p *Pipeline) run() {
	for _, step := range steps[:slotSteps] {
		in := p.taking()
		step.run(p)
		p.explainStep(step.name, in)
	}
	for i := range p.slots {
		if p.slot = &p.slots[i]; p.slot.outcome.Winner == nil {
			for _, step := range steps[slotSteps:] {
				step.run(p)
			}
		}
		p.explainSlot()
		p.use(p.slot.outcome.Winner)
	}
	p.explainPage()
}
