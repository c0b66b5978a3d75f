package auction_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckle"
	"deckle/internal/auction"
	"deckle/internal/auction/auctiontest"
)

// inTurn answers one request after the other, on however many connections.
func inTurn(answers ...auctiontest.Server) auctiontest.Server {
	turn := 0
	return func(c *auctiontest.Conn) {
		turn++
		answers[min(turn, len(answers))-1](c)
	}
}

// once answers one request after d and closes the connection.
func once(d time.Duration, text string) auctiontest.Server {
	return func(c *auctiontest.Conn) {
		if c.ReadRequest() && c.Pause(d) {
			c.Send(text)
		}
	}
}

// picky is a dialect that notes which slots it is asked for.
type picky struct {
	plain
	asked *[][]string
}

func (d picky) Encode(r *auction.Request, tmax time.Duration) (*auction.Call, error) {
	var ids []string
	for i := range r.Slots {
		ids = append(ids, string(r.Slots[i].ID))
	}
	if ids == nil {
		return nil, nil
	}
	*d.asked = append(*d.asked, ids)
	return d.plain.Encode(r, tmax)
}

// Slots that a provider refuses do not cost the others: it is asked once more
// without them, if time remains.
func TestRefusedSlots(t *testing.T) {
	const refusal = "Invalid request: Stored Imp with ID=\"x\" not found.\n"
	refuse := auctiontest.Response("400 Bad Request", "Connection: close\r\n", refusal)
	answers := auctiontest.Response("200 OK", "Connection: close\r\n", good)
	both, top := []string{"top", "side"}, []string{"top"}
	for _, tt := range []struct {
		name    string
		serve   auctiontest.Server
		blame   []int
		asked   [][]string
		status  auction.Status
		nonBids map[auction.NonBidReason]int
		took    time.Duration
	}{
		{
			"answers without them", inTurn(once(100*time.Millisecond, refuse), once(100*time.Millisecond, answers)),
			[]int{1},
			[][]string{both, top},
			"bid",
			map[auction.NonBidReason]int{"imp_refused": 1},
			200 * time.Millisecond,
		},
		{
			"refuses again", inTurn(once(0, refuse)),
			[]int{1},
			[][]string{both, top},
			"http_status",
			map[auction.NonBidReason]int{"imp_refused": 1},
			0,
		},
		{
			"hangs then", inTurn(once(100*time.Millisecond, refuse), auctiontest.Hang),
			[]int{1},
			[][]string{both, top},
			"timeout",
			map[auction.NonBidReason]int{"imp_refused": 1},
			290 * time.Millisecond,
		},
		{
			"has no time left", inTurn(once(289500*time.Microsecond, refuse)),
			[]int{1},
			[][]string{both},
			"http_status", nil, 289500 * time.Microsecond,
		},
		{"blames nobody", inTurn(once(0, refuse)), nil, [][]string{both}, "http_status", nil, 0},
		{"blames all", inTurn(once(0, refuse)), []int{0, 1}, [][]string{both}, "http_status", nil, 0},
		{
			"fails otherwise", inTurn(once(0, auctiontest.Response("500 Oops", "Connection: close\r\n", refusal))),
			[]int{1},
			[][]string{both},
			"http_status", nil, 0,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := request()
				r.Slots = append(r.Slots, deckle.Slot{ID: "side", Formats: r.Slots[0].Formats})
				var asked [][]string
				p := auction.Provider{Name: "p", Timeout: 290 * time.Millisecond, Dialect: picky{plain{url: "http://p/", blame: tt.blame}, &asked}}
				h := house(auction.Config{Providers: []auction.Provider{p}, Dial: auctiontest.Network{"p": tt.serve}.Dial})
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				defer cancel()
				res := h.Start(ctx, r).Result()
				h.Close()
				got := res.Providers[0]
				if diff := cmp.Diff(tt.asked, asked); diff != "" {
					t.Errorf("asked for (-want +got):\n%s", diff)
				}
				if got.Status != tt.status || (tt.status == "bid") != (len(res.Winners) == 1) {
					t.Errorf("status %s, winners %+v; want %s", got.Status, res.Winners, tt.status)
				}
				if diff := cmp.Diff(tt.nonBids, got.NonBids); diff != "" {
					t.Errorf("non-bids (-want +got):\n%s", diff)
				}
				if got.Elapsed != tt.took {
					t.Errorf("took %v, want %v", got.Elapsed, tt.took)
				}
				if n := len(r.Slots); n != 2 {
					t.Errorf("the request has %d slots left", n)
				}
			})
		})
	}
}

// Why a request was refused can be read also where a proxy has compressed it, and
// up to a bound.
func TestRefusalText(t *testing.T) {
	const refusal = "Invalid request: no\nroot: why\n"
	long := string(make([]byte, 5000))
	for name, tt := range map[string]struct{ response, want string }{
		"plain":    {auctiontest.Response("400 Bad Request", "", refusal), refusal},
		"gzip":     {auctiontest.Response("400 Bad Request", "Content-Encoding: gzip\r\n", auctiontest.Gzipped(refusal)), refusal},
		"brotli":   {auctiontest.Response("400 Bad Request", "Content-Encoding: br\r\n", refusal), ""},
		"too long": {auctiontest.Response("400 Bad Request", "", long), long[:2<<10]},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := &reader{plain: plain{url: "http://p/"}}
			h := house(auction.Config{Providers: []auction.Provider{{Name: "p", Dialect: d}}, Dial: auctiontest.Network{"p": auctiontest.Replies(tt.response)}.Dial})
			h.Start(t.Context(), request()).Result()
			h.Close()
			if diff := cmp.Diff([]string{tt.want}, d.texts); diff != "" {
				t.Errorf("%s: texts (-want +got):\n%s", name, diff)
			}
		})
	}
}

// reader is a dialect that notes which refusals it has read.
type reader struct {
	plain
	texts []string
}

func (d *reader) Blame(_ *auction.Request, text string) []int {
	d.texts = append(d.texts, text)
	return nil
}
