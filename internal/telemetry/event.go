// Package telemetry tells what became of every auction: one event each, written
// behind the pages' backs into the store's auctions log and, if wanted, into a file.
//
// It never makes anybody wait. Each sink has a bounded queue; what does not fit is
// dropped and counted. An event says what an auction asked for and got. It holds no
// address, no user agent, no identifier and no query string, and the recorder has
// no way to learn one.
//
// An event is one line of JSON. A message of the auctions log holds the lines of up
// to 256 events: each message is one fsync.
package telemetry

import (
	"time"

	"deckle"
	"deckle/internal/auction"
)

// An Event is one auction, or one page view on which none was held. Its JSON is the
// record that both sinks get, one line each.
type Event struct {
	At      time.Time       `json:"at"`      // when its request came
	Site    string          `json:"site"`    // [[site]] id
	From    Source          `json:"from"`    // who asked
	Outcome string          `json:"outcome"` // run, or the gate's reason for a skip
	Slots   []deckle.SlotID `json:"slots"`   // those that bids were, or would have been, asked for; other: in no template

	Providers []Provider `json:"providers,omitempty"`
	Winners   []Winner   `json:"winners,omitempty"`
	AuctionMS int64      `json:"auction_ms,omitzero"`
	Deadline  bool       `json:"deadline,omitzero"` // A_deadline ended the auction
	Canceled  bool       `json:"canceled,omitzero"` // nothing could go into the page, or its reader had gone

	Where   string `json:"where,omitzero"`   // the bids went into the page: head, body, end; none: they did not
	HoldMS  int64  `json:"hold_ms,omitzero"` // how long bytes of the page waited for them
	Notices int    `json:"notices,omitzero"` // win notices that the edge has to fire

	Sample int `json:"sample,omitzero"` // it stands for so many of its kind; 0: for itself
}

// A Source says how an auction was asked for.
type Source string

const (
	Page     Source = "page"      // by a navigation
	PageBids Source = "page_bids" // GET /__ts/page-bids
	Endpoint Source = "auction"   // POST /auction
)

// A Provider is what became of one provider's call.
type Provider struct {
	Name    string                       `json:"name"`
	Status  auction.Status               `json:"status"`
	MS      int64                        `json:"ms"`
	Bids    int                          `json:"bids,omitzero"`
	NonBids map[auction.NonBidReason]int `json:"nonbids,omitempty"`
	NBR     int                          `json:"nbr,omitzero"`
}

// A Winner is the bid that a slot got.
type Winner struct {
	Slot   deckle.SlotID `json:"slot"`
	Bidder string        `json:"bidder"`
	Bucket string        `json:"bucket"`
}

// OutcomeRun is the outcome of a page view with an auction.
const OutcomeRun = "run"

// Held puts an auction's result into the event. selected says whether its winners
// have gone to the reader, so that notices are due.
func (e *Event) Held(r *auction.Result, selected bool) {
	e.AuctionMS, e.Deadline, e.Canceled = r.Elapsed.Milliseconds(), r.Deadline, r.Canceled
	for _, p := range r.Providers {
		e.Providers = append(e.Providers, Provider{
			Name: p.Name, Status: p.Status, MS: p.Elapsed.Milliseconds(), Bids: p.Bids, NonBids: p.NonBids, NBR: p.NBR,
		})
	}
	for i := range r.Winners {
		w := &r.Winners[i]
		e.Winners = append(e.Winners, Winner{auction.SlotLabel(w.Slot, w.Unlisted), auction.BidderLabel(w.Seat), w.Bucket})
		if selected && w.EdgeNURL && w.NURL != "" {
			e.Notices++
		}
	}
}
