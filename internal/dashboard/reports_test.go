package dashboard_test

import (
	"context"
	"encoding/csv"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"deckle"
	"deckle/internal/dashboard/api"
	"deckle/internal/dashboard/report"
	"deckle/internal/journal"
	"deckle/internal/projection"
	"deckle/internal/store"
)

// longAgo is when the made-up days of goldens begin.
var longAgo = time.Date(2025, 11, 3, 6, 0, 0, 0, time.UTC)

// reported is a world with made-up days from then on.
func reported(t testing.TB) *world {
	w := newWorld(t, nil)
	w.report(longAgo)
	return w
}

// Reports as programs and spreadsheets have them, over days that are folded as any.
func TestReportsByAPI(t *testing.T) {
	t.Parallel()
	w := reported(t)
	c := newClient(t, w)
	for name, query := range map[string]string{
		"days_in_two_currencies": "from=2025-11-03&to=2025-11-30",
		"one_site_by_creative":   "from=2025-11-04&to=2025-11-05&by=creative,campaign&site=site-1",
		"one_advertiser":         "from=2025-11-03&to=2025-11-30&by=site,day&advertiser=adv-4",
		"nothing":                "from=2024-01-01&to=2024-01-02",
	} {
		t.Run(name, func(t *testing.T) {
			a := c.must(http.StatusOK, "GET", "/reports?"+query, "")
			golden(t, filepath.Join("testdata", "reports", name+".json"), a.body)
			table := c.must(http.StatusOK, "GET", "/reports.csv?"+query, "")
			golden(t, filepath.Join("testdata", "reports", name+".csv"), table.body)
			if other := c.must(http.StatusOK, "GET", "/reports?"+query, "", "Accept", "text/csv, application/json"); other.body != table.body {
				t.Error("Accept and the path give two tables")
			}
		})
	}
}

// Whatever rows are told apart by, they add up to what happened, in each currency.
func TestReportsAddUp(t *testing.T) {
	t.Parallel()
	w := reported(t)
	total := func(site string) (c projection.Counts) {
		rows, err := w.parts.Tables.Report(t.Context(), projection.Filter{Site: site})
		if err != nil || len(rows) != 1 {
			t.Fatal(err, rows)
		}
		return rows[0].Counts
	}
	want := map[string]int64{"JPY": int64(total("site-3").Spend), "USD": int64(total("site-1").Spend + total("site-2").Spend)}
	q := report.Query{Filter: projection.Filter{From: "2025-11-01", To: "2025-12-31"}}
	for set := 1; set < 1<<5; set++ {
		q.By = nil
		for i, d := range report.Dimensions() {
			if set>>i&1 == 1 {
				q.By = append(q.By, d)
			}
		}
		rep, err := report.Run(t.Context(), w.parts.Tables, w.catalog.Snapshot(), q)
		if err != nil {
			t.Fatal(err)
		}
		if len(rep.Groups) != 2 {
			t.Fatalf("by %v: %d currencies", q.By, len(rep.Groups))
		}
		for _, g := range rep.Groups {
			var sum deckle.Money
			seen := map[string]bool{}
			for _, r := range g.Rows {
				sum += r.Spend
				key := ""
				for _, d := range q.By {
					key += r.Value(d) + "/"
				}
				if seen[key] {
					t.Errorf("by %v: %s is there twice in %s", q.By, key, g.Currency)
				}
				seen[key] = true
			}
			if sum != g.Total.Spend || int64(sum) != want[g.Currency] || sum == 0 {
				t.Errorf("by %v: rows have %d %s, in all %d, and spent were %d", q.By, sum, g.Currency, g.Total.Spend, want[g.Currency])
			}
		}
	}
}

// A spreadsheet shows what people have called their campaigns, and computes nothing.
func TestNoFormulasInCSV(t *testing.T) {
	t.Parallel()
	w := reported(t)
	a := w.api("GET", "/reports.csv?from=2025-11-03&to=2025-11-30&by=campaign", "")
	if got := a.Header.Get("Content-Disposition"); got != "attachment; filename=deckle_2025-11-03_2025-11-30.csv" {
		t.Errorf("Content-Disposition: %s", got)
	}
	rows, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	if err != nil || len(rows) < 12 {
		t.Fatal(err, len(rows))
	}
	guarded := 0
	for _, row := range rows[1:] {
		for i, cell := range row {
			if strings.HasPrefix(cell, `'=HYPERLINK("http://evil.example"`) {
				guarded++
			}
			if cell != "" && strings.ContainsAny(cell[:1], "=+-@\t\r") {
				t.Errorf("%s begins a formula: %q", rows[0][i], cell)
			}
		}
	}
	if guarded != 4 {
		t.Errorf("%d names are guarded", guarded)
	}
}

// What is wrong with a question is said of the parameter that is wrong.
func TestReportQuestions(t *testing.T) {
	t.Parallel()
	w := reported(t)
	c := newClient(t, w)
	p := w.logIn("ana")
	for query, fields := range map[string]string{
		"from=yesterday":                "from",
		"from=2025-11-05&to=2025-11-04": "from",
		"from=2001-01-01":               "from",
		"to=2025-13-01":                 "to",
		"to=0001-01-01":                 "to",
		"by=hour":                       "by",
		"by=day,hour&site=nowhere&creative=%3Cb>": "by creative site",
		"campaign=adv-1": "campaign",
	} {
		var got []string
		for _, e := range decode[api.Problem](t, c.must(http.StatusBadRequest, "GET", "/reports?"+query, "")).Errors {
			got = append(got, e.Field)
		}
		if strings.Join(got, " ") != fields {
			t.Errorf("%s: wrong are %v, want %s", query, got, fields)
		}
		page := p.get("/reports?" + query)
		if alert := text(parse(t, page).one("section", "role", "alert")); page.StatusCode != http.StatusBadRequest || !strings.Contains(alert, strings.Fields(fields)[0]+": ") {
			t.Errorf("%s: page %d says %q", query, page.StatusCode, alert)
		}
	}
	c.must(http.StatusBadRequest, "GET", "/reports?by=day&by=site", "")
	c.must(http.StatusBadRequest, "GET", "/reports?tz=UTC", "")
	c.must(http.StatusNotAcceptable, "GET", "/reports", "", "Accept", "application/xml, text/csv;q=0")
	for accept, media := range map[string]string{
		"": "application/json", "*/*": "application/json", "text/html, text/csv": "text/csv; charset=utf-8; header=present", "application/json, text/csv": "application/json",
	} {
		if a := c.must(http.StatusOK, "GET", "/reports", "", "Accept", accept); a.Header.Get("Content-Type") != media {
			t.Errorf("Accept %q: %s", accept, a.Header.Get("Content-Type"))
		}
	}

	w.parts.Tables = enormous{}
	w.open()
	if e := decode[api.Problem](t, newClient(t, w).must(http.StatusBadRequest, "GET", "/reports", "")).Errors; len(e) != 1 || e[0].Field != "by" {
		t.Errorf("too many rows: %+v", e)
	}
	p = w.logIn("ana")
	if a := p.get("/reports"); a.StatusCode != http.StatusBadRequest || !strings.Contains(a.body, "Too many rows") {
		t.Errorf("too many rows: page %d", a.StatusCode)
	}
	if a := p.get("/reports.csv?by=day"); a.Header.Get("Location") != "/reports?by=day" {
		t.Errorf("too many rows: export %d", a.StatusCode)
	}
}

// enormous are tables with more rows than a report may have.
type enormous struct{ report.Tables }

func (enormous) Report(context.Context, projection.Filter, ...projection.Dimension) ([]projection.Row, error) {
	return nil, fmt.Errorf("report: %w", projection.ErrTooLarge)
}

func (enormous) Freshness(string) (seq store.Seq, at time.Time, ok bool) { return 1, longAgo, true }

// A page of a report has a section for each currency, and no sum of two.
func TestReportsPage(t *testing.T) {
	t.Parallel()
	w := reported(t)
	p := w.logIn("ana")
	tr := parse(t, p.get("/reports?from=2025-11-03&to=2025-11-30"))
	if got := texts(tr.all("h2")); !slices.Equal(got, []string{"In JPY", "In USD"}) {
		t.Fatalf("sections %v", got)
	}
	rep := decode[api.Report](t, w.api("GET", "/reports?from=2025-11-03&to=2025-11-30", ""))
	for i, total := range rep.Totals {
		section := tree{t, tr.all("section", "class", "section")[i]}
		foot := section.one("tfoot")
		cells := texts(tree{t, foot}.all("td"))
		if cells[0] != thousands(total.Organic.Impressions) || cells[11] != thousands(total.Dogeared.Impressions) ||
			cells[15] != thousands(total.Unbilled.Sealed) || cells[18] != thousands(total.Suspects) {
			t.Errorf("%s: in all %v, want %+v", total.Currency, cells, total)
		}
		for _, chart := range section.all("figure") {
			judgeChart(t, tree{t, chart})
		}
	}
	if got := text(tr.one("p", "class", "lead")); !strings.Contains(got, rep.AsOf.Format("2 Jan 2006, 15:04")) {
		t.Errorf("as of: %s", got)
	}

	// Each row leads to a report about it alone.
	tr = parse(t, p.get("/reports?from=2025-11-03&to=2025-11-30&by=campaign&site=site-1"))
	if got := tr.value("site"); got != "site-1" {
		t.Errorf("the question has site %q", got)
	}
	row := tree{t, tree{t, tr.one("table", "class", "report")}.all("tbody")[0]}
	href, _ := attr(row.all("a")[0], "href")
	narrow, err := url.Parse(href)
	if q := narrow.Query(); err != nil || !strings.HasPrefix(q.Get("campaign"), "camp-") || q.Get("site") != "site-1" || q.Get("by") != "day" {
		t.Errorf("a row leads to %s", href)
	}
	if got := text(parse(t, p.get(href)).one("main")); !strings.Contains(got, "In all") {
		t.Errorf("%s says %s", href, got)
	}
}

// judgeChart holds a chart against the table of its numbers: as many columns, as
// high, and told to who does not see them.
func judgeChart(t *testing.T, c tree) {
	t.Helper()
	svg := c.one("svg", "role", "img")
	for _, name := range []string{"aria-labelledby", "aria-describedby"} {
		id, _ := attr(svg, name)
		if len(c.all("*", "id", id)) != 1 {
			t.Errorf("%s names nothing", name)
		}
	}
	rows := c.all("tr")[1:]
	if len(rows) < 2 {
		t.Fatalf("%d rows", len(rows))
	}
	bars := 0
	for _, row := range rows {
		for _, cell := range texts(tree{t, row}.all("td")) {
			if !strings.HasPrefix(cell, "0") || strings.Trim(strings.Fields(cell)[0], "0.") != "" {
				bars++
			}
		}
	}
	drawn := tree{t, svg}.all("rect")
	for _, r := range drawn {
		y, _ := attr(r, "y")
		h, _ := attr(r, "height")
		top, errTop := strconv.ParseFloat(y, 64)
		height, errHeight := strconv.ParseFloat(h, 64)
		if errTop != nil || errHeight != nil || top < -0.01 || height <= 0 || top+height > 100.02 {
			t.Errorf("a column from %s of height %s", y, h)
		}
	}
	if len(drawn) != bars {
		t.Errorf("%d columns, and %d numbers that are not nothing", len(drawn), bars)
	}
}

func texts(nodes []*html.Node) (out []string) {
	for _, n := range nodes {
		out = append(out, text(n))
	}
	return out
}

// thousands writes a number as pages do.
func thousands(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// A page that has nothing to show says why.
func TestEmptyReports(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.populate()
	says := func(path string) string {
		t.Helper()
		a := w.logIn("ana").get(path)
		if a.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d", path, a.StatusCode)
		}
		return text(parse(t, a).one("main"))
	}
	if got := says("/reports"); !strings.Contains(got, "Reports are not open") {
		t.Errorf("without tables: %s", got)
	}
	newClient(t, w).must(http.StatusServiceUnavailable, "GET", "/reports", "")
	if got := says("/"); strings.Contains(got, "The last 14 days") {
		t.Errorf("an overview without tables: %s", got)
	}

	w.parts.Tables = folded(w)
	w.open()
	if got := says("/reports"); !strings.Contains(got, "Nothing has been counted yet") {
		t.Errorf("nothing folded: %s", got)
	}
	if got := says("/"); !strings.Contains(got, "No reader has seen a magazine in these days") {
		t.Errorf("an overview of nothing: %s", got)
	}

	w.parts.Tables = folded(w, journal.Event{
		Kind: journal.Unfold, At: longAgo, Site: "elsewhere", Slot: "s", Creative: "c", RequestID: "00000000000000aa",
	})
	w.open()
	got := says("/reports")
	if !strings.Contains(got, "Nothing happened in these days") || !strings.Contains(got, "Go to the latest event") {
		t.Errorf("other days: %s", got)
	}
	if got := says("/reports?from=2025-11-03&to=2025-11-03&by=advertiser"); !strings.Contains(got, "In a currency that is not known") || !strings.Contains(got, "not told") {
		t.Errorf("a site that nobody knows: %s", got)
	}
}

// The export of a page opens in a spreadsheet, and needs the session that the page
// needs.
func TestExport(t *testing.T) {
	t.Parallel()
	w := reported(t)
	p := w.logIn("ana")
	page := parse(t, p.get("/reports?from=2025-11-03&to=2025-11-30&by=site"))
	href, _ := attr(page.one("a", "download", ""), "href")
	a := p.get(href)
	table, marked := strings.CutPrefix(a.body, "\ufeff")
	if a.StatusCode != http.StatusOK || !marked || table != w.api("GET", "/reports.csv?from=2025-11-03&to=2025-11-30&by=site", "").body {
		t.Errorf("%d, marked %v: %.80q", a.StatusCode, marked, a.body)
	}
	if a := w.ask("GET", href, ""); a.StatusCode != http.StatusSeeOther || !strings.HasPrefix(a.Header.Get("Location"), "/login") {
		t.Errorf("without a session: %d", a.StatusCode)
	}
	if a := p.get("/reports.csv?from=x"); a.Header.Get("Location") != "/reports?from=x" {
		t.Errorf("a question that is wrong: %d %s", a.StatusCode, a.Header.Get("Location"))
	}
}
