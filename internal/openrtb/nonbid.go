package openrtb

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"deckle/internal/auction"
)

type seatNonBid struct {
	Seat   string       `json:"seat"`
	NonBid list[nonBid] `json:"nonbid"`
}

func (s *seatNonBid) share(left *int) { s.NonBid.left = left }

type nonBid struct {
	ImpID      string `json:"impid"`
	StatusCode int    `json:"statuscode"`
}

// SeatNonBids reads a list of why seats have not bid (OpenRTB's community extension
// seat-non-bid). What cannot be read of it is nothing: the bids stand without it.
func SeatNonBids(v jsontext.Value) []auction.NonBid {
	left := maxTotal
	seats := list[seatNonBid]{left: &left}
	if v == nil || json.Unmarshal(v, &seats, lenient) != nil {
		return nil
	}
	var out []auction.NonBid
	for _, s := range seats.items {
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
