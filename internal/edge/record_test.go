package edge_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckle/internal/consent"
	"deckle/internal/edge"
	"deckle/internal/telemetry"
)

// Every page with slots is told of once, with what became of its auction.
func TestPagesAreRecorded(t *testing.T) {
	const page = "<!doctype html><html><head><title>t</title></head><body><div id=div-top></div></body></html>"
	for _, tt := range []struct {
		name    string
		origin  http.HandlerFunc
		bidder  http.HandlerFunc
		consent consent.Config
		path    string
		change  func(*http.Request)
		leaves  time.Duration
		want    telemetry.Event // but for its providers
		none    bool
	}{
		{name: "bids in head", origin: html(page), bidder: bids(50*time.Millisecond, "2"), want: telemetry.Event{
			Outcome: "run", Where: "head", AuctionMS: 50, HoldMS: 50, Notices: 1,
			Winners: []telemetry.Winner{{Slot: "top", Bidder: "quick", Bucket: "2.00"}},
		}},
		{name: "nobody answers", origin: html(page), bidder: hang, want: telemetry.Event{Outcome: "run", Where: "head", AuctionMS: 500, HoldMS: 500, Deadline: true}},
		{name: "no page", origin: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/pdf")
			_, _ = io.WriteString(w, "%PDF")
		}, bidder: hang, want: telemetry.Event{Outcome: "run", Where: "none", Canceled: true}},
		{name: "no origin", origin: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, bidder: hang, want: telemetry.Event{Outcome: "run", Where: "none", Canceled: true}},
		{
			name: "the reader leaves", origin: html(page), bidder: hang, leaves: 100 * time.Millisecond,
			want: telemetry.Event{Outcome: "run", Where: "none", AuctionMS: 100, HoldMS: 100, Canceled: true},
		},
		{name: "a bot", origin: html(page), bidder: hang, change: func(r *http.Request) { r.Header.Set("User-Agent", "curl/8") }, want: telemetry.Event{Outcome: "bot"}},
		{name: "no consent", origin: html(page), bidder: hang, consent: consent.Config{UnknownPlace: consent.PlaceGDPR}, want: telemetry.Event{Outcome: "no_consent"}},
		{name: "no slot", origin: html(page), bidder: hang, path: "/plain", none: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var got []telemetry.Event
				w := newWorld(t, setup{config: func(c *edge.Config) {
					c.Record = func(e telemetry.Event) { got = append(got, e) }
					if tt.consent.UnknownPlace != "" {
						c.Consent = tt.consent
					}
				}}, tt.origin, tt.bidder)
				path := tt.path
				if path == "" {
					path = "/news/1?secret=1"
				}
				r := navigation(path)
				if tt.change != nil {
					tt.change(r)
				}
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				if tt.leaves > 0 {
					time.AfterFunc(tt.leaves, leave)
				}
				w.get(ctx, r)
				if tt.none {
					if len(got) != 0 {
						t.Errorf("events = %+v, want none", got)
					}
					return
				}
				if len(got) != 1 {
					t.Fatalf("events = %+v, want one", got)
				}
				e := got[0]
				if len(e.Slots) != 1 || e.Slots[0] != "top" || e.Site != "test" || e.From != telemetry.Page || !e.At.Equal(w.started) {
					t.Errorf("event = %+v", e)
				}
				if len(e.Providers) == 1 && e.Providers[0].Name != "prebid" || e.Canceled && len(e.Providers) > 0 {
					t.Errorf("providers = %+v", e.Providers)
				}
				e.Slots, e.Site, e.From, e.At, e.Providers = nil, "", "", time.Time{}, nil
				if diff := cmp.Diff(tt.want, e); diff != "" {
					t.Errorf("event (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// What a browser says of itself in client hints goes to bidders with its user agent.
func TestClientHintsGoToBidders(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var body []byte
		w := newWorld(t, setup{}, html("<!doctype html><head></head><body></body>"), func(rw http.ResponseWriter, r *http.Request) {
			body, _ = io.ReadAll(r.Body)
			rw.WriteHeader(http.StatusNoContent)
		})
		r := navigation("/")
		r.Header.Set("Sec-CH-UA", `"Chromium";v="131"`)
		r.Header.Set("Sec-CH-UA-Mobile", "?1")
		w.get(t.Context(), r)
		want := `"sua":{"browsers":[{"brand":"Chromium","version":["131"]}],"mobile":1,"source":1}`
		if !strings.Contains(string(body), want) {
			t.Errorf("request = %s, want %s", body, want)
		}
	})
}
