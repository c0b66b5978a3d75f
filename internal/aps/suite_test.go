package aps_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"deckle/internal/aps"
	"deckle/internal/auction"
	"deckle/internal/auction/auctiontest"
)

// answer is what a provider of OpenRTB says that offers so much.
func answer(t testing.TB, currency string, offers ...auction.Offer) string {
	t.Helper()
	type object = map[string]any
	var seats []object
	for _, o := range offers {
		bid := object{"id": o.ID, "impid": o.ImpID, "price": json.RawMessage(o.Price), "w": o.W, "h": o.H, "crid": o.CrID}
		for key, value := range map[string]any{
			"adid": o.AdID, "adm": o.AdM, "dealid": o.DealID, "mtype": o.MType, "exp": o.Exp, "nurl": o.NURL, "burl": o.BURL, "lurl": o.LURL,
		} {
			if value != "" && value != 0 {
				bid[key] = value
			}
		}
		if o.ADomain != nil {
			bid["adomain"] = o.ADomain
		}
		if o.Cat != nil {
			bid["cat"] = o.Cat
		}
		seats = append(seats, object{"seat": o.Seat, "bid": []object{bid}})
	}
	response := object{"id": "req-1", "seatbid": seats}
	if currency != "" {
		response["cur"] = currency
	}
	b, err := json.Marshal(response)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestSuite(t *testing.T) {
	var seeds [][]byte
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no answers to start from", err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, b)
	}
	auctiontest.Dialect{
		New: func(url string) auction.Dialect {
			return aps.New(aps.Config{Endpoint: url + "/e/pb/bid", AccountID: "5001"})
		},
		Answer: func(currency string, offers ...auction.Offer) string { return answer(t, currency, offers...) },
		Seeds:  seeds,
	}.Run(t)
}
