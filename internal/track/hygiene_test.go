package track_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"deckle/internal/journal"
	"deckle/internal/store/memory"
	"deckle/internal/token"
	"deckle/internal/track"
)

// What does not look like a reader is answered like everything else, and counts for
// nothing.
func TestMarks(t *testing.T) {
	const centre = "198.51.100.9"
	bot := http.Header{"User-Agent": {"examplebot/1.0"}}
	for name, c := range map[string]struct {
		address string
		header  http.Header
		want    journal.Suspect // of an unfold never
	}{
		"reader":             {reader, browser, 0},
		"bot":                {reader, bot, journal.SuspectBot},
		"data centre":        {centre, browser, journal.SuspectDataCentre},
		"bot in data centre": {centre, bot, journal.SuspectBot | journal.SuspectDataCentre},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(n *node, _ *memory.Log) {
				for _, e := range []token.Event{token.Imp, token.View, token.Click, token.CTA} {
					n.want(string(e), n.askAs(c.address, c.header, "GET", n.beacon(e, filled(1)), ""), 204, "")
				}
				fold := n.foldToken()
				n.want("fold", n.askAs(c.address, c.header, "POST", track.DogearPath, dogear("fold", fold)), 204, "")
				n.want("unfold", n.askAs(c.address, c.header, "POST", track.DogearPath, dogear("unfold", fold)), 204, "")
				for _, e := range n.events() {
					want := c.want
					if e.Kind == journal.Unfold {
						want = 0
					}
					if e.Suspect != want {
						t.Errorf("%v: marks %b, want %b", e.Kind, e.Suspect, want)
					}
				}
				counts := n.report()
				suspects := int64(0)
				if c.want != 0 {
					suspects = 5
				}
				if counts.Suspects != suspects || counts.Organic.Impressions+counts.Folds != 2-2*suspects/5 || counts.Unfolds != 1 {
					t.Errorf("%+v", counts)
				}
				marked := n.metric("deckle_track_suspects_total", map[string]string{"mark": "bot"})
				if want := float64(5 * (c.want & journal.SuspectBot)); marked != want {
					t.Errorf("%v bots were counted, want %v", marked, want)
				}
			})
		})
	}
}

// An address that tells more than readers do is suspect from there on, until it
// has been quiet; one of our own, or of a proxy that nobody has listed, is not.
func TestSuspectByRate(t *testing.T) {
	limits := track.DefaultLimits()
	for _, c := range []struct {
		tell  func(n *node, address string, i int) answer
		limit int
	}{
		{sight, limits.Sights.Burst},
		{click, limits.Clicks.Burst},
		{unfold, limits.Bookmarks.Burst},
	} {
		for address, limited := range map[string]bool{
			reader: true, "2001:db8::7": true,
			"127.0.0.1": false, "192.168.0.9": false, "100.64.3.3": false, "fd00::1": false, "fe80::1": false,
		} {
			inBubble(t, func(n *node, _ *memory.Log) {
				for i := range c.limit + 3 {
					n.want("all are taken", c.tell(n, address, i), 204, "")
				}
				time.Sleep(time.Minute) // of the bubble
				c.tell(n, address, c.limit+3)
				for i, e := range n.events() {
					want := journal.Suspect(0)
					if limited && i >= c.limit && i < c.limit+3 {
						want = journal.SuspectRate
					}
					if e.Suspect != want {
						t.Fatalf("%s: event %d of %d has marks %b, want %b", address, i+1, c.limit, e.Suspect, want)
					}
				}
			})
		}
	}
}

func sight(n *node, address string, i int) answer {
	return n.askAs(address, browser, "GET", n.beacon([]token.Event{token.Imp, token.View}[i%2], filled(i)), "")
}

func click(n *node, address string, i int) answer {
	return n.askAs(address, browser, "GET", n.beacon([]token.Event{token.Click, token.CTA}[i%2], filled(i)), "")
}

func unfold(n *node, address string, i int) answer {
	folded := n.ring.MintFold(slot(), time.Now().Add(-time.Duration(i)*time.Millisecond))
	return n.askAs(address, browser, "POST", track.DogearPath, dogear("unfold", folded))
}

// Unfolds that nothing proves come into the journal only from an address that does
// not look suspect, and not without end from all of them together. Those with a proof
// are not held up by them.
func TestUnprovenUnfoldsAreBounded(t *testing.T) {
	limits := track.DefaultLimits()
	unproven := func(n *node, i int) {
		t.Helper()
		address := fmt.Sprintf("203.0.%d.%d", 113+i/250, i%250)
		n.want("unfold", n.askAs(address, browser, "POST", track.DogearPath, dogear("unfold", "")), 204, "")
	}
	check := func(n *node, written int, dropped float64) {
		t.Helper()
		if got := n.kinds()[journal.Unfold]; got != written || n.counted("unfold", "dropped") != dropped {
			t.Errorf("%d were written, want %d; %v dropped, want %v", got, written, n.counted("unfold", "dropped"), dropped)
		}
	}
	t.Run("one address", func(t *testing.T) {
		inBubble(t, func(n *node, _ *memory.Log) {
			for range limits.Bookmarks.Burst + 3 {
				unproven(n, 0)
			}
			check(n, limits.Bookmarks.Burst, 3)
		})
	})
	t.Run("many addresses", func(t *testing.T) {
		inBubble(t, func(n *node, _ *memory.Log) {
			for i := range limits.Unverified.Burst + 3 {
				unproven(n, i)
			}
			check(n, limits.Unverified.Burst, 3)
			n.want("with a proof", unfold(n, reader, 1), 204, "")
			time.Sleep(time.Minute / time.Duration(limits.Unverified.PerMinute)) // of the bubble
			unproven(n, 1)
			unproven(n, 2)
			check(n, limits.Unverified.Burst+2, 4)
		})
	})
}

// Who asks without end is refused, whatever it is that is asked for, alone, and not
// for ever.
func TestAbuse(t *testing.T) {
	inBubble(t, func(n *node, _ *memory.Log) {
		body := dogear("unfold", "")
		targets := []struct{ method, target, body string }{{"GET", "/v1/imp?t=x", ""}, {"GET", "/v1/cta", ""}, {"POST", track.DogearPath, "{"}}
		for i := range track.DefaultLimits().Refuse.Burst {
			c := targets[i%len(targets)]
			if got := n.ask(c.method, c.target, c.body); got.status != 403 && got.status != 400 {
				t.Fatalf("request %d: %v", i, got)
			}
		}
		imp := n.beacon(token.Imp, filled(1))
		n.want("imp", n.ask("GET", imp, ""), 429, "rate")
		n.want("unfold", n.ask("POST", track.DogearPath, body), 429, "rate")
		n.want("preflight", n.ask("OPTIONS", track.DogearPath, ""), 204, "")
		n.want("another reader", n.askAs("203.0.113.8", browser, "GET", n.beacon(token.Imp, filled(2)), ""), 204, "")
		if got := len(n.events()); got != 1 {
			t.Errorf("%d events", got)
		}
		time.Sleep(time.Second) // of the bubble; what Retry-After says
		n.want("a second later", n.ask("GET", imp, ""), 204, "")
		if got := n.metric("deckle_reader_requests_total", map[string]string{"endpoint": "imp", "status": "429"}); got != 1 {
			t.Errorf("%v refusals of imp were counted", got)
		}
	})
}
