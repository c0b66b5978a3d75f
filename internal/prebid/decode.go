package prebid

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"deckle/internal/auction"
)

// maxItems bounds every list of an answer: seats, bids of a seat, non-bids. An
// empty object is three bytes on the wire and a hundred times that in memory.
const maxItems = 256

// Decode reads a bid response. One bid, or one seat, of the wrong form is a
// non-bid of its own; it costs no other.
func (d *Dialect) Decode(_ *auction.Request, body []byte) (auction.Answer, error) {
	if jsontext.Value(body).Kind() != '{' {
		return auction.Answer{}, errors.New("bid response is not a JSON object")
	}
	var r bidResponse
	if err := json.Unmarshal(body, &r, lenient); err != nil {
		return auction.Answer{}, fmt.Errorf("decode bid response: %w", err)
	}
	a := auction.Answer{BidID: r.BidID, Currency: r.Cur, NBR: r.NBR}
	a.NonBids = appendMalformed(a.NonBids, "", r.SeatBid.malformed)
	a.Offers = make([]auction.Offer, 0, r.bids())
	for i := range r.SeatBid.items {
		seat := &r.SeatBid.items[i]
		a.NonBids = appendMalformed(a.NonBids, seat.Seat, seat.Bid.malformed)
		for j := range seat.Bid.items {
			a.Offers = append(a.Offers, seat.Bid.items[j].offer(seat.Seat))
		}
	}
	a.NonBids = append(a.NonBids, seatNonBids(r.Ext)...)
	return a, nil
}

func appendMalformed(to []auction.NonBid, seat string, n int) []auction.NonBid {
	for range n {
		to = append(to, auction.NonBid{Seat: seat, Reason: auction.ReasonMalformed})
	}
	return to
}

// The response, in the words of OpenRTB 2.6 section 4.2, as far as we read it.

type bidResponse struct {
	BidID   string         `json:"bidid"`
	Cur     string         `json:"cur"`
	NBR     int            `json:"nbr"`
	SeatBid list[seatBid]  `json:"seatbid"`
	Ext     jsontext.Value `json:"ext"`
}

func (r *bidResponse) bids() (n int) {
	for i := range r.SeatBid.items {
		n += len(r.SeatBid.items[i].Bid.items)
	}
	return n
}

type seatBid struct {
	Seat string    `json:"seat"`
	Bid  list[bid] `json:"bid"`
}

type bid struct {
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
	ADomain []string       `json:"adomain"`
	Cat     []string       `json:"cat"`
	NURL    string         `json:"nurl"`
	BURL    string         `json:"burl"`
	Exp     int            `json:"exp"`
}

func (b *bid) offer(seat string) auction.Offer {
	return auction.Offer{
		Seat: seat, ID: b.ID, ImpID: b.ImpID, AdID: b.AdID,
		Price: string(b.Price), W: b.W, H: b.H, MType: b.MType,
		AdM: b.AdM, CrID: b.CrID, DealID: b.DealID,
		ADomain: b.ADomain, Cat: b.Cat,
		NURL: b.NURL, BURL: b.BURL, Exp: b.Exp,
	}
}

// A list reads an array of at most maxItems, and counts the elements that are not
// of its type instead of failing on them. Null is an empty array.
type list[T any] struct {
	items     []T
	malformed int
}

func (l *list[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*l = list[T]{} // of duplicate names the last counts
	switch dec.PeekKind() {
	case 'n':
		return dec.SkipValue()
	case '[':
	default:
		return errors.New("not an array")
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for n := 0; dec.PeekKind() != ']'; n++ {
		if n == maxItems {
			return fmt.Errorf("more than %d elements", maxItems)
		}
		v, err := dec.ReadValue()
		if err != nil {
			return err
		}
		var item T
		if json.Unmarshal(v, &item, lenient) != nil {
			l.malformed++
			continue
		}
		if l.items == nil {
			l.items = make([]T, 0, 4) // a page has about that many slots
		}
		l.items = append(l.items, item)
	}
	_, err := dec.ReadToken()
	return err
}

// responseExt holds what returnallbidstatus asks for: why seats have not bid
// (OpenRTB community extension seat-non-bid).
type responseExt struct {
	Prebid struct {
		SeatNonBid list[seatNonBid] `json:"seatnonbid"`
	} `json:"prebid"`
}

type seatNonBid struct {
	Seat   string       `json:"seat"`
	NonBid list[nonBid] `json:"nonbid"`
}

type nonBid struct {
	ImpID      string `json:"impid"`
	StatusCode int    `json:"statuscode"`
}

// seatNonBids are the non-bids that ext reports. What cannot be read of it is
// nothing: the bids stand without it.
func seatNonBids(ext jsontext.Value) []auction.NonBid {
	var e responseExt
	if ext == nil || json.Unmarshal(ext, &e, lenient) != nil {
		return nil
	}
	var out []auction.NonBid
	for _, s := range e.Prebid.SeatNonBid.items {
		for _, n := range s.NonBid.items {
			out = append(out, auction.NonBid{Seat: s.Seat, ImpID: n.ImpID, Reason: reason(n.StatusCode)})
		}
	}
	return out
}

// reason is our word for a non-bid status code.
func reason(code int) auction.NonBidReason {
	switch {
	case code == 0:
		return auction.ReasonSeatNoBid
	case code == 101:
		return auction.ReasonSeatTimeout
	case code == 103:
		return auction.ReasonSeatUnreachable
	case code >= 200 && code < 300:
		return auction.ReasonSeatBlocked
	case code == 301, code == 304:
		return auction.ReasonBelowFloor
	case code == 351:
		return auction.ReasonSize
	case code == 352:
		return auction.ReasonInsecureMarkup
	case code >= 300 && code < 400:
		return auction.ReasonSeatRejected
	}
	return auction.ReasonSeatError
}
