package prebid_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"deckle/internal/auction"
	"deckle/internal/auction/auctiontest"
	"deckle/internal/prebid"
)

// A seat's bids as Prebid Server puts them.
type wireSeat struct {
	Seat string    `json:"seat"`
	Bid  []wireBid `json:"bid"`
}

type wireBid struct {
	ID      string          `json:"id"`
	ImpID   string          `json:"impid"`
	AdID    string          `json:"adid,omitempty"`
	Price   json.RawMessage `json:"price"`
	W       int             `json:"w"`
	H       int             `json:"h"`
	MType   int             `json:"mtype,omitempty"`
	AdM     string          `json:"adm,omitempty"`
	CrID    string          `json:"crid,omitempty"`
	DealID  string          `json:"dealid,omitempty"`
	ADomain []string        `json:"adomain,omitempty"`
	Cat     []string        `json:"cat,omitempty"`
	Exp     int             `json:"exp,omitempty"`
	Ext     json.RawMessage `json:"ext"`
}

func TestSuite(t *testing.T) {
	answer := func(currency string, offers ...auction.Offer) string {
		var response struct {
			ID      string          `json:"id"`
			SeatBid []wireSeat      `json:"seatbid"`
			Cur     string          `json:"cur,omitempty"`
			Ext     json.RawMessage `json:"ext"`
		}
		response.ID, response.Cur, response.Ext = "req-1", currency, json.RawMessage(`{"responsetimemillis":{"odd":12}}`)
		for _, o := range offers {
			response.SeatBid = append(response.SeatBid, wireSeat{o.Seat, []wireBid{{
				ID: o.ID, ImpID: o.ImpID, AdID: o.AdID, Price: json.RawMessage(o.Price), W: o.W, H: o.H, MType: o.MType, AdM: o.AdM,
				CrID: o.CrID, DealID: o.DealID, ADomain: o.ADomain, Cat: o.Cat, Exp: o.Exp, Ext: json.RawMessage(`{"origbidcpm":1,"prebid":{"type":"banner"}}`),
			}}})
		}
		b, err := json.Marshal(response)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	var seeds [][]byte
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		c := readCapture(t, strings.TrimSuffix(filepath.Base(name), ".json"))
		_, body := c.body(t)
		seeds = append(seeds, body)
	}
	auctiontest.Dialect{
		New: func(url string) auction.Dialect {
			return prebid.New(prebid.Config{ServerURL: url, AccountID: "acct-1"})
		},
		Answer: answer,
		Seeds:  seeds,
	}.Run(t)
}
