package budget

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the book's figures. Their labels are a few fixed words.
type Metrics struct {
	book      *Book
	reserved  prometheus.Counter
	refused   [refusals]prometheus.Counter
	steps     [steps]prometheus.Counter
	conflicts prometheus.Counter
	writes    prometheus.Histogram

	refusedVec, stepsVec *prometheus.CounterVec
}

// Why a reservation is refused. The first three are the kinds of lines that have
// nothing left.
const (
	refusedUnknown = iota + int(AdvertiserDay) + 1 // no campaign that may serve now
	refusedInvalid                                 // request id, or too many are held
	refusals
)

func refusal(k Kind) int { return int(k) }

// What happens to leases.
const (
	stepTaken = iota
	stepClosed
	stepSealed
	stepSettled
	steps
)

func newMetrics(b *Book) *Metrics {
	m := &Metrics{
		book: b,
		reserved: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "deckle", Subsystem: "budget", Name: "reserved_total", Help: "Impressions that have been reserved.",
		}),
		refusedVec: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "deckle", Subsystem: "budget", Name: "refused_total",
			Help: "Reservations that were refused, by the kind of the line that had nothing left, or why else.",
		}, []string{"reason"}),
		stepsVec: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "deckle", Subsystem: "budget", Name: "leases_total", Help: "Leases by what this node has done with them.",
		}, []string{"step"}),
		conflicts: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "deckle", Subsystem: "budget", Name: "conflicts_total", Help: "Writes of a line that met another revision.",
		}),
		writes: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "deckle", Subsystem: "budget", Name: "write_seconds", Help: "How long the store took to write a line.",
			Buckets:                     []float64{.001, .002, .005, .01, .025, .05, .1, .25, .5, 1, 2},
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
		}),
	}
	for i, reason := range [refusals]string{CampaignTotal.String(), CampaignDay.String(), AdvertiserDay.String(), "unknown", "invalid"} {
		m.refused[i] = m.refusedVec.WithLabelValues(reason)
	}
	for i, step := range [steps]string{"taken", "closed", "sealed", "settled"} {
		m.steps[i] = m.stepsVec.WithLabelValues(step)
	}
	return m
}

func (m *Metrics) refuse(why int)           { m.refused[why].Inc() }
func (m *Metrics) step(which int)           { m.steps[which].Inc() }
func (m *Metrics) stepped(which, n int)     { m.steps[which].Add(float64(n)) }
func (m *Metrics) wrote(took time.Duration) { m.writes.Observe(took.Seconds()) }

// Metrics are the book's metrics.
func (b *Book) Metrics() *Metrics { return b.metrics }

// Register makes the metrics known to a registry, once.
func (m *Metrics) Register(r prometheus.Registerer) error {
	return errors.Join(r.Register(m.reserved), r.Register(m.refusedVec), r.Register(m.stepsVec),
		r.Register(m.conflicts), r.Register(m.writes), r.Register(m))
}

var (
	linesDesc  = prometheus.NewDesc("deckle_budget_lines", "Budget lines that campaigns pay from, by whether this node has a lease of them.", []string{"lease"}, nil)
	heldDesc   = prometheus.NewDesc("deckle_budget_holds", "Reserved impressions whose token may still be redeemed.", nil, nil)
	queuedDesc = prometheus.NewDesc("deckle_budget_queued_lines", "Lines that wait to be written.", nil, nil)
)

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{linesDesc, heldDesc, queuedDesc} {
		out <- d
	}
}

// Collect implements [prometheus.Collector].
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	with, without := m.book.covered()
	queued, _ := m.book.queue.waiting()
	gauge := func(d *prometheus.Desc, n int, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	gauge(linesDesc, with, "yes")
	gauge(linesDesc, without, "no")
	gauge(heldDesc, m.book.holds.count())
	gauge(queuedDesc, queued)
}
