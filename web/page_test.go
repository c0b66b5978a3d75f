package web_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"deckle/internal/sim"
	"deckle/internal/sim/browser"
	"deckle/web"
)

// A delivery is a page with one slot, "top", as the edge would write it, in front
// of an ad server whose line items take its bid.
type delivery struct {
	cacheControl string
	settings     string // what hole 1 says besides slots and client, as JSON members
	deadline     string // of the slot, as a JSON member
	head         string // the origin's
	bids         string // hole 2 at the end of head
	body         string // default: the slot's element

	// late, when there is one, is written after the body and not before release is closed.
	late    string
	release chan struct{}
}

// site is where a delivery can be read.
type site struct {
	url string
	ads *sim.AdServer
}

const waits = `,"deadline_ms":20000` // far longer than what a test waits for

// bidsHole is hole 2 with a bid for "top".
func bidsHole() string { return bidsBlock + "<script>" + web.BidsRunner() + "</script>" }

// serve puts a delivery on loopback until the test ends.
func serve(t *testing.T, d delivery) site {
	t.Helper()
	ads := sim.NewAdServer(sim.AdServerOptions{})
	adServer := httptest.NewServer(ads)
	t.Cleanup(adServer.Close)

	hole1 := fmt.Sprintf(`<script type="application/json" data-deckle="slots">{"slots":[`+
		`{"id":"top","gam_unit_path":"/1/top","div_id":"top","formats":[[300,250]],"targeting":{"pos":["atf"]},"kind":"gpt"%s}],%s`+
		`"client":{"src":%q,"gpt":"load","gpt_url":"%s/tag/js/gpt.js","init":"early"}}</script><script>%s</script>`,
		d.deadline, d.settings, web.ClientPath(), adServer.URL, web.SlotsRunner())
	body := d.body
	if body == "" {
		body = `<div id="top"></div>`
	}
	const markup = `<script type="application/json" data-deckle="markup">{"AD1":"<b>ad</b>"}</script>`

	mux := http.NewServeMux()
	mux.Handle(web.Prefix, web.Client())
	mux.HandleFunc("/other", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<p>another page") })
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", d.cacheControl)
		io.WriteString(w, "<!doctype html><html><head>"+hole1+d.head+d.bids+"</head><body>"+body)
		if d.release != nil {
			http.NewResponseController(w).Flush()
			select {
			case <-d.release:
			case <-r.Context().Done():
			}
			io.WriteString(w, d.late)
		}
		io.WriteString(w, markup+"</body></html>")
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return site{url: srv.URL, ads: ads}
}

// served is what the ad server was asked for, one line an ad.
func (s site) served() string {
	var lines []string
	for _, ad := range s.ads.Served() {
		lines = append(lines, fmt.Sprint(ad.UnitPath, " ", ad.Targeting))
	}
	return strings.Join(lines, "\n")
}

const (
	withBid    = `/1/top map[hb_adid:[AD1] hb_pb:[1.00] pos:[atf] ts_initial:[1]]`
	withoutBid = `/1/top map[pos:[atf] ts_initial:[1]]`

	// GPT has rendered something, and no later request is under way.
	shown = `document.querySelector('#top iframe')`
)

func TestSlotsAndBids(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	for name, tt := range map[string]struct {
		delivery
		want string
	}{
		"bids at the end of head":     {delivery{deadline: waits, bids: bidsHole()}, withBid},
		"a slot that expects no bids": {delivery{}, withoutBid},
		"an element that a script creates later": {
			delivery{
				deadline: waits, bids: bidsHole(),
				body: `<script>setTimeout(() => document.body.insertAdjacentHTML('beforeend', '<div id="top"></div>'), 300)</script>`,
			},
			withBid,
		},
		"a reader whose refusal the edge could not know": {
			delivery{
				deadline: waits, bids: bidsHole(),
				head: `<script>__tcfapi = (command, version, hear) => hear({eventStatus: 'tcloaded', gdprApplies: true}, true)</script>`,
			},
			withoutBid,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, tt.delivery)
			b.Open(t, s.url, browser.Desktop()).WaitFor(shown)
			if got := s.served(); got != tt.want {
				t.Errorf("served:\n%s\nwant:\n%s", got, tt.want)
			}
		})
	}
}

func TestBidsThatComeLate(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	for name, tt := range map[string]struct {
		deadline string
		until    string // the bids are written when this is true in the page
		want     string
	}{
		"are waited for":                  {waits, `window.deckle`, withBid},
		"are too late after the deadline": {`,"deadline_ms":1`, shown, withoutBid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			release := make(chan struct{})
			s := serve(t, delivery{deadline: tt.deadline, release: release, late: bidsHole()})
			page := b.Open(t, "", browser.Desktop())
			// Navigate would wait for the document's end.
			browser.Eval[any](page, fmt.Sprintf(`void (location.href = %q)`, s.url))
			page.WaitFor(tt.until)
			close(release)
			page.WaitFor(shown + ` && window.__ts_bids && document.readyState === 'complete'`)
			if got := s.served(); got != tt.want {
				t.Errorf("served:\n%s\nwant:\n%s", got, tt.want)
			}
		})
	}
}

func TestNothingIsCalledBeforeTheReaderAnswers(t *testing.T) {
	t.Parallel()
	s := serve(t, delivery{
		settings: `"skip":"no_consent",`,
		head:     `<script>__tcfapi = (command, version, hear) => { answer = () => hear({eventStatus: 'useractioncomplete', gdprApplies: true}, true) }</script>`,
	})
	page := browser.Start(t).Open(t, s.url, browser.Desktop())
	page.WaitFor(`window.answer && document.readyState === 'complete'`)
	if n := browser.Eval[int](page, `performance.getEntriesByType('resource').filter(r => r.name.includes('gpt.js')).length`); n > 0 {
		t.Error("gpt.js was loaded before the reader had answered")
	}
	browser.Eval[any](page, `void answer()`)
	page.WaitFor(shown)
	if got := s.served(); got != withoutBid {
		t.Errorf("served:\n%s\nwant:\n%s", got, withoutBid)
	}
}

// A page that comes back out of the browser's HTTP cache has the bids of the
// earlier visit in it. They were paid for once.
func TestBidsAreNotUsedTwice(t *testing.T) {
	t.Parallel()
	s := serve(t, delivery{
		cacheControl: "private, max-age=0",
		deadline:     waits, bids: bidsHole(),
		// Keeps the page out of the back/forward cache, which would bring back the ad as well.
		head: `<script>addEventListener('unload', () => {})</script>`,
	})
	page := browser.Start(t).Open(t, s.url, browser.Desktop())
	page.WaitFor(shown)
	page.Navigate(s.url + "/other")
	page.Do(chromedp.NavigateBack())
	page.WaitFor(shown)
	if got, want := s.served(), withBid+"\n"+withoutBid; got != want {
		t.Errorf("served:\n%s\nwant:\n%s", got, want)
	}
}
