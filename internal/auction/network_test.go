package auction_test

import (
	"context"
	"net"
	"net/http/httptrace"
	"testing"
	"testing/synctest"
	"time"

	"deckle/internal/auction"
	"deckle/internal/auction/auctiontest"
)

// noting is a dialect that notes the tmax of each call, and says how long its
// provider says that it took.
type noting struct {
	plain
	took time.Duration
	tmax *[]time.Duration
}

func (d noting) Encode(r *auction.Request, tmax time.Duration) (*auction.Call, error) {
	*d.tmax = append(*d.tmax, tmax)
	return d.plain.Encode(r, tmax)
}

func (d noting) Decode(r *auction.Request, body []byte) (auction.Answer, error) {
	a, err := d.plain.Decode(r, body)
	a.Took = d.took
	return a, err
}

// What calls take beyond what the provider says that it needed is taken off what
// it is told of the time, but never more than half of it.
func TestTMaxIsLessTheNetwork(t *testing.T) {
	for _, tt := range []struct {
		name    string
		elapsed time.Duration
		took    time.Duration
		want    time.Duration // of the twentieth call, of 300 ms
	}{
		{"nothing is said", 100 * time.Millisecond, 0, 300 * time.Millisecond},
		{"20 ms on the way", 100 * time.Millisecond, 80 * time.Millisecond, 280 * time.Millisecond},
		{"it says more than can be", 100 * time.Millisecond, time.Hour, 300 * time.Millisecond},
		{"all is on the way", 280 * time.Millisecond, time.Millisecond, 150 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []time.Duration
				p := provider("p")
				p.Dialect = noting{plain{url: "http://p/"}, tt.took, &got}
				n := auctiontest.Network{"p": auctiontest.Late(tt.elapsed, auctiontest.OK(good))}
				h := house(auction.Config{Providers: []auction.Provider{p}, Dial: n.Dial})
				for range 20 {
					ctx, cancel := context.WithTimeout(t.Context(), deadline)
					h.Start(ctx, request()).Result()
					cancel()
				}
				h.Close()
				if got[0] != deadline {
					t.Errorf("first tmax = %v, want %v: nothing is known yet", got[0], deadline)
				}
				if last := got[19]; (last - tt.want).Abs() > time.Millisecond {
					t.Errorf("tmax = %v, want %v", last, tt.want)
				}
			})
		})
	}
}

// Where the provider says nothing of its time, a connection's making shows how
// long the way is; once it has said something, that alone counts.
func TestTMaxIsLessTheRoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []time.Duration
		p := provider("p")
		d := &noting{plain{url: "http://p/"}, 0, &got}
		p.Dialect = d
		n := auctiontest.Network{"p": once(10*time.Millisecond, auctiontest.Response("200 OK", "Connection: close\r\n", good))}
		h := house(auction.Config{Providers: []auction.Provider{p}, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			trace := httptrace.ContextClientTrace(ctx) // as net.Dialer does
			if trace != nil {
				trace.ConnectStart(network, address)
			}
			<-time.After(40 * time.Millisecond)
			if trace != nil {
				trace.ConnectDone(network, address, nil)
			}
			return n.Dial(ctx, network, address)
		}})
		ask := func() {
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			h.Start(ctx, request()).Result()
			synctest.Wait()
		}
		for range 20 {
			ask()
		}
		if last := got[19]; (last - 260*time.Millisecond).Abs() > time.Millisecond {
			t.Errorf("tmax = %v, want 300 ms less one round trip of 40 ms", last)
		}
		d.took = 45 * time.Millisecond // of 50
		for range 20 {
			ask()
		}
		if last := got[39]; (last - 295*time.Millisecond).Abs() > time.Millisecond {
			t.Errorf("tmax = %v, want 300 ms less 5 ms on the way", last)
		}
		h.Close()
	})
}
