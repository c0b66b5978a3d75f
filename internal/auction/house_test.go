package auction_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"deckle"
	"deckle/internal/auction"
	"deckle/internal/auction/auctiontest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// plain is a dialect whose answers are auction.Answer in JSON.
type plain struct {
	url    string
	encode func(tmax time.Duration) (*auction.Call, error) // default: a call to url
	decode func()                                          // called first, if set
	blame  []int                                           // for whatever a 400 says
}

func (d plain) Blame(*auction.Request, string) []int { return d.blame }

func (d plain) Encode(_ *auction.Request, tmax time.Duration) (*auction.Call, error) {
	if d.encode != nil {
		return d.encode(tmax)
	}
	return &auction.Call{URL: d.url, Body: []byte("{}")}, nil
}

func (d plain) Decode(_ *auction.Request, body []byte) (auction.Answer, error) {
	if d.decode != nil {
		d.decode()
	}
	var a *auction.Answer
	if err := json.Unmarshal(body, &a); err != nil || a == nil {
		return auction.Answer{}, errors.Join(err, errors.New("no answer"))
	}
	return *a, nil
}

// offer is one that wins slot "top" where no other is better.
func offer(seat, id, price string) auction.Offer {
	return auction.Offer{Seat: seat, ID: id, ImpID: "top", Price: price, W: 300, H: 250, AdM: "<b>" + seat + "</b>"}
}

func answer(offers ...auction.Offer) string {
	b, err := json.Marshal(auction.Answer{Offers: offers})
	if err != nil {
		panic(err)
	}
	return string(b)
}

func request() *auction.Request {
	dense, _ := deckle.Granularity("dense")
	return &auction.Request{
		ID: "req-1", Currency: "USD", Buckets: dense, Site: auction.Site{ID: "site-1"},
		Slots: []deckle.Slot{{ID: "top", Kind: deckle.GPT, Formats: []deckle.Size{{W: 300, H: 250}}}},
	}
}

func house(c auction.Config) *auction.House {
	return auction.New(c, auction.NewMetrics(), slog.New(slog.DiscardHandler))
}

// provider asks http://NAME/, which network connects to.
func provider(name string) auction.Provider {
	return auction.Provider{Name: name, Dialect: plain{url: "http://" + name + "/"}, Timeout: 10 * time.Second}
}

func statuses(r *auction.Result) map[string]auction.Status {
	m := make(map[string]auction.Status)
	for _, p := range r.Providers {
		m[p.Name] = p.Status
	}
	return m
}

const deadline = 300 * time.Millisecond

// good beats a bid of 1.
var good = answer(offer("odd", "o", "2"))

// The plain dialect passes what every dialect has to.
func TestSuite(t *testing.T) {
	auctiontest.Dialect{
		New: func(url string) auction.Dialect { return plain{url: url} },
		Answer: func(currency string, offers ...auction.Offer) string {
			b, err := json.Marshal(auction.Answer{Currency: currency, Offers: offers})
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		},
	}.Run(t)
}

func TestCancelAbandonsEverythingAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		abandoned := make(chan time.Time, 1)
		n := auctiontest.Network{
			"quick": auctiontest.Replies(auctiontest.OK(answer(offer("quick", "q", "1")))),
			"slow":  func(c *auctiontest.Conn) { c.ReadRequest(); c.Hang(); abandoned <- time.Now() },
		}
		h := house(auction.Config{Providers: []auction.Provider{provider("quick"), provider("slow")}, Dial: n.Dial})
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		defer cancel()
		start := time.Now()
		a := h.Start(ctx, request())
		time.AfterFunc(20*time.Millisecond, cancel)
		<-a.Done()
		if took := time.Since(start); took != 20*time.Millisecond {
			t.Errorf("done after %v, want 20ms", took)
		}
		if r := a.Result(); !r.Canceled || r.Deadline || len(r.Winners) != 0 || len(r.Providers) != 0 {
			t.Errorf("result = %+v, want canceled and nothing else", r)
		}
		if at := <-abandoned; at.Sub(start) != 20*time.Millisecond {
			t.Errorf("the socket was abandoned after %v", at.Sub(start))
		}
		h.Close()
	})
}

// Start does not wait for anything: not for the network, not for a dialect.
func TestStartReturnsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := auctiontest.Network{"slow": auctiontest.Late(time.Second, auctiontest.OK(answer()))}
		p := provider("slow")
		p.Dialect = plain{encode: func(time.Duration) (*auction.Call, error) {
			<-time.After(time.Second)
			return nil, nil
		}}
		h := house(auction.Config{Providers: []auction.Provider{p, provider("slow")}, Dial: n.Dial})
		start := time.Now()
		a := h.Start(t.Context(), request())
		if took := time.Since(start); took != 0 {
			t.Errorf("Start took %v", took)
		}
		<-a.Done()
		h.Close()
	})
}

// A dialect that cannot be interrupted delays nobody.
func TestDecodeIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := auctiontest.Network{"p": auctiontest.Replies(auctiontest.OK(answer(offer("s", "1", "1"))))}
		p := provider("p")
		p.Dialect = plain{url: "http://p/", decode: func() { <-time.After(time.Minute) }}
		h := house(auction.Config{Providers: []auction.Provider{p}, Dial: n.Dial})
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		defer cancel()
		start := time.Now()
		r := h.Start(ctx, request()).Result()
		if took := time.Since(start); took != deadline || statuses(r)["p"] != auction.StatusTimeout {
			t.Errorf("took %v, %+v; want a timeout at %v", took, r.Providers, deadline)
		}
		if got := r.Providers[0].Elapsed; got != deadline {
			t.Errorf("provider took %v, want %v", got, deadline)
		}
		h.Close()
	})
}

func TestOwnTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := auctiontest.Network{"slow": auctiontest.Hang, "quick": auctiontest.Late(150*time.Millisecond, auctiontest.OK(answer(offer("quick", "q", "1"))))}
		slow := provider("slow")
		slow.Timeout = 100 * time.Millisecond
		h := house(auction.Config{Providers: []auction.Provider{slow, provider("quick")}, Dial: n.Dial})
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		defer cancel()
		start := time.Now()
		r := h.Start(ctx, request()).Result()
		if took := time.Since(start); took != 150*time.Millisecond || r.Deadline {
			t.Errorf("took %v, Deadline %v; want quick's 150ms, false", took, r.Deadline)
		}
		if p := r.Providers[0]; p.Status != auction.StatusTimeout || p.Elapsed != 100*time.Millisecond {
			t.Errorf("slow = %+v, want a timeout after 100ms", p)
		}
		h.Close()
	})
}

func TestTMax(t *testing.T) {
	for _, tt := range []struct {
		name                      string
		remaining, timeout, slack time.Duration
		want                      time.Duration // 0: not called
	}{
		{"what remains", 300 * time.Millisecond, time.Second, 0, 300 * time.Millisecond},
		{"its own timeout", 300 * time.Millisecond, 200 * time.Millisecond, 0, 200 * time.Millisecond},
		{"less the slack", 300 * time.Millisecond, time.Second, 40 * time.Millisecond, 260 * time.Millisecond},
		{"default timeout", time.Minute, 0, 0, time.Second},
		{"nothing left", 300 * time.Millisecond, time.Second, 300 * time.Millisecond, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got time.Duration
				p := auction.Provider{Name: "p", Timeout: tt.timeout, Dialect: plain{encode: func(tmax time.Duration) (*auction.Call, error) {
					got = tmax
					return nil, nil
				}}}
				h := house(auction.Config{Providers: []auction.Provider{p}, DeadlineSlack: tt.slack})
				ctx, cancel := context.WithTimeout(t.Context(), tt.remaining)
				defer cancel()
				r := h.Start(ctx, request()).Result()
				h.Close()
				if got != tt.want {
					t.Errorf("tmax = %v, want %v", got, tt.want)
				}
				if called := tt.want > 0; called != (len(r.Providers) == 0) { // it had no slot when it was called
					t.Errorf("providers = %+v", r.Providers)
				}
				if tt.want == 0 && (r.Providers[0].Status != auction.StatusLaunch || r.Deadline) { // nobody was late
					t.Errorf("result = %+v, want status launch", r)
				}
			})
		})
	}
}

func TestDialectFaults(t *testing.T) {
	n := auctiontest.Network{"p": auctiontest.Replies(auctiontest.OK(answer(offer("s", "1", "1"))))}
	for name, tt := range map[string]struct {
		dialect plain
		want    auction.Status
	}{
		"cannot encode":   {plain{encode: func(time.Duration) (*auction.Call, error) { return nil, errors.New("no") }}, auction.StatusLaunch},
		"no URL":          {plain{url: "http://p\x7f/"}, auction.StatusLaunch},
		"panic in Encode": {plain{encode: func(time.Duration) (*auction.Call, error) { panic("encode") }}, auction.StatusParse},
		"panic in Decode": {plain{url: "http://p/", decode: func() { panic("decode") }}, auction.StatusParse},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := house(auction.Config{Providers: []auction.Provider{{Name: "p", Dialect: tt.dialect}}, Dial: n.Dial})
			if got := statuses(h.Start(t.Context(), request()).Result())["p"]; got != tt.want {
				t.Errorf("%s: status = %q, want %s", name, got, tt.want)
			}
			h.Close()
		})
	}
}

func TestNobodyToAsk(t *testing.T) {
	h := house(auction.Config{})
	if r := h.Start(t.Context(), request()).Result(); len(r.Winners)+len(r.Providers) != 0 || r.Canceled || r.Deadline {
		t.Errorf("result = %+v, want nothing", r)
	}
	h.Close()
}
