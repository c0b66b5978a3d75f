// Package template answers which ad slots the page at a URL has, from the URL
// alone, in a time that does not grow with the number of slots.
package template

import (
	"time"

	"deckle"
)

// A Template is one site's creative-opportunities.toml, validated and compiled.
// It is immutable; a reload makes another one.
type Template struct {
	Settings

	// Slots are all slots, in file order; [Template.Match] gives indices into it.
	Slots []deckle.Slot

	set *Set
}

// Settings are what a template file says for its whole site.
type Settings struct {
	Enabled        bool          // the kill switch of the file
	SPA            bool          // the client goes into every HTML page of the site
	AuctionTimeout time.Duration // from the request's arrival to A_deadline
	HeadHold       time.Duration // how long the end of head may wait for bids; 0 = never; ≤ AuctionTimeout
	Buckets        deckle.PriceBuckets
	TargetingKeys  []string // of hb_pb hb_bidder hb_adid hb_size hb_deal hb_format hb_source hb_cache_*
	PreferDeals    bool
}

// Patterns are the URL patterns of one slot.
type Patterns struct {
	Include []string // page_patterns
	Exclude []string // wins over Include
}
