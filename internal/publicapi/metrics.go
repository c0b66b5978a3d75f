package publicapi

import (
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are what the endpoints count together: requests by endpoint and status,
// 429 for what was limited, and how long their answers took.
type Metrics struct {
	requests *prometheus.CounterVec   // endpoint, status
	seconds  *prometheus.HistogramVec // endpoint
}

// NewMetrics makes the metrics of one [API].
func NewMetrics() *Metrics {
	return &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "deckle", Subsystem: "reader", Name: "requests_total",
			Help: "Requests to the reader plane, by endpoint and status; 429 is what was limited.",
		}, []string{"endpoint", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "deckle", Subsystem: "reader", Name: "request_seconds",
			Help:                        "From a request of the reader plane to its answer.",
			Buckets:                     prometheus.ExponentialBuckets(0.0001, 2, 16), // 0.1 ms to 3.3 s
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
		}, []string{"endpoint"}),
	}
}

// Register makes the metrics known to r.
func (m *Metrics) Register(r prometheus.Registerer) error {
	return errors.Join(r.Register(m.requests), r.Register(m.seconds))
}

func (m *Metrics) answered(endpoint string, status int, took time.Duration) {
	m.requests.WithLabelValues(endpoint, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(endpoint).Observe(took.Seconds())
}
