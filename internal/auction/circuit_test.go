package auction_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckle/internal/auction"
	"deckle/internal/auction/auctiontest"
)

// within is provider "p" with that timeout.
func within(d time.Duration) auction.Provider {
	p := provider("p")
	p.Timeout = d
	return p
}

// A provider that has failed ten times in a row is asked again after a second,
// then two, four, up to thirty; one answer is enough to have it back. What is not
// its failure does not count.
func TestCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var serve atomic.Pointer[auctiontest.Server]
		n := auctiontest.Network{"p": func(c *auctiontest.Conn) { (*serve.Load())(c) }}
		m := auction.NewMetrics()
		h := auction.New(auction.Config{Providers: []auction.Provider{within(deadline)}, Dial: n.Dial}, m, slog.New(slog.DiscardHandler))
		ask := func(what auctiontest.Server) auction.Status {
			serve.Store(&what)
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			got := statuses(h.Start(ctx, request()).Result())["p"]
			synctest.Wait() // the circuit may hear of it only after the page has
			return got
		}
		broken := once(0, auctiontest.Response("503 Unavailable", "Connection: close\r\n", ""))
		refuses := once(0, auctiontest.Response("403 Forbidden", "Connection: close\r\n", ""))
		works := once(0, auctiontest.Response("200 OK", "Connection: close\r\n", good))
		wait := func(d time.Duration) { <-time.After(d) }
		open := func() int { return counted(t, m, "deckle_provider_circuit_open", "provider")["p"] }

		for range 9 {
			ask(broken)
		}
		if got := ask(refuses); got != auction.StatusHTTPStatus || open() != 0 { // it has its wits about it
			t.Errorf("status %s, open %d", got, open())
		}
		for _, fault := range []auctiontest.Server{broken, nil, auctiontest.Hang, broken, broken, broken, broken, broken, broken, broken} {
			if fault == nil {
				fault = func(*auctiontest.Conn) {}
			}
			if got := ask(fault); got == auction.StatusLaunch {
				t.Error("the circuit opened before ten failures in a row")
			}
		}
		if open() != 1 {
			t.Error("the metric does not say that the circuit is open")
		}
		for _, pause := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
			wait(pause*time.Second - time.Millisecond)
			if got := ask(works); got != auction.StatusLaunch {
				t.Errorf("asked before %ds had passed: %s", pause, got)
			}
			wait(time.Millisecond)
			if got := ask(broken); got != auction.StatusHTTPStatus {
				t.Errorf("not tried after %ds: %s", pause, got)
			}
		}
		wait(30 * time.Second)
		if got := []auction.Status{ask(works), ask(broken), ask(works)}; !cmp.Equal(got, []auction.Status{"bid", "http_status", "bid"}) {
			t.Errorf("after one answer: %v, want it back", got)
		}
		if open() != 0 {
			t.Error("the metric says that the circuit is open")
		}
		h.Close()
	})
}

// While one call tries a provider again, no other does; a reader who leaves during
// that call leaves the trial to the next.
func TestCircuitTriesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var recovered atomic.Bool
		works := auctiontest.Late(100*time.Millisecond, auctiontest.OK(good))
		n := auctiontest.Network{"p": func(c *auctiontest.Conn) {
			if recovered.Load() {
				works(c)
			}
		}}
		h := house(auction.Config{Providers: []auction.Provider{within(deadline)}, Dial: n.Dial})
		start := func() (*auction.Auction, context.CancelFunc) {
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			return h.Start(ctx, request()), cancel
		}
		for range 10 {
			a, cancel := start()
			a.Result()
			synctest.Wait()
			cancel()
		}
		<-time.After(time.Second)
		recovered.Store(true)
		trial, leave := start()
		synctest.Wait()
		for range 2 {
			a, cancel := start()
			if got := statuses(a.Result())["p"]; got != auction.StatusLaunch {
				t.Errorf("status beside the trial = %s", got)
			}
			cancel()
		}
		leave()
		trial.Result()
		synctest.Wait()
		a, cancel := start()
		if got := statuses(a.Result())["p"]; got != auction.StatusBid {
			t.Errorf("status after the reader of the trial has left = %s", got)
		}
		cancel()
		h.Close()
	})
}

// A page without a slot for a provider says nothing of its health.
func TestCircuitIsNotClosedByNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asks := true
		p := provider("p")
		p.Dialect = plain{encode: func(time.Duration) (*auction.Call, error) {
			if !asks {
				return nil, nil
			}
			return &auction.Call{URL: "http://p/"}, nil
		}}
		h := house(auction.Config{Providers: []auction.Provider{p}, Dial: auctiontest.Network{}.Dial})
		for i := range 11 {
			asks = i != 5
			h.Start(t.Context(), request()).Result()
			synctest.Wait()
		}
		asks = true
		if got := statuses(h.Start(t.Context(), request()).Result())["p"]; got != auction.StatusLaunch {
			t.Errorf("status = %s, want launch: ten calls have failed", got)
		}
		h.Close()
	})
}

// Pages that leave a provider too little time say nothing of it: those of one site
// neither take it from another, nor keep it from coming back.
func TestCircuitIsNotOpenedByHurry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		n := auctiontest.Network{"p": func(c *auctiontest.Conn) {
			if broken.Load() {
				return
			}
			once(120*time.Millisecond, auctiontest.Response("200 OK", "Connection: close\r\n", good))(c)
		}}
		h := house(auction.Config{Providers: []auction.Provider{within(time.Second)}, Dial: n.Dial})
		ask := func(site string, timeout time.Duration) auction.Status {
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			r := request()
			r.Site.ID = site
			status := statuses(h.Start(ctx, r).Result())["p"]
			synctest.Wait()
			return status
		}
		hurried := func() auction.Status { return ask("hurried", 100*time.Millisecond) }
		patient := func() auction.Status { return ask("patient", time.Second) }

		for range 20 {
			if got := hurried(); got != auction.StatusTimeout {
				t.Errorf("a page in a hurry: %s", got)
			}
		}
		if got := patient(); got != auction.StatusBid {
			t.Errorf("after twenty pages of another site in a hurry: %s", got)
		}

		broken.Store(true)
		for range 10 {
			patient()
		}
		broken.Store(false)
		for range 5 { // a trial of these would end in a time-out, and double the pause
			<-time.After(time.Second)
			if got := hurried(); got != auction.StatusLaunch {
				t.Errorf("a page in a hurry, while the circuit is open: %s", got)
			}
		}
		if got := patient(); got != auction.StatusBid {
			t.Errorf("after a pause and pages of another site in a hurry: %s", got)
		}
		h.Close()
	})
}
