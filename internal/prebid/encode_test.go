package prebid_test

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckle"
	"deckle/internal/auction"
	"deckle/internal/consent"
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

// equalJSON compares two JSON texts by what they say.
func equalJSON(t testing.TB, got []byte, want string) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal(got, &g); err != nil {
		t.Fatalf("%v in %s", err, got)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w, g); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

func TestEncode(t *testing.T) {
	r := &auction.Request{
		ID:       "req-1",
		Section:  "travel",
		Currency: "EUR",
		Consent:  consent.Decision{Auction: true, GDPR: consent.Yes, TCString: "CPtc", GPC: true},
		Device:   auction.Device{UA: "UA/1", IP: netip.MustParseAddr("::ffff:192.0.2.7"), Language: "fr"},
		Site: auction.Site{
			ID: "site-1", Domain: "news.example", Page: "https://news.example/a/1", Ref: "https://search.example/",
			SChain: []auction.SChainNode{{ASI: "news.example", SID: "42"}},
			BAdv:   []string{"rival.example"}, BCat: []string{"IAB7"},
		},
		Slots: []deckle.Slot{
			{
				ID: "top", Kind: deckle.GPT, GAMUnitPath: "/123/{section}/top", Floor: 500_000,
				Formats: []deckle.Size{{W: 728, H: 90}, {W: 970, H: 250}},
				Prebid:  deckle.PrebidParams{StoredRequest: "stored-top"},
			},
			{
				ID: "side", Kind: deckle.GPT, GAMUnitPath: "/123/side", Formats: []deckle.Size{{W: 300, H: 250}},
				Prebid: deckle.PrebidParams{Bidders: []deckle.BidderParams{
					{Bidder: "rubicon", Params: []byte(`{"accountId": 1}`)},
					{Bidder: "none", Params: []byte(` { } `)},
				}},
			},
			{ID: "empty", Kind: deckle.GPT, Prebid: deckle.PrebidParams{Bidders: []deckle.BidderParams{{Bidder: "none", Params: []byte(`{}`)}}}},
			{ID: "fold", Kind: deckle.Magazine, Prebid: deckle.PrebidParams{StoredRequest: "fold"}},
		},
	}
	c := encode(t, r)
	if want := "http://pbs.example:8000/openrtb2/auction"; c.URL != want {
		t.Errorf("URL = %q, want %q", c.URL, want)
	}
	if got := c.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type = %q", got)
	}
	equalJSON(t, c.Body, `{
		"id": "req-1",
		"imp": [
			{
				"id": "top", "tagid": "/123/travel/top", "secure": 1, "bidfloor": 0.5, "bidfloorcur": "EUR",
				"banner": {"format": [{"w": 728, "h": 90}, {"w": 970, "h": 250}]},
				"ext": {"gpid": "/123/travel/top", "prebid": {"storedrequest": {"id": "stored-top"}}}
			},
			{
				"id": "side", "tagid": "/123/side", "secure": 1,
				"banner": {"format": [{"w": 300, "h": 250}]},
				"ext": {"gpid": "/123/side", "prebid": {"bidder": {"rubicon": {"accountId": 1}}}}
			}
		],
		"site": {"domain": "news.example", "page": "https://news.example/a/1", "ref": "https://search.example/", "publisher": {"id": "acct-1"}},
		"device": {"ua": "UA/1", "ip": "192.0.2.7", "language": "fr"},
		"user": {"consent": "CPtc"},
		"regs": {"gdpr": 1, "ext": {"gpc": "1"}},
		"tmax": 450,
		"cur": ["EUR"],
		"badv": ["rival.example"], "bcat": ["IAB7"],
		"source": {"schain": {"complete": 1, "ver": "1.0", "nodes": [{"asi": "news.example", "sid": "42", "hp": 1}]}},
		"ext": {"prebid": {"returnallbidstatus": true}}
	}`)
}

// What is not known is not said: neither empty strings nor zeros leave.
func TestEncodeLeavesOutWhatIsNotKnown(t *testing.T) {
	r := &auction.Request{
		ID: "req-1", Currency: "USD",
		Site: auction.Site{Domain: "news.example", Page: "https://news.example/"},
		Slots: []deckle.Slot{{
			ID: "top", Kind: deckle.GPT, GAMUnitPath: "/1/top", Formats: []deckle.Size{{W: 1, H: 1}},
			Prebid: deckle.PrebidParams{StoredRequest: "top"},
		}},
	}
	c, err := prebid.New(prebid.Config{ServerURL: "http://pbs.example"}).Encode(r, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	equalJSON(t, c.Body, `{
		"id": "req-1",
		"imp": [{
			"id": "top", "tagid": "/1/top", "secure": 1, "banner": {"format": [{"w": 1, "h": 1}]},
			"ext": {"gpid": "/1/top", "prebid": {"storedrequest": {"id": "top"}}}
		}],
		"site": {"domain": "news.example", "page": "https://news.example/"},
		"tmax": 1000, "cur": ["USD"], "ext": {"prebid": {"returnallbidstatus": true}}
	}`)
}

func TestEncodeRegs(t *testing.T) {
	for name, tt := range map[string]struct {
		consent consent.Decision
		want    string
	}{
		"unknown":         {consent.Decision{}, `null`},
		"no GDPR":         {consent.Decision{GDPR: consent.No}, `{"gdpr":0}`},
		"GDPR":            {consent.Decision{GDPR: consent.Yes}, `{"gdpr":1}`},
		"GPC alone":       {consent.Decision{GPC: true}, `{"ext":{"gpc":"1"}}`},
		"GPC and no GDPR": {consent.Decision{GDPR: consent.No, GPC: true}, `{"gdpr":0,"ext":{"gpc":"1"}}`},
	} {
		c := readCapture(t, "tie")
		r := c.request()
		r.Consent = tt.consent
		var got struct{ Regs json.RawMessage }
		if err := json.Unmarshal(encode(t, r).Body, &got); err != nil {
			t.Fatal(err)
		}
		if got.Regs == nil {
			got.Regs = json.RawMessage("null")
		}
		t.Log(name)
		equalJSON(t, got.Regs, tt.want)
	}
}

func TestEncodeIPv6(t *testing.T) {
	c := readCapture(t, "tie")
	r := c.request()
	r.Device.IP = netip.MustParseAddr("2001:db8::")
	if got := string(encode(t, r).Body); !strings.Contains(got, `"ipv6":"2001:db8::"`) || strings.Contains(got, `"ip":`) {
		t.Errorf("request = %s, want device.ipv6 alone", got)
	}
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
