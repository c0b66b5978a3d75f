package prebid_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"deckle"
	"deckle/internal/auction"
	"deckle/internal/consent"
	"deckle/internal/prebid"
)

var update = flag.Bool("update", false, "write the golden requests anew")

// stored is a slot that Prebid Server knows by a stored request.
func stored(id string, sizes ...deckle.Size) deckle.Slot {
	return deckle.Slot{
		ID: deckle.SlotID(id), Kind: deckle.GPT, GAMUnitPath: "/123/{section}/" + id, Formats: sizes,
		Prebid: deckle.PrebidParams{StoredRequest: "stored-" + id},
	}
}

// page is a request that says no more than it must.
func page() *auction.Request {
	return &auction.Request{
		ID: "req-1", Section: "travel", Currency: "USD",
		Site: auction.Site{
			ID: "site-1", Domain: "news.example", Page: "https://news.example/travel/1",
			SChain: []auction.SChainNode{}, BAdv: []string{}, BCat: []string{},
		},
		Slots: []deckle.Slot{stored("top", deckle.Size{W: 300, H: 250})},
	}
}

// requests are what leaves towards bidders, by what they are about; the golden
// files in testdata/requests are what a bidder may read of each.
var requests = map[string]func(*auction.Request){
	"least": func(*auction.Request) {},

	// One for each case of consent.
	"gdpr": func(r *auction.Request) {
		r.Consent = consent.Decision{Auction: true, GDPR: consent.Yes, TCString: "CPtc.string", FullAddress: true}
		r.Device.IP = netip.MustParseAddr("203.0.113.77")
	},
	"gdpr-truncated-address": func(r *auction.Request) {
		r.Consent = consent.Decision{Auction: true, GDPR: consent.Yes, TCString: "CPtc.string"}
		r.Device.IP = netip.MustParseAddr("203.0.113.0")
	},
	"gdpr-no-string": func(r *auction.Request) {
		r.Consent = consent.Decision{Auction: true, GDPR: consent.Yes}
	},
	"no-gdpr": func(r *auction.Request) {
		r.Consent = consent.Decision{Auction: true, GDPR: consent.No, FullAddress: true}
		r.Device.IP = netip.MustParseAddr("2001:db8:1234:5678:9abc:def0:1234:5678")
	},
	"no-gdpr-truncated-address": func(r *auction.Request) {
		r.Consent = consent.Decision{Auction: true, GDPR: consent.No}
		r.Device.IP = netip.MustParseAddr("2001:db8:1234::")
	},
	"unknown": func(r *auction.Request) {
		r.Consent = consent.Decision{Auction: true}
		r.Device.UA = "UA/1"
	},
	"gpc": func(r *auction.Request) {
		r.Consent = consent.Decision{Auction: true, GPC: true}
	},
	"gpc-no-gdpr": func(r *auction.Request) {
		r.Consent = consent.Decision{Auction: true, GDPR: consent.No, GPC: true}
	},
	"gpc-gdpr": func(r *auction.Request) {
		r.Consent = consent.Decision{Auction: true, GDPR: consent.Yes, TCString: "CPtc.string", GPC: true}
	},

	"device": func(r *auction.Request) {
		r.Device = auction.Device{UA: `Mozilla/5.0 ("Any") </script>`, Language: "fr", IP: netip.MustParseAddr("::ffff:203.0.113.77")}
	},
	"device-zone": func(r *auction.Request) {
		r.Device.IP = netip.MustParseAddr("fe80::1%eth0")
	},
	"site": func(r *auction.Request) {
		r.Site.Ref = "https://search.example/"
		r.Site.SChain = []auction.SChainNode{{ASI: "news.example", SID: "42"}, {ASI: "reseller.example", SID: "r-7"}}
		r.Site.BAdv = []string{"rival.example", "other.example"}
		r.Site.BCat = []string{"IAB7", "IAB25-3"}
	},
	"floors": func(r *auction.Request) {
		r.Currency = "EUR"
		r.Slots = []deckle.Slot{stored("top", deckle.Size{W: 728, H: 90}, deckle.Size{W: 970, H: 250}), stored("side", deckle.Size{W: 300, H: 600}), stored("foot", deckle.Size{W: 1, H: 1})}
		r.Slots[0].Floor = 500_000
		r.Slots[2].Floor = 1_234_567
	},
	"bidders": func(r *auction.Request) {
		top, side, empty := stored("top", deckle.Size{W: 300, H: 250}), stored("side", deckle.Size{W: 300, H: 250}), stored("empty", deckle.Size{W: 300, H: 250})
		top.Prebid = deckle.PrebidParams{Bidders: []deckle.BidderParams{
			{Bidder: "rubicon", Params: []byte(`{"accountId": 9007199254740993, "floor": 0.10}`)},
			{Bidder: "none", Params: []byte(` { } `)},
			{Bidder: "appnexus", Params: []byte(`{"placementId": "p", "keywords": {"genre": ["a", "b"]}, "placementId": "again"}`)},
			{Bidder: "broken", Params: []byte(`{"a":`)},
			{Bidder: "list", Params: []byte(`[1]`)},
		}}
		empty.Prebid = deckle.PrebidParams{Bidders: []deckle.BidderParams{{Bidder: "none", Params: []byte(`{}`)}}}
		fold := stored("fold")
		fold.Kind = deckle.Magazine
		r.Slots = []deckle.Slot{empty, fold, top, side}
	},
	"client-hints": func(r *auction.Request) {
		r.Device.Country = "DEU"
		r.Device.Hints = &auction.ClientHints{
			Browsers: []auction.BrandVersion{{Brand: "Chromium", Version: []string{"131"}}, {Brand: "Not A Brand"}},
			Platform: auction.BrandVersion{Brand: "Windows"}, Mobile: new(false),
		}
	},
	"client-hints-asked-for": func(r *auction.Request) {
		r.Device.Hints = &auction.ClientHints{
			Browsers: []auction.BrandVersion{{Brand: "Chromium", Version: []string{"131", "0", "6778", "85"}}},
			Platform: auction.BrandVersion{Brand: "Android", Version: []string{"14"}}, Mobile: new(true),
			Architecture: "arm", Bitness: "64", Model: "Pixel 8", HighEntropy: true,
		}
	},
	// Which deals there are is in Prebid Server's stored requests; that they come
	// first is decided here. The name adserver is not a template's to give.
	"deals": func(r *auction.Request) {
		r.PreferDeals = true
		r.Slots[0].APSID, r.Slots[0].DivID, r.Slots[0].AdServer = "aps-1", "div-1", deckle.GAM
		r.Slots[0].Targeting = []deckle.KeyValues{{Key: "zone", Values: []string{"a"}}, {Key: "adserver", Values: []string{"x"}}}
	},
}

func TestRequests(t *testing.T) {
	for name, change := range requests {
		t.Run(name, func(t *testing.T) {
			r := page()
			change(r)
			got := encode(t, r).Body
			file := filepath.Join("testdata", "requests", name+".json")
			if *update {
				var b bytes.Buffer
				if err := json.Indent(&b, got, "", "  "); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, append(b.Bytes(), '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(parsed(t, want), parsed(t, got)); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
	files, err := filepath.Glob("testdata/requests/*.json")
	if err != nil || len(files) != len(requests) {
		t.Errorf("%d golden requests, %v; want %d", len(files), err, len(requests))
	}
}

// parsed is a JSON text by what it says, its numbers as they are written.
func parsed(t *testing.T, text []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

// Where a request goes and how it presents itself.
func TestCall(t *testing.T) {
	c := encode(t, page())
	if want := "http://pbs.example:8000/openrtb2/auction"; c.URL != want {
		t.Errorf("URL = %q, want %q", c.URL, want)
	}
	var header strings.Builder
	if err := c.Header.Write(&header); err != nil {
		t.Fatal(err)
	}
	want := "Accept: application/json\r\nContent-Type: application/json\r\nUser-Agent: deckle\r\nX-Openrtb-Version: 2.6\r\n"
	if header.String() != want {
		t.Errorf("header = %q, want %q", header.String(), want)
	}
}

// Without an account the publisher is not named at all.
func TestNoAccount(t *testing.T) {
	c, err := prebid.New(prebid.Config{ServerURL: "http://pbs.example"}).Encode(page(), 1)
	if err != nil || bytes.Contains(c.Body, []byte("publisher")) {
		t.Errorf("request = %s, %v; want no publisher", c.Body, err)
	}
}
