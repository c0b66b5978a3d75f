package classify

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// What became of a page that was to be written. They are a metric's label.
const (
	writeDone      = "written"
	writeElsewhere = "elsewhere" // another node has just done it
	writeFailed    = "failed"    // the store did not take it
	writeDropped   = "dropped"   // the queue was full, or the page was forgotten on it
)

// Metrics are a classifier's figures.
type Metrics struct {
	writes     *prometheus.CounterVec // outcome
	unreadable prometheus.Counter
	remembered prometheus.GaugeFunc
}

func newMetrics(c *Classifier) *Metrics {
	m := &Metrics{
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "deckle", Subsystem: "classify", Name: "writes_total",
			Help: "Pages that were to be written to the store, by what became of them: written, elsewhere, failed, dropped.",
		}, []string{"outcome"}),
		unreadable: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "deckle", Subsystem: "classify", Name: "unreadable_total", Help: "Pages in the store that cannot be read.",
		}),
		remembered: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "deckle", Subsystem: "classify", Name: "pages", Help: "Pages that are known without a rule.",
		}, func() float64 { return float64(c.memory.len()) }),
	}
	for _, outcome := range []string{writeDone, writeElsewhere, writeFailed, writeDropped} {
		m.writes.WithLabelValues(outcome)
	}
	return m
}

// Register makes the figures known to r.
func (m *Metrics) Register(r prometheus.Registerer) error {
	return errors.Join(r.Register(m.writes), r.Register(m.unreadable), r.Register(m.remembered))
}
