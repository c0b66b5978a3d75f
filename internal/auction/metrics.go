package auction

import (
	"errors"
	"log/slog"
	"runtime/debug"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"deckle"
)

// Metrics are what auctions and notices count. Every label is bounded: names of
// sites and providers are the operator's, reasons are closed sets, and what comes
// from strangers passes a cap.
type Metrics struct {
	auctions  *prometheus.CounterVec   // site, outcome
	deadlines *prometheus.CounterVec   // site
	calls     *prometheus.CounterVec   // provider, status
	seconds   *prometheus.HistogramVec // provider
	circuits  *prometheus.GaugeVec     // provider
	nonBids   *prometheus.CounterVec   // provider, reason
	winners   *prometheus.CounterVec   // slot, bidder, bucket
	notices   *prometheus.CounterVec   // outcome
	panics    *prometheus.CounterVec   // part

	seats  capped[string]
	series capped[winnerLabels]
}

// winnerLabels are the labels of one series of winners.
type winnerLabels struct{ slot, bidder, bucket string }

const (
	maxSeats        = 100   // distinct bidder labels in the life of a process
	maxWinnerSeries = 5_000 // distinct winners series
	other           = "other"
)

// NewMetrics makes the metrics of one House and one Notifier.
func NewMetrics() *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "deckle", Name: name, Help: help}, labels)
	}
	return &Metrics{
		auctions:  counter("auctions_total", "Auctions, by how they ended: won, empty, canceled.", "site", "outcome"),
		deadlines: counter("auction_deadlines_total", "Auctions that A_deadline ended before every provider had answered.", "site"),
		calls:     counter("provider_calls_total", "Calls to providers, by status.", "provider", "status"),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "deckle", Name: "provider_seconds",
			Help:                        "How long a provider took to answer, timeouts included.",
			Buckets:                     []float64{.01, .025, .05, .1, .2, .3, .5, .75, 1, 1.5, 2, 3},
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
		}, []string{"provider"}),
		circuits: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "deckle", Name: "provider_circuit_open", Help: "1 while a provider that has failed is not asked.",
		}, []string{"provider"}),
		nonBids: counter("nonbids_total", "Offers and seats that could win nothing, by reason.", "provider", "reason"),
		winners: counter("winners_total", "Winning bids by slot, seat and hb_pb.", "slot", "bidder", "bucket"),
		notices: counter("notices_total", "Win and loss notices, by what became of them.", "outcome"),
		panics:  counter("panics_total", "Panics of ours that cost an auction, one provider's answer, or a notice.", "part"),
		seats:   capped[string]{max: maxSeats},
		series:  capped[winnerLabels]{max: maxWinnerSeries},
	}
}

// Register makes the metrics known to r.
func (m *Metrics) Register(r prometheus.Registerer) error {
	var errs []error
	for _, c := range []prometheus.Collector{m.auctions, m.deadlines, m.calls, m.seconds, m.circuits, m.nonBids, m.winners, m.notices, m.panics} {
		errs = append(errs, r.Register(c))
	}
	return errors.Join(errs...)
}

// record counts one auction. Of a canceled one there is only that to count: its
// providers were not given their time.
func (m *Metrics) record(site string, r *Result) {
	m.auctions.WithLabelValues(site, outcome(r)).Inc()
	if r.Deadline {
		m.deadlines.WithLabelValues(site).Inc()
	}
	for _, p := range r.Providers {
		m.calls.WithLabelValues(p.Name, string(p.Status)).Inc()
		if p.Status != StatusLaunch {
			m.seconds.WithLabelValues(p.Name).Observe(p.Elapsed.Seconds())
		}
		for reason, n := range p.NonBids {
			m.nonBids.WithLabelValues(p.Name, string(reason)).Add(float64(n))
		}
	}
	for i := range r.Winners {
		l := m.winner(&r.Winners[i])
		m.winners.WithLabelValues(l.slot, l.bidder, l.bucket).Inc()
	}
}

func outcome(r *Result) string {
	switch {
	case r.Canceled:
		return "canceled"
	case len(r.Winners) > 0:
		return "won"
	}
	return "empty"
}

// winner gives the labels of a winner. A seat is a stranger's word: only what
// looks like a bidder code is taken over.
func (m *Metrics) winner(w *Winner) winnerLabels {
	l := winnerLabels{string(SlotLabel(w.Slot, w.Unlisted)), w.Seat, w.Bucket}
	if !isBidderCode(w.Seat) || !m.seats.admit(w.Seat) {
		l.bidder = other
	}
	if !m.series.admit(l) {
		return winnerLabels{other, other, other}
	}
	return l
}

// A part is a kind of goroutine that outlives a panic.
type part string

const (
	partAuction  part = "auction"  // of an auction as a whole
	partProvider part = "provider" // of one call
	partNotice   part = "notice"   // of a notifier's worker
)

// panicked counts what a goroutine has recovered from, and logs it with the stack.
// attrs say more about it.
func (m *Metrics) panicked(log *slog.Logger, p part, v any, attrs ...any) {
	m.panics.WithLabelValues(string(p)).Inc()
	log.With(attrs...).Error("panicked", "part", string(p), "err", v, "stack", string(debug.Stack()))
}

// circuit says whether a provider's circuit is open.
func (m *Metrics) circuit(provider string, open bool) {
	v := 0.0
	if open {
		v = 1
	}
	m.circuits.WithLabelValues(provider).Set(v)
}

func (m *Metrics) notice(o noticeOutcome) { m.notices.WithLabelValues(string(o)).Inc() }

// SlotLabel is a slot as it may be told to others. The id of one that no template has
// is whatever a browser says: there is no end of them, and they may name a reader.
func SlotLabel(id deckle.SlotID, unlisted bool) deckle.SlotID {
	if unlisted {
		return other
	}
	return id
}

// BidderLabel is a seat as it may be told to others: a seat is a stranger's word, and
// only what looks like a bidder code is taken over.
func BidderLabel(seat string) string {
	if !isBidderCode(seat) {
		return other
	}
	return seat
}

// isBidderCode reports whether s is 1 to 64 characters of [a-z0-9_-].
func isBidderCode(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// capped admits the first max distinct values that it sees, for ever.
type capped[T comparable] struct {
	max int

	mu   sync.Mutex
	seen map[T]struct{}
}

func (c *capped[T]) admit(v T) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.seen[v]; ok {
		return true
	}
	if len(c.seen) >= c.max {
		return false
	}
	if c.seen == nil {
		c.seen = make(map[T]struct{})
	}
	c.seen[v] = struct{}{}
	return true
}
