package edge_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"deckle/internal/template"
)

const (
	headPart = "<!doctype html><html><head><title>t</title>"
	bodyPart = "</head><body><p>text</p>"
	lastPart = "<p>end</p></body></html>"

	ms = time.Millisecond
)

func headHold(d time.Duration) func(*template.Settings) {
	return func(s *template.Settings) { s.HeadHold = d }
}

// The whole of page-plane.md section 3, to the nanosecond: when each part of a
// page is with its reader, whatever origin and bidder do.
func TestDeadline(t *testing.T) {
	for name, c := range map[string]struct {
		hold   time.Duration
		origin http.HandlerFunc
		bidder http.HandlerFunc
		// when these are with the reader
		head, slots, bids, body, end time.Duration
		where                        string // text directly after the bids
	}{
		"bids before the page": {
			500 * ms, html(40*ms, headPart, bodyPart, lastPart), bids(20*ms, "2.5"),
			40 * ms, 40 * ms, 40 * ms, 40 * ms, 40 * ms, "</head>",
		},
		"the head waits for bids": {
			500 * ms, html(40*ms, headPart, bodyPart, lastPart), bids(80*ms, "2.5"),
			40 * ms, 40 * ms, 80 * ms, 80 * ms, 80 * ms, "</head>",
		},
		"it waits no longer than head_hold_ms": {
			100 * ms, html(40*ms, headPart, bodyPart, 400*ms, lastPart), bids(200*ms, "2.5"),
			40 * ms, 40 * ms, 200 * ms, 100 * ms, 400 * ms, "<p>end</p>",
		},
		"head_hold_ms = 0 never holds": {
			0, html(40*ms, headPart, bodyPart, 400*ms, lastPart), bids(200*ms, "2.5"),
			40 * ms, 40 * ms, 200 * ms, 40 * ms, 400 * ms, "<p>end</p>",
		},
		"late bids while the origin stalls": {
			0, html(10*ms, headPart, bodyPart, 5*time.Second, lastPart), bids(200*ms, "2.5"),
			10 * ms, 10 * ms, 200 * ms, 10 * ms, 5 * time.Second, "<p>end</p>",
		},
		"a bidder that hangs": {
			500 * ms, html(40*ms, headPart, bodyPart, lastPart), hang,
			40 * ms, 40 * ms, 500 * ms, 500 * ms, 500 * ms, "</head>",
		},
		"a bidder that drips": {
			500 * ms, html(40*ms, headPart, bodyPart, lastPart), drip,
			40 * ms, 40 * ms, 500 * ms, 500 * ms, 500 * ms, "</head>",
		},
		"a bidder that hangs, and no hold": {
			0, html(40*ms, headPart, bodyPart, lastPart), hang,
			40 * ms, 40 * ms, 500 * ms, 40 * ms, 500 * ms, "</body>",
		},
		"a bidder that hangs, and a slow origin": {
			100 * ms, html(40*ms, headPart, bodyPart, 2*time.Second, lastPart), hang,
			40 * ms, 40 * ms, 500 * ms, 100 * ms, 2 * time.Second, "<p>end</p>",
		},
		"the origin answers after A_deadline": {
			500 * ms, html(700*ms, headPart, bodyPart, lastPart), hang,
			700 * ms, 700 * ms, 700 * ms, 700 * ms, 700 * ms, "</head>",
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{settings: headHold(c.hold)}, c.origin, c.bidder)
				a := w.get(t.Context(), navigation("/2026/11/x"))
				for _, want := range []struct {
					what, text string
					at         time.Duration
				}{
					{"the head", "<title>", c.head},
					{"slots", `data-deckle="slots"`, c.slots},
					{"bids", `data-deckle="bids"`, c.bids},
					{"the body", "<p>text</p>", c.body},
					{"the end", "</html>", c.end},
				} {
					if got := a.when(want.text); got != want.at {
						t.Errorf("%s with the reader after %v, want %v", want.what, got, want.at)
					}
				}
				if a.ended != c.end || a.aborted {
					t.Errorf("ended after %v (aborted: %v), want %v", a.ended, a.aborted, c.end)
				}
				if after := a.after("bids"); !strings.HasPrefix(after, c.where) {
					t.Errorf("after the bids stands %.60q, want %q", after, c.where)
				}
				if got, want := withoutOurs(a.body()), headPart+bodyPart+lastPart; got != want {
					t.Errorf("without our elements: %q, want %q", got, want)
				}
			})
		})
	}
}

// A reader who leaves takes the origin's request and the auction along.
func TestReaderLeaves(t *testing.T) {
	bubble(t, func(t *testing.T) {
		gone := make(chan string, 2)
		watch := func(name string, h http.HandlerFunc) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				defer func() { gone <- name }()
				h(w, r)
			}
		}
		w := newWorld(t, setup{}, watch("origin", html(40*ms, headPart, bodyPart, time.Hour, lastPart)), watch("bidder", hang))
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(100*ms, leave)
		a := w.get(ctx, navigation("/2026/11/x"))
		if a.ended != 100*ms || !a.aborted {
			t.Errorf("ended after %v (aborted: %v), want 100ms", a.ended, a.aborted)
		}
		if got := a.when("data-deckle=\"bids\""); got >= 0 {
			t.Errorf("bids written after %v for nobody", got)
		}
		<-gone
		<-gone
		if took := time.Since(w.started); took != 100*ms {
			t.Errorf("origin and bidder were left after %v", took)
		}
	})
}

// While a hold lasts the origin's worker is not kept: what it writes is read.
func TestReadsAheadDuringHold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var written time.Duration
		start := time.Now()
		big := strings.Repeat("<p>text</p>", 20_000) // 220 kB
		origin := func(w http.ResponseWriter, r *http.Request) {
			html(headPart, bodyPart, big, lastPart)(w, r)
			written = time.Since(start)
		}
		w := newWorld(t, setup{}, origin, hang)
		a := w.get(t.Context(), navigation("/2026/11/x"))
		if written != 0 || a.ended != 500*ms {
			t.Errorf("origin was kept for %v of %v", written, a.ended)
		}
	})
}
