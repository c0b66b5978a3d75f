package aps_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"log/slog"
	"math/big"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckle"
	"deckle/internal/aps"
	"deckle/internal/auction"
	"deckle/internal/auction/auctiontest"
	"deckle/internal/consent"
)

var update = flag.Bool("update", false, "write the golden requests anew")

func dialect(scripts bool) *aps.Dialect {
	return aps.New(aps.Config{Endpoint: "https://aps.example/e/pb/bid", AccountID: "5001", ScriptCreatives: scripts})
}

// page is a request that says no more than it must.
func page() *auction.Request {
	return &auction.Request{
		ID: "req-1", Section: "travel", Currency: "USD",
		Site: auction.Site{ID: "site-1", Domain: "news.example", Page: "https://news.example/travel/1"},
		Slots: []deckle.Slot{{
			ID: "top", Kind: deckle.GPT, GAMUnitPath: "/123/{section}/top", APSID: "aps-top",
			Formats: []deckle.Size{{W: 728, H: 90}, {W: 970, H: 250}},
		}},
	}
}

// requests are what leaves towards Amazon, by what they are about.
var requests = map[string]func(*auction.Request){
	"least": func(*auction.Request) {},
	"all": func(r *auction.Request) {
		r.Currency = "EUR"
		r.Consent = consent.Decision{Auction: true, GDPR: consent.Yes, TCString: "CPtc.string", GPC: true}
		r.Site.Ref = "https://search.example/"
		r.Site.SChain = []auction.SChainNode{{ASI: "news.example", SID: "42"}}
		r.Site.BAdv, r.Site.BCat = []string{"rival.example"}, []string{"IAB7"}
		r.Device = auction.Device{
			UA: "UA/1", IP: netip.MustParseAddr("203.0.113.0"), Country: "DEU", Language: "de",
			Hints: &auction.ClientHints{Browsers: []auction.BrandVersion{{Brand: "Chromium", Version: []string{"131"}}}, Mobile: new(true)},
		}
		top := &r.Slots[0]
		top.Floor, top.AdServer = 500_000, deckle.GAM
		top.Targeting = []deckle.KeyValues{{Key: "zone", Values: []string{"a", "b"}}}
		r.Slots = append(r.Slots,
			deckle.Slot{ID: "prebid-alone", Kind: deckle.GPT, Formats: top.Formats, Prebid: deckle.PrebidParams{StoredRequest: "x"}},
			deckle.Slot{ID: "fold", Kind: deckle.Magazine, Formats: top.Formats, APSID: "x"},
			deckle.Slot{ID: "side", Kind: deckle.GPT, Formats: []deckle.Size{{W: 300, H: 250}}, APSID: "aps-side"},
		)
	},
}

func TestRequests(t *testing.T) {
	for name, change := range requests {
		t.Run(name, func(t *testing.T) {
			r := page()
			change(r)
			c, err := dialect(false).Encode(r, 450*time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			if err := json.Indent(&got, c.Body, "", "  "); err != nil {
				t.Fatal(err)
			}
			got.WriteByte('\n')
			file := filepath.Join("testdata", "requests", name+".json")
			if *update {
				if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
			if c.URL != "https://aps.example/e/pb/bid" || c.Header.Get("Content-Type") != "application/json" {
				t.Errorf("call to %s with %v", c.URL, c.Header)
			}
		})
	}
}

// Slots that Amazon does not know are not asked for; with none nobody is.
func TestNothingToAsk(t *testing.T) {
	r := page()
	r.Slots[0].APSID = ""
	if c, err := dialect(false).Encode(r, time.Second); c != nil || err != nil {
		t.Errorf("Encode = %v, %v; want nil, nil", c, err)
	}
}

const frame = `<iframe src="https://creative.example/r?b=bid-frame&amp;p=1" width="300" height="250"` +
	` sandbox="allow-scripts allow-same-origin allow-forms allow-popups allow-popups-to-escape-sandbox allow-top-navigation-by-user-activation"` +
	` scrolling="no" frameborder="0" marginwidth="0" marginheight="0" style="border:0;display:block" title="Advertisement"></iframe>`

func TestDecode(t *testing.T) {
	body, err := os.ReadFile("testdata/display.json")
	if err != nil {
		t.Fatal(err)
	}
	inFrame := auction.Offer{
		Seat: "amazon", ID: "bid-frame", ImpID: "top", Price: "2.25", W: 300, H: 250, MType: 1, AdM: frame,
		CrID: "cr-1", ADomain: []string{"shop.example"}, Exp: 240, // and no notice
	}
	asScript := auction.Offer{
		Seat: "amazon", ID: "bid-script", ImpID: "side", Price: "3.5", W: 300, H: 600, MType: 1, CrID: "cr-2",
		AdM: `<script src="https://creative.example/r.js?b=bid-script"></script>`,
	}
	for scripts, want := range map[bool]auction.Answer{
		false: {
			BidID: "b-77", Currency: "USD", Offers: []auction.Offer{inFrame},
			NonBids: []auction.NonBid{{Seat: "amazon", ImpID: "side", Reason: auction.ReasonScriptCreative}},
		},
		true: {BidID: "b-77", Currency: "USD", Offers: []auction.Offer{inFrame, asScript}},
	} {
		got, err := dialect(scripts).Decode(nil, body)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("script creatives %v: %v (-want +got):\n%s", scripts, err, diff)
		}
	}
}

func TestCreatives(t *testing.T) {
	const is = "it has markup"
	for ext, want := range map[string]string{
		`{"creativeurl":"https://c.example/","tagtype":"iframe"}`:                                   is,
		`{"creativeurl":"https://c.example/","tagtype":"IFRAME"}`:                                   "malformed",
		`{"creativeurl":"https://c.example/"}`:                                                      "malformed",
		`{"creativeurl":"https://c.example/","tagtype":"script"}`:                                   "script_creative",
		`{"creativeurl":"http://c.example/","tagtype":"iframe"}`:                                    "insecure_markup",
		`{"creativeurl":"javascript://c.example/%0aalert(1)","tagtype":"iframe"}`:                   "insecure_markup",
		`{"creativeurl":"data:text/html,x","tagtype":"iframe"}`:                                     "malformed",
		`{"creativeurl":"//c.example/","tagtype":"iframe"}`:                                         is,
		`{"creativeurl":"https:///path","tagtype":"iframe"}`:                                        "malformed",
		`{"creativeurl":"https://u:p@c.example/","tagtype":"iframe"}`:                               "malformed",
		`{"creativeurl":"https://c.example/` + strings.Repeat("x", 8<<10) + `","tagtype":"iframe"}`: "malformed",
		`{"creativeurl":"https://c.example/\"><script>alert(1)</script>","tagtype":"iframe"}`:       is,
		`{"creativeurl":7,"tagtype":"iframe"}`:                                                      "malformed",
		`{"creativeurl":"","tagtype":"iframe"}`:                                                     "",
		`{"tagtype":"script"}`:                                                                      "",
		`null`:                                                                                      "",
	} {
		a, err := dialect(false).Decode(nil, []byte(`{"seatbid":[{"seat":"s","bid":[{"id":"1","impid":"top","price":1,"ext":`+ext+`}]}]}`))
		if err != nil {
			t.Errorf("%s: %v", ext, err)
			continue
		}
		got := ""
		switch {
		case len(a.NonBids) == 1:
			got = string(a.NonBids[0].Reason)
		case a.Offers[0].AdM != "":
			got = is
			if adm := a.Offers[0].AdM; strings.Count(adm, "<") != 2 || strings.Count(adm, `"><`) != 1 {
				t.Errorf("%s: more than a frame: %s", ext, adm)
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", ext, got, want)
		}
	}
}

// A bid with markup of its own that says that it is a script is one, wherever the
// markup stands.
func TestScriptInMarkup(t *testing.T) {
	const script, ad = `<script src='https://c.example/x.js'></script>`, `<b>ad</b>`
	for _, tt := range []struct {
		adm, ext string
		allowed  bool
		offers   int
	}{
		{script, `{"tagtype":"script"}`, false, 0},
		{script, `{"tagtype":"script"}`, true, 1},
		{ad, `{"tagtype":"script"}`, false, 0},
		{ad, `{"tagtype":"iframe"}`, false, 1},
		{ad, `{}`, false, 1},
	} {
		a, err := dialect(tt.allowed).Decode(nil, []byte(`{"seatbid":[{"seat":"s","bid":[{"id":"1","impid":"top","price":1,"adm":"`+tt.adm+`","ext":`+tt.ext+`}]}]}`))
		if err != nil || len(a.Offers) != tt.offers {
			t.Errorf("%+v: %+v, %v", tt, a, err)
			continue
		}
		if want := []auction.NonBid{{Seat: "s", ImpID: "top", Reason: auction.ReasonScriptCreative}}; tt.offers == 0 && !cmp.Equal(a.NonBids, want) {
			t.Errorf("%+v: non-bids %+v", tt, a.NonBids)
		}
	}
}

// A frame without a size of its own is as large as what holds it.
func TestFrameWithoutASize(t *testing.T) {
	a, err := dialect(false).Decode(nil, []byte(`{"seatbid":[{"bid":[{"ext":{"creativeurl":"https://c.example/","tagtype":"iframe"}}]}]}`))
	if err != nil || !strings.Contains(a.Offers[0].AdM, `width="100%" height="100%"`) {
		t.Errorf("offers = %+v, %v", a.Offers, err)
	}
}

// Prices are in US dollars unless the answer says otherwise, and become those of
// the site's currency; macros in a creative's address are filled in.
func TestAuction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := `{"seatbid":[{"bid":[{"id":"1","impid":"top","price":1.08,"w":728,"h":90,` +
			`"ext":{"creativeurl":"https://c.example/?p=${AUCTION_PRICE}&c=${AUCTION_CURRENCY}","tagtype":"iframe"}}]}]}`
		h := auction.New(auction.Config{
			Providers: []auction.Provider{{Name: "aps", Dialect: aps.New(aps.Config{Endpoint: "http://aps/"})}},
			Currency:  auction.Rates{Base: "USD", Units: map[string]*big.Rat{"EUR": big.NewRat(108, 100)}},
			Dial:      auctiontest.Network{"aps": auctiontest.Replies(auctiontest.OK(body))}.Dial,
		}, auction.NewMetrics(), slog.New(slog.DiscardHandler))
		r := page()
		r.Currency = "EUR"
		r.Buckets, _ = deckle.Granularity("dense")
		res := h.Start(t.Context(), r).Result()
		h.Close()
		if len(res.Winners) != 1 {
			t.Fatalf("result = %+v", res)
		}
		w := res.Winners[0]
		if w.Price != 1_000_000 || w.Paid != "1.08" || w.PaidCur != "USD" || w.Seat != "aps" || w.Bucket != "1.00" {
			t.Errorf("winner = %+v, want 1 EUR of 1.08 USD", w.Bid)
		}
		if !strings.Contains(w.AdM, `src="https://c.example/?p=1.08&amp;c=USD"`) {
			t.Errorf("markup = %s, want its macros filled in", w.AdM)
		}
		if w.NURL != "" || w.BURL != "" {
			t.Errorf("notices %q and %q, want none", w.NURL, w.BURL)
		}
	})
}

// FuzzDecode looks for panics, and for markup that is more than one frame.
func FuzzDecode(f *testing.F) {
	body, err := os.ReadFile("testdata/display.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Add([]byte(`{"seatbid":[{"bid":[{"ext":{"creativeurl":"https://c.example/'\"<>&","tagtype":"iframe"}}]}]}`))
	d := dialect(true)
	f.Fuzz(func(t *testing.T, body []byte) {
		a, err := d.Decode(nil, body)
		if err != nil && len(a.Offers) > 0 {
			t.Errorf("offers beside the error %v", err)
		}
		for _, o := range a.Offers {
			if o.NURL+o.BURL+o.LURL != "" {
				t.Errorf("a notice: %+v", o)
			}
			ours := strings.HasPrefix(o.AdM, `<iframe src="https://`) && strings.HasSuffix(o.AdM, `</iframe>`)
			if ours && strings.Count(o.AdM, `"`) == 22 && strings.Count(o.AdM, "<") != 2 {
				t.Errorf("more than a frame: %s", o.AdM)
			}
		}
	})
}
