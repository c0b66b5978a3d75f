package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"deckle"
	"deckle/internal/budget"
	"deckle/internal/catalog"
	"deckle/internal/dashboard/report"
	"deckle/internal/projection"
)

// Budgets are the budgets of all campaigns and advertisers, as this node knows them;
// see [budget.Book]. Both methods may be called concurrently.
type Budgets interface {
	Line(name string) (budget.Line, bool)
	Lines() []budget.Line
}

// budgetsPage is how far each budget is spent.
type budgetsPage struct {
	frame
	Closed  bool // the book is not open
	Of      string
	Owners  []budgetOwner // advertisers, by name
	Past    bool          // also days past
	Other   link          // with days past, or without
	Unknown int           // lines of campaigns and advertisers that the catalog does not know
}

// A budgetOwner is an advertiser with all budgets that are spent for it.
type budgetOwner struct {
	link
	ID       string
	Zone     string
	Currency string
	Lines    []budgetLine
}

type budgetLine struct {
	About link
	What  string // "a day, 30 Nov 2026", "in total"
	Meter meter
	Cut   bool
	Texts []string // in the order of budgetHead
	kind  budget.Kind
	date  string
}

var budgetHead = []string{"Budget", "Spent", "Settled", "Leased", "Not leased", "Held here", "Free here"}

func (d *Dashboard) showBudgets(v visit) error {
	s, err := d.snapshot()
	if err != nil {
		return err
	}
	asked := v.r.URL.Query()
	p := budgetsPage{frame: d.frame(v, "Budgets", "/budgets"), Of: asked.Get("of"), Past: asked.Get("past") != ""}
	p.Other = link{"/budgets?past=yes", "Show days past"}
	if p.Past {
		p.Other = link{"/budgets", "Today and totals only"}
	}
	if d.parts.Budgets == nil {
		p.Closed = true
		return render(v.w, http.StatusOK, "budgets", p)
	}
	owners := map[string]*budgetOwner{}
	for _, l := range d.parts.Budgets.Lines() {
		a, about, ok := lineOf(s, l)
		if !ok {
			p.Unknown++
			continue
		}
		today := budget.DayOf(time.Now(), zone(a)).Date
		if p.Of != "" && a.ID != p.Of || !p.Past && l.Date != "" && l.Date < today {
			continue
		}
		o := owners[a.ID]
		if o == nil {
			o = &budgetOwner{link: link{"/advertisers/" + a.ID, cmp.Or(a.Name, a.ID)}, ID: a.ID, Zone: a.TimeZone, Currency: a.Currency}
			owners[a.ID] = o
		}
		o.Lines = append(o.Lines, newBudgetLine(l, about, a.Currency))
	}
	for _, o := range owners {
		slices.SortFunc(o.Lines, func(a, b budgetLine) int {
			return cmp.Or(cmp.Compare(b.kind, a.kind), strings.Compare(b.date, a.date), strings.Compare(a.About.Text, b.About.Text))
		})
		p.Owners = append(p.Owners, *o)
	}
	slices.SortFunc(p.Owners, func(a, b budgetOwner) int {
		return cmp.Or(strings.Compare(a.Text, b.Text), strings.Compare(a.ID, b.ID))
	})
	return render(v.w, http.StatusOK, "budgets", p)
}

// lineOf is whose budget a line is, and what it is about.
func lineOf(s *catalog.Snapshot, l budget.Line) (a *catalog.Advertiser, about link, ok bool) {
	parts := strings.Split(l.Name, "/")
	if len(parts) < 2 {
		return nil, link{}, false
	}
	id := parts[1]
	if l.Kind == budget.AdvertiserDay {
		a, ok = report.Find[*catalog.Advertiser](s, catalog.KindAdvertiser, id)
		return a, link{"/advertisers/" + id, "All its campaigns"}, ok
	}
	c, ok := report.Find[*catalog.Campaign](s, catalog.KindCampaign, id)
	if !ok {
		return nil, link{}, false
	}
	a, ok = report.Find[*catalog.Advertiser](s, catalog.KindAdvertiser, c.Advertiser)
	return a, link{"/campaigns/" + id, cmp.Or(c.Name, id)}, ok
}

func newBudgetLine(l budget.Line, about link, currency string) budgetLine {
	out := budgetLine{About: about, What: "in total", Cut: l.Cut, kind: l.Kind, date: l.Date}
	if l.Date != "" {
		out.What = dayText(l.Date)
	}
	left := max(l.Budget-l.Settled-l.Leased, 0)
	for _, m := range []deckle.Money{l.Budget, l.Spent, l.Settled, l.Leased, left, l.Held, l.Free} {
		out.Texts = append(out.Texts, without(currency, money(int64(m), currency)))
	}
	spoken := max(l.Settled+l.Leased-l.Spent, 0)
	out.Meter = newMeter(fmt.Sprintf("%s spent of %s; %s more is leased", money(int64(l.Spent), currency), money(int64(l.Budget), currency), money(int64(spoken), currency)),
		int64(l.Spent), int64(spoken), int64(l.Budget))
	return out
}

// zone is when an advertiser's days begin. What the catalog has is a zone.
func zone(a *catalog.Advertiser) *time.Location {
	if z, err := time.LoadLocation(a.TimeZone); err == nil {
		return z
	}
	return time.UTC
}

// A spendPanel is what stands above a campaign: today against its budget, and the
// last days.
type spendPanel struct {
	Lines  []spendLine
	Chart  *chart
	Source string // which day is meant, and where the figures are from
	Links  []link
}

type spendLine struct {
	Label, Spent, Of string
	Meter            meter
}

// spendOf is the panel of a campaign; nil where there is nothing to read it from.
func (d *Dashboard) spendOf(ctx context.Context, c *catalog.Campaign, now time.Time) (*spendPanel, error) {
	s := d.catalog.Snapshot()
	a, ok := report.Find[*catalog.Advertiser](s, catalog.KindAdvertiser, c.Advertiser)
	if !ok || d.parts.Tables == nil && d.parts.Budgets == nil {
		return nil, nil
	}
	p := &spendPanel{Links: []link{{"/reports?by=day,creative&campaign=" + c.ID, "Report"}}}
	if d.parts.Budgets != nil {
		p.Links = append(p.Links, link{"/budgets?of=" + a.ID, "Budgets"})
	}
	days, err := d.spendByDay(ctx, s, c.ID, now)
	if err != nil {
		return nil, err
	}
	p.Source = "Today is " + now.UTC().Format("2 January") + " in UTC."
	today := days.last()
	if d.parts.Budgets != nil {
		day := budget.DayOf(now, zone(a))
		l, _ := d.parts.Budgets.Line(budget.DayLine(c.ID, day.Date))
		today = l.Spent
		p.Source = fmt.Sprintf("Today is %s in %s; the columns are days of UTC.", now.In(zone(a)).Format("2 January"), a.TimeZone)
	}
	p.Lines = append(p.Lines, newSpendLine("Today", today, c.DailyBudget, a.Currency))
	if c.TotalBudget > 0 && d.parts.Budgets != nil {
		l, _ := d.parts.Budgets.Line(budget.TotalLine(c.ID))
		p.Lines = append(p.Lines, newSpendLine("In all", l.Spent, c.TotalBudget, a.Currency))
	}
	if days.names != nil {
		p.Chart = new(newChart("spend", "Spend in the last days", days.names, inMoney(a.Currency), series{"Spend", "first", days.spend}))
	}
	return p, nil
}

func newSpendLine(label string, spent, of deckle.Money, currency string) spendLine {
	l := spendLine{Label: label, Spent: money(int64(spent), currency), Of: money(int64(of), currency)}
	l.Meter = newMeter(l.Spent+" spent of "+l.Of, int64(spent), 0, int64(of))
	return l
}

// daily is what was spent on each of the last days.
type daily struct {
	names []string
	spend []int64
}

func (d daily) last() deckle.Money {
	if len(d.spend) == 0 {
		return 0
	}
	return deckle.Money(d.spend[len(d.spend)-1])
}

func (d *Dashboard) spendByDay(ctx context.Context, s *catalog.Snapshot, campaign string, now time.Time) (out daily, err error) {
	if d.parts.Tables == nil {
		return out, nil
	}
	q := report.Query{By: []projection.Dimension{projection.ByDay}}
	q.Campaign = campaign
	q.From, q.To = now.UTC().AddDate(0, 0, 1-glanceDays).Format(time.DateOnly), now.UTC().Format(time.DateOnly)
	rep, err := report.Run(ctx, d.parts.Tables, s, q)
	if err != nil {
		return out, err
	}
	out.names = q.Days()
	out.spend = make([]int64, len(out.names))
	for _, g := range rep.Groups {
		for _, r := range g.Rows {
			if i, ok := slices.BinarySearch(out.names, r.Day); ok {
				out.spend[i] += int64(r.Spend)
			}
		}
	}
	return out, nil
}
