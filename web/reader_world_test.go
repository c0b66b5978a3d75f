package web_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"deckle/internal/sim"
	"deckle/web"
)

// A readerSite is a site with one magazine slot, "sidebar-1", and what answers its
// batches: a small server of the reader plane's contract, which serves one creative
// a slot and honours its pins as long as it is not gone.
type readerSite struct {
	url string

	mu         sync.Mutex
	page       readerPage
	winners    map[string]winner // by slot id
	gone       map[string]bool   // creatives that have been taken off the site
	status     map[string]int    // what a path answers in place of what it should
	body       map[string]string // what a path answers with 200 in place of it
	retryInMs  int               // said once, with empty slots
	batches    []batch
	beacons    []string // "imp c1 dogeared=1"
	folds      []foldEvent
	heartbeats []string // "serve status_503"
}

// A readerPage is how the site's page is written.
type readerPage struct {
	csp, nonce string
	html       string // attributes of the html element
	first      string // what the head begins with
	head       string // the origin's, before our tag
	body       string // default: the slot
	tag        bool   // embeds a script tag; otherwise the edge has written hole 1
	bare       bool   // neither of them

	slow <-chan struct{} // the body is written when it is closed
}

type winner struct {
	creative string // its id
	campaign string
	json     string // members of the winner that are the creative's: pages, landingUrl
	noDogEar bool
	ends     int64 // pinExpiresAt
}

type batch struct {
	Pub, URL string
	Imp      []struct {
		ID   string
		W, H int
	}
	Pins   []struct{ SlotID, CreativeID string }
	Seen   map[string]struct{ H, D, W int }
	Recent []string
}

type foldEvent struct {
	Pub, URL, CreativeID, SlotID, Event, FoldToken string
	Page                                           int
}

const slot1 = `<div id="div-sidebar" style="width:300px"></div>`

// ferry is a magazine of five pages, one of each kind.
const ferry = `"landingUrl":"https://ferry.example/book?ref=deckle","pages":[
	{"tag":"Night boats","headline":"Sleep in one country, wake in another","sub":"Nine crossings worth a cabin","image":{"src":"/pictures/night-ferry.svg","alt":"A ferry under a low moon","focus":{"x":0.5,"y":0.4}},"background":"#1d1a36","ink":"#fdf6ea","accent":"#ffd9a8"},
	{"tag":"On board","headline":"The hour after the harbour","body":"At ten the bar shuts its grille and the deck belongs to the four of you who have stayed. The town behind becomes a string, then a thread, then a thing you might have imagined. Somebody has brought oranges. Nobody says so, but the whole voyage has been arranged around this hour: dark water, the long low note of the engine, and no possible errand.\nTake the outer cabin. It costs as much as a poor lunch, and at five the window turns from black to slate to a blue that has no name in the brochure.","image":{"src":"/pictures/reading-a-harbour.svg","alt":"Harbour lights from the stern","focus":{"x":0.5,"y":0.5}},"caption":"Departure, 22:10","background":"#faf6ee","ink":"#231f1a","accent":"#97391f"},
	{"tag":"What to bring","headline":"Wool, oranges, a slow book","sub":"And nothing that needs charging.","body":"A pullover that can be a pillow. A torch for the stairs. Something to share that needs a knife, since a table on a ship is a table with strangers at it, and by the second orange they have names. The book should be slightly too difficult, so that it lasts until the breakwater; leave it in the saloon for whoever sails back.\nShoes that a wet deck will not argue with. Earplugs against the man in the lower bunk. Coins for the coffee machine, which has outlived four captains and takes no cards.","background":"#f3e9d8","ink":"#2b2118","accent":"#8a3d20"},
	{"headline":"First light, starboard","image":{"src":"/pictures/slow-water.svg","alt":"Dawn over still water","focus":{"x":0.5,"y":0.5}},"background":"#fbe8cf","ink":"#3d2f42","accent":"#6d4a5c","caption":"04:50"},
	{"tag":"Nightboat","headline":"Nine lines, one cabin key","sub":"From 38 a night, breakfast at sea included.","body":"Sailings every evening from April to November. Bicycles travel free.","background":"#143642","ink":"#f6f1e7","accent":"#e9b66a","ctaLabel":"Choose a crossing"}]`

// startReaderSite starts the site; its page can be changed later.
func startReaderSite(t testing.TB, p readerPage) *readerSite {
	t.Helper()
	s := &readerSite{
		page:    p,
		winners: map[string]winner{"sidebar-1": {creative: "ferry-1", campaign: "camp-ferry", json: ferry}},
		gone:    map[string]bool{},
		status:  map[string]int{},
		body:    map[string]string{},
	}
	mux := http.NewServeMux()
	mux.Handle(web.Prefix, web.Client())
	mux.Handle("/pictures/", sim.NewPublisher(sim.PublisherOptions{}))
	mux.HandleFunc("/favicon.ico", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/{$}", s.servePage)
	mux.HandleFunc("/v1/serve/batch", s.api(s.serveBatch))
	mux.HandleFunc("/v1/dogear-event", s.api(s.serveFold))
	mux.HandleFunc("/v1/heartbeat", s.api(s.serveHeartbeat))
	for _, kind := range []string{"imp", "view", "click", "cta"} {
		mux.HandleFunc("/v1/"+kind, s.api(s.serveBeacon(kind)))
	}
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	s.url = srv.URL
	return s
}

// change changes how the site answers from now on.
func (s *readerSite) change(f func(*readerSite)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

// api is the contract's frame: CORS on every answer, and the failure that a test
// wants; -1 cuts the connection.
func (s *readerSite) api(h func(http.ResponseWriter, []byte, *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		if status, ok := s.status[r.URL.Path]; ok {
			if status < 0 {
				panic(http.ErrAbortHandler)
			}
			http.Error(w, `{"error":"a test wants it"}`, status)
			return
		}
		if answer, ok := s.body[r.URL.Path]; ok {
			io.WriteString(w, answer)
			return
		}
		h(w, body, r)
	}
}

func (s *readerSite) serveBatch(w http.ResponseWriter, body []byte, _ *http.Request) {
	var b batch
	if err := json.Unmarshal(body, &b); err != nil {
		http.Error(w, `{"error":"`+err.Error()+`"}`, http.StatusBadRequest)
		return
	}
	s.batches = append(s.batches, b)
	bids, stale := []string{}, []string{}
	asked := map[string]bool{}
	for _, imp := range b.Imp {
		asked[imp.ID] = true
	}
	for _, pin := range b.Pins {
		if s.gone[pin.CreativeID] && !asked[pin.SlotID] {
			stale = append(stale, fmt.Sprintf("%q", pin.CreativeID))
		}
	}
	for _, imp := range b.Imp {
		bids = append(bids, s.bid(imp.ID, b))
	}
	retry := ""
	if s.retryInMs > 0 {
		retry = fmt.Sprintf(`,"retryInMs":%d`, s.retryInMs)
		s.retryInMs = 0
	}
	fmt.Fprintf(w, `{"seatbid":[%s],"stalePins":[%s]%s}`, strings.Join(bids, ","), strings.Join(stale, ","), retry)
}

// bid is the entry of one slot.
func (s *readerSite) bid(id string, b batch) string {
	win, ok := s.winners[id]
	dogear := ""
	for _, pin := range b.Pins {
		switch {
		case pin.SlotID != id:
		case s.gone[pin.CreativeID]:
			dogear = `,"dogear":{"honored":false,"reason":"creative_removed"}`
		case ok && pin.CreativeID == win.creative:
			dogear = `,"dogear":{"honored":true}`
		}
	}
	if !ok || s.gone[win.creative] || s.retryInMs > 0 {
		return fmt.Sprintf(`{"id":%q,"reason":"no_candidates"%s}`, id, dogear)
	}
	urls := ""
	for _, kind := range []string{"imp", "view", "click", "cta"} {
		urls += fmt.Sprintf(`,"%sUrl":"/v1/%s?t=%s"`, kind, kind, win.creative)
	}
	if !win.noDogEar {
		urls += fmt.Sprintf(`,"foldToken":"token-%s-%d"`, win.creative, len(s.batches))
	}
	if win.ends > 0 {
		urls += fmt.Sprintf(`,"pinExpiresAt":%d`, win.ends)
	}
	return fmt.Sprintf(`{"id":%q,"winner":{"creativeId":%q,"campaignId":%q,"version":1,%s%s}%s}`,
		id, win.creative, win.campaign, win.json, urls, dogear)
}

func (s *readerSite) serveFold(w http.ResponseWriter, body []byte, _ *http.Request) {
	var e foldEvent
	if err := json.Unmarshal(body, &e); err != nil {
		http.Error(w, `{"error":"bad"}`, http.StatusBadRequest)
		return
	}
	s.folds = append(s.folds, e)
	w.WriteHeader(http.StatusNoContent)
}

func (s *readerSite) serveHeartbeat(w http.ResponseWriter, body []byte, _ *http.Request) {
	var h struct{ Pub, Stage, Reason string }
	if err := json.Unmarshal(body, &h); err == nil {
		s.heartbeats = append(s.heartbeats, h.Stage+" "+h.Reason)
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *readerSite) serveBeacon(kind string) func(http.ResponseWriter, []byte, *http.Request) {
	return func(w http.ResponseWriter, _ []byte, r *http.Request) {
		line := kind + " " + r.FormValue("t")
		if d := r.FormValue("dogeared"); d != "" {
			line += " dogeared=" + d
		}
		s.beacons = append(s.beacons, line)
		w.WriteHeader(http.StatusNoContent)
	}
}

// told is what has been told so far, in the order of the words.
func (s *readerSite) told() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(slices.Sorted(slices.Values(s.beacons)), ", ")
}

func (s *readerSite) foldEvents() []foldEvent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.folds)
}

func (s *readerSite) heard() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.heartbeats)
}

func (s *readerSite) asked() []batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.batches)
}

func (s *readerSite) servePage(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	p, winners := s.page, maps.Clone(s.winners)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if p.csp != "" {
		w.Header().Set("Content-Security-Policy", strings.ReplaceAll(p.csp, "ORIGIN", s.url))
	}
	body := p.body
	script := ""
	switch {
	case p.bare:
	case p.tag:
		script = fmt.Sprintf(`<script async src="%s%s" data-pub="test-site"></script>`, s.url, web.TagPath)
		if body == "" {
			body = `<div data-deckle-slot="sidebar-1" data-w="300" data-h="250"></div>`
		}
	default:
		script = hole1(p, winners)
		if body == "" {
			body = slot1
		}
	}
	viewport := `<meta name="viewport" content="width=device-width, initial-scale=1"><title>A page</title>`
	fmt.Fprintf(w, "<!doctype html><html %s><head>%s%s%s%s</head><body><main><h1>A page</h1>",
		cmp.Or(p.html, `lang="en"`), p.first, script, viewport, p.head)
	if p.slow != nil {
		http.NewResponseController(w).Flush()
		select {
		case <-p.slow:
		case <-r.Context().Done():
		}
	}
	io.WriteString(w, body+"</main></body></html>")
}

// hole1 is what the edge writes: the slots, and where the reader plane's script is.
func hole1(p readerPage, winners map[string]winner) string {
	open := "<script>"
	if p.nonce != "" {
		open = `<script nonce="` + p.nonce + `">`
	}
	var slots []string
	for _, id := range slices.Sorted(maps.Keys(winners)) {
		div := "div-" + strings.TrimSuffix(id, "-1")
		slots = append(slots, fmt.Sprintf(`{"id":%q,"div_id":%q,"formats":[[300,250]],"targeting":{},"kind":"magazine"}`, id, div))
	}
	return fmt.Sprintf(`<script type="application/json" data-deckle="slots">{"slots":[%s],"reader":{"src":%q,"pub":"test-site"}}</script>%s%s</script>`,
		strings.Join(slots, ","), web.ReaderPath(), open, web.SlotsRunner())
}
