package dashboard

import (
	"cmp"
	"context"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"deckle/internal/catalog"
	"deckle/internal/dashboard/report"
	"deckle/internal/projection"
)

// reportsPage is what happened in some days: what is asked, totals, charts and rows,
// one section for each currency.
type reportsPage struct {
	frame
	Question question
	Ranges   []choice
	AsOf     time.Time // of the latest event that is counted
	Groups   []reportGroup
	Export   link
	Empty    *emptyReport // why there are no groups
}

// A question is the form above a report.
type question struct {
	From, To string
	Of       []field // what the report is about
	By       []option
	Problems []catalog.Problem
}

// An emptyReport says why there is nothing, and what to do.
type emptyReport struct {
	Title, Text string
	Help        link
}

// A reportGroup is the section of one currency.
type reportGroup struct {
	Currency string // "" = not known
	Figures  []figure
	Charts   []chart
	Head     []reportHead
	Rows     []reportRow
	Total    []string
	More     int // rows that are only in the export
}

type figure struct{ Label, Text, Note string }

// A reportHead is a heading over columns of figures.
type reportHead struct {
	Label   string
	Columns []string
}

type reportRow struct {
	Keys  []cell
	Share string // width of a bar of 100; "" for none
	Texts []string
}

// maxReportRows is how many rows a page has.
const maxReportRows = 200

func (d *Dashboard) showReports(v visit) error {
	s, err := d.snapshot()
	if err != nil {
		return err
	}
	now := time.Now()
	q, problems := report.Parse(v.r.URL.Query(), s, now)
	p := reportsPage{frame: d.frame(v, "Reports", "/reports"), Question: newQuestion(s, q, problems), Ranges: ranges(q, now)}
	p.Export = link{"/reports.csv?" + q.Values().Encode(), "Export as CSV"}
	if problems != nil {
		return render(v.w, http.StatusBadRequest, "reports", p)
	}
	if d.parts.Tables == nil {
		p.Empty = &emptyReport{Title: "Reports are not open", Text: "This node has no report.db to read from. The overview says how its parts are.", Help: link{"/", "To the overview"}}
		return render(v.w, http.StatusOK, "reports", p)
	}
	rep, daily, err := d.report(v.r.Context(), s, q)
	if errors.Is(err, projection.ErrTooLarge) {
		p.Question.Problems = []catalog.Problem{{Field: "by", Msg: "Too many rows", Remedy: "choose fewer days, one campaign, or fewer things to tell apart"}}
		return render(v.w, http.StatusBadRequest, "reports", p)
	}
	if err != nil {
		return err
	}
	p.AsOf = rep.AsOf
	for i, g := range rep.Groups {
		p.Groups = append(p.Groups, newReportGroup(s, q, g, daily.Groups[i]))
	}
	if len(p.Groups) == 0 {
		p.Empty = noReport(q, rep.AsOf)
	}
	return render(v.w, http.StatusOK, "reports", p)
}

// report answers a query, and the same by day: both have the same currencies.
func (d *Dashboard) report(ctx context.Context, s *catalog.Snapshot, q report.Query) (rep, daily report.Report, err error) {
	byDay := q
	byDay.By = []projection.Dimension{projection.ByDay}
	if daily, err = report.Run(ctx, d.parts.Tables, s, byDay); err != nil || slices.Equal(q.By, byDay.By) {
		return daily, daily, err
	}
	if rep, err = report.Run(ctx, d.parts.Tables, s, q); err != nil {
		return rep, daily, err
	}
	// What was folded between the two may be the first of its currency.
	known := func(groups []report.Group) func(report.Group) bool {
		return func(g report.Group) bool {
			return !slices.ContainsFunc(groups, func(o report.Group) bool { return o.Currency == g.Currency })
		}
	}
	rep.Groups = slices.DeleteFunc(rep.Groups, known(daily.Groups))
	daily.Groups = slices.DeleteFunc(daily.Groups, known(rep.Groups))
	return rep, daily, nil
}

// exportReport is the report of a page as CSV, for who has a spreadsheet and no key of
// the API. The byte order mark tells Excel that it is UTF-8.
func (d *Dashboard) exportReport(v visit) error {
	s, err := d.snapshot()
	if err != nil {
		return err
	}
	q, problems := report.Parse(v.r.URL.Query(), s, time.Now())
	if problems != nil || d.parts.Tables == nil {
		return v.redirect("/reports?" + v.r.URL.RawQuery) // which says what is wrong
	}
	rep, err := report.Run(v.r.Context(), d.parts.Tables, s, q)
	if errors.Is(err, projection.ErrTooLarge) {
		return v.redirect("/reports?" + v.r.URL.RawQuery)
	}
	if err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8; header=present")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": "deckle_" + q.Title() + ".csv"}))
	if _, err := v.w.Write([]byte("\ufeff")); err == nil {
		_ = report.WriteCSV(v.w, s, rep) // an error says that the browser has gone
	}
	return nil
}

func newQuestion(s *catalog.Snapshot, q report.Query, problems []catalog.Problem) question {
	out := question{From: q.From, To: q.To, Problems: problems}
	values := q.Values()
	for _, d := range report.Dimensions() {
		out.By = append(out.By, option{Value: string(d), Label: strings.ToUpper(string(d[:1])) + string(d[1:]), Chosen: slices.Contains(q.By, d)})
		if d == projection.ByDay {
			continue
		}
		f := choose(s, catalog.Kind(d), title(catalog.Kind(d)), "All")
		f.take(values)
		out.Of = append(out.Of, f)
	}
	return out
}

// ranges are spans of days that people ask for most.
func ranges(q report.Query, now time.Time) (choices []choice) {
	today := now.UTC()
	for _, r := range []struct {
		text string
		days int
	}{{"7 days", 7}, {"30 days", 30}, {"90 days", 90}} {
		o := q
		o.From, o.To = today.AddDate(0, 0, 1-r.days).Format(time.DateOnly), today.Format(time.DateOnly)
		choices = append(choices, choice{link{"/reports?" + o.Values().Encode(), r.text}, o.From == q.From && o.To == q.To})
	}
	return choices
}

func noReport(q report.Query, asOf time.Time) *emptyReport {
	if asOf.IsZero() {
		return &emptyReport{
			Title: "Nothing has been counted yet",
			Text:  "Figures come with the first magazine that a reader sees. For that a site needs an approved creative of a running campaign, and slots of kind magazine in its template.",
			Help:  link{"/inbox", "See what waits for approval"},
		}
	}
	e := &emptyReport{Title: "Nothing happened in these days", Text: "At least nothing of what was asked for. Choose other days, or leave out a filter."}
	if last := asOf.UTC().Format(time.DateOnly); last < q.From || last > q.To {
		o := report.Query{By: q.By}
		o.From, o.To = asOf.UTC().AddDate(0, 0, -29).Format(time.DateOnly), last
		e.Help = link{"/reports?" + o.Values().Encode(), "Go to the latest event"}
	}
	return e
}

// newReportGroup is the section of a currency.
func newReportGroup(s *catalog.Snapshot, q report.Query, g, daily report.Group) reportGroup {
	out := reportGroup{
		Currency: g.Currency, Figures: figures(g.Total, g.Currency), Charts: dailyCharts(q.Days(), daily),
		Head: reportHeads(), Total: reportTexts(g.Total, g.Currency),
	}
	rows := slices.Clone(g.Rows)
	slices.SortStableFunc(rows, func(a, b report.Row) int { // the latest day first, and where most was spent
		return cmp.Or(strings.Compare(b.Day, a.Day), cmp.Compare(b.Spend, a.Spend), cmp.Compare(b.Organic.Impressions, a.Organic.Impressions))
	})
	most := int64(0)
	for _, r := range rows {
		most = max(most, r.Organic.Impressions)
	}
	for _, r := range rows[:min(len(rows), maxReportRows)] {
		row := reportRow{Texts: reportTexts(r.Counts, g.Currency)}
		for _, d := range q.By {
			row.Keys = append(row.Keys, keyCell(s, q, d, r))
		}
		if q.By[0] != projection.ByDay && most > 0 {
			row.Share = number(float64(r.Organic.Impressions) / float64(most) * 100)
		}
		out.Rows = append(out.Rows, row)
	}
	out.More = len(rows) - len(out.Rows)
	return out
}

// keyCell is what a row is about; it leads to a report about that alone.
func keyCell(s *catalog.Snapshot, q report.Query, d projection.Dimension, r report.Row) cell {
	value := r.Value(d)
	label := title(catalog.Kind(d))
	if value == "" {
		return cell{Label: label, Text: "not told"} // of an unfold without a token
	}
	narrow := q.Values()
	if d == projection.ByDay {
		narrow.Set("from", value)
		narrow.Set("to", value)
		narrow.Set("by", string(projection.ByCampaign))
		return cell{Label: label, Text: dayText(value), Href: "/reports?" + narrow.Encode()}
	}
	narrow.Set(string(d), value)
	narrow.Set("by", string(projection.ByDay))
	c := cell{Label: label, Text: report.Name(s, d, value), Href: "/reports?" + narrow.Encode()}
	if c.Text != value {
		c.ID = value
	}
	return c
}

// figures are the totals that people look for first.
func figures(c report.Counts, currency string) []figure {
	return []figure{
		{"Impressions", count(c.Organic.Impressions), withoutBookmark(c)},
		{"Viewable", percent(c.Viewability()), count(c.Organic.Viewable) + " impressions"},
		{"CTR", percent(c.CTR()), count(c.Organic.Clicks) + " clicks"},
		{"Spend", money(int64(c.Spend), currency), notBilled(c)},
		{"eCPM", ecpm(c, currency), "a thousand"},
		{"Pins kept", percent(c.Retention()), "of " + count(c.Folds) + " folded"},
	}
}

func withoutBookmark(c report.Counts) string {
	return "+ " + count(c.Dogeared.Impressions) + " bookmarked"
}

func notBilled(c report.Counts) string {
	if n := c.NotBilled(); n > 0 {
		return count(n) + " not billed"
	}
	return "all billed"
}

func ecpm(c report.Counts, currency string) string {
	v, ok := c.ECPM()
	if !ok {
		return "–"
	}
	return money(int64(v), currency)
}

func reportHeads() []reportHead {
	return []reportHead{
		{"Shown", []string{"Impressions", "Viewable", "Viewability", "Clicks", "CTR", "CTA"}},
		{"Money", []string{"Spend", "eCPM"}},
		{"Pins", []string{"Folds", "Unfolds", "Kept"}},
		{"By bookmark (dog-eared), free", []string{"Impressions", "Viewable", "Clicks", "CTA"}},
		{"Not billed", []string{"Late", "Beyond budget", "Duplicates"}},
		{"Not counted", []string{"Suspects"}},
	}
}

// reportTexts are the figures of a row, in the order of the heads.
func reportTexts(c report.Counts, currency string) []string {
	return []string{
		count(c.Organic.Impressions), count(c.Organic.Viewable), percent(c.Viewability()), count(c.Organic.Clicks), percent(c.CTR()), count(c.Organic.CTA),
		without(currency, money(int64(c.Spend), currency)), without(currency, ecpm(c, currency)),
		count(c.Folds), count(c.Unfolds), percent(c.Retention()),
		count(c.Dogeared.Impressions), count(c.Dogeared.Viewable), count(c.Dogeared.Clicks), count(c.Dogeared.CTA),
		count(c.Unbilled.Sealed), count(c.Unbilled.LeaseExhausted), count(c.Unbilled.Duplicate), count(c.Suspects),
	}
}

// without is an amount whose currency is told elsewhere.
func without(currency, amount string) string { return strings.TrimSuffix(amount, " "+currency) }

// dailyCharts are impressions and spend over days; none for a single day.
func dailyCharts(days []string, g report.Group) []chart {
	if len(days) < 2 {
		return nil
	}
	organic, dogeared, spend := make([]int64, len(days)), make([]int64, len(days)), make([]int64, len(days))
	for _, r := range g.Rows {
		i, ok := slices.BinarySearch(days, r.Day)
		if !ok {
			continue
		}
		organic[i], dogeared[i], spend[i] = r.Organic.Impressions, r.Dogeared.Impressions, int64(r.Spend)
	}
	id := strings.ToLower(cmp.Or(g.Currency, "none"))
	return []chart{
		newChart("impressions-"+id, "Impressions", days, inCount, series{"Organic", "first", organic}, series{"By bookmark", "second", dogeared}),
		newChart("spend-"+id, "Spend", days, inMoney(g.Currency), series{"Spend", "first", spend}),
	}
}

// count writes a number with separators: "12,345".
func count(n int64) string {
	text := strconv.FormatInt(n, 10)
	start := 0
	if n < 0 {
		start = 1
	}
	for i := len(text) - 3; i > start; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// percent writes a part: "64.2%", "–" where there is none.
func percent(part float64, ok bool) string {
	if !ok {
		return "–"
	}
	decimals := 1
	switch {
	case part == 0 || part == 1:
		decimals = 0
	case part < 0.1:
		decimals = 2
	}
	return strconv.FormatFloat(part*100, 'f', decimals, 64) + "%"
}

// money writes an amount as a report does, rounded to the currency's minor unit: "2,500.50
// USD", "2,500 JPY". What is not nothing does not become nothing: "< 0.01 USD".
func money(micros int64, currency string) string {
	unit := minorUnit(currency)
	rounded := (micros + unit/2) / unit * unit
	if micros > 0 && rounded == 0 {
		return "< " + amount(unit, currency)
	}
	return amount(rounded, currency)
}

// minorUnit is the least amount that prices in a currency are written with, in micros.
func minorUnit(currency string) int64 {
	if hasNoMinorUnit(currency) {
		return 1_000_000
	}
	return 10_000
}

// lastDays is the overview's glance: the sections of the last days, without rows.
func (d *Dashboard) lastDays(ctx context.Context, s *catalog.Snapshot, now time.Time) ([]reportGroup, error) {
	if d.parts.Tables == nil {
		return nil, nil
	}
	q, _ := report.Parse(url.Values{"from": {now.UTC().AddDate(0, 0, 1-glanceDays).Format(time.DateOnly)}}, s, now)
	rep, err := report.Run(ctx, d.parts.Tables, s, q)
	if err != nil {
		return nil, err
	}
	var groups []reportGroup
	for _, g := range rep.Groups {
		groups = append(groups, reportGroup{Currency: g.Currency, Figures: figures(g.Total, g.Currency), Charts: dailyCharts(q.Days(), g)})
	}
	return groups, nil
}

// glanceDays is how far back the overview looks.
const glanceDays = 14
