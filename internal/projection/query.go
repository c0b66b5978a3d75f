package projection

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"deckle"
	"deckle/internal/store"
)

// A Dimension is what the rows of a report are told apart by.
type Dimension string

// The dimensions of a report.
const (
	ByDay        Dimension = "day"
	BySite       Dimension = "site"
	ByAdvertiser Dimension = "advertiser"
	ByCampaign   Dimension = "campaign"
	ByCreative   Dimension = "creative"
)

var dimensions = []Dimension{ByDay, BySite, ByAdvertiser, ByCampaign, ByCreative}

// MaxRows is the most rows that one report has.
const MaxRows = 100_000

// ErrTooLarge says that a report would have more than [MaxRows] rows.
var ErrTooLarge = errors.New("report is too large")

// A Filter says what a report is about. The zero value is everything.
type Filter struct {
	From, To string // days of UTC, "2006-01-02", both included; "" = open

	Site, Advertiser, Campaign, Creative string // ids; "" = all
}

// A Row is what happened where the fields that the report was asked by say so; the
// others are empty.
type Row struct {
	Day, Site, Advertiser, Campaign, Creative string
	Counts
}

// Counts are what happened. Suspect events are in Suspects and nowhere else.
type Counts struct {
	Organic, Dogeared Actions
	Spend             deckle.Money // of organic impressions
	Folds, Unfolds    int64
	Suspects          int64
	Unbilled          Unbilled
}

// Actions are what readers did with creatives that they met by themselves
// (organic) or by their own bookmark (dog-eared).
type Actions struct {
	Impressions, Viewable, Clicks, CTA int64
}

// Unbilled counts organic impressions that no advertiser pays for, by reason.
// Duplicates are not among the impressions; the others are.
type Unbilled struct {
	Duplicate, Sealed, LeaseExhausted int64
}

// Retention is the part of the folded corners that stayed folded, from 0 to 1.
// There is none without a fold.
func (c Counts) Retention() (part float64, ok bool) {
	if c.Folds == 0 {
		return 0, false
	}
	return min(max(float64(c.Folds-c.Unfolds)/float64(c.Folds), 0), 1), true
}

// Report returns what f is about, one row for each combination of the dimensions
// that there is, in their order; without any, one row with the sum, if anything
// happened. Spend is summed as it is: filter by what has one currency.
func (t *Tables) Report(ctx context.Context, f Filter, by ...Dimension) ([]Row, error) {
	query, args, err := reportQuery(f, by)
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	rows, err := t.reader.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("report: %w", damaged(err))
	}
	defer rows.Close()
	var report []Row
	for rows.Next() {
		if len(report) == t.maxRows {
			return nil, fmt.Errorf("report: %w: it has more than %d rows", ErrTooLarge, t.maxRows)
		}
		var r Row
		if err := rows.Scan(&r.Day, &r.Site, &r.Advertiser, &r.Campaign, &r.Creative,
			&r.Organic.Impressions, &r.Organic.Viewable, &r.Organic.Clicks, &r.Organic.CTA, &r.Spend,
			&r.Dogeared.Impressions, &r.Dogeared.Viewable, &r.Dogeared.Clicks, &r.Dogeared.CTA,
			&r.Folds, &r.Unfolds, &r.Suspects,
			&r.Unbilled.Duplicate, &r.Unbilled.Sealed, &r.Unbilled.LeaseExhausted); err != nil {
			return nil, fmt.Errorf("report: %w", err)
		}
		report = append(report, r)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("report: %w", damaged(err))
	}
	return report, nil
}

// reportQuery is the statement of a report. Texts in it are ours alone: what is asked
// for comes as arguments.
func reportQuery(f Filter, by []Dimension) (query string, args []any, err error) {
	var columns, groups []string
	for _, d := range by {
		if !slices.Contains(dimensions, d) {
			return "", nil, fmt.Errorf("%q is not a dimension", d)
		}
		groups = append(groups, string(d))
	}
	for _, d := range dimensions {
		if slices.Contains(by, d) {
			columns = append(columns, string(d))
		} else {
			columns = append(columns, "''")
		}
	}
	var where []string
	for _, c := range []struct{ condition, value string }{
		{"day >= ?", f.From},
		{"day <= ?", f.To},
		{"site = ?", f.Site},
		{"advertiser = ?", f.Advertiser},
		{"campaign = ?", f.Campaign},
		{"creative = ?", f.Creative},
	} {
		if c.value != "" {
			where, args = append(where, c.condition), append(args, c.value)
		}
	}
	query = "SELECT " + strings.Join(columns, ", ") + `,
		SUM(impressions), SUM(viewable), SUM(clicks), SUM(cta), SUM(spend),
		SUM(dogeared_impressions), SUM(dogeared_viewable), SUM(dogeared_clicks), SUM(dogeared_cta),
		SUM(folds), SUM(unfolds), SUM(suspects),
		SUM(unbilled_duplicate), SUM(unbilled_sealed), SUM(unbilled_exhausted)
		FROM report`
	if len(where) > 0 {
		query += " WHERE " + strings.Join(where, " AND ")
	}
	if len(groups) == 0 {
		return query + " HAVING COUNT(*) > 0", args, nil
	}
	list := strings.Join(groups, ", ")
	return query + " GROUP BY " + list + " ORDER BY " + list, args, nil
}

// Lease is what a lease has paid for, and whether there is one.
func (t *Tables) Lease(ctx context.Context, id string) (Lease, bool, error) {
	l := Lease{ID: id}
	var sealed int64
	err := t.reader.QueryRowContext(ctx, `SELECT line, amount, spent, sealed FROM leases WHERE id = ?`, id).
		Scan(&l.Line, &l.Amount, &l.Spent, &sealed)
	if errors.Is(err, sql.ErrNoRows) {
		return Lease{}, false, nil
	}
	if err != nil {
		return Lease{}, false, fmt.Errorf("read lease: %w", damaged(err))
	}
	l.Sealed = store.Seq(sealed)
	return l, true, nil
}

// Freshness is how far the tables of a projection have come: the last envelope that
// was folded, and the time of the latest event so far.
func (t *Tables) Freshness(projection string) (seq store.Seq, at time.Time, ok bool) {
	for _, f := range t.folders {
		if f.projection.Name() == projection {
			c := f.shown.Load()
			return c.seq, c.time.time(), true
		}
	}
	return 0, time.Time{}, false
}
