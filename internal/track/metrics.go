package track

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"deckle/internal/journal"
)

// What became of an event, besides the reasons of package token.
const (
	outcomeCounted     = "counted"     // durable
	outcomeSuspect     = "suspect"     // durable, and counts for nothing
	outcomeRepeat      = "repeat"      // had been durable, or has become so by another request
	outcomeUnknown     = "unknown"     // an unfold of what the catalog never had
	outcomeDropped     = "dropped"     // an unfold without proof, from an address or at a time with too many
	outcomeUnavailable = "unavailable" // the journal did not take it
	outcomeFailed      = "failed"      // our mistake, or the reader has gone while waiting for another's write
)

// Metrics are what a tracker counts. What is refused before it is known what it
// tells is in those of package publicapi.
type Metrics struct {
	events   *prometheus.CounterVec // event, outcome
	suspects *prometheus.CounterVec // mark
}

// NewMetrics makes the metrics of one tracker.
func NewMetrics() *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "deckle", Subsystem: "track", Name: name, Help: help}, labels)
	}
	return &Metrics{
		events: counter("events_total", "Events that browsers told, by what became of them: counted, suspect, repeat, "+
			"unknown, dropped, unavailable, failed, or why the token was not believed.", "event", "outcome"),
		suspects: counter("suspects_total", "Events that were journaled as suspect, by mark; one may have several.", "mark"),
	}
}

// Register makes the metrics known to r.
func (m *Metrics) Register(r prometheus.Registerer) error {
	return errors.Join(r.Register(m.events), r.Register(m.suspects))
}

func (m *Metrics) suspected(marks journal.Suspect) {
	for _, s := range [...]struct {
		mark journal.Suspect
		name string
	}{
		{journal.SuspectBot, "bot"},
		{journal.SuspectDataCentre, "data_centre"},
		{journal.SuspectRate, "rate"},
	} {
		if marks&s.mark != 0 {
			m.suspects.WithLabelValues(s.name).Inc()
		}
	}
}
