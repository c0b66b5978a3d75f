package edge_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"deckle"
	"deckle/internal/auction"
	"deckle/internal/edge"
	"deckle/internal/template"
)

// A noticeServer is where bidders want to hear that they have won.
type noticeServer struct {
	*httptest.Server
	mu    sync.Mutex
	heard []string // the queries of the notices
}

func newNoticeServer(t *testing.T) *noticeServer {
	s := &noticeServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.heard = append(s.heard, r.URL.RawQuery)
	}))
	t.Cleanup(s.Close)
	return s
}

// after sends the notices that wait, ends the notifier, and returns all notices
// that have been heard until then.
func (s *noticeServer) after(t *testing.T, n *auction.Notifier) string {
	t.Helper()
	ended, end := context.WithCancel(t.Context())
	end()
	if err := n.Run(ended); err != nil {
		t.Error(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.heard, " ")
}

// bidder bids on "top" and "side", and once more below, with notices to s.
func (s *noticeServer) bidder(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	bid := func(id, slot, price string) string {
		return fmt.Sprintf(`{"id":%q,"impid":%q,"price":%s,"adm":"<b>","w":300,"h":250,"nurl":"%s/?%[1]s=${AUCTION_PRICE}","burl":"https://b.test/"}`,
			id, slot, price, s.URL)
	}
	fmt.Fprintf(w, `{"id":"1","cur":"USD","seatbid":[{"seat":"s","bid":[%s,%s,%s]}]}`,
		bid("a", "top", "2.5"), bid("b", "side", "1.5"), bid("c", "top", "0.5"))
}

// noticeWorld is a page with slots "top" and "side", with real sockets.
func noticeWorld(t *testing.T, s *noticeServer, provider func(*auction.Provider), origin http.HandlerFunc) *world {
	everywhere := template.Patterns{Include: []string{"/**"}}
	return newWorld(t, setup{
		sockets: true, provider: provider,
		notices:  auction.NotifierConfig{Workers: 1, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		settings: func(s *template.Settings) { s.AuctionTimeout, s.HeadHold = 10*time.Second, 10*time.Second },
		slots:    []deckle.Slot{slot("top"), slot("side")}, patterns: []template.Patterns{everywhere, everywhere},
	}, origin, s.bidder)
}

// Each winner's notice goes out, once, and no loser's.
func TestNoticesOfWinners(t *testing.T) {
	s := newNoticeServer(t)
	w := noticeWorld(t, s, nil, html(page))
	if a := w.get(t.Context(), navigation("/x")); a.aborted || !strings.Contains(a.body(), `data-deckle="bids"`) {
		t.Fatalf("no bids in %q", a.body())
	}
	if got, want := s.after(t, w.notices), "a=2.5 b=1.5"; got != want {
		t.Errorf("heard %q, want %q", got, want)
	}
}

// Also where the bids are the last thing in a document.
func TestNoticesAtTheEndOfTheDocument(t *testing.T) {
	s := newNoticeServer(t)
	w := noticeWorld(t, s, nil, html("<!doctype html><title>t</title>"))
	w.get(t.Context(), navigation("/x"))
	if got, want := s.after(t, w.notices), "a=2.5 b=1.5"; got != want {
		t.Errorf("heard %q, want %q", got, want)
	}
}

// No notice waits to be sent before the bids are with the reader.
func TestNoticesFollowTheBids(t *testing.T) {
	s := newNoticeServer(t)
	w := noticeWorld(t, s, nil, html(page))
	flushed := false
	w.read(t.Context(), navigation("/x"), &answer{flushing: func(text string) error {
		if !flushed && strings.Contains(text, `data-deckle="bids"`) {
			flushed = true
			if got := s.after(t, w.notices); got != "" { // what comes later is dropped
				t.Errorf("heard %q before the bids were with the reader", got)
			}
		}
		return nil
	}})
	if !flushed {
		t.Error("no bids in the page")
	}
}

// Where no bids came to a reader, nobody has won.
func TestNoNoticesForNobody(t *testing.T) {
	for name, c := range map[string]struct {
		origin http.HandlerFunc
		reader func(leave func()) *answer
	}{
		"the reader has left": {html(headPart, bodyPart, lastPart), func(leave func()) *answer {
			return &answer{writing: func() error { leave(); return nil }, flushing: func(string) error { return errors.New("broken pipe") }}
		}},
		"the bids cannot be written": {html(page), func(func()) *answer {
			return &answer{flushing: func(text string) error {
				if strings.Contains(text, `data-deckle="bids"`) {
					return errors.New("broken pipe")
				}
				return nil
			}}
		}},
		"nothing can go in":       {answerWith(200, map[string]string{"Content-Type": "application/json"}, "{}"), func(func()) *answer { return &answer{} }},
		"the origin fails":        {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, func(func()) *answer { return &answer{} }},
		"the page has no body":    {html("<!doctype html><html><head><!-- "), func(func()) *answer { return &answer{} }},
		"the page is cut in head": {answerWith(200, map[string]string{"Content-Length": "5000"}, headPart), func(func()) *answer { return &answer{} }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newNoticeServer(t)
			w := noticeWorld(t, s, nil, c.origin)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			w.read(ctx, navigation("/x"), c.reader(leave))
			if got := s.after(t, w.notices); got != "" {
				t.Errorf("heard %q", got)
			}
		})
	}
}

// A provider whose notices are the client's: the page has them, and the edge is
// silent.
func TestNoticesOfTheClient(t *testing.T) {
	for _, atEdge := range []bool{true, false} {
		s := newNoticeServer(t)
		w := noticeWorld(t, s, func(p *auction.Provider) { p.FireNURL = atEdge }, html(page))
		var won bidsBlock
		w.get(t.Context(), navigation("/x")).block(t, "bids", &won)
		if heard := s.after(t, w.notices) != ""; heard != atEdge {
			t.Errorf("at the edge: %v, heard: %v", atEdge, heard)
		}
		want := any(s.URL + "/?a=2.5")
		if atEdge {
			want = nil
		}
		if got := won["top"]["nurl"]; got != want {
			t.Errorf("at the edge: %v, nurl = %v", atEdge, got)
		}
		if got := won["top"]["burl"]; got != "https://b.test/" {
			t.Errorf("burl = %v", got)
		}
	}
}

// Slots that no auction is held for wait for none.
func TestDeadlineIsForGPTSlots(t *testing.T) {
	bubble(t, func(t *testing.T) {
		magazine := deckle.Slot{ID: "mag", Kind: deckle.Magazine, DivID: "m", Formats: []deckle.Size{{W: 300, H: 250}}}
		everywhere := template.Patterns{Include: []string{"/**"}}
		w := newWorld(t, setup{slots: []deckle.Slot{slot("top"), magazine}, patterns: []template.Patterns{everywhere, everywhere}}, html(page), bids(0, "1"))
		var slots slotsBlock
		w.get(t.Context(), navigation("/x")).block(t, "slots", &slots)
		if len(slots.Slots) != 2 || slots.Slots[0].DeadlineMS == 0 || slots.Slots[1].DeadlineMS != 0 {
			t.Errorf("slots = %+v", slots.Slots)
		}
	})
}

func TestBURLOnIsTheProviders(t *testing.T) {
	for on, want := range map[string]any{ // the provider is "pbs"
		"":              nil,
		"pbs=render":    "render",
		"pbs=creative":  nil, // the default is not told
		"prebid=render": nil,
	} {
		bubble(t, func(t *testing.T) {
			provider, when, _ := strings.Cut(on, "=")
			w := newWorld(t, setup{provider: func(p *auction.Provider) { p.Name = "pbs" }, config: func(c *edge.Config) { c.BURLOn = map[string]string{provider: when} }}, html(page), bids(0, "1"))
			var won bidsBlock
			w.get(t.Context(), navigation("/x")).block(t, "bids", &won)
			if got := won["top"]["burl_on"]; got != want || won["top"]["burl"] == nil {
				t.Errorf("%q: %v", on, won["top"])
			}
			a := &asker{world: w, config: bidsConfig()}
			var answer struct {
				SeatBid []struct {
					Bid []struct {
						BURL string
						Ext  map[string]any
					}
				}
			}
			a.ask(t.Context(), post(`{"adUnits":[{"code":"top"}]}`)).decode(t, &answer)
			if bid := answer.SeatBid[0].Bid[0]; bid.Ext["burl_on"] != want || bid.BURL == "" {
				t.Errorf("%q: POST /auction: %+v", on, bid)
			}
		})
	}
}

// A bid says how long it lasts where that is less than what the client assumes.
func TestExpiryInTheBid(t *testing.T) {
	for exp, want := range map[int]any{0: nil, 1: 1.0, 299: 299.0, 300: nil, 3600: nil} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t, setup{}, html(page), func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				fmt.Fprintf(w, `{"id":"1","seatbid":[{"bid":[{"id":"a","impid":"top","price":1,"adm":"<b>","w":300,"h":250,"exp":%d}]}]}`, exp)
			})
			var won bidsBlock
			w.get(t.Context(), navigation("/x")).block(t, "bids", &won)
			if got := won["top"]["exp"]; got != want {
				t.Errorf("exp of %d is %v, want %v", exp, got, want)
			}
		})
	}
}

// deadline_ms is what is left when the slots are written, and never nothing: a
// client without it would not wait for bids that have come.
func TestDeadlineInTheSlots(t *testing.T) {
	for origin, want := range map[time.Duration]int64{0: 500, 120 * ms: 380, 499 * ms: 1, 500 * ms: 1, 700 * ms: 1} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t, setup{}, html(origin, page), bids(0, "1"))
			var slots slotsBlock
			w.get(t.Context(), navigation("/x")).block(t, "slots", &slots)
			if got := slots.Slots[0].DeadlineMS; got != want {
				t.Errorf("after %v: %d, want %d", origin, got, want)
			}
		})
	}
}
