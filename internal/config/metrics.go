package config

import "github.com/prometheus/client_golang/prometheus"

// Metrics say where each site's template comes from, since when, how many slots
// it has, and how often a file was judged. Their labels are the sites of the
// configuration and the five states. It asks the templates when it is scraped,
// so that nothing has to be kept in step.
type Metrics struct{ templates *Templates }

// Metrics are the templates' metrics.
func (t *Templates) Metrics() *Metrics { return &Metrics{t} }

// Register makes the metrics known to a registry, once.
func (m *Metrics) Register(r prometheus.Registerer) error { return r.Register(m) }

var (
	stateDesc = prometheus.NewDesc("deckle_template_state",
		"1 for the state that the site's template is in: ok, last_good, disabled, off_missing, off_invalid.", []string{"site", "state"}, nil)
	sinceDesc = prometheus.NewDesc("deckle_template_state_since_seconds",
		"Unix time at which the state began.", []string{"site"}, nil)
	slotsDesc = prometheus.NewDesc("deckle_template_slots",
		"Slots of the template in use; 0 = ads are off.", []string{"site"}, nil)
	loadsDesc = prometheus.NewDesc("deckle_template_loads_total",
		"How often the site's file was judged, by the state that followed.", []string{"site", "state"}, nil)
)

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{stateDesc, sinceDesc, slotsDesc, loadsDesc} {
		out <- d
	}
}

// Collect implements [prometheus.Collector].
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	for _, s := range m.templates.sites {
		s.mu.Lock()
		state, loads := s.state, make([]uint64, len(templateStatuses))
		for i, status := range templateStatuses {
			loads[i] = s.loads[status]
		}
		s.mu.Unlock()
		for i, status := range templateStatuses {
			is := 0.0
			if state.Status == status {
				is = 1
			}
			out <- prometheus.MustNewConstMetric(stateDesc, prometheus.GaugeValue, is, s.site, string(status))
			out <- prometheus.MustNewConstMetric(loadsDesc, prometheus.CounterValue, float64(loads[i]), s.site, string(status))
		}
		out <- prometheus.MustNewConstMetric(sinceDesc, prometheus.GaugeValue, float64(state.Since.UnixNano())/1e9, s.site)
		out <- prometheus.MustNewConstMetric(slotsDesc, prometheus.GaugeValue, float64(state.Slots), s.site)
	}
}
