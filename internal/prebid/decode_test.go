package prebid_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"deckle/internal/auction"
)

func TestDecode(t *testing.T) {
	got, err := dialect.Decode(nil, []byte(`{
		"id": "r", "bidid": "b-1", "cur": "EUR", "nbr": 0,
		"seatbid": [{"bid": [{
			"id": "1", "impid": "top", "adid": "ad", "price": 1.4960000000000002, "w": 300, "h": 250, "mtype": 1, "adm": "<b>",
			"crid": "cr", "dealid": "D", "adomain": ["a.example"], "cat": ["IAB1"],
			"nurl": "https://n.example", "burl": "https://b.example", "lurl": "https://l.example", "exp": 60,
			"ext": {"prebid": {"targeting": {"hb_pb": "9.99"}}}
		}], "seat": "kargo", "group": 0}]
	}`))
	want := auction.Answer{BidID: "b-1", Currency: "EUR", Offers: []auction.Offer{{
		Seat: "kargo", ID: "1", ImpID: "top", AdID: "ad", Price: "1.4960000000000002", W: 300, H: 250, MType: 1, AdM: "<b>",
		CrID: "cr", DealID: "D", ADomain: []string{"a.example"}, Cat: []string{"IAB1"},
		NURL: "https://n.example", BURL: "https://b.example", LURL: "https://l.example", Exp: 60,
	}}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("Decode: %v (-want +got):\n%s", err, diff)
	}
}

// One bad bid costs itself, one bad seat its own bids.
func TestDecodeKeepsTheRest(t *testing.T) {
	good := `{"id": "good", "impid": "top", "price": 1}`
	for name, tt := range map[string]struct {
		seatbid   string
		malformed int
	}{
		"alone":                   {`[{"seat": "a", "bid": [` + good + `]}]`, 0},
		"a bid with a wrong w":    {`[{"seat": "a", "bid": [{"id": "x", "w": "300"}, ` + good + `]}]`, 1},
		"a bid that is none":      {`[{"seat": "a", "bid": [7, "x", [], ` + good + `]}]`, 3},
		"adomain is a string":     {`[{"seat": "a", "bid": [{"adomain": "a.example"}, ` + good + `]}]`, 1},
		"33 domains":              {`[{"seat": "a", "bid": [{"adomain": ` + array(33, `"a.example"`) + `}, ` + good + `]}]`, 1},
		"33 categories":           {`[{"seat": "a", "bid": [{"cat": ` + array(33, `"IAB1"`) + `}, ` + good + `]}]`, 1},
		"a category that is none": {`[{"seat": "a", "bid": [{"cat": [1]}, ` + good + `]}]`, 1},
		"an exp beyond int":       {`[{"seat": "a", "bid": [{"exp": 1e99}, ` + good + `]}]`, 1},
		"a seat with no name":     {`[{"seat": {}, "bid": [` + good + `]}, {"bid": [` + good + `]}]`, 1},
		"a seat that is none":     {`[true, {"seat": "a", "bid": [` + good + `]}]`, 1},
		"a seat without bids":     {`[{"seat": "b", "bid": null}, {"seat": "c"}, {"seat": "a", "bid": [` + good + `]}]`, 0},
		"bids are an object":      {`[{"seat": "b", "bid": {}}, {"seat": "a", "bid": [` + good + `]}]`, 1},
		"a seat with 257 bids":    {`[{"seat": "b", "bid": [` + strings.Repeat("{},", 256) + `{}]}, {"seat": "a", "bid": [` + good + `]}]`, 1},
		"duplicate bids members":  {`[{"seat": "a", "bid": [` + good + `, ` + good + `], "bid": [` + good + `]}]`, 0},
	} {
		a, err := dialect.Decode(nil, []byte(`{"seatbid": `+tt.seatbid+`}`))
		if err != nil || len(a.Offers) != 1 || a.Offers[0].ID != "good" {
			t.Errorf("%s: offers %+v, %v; want the good one", name, a.Offers, err)
		}
		if len(a.NonBids) != tt.malformed {
			t.Errorf("%s: non-bids %+v, want %d", name, a.NonBids, tt.malformed)
		}
		for _, n := range a.NonBids {
			if n.Reason != auction.ReasonMalformed {
				t.Errorf("%s: reason %s, want malformed", name, n.Reason)
			}
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, body := range []string{
		``, `null`, `[]`, `"x"`, `<!doctype html><title>502</title>`, `{"seatbid": [`, `{"seatbid": {}}`, `{"cur": 1}`,
		`{} {}`, `{"seatbid": [{"seat": "a", "bid": [{"price": NaN}]}]}`, `{"seatbid": [` + strings.Repeat("{},", 256) + `{}]}`,
	} {
		if a, err := dialect.Decode(nil, []byte(body)); err == nil {
			t.Errorf("Decode(%.40q) = %+v, want an error", body, a)
		}
	}
}

func TestDecodeNoBids(t *testing.T) {
	for _, body := range []string{`{}`, `{"seatbid": null}`, `{"seatbid": []}`, ` {"id": "r", "nbr": 8}`} {
		if a, err := dialect.Decode(nil, []byte(body)); err != nil || len(a.Offers) != 0 {
			t.Errorf("Decode(%s) = %+v, %v", body, a, err)
		}
	}
}

func TestDecodeSeatNonBids(t *testing.T) {
	for code, want := range map[int]auction.NonBidReason{
		0: "seat_no_bid", 100: "seat_error", 101: "seat_timeout", 102: "seat_error", 103: "seat_unreachable",
		200: "seat_blocked", 204: "seat_blocked", 300: "seat_rejected", 301: "below_floor", 303: "seat_rejected",
		304: "below_floor", 351: "size", 352: "insecure_markup", 500: "seat_error", -1: "seat_error",
	} {
		body := fmt.Sprintf(`{"ext": {"prebid": {"seatnonbid": [{"seat": "x", "nonbid": [{"impid": "i", "statuscode": %d}]}]}}}`, code)
		a, err := dialect.Decode(nil, []byte(body))
		if diff := cmp.Diff([]auction.NonBid{{Seat: "x", ImpID: "i", Reason: want}}, a.NonBids); err != nil || diff != "" {
			t.Errorf("code %d: %v (-want +got):\n%s", code, err, diff)
		}
	}
}

// How long the server took is what its slowest bidder took.
func TestDecodeTook(t *testing.T) {
	for times, want := range map[string]time.Duration{
		`{"a": 12, "b": 40, "c": 7}`: 40 * time.Millisecond,
		`{}`:                         0,
		`null`:                       0,
		`[7]`:                        0,
		`{"a": "12", "b": {"c": 9}, "d": [1], "e": 3}`: 3 * time.Millisecond,
		`{"a": -5}`:                           0,
		`{"a": 1e99, "b": 60001, "c": 60000}`: time.Minute,
	} {
		a, err := dialect.Decode(nil, []byte(`{"ext": {"responsetimemillis": `+times+`}}`))
		if err != nil || a.Took != want {
			t.Errorf("%s: took %v, %v; want %v", times, a.Took, err, want)
		}
	}
}

// What a server says beside the bids does not cost the bids.
func TestDecodeIgnoresABrokenExt(t *testing.T) {
	a, err := dialect.Decode(nil, []byte(`{"ext": [1], "seatbid": [{"seat": "a", "bid": [{"id": "1"}]}]}`))
	if err != nil || len(a.Offers) != 1 || len(a.NonBids) != 0 {
		t.Errorf("Decode = %+v, %v", a, err)
	}
}

// FuzzDecode looks for panics, for answers out of what is none, and for answers
// that are larger than they may be.
func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		c := readCapture(f, strings.TrimSuffix(filepath.Base(name), ".json"))
		_, body := c.body(f)
		f.Add(body)
	}
	f.Add([]byte(`{"seatbid":[{"bid":[{"id":"1","impid":"i1","price":1e400,"adm":"\ud800"}]}]}`))
	c := readCapture(f, "tie")
	req := c.request()
	f.Fuzz(func(t *testing.T, body []byte) {
		a, err := dialect.Decode(req, body)
		if err != nil {
			if len(a.Offers) > 0 {
				t.Errorf("offers beside the error %v", err)
			}
			return
		}
		if !jsontext.Value(body).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
			t.Errorf("an answer out of what is not JSON: %q", body)
		}
		if most := auction.MaxOffers; len(a.Offers) > most || len(a.NonBids) > 2*most+256 {
			t.Errorf("%d offers, %d non-bids", len(a.Offers), len(a.NonBids))
		}
	})
}
