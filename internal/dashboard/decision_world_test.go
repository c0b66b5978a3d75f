package dashboard_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"deckle"
	"deckle/internal/budget"
	"deckle/internal/catalog"
	"deckle/internal/classify"
	"deckle/internal/quality"
	"deckle/internal/serve"
	"deckle/internal/store/memory"
	"deckle/internal/token"
)

// decide opens what decides on site-1 of the made-up days, with all creatives
// approved: pages below /travel/ are about something, and their
// template has two slots.
func (w *world) decide() {
	w.t.Helper()
	content, _ := w.catalog.Taxonomies()
	site, _ := w.catalog.Snapshot().Site("site-1")
	x := *site
	x.CategoryRules = []catalog.CategoryRule{{Path: "/travel/**", Categories: content.Categories()[:1]}}
	x.Floors = catalog.Floors{Site: 2_500_000}
	w.put(&x)
	w.approveAll("site-1")
	pages := classify.New(memory.NewKV(), content, classify.Config{})
	server := serve.New(serve.Config{
		Market: serve.Market{
			Stats: madeUpStats,
			Reserve: func(*catalog.Campaign, *catalog.Advertiser, deckle.Money, string, time.Time) ([]string, bool) {
				w.t.Error("an explanation has reserved something")
				return nil, false
			},
		},
		Afford: func(c *catalog.Campaign, _ *catalog.Advertiser, _ deckle.Money, _ time.Time) bool {
			return c.ID != "camp-2-1"
		},
		Catalog: w.catalog.Snapshot,
		Page:    pages.Page,
		Tokens:  &token.Verifier{},
		Hosts:   map[string][]string{"site-1": {"site-1.example"}, "yuki-site": {"yukiblog.jp"}, "site-9": {"site-9.example"}},
		Base:    func(*http.Request) string { return "" },
		Address: func(*http.Request) netip.Addr { return netip.Addr{} },
		Random:  func() rand.Source { return rand.NewPCG(3, 4) },
	}, serve.NewMetrics())
	w.parts.Explain = server.Explain
	w.parts.SlotsOf = func(url string) (string, []deckle.Slot) {
		for _, id := range []string{"site-1", "site-9", "yuki-site"} {
			if strings.Contains(url, "//"+id+".example/") {
				if strings.Contains(url, "/plain") {
					return id, nil
				}
				return id, []deckle.Slot{
					{ID: "sidebar-1", Kind: deckle.Magazine, Formats: []deckle.Size{{W: 300, H: 600}, {W: 300, H: 250}}},
					{ID: "in-article-1", Kind: deckle.Magazine, Formats: []deckle.Size{{W: 300, H: 250}}},
					{ID: "footer-1", Kind: deckle.Magazine, Formats: []deckle.Size{{W: 320, H: 100}}},
					{ID: "footer-2", Kind: deckle.Magazine, Formats: []deckle.Size{{W: 320, H: 50}}},
				}
			}
		}
		return "", nil
	}
	w.parts.Budgets = lines{}
	w.open()
}

// approveAll approves what waits on a site. An approval may come about by itself, of
// what is of the same campaign.
func (w *world) approveAll(site string) {
	w.t.Helper()
	for {
		s := w.catalog.Snapshot()
		waiting := s.Queue(site, time.Now())
		if len(waiting) == 0 {
			return
		}
		x := waiting[0]
		a, err := w.catalog.Approve(w.t.Context(), site, x.Creative, x.Version, catalog.Write{By: "ana", Revision: x.Revision})
		if err != nil && !errors.Is(err, catalog.ErrConflict) {
			w.t.Fatal(err)
		}
		if err := w.catalog.WaitFor(w.t.Context(), max(a.Revision, s.Revision()+1)); err != nil {
			w.t.Fatal(err)
		}
	}
}

// madeUpStats are different for each creative, and the same each time.
func madeUpStats(_, creative string, _ time.Time) quality.Stats {
	n := 0
	for _, c := range creative {
		n = (n*31 + int(c)) % 97
	}
	return quality.Stats{Impressions: 200 + float64(n), Clicks: float64(n) / 6, Folds: float64(n) / 25, Shown: int64(400 + 7*n)}
}

// lines are budgets as a node may know them, in the middle of a day.
type lines struct{}

func (lines) Lines() (all []budget.Line) {
	today := time.Now().UTC().Format(time.DateOnly)
	for a := range 3 {
		all = append(all, budget.Line{
			Name: budget.AdvertiserLine(fmt.Sprint("adv-", a+1), today), Kind: budget.AdvertiserDay, Date: today,
			Budget: 40e6, Settled: 12_340_000, Spent: 14_100_000, Leased: 6e6, Held: 420_000, Free: 3_820_000, Leases: 3,
		})
		for c := range 3 {
			id := fmt.Sprintf("camp-%d-%d", a+1, c+1)
			all = append(all, budget.Line{
				Name: budget.DayLine(id, today), Kind: budget.CampaignDay, Date: today, Leases: 1, Cut: a+c == 3,
				Budget: 3e6, Settled: deckle.Money(900_000 * c), Spent: deckle.Money(1_250_000*c + 120_000), Leased: 500_000, Held: 12_000, Free: 88_000,
			})
		}
	}
	yesterday := time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly)
	return append(
		all,
		budget.Line{Name: budget.TotalLine("camp-1-1"), Kind: budget.CampaignTotal, Budget: 300e6, Settled: 120e6, Spent: 121e6, Leased: 4e6, Leases: 2},
		budget.Line{Name: budget.DayLine("camp-1-1", yesterday), Kind: budget.CampaignDay, Date: yesterday, Settled: 2_990_000, Spent: 2_990_000},
		budget.Line{Name: budget.DayLine("nobody", today), Kind: budget.CampaignDay, Date: today, Budget: 1e6},
	)
}

func (l lines) Line(name string) (budget.Line, bool) {
	for _, x := range l.Lines() {
		if x.Name == name {
			return x, true
		}
	}
	return budget.Line{}, false
}
