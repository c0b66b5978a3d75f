package edge

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the edge's figures. Every label's values come from the
// configuration or from a closed set.
type Metrics struct {
	pages        *prometheus.CounterVec   // site, outcome
	untouched    *prometheus.CounterVec   // site, reason
	bids         *prometheus.CounterVec   // site, where
	hold         *prometheus.HistogramVec // site
	origin       *prometheus.HistogramVec // site
	originErrors *prometheus.CounterVec   // site
	overLimit    *prometheus.CounterVec   // site
	misdirected  prometheus.Counter
}

func newMetrics() *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "deckle", Name: name, Help: help}, labels)
	}
	seconds := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "deckle", Name: name, Help: help,
			NativeHistogramBucketFactor: 1.1,
			Buckets:                     prometheus.ExponentialBuckets(0.001, 2, 13), // 1 ms to 4 s
		}, labels)
	}
	return &Metrics{
		pages:        counter("requests_total", "Requests to a site, by what the gate decided.", "site", "outcome"),
		untouched:    counter("pages_untouched_total", "Pages with slots that nothing could go into, by reason.", "site", "reason"),
		bids:         counter("pages_with_bids_total", "Pages with an auction, by where the bids went in.", "site", "where"),
		hold:         seconds("hold_seconds", "How long bytes of a page waited for bids.", "site"),
		origin:       seconds("origin_seconds", "From a page's request to the header of its origin's answer.", "site"),
		originErrors: counter("origin_errors_total", "Requests that the origin did not answer.", "site"),
		overLimit:    counter("slots_over_limit_total", "Pages that match more slots than one page may have.", "site"),
		misdirected: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "deckle", Name: "misdirected_total", Help: "Requests for a host that no site has.",
		}),
	}
}

// Register makes the figures known to r.
func (m *Metrics) Register(r prometheus.Registerer) error {
	var errs []error
	for _, c := range []prometheus.Collector{
		m.pages, m.untouched, m.bids, m.hold, m.origin, m.originErrors, m.overLimit, m.misdirected,
	} {
		errs = append(errs, r.Register(c))
	}
	return errors.Join(errs...)
}

// of makes the counters of failure that a site has start at zero, so that an alert
// has a series before the first one.
func (m *Metrics) of(site string) {
	m.originErrors.WithLabelValues(site)
	m.overLimit.WithLabelValues(site)
}

// streamed counts a page after its last byte.
func (m *Metrics) streamed(p *page) {
	site := p.visit.site.ID
	m.origin.WithLabelValues(site).Observe(p.visit.originTook.Seconds())
	if p.visit.auction != nil {
		m.bids.WithLabelValues(site, string(p.where)).Inc()
		m.hold.WithLabelValues(site).Observe(p.held.Seconds())
	}
}
