package edge_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"deckle/internal/edge"
)

// counts are the edge's counters that are above zero, by name and labels:
// "deckle_requests_total run test".
func (w *world) counts(t *testing.T) map[string]float64 {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	if err := w.edge.Metrics().Register(r); err != nil {
		t.Fatal(err)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := strings.TrimPrefix(f.GetName(), "deckle_")
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			if n := m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount()); n > 0 {
				counts[name] = n
			}
		}
	}
	return counts
}

// Every request is counted once, by what became of it.
func TestCounts(t *testing.T) {
	json := answerWith(200, map[string]string{"Content-Type": "application/json"}, "{}")
	off := func(c *edge.Config) { c.AuctionEnabled = false }
	for name, c := range map[string]struct {
		setup  setup
		path   string
		origin http.HandlerFunc
		want   map[string]float64
	}{
		"bids in head": {setup{}, "/x", html(page), map[string]float64{"requests_total run test": 1, "pages_with_bids_total test head": 1, "origin_seconds test": 1, "hold_seconds test": 1}},
		"bids in body": {setup{settings: headHold(0)}, "/x", html(headPart, bodyPart, 100*ms, lastPart), map[string]float64{"requests_total run test": 1, "pages_with_bids_total test body": 1, "origin_seconds test": 1, "hold_seconds test": 1}},
		"bids at end":  {setup{settings: headHold(0)}, "/x", html(page), map[string]float64{"requests_total run test": 1, "pages_with_bids_total test end": 1, "origin_seconds test": 1, "hold_seconds test": 1}},
		"without bids": {setup{}, "/x", html("<!doctype html><!-- "), map[string]float64{"requests_total run test": 1, "pages_with_bids_total test none": 1, "origin_seconds test": 1, "hold_seconds test": 1}},
		"no auction":   {setup{config: off}, "/x", html(page), map[string]float64{"requests_total no_auction test": 1, "origin_seconds test": 1}},
		"untouched":    {setup{}, "/x", json, map[string]float64{"requests_total run test": 1, "pages_untouched_total type test": 1}},
		"no slots":     {setup{}, "/plain", html(page), map[string]float64{"requests_total no_slot test": 1}},
		"origin fails": {setup{}, "/x", raw(""), map[string]float64{"requests_total run test": 1, "origin_errors_total test": 1}},
		"fails, plain": {setup{}, "/plain", raw(""), map[string]float64{"requests_total no_slot test": 1, "origin_errors_total test": 1}},
		"ours":         {setup{}, "/_deckle/x", html(page), map[string]float64{}},
		"not our host": {setup{site: func(s *edge.Site) { s.Hosts = []string{"m.test"} }}, "/x", html(page), map[string]float64{"misdirected_total": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, c.setup, c.origin, bids(20*ms, "1"))
				w.get(t.Context(), navigation(c.path))
				if got := w.counts(t); !maps.Equal(got, c.want) {
					t.Errorf("counted %v, want %v", got, c.want)
				}
			})
		})
	}
}
