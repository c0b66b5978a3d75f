package prebid_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"deckle"
	"deckle/internal/auction"
	"deckle/internal/consent"
	"deckle/internal/prebid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A capture is what a real Prebid Server answered, and to what.
type capture struct {
	Request struct {
		ID  string
		Imp []struct{ ID string }
		Cur []string
	}
	Status   int
	Response json.RawMessage
}

func readCapture(t testing.TB, name string) capture {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var c capture
	if err := json.Unmarshal(b, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// body is the response as it was on the wire: an error is plain text.
func (c *capture) body(t testing.TB) (contentType string, body []byte) {
	t.Helper()
	if c.Status == http.StatusOK {
		return "application/json", c.Response
	}
	var text string
	if err := json.Unmarshal(c.Response, &text); err != nil {
		t.Fatal(err)
	}
	return "text/plain; charset=utf-8", []byte(text)
}

// request is a request of ours that asks for the same slots.
func (c *capture) request() *auction.Request {
	formats := map[string]deckle.Size{"top": {W: 728, H: 90}, "side": {W: 300, H: 250}, "foot": {W: 970, H: 250}, "i1": {W: 300, H: 250}}
	dense, _ := deckle.Granularity("dense")
	r := &auction.Request{
		ID:       c.Request.ID,
		Currency: "USD",
		Buckets:  dense,
		Consent:  consent.Decision{Auction: true, GDPR: consent.No},
		Site:     auction.Site{Domain: "news.example", Page: "https://news.example/a/1"},
	}
	for _, i := range c.Request.Imp {
		r.Slots = append(r.Slots, deckle.Slot{
			ID: deckle.SlotID(i.ID), Kind: deckle.GPT, GAMUnitPath: "/1/" + i.ID,
			Formats: []deckle.Size{formats[i.ID]}, Prebid: deckle.PrebidParams{StoredRequest: i.ID},
		})
	}
	return r
}

// replay serves a capture over real loopback HTTP, and gives the URL.
func replay(t testing.TB, c capture) string {
	t.Helper()
	contentType, body := c.body(t)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/openrtb2/auction" {
			t.Errorf("%s %s, want POST /openrtb2/auction", r.Method, r.URL.Path)
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(c.Status)
		_, _ = w.Write(body)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// hold runs one auction with Prebid Server at url as its only provider.
func hold(t testing.TB, url string, r *auction.Request) *auction.Result {
	t.Helper()
	h := auction.New(auction.Config{
		Providers: []auction.Provider{{Name: "prebid", Dialect: prebid.New(prebid.Config{ServerURL: url, AccountID: "acct-1"}), Timeout: 5 * time.Second}},
		Currency:  auction.Rates{Base: "USD", Units: map[string]*big.Rat{"EUR": big.NewRat(108, 100)}},
	}, auction.NewMetrics(), slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	res := h.Start(ctx, r).Result()
	h.Close()
	return res
}

// won is what a test says about a winner.
type won struct {
	Slot, Seat, ID, Bucket, Paid string
	Price                        deckle.CPM
	Deal                         string
}

func wonOf(res *auction.Result) []won {
	var out []won
	for _, w := range res.Winners {
		out = append(out, won{string(w.Slot), w.Seat, w.ID, w.Bucket, w.Paid + " " + w.PaidCur, w.Price, w.DealID})
	}
	return out
}

func TestCaptures(t *testing.T) {
	type nonBids = map[auction.NonBidReason]int
	threeImps := func(id string) []won {
		return []won{
			{"top", "automatad", "automatad-" + id + "-0", "1.87", "1.87 USD", 1_870_000, ""},
			{"side", "automatad", "automatad-" + id + "-1", "4.00", "4.01 USD", 4_010_000, ""},
			{"foot", "pwbid", "pwbid-" + id + "-2", "5.10", "5.1 USD", 5_100_000, ""},
		}
	}
	tests := []struct {
		name    string
		change  func(*auction.Request)
		status  auction.Status
		winners []won
		nonBids nonBids
	}{
		{name: "three-imps", status: "bid", winners: threeImps("three-imps")},
		{name: "winners-only", status: "bid", winners: threeImps("winners-only")},
		{
			// Float products in euros; USD = EUR × 1.08, rounded once.
			name: "cur-eur", status: "bid",
			winners: []won{
				{"top", "automatad", "automatad-cur-eur-0", "1.61", "1.4960000000000002 EUR", 1_615_680, ""},
				{"side", "automatad", "automatad-cur-eur-1", "3.45", "3.208 EUR", 3_464_640, ""},
				{"foot", "pwbid", "pwbid-cur-eur-2", "4.40", "4.08 EUR", 4_406_400, ""},
			},
		},
		{
			name: "deals-first", change: func(r *auction.Request) { r.PreferDeals = true }, status: "bid",
			winners: []won{{"i1", "pwbid", "pwbid-deals-first-0", "4.00", "4 USD", 4_000_000, "D-7"}},
		},
		{
			name: "tie", status: "bid", // by seat: provider and price are the same
			winners: []won{{"i1", "automatad", "automatad-tie-0", "2.00", "2 USD", 2_000_000, ""}},
		},
		{
			name: "bad-garbage", status: "bid",
			winners: []won{{"i1", "automatad", "automatad-bad-garbage-0", "1.00", "1 USD", 1_000_000, ""}},
		},
		{
			name: "bad-http", status: "bid",
			winners: []won{{"i1", "automatad", "automatad-bad-http-0", "1.00", "1 USD", 1_000_000, ""}},
			nonBids: nonBids{"insecure_markup": 1},
		},
		{
			name: "nonbids", status: "bid",
			winners: []won{{"i1", "optidigital", "optidigital-nonbids-0", "2.00", "2 USD", 2_000_000, ""}},
			nonBids: nonBids{"seat_timeout": 1},
		},
		{
			name: "slow-tmax-100", status: "bid",
			winners: []won{{"i1", "optidigital", "optidigital-slow-tmax-100-0", "2.00", "2 USD", 2_000_000, ""}},
		},
		{name: "one-bidder-badimp", status: "nobid", nonBids: nonBids{"unknown_imp": 1}},
		{name: "one-bidder-badsize", status: "nobid", nonBids: nonBids{"size": 1}},
		{name: "one-bidder-noadm", status: "nobid", nonBids: nonBids{"no_markup": 1}},
		{name: "gdpr-no-consent", status: "nobid"},
		{name: "dup-imp-ids", status: "http_status", nonBids: nonBids{"imp_refused": 1}}, // it is asked once more and says the same
		{name: "unknown-stored-imp", status: "http_status"},
	}
	tested := make(map[string]bool)
	for _, tt := range tests {
		tested[tt.name] = true
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := readCapture(t, tt.name)
			r := c.request()
			if tt.change != nil {
				tt.change(r)
			}
			res := hold(t, replay(t, c), r)
			if diff := cmp.Diff(tt.winners, wonOf(res)); diff != "" {
				t.Errorf("winners (-want +got):\n%s", diff)
			}
			if len(res.Providers) != 1 || res.Providers[0].Status != tt.status {
				t.Fatalf("providers = %+v, want one with status %s", res.Providers, tt.status)
			}
			got := res.Providers[0].NonBids
			if len(got) != len(tt.nonBids) || len(got) > 0 && !cmp.Equal(got, tt.nonBids) {
				t.Errorf("non-bids = %v, want %v", got, tt.nonBids)
			}
		})
	}
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) != 15 {
		t.Fatalf("%d captures, %v; want 15", len(files), err)
	}
	for _, f := range files {
		if name := strings.TrimSuffix(filepath.Base(f), ".json"); !tested[name] {
			t.Errorf("capture %s has no test", name)
		}
	}
}

// Without consent for it, Prebid Server answers with a no-bid reason and no seats.
func TestNoBidReason(t *testing.T) {
	c := readCapture(t, "gdpr-no-consent")
	if res := hold(t, replay(t, c), c.request()); res.Providers[0].NBR != 2 {
		t.Errorf("NBR = %d, want 2", res.Providers[0].NBR)
	}
}

// Everything that a winner takes to the page, for one capture.
func TestWinner(t *testing.T) {
	c := readCapture(t, "deals-first")
	r := c.request()
	r.PreferDeals = true
	w := hold(t, replay(t, c), r).Winners[0]
	if len(w.AdID) != 22 {
		t.Errorf("hb_adid = %q, want 22 characters", w.AdID)
	}
	if w.Expires != 5*time.Minute || w.Size != (deckle.Size{W: 300, H: 250}) || w.CrID != "cr-pwbid" || w.Provider != "prebid" {
		t.Errorf("winner = %+v", w)
	}
	if want := "http://127.0.0.1:19100/ev/nurl?b=pwbid-deals-first-0&p=4"; w.NURL != want {
		t.Errorf("nurl = %q, want %q", w.NURL, want)
	}
	if want := "http://127.0.0.1:19100/ev/burl?b=pwbid-deals-first-0&p=4"; w.BURL != want {
		t.Errorf("burl = %q, want %q", w.BURL, want)
	}
	if strings.Contains(w.AdM, "${") || !strings.Contains(w.AdM, "/ev/imp?b=pwbid-deals-first-0&p=4\"") {
		t.Errorf("markup = %q, want its macro filled", w.AdM)
	}
	got := w.Targeting([]string{"hb_pb", "hb_bidder", "hb_adid", "hb_size", "hb_deal", "hb_format", "hb_source", "hb_cache_id", "x"})
	want := map[string]string{
		"hb_pb": "4.00", "hb_bidder": "pwbid", "hb_adid": w.AdID, "hb_size": "300x250", "hb_deal": "D-7",
		"hb_format": "banner", "hb_source": "s2s",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("targeting (-want +got):\n%s", diff)
	}
}
