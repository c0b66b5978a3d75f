// Package deckle is the vocabulary that every other package speaks: money,
// prices, sizes and slots, in the words of OpenRTB, Prebid and Google Publisher
// Tag. It depends on the standard library alone and does nothing by itself.
package deckle

import (
	"fmt"
	"strings"
	"time"
)

// A SlotID names an ad slot within one site: [A-Za-z0-9_-]{1,64}, unique in its
// template file. On the wire it is the id of an OpenRTB imp.
type SlotID string

// A Size is a creative size in CSS pixels, as OpenRTB's Format object has it.
type Size struct {
	W, H int
}

// String gives the size as hb_size writes it: "300x250".
func (s Size) String() string { return fmt.Sprintf("%dx%d", s.W, s.H) }

// A Kind says which plane fills a slot.
type Kind string

const (
	GPT      Kind = "gpt"      // header bidding and an ad server: the page plane
	Magazine Kind = "magazine" // the publisher's own magazine ads: the reader plane
)

// An AdServer says who renders a GPT slot.
type AdServer string

const (
	GAM        AdServer = "gam"  // Google Ad Manager through Google Publisher Tag
	NoAdServer AdServer = "none" // Deckle itself, from the winning bid's markup
)

// A Slot is one ad slot as a template declares it (creative-opportunities.toml).
// It is immutable once its template has been loaded and may be shared.
type Slot struct {
	ID          SlotID
	Kind        Kind
	GAMUnitPath string // may hold {section}; see [Slot.UnitPath]
	DivID       string // id of the element on the page
	Formats     []Size // at least one
	Floor       CPM    // the publisher's hard floor in the site's currency; 0 = none
	AdServer    AdServer

	// Targeting is what the template sets on the slot in the ad server, in the
	// order of the keys. Every value is sent as a list.
	Targeting []KeyValues

	Prebid PrebidParams
	APSID  string // [slot.providers.aps] slot_id, sent as imp.tagid; empty: APS is not asked
}

// KeyValues is one ad-server targeting key with its values.
type KeyValues struct {
	Key    string
	Values []string
}

// PrebidParams says how Prebid Server learns about a slot: by the id of a stored
// request, or by the parameters of each bidder. Exactly one of the two is set on
// a slot of kind GPT.
type PrebidParams struct {
	StoredRequest string
	Bidders       []BidderParams
}

// BidderParams are the parameters of one Prebid bidder, as a JSON object that is
// never empty.
type BidderParams struct {
	Bidder string
	Params []byte
}

// UnitPath is the slot's GAM ad unit path on a page whose first path segment is
// section; pass [Section] of the page's path.
func (s *Slot) UnitPath(section string) string {
	return strings.ReplaceAll(s.GAMUnitPath, "{section}", section)
}

// Section is what {section} stands for in an ad unit path: the first segment of
// a percent-decoded path, or "home" at the root. GAM forbids some characters in
// an ad unit code; each of those becomes "_".
func Section(path string) string {
	first, _, _ := strings.Cut(strings.TrimLeft(path, "/"), "/")
	if first == "" {
		return "home"
	}
	return strings.Map(unitRune, first)
}

// unitRune keeps what Google Ad Manager allows in an ad unit code: letters,
// digits, underscores, hyphens, periods, asterisks, forward slashes,
// backslashes, exclamations, left angle brackets, colons and parentheses. The
// separators among those ("/", "\") and "<" are not taken from a URL.
func unitRune(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("_-.*!:()", r):
		return r
	}
	return '_'
}

// MaxBidAge is how long a bid may be used after its auction. OpenRTB's bid.exp
// may shorten it.
const MaxBidAge = 5 * time.Minute
