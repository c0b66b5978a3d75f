package prebid_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"deckle/internal/auction"
)

// array is a JSON array of n times the same element.
func array(n int, element string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]"
}

// What an answer becomes in memory is bounded, whatever it is made of. The measure
// is bytes allocated, which are the same every time.
func TestDecodeMemoryIsBounded(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates too")
	}
	seats := func(bids string) string { return array(256, `{"bid": `+bids+`}`) }
	for name, body := range map[string]string{
		"65,536 bids":                `{"seatbid": ` + seats(array(256, "{}")) + `}`,
		"65,536 bids that are none":  `{"seatbid": ` + seats(array(256, "7")) + `}`,
		"seats with too many bids":   `{"seatbid": ` + seats(array(2000, "{}")) + `}`,
		"a seat's bids named again":  `{"seatbid": [{` + strings.TrimSuffix(strings.Repeat(`"bid": `+array(200, "{}")+",", 1000), ",") + `}]}`,
		"seats named again":          `{` + strings.TrimSuffix(strings.Repeat(`"seatbid": `+array(200, `{"bid": [{}]}`)+",", 300), ",") + `}`,
		"a bid's domains":            `{"seatbid": [{"bid": [{"adomain": ` + array(600_000, `""`) + `}]}]}`,
		"a bid's categories":         `{"seatbid": [{"bid": [{"cat": ` + array(600_000, `""`) + `}]}]}`,
		"domains named again":        `{"seatbid": [{"bid": [{` + strings.TrimSuffix(strings.Repeat(`"adomain": `+array(32, `""`)+",", 10_000), ",") + `}]}]}`,
		"65,536 non-bids":            `{"ext": {"prebid": {"seatnonbid": ` + array(256, `{"nonbid": `+array(256, "{}")+`}`) + `}}}`,
		"seats with many non-bids":   `{"ext": {"prebid": {"seatnonbid": ` + array(256, `{"nonbid": `+array(2000, "{}")+`}`) + `}}}`,
		"names that nobody asks for": `{"x": ` + array(600_000, `{}`) + `}`,
	} {
		if len(body) > 2<<20 {
			t.Fatalf("%s: %d bytes are more than an answer may have", name, len(body))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		a, _ := dialect.Decode(nil, []byte(body))
		runtime.ReadMemStats(&after)
		most := uint64(4*len(body) + 4<<20)
		if got := after.TotalAlloc - before.TotalAlloc; got > most {
			t.Errorf("%s: %d bytes allocated of %d, want at most %d", name, got, len(body), most)
		} else {
			t.Logf("%s: %d bytes allocated of %d", name, got, len(body))
		}
		if len(a.Offers) > auction.MaxOffers || len(a.NonBids) > 2*auction.MaxOffers+256 {
			t.Errorf("%s: %d offers, %d non-bids", name, len(a.Offers), len(a.NonBids))
		}
	}
}

// What comes first counts; every seat that was cut is counted, and what has been
// read stands.
func TestDecodeStopsAtTheLimit(t *testing.T) {
	var seats []string
	for s := range 11 {
		var bids []string
		for i := range 200 {
			bids = append(bids, fmt.Sprintf(`{"id": "%d-%d"}`, s, i))
		}
		seats = append(seats, fmt.Sprintf(`{"seat": "s%d", "bid": [%s]}`, s, strings.Join(bids, ",")))
	}
	a, err := dialect.Decode(nil, []byte(`{"seatbid": [`+strings.Join(seats, ",")+`], "bidid": "b"}`))
	if err != nil || a.BidID != "b" {
		t.Fatalf("Decode: %+v, %v", a.BidID, err)
	}
	// 2,048 are eleven seats and 2,037 bids.
	if n := len(a.Offers); n != 2037 || a.Offers[n-1].ID != "10-36" {
		t.Errorf("%d offers, the last is %+v; want 2,037 and 10-36", n, a.Offers[n-1])
	}
	if len(a.NonBids) != 1 || a.NonBids[0] != (auction.NonBid{Seat: "s10", Reason: auction.ReasonTooMany}) {
		t.Errorf("non-bids = %+v, want one for the seat that was cut", a.NonBids)
	}
}

// A seat that was cut off as a whole is counted once for all of them.
func TestDecodeSkipsSeats(t *testing.T) {
	a, err := dialect.Decode(nil, []byte(`{"seatbid": `+array(256, `{"seat": "s", "bid": `+array(10, "{}")+`}`)+`}`))
	got := map[auction.NonBid]int{}
	for _, n := range a.NonBids {
		got[n]++
	}
	if err != nil || len(got) != 2 || got[auction.NonBid{Reason: auction.ReasonTooMany}] != 1 || got[auction.NonBid{Seat: "s", Reason: auction.ReasonTooMany}] != 1 {
		t.Errorf("non-bids = %v, %v; want one of a seat and one of all others", got, err)
	}
}
