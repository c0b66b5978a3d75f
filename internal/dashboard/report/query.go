package report

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"deckle/internal/catalog"
	"deckle/internal/projection"
)

// A Query is what somebody asks: days, what the rows are about, and what they are
// told apart by.
type Query struct {
	projection.Filter // From and To are always set
	By                []projection.Dimension
}

// MaxDays is how many days a report is about at most: three years.
const MaxDays = 1098

// defaultDays is how many days a report is about when nothing is said of it.
const defaultDays = 30

// Parameters are the names of what [Parse] reads, with what they mean.
func Parameters() [][2]string {
	return [][2]string{
		{"from", fmt.Sprintf("The first day, of UTC: 2006-01-02. By default %d days up to the last one; at most %d.", defaultDays, MaxDays)},
		{"to", "The last day, that day included. By default today."},
		{"by", "What rows are told apart by: day, site, advertiser, campaign, creative, with commas between them. By default day."},
		{"site", "Of this site alone."},
		{"advertiser", "Of this advertiser alone."},
		{"campaign", "Of this campaign alone."},
		{"creative", "Of this creative alone."},
	}
}

// Parse reads a query. It returns all that is wrong with it, by the name of the
// parameter; the query has what could be read. Today is by the clock of now, in UTC.
func Parse(v url.Values, s *catalog.Snapshot, now time.Time) (q Query, problems []catalog.Problem) {
	bad := func(name, format string, args ...any) {
		problems = append(problems, catalog.Problem{Field: name, Msg: fmt.Sprintf(format, args...)})
	}
	today := now.UTC().Truncate(24 * time.Hour)
	to := day(v, "to", today, bad)
	from := day(v, "from", to.AddDate(0, 0, 1-defaultDays), bad)
	switch days := int(to.Sub(from)/(24*time.Hour)) + 1; {
	case len(problems) > 0:
	case days < 1:
		bad("from", "is after the last day, %s", to.Format(time.DateOnly))
	case days > MaxDays:
		bad("from", "is %d days before the last one; a report has at most %d", days-1, MaxDays)
	}
	q.From, q.To = from.Format(time.DateOnly), to.Format(time.DateOnly)
	q.By = by(v, bad)
	for d, field := range map[projection.Dimension]*string{
		projection.BySite: &q.Site, projection.ByAdvertiser: &q.Advertiser, projection.ByCampaign: &q.Campaign, projection.ByCreative: &q.Creative,
	} {
		*field = strings.TrimSpace(v.Get(string(d)))
		if _, known := s.Record(catalog.Kind(d), *field); *field != "" && !known {
			bad(string(d), "there has never been a %s %.64q", d, *field)
		}
	}
	slices.SortFunc(problems, func(a, b catalog.Problem) int { return strings.Compare(a.Field, b.Field) })
	return q, problems
}

func day(v url.Values, name string, otherwise time.Time, bad func(name, format string, args ...any)) time.Time {
	text := strings.TrimSpace(v.Get(name))
	if text == "" {
		return otherwise
	}
	d, err := time.Parse(time.DateOnly, text)
	if err != nil || d.Year() < 1970 || d.Year() > 9999 {
		bad(name, "%.40q is not a day: write 2006-01-02", text)
		return otherwise
	}
	return d
}

// by reads the dimensions, in the order of columns.
func by(v url.Values, bad func(name, format string, args ...any)) (dimensions []projection.Dimension) {
	asked := strings.FieldsFunc(strings.Join(v["by"], ","), func(c rune) bool { return c == ',' || c == ' ' })
	for _, name := range asked {
		if !slices.Contains(Dimensions(), projection.Dimension(name)) {
			bad("by", "%.40q is none of day, site, advertiser, campaign, creative", name)
		}
	}
	for _, d := range Dimensions() {
		if slices.Contains(asked, string(d)) {
			dimensions = append(dimensions, d)
		}
	}
	if len(dimensions) == 0 {
		return []projection.Dimension{projection.ByDay}
	}
	return dimensions
}

// Values writes a query as [Parse] reads it.
func (q Query) Values() url.Values {
	v := url.Values{"from": {q.From}, "to": {q.To}}
	var by []string
	for _, d := range q.By {
		by = append(by, string(d))
	}
	v.Set("by", strings.Join(by, ","))
	for name, value := range map[string]string{"site": q.Site, "advertiser": q.Advertiser, "campaign": q.Campaign, "creative": q.Creative} {
		if value != "" {
			v.Set(name, value)
		}
	}
	return v
}
