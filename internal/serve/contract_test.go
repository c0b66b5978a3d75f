package serve_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"deckle/internal/catalog"
	"deckle/internal/serve"
	"deckle/internal/token"
)

// A contractCase is one of the 18 cases of the contract: a batch that is asked of a
// world, first of the pure pipeline, then over HTTP, where the answer is a golden.
type contractCase struct {
	name    string
	arrange func(w *world) *world // changes the example; nil: as it is. Returns the node that is asked
	batch   string
	want    string
	check   func(t *testing.T, w *world, d *serve.Decision)
	answer  func(t *testing.T, a *answer) // what the golden does not say by itself
}

func contract() []contractCase {
	return []contractCase{
		{
			name:  "1 honours a pin in the pool without reservation",
			batch: ask(imps("sidebar-1 300x250"), batch{"pins": pins("sidebar-1 jet")}),
			want:  "sidebar-1: honored jet",
			check: func(t *testing.T, w *world, d *serve.Decision) {
				wantFree(t, w, &d.Outcomes[0])
			},
		},
		{
			name: "2 falls to auction with creative_removed when no longer approved",
			arrange: func(w *world) *world {
				w.reject("jet")
				return w
			},
			batch: ask(imps("sidebar-1 300x250"), batch{"pins": pins("sidebar-1 jet")}),
			want:  "sidebar-1: filled ryokan, removed",
		},
		{
			name:  "3 no dogear without a pin",
			batch: ask(imps("sidebar-1 300x250")),
			want:  "sidebar-1: filled ryokan",
		},
		{
			name: "4 honours below the floor",
			arrange: func(w *world) *world {
				w.floors["sidebar-1"] = 9_000_000
				w.floors["footer"] = 9_000_000
				return w
			},
			batch: ask(imps("sidebar-1 300x250", "footer 300x250"), batch{"pins": pins("sidebar-1 jet")}),
			want:  "sidebar-1: honored jet; footer: below_floor",
		},
		{
			name:  "5 honours when the campaign is page-blocked",
			batch: ask(imps("sidebar-1 300x250", "footer 300x250"), batch{"pins": pins("sidebar-1 ryokan", "elsewhere onsen")}),
			want:  "sidebar-1: honored ryokan; footer: filled jet",
		},
		{
			name: "6 locks the campaign for other slots",
			arrange: func(w *world) *world {
				w.pause("spring", "fly", "leaf") // ryokan and onsen are left
				return w
			},
			batch: ask(imps("footer 300x250", "sidebar-1 300x250"), batch{"pins": pins("sidebar-1 ryokan")}),
			want:  "footer: used; sidebar-1: honored ryokan",
		},
		{
			name: "7 locks the creative for other slots and sizes",
			arrange: func(w *world) *world {
				w.pause("autumn", "spring", "leaf") // jet is left
				return w
			},
			batch: ask(imps("banner 970x250", "sidebar-1 300x250", "footer 320x50"), batch{"pins": pins("sidebar-1 jet")}),
			want:  "banner: used; sidebar-1: honored jet; footer: used",
		},
		{
			name:  "8 honours several pins independently",
			batch: ask(imps("sidebar-1 300x250", "footer 300x250", "banner 970x250"), batch{"pins": pins("footer onsen", "sidebar-1 ryokan")}),
			want:  "sidebar-1: honored ryokan; footer: honored onsen; banner: filled jet",
		},
		{
			name: "9 honours while paced out, capped, over budget, in warm-up",
			arrange: func(w *world) *world {
				w.held["fly"], w.broke["fly"] = true, true
				w.campaign("fly", func(c *catalog.Campaign) { c.FrequencyCap = &catalog.FrequencyCap{Count: 1, Per: catalog.PerDay} })
				w.site(func(s *catalog.Site) { s.Status = catalog.Warmup })
				return w
			},
			batch: ask(imps("sidebar-1 300x250", "footer 300x250"), batch{
				"pins": pins("sidebar-1 jet"), "seen": map[string]any{"jet": map[string]int{"h": 1, "d": 9, "w": 9}},
			}),
			want: "sidebar-1: honored jet; footer: warmup",
			check: func(t *testing.T, w *world, d *serve.Decision) {
				wantFree(t, w, &d.Outcomes[0])
			},
		},
		{
			name: "10 keeps (says nothing) when approved but not in the pool",
			arrange: func(w *world) *world {
				w.creative("jet", func(c *catalog.Creative) { c.Status = catalog.Paused })
				return w
			},
			batch: ask(imps("sidebar-1 300x250"), batch{"pins": pins("sidebar-1 jet", "elsewhere jet")}),
			want:  "sidebar-1: filled ryokan",
		},
		{
			name: "11 says nothing while the catalog is not loaded",
			arrange: func(w *world) *world {
				w.reject("jet")
				return unread(w)
			},
			batch: ask(imps("sidebar-1 300x250"), batch{"pins": pins("sidebar-1 jet", "elsewhere jet")}),
			want:  "sidebar-1: no_candidates",
			answer: func(t *testing.T, a *answer) {
				if a.status != http.StatusServiceUnavailable {
					t.Errorf("status %d: the browser must keep every bookmark", a.status)
				}
			},
		},
		{
			name: "12 an off-page pin excludes its creative, its campaign and its advertiser, on retries too",
			arrange: func(w *world) *world {
				w.broke["fly"] = true // the best that is left
				return w
			},
			batch: ask(imps("sidebar-1 300x250", "footer 300x250"), batch{"pins": pins("elsewhere onsen")}),
			want:  "sidebar-1: filled matcha; footer: budget",
			check: func(t *testing.T, w *world, _ *serve.Decision) {
				for _, r := range w.reserved {
					if r.campaign != "leaf" {
						t.Errorf("%s has reserved", r.campaign)
					}
				}
			},
		},
		{
			name: "13 a dead off-page pin is in stalePins",
			arrange: func(w *world) *world {
				w.reject("onsen")
				return w
			},
			batch: ask(imps("sidebar-1 300x250"), batch{"pins": pins("elsewhere onsen", "nowhere onsen", "other jet")}),
			want:  "sidebar-1: filled ryokan", // a dead one excludes nothing
			check: func(t *testing.T, _ *world, d *serve.Decision) {
				if got := strings.Join(d.StalePins, " "); got != "onsen" {
					t.Errorf("stale pins %q", got)
				}
			},
		},
		{
			name:  "14 same creative on two slots: once",
			batch: ask(imps("small 300x250", "big 300x600"), batch{"pins": pins("small jet", "big jet")}),
			want:  "small: filled ryokan; big: honored jet",
		},
		{
			name: "15 pinned big, pinned small, unpinned big, unpinned small",
			batch: ask(imps("unpinned-small 300x250", "unpinned-big 300x600", "pinned-small 300x250", "pinned-big 300x600"), batch{
				"pins": pins("pinned-small jet", "pinned-big matcha"), "debug": "{debug}",
			}),
			want: "unpinned-small: used; unpinned-big: filled ryokan; pinned-small: honored jet; pinned-big: honored matcha",
			answer: func(t *testing.T, a *answer) {
				var order []string
				for _, s := range a.Explain.Slots {
					order = append(order, s.ID)
				}
				if got := strings.Join(order, " "); got != "pinned-big pinned-small unpinned-big unpinned-small" {
					t.Errorf("decided in the order %s", got)
				}
			},
		},
		{
			name:  "16 a pin honoured costs nothing even if the client drops dogeared=1",
			batch: ask(imps("sidebar-1 300x250"), batch{"pins": pins("sidebar-1 jet")}),
			want:  "sidebar-1: honored jet",
			answer: func(t *testing.T, a *answer) {
				b := a.beacon(t, token.Imp, a.Seatbid[0].Winner.ImpURL)
				if b.Price != 0 || !b.Dogeared || len(b.Leases) > 0 {
					t.Errorf("the beacon costs %d, dogeared %v, paid by %v", b.Price, b.Dogeared, b.Leases)
				}
			},
		},
		{
			name: "17 pause, then the next batch on another node says creative_removed",
			arrange: func(w *world) *world {
				node := emptyWorld(w.TB, w.kv, catalog.Config{})
				node.stats = w.stats
				wantTold(w, node.decide(ask(imps("sidebar-1 300x250"), batch{"pins": pins("sidebar-1 jet")})), "sidebar-1: honored jet")
				w.pause("fly")
				node.settle()
				return node
			},
			batch: ask(imps("sidebar-1 300x250"), batch{"pins": pins("sidebar-1 jet")}),
			want:  "sidebar-1: filled ryokan, removed",
		},
		{
			name: "18 a creative whose campaign did not opt in has no fold token",
			arrange: func(w *world) *world {
				w.broke["inn"] = true
				return w
			},
			batch: ask(imps("big 300x600", "small 300x250")),
			want:  "big: filled jet; small: filled matcha",
			answer: func(t *testing.T, a *answer) {
				if jet, matcha := a.Seatbid[0].Winner, a.Seatbid[1].Winner; jet.FoldToken == "" || matcha.FoldToken != "" {
					t.Errorf("fold tokens: of jet %q, of matcha %q", jet.FoldToken, matcha.FoldToken)
				}
			},
		},
	}
}

func TestContract(t *testing.T) {
	for i, c := range contract() {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			w := newWorld(t)
			if c.arrange != nil {
				w = c.arrange(w)
			}
			d := w.decide(c.batch)
			wantTold(t, d, c.want)
			if c.check != nil {
				c.check(t, w, d)
			}
			a := w.golden(t, i+1, c.name, c.batch)
			if c.answer != nil {
				c.answer(t, a)
			}
		})
	}
}

// wantFree is for a bookmark that is honoured.
func wantFree(t *testing.T, w *world, o *serve.Outcome) {
	t.Helper()
	if o.Price != 0 || len(o.Leases) > 0 || len(w.reserved) > 0 {
		t.Errorf("it costs %v, paid by %v; reserved: %v", o.Price, o.Leases, w.reserved)
	}
	if len(o.RequestID) != 16 {
		t.Errorf("request id %q", o.RequestID)
	}
}

// pause pauses campaigns.
func (w *world) pause(campaigns ...string) {
	w.Helper()
	for _, id := range campaigns {
		w.campaign(id, func(c *catalog.Campaign) { c.Status = catalog.Paused })
	}
}

// Not knowing is not proof: what keeps an ad out of the lookup pool for whatever
// other reason says nothing of its bookmark, in the batch and outside.
func TestPinsAreKeptWithoutProof(t *testing.T) {
	for name, arrange := range map[string]func(w *world){
		"creative paused":      func(w *world) { w.creative("jet", func(c *catalog.Creative) { c.Status = catalog.Paused }) },
		"advertiser suspended": func(w *world) { w.advertiser("air", func(a *catalog.Advertiser) { a.Status = catalog.Suspended }) },
		"schedule not begun":   func(w *world) { w.campaign("fly", func(c *catalog.Campaign) { c.Start = "2026-12-24" }) },
		"other category":       func(w *world) { w.page.Categories[0].ID = science },
		"stale page":           func(w *world) { w.page.At = now.Add(-49 * time.Hour) },
		"page unknown":         func(w *world) { w.known = false },
		"wrong shape": func(w *world) {
			w.creative("jet", func(c *catalog.Creative) { c.Shapes = []catalog.Shape{{W: 970, H: 250}} })
			w.approve("jet")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			arrange(w)
			d := w.decide(ask(imps("sidebar-1 300x250"), batch{"pins": pins("sidebar-1 jet", "elsewhere jet")}))
			if o := d.Outcomes[0]; o.Honored || o.PinRemoved || len(d.StalePins) > 0 {
				t.Errorf("%s, stale pins %v", told(d), d.StalePins)
			}
		})
	}
	w := newWorld(t)
	d := w.decide(ask(imps("sidebar-1 300x250"), batch{"pins": pins("sidebar-1 never-heard-of", "elsewhere never-heard-of")}))
	wantTold(t, d, "sidebar-1: filled ryokan")
	if len(d.StalePins) > 0 {
		t.Errorf("stale pins %v", d.StalePins)
	}
}

// What takes an ad off a site ends its bookmarks, in the batch and outside.
func TestPinsEndWithProof(t *testing.T) {
	for name, arrange := range map[string]func(w *world){
		"campaign paused":   func(w *world) { w.pause("fly") },
		"campaign ended":    func(w *world) { w.campaign("fly", func(c *catalog.Campaign) { c.Status = catalog.Ended }) },
		"its end has come":  func(w *world) { w.campaign("fly", func(c *catalog.Campaign) { c.End = "2026-11-30" }) },
		"off the site":      func(w *world) { w.campaign("fly", func(c *catalog.Campaign) { c.Sites = []string{"other"} }) },
		"campaign deleted":  func(w *world) { w.delete(catalog.KindCreative, "jet"); w.delete(catalog.KindCampaign, "fly") },
		"creative deleted":  func(w *world) { w.delete(catalog.KindCreative, "jet") },
		"unassigned":        func(w *world) { w.creative("jet", func(c *catalog.Creative) { c.Campaign = "" }) },
		"approval rejected": func(w *world) { w.reject("jet") },
		"domain blocked":    func(w *world) { w.site(func(s *catalog.Site) { s.BlockedDomains = []string{"air.example"} }) },
		"product blocked":   func(w *world) { w.site(func(s *catalog.Site) { s.BlockedCategories = []string{tourism} }) },
		"and the page is stale": func(w *world) {
			w.known = false
			w.pause("fly")
		},
		"and the site warms up": func(w *world) {
			w.site(func(s *catalog.Site) { s.Status = catalog.Warmup })
			w.pause("fly")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.put(&catalog.Site{ID: "other", Publisher: "yuki"})
			arrange(w)
			d := w.decide(ask(imps("sidebar-1 300x250"), batch{"pins": pins("sidebar-1 jet", "elsewhere jet")}))
			if o := d.Outcomes[0]; o.Honored || !o.PinRemoved || !slices.Equal(d.StalePins, []string{"jet"}) {
				t.Errorf("%s, stale pins %v", told(d), d.StalePins)
			}
		})
	}
}
