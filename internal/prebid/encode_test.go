package prebid_test

import (
	"encoding/json"
	"testing"
	"time"

	"deckle"
	"deckle/internal/auction"
	"deckle/internal/prebid"
)

var dialect = prebid.New(prebid.Config{ServerURL: "http://pbs.example:8000/", AccountID: "acct-1"})

func encode(t testing.TB, r *auction.Request) *auction.Call {
	t.Helper()
	c, err := dialect.Encode(r, 450*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEncodeWithoutSlots(t *testing.T) {
	c, err := dialect.Encode(&auction.Request{ID: "r", Slots: []deckle.Slot{{ID: "fold", Kind: deckle.Magazine}}}, time.Second)
	if c != nil || err != nil {
		t.Errorf("Encode = %v, %v; want nil, nil", c, err)
	}
}

func TestEncodeLeavesOutBrokenParams(t *testing.T) {
	r := &auction.Request{ID: "r", Slots: []deckle.Slot{{ID: "s", Kind: deckle.GPT, Prebid: deckle.PrebidParams{
		Bidders: []deckle.BidderParams{{Bidder: "b", Params: []byte(`{"a":`)}},
	}}}}
	if c, err := dialect.Encode(r, time.Second); c != nil || err != nil {
		t.Errorf("Encode = %v, %v; want the slot left out", c, err)
	}
}

// A reader's User-Agent is any bytes; the request stays JSON.
func TestEncodeSurvivesAnyUserAgent(t *testing.T) {
	c := readCapture(t, "tie")
	r := c.request()
	r.Device.UA = "\xff\x00\"</script>"
	if got := encode(t, r).Body; !json.Valid(got) {
		t.Errorf("request is not JSON: %q", got)
	}
}
