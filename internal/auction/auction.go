// Package auction runs one header-bidding auction: it asks every provider at
// once, stops at the deadline whatever they do, trusts nothing they answer, and
// picks one winner a slot, the same for every order of arrival.
package auction

import (
	"net/http"
	"net/netip"
	"time"

	"deckle"
	"deckle/internal/consent"
)

// A Request is what one page asks of every provider. It is not changed once the
// auction has started.
type Request struct {
	ID       string        // BidRequest.id
	Slots    []deckle.Slot // the page's GPT slots, in file order
	Section  string        // [deckle.Section] of the page, for imp.tagid and gpid
	Site     Site
	Device   Device
	Consent  consent.Decision
	Currency string // ISO 4217; floors are in it, and winners are returned in it

	Buckets     deckle.PriceBuckets
	PreferDeals bool
}

// Site is OpenRTB's Site object, as far as we send it.
type Site struct {
	ID     string // our [[site]] id
	Domain string // the public host
	Page   string // the page's URL without query and fragment
	Ref    string // the referrer without query and fragment; may be empty
	SChain []SChainNode
	BAdv   []string // blocked advertiser domains
	BCat   []string // blocked IAB content categories
}

// SChainNode is a node of source.schain that this publisher adds.
type SChainNode struct {
	ASI, SID string
}

// Device is OpenRTB's Device object, as far as consent lets us send it.
type Device struct {
	UA       string
	IP       netip.Addr // zero: not sent
	Language string     // ISO 639-1
}

// A Provider is an endpoint that answers for seats, in one dialect.
type Provider struct {
	Name    string // prebid, aps: the label in metrics, and hb_source
	Dialect Dialect
	Timeout time.Duration // at most this long, counted from the auction's start

	FireNURL bool // the edge fires nurl; otherwise the client gets it with burl
}

// A Dialect turns a request into a provider's HTTP call, and its answer into
// offers. Both are pure and may be called concurrently.
type Dialect interface {
	// Encode builds the call for those slots of the request that this provider is
	// asked for. With none it returns a nil Call and no error.
	Encode(r *Request, tmax time.Duration) (*Call, error)

	// Decode reads the body of an answer with status 200. It keeps nothing of body.
	// An error means that nothing of the answer could be used.
	Decode(r *Request, body []byte) (Answer, error)
}

// A Call is one HTTP POST to a provider.
type Call struct {
	URL    string
	Header http.Header
	Body   []byte
}

// An Answer is what a provider said, not yet judged.
type Answer struct {
	Currency string // of every offer; empty means USD (OpenRTB BidResponse.cur)
	Offers   []Offer
	NonBids  []NonBid // what the provider itself reports as not bid
}

// An Offer is one OpenRTB bid as a stranger sent it. Nothing of it has been checked.
type Offer struct {
	Seat    string
	ID      string
	ImpID   string
	Price   string // the JSON number's text
	W, H    int
	MType   int // OpenRTB bid.mtype; 0 = absent
	AdM     string
	CrID    string
	DealID  string
	ADomain []string
	Cat     []string
	NURL    string
	BURL    string
	LURL    string
	Exp     int // seconds; 0 = absent
}

// A NonBid is an offer, or a seat's silence, that can win nothing, and why.
type NonBid struct {
	Seat   string
	ImpID  string
	Reason NonBidReason
}

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
	NURL     string // macros filled in; empty: none
	BURL     string // macros filled in; empty: none
	Expires  time.Duration // how long after the auction it may be used; ≤ deckle.MaxBidAge
}

// A Winner is the bid that a slot shows.
type Winner struct {
	Bid
	AdID   string // hb_adid: 22 random base64url characters, made by us
	Bucket string // hb_pb
}

// A Result is how an auction ended. It is complete and never changes.
type Result struct {
	Winners   []Winner // at most one a slot, in the order of the request's slots
	Providers []ProviderResult
	Elapsed   time.Duration
	Deadline  bool // A_deadline ended it
}

// A ProviderResult is what became of one provider's call.
type ProviderResult struct {
	Name    string
	Status  Status
	Elapsed time.Duration
	Bids    int
	NonBids map[NonBidReason]int
}

// Status is a provider's outcome, as the metrics label it.
type Status string

const (
	StatusBid        Status = "bid"
	StatusNoBid      Status = "nobid"
	StatusTimeout    Status = "timeout"
	StatusTransport  Status = "transport"   // no connection, reset, TLS
	StatusHTTPStatus Status = "http_status" // another status than 200 and 204
	StatusParse      Status = "parse"       // not an OpenRTB bid response, or too large
	StatusLaunch     Status = "launch"      // the request could not be built
)

// NonBidReason says why an offer can win nothing. The set is closed: it is a
// metric's label.
type NonBidReason string
