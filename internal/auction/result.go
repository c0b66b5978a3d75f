package auction

import (
	"sync/atomic"
	"time"

	"deckle"
)

// A Bid is an offer that has been judged and may be shown.
type Bid struct {
	Provider string
	Seat     string
	ID       string
	Slot     deckle.SlotID
	Price    deckle.CPM // in the request's currency, adjusted; what floors and buckets see
	Paid     string     // the bidder's own price text, for ${AUCTION_PRICE}
	PaidCur  string     // the bidder's own currency, for ${AUCTION_CURRENCY}
	Size     deckle.Size
	AdM      string // macros filled in
	CrID     string
	DealID   string
	ADomain  []string
	NURL     string        // macros filled in; an absolute http(s) URL, or empty: none
	BURL     string        // likewise
	Expires  time.Duration // how long after the auction it may be used; ≤ deckle.MaxBidAge
}

// A Winner is the bid that a slot shows.
type Winner struct {
	Bid
	AdID     string // hb_adid: 22 random base64url characters, made by us
	Bucket   string // hb_pb
	EdgeNURL bool   // NURL is the [Notifier]'s to fire; otherwise the client's, with BURL
	Unlisted bool   // Slot is in no template: see [SlotLabel]
}

// Targeting is what the winner sets on its slot in the ad server, for those of
// keys that it has a value for. A key that Deckle does not know is left out, and
// so are hb_deal without a deal and the hb_cache keys of markup that is in no
// cache.
func (w *Winner) Targeting(keys []string) map[string]string {
	t := make(map[string]string, len(keys))
	for _, k := range keys {
		if v := w.targeting(k); v != "" {
			t[k] = v
		}
	}
	return t
}

// targeting is the value of one key, in Prebid's meaning of it.
func (w *Winner) targeting(key string) string {
	switch key {
	case "hb_pb":
		return w.Bucket
	case "hb_bidder":
		return w.Seat
	case "hb_adid":
		return w.AdID
	case "hb_size":
		return w.Size.String()
	case "hb_deal":
		return w.DealID
	case "hb_format":
		return "banner"
	case "hb_source":
		return "s2s" // Prebid knows client and s2s; every bid of ours came from a server
	}
	return ""
}

// A Result is how an auction ended. It is complete and never changes.
type Result struct {
	Winners   []Winner         // at most one a slot, in the order of the request's slots
	Providers []ProviderResult // those that were asked, in the configured order
	Elapsed   time.Duration
	Deadline  bool // A_deadline ended it before every provider had answered
	Canceled  bool // its context was canceled: there are no winners and no providers

	losses   []loss      // of bidders that want to know
	notified atomic.Bool // taken by [Notifier.Selected]
}

// A ProviderResult is what became of one provider's call.
type ProviderResult struct {
	Name    string
	Status  Status
	Elapsed time.Duration
	Bids    int // offers that could have won
	NonBids map[NonBidReason]int
	NBR     int // OpenRTB no-bid reason; 0 = absent or unknown
}

// Status is a provider's outcome, as the metrics label it.
type Status string

const (
	StatusBid        Status = "bid"
	StatusNoBid      Status = "nobid"
	StatusTimeout    Status = "timeout"
	StatusTransport  Status = "transport"   // no connection, reset, TLS
	StatusHTTPStatus Status = "http_status" // another status than 200 and 204
	StatusParse      Status = "parse"       // not a bid response, too large, too deep, an unknown coding
	StatusLaunch     Status = "launch"      // it was not asked: no request could be built, no time was left, or its circuit is open
)

// A NonBid is an offer, a seat's silence, or a slot that was not asked for, and why
// it can win nothing.
type NonBid struct {
	Seat   string
	ImpID  string
	Reason NonBidReason
}

// NonBidReason says why a [NonBid] can win nothing. The set is closed: it is a
// metric's label. The numbers are OpenRTB's loss reason codes.
type NonBidReason string

// What is wrong with an offer. See judge for the rules.
const (
	ReasonMalformed       NonBidReason = "malformed"        // 3: not a bid object, or a field beyond its bounds
	ReasonUnknownImp      NonBidReason = "unknown_imp"      // 3: impid is none of ours
	ReasonMissingID       NonBidReason = "missing_id"       // 3
	ReasonDuplicateID     NonBidReason = "duplicate_id"     // 3: a better bid of that seat has the same id
	ReasonInvalidPrice    NonBidReason = "invalid_price"    // 9: absent, not a number, not above zero, not finite
	ReasonCurrency        NonBidReason = "currency"         // 3: no rate from it to the request's
	ReasonBelowFloor      NonBidReason = "below_floor"      // 100
	ReasonSize            NonBidReason = "size"             // 203
	ReasonMediaType       NonBidReason = "media_type"       // 204: mtype is not banner
	ReasonNoMarkup        NonBidReason = "no_markup"        // 7
	ReasonMarkupTooLarge  NonBidReason = "markup_too_large" // 200
	ReasonInsecureMarkup  NonBidReason = "insecure_markup"  // 207
	ReasonBlockedADomain  NonBidReason = "blocked_adomain"  // 205
	ReasonBlockedCategory NonBidReason = "blocked_category" // 209
	ReasonScriptCreative  NonBidReason = "script_creative"  // 211: it would run as a script, which is switched off
	ReasonTooMany         NonBidReason = "too_many"         // 3: beyond [MaxOffers] of one answer
)

// ReasonImpRefused is a slot's: the provider refuses every request that holds it
// and has been asked without it.
const ReasonImpRefused NonBidReason = "imp_refused"

// What a provider reports of a seat that has not bid, or whose bid it has
// rejected itself. The numbers are OpenRTB's non-bid status codes.
const (
	ReasonSeatNoBid       NonBidReason = "seat_no_bid"      // 0
	ReasonSeatError       NonBidReason = "seat_error"       // 1xx
	ReasonSeatTimeout     NonBidReason = "seat_timeout"     // 101
	ReasonSeatUnreachable NonBidReason = "seat_unreachable" // 103
	ReasonSeatBlocked     NonBidReason = "seat_blocked"     // 2xx: it was not asked
	ReasonSeatRejected    NonBidReason = "seat_rejected"    // 3xx
)
