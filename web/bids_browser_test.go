package web_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"deckle"
	"deckle/internal/auction"
	"deckle/internal/consent"
	"deckle/internal/edge"
	"deckle/internal/prebid"
	"deckle/internal/publicapi"
	"deckle/internal/sim"
	"deckle/internal/sim/browser"
	"deckle/internal/template"
	"deckle/web"
)

// A bidsSite is a site whose pages have slots and no bids, with the edge's own
// endpoints, a Prebid Server and an ad server behind them.
type bidsSite struct {
	*sim.World
	url  string
	held held
}

// held is a picture that is asked for and does not come until it is released.
type held struct {
	asked, released chan struct{}
}

func (h held) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	close(h.asked)
	select {
	case <-h.released:
	case <-r.Context().Done():
	}
	http.NotFound(w, r)
}

func (h held) release() { close(h.released) }

func (h held) waitAsked(t *testing.T) {
	t.Helper()
	select {
	case <-h.asked:
	case <-time.After(browser.Patience):
		t.Fatal("nobody has asked for the picture")
	}
}

func newBidsSite(t *testing.T, o sim.Options) *bidsSite {
	t.Helper()
	world, err := sim.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = world.Close() })
	s := &bidsSite{World: world, held: held{make(chan struct{}), make(chan struct{})}}
	log, figures := slog.New(slog.DiscardHandler), auction.NewMetrics()
	house := auction.New(auction.Config{Providers: []auction.Provider{{
		Name: "prebid", Timeout: 5 * time.Second, FireNURL: true, Dialect: prebid.New(prebid.Config{ServerURL: world.PrebidURL}),
	}}}, figures, log)
	notices := auction.NewNotifier(auction.NotifierConfig{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, figures, log)
	pages := edge.New(edge.Config{
		Sites:   []edge.Site{{ID: "site", Hosts: []string{"127.0.0.1"}, Enabled: true, Template: sidebars(t)}},
		Consent: consent.Config{UnknownPlace: consent.PlaceOther}, AuctionEnabled: true,
	}, edge.Own{}, house, notices, log)
	endpoints := edge.BidsConfig{
		API:     publicapi.New(publicapi.NewMetrics(), log),
		Limiter: publicapi.NewLimiter(publicapi.Limit{PerMinute: 6000, Burst: 1000}), Timeout: 5 * time.Second,
	}
	mux := http.NewServeMux()
	mux.Handle(web.Prefix, web.Client())
	mux.Handle(web.FramePath, web.Frame())
	mux.Handle(edge.PageBidsPath, pages.PageBids(endpoints))
	mux.Handle(edge.AuctionPath, pages.AuctionEndpoint(endpoints))
	mux.Handle("/held", s.held)
	mux.HandleFunc("/", s.page)
	srv := httptest.NewServer(mux)
	done := make(chan error, 1)
	ctx := t.Context()
	go func() { done <- notices.Run(ctx) }()
	t.Cleanup(func() {
		srv.Close()
		<-done
		house.Close()
		pages.Close()
	})
	s.url = srv.URL
	return s
}

// sidebars is a template with slot "side" on every page, and "tie" below /b as well.
func sidebars(t *testing.T) func() *template.Template {
	t.Helper()
	dense, _ := deckle.Granularity("dense")
	slot := func(id deckle.SlotID) deckle.Slot {
		return deckle.Slot{
			ID: id, Kind: deckle.GPT, GAMUnitPath: "/1/" + string(id), DivID: string(id), AdServer: deckle.GAM,
			Formats: []deckle.Size{{W: 300, H: 250}}, Prebid: deckle.PrebidParams{StoredRequest: string(id)},
		}
	}
	tmpl, err := template.New(template.Settings{
		Enabled: true, AuctionTimeout: 5 * time.Second, Buckets: dense, TargetingKeys: []string{"hb_pb", "hb_bidder", "hb_adid"},
	}, []deckle.Slot{slot("side"), slot("tie")}, []template.Patterns{{Include: []string{"/**"}}, {Include: []string{"/b{,/**}"}}})
	if err != nil {
		t.Fatal(err)
	}
	return func() *template.Template { return tmpl }
}

// page is a document as the edge delivers it, without bids. The query says what
// hole 1 holds beside the slots.
func (s *bidsSite) page(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	slot := map[string]any{"id": "side", "gam_unit_path": "/1/side", "div_id": "side", "formats": [][2]int{{300, 250}}, "targeting": map[string]any{}, "kind": "gpt"}
	if q.Has("own") {
		slot["ad_server"] = "none"
	}
	client := map[string]any{"src": web.ClientPath(), "gpt": "page", "gpt_url": s.GPTURL(), "init": "early"}
	if q.Has("bids") {
		client["bids"] = q.Get("bids")
	}
	if q.Has("spa") {
		client["spa"] = true
	}
	inline := ""
	if q.Has("own") {
		bids := fmt.Sprintf(`{"side":{"hb_adid":"AD1","hb_pb":"1.00","w":300,"h":250,"burl":"%s/ev/burl?b=own"}}`, s.PrebidURL)
		picture := s.PrebidURL + "/ev/imp?b=own"
		if q.Has("held") {
			picture = s.url + "/held"
		}
		markup := fmt.Sprintf(`{"AD1":"\u003cimg src='%s'>"}`, picture)
		inline = `<script type="application/json" data-deckle="bids">` + bids + `</script><script>` + web.BidsRunner() + `</script>` +
			`<script type="application/json" data-deckle="markup">` + markup + `</script>`
		if policy := q.Get("policy"); policy != "" {
			w.Header().Set("Content-Security-Policy", policy)
		}
	}
	block, err := json.Marshal(map[string]any{"slots": []any{slot}, "skip": q.Get("skip"), "client": client})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	fmt.Fprintf(w, `<!doctype html><html><head><script>
		window.seen = {requested: [], events: []};
		window.googletag = {cmd: []};
		googletag.cmd.push(() => googletag.pubads().addEventListener('slotRequested', ({slot}) => seen.requested.push({
			div: slot.getSlotElementId(), pb: slot.getTargeting('hb_pb').join(), id: slot.getTargeting('hb_adid').join(),
		})));
		window.deckle = {cmd: [() => ['auctionEnd', 'bidWon', 'adRendered'].forEach((name) => deckle.on(name, () => seen.events.push(name)))]};
		const answers = [];
		if (%t) window.__tcfapi = (command, version, listener) => answers.push(listener);
		const say = (yes) => answers.forEach((hear) => hear({eventStatus: 'useractioncomplete', gdprApplies: true, purpose: {consents: {1: yes, 2: yes}}}, true));
		</script><script type="application/json" data-deckle="slots">%s</script><script>%s</script>
		<script async src="%s"></script></head><body><div id="side" style="min-height:250px"></div>%s</body></html>`,
		q.Has("cmp"), block, web.SlotsRunner(), s.GPTURL(), inline)
}

// eagerCreative asks for its markup three times, and shows every answer that it gets.
const eagerCreative = `window.ucTag = {renderAd(doc, data) {
	const adId = data.targetingMap.hb_adid[0];
	for (let i = 0; i < 3; i++) {
		const {port1, port2} = new MessageChannel();
		port1.onmessage = ({data}) => doc.body.insertAdjacentHTML('beforeend', JSON.parse(data).ad);
		window.top.postMessage(JSON.stringify({message: 'Prebid Request', adId}), new URL(data.pubUrl).origin, [port2]);
	}
}};`

// asked is one slot as GPT asked the ad server for it.
type asked struct{ Div, PB, ID string }

func requests(p *browser.Page, n int) []asked {
	p.WaitFor(fmt.Sprintf("seen.requested.length >= %d", n))
	return browser.Eval[[]asked](p, "seen.requested")
}

// heard are the bids of which bidders have heard something, sorted; at least n.
func (s *bidsSite) heard(t *testing.T, kind string, n int) []string {
	t.Helper()
	for timeout := time.After(browser.Patience); ; {
		var bids []string
		for _, e := range s.Prebid.Events() {
			if e.Kind == kind {
				bids = append(bids, e.Bid)
			}
		}
		if slices.Sort(bids); len(bids) >= n {
			return bids
		}
		select {
		case <-timeout:
			t.Fatalf("bidders have heard %v of %s, want %d", bids, kind, n)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// once reports whether n different bids were told of, none twice.
func once(bids []string, n int) bool {
	return len(bids) == n && len(slices.Compact(slices.Clone(bids))) == n
}

func TestBidsWithoutAPage(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	open := func(t *testing.T, path string) (*bidsSite, *browser.Page) {
		t.Helper()
		t.Parallel()
		s := newBidsSite(t, sim.Options{})
		return s, b.Open(t, s.url+path, browser.Desktop())
	}
	// Everything that follows from one bid, each thing once.
	seeThrough := func(t *testing.T, s *bidsSite, p *browser.Page) {
		t.Helper()
		if got := requests(p, 1); len(got) != 1 || got[0].PB != "4.00" || len(got[0].ID) != 22 {
			t.Errorf("requested %+v, want side with its bid of 4.01", got)
		}
		nurl, burl := s.heard(t, "nurl", 1), s.heard(t, "burl", 1)
		if !once(nurl, 1) || !slices.Equal(nurl, burl) {
			t.Errorf("nurl of %v, burl of %v; want each once", nurl, burl)
		}
		p.WaitFor(`seen.events.length === 3`)
		if got := browser.Eval[[]string](p, `seen.events`); !slices.Contains(got, "auctionEnd") || !slices.Contains(got, "bidWon") || !slices.Contains(got, "adRendered") {
			t.Errorf("events = %v", got)
		}
		if errs := p.Errors(); len(errs) > 0 {
			t.Errorf("the page has said %q", errs)
		}
	}

	t.Run("bids = fetch", func(t *testing.T) {
		s, p := open(t, "/?bids=fetch")
		seeThrough(t, s, p)
	})
	t.Run("a prefetched page that is shown", func(t *testing.T) {
		s, p := open(t, "/?skip=prefetch")
		seeThrough(t, s, p)
	})
	t.Run("a yes that comes late", func(t *testing.T) {
		s, p := open(t, "/?skip=no_consent&cmp")
		p.WaitFor(`document.readyState === 'complete' && answers.length > 0`)
		if n := len(s.Prebid.Requests()); n != 0 {
			t.Errorf("bidders were asked %d times before the reader was", n)
		}
		browser.Eval[any](p, `say(true)`)
		seeThrough(t, s, p)
	})
	t.Run("a yes that the page tells", func(t *testing.T) {
		s, p := open(t, "/?skip=no_consent&cmp")
		p.WaitFor(`document.readyState === 'complete' && answers.length > 0`)
		browser.Eval[any](p, `deckle.consent(true)`)
		seeThrough(t, s, p)
	})
	t.Run("a no", func(t *testing.T) {
		s, p := open(t, "/?skip=no_consent&cmp")
		p.WaitFor(`document.readyState === 'complete' && answers.length > 0`)
		browser.Eval[any](p, `say(false)`)
		if got := requests(p, 1); got[0].PB+got[0].ID != "" {
			t.Errorf("requested %+v, want no bid", got)
		}
		browser.Eval[any](p, `deckle.refresh()`)
		if n := len(s.Prebid.Requests()); n != 0 || browser.Eval[int](p, `seen.requested.length`) != 1 {
			t.Errorf("bidders were asked %d times after a no, and the slot again", n)
		}
	})
	t.Run("refresh", func(t *testing.T) {
		s, p := open(t, "/?bids=fetch")
		s.heard(t, "burl", 1)
		browser.Eval[any](p, `deckle.refresh(['side'])`)
		got := requests(p, 2)
		if len(got) != 2 || got[1].PB != "4.00" || len(got[1].ID) != 22 || got[1].ID == got[0].ID {
			t.Errorf("requested %+v, want side twice, with another bid", got)
		}
		if nurl, burl := s.heard(t, "nurl", 2), s.heard(t, "burl", 2); !once(nurl, 2) || !slices.Equal(nurl, burl) {
			t.Errorf("nurl of %v, burl of %v; want two, each once", nurl, burl)
		}
	})
	t.Run("ad units", func(t *testing.T) {
		s, p := open(t, "/?bids=fetch")
		s.heard(t, "burl", 1)
		got := browser.Eval[[]string](p, `deckle.requestBids([{code: 'tie', mediaTypes: {banner: {sizes: [[300, 250]]}}}, {code: 'unknown', mediaTypes: {banner: {sizes: [[300, 250]]}}}])`)
		if !slices.Equal(got, []string{"tie"}) {
			t.Errorf("bids for %v, want tie", got)
		}
	})
	t.Run("a page that goes on", func(t *testing.T) {
		s, p := open(t, "/?bids=fetch&spa")
		s.heard(t, "burl", 1)
		// As a framework does it: the address first, the elements later.
		browser.Eval[any](p, `(history.pushState(null, '', '/b/2'), document.body.innerHTML = '<div id="side"></div>', setTimeout(() => document.body.insertAdjacentHTML('beforeend', '<div id="tie"></div>'), 50), 0)`)
		got := requests(p, 3)
		if got[1].Div != "side" || got[1].PB != "4.00" || got[1].ID == got[0].ID || got[2].Div != "tie" || got[2].PB != "2.00" {
			t.Errorf("requested %+v, want side anew and then tie", got)
		}
		if burl := s.heard(t, "burl", 3); !once(burl, 3) {
			t.Errorf("burl of %v, want three, each once", burl)
		}
		p.Do() // nothing is left of the page before
		if n := browser.Eval[int](p, `googletag.pubads().getSlots().length`); n != 2 {
			t.Errorf("%d slots are defined, want 2", n)
		}
	})
	t.Run("a creative that asks again and again", func(t *testing.T) {
		t.Parallel()
		s := newBidsSite(t, sim.Options{AdServer: sim.AdServerOptions{UniversalCreative: []byte(eagerCreative)}})
		p := b.Open(t, s.url+"/?bids=fetch", browser.Desktop())
		s.heard(t, "burl", 1)
		browser.Eval[any](p, `deckle.refresh()`) // what comes too often has come by the next round
		nurl, imp, burl := s.heard(t, "nurl", 2), s.heard(t, "imp", 2), s.heard(t, "burl", 2)
		if !once(imp, 2) || !once(burl, 2) || !slices.Equal(nurl, burl) {
			t.Errorf("nurl of %v, imp of %v, burl of %v; want two, each once", nurl, imp, burl)
		}
	})
	t.Run("two tabs", func(t *testing.T) {
		s, p := open(t, "/?bids=fetch")
		other := b.Open(t, s.url+"/?bids=fetch", browser.Desktop())
		requests(p, 1)
		requests(other, 1)
		if nurl, burl := s.heard(t, "nurl", 2), s.heard(t, "burl", 2); !once(burl, 2) || !slices.Equal(nurl, burl) {
			t.Errorf("nurl of %v, burl of %v; want one a tab, each once", nurl, burl)
		}
	})
	t.Run("back", func(t *testing.T) {
		s, p := open(t, "/?bids=fetch")
		s.heard(t, "burl", 1)
		p.Navigate(s.url + "/another?bids=fetch")
		s.heard(t, "burl", 2)
		browser.Eval[any](p, `(setTimeout(() => history.back()), 0)`)
		p.WaitFor(`location.pathname === '/' && window.deckle?.counts && document.readyState === 'complete'`)
		if restored := browser.Eval[bool](p, `performance.getEntriesByType('navigation')[0].type !== 'back_forward'`); restored {
			// The page is as it was left: nothing is shown, or billed, again.
			browser.Eval[any](p, `deckle.refresh()`)
		}
		nurl, burl := s.heard(t, "nurl", 3), s.heard(t, "burl", 3)
		if !once(burl, 3) || !slices.Equal(nurl, burl) {
			t.Errorf("nurl of %v, burl of %v; want three, each once", nurl, burl)
		}
	})
	t.Run("without an ad server", func(t *testing.T) {
		s, p := open(t, "/?own")
		if imp, burl := s.heard(t, "imp", 1), s.heard(t, "burl", 1); !once(imp, 1) || !once(burl, 1) {
			t.Errorf("imp of %v, burl of %v; want each once", imp, burl)
		}
		frame := browser.Eval[struct {
			Src  string `json:"src"`
			W, H string
		}](p, `(({src, width: W, height: H}) => ({src, W, H}))(document.querySelector('#side > iframe'))`)
		if !strings.HasSuffix(frame.Src, web.FramePath) || frame.W != "300" || frame.H != "250" {
			t.Errorf("frame = %+v", frame)
		}
		if n := browser.Eval[int](p, `seen.requested.length`); n != 0 {
			t.Errorf("the ad server was asked for %d slots", n)
		}
	})
	t.Run("without an ad server, an ad that takes its time", func(t *testing.T) {
		s, p := open(t, "/?own&held")
		s.held.waitAsked(t)
		browser.Eval[any](p, `new Promise((resolve) => setTimeout(resolve, 500))`) // what comes too early has come by then
		for _, e := range s.Prebid.Events() {
			if e.Kind == "burl" {
				t.Error("the bidder bills an ad that has not loaded")
			}
		}
		s.held.release()
		if burl := s.heard(t, "burl", 1); !once(burl, 1) {
			t.Errorf("burl of %v, want one", burl)
		}
	})
	t.Run("without an ad server, where the page's policy forbids frames", func(t *testing.T) {
		_, p := open(t, "/?own&policy=frame-src+https://ads.example")
		p.WaitFor(`deckle.counts.csp === 1`)
		if n := browser.Eval[int](p, `document.querySelectorAll('iframe').length`); n != 0 {
			t.Errorf("%d frames are left", n)
		}
	})
}
