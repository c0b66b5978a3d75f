package edge_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckle"
	"deckle/internal/auction"
	"deckle/internal/consent"
	"deckle/internal/edge"
	"deckle/internal/publicapi"
	"deckle/internal/telemetry"
	"deckle/internal/template"
)

// asker asks a world for bids without a page.
type asker struct {
	*world
	config edge.BidsConfig
	events []telemetry.Event
}

func newAsker(t *testing.T, s setup, bidder http.HandlerFunc) *asker {
	t.Helper()
	a := &asker{world: newWorld(t, s, hang, bidder), config: bidsConfig()}
	a.config.Record = func(e telemetry.Event) { a.events = append(a.events, e) }
	return a
}

func bidsConfig() edge.BidsConfig {
	return edge.BidsConfig{
		API:     publicapi.New(publicapi.NewMetrics(), slog.New(slog.DiscardHandler)),
		Limiter: publicapi.NewLimiter(publicapi.Limit{PerMinute: 60, Burst: 1000}),
		Timeout: 400 * time.Millisecond, DefaultFloors: map[string]deckle.CPM{"test": 250_000},
	}
}

// ask sends a request to one of the two endpoints.
func (a *asker) ask(ctx context.Context, r *http.Request) *answer {
	h := a.edge.PageBids(a.config)
	if strings.HasPrefix(r.RequestURI, edge.AuctionPath) {
		h = a.edge.AuctionEndpoint(a.config)
	}
	got := &answer{started: time.Now(), header: http.Header{}}
	h.ServeHTTP(got, r.WithContext(ctx))
	_ = got.FlushError()
	got.ended = time.Since(got.started)
	return got
}

// pageBidsOf is a script's request for the bids of a page of its own site.
func pageBidsOf(path string) *http.Request {
	r := navigation(edge.PageBidsPath + "?path=" + path)
	r.Header.Set("Sec-Fetch-Dest", "empty")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Accept", "*/*")
	r.Header.Set("Referer", "http://www.test/news/1?secret=1")
	return r
}

// post is a script's request for ad units.
func post(body string) *http.Request {
	r := navigation(edge.AuctionPath)
	r.Method = http.MethodPost
	r.Header.Set("Sec-Fetch-Dest", "empty")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Origin", "http://www.test")
	r.Header.Set("Content-Type", "text/plain;charset=UTF-8")
	r.Header.Set("Referer", "http://www.test/news/1?secret=1")
	r.Body = nopCloser{strings.NewReader(body)}
	r.ContentLength = int64(len(body))
	return r
}

type nopCloser struct{ *strings.Reader }

func (nopCloser) Close() error { return nil }

func (a *answer) decode(t *testing.T, into any) {
	t.Helper()
	if a.status != http.StatusOK {
		t.Fatalf("status %d: %s", a.status, a.body())
	}
	if err := json.Unmarshal([]byte(a.body()), into); err != nil {
		t.Fatalf("%v in %s", err, a.body())
	}
}

type pageBidsAnswer struct {
	Slots []struct {
		ID          string
		GAMUnitPath string `json:"gam_unit_path"`
		DeadlineMS  int    `json:"deadline_ms"`
	}
	Bids   map[string]map[string]any
	Markup map[string]string
	Skip   string
}

// The whole of what the page would have held, when the auction is done, and not
// before.
func TestPageBids(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var asked atomic.Pointer[http.Request]
		a := newAsker(t, setup{}, func(w http.ResponseWriter, r *http.Request) {
			asked.Store(r)
			bids(120*time.Millisecond, "2.349")(w, r)
		})
		got := a.ask(t.Context(), pageBidsOf("/news/2%3Fx"))
		var body pageBidsAnswer
		got.decode(t, &body)
		if got.ended != 120*time.Millisecond {
			t.Errorf("answered after %v, want the bidder's 120ms", got.ended)
		}
		if len(body.Slots) != 1 || body.Slots[0].ID != "top" || body.Slots[0].GAMUnitPath != "/1/news/top" || body.Slots[0].DeadlineMS != 0 {
			t.Errorf("slots = %+v", body.Slots)
		}
		bid := body.Bids["top"]
		adID, _ := bid["hb_adid"].(string)
		if len(adID) != 22 || bid["hb_pb"] != "2.34" || bid["hb_bidder"] != "quick" || bid["burl"] != "https://n.test/b?p=2.349" || bid["nurl"] != nil {
			t.Errorf("bid = %v", bid)
		}
		if body.Markup[adID] != "<b>ad</b>" {
			t.Errorf("markup = %v", body.Markup)
		}
		if h := got.header; h.Get("Cache-Control") != "no-store" || h.Get("Content-Type") != "application/json" {
			t.Errorf("header = %v", h)
		}
		want := telemetry.Event{
			At: a.events[0].At, Site: "test", From: telemetry.PageBids, Outcome: "run", Slots: []deckle.SlotID{"top"},
			Providers: []telemetry.Provider{{Name: "prebid", Status: "bid", MS: 120, Bids: 1, NonBids: map[auction.NonBidReason]int{}}},
			Winners:   []telemetry.Winner{{Slot: "top", Bidder: "quick", Bucket: "2.34"}}, AuctionMS: 120, Notices: 1,
		}
		if diff := cmp.Diff([]telemetry.Event{want}, a.events); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// What bidders are told is the page, not the request for its bids.
func TestPageBidsRequest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var site struct {
			Site struct{ Page, Ref, Domain string }
		}
		a := newAsker(t, setup{}, func(w http.ResponseWriter, r *http.Request) {
			if err := json.NewDecoder(r.Body).Decode(&site); err != nil {
				t.Error(err)
			}
			w.WriteHeader(http.StatusNoContent)
		})
		a.ask(t.Context(), pageBidsOf("/news/2%3Fsecret%3D1"))
		if site.Site.Page != "http://www.test/news/2" || site.Site.Ref != "" || site.Site.Domain != "www.test" {
			t.Errorf("site = %+v", site.Site)
		}
	})
}

// The gate is the page's own; whoever it skips makes no call.
func TestPageBidsGate(t *testing.T) {
	for _, tt := range []struct {
		name    string
		setup   setup
		request func(*http.Request)
		outcome string
		skip    string
		slots   int
	}{
		{name: "no slot", request: func(r *http.Request) { r.URL.RawQuery = "path=/plain" }, outcome: "no_slot"},
		{name: "bot", request: func(r *http.Request) { r.Header.Set("User-Agent", "Googlebot/2.1") }, outcome: "bot", slots: 1},
		{name: "prefetch", request: func(r *http.Request) { r.Header.Set("Sec-Purpose", "prefetch") }, outcome: "prefetch", skip: "prefetch", slots: 1},
		{
			name: "no consent", setup: setup{config: func(c *edge.Config) { c.Consent = consent.Config{} }},
			outcome: "no_consent", skip: "no_consent", slots: 1,
		},
		{name: "no auction", setup: setup{config: func(c *edge.Config) { c.AuctionEnabled = false }}, outcome: "no_auction", slots: 1},
		{name: "site off", setup: setup{site: func(s *edge.Site) { s.Enabled = false }}, outcome: "disabled"},
		{name: "file off", setup: setup{settings: func(s *template.Settings) { s.Enabled = false }}, outcome: "disabled"},
		{name: "no template", setup: setup{site: func(s *edge.Site) { s.Template = func() *template.Template { return nil } }}, outcome: "disabled"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				a := newAsker(t, tt.setup, func(http.ResponseWriter, *http.Request) { t.Error("a bidder was asked") })
				r := pageBidsOf("/news/1")
				if tt.request != nil {
					tt.request(r)
				}
				var body pageBidsAnswer
				a.ask(t.Context(), r).decode(t, &body)
				if len(body.Slots) != tt.slots || len(body.Bids)+len(body.Markup) != 0 || body.Skip != tt.skip {
					t.Errorf("answer = %+v, want %d slots, no bids, skip %q", body, tt.slots, tt.skip)
				}
				if body.Slots == nil || body.Bids == nil || body.Markup == nil {
					t.Errorf("answer = %+v: a member is null", body)
				}
				if len(a.events) != 1 || a.events[0].Outcome != tt.outcome {
					t.Errorf("events = %+v, want one %s", a.events, tt.outcome)
				}
			})
		})
	}
}

// Neither another site nor a wrong request gets anything, nor costs a call.
func TestBidsAreRefused(t *testing.T) {
	unit := `{"adUnits":[{"code":"top"}]}`
	pageBids := func(change func(*http.Request)) *http.Request { r := pageBidsOf("/news/1"); change(r); return r }
	auctionOf := func(change func(*http.Request)) *http.Request { r := post(unit); change(r); return r }
	set := func(name, value string) func(*http.Request) {
		return func(r *http.Request) {
			if value == "" {
				r.Header.Del(name)
			} else {
				r.Header.Set(name, value)
			}
		}
	}
	for name, tt := range map[string]struct {
		r      *http.Request
		status int
		reason string
	}{
		"page-bids, cross-site":              {pageBids(set("Sec-Fetch-Site", "cross-site")), 403, "cross_site"},
		"page-bids, same-site":               {pageBids(set("Sec-Fetch-Site", "same-site")), 403, "cross_site"},
		"page-bids, typed by hand":           {pageBids(set("Sec-Fetch-Site", "none")), 403, "cross_site"},
		"page-bids, an old browser":          {pageBids(set("Sec-Fetch-Site", "")), 403, "cross_site"},
		"page-bids, without a path":          {pageBids(func(r *http.Request) { r.URL.RawQuery = "" }), 400, "missing_field"},
		"page-bids, a URL for a path":        {pageBids(func(r *http.Request) { r.URL.RawQuery = "path=https://a.example/" }), 400, "wrong_field"},
		"page-bids, another host for a path": {pageBids(func(r *http.Request) { r.URL.RawQuery = "path=//a.example/" }), 400, "wrong_field"},
		"page-bids, a path without end":      {pageBids(func(r *http.Request) { r.URL.RawQuery = "path=/" + strings.Repeat("a", 8<<10) }), 400, "wrong_field"},
		"page-bids, a path with a line":      {pageBids(func(r *http.Request) { r.URL.RawQuery = "path=/a%0Ab" }), 400, "wrong_field"},
		"page-bids, a path not encoded":      {pageBids(func(r *http.Request) { r.URL.RawQuery = "path=/%C3%A9" }), 400, "wrong_field"},
		"page-bids, another host":            {pageBids(func(r *http.Request) { r.Host = "other.test" }), 404, "unknown_host"},
		"page-bids, POST":                    {pageBids(func(r *http.Request) { r.Method = "POST" }), 405, "method"},
		"auction, another origin":            {auctionOf(set("Origin", "https://evil.example")), 403, "cross_site"},
		"auction, no origin at all":          {auctionOf(func(r *http.Request) { r.Header.Del("Origin"); r.Header.Del("Sec-Fetch-Site") }), 403, "cross_site"},
		"auction, a sandboxed page":          {auctionOf(set("Origin", "null")), 403, "cross_site"},
		"auction, another port":              {auctionOf(set("Origin", "http://www.test:8443")), 403, "cross_site"},
		"auction, a page without TLS":        {auctionOf(func(r *http.Request) { r.TLS = &tls.ConnectionState{} }), 403, "cross_site"},
		"auction, a file":                    {auctionOf(set("Origin", "file://www.test")), 403, "cross_site"},
		"auction, another host":              {auctionOf(func(r *http.Request) { r.Host = "other.test" }), 404, "unknown_host"},
		"auction, GET":                       {auctionOf(func(r *http.Request) { r.Method = "GET" }), 405, "method"},
		"auction, a form":                    {auctionOf(set("Content-Type", "application/x-www-form-urlencoded")), 415, "media_type"},
		"auction, no JSON":                   {post(`{"adUnits":`), 400, "bad_json"},
		"auction, nothing":                   {post(`{}`), 400, "missing_field"},
		"auction, 41 units":                  {post(`{"adUnits":[` + strings.TrimSuffix(strings.Repeat(unit[12:26]+",", 41), ",") + `]}`), 400, "wrong_field"},
		"auction, 256 KiB and a byte":        {post(unit + strings.Repeat(" ", 256<<10)), 413, "too_large"},
		"auction, a code that is none":       {post(`{"adUnits":[{"code":"/1/top"}]}`), 400, "wrong_field"},
		"auction, a code twice":              {post(`{"adUnits":[{"code":"top"},{"code":"top"}]}`), 400, "wrong_field"},
		"auction, a code without sizes":      {post(`{"adUnits":[{"code":"new"}]}`), 400, "missing_field"},
		"auction, a video":                   {post(`{"adUnits":[{"code":"new","mediaTypes":{"video":{}}}]}`), 400, "missing_field"},
		"auction, a size of nothing":         {post(`{"adUnits":[{"code":"top","mediaTypes":{"banner":{"sizes":[[0,250]]}}}]}`), 400, "wrong_field"},
		"auction, a size of three":           {post(`{"adUnits":[{"code":"top","mediaTypes":{"banner":{"sizes":[[1,2,3]]}}}]}`), 400, "wrong_field"},
		"auction, 21 sizes":                  {post(`{"adUnits":[{"code":"top","mediaTypes":{"banner":{"sizes":[` + strings.TrimSuffix(strings.Repeat("[1,1],", 21), ",") + `]}}}]}`), 400, "wrong_field"},
		"auction, a magazine slot":           {post(`{"adUnits":[{"code":"fold"}]}`), 400, "wrong_field"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				fold := slot("fold")
				fold.Kind = deckle.Magazine
				s := setup{slots: []deckle.Slot{slot("top"), fold}, patterns: []template.Patterns{{Include: []string{"/**"}}, {Include: []string{"/**"}}}}
				a := newAsker(t, s, func(http.ResponseWriter, *http.Request) { t.Error("a bidder was asked") })
				got := a.ask(t.Context(), tt.r)
				var body struct{ Error, Reason, Field string }
				if err := json.Unmarshal([]byte(got.body()), &body); err != nil || got.status != tt.status || body.Reason != tt.reason {
					t.Errorf("status %d, %s, %v; want %d %s", got.status, got.body(), err, tt.status, tt.reason)
				}
				if len(a.events) != 0 {
					t.Errorf("events = %+v, want none", a.events)
				}
			})
		})
	}
}

// An old browser, or one without TLS, says that it is the client by a header.
func TestPageBidsWithoutFetchMetadata(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newAsker(t, setup{}, bids(0, "1"))
		r := pageBidsOf("/")
		r.Header.Del("Sec-Fetch-Site")
		r.Header.Set("X-Deckle", "1")
		if got := a.ask(t.Context(), r); got.status != http.StatusOK {
			t.Errorf("status %d: %s", got.status, got.body())
		}
	})
}

// A bidder that hangs costs the rest of the page's time, no more.
func TestPageBidsDeadline(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newAsker(t, setup{}, hang)
		got := a.ask(t.Context(), pageBidsOf("/"))
		if got.ended != 500*time.Millisecond || got.status != http.StatusOK {
			t.Errorf("status %d after %v, want 200 at 500ms", got.status, got.ended)
		}
		if e := a.events[0]; !e.Deadline || e.Providers[0].Status != auction.StatusTimeout {
			t.Errorf("event = %+v", e)
		}
	})
}

// Each address has its share of both endpoints together.
func TestBidsAreLimited(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newAsker(t, setup{}, bids(0, "1"))
		a.config.Limiter = publicapi.NewLimiter(publicapi.Limit{PerMinute: 60, Burst: 2})
		var got []int
		for _, r := range []*http.Request{pageBidsOf("/"), post(`{"adUnits":[{"code":"top"}]}`), pageBidsOf("/")} {
			got = append(got, a.ask(t.Context(), r).status)
		}
		other := pageBidsOf("/")
		other.RemoteAddr = "192.0.2.8:1"
		got = append(got, a.ask(t.Context(), other).status)
		if !slices.Equal(got, []int{200, 200, 429, 200}) {
			t.Errorf("statuses = %v", got)
		}
	})
}

// What another site makes its readers send takes nothing of their share.
func TestAnotherSiteUsesUpNobodysShare(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newAsker(t, setup{}, bids(0, "1"))
		a.config.Limiter = publicapi.NewLimiter(publicapi.Limit{PerMinute: 60, Burst: 1})
		for range 3 {
			r := post(`{"adUnits":[{"code":"top"}]}`)
			r.Header.Set("Origin", "https://evil.test")
			other := pageBidsOf("/")
			other.Header.Set("Sec-Fetch-Site", "cross-site")
			for _, r := range []*http.Request{r, other} {
				if got := a.ask(t.Context(), r); got.status != http.StatusForbidden {
					t.Errorf("%s of another site: status %d", r.Method, got.status)
				}
			}
		}
		if got := a.ask(t.Context(), pageBidsOf("/")); got.status != http.StatusOK {
			t.Errorf("the site's own page after that: status %d", got.status)
		}
	})
}

// The page is what the Referer says, where it is one of the site.
func TestAuctionEndpointPage(t *testing.T) {
	for referer, want := range map[string]string{
		"http://www.test/news/1?q":       "http://www.test/news/1",
		"https://www.test/news/1":        "http://www.test/news/1", // behind a proxy that ends TLS and says nothing
		"https://evil.test/victim/1":     "http://www.test/",
		"http://www.test:8443/news/1":    "http://www.test/",
		"ftp://www.test/news/1":          "http://www.test/",
		"android-app://www.test/news/1":  "http://www.test/",
		"":                               "http://www.test/",
		"http://www.test.evil.test/news": "http://www.test/",
	} {
		bubble(t, func(t *testing.T) {
			var asked struct{ Site struct{ Page string } }
			a := newAsker(t, setup{}, func(w http.ResponseWriter, r *http.Request) {
				if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
					t.Error(err)
				}
				w.WriteHeader(http.StatusNoContent)
			})
			r := post(`{"adUnits":[{"code":"top"}]}`)
			r.Header.Set("Referer", referer)
			if a.ask(t.Context(), r); asked.Site.Page != want {
				t.Errorf("Referer %q: bidders are told of %q, want %q", referer, asked.Site.Page, want)
			}
		})
	}
}

// A winner is selected when the answer is with the reader: not before, not twice,
// and not when nobody is there any more.
func TestBidsAreSelectedOnDelivery(t *testing.T) {
	for name, tt := range map[string]struct {
		leaves  bool
		flush   error
		notices int
	}{
		"delivered":               {notices: 1},
		"left during the auction": {leaves: true},
		"cannot be written to":    {flush: fmt.Errorf("broken pipe")},
	} {
		for _, request := range []func() *http.Request{func() *http.Request { return pageBidsOf("/") }, func() *http.Request { return post(`{"adUnits":[{"code":"top"}]}`) }} {
			r := request()
			t.Run(name+" "+r.Method, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					a := newAsker(t, setup{notices: auction.NotifierConfig{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}, bids(100*time.Millisecond, "1"))
					ctx, leave := context.WithCancel(t.Context())
					defer leave()
					if tt.leaves {
						time.AfterFunc(50*time.Millisecond, leave)
					}
					h := a.edge.PageBids(a.config)
					if r.Method == http.MethodPost {
						h = a.edge.AuctionEndpoint(a.config)
					}
					got := &answer{started: time.Now(), header: http.Header{}, flushing: func(string) error { return tt.flush }}
					h.ServeHTTP(got, r.WithContext(ctx))
					if n := a.events[0].Notices; n != tt.notices {
						t.Errorf("%d notices in the event, want %d", n, tt.notices)
					}
					if a.events[0].Canceled != tt.leaves {
						t.Errorf("canceled = %v, want %v", a.events[0].Canceled, tt.leaves)
					}
				})
			})
		}
	}
}

type auctionAnswer struct {
	ID, Cur string
	SeatBid []struct {
		Seat string
		Bid  []struct {
			ID, ImpID, AdM, CrID, NURL, BURL string
			Price                            json.Number
			W, H, Exp                        int
			Ext                              struct{ Targeting map[string]string }
		}
	}
	Ext struct{ Skip string }
}

// A code of the template has its floor, its stored request and its unit path; the
// sizes are the page's. An unknown one has the site's default floor and the stored
// request of its own name.
func TestAuctionEndpoint(t *testing.T) {
	bubble(t, func(t *testing.T) {
		type imp struct {
			ID       string
			TagID    string
			BidFloor float64
			Banner   struct{ Format []deckle.Size }
			Ext      struct {
				Prebid struct {
					StoredRequest struct{ ID string }
				}
			}
		}
		var asked struct {
			TMax int
			Imp  []imp
			Site struct{ Page string }
		}
		top := slot("top")
		top.Floor, top.Prebid.StoredRequest = 1_000_000, "stored-top"
		a := newAsker(t, setup{slots: []deckle.Slot{top}, patterns: []template.Patterns{{Include: []string{"/elsewhere"}}}}, func(w http.ResponseWriter, r *http.Request) {
			if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
				t.Error(err)
			}
			bids(0, "2.349")(w, r)
		})
		got := a.ask(t.Context(), post(`{"adUnits":[
			{"code":"top","mediaTypes":{"banner":{"sizes":[[300,250],[300,600]]}},"bids":[{"bidder":"x","params":{"a":1}}]},
			{"code":"new-1","mediaTypes":{"banner":{"sizes":[[728,90]]}},"bids":[{"bidder":"x","params":{"a":1}}]}]}`))
		var body auctionAnswer
		got.decode(t, &body)
		if asked.TMax != 400 || asked.Site.Page != "http://www.test/news/1" || len(asked.Imp) != 2 {
			t.Errorf("asked %+v", asked)
		}
		known, unknown := asked.Imp[0], asked.Imp[1]
		if known.BidFloor != 1 || known.Ext.Prebid.StoredRequest.ID != "stored-top" || known.TagID != "/1/news/top" ||
			!slices.Equal(known.Banner.Format, []deckle.Size{{W: 300, H: 250}, {W: 300, H: 600}}) {
			t.Errorf("imp of a known code = %+v", known)
		}
		if unknown.ID != "new-1" || unknown.BidFloor != 0.25 || unknown.Ext.Prebid.StoredRequest.ID != "new-1" || unknown.TagID != "" {
			t.Errorf("imp of an unknown code = %+v", unknown)
		}
		if body.Cur != "USD" || len(body.SeatBid) != 1 || body.SeatBid[0].Seat != "quick" || len(body.SeatBid[0].Bid) != 1 {
			t.Fatalf("answer = %s", got.body())
		}
		b := body.SeatBid[0].Bid[0]
		if b.ID != "b1" || b.ImpID != "top" || b.Price != "2.349" || b.AdM != "<b>ad</b>" || b.W != 300 || b.H != 250 || b.Exp != 300 ||
			b.NURL != "" || b.BURL != "https://n.test/b?p=2.349" || b.Ext.Targeting["hb_pb"] != "2.34" || len(b.Ext.Targeting["hb_adid"]) != 22 {
			t.Errorf("bid = %+v", b)
		}
		if e := a.events[0]; e.From != telemetry.Endpoint || e.Outcome != "run" || len(e.Slots) != 2 || e.Notices != 1 {
			t.Errorf("event = %+v", e)
		}
	})
}

// Parameters from the browser leave only where the operator lets them, and never in
// place of a template's.
func TestClientParams(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			var asked struct {
				Imp []struct {
					ID  string
					Ext struct{ Prebid map[string]json.RawMessage }
				}
			}
			a := newAsker(t, setup{}, func(w http.ResponseWriter, r *http.Request) {
				if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
					t.Error(err)
				}
				w.WriteHeader(http.StatusNoContent)
			})
			a.config.ClientParams = allowed
			params := `"mediaTypes":{"banner":{"sizes":[[300,250]]}},"bids":[{"bidder":"rubicon","params":{"accountId":1}}]`
			a.ask(t.Context(), post(`{"adUnits":[{"code":"top",`+params+`},{"code":"new",`+params+`}]}`))
			want := map[bool]string{false: `{"id":"new"}`, true: `{"rubicon":{"accountId":1}}`}[allowed]
			got := string(asked.Imp[1].Ext.Prebid["storedrequest"]) + string(asked.Imp[1].Ext.Prebid["bidder"])
			if got != want {
				t.Errorf("allowed %v: new is asked for by %s, want %s", allowed, got, want)
			}
			if asked.Imp[0].Ext.Prebid["bidder"] != nil {
				t.Errorf("the template's slot is asked for by the browser's parameters: %v", asked.Imp[0].Ext.Prebid)
			}
			if !allowed {
				return
			}
			bad := a.ask(t.Context(), post(`{"adUnits":[{"code":"new","mediaTypes":{"banner":{"sizes":[[300,250]]}},"bids":[{"bidder":"x","params":{}}]}]}`))
			if bad.status != http.StatusBadRequest {
				t.Errorf("empty parameters: status %d", bad.status)
			}
		})
	}
}

// Whoever the gate skips gets an answer without bids that says why.
func TestAuctionEndpointGate(t *testing.T) {
	for outcome, s := range map[string]setup{
		"no_consent": {config: func(c *edge.Config) { c.Consent = consent.Config{} }},
		"no_auction": {config: func(c *edge.Config) { c.AuctionEnabled = false }},
		"disabled":   {site: func(s *edge.Site) { s.Template = func() *template.Template { return nil } }},
		"bot":        {},
		"prefetch":   {},
	} {
		bubble(t, func(t *testing.T) {
			a := newAsker(t, s, func(http.ResponseWriter, *http.Request) { t.Error("a bidder was asked") })
			r := post(`{"adUnits":[{"code":"top","mediaTypes":{"banner":{"sizes":[[300,250]]}}}]}`)
			switch outcome {
			case "bot":
				r.Header.Set("User-Agent", "curl/8")
			case "prefetch":
				r.Header.Set("Sec-Purpose", "prefetch;prerender")
			}
			var body auctionAnswer
			a.ask(t.Context(), r).decode(t, &body)
			if body.Ext.Skip != outcome || len(body.SeatBid) != 0 || body.ID == "" {
				t.Errorf("%s: answer = %+v", outcome, body)
			}
		})
	}
}

// Another host of the same site may ask; CORS lets its page read the answer.
func TestAuctionEndpointFromAnotherHost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newAsker(t, setup{site: func(s *edge.Site) { s.Hosts = append(s.Hosts, "amp.test") }}, bids(0, "1"))
		r := post(`{"adUnits":[{"code":"top"}]}`)
		r.Header.Set("Origin", "https://amp.test")
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		if got := a.ask(t.Context(), r); got.status != 200 || got.header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("status %d, header %v", got.status, got.header)
		}
	})
}

// Codes that no template has are a browser's words, without end: neither the figures
// nor the events repeat them.
func TestUnlistedCodesAreNotRepeated(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newAsker(t, setup{}, func(w http.ResponseWriter, r *http.Request) {
			var asked struct{ Imp []struct{ ID string } }
			if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
				t.Error(err)
			}
			var offers []string
			for _, imp := range asked.Imp {
				offers = append(offers, fmt.Sprintf(`{"id":%[1]q,"impid":%[1]q,"price":1,"adm":"<b>ad</b>","w":300,"h":250}`, imp.ID))
			}
			fmt.Fprintf(w, `{"id":"1","seatbid":[{"seat":"quick","bid":[%s]}]}`, strings.Join(offers, ","))
		})
		got := a.ask(t.Context(), post(`{"adUnits":[{"code":"top"},{"code":"reader-4711","mediaTypes":{"banner":{"sizes":[[300,250]]}}}]}`))
		if !strings.Contains(got.body(), `"impid":"reader-4711"`) {
			t.Fatalf("status %d: %s", got.status, got.body())
		}
		e := a.events[0]
		want := []telemetry.Winner{{Slot: "top", Bidder: "quick", Bucket: "1.00"}, {Slot: "other", Bidder: "quick", Bucket: "1.00"}}
		if diff := cmp.Diff(want, e.Winners); diff != "" || !slices.Equal(e.Slots, []deckle.SlotID{"top", "other"}) {
			t.Errorf("slots %v, winners (-want +got):\n%s", e.Slots, diff)
		}
	})
}
