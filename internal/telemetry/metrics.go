package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Metrics count events by sink and by what became of them.
type Metrics struct {
	events *prometheus.CounterVec // sink, outcome
}

// The sinks, and what becomes of an event in one, as the metric labels them.
const (
	sinkStore = "store"
	sinkFile  = "file"

	outcomeWritten = "written"
	outcomeDropped = "dropped" // the queue was full
	outcomeFailed  = "failed"  // the sink could not be written to
)

func newMetrics() *Metrics {
	return &Metrics{prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "deckle", Name: "auction_events_total",
		Help: "Events of auctions, by sink and by what became of them: written, dropped, failed.",
	}, []string{"sink", "outcome"})}
}

// Register makes the figures known to r.
func (m *Metrics) Register(r prometheus.Registerer) error { return r.Register(m.events) }

// of makes a sink's failures start at zero, so that an alert has a series before
// the first one.
func (m *Metrics) of(sink string) {
	m.add(sink, outcomeDropped, 0)
	m.add(sink, outcomeFailed, 0)
}

func (m *Metrics) add(sink, outcome string, n int) {
	m.events.WithLabelValues(sink, outcome).Add(float64(n))
}
