package prebid

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

// Decode reads a bid response. One bid, or one seat, of the wrong form is a
// non-bid of its own; it costs no other. What comes behind the first maxTotal is
// skipped, a non-bid for each list that was cut.
func (d *Dialect) Decode(_ *auction.Request, body []byte) (auction.Answer, error) {
	if jsontext.Value(body).Kind() != '{' {
		return auction.Answer{}, errors.New("bid response is not a JSON object")
	}
	left := maxTotal
	r := bidResponse{SeatBid: list[seatBid]{left: &left}}
	if err := json.Unmarshal(body, &r, lenient); err != nil {
		return auction.Answer{}, fmt.Errorf("decode bid response: %w", err)
	}
	a := auction.Answer{BidID: r.BidID, Currency: r.Cur, NBR: r.NBR}
	a.NonBids = appendUnread(a.NonBids, "", r.SeatBid.unread)
	a.Offers = make([]auction.Offer, 0, r.bids())
	for i := range r.SeatBid.items {
		seat := &r.SeatBid.items[i]
		a.NonBids = appendUnread(a.NonBids, seat.Seat, seat.Bid.unread)
		for j := range seat.Bid.items {
			a.Offers = append(a.Offers, seat.Bid.items[j].offer(seat.Seat))
		}
	}
	a.NonBids = append(a.NonBids, seatNonBids(r.Ext)...)
	return a, nil
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

func (s *seatBid) share(left *int) { s.Bid.left = left }

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
	ADomain texts          `json:"adomain"`
	Cat     texts          `json:"cat"`
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
	items []T
	unread

	// left is how many elements may still be read in the whole answer. All of its
	// lists share it; also what is replaced by a duplicate name has been read.
	left *int
}

// unread is what a list has seen and does not hold.
type unread struct {
	malformed int
	cut       bool // nothing was left for some of its elements
}

// A sharer is an element with a list of its own.
type sharer interface{ share(left *int) }

func (l *list[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*l = list[T]{left: l.left} // of duplicate names the last counts
	return eachElement(dec, maxItems, func() error {
		if *l.left == 0 {
			l.cut = true
			return dec.SkipValue()
		}
		*l.left--
		v, err := dec.ReadValue()
		if err != nil {
			return err
		}
		var item T
		if s, ok := any(&item).(sharer); ok {
			s.share(l.left)
		}
		if json.Unmarshal(v, &item, lenient) != nil {
			l.malformed++
			return nil
		}
		if l.items == nil {
			l.items = make([]T, 0, 4) // a page has about that many slots
		}
		l.items = append(l.items, item)
		return nil
	})
}

// texts reads an array of at most maxTexts strings. Null is an empty array.
type texts []string

func (t *texts) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*t = (*t)[:0] // of duplicate names the last counts
	return eachElement(dec, maxTexts, func() error {
		var s string
		if err := json.UnmarshalDecode(dec, &s); err != nil {
			return err
		}
		*t = append(*t, s)
		return nil
	})
}

// eachElement reads an array whose elements read reads, at most so many.
func eachElement(dec *jsontext.Decoder, most int, read func() error) error {
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
		if n == most {
			return fmt.Errorf("more than %d elements", most)
		}
		if err := read(); err != nil {
			return err
		}
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

func (s *seatNonBid) share(left *int) { s.NonBid.left = left }

type nonBid struct {
	ImpID      string `json:"impid"`
	StatusCode int    `json:"statuscode"`
}

// seatNonBids are the non-bids that ext reports. What cannot be read of it is
// nothing: the bids stand without it.
func seatNonBids(ext jsontext.Value) []auction.NonBid {
	var e responseExt
	left := maxTotal
	e.Prebid.SeatNonBid.left = &left
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
