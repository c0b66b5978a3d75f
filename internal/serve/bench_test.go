package serve_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"deckle"
	"deckle/internal/catalog"
	"deckle/internal/publicapi"
	"deckle/internal/quality"
	"deckle/internal/serve"
	"deckle/internal/store/memory"
)

// large has n candidates for travel pages, of campaigns with five creatives each and
// of n/50 advertisers, at least six.
func large(t testing.TB, n int) *world {
	t.Helper()
	w := emptyWorld(t, memory.NewKV(), catalog.Config{})
	d := &catalog.Document{
		Publishers: []*catalog.Publisher{{ID: "yuki", Name: "Yuki Media", Currency: "USD"}},
		Sites:      []*catalog.Site{{ID: site, Publisher: "yuki", Floors: catalog.Floors{Site: 300_000}}},
	}
	advertisers := max(n/50, 6)
	for i := range advertisers {
		d.Advertisers = append(d.Advertisers, &catalog.Advertiser{ID: fmt.Sprint("a", i), Publisher: "yuki", Name: "A", DailyBudget: 1e9, TimeZone: "UTC"})
	}
	for i := range n {
		campaign := fmt.Sprint("c", i/5)
		if i%5 == 0 {
			d.Campaigns = append(d.Campaigns, &catalog.Campaign{
				ID: campaign, Advertiser: fmt.Sprint("a", i/5%advertisers), Categories: []string{travel}, ProductCategory: tourism,
				MaxCPM: deckle.CPM(1_000_000 + i%97*50_000), DailyBudget: 1e9, DogEar: true, LandingURL: "https://www.example.com/",
				Start: "2026-11-01", End: "2027-03-31", FrequencyCap: &catalog.FrequencyCap{Count: 5, Per: catalog.PerDay},
			})
		}
		id := fmt.Sprint("creative-", i)
		d.Creatives = append(d.Creatives, &catalog.Creative{ID: id, Campaign: campaign, Content: catalog.Content{Pages: []catalog.Page{
			{Headline: "A quiet room", Body: strings.Repeat("A room. ", 40)}, {Headline: "Another", Body: strings.Repeat("A room. ", 40)},
		}}})
		d.Approvals = append(d.Approvals, catalog.DocumentApproval{Site: site, Creative: id, State: catalog.Approved})
		w.stats[id] = quality.Stats{Impressions: 500, Clicks: float64(i%40) + 1, Folds: float64(i%7) + 1, Shown: 500}
	}
	w.apply(d)
	w.stop()
	return w
}

// measured is the market of a world without what tests need: no lock, no list.
func (w *world) measured() serve.Market {
	m := w.market()
	leases := []string{"lease-of-campaign-day", "lease-of-advertiser-day"}
	m.Pace = nil
	m.Reserve = func(*catalog.Campaign, *catalog.Advertiser, deckle.Money, string, time.Time) ([]string, bool) {
		return leases, true
	}
	return m
}

var threeSlots = ask(imps("sidebar-1 300x250", "sidebar-2 300x600", "footer 970x250"), batch{
	"pins": pins("elsewhere creative-3"), "seen": map[string]any{"creative-7": twice, "creative-9": twice}, "recent": []string{"c2"},
})

func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{50, 500, 5000} {
		b.Run(fmt.Sprintf("3 slots × %d candidates", n), func(b *testing.B) {
			w := large(b, n)
			q, p := w.question(threeSlots), serve.NewPipeline(w.measured())
			b.ReportAllocs()
			for b.Loop() {
				if d := p.Decide(q); d.Outcomes[2].Winner == nil {
					b.Fatal(told(d))
				}
			}
		})
	}
}

// BenchmarkNobodyCanPay is the most that a batch can cost: every candidate is tried
// for every slot.
func BenchmarkNobodyCanPay(b *testing.B) {
	for _, slots := range []int{3, 40} {
		b.Run(fmt.Sprintf("%d slots × 5000 candidates", slots), func(b *testing.B) {
			w := large(b, 5000)
			m := w.measured()
			m.Reserve = func(*catalog.Campaign, *catalog.Advertiser, deckle.Money, string, time.Time) ([]string, bool) {
				return nil, false
			}
			var all []string
			for i := range slots {
				all = append(all, fmt.Sprintf("s%d 300x250", i))
			}
			q, p := w.question(ask(imps(all...))), serve.NewPipeline(m)
			b.ReportAllocs()
			for b.Loop() {
				p.Decide(q)
			}
		})
	}
}

func BenchmarkHandler(b *testing.B) {
	for _, n := range []int{50, 5000} {
		b.Run(fmt.Sprintf("3 slots × %d candidates", n), func(b *testing.B) {
			w := large(b, n)
			c := w.config()
			c.Market = w.measured()
			c.Limit = publicapi.Limit{PerMinute: 1e9, Burst: 1e9}
			s := serve.New(c, serve.NewMetrics())
			h := serve.Endpoint(publicapi.New(publicapi.NewMetrics(), slog.New(slog.DiscardHandler)), func() *serve.Server { return s })
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if rec := post(h, threeSlots); rec.Code != http.StatusOK {
						b.Fatal(rec.Code)
					}
				}
			})
		})
	}
}

// The aim is at most ten allocations for the whole decision.
func TestDecideAllocates(t *testing.T) {
	w := large(t, 50)
	q, p := w.question(threeSlots), serve.NewPipeline(w.measured())
	if n := testing.AllocsPerRun(100, func() { p.Decide(q) }); n > 10 {
		t.Errorf("%v allocations", n)
	}
}
