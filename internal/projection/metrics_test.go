package projection_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"deckle/internal/journal"
	"deckle/internal/projection"
)

func TestMetrics(t *testing.T) {
	h := newHistory()
	h.add(journal.Event{Kind: journal.Lease, At: monday, Lease: "l1", Line: "campaign/c1", Amount: 250}, impression(0), impression(1))
	h.add(impression(2), impression(0))
	tables := open(t, filepath.Join(t.TempDir(), "report.db"))
	if err := tables.FoldTo(t.Context(), h, h.last()); err != nil {
		t.Fatal(err)
	}
	r := prometheus.NewPedanticRegistry()
	if err := tables.Register(r); err != nil {
		t.Fatal(err)
	}
	if err := fold(t, h, projection.Config{}).Register(r); err != nil {
		t.Fatal(err)
	}
	err := testutil.GatherAndCompare(r, strings.NewReader(`
# HELP deckle_impressions_total Organic impressions in the journal, by what became of their price.
# TYPE deckle_impressions_total counter
deckle_impressions_total{billing="billed"} 2
deckle_impressions_total{billing="duplicate"} 1
deckle_impressions_total{billing="lease_exhausted"} 1
deckle_impressions_total{billing="sealed"} 0
# HELP deckle_projection_envelope The last envelope of the journal that a projection has folded.
# TYPE deckle_projection_envelope gauge
deckle_projection_envelope{projection="hot"} 2
deckle_projection_envelope{projection="report"} 2
# HELP deckle_projection_events_total Events of the journal that a projection has folded.
# TYPE deckle_projection_events_total counter
deckle_projection_events_total{projection="report"} 5
# HELP deckle_projection_repeats_total Those of them that had been told before, and so did not count.
# TYPE deckle_projection_repeats_total counter
deckle_projection_repeats_total{projection="report"} 1
`))
	if err != nil {
		t.Error(err)
	}
}
