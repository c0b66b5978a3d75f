// Package auction runs one header-bidding auction: it asks every provider at
// once, stops at the deadline whatever they do, trusts nothing they answer, and
// picks one winner a slot, the same for every order of arrival.
//
// A [House] is shared by all pages. [House.Start] gives each page an [Auction]
// of its own, whose context carries the deadline and the right to cancel: when
// that context ends, every socket of the auction is abandoned and [Auction.Done]
// is closed at once. A provider's goroutine may outlive that moment only until it
// notices; [House.Close] waits for all of them.
//
// What a provider sends passes three steps: its dialect decodes it into offers,
// judge turns each offer into a bid or into a counted [NonBidReason], and pick
// chooses the winners from the bids of all providers. The first two are the work
// that strangers can make us do; both are bounded and belong to the provider's own
// goroutine, so that nobody waits for them beyond the deadline.
package auction

import (
	"net/http"
	"net/netip"
	"slices"
	"time"

	"deckle"
	"deckle/internal/consent"
)

// A Request is what one page asks of every provider. It must not be changed once
// the auction has started, not even after the auction has ended: a late provider
// may still be reading it.
type Request struct {
	ID       string                 // BidRequest.id
	Slots    []deckle.Slot          // the page's GPT slots, in file order
	Unlisted map[deckle.SlotID]bool // those of them that no template has: their ids are a stranger's words
	Section  string                 // [deckle.Section] of the page, for imp.tagid and gpid
	Site     Site
	Device   Device
	Consent  consent.Decision
	Currency string // ISO 4217; floors are in it, and winners are returned in it

	Buckets     deckle.PriceBuckets
	PreferDeals bool

	// Test asks for bids that nobody pays for (BidRequest.test).
	Test bool
}

// slot is the position of the slot with that id, or -1.
func (r *Request) slot(id string) int {
	for i := range r.Slots {
		if string(r.Slots[i].ID) == id {
			return i
		}
	}
	return -1
}

// without is the request without the slots at those places.
func (r *Request) without(places []int) *Request {
	rest := *r
	rest.Slots = nil
	for i := range r.Slots {
		if !slices.Contains(places, i) {
			rest.Slots = append(rest.Slots, r.Slots[i])
		}
	}
	return &rest
}

// Site is OpenRTB's Site object, as far as we send it.
type Site struct {
	ID     string // our [[site]] id
	Domain string // the public host
	Page   string // the page's URL without query and fragment
	Ref    string // the referrer without query and fragment; may be empty
	SChain []SChainNode
	BAdv   []string // blocked advertiser domains, lower case
	BCat   []string // blocked IAB content categories
}

// SChainNode is a node of source.schain that this publisher adds.
type SChainNode struct {
	ASI, SID string
}

// Device is OpenRTB's Device object, as far as consent lets us send it.
type Device struct {
	UA       string
	Hints    *ClientHints // nil: none were sent
	IP       netip.Addr   // zero: not sent
	Country  string       // ISO 3166-1 alpha-3; empty: not known, or not to be told
	Language string       // ISO 639-1
}

// A Provider is an endpoint that answers for seats, in one dialect.
type Provider struct {
	Name    string // prebid, aps: the label in metrics
	Dialect Dialect
	Timeout time.Duration // at most this long, counted from the auction's start; 0 means 1 s

	FireNURL bool // the edge fires nurl; otherwise the client gets it with burl
	FireLURL bool // the edge fires lurl for offers that have not won; otherwise nobody does
}

// A Dialect turns a request into a provider's HTTP call, and its answer into
// offers. Its methods are pure and may be called concurrently.
type Dialect interface {
	// Encode builds the call for those slots of the request that this provider is
	// asked for. With none it returns a nil Call and no error.
	Encode(r *Request, tmax time.Duration) (*Call, error)

	// Decode reads the body of an answer with status 200: at most 2 MiB, nested at
	// most 32 deep. It keeps nothing of body, which is reused, and makes no more than
	// MaxOffers offers of it. An error means that nothing of the answer could be
	// used; one offer that cannot be read is a NonBid of the answer.
	Decode(r *Request, body []byte) (Answer, error)

	// Blame reads the text of an answer with status 400, at most its first 2 KiB, and
	// gives the places in r.Slots of those slots without which the request would not
	// have been refused. With none there is no use in asking again.
	Blame(r *Request, text string) []int
}

// A Call is one HTTP POST to a provider.
type Call struct {
	URL    string
	Header http.Header // may be nil; Accept-Encoding is ours
	Body   []byte
}

// An Answer is what a provider said, not yet judged.
type Answer struct {
	BidID    string // BidResponse.bidid
	Currency string // of every offer; empty means USD (OpenRTB BidResponse.cur)
	NBR      int    // OpenRTB no-bid reason; 0 = absent or unknown
	Offers   []Offer
	NonBids  []NonBid // what could not be read, and what the provider itself reports

	// Took is how long the provider says that it has needed itself; 0: it says
	// nothing. What our call took beyond that was the network's.
	Took time.Duration
}

// An Offer is one OpenRTB bid as a stranger sent it. Nothing of it has been checked.
type Offer struct {
	Seat    string
	ID      string
	ImpID   string
	AdID    string // OpenRTB bid.adid, for ${AUCTION_AD_ID}; not hb_adid
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
