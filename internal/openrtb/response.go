package openrtb

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"deckle/internal/auction"
)

// What is read of an answer at most. An empty object is three bytes on the wire
// and a hundred times that in memory.
const (
	maxItems = 256               // of one list: seats, bids of a seat, non-bids of a seat
	maxTotal = auction.MaxOffers // seats and bids together; likewise seats and non-bids
	maxTexts = 32                // of one bid: advertiser domains, categories
)

// Lenient is how strangers' JSON is read: what RFC 8259 leaves open is allowed. Of
// duplicate names the last counts, invalid UTF-8 becomes U+FFFD.
func Lenient() json.Options { return lenient }

var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// Unread stands for a bid.ext of which nothing is read, whatever it is.
type Unread struct{}

func (*Unread) UnmarshalJSONFrom(dec *jsontext.Decoder) error { return dec.SkipValue() }

// Decode reads a bid response (OpenRTB 2.6 section 4.2) whose bids have extensions
// of type E, and returns the response's own extension beside the answer. finish
// completes an offer by its bid's extension, or says why it is a non-bid; nil does
// neither.
//
// One bid, or one seat, of the wrong form is a non-bid of its own; it costs no
// other. What comes behind the first maxTotal is skipped, a non-bid for each list
// that was cut. Nothing of body is kept.
func Decode[E any](body []byte, finish func(*auction.Offer, *E) auction.NonBidReason) (auction.Answer, jsontext.Value, error) {
	if jsontext.Value(body).Kind() != '{' {
		return auction.Answer{}, nil, errors.New("bid response is not a JSON object")
	}
	left := maxTotal
	r := bidResponse[E]{SeatBid: list[seatBid[E]]{left: &left}}
	if err := json.Unmarshal(body, &r, lenient); err != nil {
		return auction.Answer{}, nil, fmt.Errorf("decode bid response: %w", err)
	}
	a := auction.Answer{BidID: r.BidID, Currency: r.Cur, NBR: r.NBR}
	a.NonBids = appendUnread(a.NonBids, "", r.SeatBid.unread)
	a.Offers = make([]auction.Offer, 0, r.bids())
	for i := range r.SeatBid.items {
		seat := &r.SeatBid.items[i]
		a.NonBids = appendUnread(a.NonBids, seat.Seat, seat.Bid.unread)
		for j := range seat.Bid.items {
			b := &seat.Bid.items[j]
			o := b.offer(seat.Seat)
			if finish != nil {
				if reason := finish(&o, &b.Ext); reason != "" {
					a.NonBids = append(a.NonBids, auction.NonBid{Seat: seat.Seat, ImpID: b.ImpID, Reason: reason})
					continue
				}
			}
			a.Offers = append(a.Offers, o)
		}
	}
	return a, r.Ext, nil
}

func appendUnread(to []auction.NonBid, seat string, u unread) []auction.NonBid {
	for range u.malformed {
		to = append(to, auction.NonBid{Seat: seat, Reason: auction.ReasonMalformed})
	}
	if u.cut {
		to = append(to, auction.NonBid{Seat: seat, Reason: auction.ReasonTooMany})
	}
	return to
}

// The response, in the words of OpenRTB, as far as we read it.

type bidResponse[E any] struct {
	BidID   string           `json:"bidid"`
	Cur     string           `json:"cur"`
	NBR     int              `json:"nbr"`
	SeatBid list[seatBid[E]] `json:"seatbid"`
	Ext     jsontext.Value   `json:"ext"`
}

func (r *bidResponse[E]) bids() (n int) {
	for i := range r.SeatBid.items {
		n += len(r.SeatBid.items[i].Bid.items)
	}
	return n
}

type seatBid[E any] struct {
	Seat string       `json:"seat"`
	Bid  list[bid[E]] `json:"bid"`
}

func (s *seatBid[E]) share(left *int) { s.Bid.left = left }

type bid[E any] struct {
	ID      string         `json:"id"`
	ImpID   string         `json:"impid"`
	AdID    string         `json:"adid"`
	Price   jsontext.Value `json:"price"` // its text: a float has lost what it was
	W       int            `json:"w"`
	H       int            `json:"h"`
	MType   int            `json:"mtype"`
	AdM     string         `json:"adm"`
	CrID    string         `json:"crid"`
	DealID  string         `json:"dealid"`
	ADomain texts          `json:"adomain"`
	Cat     texts          `json:"cat"`
	NURL    string         `json:"nurl"`
	BURL    string         `json:"burl"`
	LURL    string         `json:"lurl"`
	Exp     int            `json:"exp"`
	Ext     E              `json:"ext"`
}

func (b *bid[E]) offer(seat string) auction.Offer {
	return auction.Offer{
		Seat: seat, ID: b.ID, ImpID: b.ImpID, AdID: b.AdID,
		Price: string(b.Price), W: b.W, H: b.H, MType: b.MType,
		AdM: b.AdM, CrID: b.CrID, DealID: b.DealID,
		ADomain: b.ADomain, Cat: b.Cat,
		NURL: b.NURL, BURL: b.BURL, LURL: b.LURL, Exp: b.Exp,
	}
}
