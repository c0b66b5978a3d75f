package journal

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"deckle/internal/store"
)

// Metrics are what a journal counts.
type Metrics struct {
	envelopes *prometheus.CounterVec // outcome: committed, failed
	events    *prometheus.CounterVec // kind; of committed envelopes
	bytes     prometheus.Counter
	group     prometheus.Histogram
	seconds   prometheus.Histogram
	failures  *prometheus.CounterVec // reason
	retries   prometheus.Counter
}

// NewMetrics makes the metrics of one journal.
func NewMetrics() *Metrics {
	opts := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Namespace: "deckle", Subsystem: "journal", Name: name, Help: help}
	}
	return &Metrics{
		envelopes: prometheus.NewCounterVec(opts("envelopes_total", "Envelopes, by what became of them: committed, failed."), []string{"outcome"}),
		events:    prometheus.NewCounterVec(opts("events_total", "Durable events, by kind."), []string{"kind"}),
		bytes:     prometheus.NewCounter(opts("bytes_total", "Bytes of committed envelopes.")),
		group: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "deckle", Subsystem: "journal", Name: "envelope_events",
			Help:    "How many events an envelope has that was committed.",
			Buckets: []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000},
		}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "deckle", Subsystem: "journal", Name: "append_seconds",
			Help:                        "How long an append took until its events were durable, or it failed.",
			Buckets:                     []float64{.0005, .001, .002, .005, .01, .025, .05, .1, .25, .5, 1, 2},
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
		}),
		failures: prometheus.NewCounterVec(opts("append_failures_total",
			"Appends that failed, by reason: invalid, too_large, busy, closed, full, canceled, unavailable, other."), []string{"reason"}),
		retries: prometheus.NewCounter(opts("retries_total", "Attempts to write an envelope that failed and may be repeated.")),
	}
}

// Register makes the metrics known to r.
func (m *Metrics) Register(r prometheus.Registerer) error {
	var errs []error
	for _, c := range []prometheus.Collector{m.envelopes, m.events, m.bytes, m.group, m.seconds, m.failures, m.retries} {
		errs = append(errs, r.Register(c))
	}
	return errors.Join(errs...)
}

func (m *Metrics) committed(e *envelope, bytes int) {
	if e.err != nil {
		m.envelopes.WithLabelValues("failed").Inc()
		return
	}
	m.envelopes.WithLabelValues("committed").Inc()
	m.bytes.Add(float64(bytes))
	m.group.Observe(float64(e.events))
	for kind, n := range e.kinds {
		if n > 0 {
			m.events.WithLabelValues(Kind(kind).String()).Add(float64(n))
		}
	}
}

func (m *Metrics) appended(ctx context.Context, took time.Duration, err error) {
	m.seconds.Observe(took.Seconds())
	if err != nil {
		m.failures.WithLabelValues(failure(ctx, err)).Inc()
	}
}

// failure is the only place where an error of Append becomes a reason.
func failure(ctx context.Context, err error) string {
	_, invalid := errors.AsType[*FieldError](err)
	switch {
	case errors.Is(err, context.Cause(ctx)):
		return "canceled"
	case invalid:
		return "invalid"
	case errors.Is(err, store.ErrTooLarge):
		return "too_large"
	case errors.Is(err, ErrBusy):
		return "busy"
	case errors.Is(err, ErrClosed):
		return "closed"
	case errors.Is(err, store.ErrFull):
		return "full"
	case errors.Is(err, store.ErrUnavailable):
		return "unavailable"
	}
	return "other"
}
