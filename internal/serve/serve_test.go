package serve_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"deckle"
	"deckle/internal/catalog"
	"deckle/internal/classify"
	"deckle/internal/quality"
	"deckle/internal/serve"
	"deckle/internal/store/memory"
)

var sidebar = imps("sidebar-1 300x250")

// What keeps everybody from a slot is its reason: that of whoever came furthest.
func TestReasons(t *testing.T) {
	capped := func(w *world, campaigns ...string) {
		for _, id := range campaigns {
			w.campaign(id, func(c *catalog.Campaign) { c.FrequencyCap = &catalog.FrequencyCap{Count: 2, Per: catalog.PerHour} })
		}
	}
	all := []string{"autumn", "spring", "fly", "leaf"}
	seenAll := batch{"seen": map[string]any{"ryokan": twice, "sakura": twice, "jet": twice, "matcha": twice}}
	hold := func(w *world, campaigns ...string) {
		for _, id := range campaigns {
			w.held[id] = true
		}
	}
	for _, test := range []struct {
		name    string
		arrange func(w *world)
		batch   string
		want    string
	}{
		{"another category", func(w *world) { w.page.Categories[0].ID = science }, ask(sidebar), "no_candidates"},
		{"no category", func(w *world) { w.page.Categories = nil }, ask(sidebar), "no_candidates"},
		{"wrong shapes", func(w *world) {
			w.pause("autumn", "spring", "leaf")
			w.creative("jet", func(c *catalog.Creative) { c.Shapes = []catalog.Shape{{W: 300, H: 600}} })
			w.approve("jet")
		}, ask(sidebar), "no_candidates"},
		{"not begun", func(w *world) {
			w.pause("autumn", "spring", "leaf")
			w.campaign("fly", func(c *catalog.Campaign) { c.Start = "2026-12-02" })
		}, ask(sidebar), "no_candidates"},
		{"nobody knows the page", func(w *world) { w.known, w.page = false, classify.Page{} }, ask(sidebar), "stale"},
		{"what is known is old", func(w *world) { w.page.At = now.Add(-48 * time.Hour) }, ask(sidebar), "stale"},
		{"warm-up", func(w *world) { w.site(func(s *catalog.Site) { s.Status = catalog.Warmup }) }, ask(sidebar), "warmup"},
		{"warm-up before stale", func(w *world) {
			w.site(func(s *catalog.Site) { s.Status = catalog.Warmup })
			w.known = false
		}, ask(sidebar), "warmup"},
		{"capped", func(w *world) { capped(w, all...) }, ask(sidebar, seenAll), "capped"},
		{"paced", func(w *world) { hold(w, all...) }, ask(sidebar), "paced"},
		{"excluded", func(*world) {}, ask(sidebar, batch{"pins": pins("a ryokan", "b jet", "c matcha")}), "excluded"},
		{"below the floor", func(w *world) { w.floors["sidebar-1"] = 4_000_001 }, ask(sidebar), "below_floor"},
		{"no money", func(w *world) { w.broke["inn"], w.broke["air"], w.broke["leaf"] = true, true, true }, ask(sidebar), "budget"},
		{"paced, though most are capped", func(w *world) {
			capped(w, "autumn", "spring", "fly")
			hold(w, "leaf")
		}, ask(sidebar, seenAll), "paced"},
		{"excluded, though others are paced", func(w *world) { hold(w, "fly", "leaf") }, ask(sidebar, batch{"pins": pins("a ryokan")}), "excluded"},
		{"below the floor, though others are excluded", func(w *world) { w.floors["sidebar-1"] = 3_000_001 }, ask(sidebar, batch{"pins": pins("a ryokan")}), "below_floor"},
		{"no money, though others are below the floor", func(w *world) {
			w.floors["sidebar-1"] = 3_000_001
			w.broke["inn"] = true
		}, ask(sidebar), "budget"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			test.arrange(w)
			wantTold(t, w.decide(test.batch), "sidebar-1: "+test.want)
		})
	}
}

var twice = map[string]int{"h": 2, "d": 2, "w": 2}

// Used up by what is auctioned, not by a bookmark.
func TestPageCap(t *testing.T) {
	w := newWorld(t)
	wantTold(t, w.decide(ask(imps("a 300x250", "b 300x600", "c 320x50", "d 300x250"))),
		"a: filled jet; b: filled ryokan; c: used; d: filled matcha")
}

func TestFrequencyCap(t *testing.T) {
	count := func(h, d, week int) map[string]int { return map[string]int{"h": h, "d": d, "w": week} }
	for _, test := range []struct {
		name  string
		limit catalog.FrequencyCap
		seen  map[string]any
		want  string
	}{
		{"below", catalog.FrequencyCap{Count: 3, Per: catalog.PerDay}, map[string]any{"ryokan": count(2, 2, 9)}, "ryokan"},
		{"reached", catalog.FrequencyCap{Count: 3, Per: catalog.PerDay}, map[string]any{"ryokan": count(0, 3, 3)}, "sakura"},
		{"in an hour", catalog.FrequencyCap{Count: 3, Per: catalog.PerHour}, map[string]any{"ryokan": count(3, 3, 3)}, "sakura"},
		{"not in an hour", catalog.FrequencyCap{Count: 3, Per: catalog.PerHour}, map[string]any{"ryokan": count(2, 3, 3)}, "ryokan"},
		{"in a week", catalog.FrequencyCap{Count: 3, Per: catalog.PerWeek}, map[string]any{"ryokan": count(0, 0, 3)}, "sakura"},
		{"by two creatives together", catalog.FrequencyCap{Count: 3, Per: catalog.PerDay}, map[string]any{"ryokan": count(1, 1, 1), "onsen": count(2, 2, 2)}, "sakura"},
		{"by one that is deleted", catalog.FrequencyCap{Count: 3, Per: catalog.PerDay}, map[string]any{"onsen": count(3, 3, 3)}, "sakura"},
		{"others do not count", catalog.FrequencyCap{Count: 3, Per: catalog.PerDay}, map[string]any{"sakura": count(9, 9, 9), "unheard-of": count(9, 9, 9)}, "ryokan"},
		{"beyond all numbers", catalog.FrequencyCap{Count: 3, Per: catalog.PerDay}, map[string]any{"ryokan": map[string]uint32{"d": math.MaxUint32}, "onsen": count(1, 1, 1)}, "sakura"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.campaign("autumn", func(c *catalog.Campaign) { c.FrequencyCap = &test.limit })
			w.delete(catalog.KindCreative, "onsen")
			wantTold(t, w.decide(ask(sidebar, batch{"seen": test.seen})), "sidebar-1: filled "+test.want)
		})
	}
}

// Recent campaigns are avoided where there is another choice that can pay, and shown
// rather than nothing.
func TestRecentIsAPreference(t *testing.T) {
	recent := ask(sidebar, batch{"recent": []string{"autumn", "spring", "fly"}})
	w := newWorld(t)
	wantTold(t, w.decide(recent), "sidebar-1: filled matcha")
	w.broke["leaf"] = true
	wantTold(t, w.decide(recent), "sidebar-1: filled ryokan")
	wantTold(t, w.decide(ask(sidebar, batch{"recent": []string{"autumn", "spring", "fly", "leaf"}})), "sidebar-1: filled ryokan")
}

// One who cannot pay is passed over; it may have another slot that costs less.
func TestRefusedReservation(t *testing.T) {
	w := newWorld(t)
	w.broke["autumn"] = true
	wantTold(t, w.decide(ask(sidebar)), "sidebar-1: filled sakura")
	for id, r := range w.reserved {
		if len(w.reserved) != 1 || r.campaign != "spring" || len(id) != 16 {
			t.Errorf("reserved: %v", w.reserved)
		}
	}
	m := w.market()
	m.Reserve = func(c *catalog.Campaign, _ *catalog.Advertiser, price deckle.Money, _ string, _ time.Time) ([]string, bool) {
		return nil, c.ID == "autumn" && price <= 1_000
	}
	w.floors["dear"] = 2_000_000
	wantTold(t, serve.NewPipeline(m).Decide(w.question(ask(imps("dear 300x600", "cheap 300x250")))), "dear: budget; cheap: filled ryokan")
}

// The runner-up is the best other by mean score: of the winner's category, of
// another advertiser, not on the page, and not refused in this batch.
func TestRunnerUp(t *testing.T) {
	for _, test := range []struct {
		name     string
		arrange  func(w *world)
		batch    string
		winner   string
		runnerUp string
	}{
		{"of another advertiser", func(*world) {}, ask(sidebar), "ryokan", "jet"},
		{"none is left", func(w *world) { w.pause("fly", "leaf") }, ask(sidebar), "ryokan", ""},
		{"not refused", func(w *world) { w.broke["inn"] = true }, ask(sidebar), "jet", "matcha"},
		{"not below the floor", func(w *world) { w.floors["sidebar-1"] = 2_500_000 }, ask(sidebar), "ryokan", "jet"},
		{"the only one is below the floor", func(w *world) { w.floors["sidebar-1"] = 3_200_000 }, ask(sidebar), "ryokan", ""},
		{"not on the page", func(*world) {}, ask(sidebar, batch{"pins": pins("elsewhere jet")}), "ryokan", "matcha"},
		{"a recent one sets prices", func(*world) {}, ask(sidebar, batch{"recent": []string{"fly"}}), "ryokan", "jet"},
		{"not of another category", func(w *world) {
			w.page.Categories = append(w.page.Categories, classify.Category{ID: science, Confidence: 0.5})
			w.campaign("fly", func(c *catalog.Campaign) { c.Categories = []string{science} })
		}, ask(sidebar), "ryokan", "matcha"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			test.arrange(w)
			d := w.decide(test.batch)
			wantTold(t, d, "sidebar-1: filled "+test.winner)
			mean := func(creative string) float64 { return quality.MeanEngagement(w.stats[creative], 1) }
			score := 0.0
			if test.runnerUp != "" {
				c, _ := w.Snapshot().Creative(test.runnerUp)
				campaign, _ := w.Snapshot().Campaign(c.Campaign)
				score = quality.Score(mean(test.runnerUp), campaign.MaxCPM, 0.5)
			}
			o := d.Outcomes[0]
			want := quality.Clear(score, mean(test.winner), 0.5, w.floors["sidebar-1"], o.Winner.Campaign.MaxCPM)
			if o.Price != want {
				t.Errorf("pays %v, want %v", o.Price, want)
			}
		})
	}
}

// One that was refused for another slot of the batch sets no price either.
func TestRunnerUpWasNotRefusedBefore(t *testing.T) {
	w := newWorld(t)
	w.pause("spring")
	w.creative("onsen", func(c *catalog.Creative) { c.Status = catalog.Paused })
	w.creative("ryokan", func(c *catalog.Creative) { c.Shapes = []catalog.Shape{{W: 300, H: 250}} })
	w.approve("ryokan")
	w.broke["fly"] = true
	d := w.decide(ask(imps("big 300x600", "small 300x250")))
	wantTold(t, d, "big: filled matcha; small: filled ryokan")
	if price := d.Outcomes[1].Price; price != 0 {
		t.Errorf("pays %v, which jet cannot", price)
	}
}

// Where samples and means disagree, the winner is of the samples and the price of the
// means.
func TestRunnerUpIsByMeans(t *testing.T) {
	w := newWorld(t)
	for creative, clicks := range map[string]float64{"ryokan": 1, "onsen": 2, "sakura": 3, "jet": 2, "matcha": 2} {
		w.stats[creative] = quality.Stats{Impressions: 4, Clicks: clicks, Shown: 100}
	}
	advertisers := map[string]string{"ryokan": "inn", "onsen": "inn", "sakura": "inn", "jet": "air", "matcha": "tea"}
	winners := map[string]int{}
	for w.seed = range 300 {
		d, e := serve.NewPipeline(w.market()).Explain(w.question(ask(sidebar)))
		score := map[string]*serve.ExplainedScore{}
		best, runnerUp := "", ""
		for _, c := range e.Candidates {
			score[c.Creative] = c.Score
			if best == "" || c.Score.Score > score[best].Score {
				best = c.Creative
			}
		}
		for creative, s := range score {
			if advertisers[creative] != advertisers[best] && (runnerUp == "" || s.MeanScore > score[runnerUp].MeanScore) {
				runnerUp = creative
			}
		}
		winners[best]++
		o := d.Outcomes[0]
		want := quality.Clear(score[runnerUp].MeanScore, score[best].MeanEngagement, 0.5, 0, o.Winner.Campaign.MaxCPM)
		if o.Winner.Creative.ID != best || o.Price != want {
			t.Fatalf("seed %d: %s pays %v, want %s for %v", w.seed, o.Winner.Creative.ID, o.Price, best, want)
		}
	}
	if len(winners) != 5 {
		t.Errorf("only these have ever won: %v", winners)
	}
}

// The most particular floor applies, once: the slot's, else the category's, else the
// site's.
func TestFloors(t *testing.T) {
	for _, test := range []struct {
		name     string
		floors   catalog.Floors
		template deckle.CPM
		want     deckle.CPM
	}{
		{"none", catalog.Floors{}, 0, 0},
		{"the site's", catalog.Floors{Site: 500_000}, 0, 500_000},
		{"the category's", catalog.Floors{Site: 500_000, Categories: map[string]deckle.CPM{travel: 300_000}}, 0, 300_000},
		{"of the category above", catalog.Floors{Site: 500_000, Categories: map[string]deckle.CPM{"150": 300_000}}, 0, 300_000},
		{"the slot's", catalog.Floors{Site: 500_000, Categories: map[string]deckle.CPM{travel: 900_000}, Slots: map[string]deckle.CPM{"sidebar-1": 200_000}}, 0, 200_000},
		{"the template's", catalog.Floors{Site: 500_000, Categories: map[string]deckle.CPM{travel: 900_000}}, 100_000, 100_000},
		{"the higher of the slot's two", catalog.Floors{Slots: map[string]deckle.CPM{"sidebar-1": 200_000}}, 250_000, 250_000},
		{"and the other way round", catalog.Floors{Slots: map[string]deckle.CPM{"sidebar-1": 300_000}}, 250_000, 300_000},
		{"of another slot", catalog.Floors{Site: 500_000, Slots: map[string]deckle.CPM{"footer": 200_000}}, 0, 500_000},
		{"rounded up", catalog.Floors{}, 100_001, 101_000},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.pause("fly", "leaf") // nobody sets the price but the floor
			w.site(func(s *catalog.Site) { s.Floors = test.floors })
			w.floors["sidebar-1"] = test.template
			w.parent = func(id string) string { return map[string]string{travel: "150"}[id] }
			d, e := serve.NewPipeline(w.market()).Explain(w.question(ask(sidebar)))
			if o := d.Outcomes[0]; o.Winner == nil || o.Price != test.want {
				t.Errorf("price is %v, want %v", o.Price, test.want)
			}
			if got := e.Slots[0].Contenders[0].Floor; got != test.want {
				t.Errorf("the floor is explained as %v, want %v", got, test.want)
			}
		})
	}
}

// A candidate belongs to the category that gives it the highest affinity, and is
// priced there.
func TestAffinity(t *testing.T) {
	taxonomy, err := catalog.LoadTaxonomy("Tiers", strings.NewReader("Unique ID\tParent\tName\n1\t\tOne\n11\t1\tEleven\n111\t11\tMore\n2\t\tTwo\n"))
	if err != nil {
		t.Fatal(err)
	}
	page := []classify.Category{{ID: "111", Confidence: 0.9}, {ID: "2", Confidence: 0.5}}
	for _, test := range []struct {
		name     string
		wants    []string
		affinity float64
		category string
	}{
		{"the very one", []string{"111"}, 0.9, "111"},
		{"one step up", []string{"11"}, 0.63, "111"},
		{"two steps up", []string{"1"}, 0.441, "111"},
		{"the less certain one is nearer", []string{"1", "2"}, 0.5, "2"},
		{"the more certain one is near enough", []string{"11", "2"}, 0.63, "111"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := emptyWorld(t, memory.NewKV(), catalog.Config{Content: taxonomy})
			d := exampleCatalog()
			for _, c := range d.Campaigns {
				c.Categories = test.wants
			}
			w.apply(d)
			w.page.Categories = page
			_, e := serve.NewPipeline(w.market()).Explain(w.question(ask(sidebar)))
			for _, c := range e.Candidates {
				if math.Abs(c.Affinity-test.affinity) > 1e-9 || c.Category != test.category {
					t.Errorf("%s: affinity %v by %s, want %v by %s", c.Creative, c.Affinity, c.Category, test.affinity, test.category)
				}
			}
			if len(e.Candidates) != 5 {
				t.Errorf("%d candidates", len(e.Candidates))
			}
		})
	}
}

func TestFreshness(t *testing.T) {
	for _, test := range []struct {
		name  string
		age   time.Duration
		want  string
		fresh time.Duration
	}{
		{"of now", 0, "filled ryokan", 48 * time.Hour},
		{"an hour old", time.Hour, "filled ryokan", 47 * time.Hour},
		{"just fresh", 48*time.Hour - time.Millisecond, "filled ryokan", time.Millisecond},
		{"out of date", 48 * time.Hour, "stale", 0},
		{"of another node, whose clock is ahead", -time.Minute, "filled ryokan", 48 * time.Hour},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.page.At = now.Add(-test.age)
			d := w.decide(ask(sidebar))
			wantTold(t, d, "sidebar-1: "+test.want)
			if d.Fresh != test.fresh {
				t.Errorf("fresh for %v, want %v", d.Fresh, test.fresh)
			}
		})
	}
}

// The explanation tells of every candidate where it ended, with the numbers that
// decided, and changes nothing.
func TestExplanation(t *testing.T) {
	w := newWorld(t)
	w.held["leaf"] = true
	w.broke["autumn"] = true
	w.floors["sidebar-1"] = 3_200_000
	d, e := serve.NewPipeline(w.market()).Explain(w.question(ask(imps("sidebar-1 300x250", "footer 320x50"), batch{"pins": pins("footer jet")})))
	wantTold(t, d, "sidebar-1: filled sakura; footer: honored jet")
	fates := map[string]string{}
	for _, c := range e.Candidates {
		fates[c.Creative] = c.Fate
		if s := c.Score; (s == nil) != (c.Creative == "jet" || c.Creative == "matcha") {
			t.Errorf("%s has the score %+v", c.Creative, s)
		} else if s != nil && (s.MeanEngagement != quality.MeanEngagement(w.stats[c.Creative], 1) || s.Impressions != 1000 || s.Shown != 1000) {
			t.Errorf("%s has the score %+v", c.Creative, s)
		}
	}
	for creative, want := range map[string]string{"sakura": "filled", "jet": "honored", "matcha": "paced", "ryokan": "used", "onsen": "used"} {
		if fates[creative] != want {
			t.Errorf("%s: %q, want %q", creative, fates[creative], want)
		}
	}
	slot := e.Slots[1] // the bookmark comes first
	want := []serve.ExplainedContender{
		{Creative: "ryokan", Fate: "budget", Reservation: "refused"},
		{Creative: "onsen", Fate: "budget", Reservation: "refused"},
		{Creative: "sakura", Fate: "filled", Reservation: "granted", Price: 3_200_000},
		{Creative: "jet", Fate: "used"},
		{Creative: "matcha", Fate: "paced"},
	}
	if slot.ID != "sidebar-1" || slot.Outcome != "filled" || slot.Creative != "sakura" || len(slot.Contenders) != len(want) {
		t.Fatalf("slot is %+v", slot)
	}
	for i, c := range slot.Contenders {
		if c.Creative != want[i].Creative || c.Fate != want[i].Fate || c.Reservation != want[i].Reservation || c.Floor != 3_200_000 {
			t.Errorf("turn %d: %+v, want %+v", i, c, want[i])
		}
	}
	if slot.Contenders[2].Price != d.Outcomes[0].Price {
		t.Errorf("pays %v, and is explained with %v", d.Outcomes[0].Price, slot.Contenders[2].Price)
	}
}
