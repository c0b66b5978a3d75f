package report_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"math"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"deckle"
	"deckle/internal/catalog"
	"deckle/internal/dashboard/report"
	"deckle/internal/projection"
	"deckle/internal/store"
	"deckle/internal/store/memory"
)

// unread is a catalog of which nothing is known.
func unread() *catalog.Snapshot {
	return catalog.New(memory.NewKV(), memory.NewKV(), catalog.Config{}).Snapshot()
}

// It is March an hour east of Greenwich, and still February in UTC, by which reports
// count.
var now = time.Date(2026, 3, 1, 0, 30, 0, 0, time.FixedZone("", 3600))

func TestParse(t *testing.T) {
	t.Parallel()
	days := func(from, to string, by ...projection.Dimension) report.Query {
		return report.Query{Filter: projection.Filter{From: from, To: to}, By: by}
	}
	for query, want := range map[string]report.Query{
		"":                              days("2026-01-30", "2026-02-28", projection.ByDay),
		"to=2026-02-01":                 days("2026-01-03", "2026-02-01", projection.ByDay),
		"from=2026-02-28&by=":           days("2026-02-28", "2026-02-28", projection.ByDay),
		"by=creative,day":               days("2026-01-30", "2026-02-28", projection.ByDay, projection.ByCreative),
		"by=site&by=site&by=advertiser": days("2026-01-30", "2026-02-28", projection.BySite, projection.ByAdvertiser),
		"from=2023-02-27":               days("2023-02-27", "2026-02-28", projection.ByDay),
	} {
		v, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		got, problems := report.Parse(v, unread(), now)
		if diff := cmp.Diff(want, got); diff != "" || problems != nil {
			t.Errorf("%s: %v %s", query, problems, diff)
		}
		again, problems := report.Parse(got.Values(), unread(), now)
		if diff := cmp.Diff(got, again); diff != "" || problems != nil {
			t.Errorf("%s, written and read again: %v %s", query, problems, diff)
		}
	}
	if n := len(days("2024-02-28", "2024-03-01").Days()); n != 3 {
		t.Errorf("%d days around a leap day", n)
	}
}

func TestWhatFollowsFromCounts(t *testing.T) {
	t.Parallel()
	var none report.Counts
	for name, ratio := range map[string]func() (float64, bool){"CTR": none.CTR, "viewability": none.Viewability, "retention": none.Retention} {
		if v, ok := ratio(); ok {
			t.Errorf("%s of nothing is %v", name, v)
		}
	}
	if v, ok := none.ECPM(); ok {
		t.Errorf("eCPM of nothing is %v", v)
	}
	some := report.Counts{Counts: projection.Counts{
		Organic:  projection.Actions{Impressions: 3, Viewable: 2, Clicks: 1},
		Dogeared: projection.Actions{Impressions: 100, Viewable: 100, Clicks: 100}, // changes nothing
		Spend:    10_000, Unbilled: projection.Unbilled{Duplicate: 4, Sealed: 2, LeaseExhausted: 1},
	}}
	ctr, _ := some.CTR()
	viewability, _ := some.Viewability()
	ecpm, _ := some.ECPM()
	if ctr != 1.0/3 || viewability != 2.0/3 || ecpm != 3_333_333 || some.NotBilled() != 3 {
		t.Errorf("CTR %v, viewability %v, eCPM %v, %d not billed", ctr, viewability, ecpm, some.NotBilled())
	}
	some.Spend = math.MaxInt64
	if v, ok := some.ECPM(); ok {
		t.Errorf("an eCPM that no int64 has is %v", v)
	}
	some.Organic.Impressions = 1000
	if v, ok := some.ECPM(); !ok || v != math.MaxInt64 {
		t.Errorf("the largest eCPM is %v, %v", v, ok)
	}
}

// told is a table of one row.
type told struct{ projection.Row }

func (r told) Report(context.Context, projection.Filter, ...projection.Dimension) ([]projection.Row, error) {
	return []projection.Row{r.Row}, nil
}

func (told) Freshness(string) (store.Seq, time.Time, bool) { return 1, now, true }

// Whatever an id may be, a reader of CSV has it again, and a spreadsheet computes
// nothing.
func TestCSVIsHarmless(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.OneOf(rapid.String(), rapid.Custom(func(t *rapid.T) string {
			return rapid.SampledFrom([]string{"=", "+", "-", "@", "\t", "＝", "'", `"`, ","}).Draw(t, "first") + rapid.String().Draw(t, "rest")
		})).Draw(t, "id")
		q := report.Query{By: []projection.Dimension{projection.BySite}}
		rep, err := report.Run(t.Context(), told{projection.Row{Site: id, Counts: projection.Counts{Spend: deckle.Money(2_500_000)}}}, unread(), q)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := report.WriteCSV(&b, unread(), rep); err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(&b).ReadAll()
		if err != nil || len(rows) != 2 || len(rows[0]) != len(rows[1]) {
			t.Fatalf("%v: %q", err, rows)
		}
		cell := rows[1][0]
		if cell != "" && strings.ContainsAny(cell[:1], "=+-@\t\r\n") {
			t.Errorf("%q begins a formula", cell)
		}
		// encoding/csv reads every end of a line as \n (RFC 4180 has \r\n alone).
		want := strings.ReplaceAll(id, "\r\n", "\n")
		if strings.TrimPrefix(cell, "'") != want && cell != want {
			t.Errorf("%q became %q", id, cell)
		}
		if rows[0][6] != "spend" || rows[1][6] != "2.5" {
			t.Errorf("spend: %q", rows)
		}
	})
}
