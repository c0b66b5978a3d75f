package serve

// A Reason says what stood in the way: of a candidate, and so of a slot that is
// empty. They are ordered by how far a candidate came.
//
// An empty slot has the reason of the candidate that came furthest: "budget" says
// that with more money it would have been filled, "no_candidates" that there was
// nothing to begin with. Two reasons are not a candidate's and come before all
// others: a site in warm-up sells nothing, and so does a page of which nothing
// fresh is known.
type Reason uint8

// The reasons. NotRunning and WrongShape are only told in explanations: a slot that
// had no better candidates has NoCandidates.
const (
	Nothing      Reason = iota // it takes part, or the slot is filled
	Warmup                     // the site only learns its traffic
	NoCandidates               // nobody wants such a page, or nothing is approved here
	NotRunning                 // the campaign has not begun, or has ended
	Stale                      // what is known of the page is out of date, or nothing is
	WrongShape                 // the creative is not for a slot of that size
	Capped                     // this browser has seen the campaign often enough
	Paced                      // the budget has to last the day
	Excluded                   // its advertiser is bookmarked elsewhere on the page
	Used                       // its advertiser is on the page already
	BelowFloor                 // it bids less than the slot costs
	Budget                     // it cannot pay
)

var reasonNames = [...]string{
	Nothing: "", Warmup: "warmup", NoCandidates: "no_candidates", NotRunning: "not_running",
	Stale: "stale", WrongShape: "wrong_shape", Capped: "capped", Paced: "paced",
	Excluded: "excluded", Used: "used", BelowFloor: "below_floor", Budget: "budget",
}

// String is the reason as the wire has it; "" for Nothing.
func (r Reason) String() string { return reasonNames[r] }

// ofSlot is the reason of a slot whose candidates came no further than r.
func (r Reason) ofSlot() Reason {
	if r == Nothing || r == NotRunning || r == WrongShape {
		return NoCandidates
	}
	return r
}
