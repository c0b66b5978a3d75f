package prebid

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"deckle/internal/auction"
	"deckle/internal/openrtb"
)

// Decode reads a bid response, and what the server says in its extension of seats
// that have not bid and of the time that it took itself.
func (d *Dialect) Decode(_ *auction.Request, body []byte) (auction.Answer, error) {
	a, ext, err := openrtb.Decode[openrtb.Unread](body, nil)
	if err != nil {
		return auction.Answer{}, err
	}
	// What cannot be read of the extension is nothing: the bids stand without it.
	var e responseExt
	if ext != nil && json.Unmarshal(ext, &e, openrtb.Lenient()) == nil {
		a.NonBids = append(a.NonBids, openrtb.SeatNonBids(e.Prebid.SeatNonBid)...)
		a.Took = time.Duration(e.ResponseTimeMillis) * time.Millisecond
	}
	return a, nil
}

// responseExt is what returnallbidstatus asks for, and how long each bidder took.
type responseExt struct {
	ResponseTimeMillis longest `json:"responsetimemillis"`
	Prebid             struct {
		SeatNonBid jsontext.Value `json:"seatnonbid"`
	} `json:"prebid"`
}

// longest reads an object of milliseconds and keeps the largest: the server waits
// for its slowest bidder. What is no duration of an auction is 0.
type longest int64

func (l *longest) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*l = 0
	if dec.PeekKind() != '{' {
		return dec.SkipValue()
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != '}' {
		if err := dec.SkipValue(); err != nil { // the bidder's name
			return err
		}
		if dec.PeekKind() != '0' {
			if err := dec.SkipValue(); err != nil {
				return err
			}
			continue
		}
		number, err := dec.ReadToken()
		if err != nil {
			return err
		}
		if ms, err := number.Float(); err == nil && ms > float64(*l) && ms <= maxTook {
			*l = longest(ms)
		}
	}
	_, err := dec.ReadToken()
	return err
}

const maxTook = 60_000 // ms
