package serve

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are what became of the slots of batches. Sites are those of the catalog;
// no batch of another gets that far.
type Metrics struct {
	slots       *prometheus.CounterVec // site, outcome
	pinsRemoved *prometheus.CounterVec // site
}

// NewMetrics makes the metrics of servers.
func NewMetrics() *Metrics {
	return &Metrics{
		slots: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "deckle", Subsystem: "batch", Name: "slots_total",
			Help: "Slots of batches by what became of them: filled, honored (a bookmark), or why they are empty.",
		}, []string{"site", "outcome"}),
		pinsRemoved: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "deckle", Subsystem: "batch", Name: "pins_removed_total",
			Help: "Bookmarks that browsers were told to forget, because the catalog proves their ads to be gone.",
		}, []string{"site"}),
	}
}

// Register makes the metrics known to r.
func (m *Metrics) Register(r prometheus.Registerer) error {
	return errors.Join(r.Register(m.slots), r.Register(m.pinsRemoved))
}

func (m *Metrics) decided(site string, d *Decision) {
	removed := len(d.StalePins)
	for i := range d.Outcomes {
		o := &d.Outcomes[i]
		m.slots.WithLabelValues(site, o.String()).Inc()
		if o.PinRemoved {
			removed++
		}
	}
	if removed > 0 {
		m.pinsRemoved.WithLabelValues(site).Add(float64(removed))
	}
}
