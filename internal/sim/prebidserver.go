package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"deckle"
)

// PrebidOptions configures a [PrebidServer]. The zero value is ready to use.
type PrebidOptions struct {
	// Latency is how long every seat takes at least. Where the request's tmax is
	// shorter, the answer comes after tmax and names the seats that were late.
	Latency time.Duration

	// IgnoreTMax makes the server as late as its seats are, whatever tmax says.
	IgnoreTMax bool

	// Stored are the stored imps by id. Defaults to [StoredImps].
	Stored map[string]StoredImp

	// Rates are units of a currency for one US dollar. Defaults to EUR 0.8, as in
	// the captures.
	Rates map[string]float64

	// Seed of the order of seats. Defaults to one that differs with every start.
	Seed uint64
}

// A PrebidServer answers POST /openrtb2/auction as a real Prebid Server does, as
// far as the captures in testdata show it, with seats that always bid what is
// stored. It serves their creatives and takes their notices too:
//
//	POST /openrtb2/auction   bid request → bid response
//	GET  /img?s=&w=&h=       a seat's ad, as SVG
//	GET  /ev/{kind}?b=&p=    imp (pixel), nurl, burl, lurl, ran (a hostile script); /event: win and imp of Prebid Server itself
type PrebidServer struct {
	options PrebidOptions
	mux     http.ServeMux
	fault   atomic.Pointer[Fault]

	requests record[Request]
	events   record[Event]

	mu   sync.Mutex
	rand *rand.Rand
}

// An Event is a notice or an impression that a bidder has got.
type Event struct {
	At    time.Time
	Kind  string // imp, nurl, burl, lurl, ran; win and pbs-imp are Prebid Server's own
	Bid   string // bid.id
	Price string // what has been put in place of ${AUCTION_PRICE}
	Query string // the whole query, as it came
}

// NewPrebidServer makes a Prebid Server.
func NewPrebidServer(o PrebidOptions) *PrebidServer {
	if o.Stored == nil {
		o.Stored = StoredImps()
	}
	if o.Rates == nil {
		o.Rates = map[string]float64{"EUR": 0.8}
	}
	if o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	s := &PrebidServer{options: o, rand: rand.New(rand.NewPCG(o.Seed, 0))}
	s.mux.HandleFunc("POST /openrtb2/auction", s.auction)
	s.mux.HandleFunc("POST /cookie_sync", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"status":"ok","bidder_status":[]}`)
	})
	s.mux.HandleFunc("OPTIONS /openrtb2/auction", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Access-Control-Allow-Headers", "Content-Type")
		w.WriteHeader(http.StatusNoContent)
	})
	s.mux.HandleFunc("GET /img", image)
	s.mux.HandleFunc("GET /ev/{kind}", s.event)
	s.mux.HandleFunc("POST /ev/{kind}", s.event) // navigator.sendBeacon posts
	s.mux.HandleFunc("GET /event", s.event)
	s.mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	return s
}

// SetFault makes every auction fail from now on; with "" they succeed again.
func (s *PrebidServer) SetFault(f Fault) { s.fault.Store(&f) }

// Requests are the auctions asked for, oldest first.
func (s *PrebidServer) Requests() []Request { return s.requests.snapshot() }

// Events are the notices and impressions, oldest first.
func (s *PrebidServer) Events() []Event { return s.events.snapshot() }

func (s *PrebidServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if origin := r.Header.Get("Origin"); origin != "" { // Prebid.js asks from the page, with credentials
		w.Header().Set("Access-Control-Allow-Origin", origin)
		w.Header().Set("Access-Control-Allow-Credentials", "true")
	}
	s.mux.ServeHTTP(w, r)
}

// event notes a notice or an impression and answers with an empty picture.
func (s *PrebidServer) event(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	kind := r.PathValue("kind")
	if kind == "" {
		kind = q.Get("t")
		if kind == "imp" {
			kind = "pbs-imp"
		}
	}
	s.events.add(Event{At: time.Now(), Kind: kind, Bid: q.Get("b"), Price: q.Get("p"), Query: r.URL.RawQuery})
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "image/svg+xml")
	fmt.Fprint(w, `<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>`)
}

// auction is the whole of POST /openrtb2/auction.
func (s *PrebidServer) auction(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	note(&s.requests, r)
	if f := s.fault.Load(); f != nil && *f != "" {
		f.serve(w, r)
		return
	}
	var req bidRequest
	lax := json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err := json.UnmarshalRead(http.MaxBytesReader(w, r.Body, 256<<10), &req, lax); err != nil {
		refuse(w, err.Error())
		return
	}
	stored, problem := s.resolve(&req)
	if problem != "" {
		refuse(w, problem)
		return
	}
	for _, st := range stored {
		if st.Fault != "" {
			st.Fault.serve(w, r)
			return
		}
	}
	resp := s.answer(r.Context(), &req, stored, start, "//"+r.Host)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Prebid", "pbs-go/sim")
	_ = json.MarshalWrite(w, resp)
}

// refuse answers as Prebid Server does when one thing in the request is wrong: the
// whole request is lost, and the reason is plain text.
func refuse(w http.ResponseWriter, problem string) {
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprintf(w, "Invalid request: %s\n", problem)
}

// resolve finds what is stored for each imp, or says what is wrong with the request.
func (s *PrebidServer) resolve(req *bidRequest) (stored []StoredImp, problem string) {
	if len(req.Imp) == 0 {
		return nil, "request.imp must contain at least one element."
	}
	seen := map[string]int{}
	for i, im := range req.Imp {
		if im.ID == "" {
			return nil, fmt.Sprintf(`request.imp[%d] missing required field: "id"`, i)
		}
		if first, ok := seen[im.ID]; ok {
			return nil, fmt.Sprintf("request.imp[%d].id and request.imp[%d].id are both %q. Imp IDs must be unique.", first, i, im.ID)
		}
		seen[im.ID] = i
		st, problem := s.storedImp(&im, i)
		if problem != "" {
			return nil, problem
		}
		stored = append(stored, st)
	}
	return stored, ""
}

// storedImp is what is stored for an imp; for one with bidder parameters in place
// of a stored request, what is stored under the imp's id for those bidders.
func (s *PrebidServer) storedImp(im *imp, i int) (st StoredImp, problem string) {
	id := im.Ext.Prebid.StoredRequest.ID
	switch st, ok := s.options.Stored[id]; {
	case id != "" && ok:
		return st, ""
	case id != "":
		return StoredImp{}, fmt.Sprintf("Stored Imp with ID=%q not found.", id)
	}
	if len(im.Ext.Prebid.Bidder) == 0 {
		return StoredImp{}, fmt.Sprintf("request.imp[%d].ext.prebid.bidder must contain at least one bidder", i)
	}
	if len(im.Banner.Format) == 0 {
		return StoredImp{}, fmt.Sprintf("request.imp[%d].banner has no sizes. Define \"w\" and \"h\", or include \"format\" elements.", i)
	}
	st = s.options.Stored[im.ID]
	st.Offers = slices.DeleteFunc(slices.Clone(st.Offers), func(o Offer) bool {
		_, asked := im.Ext.Prebid.Bidder[o.Seat]
		return !asked
	})
	return st, ""
}

// answer runs the auction. base is this server's own address without a scheme.
func (s *PrebidServer) answer(ctx context.Context, req *bidRequest, stored []StoredImp, start time.Time, base string) *bidResponse {
	rules := req.rules()
	resp := &bidResponse{ID: req.ID}
	resp.Ext.Warnings = map[string][]extMessage{"general": {{warnDebugNotAllowed, "debug turned off for account"}}}
	resp.Ext.TMaxRequest = req.tmax()
	resp.Ext.Prebid.AuctionTimestamp = start.UnixMilli()
	if !req.consented() {
		resp.NBR = nbrInvalidRequest
		return resp
	}
	a := &seatAuction{
		req: req, stored: stored, base: base, start: start, resp: resp,
		cur: "USD", rate: 1, bids: map[string][]bid{}, late: map[string][]nonBid{},
		least: s.options.Latency, tmax: time.Duration(req.tmax()) * time.Millisecond,
	}
	if s.options.IgnoreTMax {
		a.tmax = 0
	}
	if len(req.Cur) > 0 && s.options.Rates[req.Cur[0]] > 0 {
		a.cur, a.rate = req.Cur[0], s.options.Rates[req.Cur[0]]
	}
	a.offers()
	wait(ctx, a.longest)
	a.report(time.Since(start))
	resp.Cur = a.cur
	if rules != nil {
		a.target(*rules)
	}
	resp.SeatBid = a.seatBids(s.shuffled)
	return resp
}

// shuffled puts seats into an order that nobody can rely on, as a real server does.
func (s *PrebidServer) shuffled(seats []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rand.Shuffle(len(seats), func(i, j int) { seats[i], seats[j] = seats[j], seats[i] })
}

// defaultTMax is that of the stored request "pub-default", in ms.
const defaultTMax = 500

// tmax is the request's time limit in ms; 0 = none.
func (r *bidRequest) tmax() int64 {
	if r.TMax == 0 && r.Ext.Prebid.StoredRequest.ID != "" {
		return defaultTMax
	}
	return r.TMax
}

// rules are the targeting rules of the request, or of the stored request; nil:
// the bids carry no targeting.
func (r *bidRequest) rules() *targetingRules {
	if r.Ext.Prebid.Targeting != nil {
		return r.Ext.Prebid.Targeting
	}
	if r.Ext.Prebid.StoredRequest.ID != "" {
		return &targetingRules{IncludeFormat: true}
	}
	return nil
}

// consented reports whether GDPR lets the request through: it does not apply, or
// there is a TC string. What the string permits is left to the caller.
func (r *bidRequest) consented() bool {
	applies := r.Regs.GDPR == 1 || r.Regs.Ext.GDPR == 1
	return !applies || r.User.Consent != "" || r.User.Ext.Consent != ""
}

// formats are the sizes of an imp: the request's, else the stored ones.
func (im *imp) formats(st *StoredImp) []deckle.Size {
	if len(im.Banner.Format) == 0 {
		return st.Formats
	}
	var sizes []deckle.Size
	for _, f := range im.Banner.Format {
		sizes = append(sizes, deckle.Size{W: f.W, H: f.H})
	}
	return sizes
}

// largestFor is the largest of sizes that suits the device: no wider than a phone
// where the user agent says that it is one.
func largestFor(ua string, sizes []deckle.Size) deckle.Size {
	const phoneWidth = 336
	var best, smallest deckle.Size
	for _, s := range sizes {
		if smallest.W == 0 || s.W < smallest.W {
			smallest = s
		}
		if strings.Contains(ua, "Mobile") && s.W > phoneWidth {
			continue
		}
		if s.W*s.H > best.W*best.H {
			best = s
		}
	}
	if best.W == 0 {
		return smallest
	}
	return best
}
