// Package report answers what people ask of the reports: questions are checked, rows
// have the names that the catalog has, and no sum has two currencies in it.
//
// A question is a [Query], as a form or a program writes it ([Parse]); [Run] makes a
// [Report] of it, with one [Group] for each currency. Pages, JSON and CSV are all
// made of that.
package report

import (
	"cmp"
	"context"
	"math/big"
	"slices"
	"strings"
	"time"

	"deckle"
	"deckle/internal/catalog"
	"deckle/internal/projection"
	"deckle/internal/store"
)

// Tables are what the journal has been folded into; see [projection.Tables]. Both
// methods may be called concurrently.
type Tables interface {
	Report(ctx context.Context, f projection.Filter, by ...projection.Dimension) ([]projection.Row, error)
	Freshness(projection string) (seq store.Seq, at time.Time, ok bool)
}

// Dimensions are what rows can be told apart by, in the order of columns.
func Dimensions() []projection.Dimension {
	return []projection.Dimension{
		projection.ByDay, projection.BySite, projection.ByAdvertiser, projection.ByCampaign, projection.ByCreative,
	}
}

// A Report is the answer to a query.
type Report struct {
	Query

	// AsOf is the time of the latest event that is counted; zero when nothing has been
	// counted at all.
	AsOf time.Time

	// Groups have the rows of one currency each, by rising code. What belongs to a
	// publisher that the catalog does not know has the currency "", and is the first.
	Groups []Group
}

// A Group is the rows of one currency.
type Group struct {
	Currency string // ISO 4217; "" = not known
	Rows     []Row
	Total    Counts
}

// A Row is what happened where the dimensions of its report say so.
type Row struct {
	Day string // of UTC, "2006-01-02"; "" where rows are not told apart by day

	// The others are empty likewise. An id is empty as well where the event did not say
	// what it was about: an unfold without a token.
	Site, Advertiser, Campaign, Creative string

	Counts
}

// Value is what a row has in a dimension: a day or an id.
func (r Row) Value(d projection.Dimension) string {
	switch d {
	case projection.ByDay:
		return r.Day
	case projection.BySite:
		return r.Site
	case projection.ByAdvertiser:
		return r.Advertiser
	case projection.ByCampaign:
		return r.Campaign
	case projection.ByCreative:
		return r.Creative
	}
	return ""
}

// Counts are what happened, and what follows from it. Ratios are of organic events
// alone; there is none where nothing was shown.
type Counts struct{ projection.Counts }

// CTR is clicks for each impression.
func (c Counts) CTR() (float64, bool) { return ratio(c.Organic.Clicks, c.Organic.Impressions) }

// Viewability is the part of the impressions that were viewable.
func (c Counts) Viewability() (float64, bool) {
	return ratio(c.Organic.Viewable, c.Organic.Impressions)
}

// ECPM is the spend for a thousand impressions, billed or not.
func (c Counts) ECPM() (deckle.CPM, bool) {
	if c.Organic.Impressions == 0 {
		return 0, false
	}
	n := big.NewInt(int64(c.Spend))
	n.Div(n.Mul(n, big.NewInt(1000)), big.NewInt(c.Organic.Impressions))
	return deckle.CPM(n.Int64()), n.IsInt64()
}

// NotBilled are the organic impressions that nobody pays for, duplicates left out:
// those are not among the impressions.
func (c Counts) NotBilled() int64 { return c.Unbilled.Sealed + c.Unbilled.LeaseExhausted }

// Empty reports whether nothing happened.
func (c Counts) Empty() bool { return c.Counts == projection.Counts{} }

func ratio(part, whole int64) (float64, bool) {
	if whole == 0 {
		return 0, false
	}
	return float64(part) / float64(whole), true
}

func (c *Counts) add(o projection.Counts) {
	c.Organic, c.Dogeared = sum(c.Organic, o.Organic), sum(c.Dogeared, o.Dogeared)
	c.Spend += o.Spend
	c.Folds += o.Folds
	c.Unfolds += o.Unfolds
	c.Suspects += o.Suspects
	c.Unbilled.Duplicate += o.Unbilled.Duplicate
	c.Unbilled.Sealed += o.Unbilled.Sealed
	c.Unbilled.LeaseExhausted += o.Unbilled.LeaseExhausted
}

func sum(a, b projection.Actions) projection.Actions {
	return projection.Actions{
		Impressions: a.Impressions + b.Impressions, Viewable: a.Viewable + b.Viewable,
		Clicks: a.Clicks + b.Clicks, CTA: a.CTA + b.CTA,
	}
}

// Run answers a query. It asks for sites as well, unless the query is about something
// that has one currency, since it is the site whose currency a row has. A report with
// too many rows is [projection.ErrTooLarge].
func Run(ctx context.Context, t Tables, s *catalog.Snapshot, q Query) (Report, error) {
	rep := Report{Query: q}
	if seq, at, _ := t.Freshness(projection.Report{}.Name()); seq > 0 { // else nothing has been folded
		rep.AsOf = at
	}
	by := q.By
	currency, one := q.currency(s)
	if !one && !slices.Contains(by, projection.BySite) {
		by = append(slices.Clone(by), projection.BySite)
	}
	rows, err := t.Report(ctx, q.Filter, by...)
	if err != nil {
		return Report{}, err
	}
	merged := map[string]map[Row]*Counts{} // by currency and what tells rows apart
	for _, r := range rows {
		c := currency
		if !one {
			c = CurrencyOfSite(s, r.Site)
		}
		if merged[c] == nil {
			merged[c] = map[Row]*Counts{}
		}
		key := q.key(r)
		if merged[c][key] == nil {
			merged[c][key] = &Counts{}
		}
		merged[c][key].add(r.Counts)
	}
	for c, rows := range merged {
		rep.Groups = append(rep.Groups, newGroup(c, rows))
	}
	slices.SortFunc(rep.Groups, func(a, b Group) int { return strings.Compare(a.Currency, b.Currency) })
	return rep, nil
}

// key is a row without its counts, and without a site that was not asked for.
func (q Query) key(r projection.Row) Row {
	key := Row{Day: r.Day, Advertiser: r.Advertiser, Campaign: r.Campaign, Creative: r.Creative}
	if slices.Contains(q.By, projection.BySite) {
		key.Site = r.Site
	}
	return key
}

func newGroup(currency string, rows map[Row]*Counts) Group {
	g := Group{Currency: currency}
	for r, counts := range rows {
		r.Counts = *counts
		g.Rows = append(g.Rows, r)
		g.Total.add(counts.Counts)
	}
	slices.SortFunc(g.Rows, func(a, b Row) int {
		return cmp.Or(strings.Compare(a.Day, b.Day), strings.Compare(a.Site, b.Site), strings.Compare(a.Advertiser, b.Advertiser),
			strings.Compare(a.Campaign, b.Campaign), strings.Compare(a.Creative, b.Creative))
	})
	return g
}

// currency is that of all that a query is about, where that is one.
func (q Query) currency(s *catalog.Snapshot) (string, bool) {
	switch {
	case q.Site != "":
		return CurrencyOfSite(s, q.Site), true
	case q.Advertiser != "":
		return currencyOfAdvertiser(s, q.Advertiser), true
	case q.Campaign != "":
		return currencyOfCampaign(s, q.Campaign), true
	}
	return "", false
}

// CurrencyOfSite is that of a site's publisher; "" where the catalog does not know it.
func CurrencyOfSite(s *catalog.Snapshot, id string) string {
	site, ok := Find[*catalog.Site](s, catalog.KindSite, id)
	if !ok {
		return ""
	}
	p, ok := Find[*catalog.Publisher](s, catalog.KindPublisher, site.Publisher)
	if !ok {
		return ""
	}
	return p.Currency
}

func currencyOfAdvertiser(s *catalog.Snapshot, id string) string {
	a, ok := Find[*catalog.Advertiser](s, catalog.KindAdvertiser, id)
	if !ok {
		return ""
	}
	return a.Currency
}

func currencyOfCampaign(s *catalog.Snapshot, id string) string {
	c, ok := Find[*catalog.Campaign](s, catalog.KindCampaign, id)
	if !ok {
		return ""
	}
	return currencyOfAdvertiser(s, c.Advertiser)
}

// Find is an entity, also a tombstone: what was spent stays spent.
func Find[E catalog.Entity](s *catalog.Snapshot, k catalog.Kind, id string) (e E, ok bool) {
	r, ok := s.Record(k, id)
	if !ok {
		return e, false
	}
	e, ok = r.Entity.(E)
	return e, ok
}

// Name is what the catalog calls something, also when it has been deleted; its id
// where it has no name.
func Name(s *catalog.Snapshot, d projection.Dimension, id string) string {
	r, ok := s.Record(catalog.Kind(d), id)
	if !ok {
		return id
	}
	name := ""
	switch e := r.Entity.(type) {
	case *catalog.Advertiser:
		name = e.Name
	case *catalog.Campaign:
		name = e.Name
	case *catalog.Creative:
		name = e.Name
	}
	return cmp.Or(name, id)
}

// Days are the days from From to To, both included.
func (q Query) Days() (days []string) {
	from, errFrom := time.Parse(time.DateOnly, q.From)
	to, errTo := time.Parse(time.DateOnly, q.To)
	if errFrom != nil || errTo != nil {
		return nil
	}
	for d := from; !d.After(to); d = d.AddDate(0, 0, 1) {
		days = append(days, d.Format(time.DateOnly))
	}
	return days
}

// Title is what a query is about, as a part of the name of a file.
func (q Query) Title() string {
	parts := []string{q.From, q.To}
	for _, id := range []string{q.Site, q.Advertiser, q.Campaign, q.Creative} {
		if id != "" {
			parts = append(parts, id)
		}
	}
	return strings.Join(parts, "_")
}
