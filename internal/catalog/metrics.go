package catalog

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics say what a node knows of the catalog, and how long it takes to know it.
// Their labels are the kinds and the sites of the catalog.
type Metrics struct {
	catalog    *Catalog
	rebuild    prometheus.Histogram
	unreadable prometheus.Counter
}

func newMetrics(c *Catalog) *Metrics {
	return &Metrics{
		catalog: c,
		rebuild: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "deckle", Subsystem: "catalog", Name: "rebuild_seconds",
			Help:                        "How long the serve index took to be built anew after a change.",
			Buckets:                     []float64{.001, .002, .005, .01, .025, .05, .1, .25, .5, 1},
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
		}),
		unreadable: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "deckle", Subsystem: "catalog", Name: "unreadable_total",
			Help: "Stored values that could not be read, and what was there before was kept.",
		}),
	}
}

// Metrics are the catalog's metrics.
func (c *Catalog) Metrics() *Metrics { return c.metrics }

// Register makes the metrics known to a registry, once.
func (m *Metrics) Register(r prometheus.Registerer) error {
	return errors.Join(r.Register(m), r.Register(m.rebuild), r.Register(m.unreadable))
}

var (
	revisionDesc = prometheus.NewDesc("deckle_catalog_revision",
		"Revision of the store up to which this node has the catalog; 0: it has not been loaded.", nil, nil)
	entitiesDesc = prometheus.NewDesc("deckle_catalog_entities", "Entities of the catalog without tombstones, by kind.", []string{"kind"}, nil)
	waitingDesc  = prometheus.NewDesc("deckle_catalog_waiting", "Creatives that wait for approval, by site.", []string{"site"}, nil)
)

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{revisionDesc, entitiesDesc, waitingDesc} {
		out <- d
	}
}

// Collect implements [prometheus.Collector].
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	s := m.catalog.Snapshot()
	gauge := func(d *prometheus.Desc, n int, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	out <- prometheus.MustNewConstMetric(revisionDesc, prometheus.GaugeValue, float64(s.Revision()))
	for _, k := range Kinds() {
		n := 0
		for _, r := range s.records[k] {
			if !r.Deleted {
				n++
			}
		}
		gauge(entitiesDesc, n, string(k))
	}
	now := m.catalog.now()
	for site := range s.sites {
		gauge(waitingDesc, len(s.Queue(site, now)), site)
	}
}
