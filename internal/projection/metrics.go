package projection

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Register makes known to r how far each projection has come. Events and repeats are
// those of the file's whole life.
func (t *Tables) Register(r prometheus.Registerer) error {
	var errs []error
	for _, f := range t.folders {
		name := f.projection.Name()
		errs = append(errs,
			r.Register(envelopeGauge(name, func() float64 { return float64(f.shown.Load().seq) })),
			r.Register(counter("projection_events_total", "Events of the journal that a projection has folded.",
				prometheus.Labels{"projection": name}, func() float64 { return float64(f.shown.Load().events) })),
			r.Register(counter("projection_repeats_total", "Those of them that had been told before, and so did not count.",
				prometheus.Labels{"projection": name}, func() float64 { return float64(f.shown.Load().repeats) })))
	}
	return errors.Join(errs...)
}

// Register makes known to r how far the fold has come, and what became of the prices
// of impressions.
func (h *Hot) Register(r prometheus.Registerer) error {
	errs := []error{r.Register(envelopeGauge("hot", func() float64 { return float64(h.Seq()) }))}
	for b := Billed; b <= LeaseExhausted; b++ {
		errs = append(errs, r.Register(counter("impressions_total", "Organic impressions in the journal, by what became of their price.",
			prometheus.Labels{"billing": b.String()}, func() float64 { return float64(h.Impressions(b)) })))
	}
	return errors.Join(errs...)
}

func envelopeGauge(projection string, value func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "deckle", Name: "projection_envelope",
		Help:        "The last envelope of the journal that a projection has folded.",
		ConstLabels: prometheus.Labels{"projection": projection},
	}, value)
}

func counter(name, help string, labels prometheus.Labels, value func() float64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "deckle", Name: name, Help: help, ConstLabels: labels}, value)
}
