package projection_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckle/internal/journal"
	"deckle/internal/projection"
)

// reported folds events into new tables.
func reported(t *testing.T, events ...journal.Event) *projection.Tables {
	t.Helper()
	h := newHistory()
	h.add(events...)
	tables := open(t, filepath.Join(t.TempDir(), "report.db"))
	if err := tables.FoldTo(t.Context(), h, 1); err != nil {
		t.Fatal(err)
	}
	return tables
}

// happened is an event of a kind, its n-th, in a place.
func happened(kind journal.Kind, n int, change func(e *journal.Event)) journal.Event {
	e := impression(n)
	e.Kind = kind
	if kind != journal.Impression {
		e.Price, e.Leases = 0, nil
	}
	if change != nil {
		change(&e)
	}
	return e
}

// Each event is in one column, and a dog-eared or suspect one is not in those of the
// others.
func TestColumns(t *testing.T) {
	lease := journal.Event{Kind: journal.Lease, At: monday, Lease: "l1", Line: "campaign/c1/2026-03-02", Amount: 250}
	dogeared := func(e *journal.Event) { e.Dogeared, e.Price, e.Leases = true, 0, nil }
	suspect := func(e *journal.Event) { e.Suspect = journal.SuspectRate }
	seal := journal.Event{Kind: journal.Seal, At: monday, Lease: "l1", Line: "campaign/c1/2026-03-02"}
	for name, test := range map[string]struct {
		events []journal.Event
		want   projection.Counts
	}{
		"impressions, of which the lease pays two": {
			[]journal.Event{lease, impression(1), impression(2), impression(3)},
			projection.Counts{Organic: projection.Actions{Impressions: 3}, Spend: 200, Unbilled: projection.Unbilled{LeaseExhausted: 1}},
		},
		"an impression behind the seal": {
			[]journal.Event{lease, impression(1), seal, impression(2)},
			projection.Counts{Organic: projection.Actions{Impressions: 2}, Spend: 100, Unbilled: projection.Unbilled{Sealed: 1}},
		},
		"a lease that comes behind its seal": {
			[]journal.Event{seal, lease, impression(1)},
			projection.Counts{Organic: projection.Actions{Impressions: 1}, Unbilled: projection.Unbilled{Sealed: 1}},
		},
		"an impression told twice": {
			[]journal.Event{lease, impression(1), impression(1)},
			projection.Counts{Organic: projection.Actions{Impressions: 1}, Spend: 100, Unbilled: projection.Unbilled{Duplicate: 1}},
		},
		"a lease that nobody took": {
			[]journal.Event{impression(1)},
			projection.Counts{Organic: projection.Actions{Impressions: 1}, Unbilled: projection.Unbilled{Sealed: 1}},
		},
		"two leases, of which one is short": {
			[]journal.Event{
				lease,
				{Kind: journal.Lease, At: monday, Lease: "l2", Line: "advertiser/a1/2026-03-02", Amount: 150},
				happened(journal.Impression, 1, func(e *journal.Event) { e.Leases = []string{"l1", "l2"} }),
				happened(journal.Impression, 2, func(e *journal.Event) { e.Leases = []string{"l1", "l2"} }),
				impression(3), // what l1 was not charged for the second one pays this
			},
			projection.Counts{Organic: projection.Actions{Impressions: 3}, Spend: 200, Unbilled: projection.Unbilled{LeaseExhausted: 1}},
		},
		"a view, a click and two CTAs": {
			[]journal.Event{happened(journal.View, 1, nil), happened(journal.Click, 1, nil), happened(journal.CTA, 1, nil), happened(journal.CTA, 2, nil)},
			projection.Counts{Organic: projection.Actions{Viewable: 1, Clicks: 1, CTA: 2}},
		},
		"the same by a pin": {
			[]journal.Event{
				happened(journal.Impression, 1, dogeared), happened(journal.View, 1, dogeared), happened(journal.Click, 1, dogeared),
				happened(journal.CTA, 1, dogeared), happened(journal.CTA, 2, dogeared),
			},
			projection.Counts{Dogeared: projection.Actions{Impressions: 1, Viewable: 1, Clicks: 1, CTA: 2}},
		},
		"folds, also of a pinned one": {
			[]journal.Event{happened(journal.Fold, 1, nil), happened(journal.Fold, 2, dogeared), happened(journal.Unfold, 3, nil)},
			projection.Counts{Folds: 2, Unfolds: 1},
		},
		"suspects of every kind": {
			[]journal.Event{
				lease, happened(journal.Impression, 1, suspect), happened(journal.Click, 1, suspect), happened(journal.Fold, 1, suspect),
				happened(journal.Impression, 1, suspect), impression(2), impression(3),
			},
			projection.Counts{Organic: projection.Actions{Impressions: 2}, Spend: 200, Suspects: 3},
		},
	} {
		t.Run(name, func(t *testing.T) {
			rows, err := reported(t, test.events...).Report(t.Context(), projection.Filter{})
			if err != nil || len(rows) != 1 {
				t.Fatalf("%v, %v", rows, err)
			}
			if diff := cmp.Diff(projection.Row{Counts: test.want}, rows[0]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFilters(t *testing.T) {
	var events []journal.Event
	for i := range 32 { // every combination of day, site, advertiser and campaign, creative
		events = append(events, happened(journal.Click, i, func(e *journal.Event) {
			e.At = monday.AddDate(0, 0, i&1).Add(23*time.Hour + 59*time.Minute)
			e.Site = fmt.Sprint("s", i>>1&1)
			e.Advertiser, e.Campaign = fmt.Sprint("a", i>>2&1), fmt.Sprint("c", i>>2&3)
			e.Creative = fmt.Sprint("k", i>>4&1)
		}))
	}
	tables := reported(t, events...)
	for _, test := range []struct {
		filter projection.Filter
		by     []projection.Dimension
		rows   int
		first  projection.Row // its clicks are those of every row
	}{
		{by: nil, rows: 1, first: projection.Row{Counts: clicks(32)}},
		{by: []projection.Dimension{projection.ByDay}, rows: 2, first: projection.Row{Day: "2026-03-02", Counts: clicks(16)}},
		{by: []projection.Dimension{projection.BySite}, rows: 2, first: projection.Row{Site: "s0", Counts: clicks(16)}},
		{by: []projection.Dimension{projection.ByAdvertiser}, rows: 2, first: projection.Row{Advertiser: "a0", Counts: clicks(16)}},
		{
			by: []projection.Dimension{projection.ByCampaign, projection.ByDay}, rows: 8,
			first: projection.Row{Campaign: "c0", Day: "2026-03-02", Counts: clicks(4)},
		},
		{filter: projection.Filter{From: "2026-03-03"}, rows: 1, first: projection.Row{Counts: clicks(16)}},
		{filter: projection.Filter{To: "2026-03-02"}, rows: 1, first: projection.Row{Counts: clicks(16)}},
		{filter: projection.Filter{From: "2026-03-02", To: "2026-03-03"}, rows: 1, first: projection.Row{Counts: clicks(32)}},
		{filter: projection.Filter{Site: "s1", Advertiser: "a1"}, rows: 1, first: projection.Row{Counts: clicks(8)}},
		{filter: projection.Filter{Campaign: "c3"}, rows: 1, first: projection.Row{Counts: clicks(8)}},
		{
			filter: projection.Filter{Creative: "k1"}, by: []projection.Dimension{projection.ByCreative}, rows: 1,
			first: projection.Row{Creative: "k1", Counts: clicks(16)},
		},
		{filter: projection.Filter{Campaign: "' OR 1=1 --"}, rows: 0},
		{filter: projection.Filter{Campaign: "c9"}, by: []projection.Dimension{projection.ByDay}, rows: 0},
	} {
		rows, err := tables.Report(t.Context(), test.filter, test.by...)
		if err != nil || len(rows) != test.rows {
			t.Errorf("%+v by %v: %d rows, %v; want %d", test.filter, test.by, len(rows), err, test.rows)
			continue
		}
		if len(rows) > 0 {
			if diff := cmp.Diff(test.first, rows[0]); diff != "" {
				t.Errorf("%+v by %v: first row %s", test.filter, test.by, diff)
			}
		}
		for _, r := range rows {
			if r.Counts != test.first.Counts {
				t.Errorf("%+v by %v: %+v, want %+v", test.filter, test.by, r, test.first.Counts)
			}
		}
	}
	if _, err := tables.Report(t.Context(), projection.Filter{}, "spend; DROP TABLE report"); err == nil {
		t.Error("a made-up dimension was taken")
	}
}

// A report that nobody could read is refused, and does not fill the memory.
func TestReportTooLarge(t *testing.T) {
	tables := reported(t, happened(journal.Click, 1, nil), happened(journal.Click, 2, func(e *journal.Event) { e.Site = "s2" }))
	for limit, want := range map[int]error{2: nil, 1: projection.ErrTooLarge} {
		tables.SetMaxRows(limit)
		rows, err := tables.Report(t.Context(), projection.Filter{}, projection.BySite)
		if !errors.Is(err, want) || err == nil && len(rows) != 2 {
			t.Errorf("two rows where %d are allowed: %d rows, %v", limit, len(rows), err)
		}
	}
}

func clicks(n int64) projection.Counts {
	return projection.Counts{Organic: projection.Actions{Clicks: n}}
}

func TestRetention(t *testing.T) {
	for _, test := range []struct {
		folds, unfolds int64
		want           float64
		ok             bool
	}{
		{0, 0, 0, false},
		{0, 3, 0, false},
		{4, 1, 0.75, true},
		{4, 0, 1, true},
		{4, 9, 0, true}, // removed here, and folded before the reports began
	} {
		got, ok := projection.Counts{Folds: test.folds, Unfolds: test.unfolds}.Retention()
		if got != test.want || ok != test.ok {
			t.Errorf("%d folds, %d unfolds: %v, %v; want %v, %v", test.folds, test.unfolds, got, ok, test.want, test.ok)
		}
	}
}

// A report is answered while a batch is being folded, with what was there before.
func TestReportDoesNotWait(t *testing.T) {
	h := traffic(500, 1)
	tables := open(t, filepath.Join(t.TempDir(), "report.db"))
	if err := tables.FoldTo(t.Context(), h, 1); err != nil {
		t.Fatal(err)
	}
	before, err := tables.Report(t.Context(), projection.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	asked := false
	tables.BeforeCommit(func() error {
		if asked {
			return nil
		}
		asked = true
		ctx, stop := context.WithTimeout(t.Context(), 3*time.Second) // less than SQLite waits for a lock
		defer stop()
		during, err := tables.Report(ctx, projection.Filter{})
		if err != nil {
			return err
		}
		if diff := cmp.Diff(before, during); diff != "" {
			t.Errorf("what is not committed is reported: %s", diff)
		}
		return nil
	})
	if err := tables.FoldTo(t.Context(), h, h.last()); err != nil {
		t.Error(err)
	}
}
