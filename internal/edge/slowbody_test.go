package edge_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"deckle/internal/auction"
)

// slowly is a body that comes after a while.
type slowly struct {
	io.Reader
	after time.Duration
}

func (s *slowly) Read(b []byte) (int, error) {
	<-time.After(s.after)
	s.after = 0
	return s.Reader.Read(b)
}

func (*slowly) Close() error { return nil }

// A body that comes slowly costs its sender, not the bidders: they get their whole
// time, and nobody can make them look as if they failed.
func TestSlowBodyCostsNoBidder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newAsker(t, setup{}, bids(50*time.Millisecond, "2.349"))
		for range 11 {
			const body = `{"adUnits":[{"code":"top"}]}`
			r := post(body)
			r.Body = &slowly{strings.NewReader(body), 395 * time.Millisecond}
			if got := a.ask(t.Context(), r); !strings.Contains(got.body(), `"impid":"top"`) {
				t.Fatalf("status %d: %s; want a bid", got.status, got.body())
			}
		}
		var page pageBidsAnswer
		a.ask(t.Context(), pageBidsOf("/")).decode(t, &page)
		if last := a.events[len(a.events)-1]; page.Bids["top"] == nil || last.Providers[0].Status != auction.StatusBid {
			t.Errorf("another page got %+v of %+v", page.Bids, last.Providers)
		}
	})
}
