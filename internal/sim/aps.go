package sim

import (
	"cmp"
	"fmt"
	"html"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"deckle"
)

// APSOptions configures an [APS]. The zero value is ready to use.
type APSOptions struct {
	// Latency is how long an answer takes.
	Latency time.Duration

	// Account is the only one that bids are made for. Defaults to [APSAccount].
	Account string

	// Offers are made for the slots with these ids at Amazon (imp.tagid). Defaults to
	// [APSOffers].
	Offers map[string]APSOffer
}

// An APSOffer is what APS bids for a slot, whenever it is asked.
type APSOffer struct {
	CPM     float64     // USD for a thousand impressions
	Size    deckle.Size // zero: the slot's first format
	TagType string      // "iframe" (default) or "script"
	Seat    string      // default: "amazon"
}

// APSAccount is the account that an [APS] knows unless it is told otherwise.
const APSAccount = "5001"

// An APS is Amazon Publisher Services, as far as its OpenRTB dialect goes: prices
// are in US dollars, a bid names a creative instead of bringing markup, and there
// are no notices.
//
//	POST /e/pb/bid          bid request → bid response, or 204
//	GET  /creative?b=&w=&h= a creative for a frame; /creative.js: one that is a script
//	GET  /ev/imp?b=         an impression, counted by the creative
type APS struct {
	options  APSOptions
	mux      http.ServeMux
	fault    atomic.Pointer[Fault]
	requests record[Request]
	events   record[Event]
}

// NewAPS makes an APS.
func NewAPS(o APSOptions) *APS {
	o.Account = cmp.Or(o.Account, APSAccount)
	if o.Offers == nil {
		o.Offers = APSOffers()
	}
	a := &APS{options: o}
	a.mux.HandleFunc("POST /e/pb/bid", a.bid)
	a.mux.HandleFunc("GET /creative", a.creative)
	a.mux.HandleFunc("GET /creative.js", a.script)
	a.mux.HandleFunc("GET /img", image)
	a.mux.HandleFunc("GET /ev/imp", a.impression)
	return a
}

// APSOffers are the offers that an [APS] makes unless it is told otherwise.
func APSOffers() map[string]APSOffer {
	return map[string]APSOffer{
		"aps-leaderboard": {CPM: 3.05},
		"aps-sidebar":     {CPM: 2.4, Size: deckle.Size{W: 300, H: 250}},
		"aps-script":      {CPM: 6, TagType: "script"},
		"aps-low":         {CPM: 0.01},
	}
}

// SetFault makes every auction fail from now on; with "" they succeed again.
func (a *APS) SetFault(f Fault) { a.fault.Store(&f) }

// Requests are the auctions asked for, oldest first.
func (a *APS) Requests() []Request { return a.requests.snapshot() }

// Events are the impressions that creatives have counted, oldest first.
func (a *APS) Events() []Event { return a.events.snapshot() }

func (a *APS) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.mux.ServeHTTP(w, r) }

// apsRequest is what an APS reads of an OpenRTB request.
type apsRequest struct {
	ID  string   `json:"id"`
	Imp []apsImp `json:"imp"`
	Ext struct {
		Account string `json:"account"`
	} `json:"ext"`
}

type apsImp struct {
	ID     string `json:"id"`
	TagID  string `json:"tagid"`
	Banner struct {
		W int `json:"w"`
		H int `json:"h"`
	} `json:"banner"`
	BidFloor float64 `json:"bidfloor"`
}

// apsBid is a bid as APS writes one.
type apsBid struct {
	ID      string    `json:"id"`
	ImpID   string    `json:"impid"`
	Price   float64   `json:"price"`
	W       int       `json:"w"`
	H       int       `json:"h"`
	MType   int       `json:"mtype"`
	CrID    string    `json:"crid"`
	ADomain []string  `json:"adomain"`
	Ext     apsBidExt `json:"ext"`
}

type apsBidExt struct {
	CreativeURL string `json:"creativeurl"`
	TagType     string `json:"tagtype"`
}

type apsSeat struct {
	Seat string   `json:"seat"`
	Bid  []apsBid `json:"bid"`
}

// bid is the whole of POST /e/pb/bid.
func (a *APS) bid(w http.ResponseWriter, r *http.Request) {
	note(&a.requests, r)
	if f := a.fault.Load(); f != nil && *f != "" {
		f.serve(w, r)
		return
	}
	var req apsRequest
	lax := json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err := json.UnmarshalRead(http.MaxBytesReader(w, r.Body, 256<<10), &req, lax); err != nil {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	wait(r.Context(), a.options.Latency)
	seats := a.seats(&req, "//"+r.Host)
	if len(seats) == 0 {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.MarshalWrite(w, struct {
		ID      string    `json:"id"`
		Cur     string    `json:"cur"`
		SeatBid []apsSeat `json:"seatbid"`
	}{req.ID, "USD", seats})
}

// seats are the bids for a request, a seat each. base is this server's own address
// without a scheme.
func (a *APS) seats(req *apsRequest, base string) (seats []apsSeat) {
	if req.Ext.Account != a.options.Account {
		return nil
	}
	for i, imp := range req.Imp {
		o, ok := a.options.Offers[imp.TagID]
		if !ok || o.CPM < imp.BidFloor {
			continue
		}
		size := o.Size
		if size.W == 0 {
			size = deckle.Size{W: imp.Banner.W, H: imp.Banner.H}
		}
		id := fmt.Sprintf("aps-%s-%d", req.ID, i)
		ext := apsBidExt{TagType: cmp.Or(o.TagType, "iframe")}
		path := "/creative"
		if ext.TagType == "script" {
			path = "/creative.js"
		}
		ext.CreativeURL = fmt.Sprintf("%s%s?b=%s&w=%d&h=%d", base, path, id, size.W, size.H)
		seats = append(seats, apsSeat{cmp.Or(o.Seat, "amazon"), []apsBid{{
			ID: id, ImpID: imp.ID, Price: o.CPM, W: size.W, H: size.H, MType: 1, CrID: "cr-" + imp.TagID,
			ADomain: []string{"shop.example"}, Ext: ext,
		}}})
	}
	return seats
}

// creative is a page with an ad, which counts its impression.
func (a *APS) creative(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, `<!doctype html><title>Ad</title><style>body{margin:0}</style>%s`, apsAd(r))
}

// script writes the same ad where it runs.
func (a *APS) script(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/javascript")
	literal, err := json.Marshal(strings.ReplaceAll(apsAd(r), "</", `<\/`))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	fmt.Fprintf(w, "document.write(%s)", literal)
}

func apsAd(r *http.Request) string {
	q := r.URL.Query()
	size := deckle.Size{W: within(q.Get("w"), 300), H: within(q.Get("h"), 250)}
	base := "//" + html.EscapeString(r.Host)
	return fmt.Sprintf(`<img src="%[1]s/img?s=amazon&amp;w=%[2]d&amp;h=%[3]d" width="%[2]d" height="%[3]d" alt="" style="display:block">`+
		`<img src="%[1]s/ev/imp?b=%[4]s" width="1" height="1" alt="" style="position:absolute">`,
		base, size.W, size.H, html.EscapeString(q.Get("b")))
}

func (a *APS) impression(w http.ResponseWriter, r *http.Request) {
	a.events.add(Event{At: time.Now(), Kind: "imp", Bid: r.URL.Query().Get("b"), Query: r.URL.RawQuery})
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "image/svg+xml")
	fmt.Fprint(w, `<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>`)
}
