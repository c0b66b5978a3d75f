package auction

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"sync"
	"time"
)

// Config configures a [House]. With the zero value every auction is empty.
type Config struct {
	// Providers are asked in every auction. Their order breaks ties.
	Providers []Provider

	// Adjustments multiplies the prices of a seat, exactly, before floors and
	// buckets see them ([auction.bid_adjustment]). All above zero.
	Adjustments map[string]*big.Rat

	// Currency converts the prices of answers that are in another currency than
	// the request.
	Currency Rates

	// DeadlineSlack is taken off the tmax that a provider is told, on top of the
	// measured time of its network. It does not change how long we wait.
	DeadlineSlack time.Duration

	// MaxConnsPerHost bounds the connections to one provider; a call that would
	// need one more waits, within its time. Defaults to 256.
	MaxConnsPerHost int

	// Dial makes the connections to providers. Defaults to a dialer that takes at
	// most one second.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// A House holds the auctions of all pages: the providers, one HTTP client that
// they share, and what prices are multiplied by. It is safe for concurrent use.
type House struct {
	providers   []provider
	adjustments map[string]*big.Rat
	currency    Rates
	slack       time.Duration

	client  *http.Client
	buffers sync.Pool // of *bytes.Buffer, for bodies of answers
	metrics *Metrics
	log     *slog.Logger
	running sync.WaitGroup // every goroutine of every auction
}

// A provider is one as configured, and what its calls have shown of it.
type provider struct {
	Provider
	circuit circuit
	network network
}

// New opens a house. The caller closes it.
func New(c Config, m *Metrics, log *slog.Logger) *House {
	providers := make([]provider, len(c.Providers))
	for i, p := range c.Providers {
		p.Timeout = cmp.Or(p.Timeout, time.Second)
		providers[i].Provider = p
	}
	return &House{
		providers:   providers,
		adjustments: c.Adjustments,
		currency:    c.Currency,
		slack:       c.DeadlineSlack,
		client:      newClient(c),
		metrics:     m,
		log:         log,
	}
}

// Close waits until every goroutine of every auction has ended, which follows
// the end of their contexts closely, and closes the connections to providers.
// No auction may be started any more.
func (h *House) Close() {
	h.running.Wait()
	h.client.CloseIdleConnections()
}

// An Auction is one that has been started, for one page.
type Auction struct {
	done   chan struct{}
	result *Result // written before done is closed
}

// Start asks every provider for bids and returns at once.
//
// The deadline of ctx is A_deadline: then every socket is abandoned and what has
// arrived is used. If ctx is canceled (the page cannot be injected, its reader has
// gone) everything is abandoned as well, and the result has no winners.
func (h *House) Start(ctx context.Context, r *Request) *Auction {
	a := &Auction{done: make(chan struct{})}
	h.running.Go(func() {
		defer close(a.done)
		a.result = h.run(ctx, r)
	})
	return a
}

// run holds an auction and counts it. It never panics: a fault of ours costs the
// page its winners, not the process.
func (h *House) run(ctx context.Context, r *Request) (res *Result) {
	start := time.Now()
	defer func() {
		if v := recover(); v != nil {
			h.metrics.panicked(h.log, partAuction, v, "site", r.Site.ID)
			res = &Result{Elapsed: time.Since(start)}
		}
	}()
	res = h.hold(ctx, r, start)
	h.metrics.record(r.Site.ID, res)
	return res
}

// Done is closed when all providers have answered or the auction's context has
// ended, whichever comes first.
func (a *Auction) Done() <-chan struct{} { return a.done }

// Result waits until Done is closed.
func (a *Auction) Result() *Result {
	<-a.done
	return a.result
}

// hold is one auction from its start to its result.
func (h *House) hold(ctx context.Context, r *Request, start time.Time) *Result {
	replies := make(chan reply, len(h.providers)) // a late reply never blocks its sender
	for rank := range h.providers {
		h.running.Go(func() { replies <- h.ask(ctx, r, rank) })
	}
	heard := collect(ctx, replies, len(h.providers))
	if errors.Is(ctx.Err(), context.Canceled) {
		return &Result{Elapsed: time.Since(start), Canceled: true}
	}
	return h.conclude(ctx, r, heard, start)
}

// collect waits for n replies or for the end of ctx. What has not been heard by
// then is a timeout, unless it has arrived in the same instant.
func collect(ctx context.Context, replies <-chan reply, n int) []reply {
	heard := make([]reply, n)
	for rank := range heard {
		heard[rank].status = StatusTimeout
	}
	for range n {
		select {
		case r := <-replies:
			heard[r.rank] = r
			continue
		case <-ctx.Done():
		}
		select {
		case r := <-replies:
			heard[r.rank] = r
		default:
			return heard
		}
	}
	return heard
}
