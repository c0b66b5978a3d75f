package catalog_test

import (
	"testing"
	"time"

	"deckle/internal/catalog"
)

// sentences are those of the contract about what takes a creative off a site and
// what does not. Each begins with the example, approved on both sites.
var sentences = []struct {
	name string
	do   func(w *world)
	why  catalog.Why // "": not removed
	at   time.Time   // zero: now
	kept bool        // it is not removed and is shown as before
}{
	{name: "nothing happened", kept: true},

	// What takes a creative off a site.
	{name: "campaign paused", do: campaign(func(c *catalog.Campaign) { c.Status = catalog.Paused }), why: catalog.CampaignPaused},
	{name: "campaign ended", do: campaign(func(c *catalog.Campaign) { c.Status = catalog.Ended }), why: catalog.CampaignEnded},
	{name: "campaign ended by its date", do: campaign(func(c *catalog.Campaign) { c.End = "2026-12-01" }), at: tokyo("2026-12-02T00:00:00"), why: catalog.CampaignEnded},
	{name: "campaign deleted", do: func(w *world) { w.delete(catalog.KindCampaign, "autumn") }, why: catalog.CampaignDeleted},
	{name: "campaign taken off the site", do: campaign(func(c *catalog.Campaign) { c.Sites = []string{"shop"} }), why: catalog.CampaignOffSite},
	{name: "creative deleted", do: func(w *world) { w.delete(catalog.KindCreative, "ryokan") }, why: catalog.CreativeDeleted},
	{name: "creative deleted by its status", do: creative(func(c *catalog.Creative) { c.Status = catalog.Deleted }), why: catalog.CreativeDeleted},
	{name: "creative unassigned", do: creative(func(c *catalog.Creative) { c.Campaign, c.LandingURL = "", "https://www.inn.example/stay" }), why: catalog.CreativeUnassigned},
	{name: "advertiser removed", do: func(w *world) { w.delete(catalog.KindAdvertiser, "inn") }, why: catalog.AdvertiserDeleted},
	{name: "no approved version left: revoked", do: func(w *world) { w.reject("blog", "ryokan", 1) }, why: catalog.NotApproved},
	{name: "no approved version left: all rejected", do: func(w *world) {
		w.newVersion("Another room")
		w.reject("blog", "ryokan", 1)
		w.reject("blog", "ryokan", 2)
	}, why: catalog.NotApproved},
	{name: "the site blocks its domain", do: site(func(s *catalog.Site) { s.BlockedDomains = []string{"inn.example"} }), why: catalog.DomainBlocked},
	{name: "the site blocks its category", do: site(func(s *catalog.Site) { s.BlockedCategories = []string{tourism} }), why: catalog.CategoryBlocked},

	// What does not.
	{name: "creative paused", do: creative(func(c *catalog.Creative) { c.Status = catalog.Paused })},
	{name: "advertiser suspended", do: advertiser(func(a *catalog.Advertiser) { a.Status = catalog.Suspended })},
	{name: "budget as good as empty", do: advertiser(func(a *catalog.Advertiser) { a.DailyBudget = 1 }), kept: true},
	{name: "schedule not begun", do: campaign(func(c *catalog.Campaign) { c.Start = "2199-01-01" }), kept: true},
	{name: "the last day has not passed", do: campaign(func(c *catalog.Campaign) { c.End = "2026-12-01" }), at: tokyo("2026-12-01T23:59:59.999"), kept: true},
	{name: "warm-up", do: site(func(s *catalog.Site) { s.Status = catalog.Warmup }), kept: true},
	{name: "site suspended", do: site(func(s *catalog.Site) { s.Status = catalog.Suspended }), kept: true},
	{name: "re-registration", do: func(w *world) {
		w.put(exampleAdvertiser())
		w.put(exampleCampaign())
		w.put(exampleCreative())
	}, kept: true},
	{name: "an edit that waits for approval", do: func(w *world) { w.newVersion("Another room") }, kept: true},
	{name: "an edit that is rejected", do: func(w *world) {
		w.newVersion("Another room")
		w.reject("blog", "ryokan", 2)
	}, kept: true},
	{name: "the newest of two approved versions is revoked", do: func(w *world) {
		w.newVersion("Another room")
		w.approve("blog", "ryokan")
		w.reject("blog", "ryokan", 2)
	}, kept: true},
	{name: "removed from another site only", do: campaign(func(c *catalog.Campaign) { c.Sites = []string{"blog"} }), kept: true},
	{name: "rejected on another site only", do: func(w *world) { w.reject("shop", "ryokan", 1) }, kept: true},
	{name: "another domain is blocked", do: site(func(s *catalog.Site) { s.BlockedDomains = []string{"otherinn.example", "n.example"} }), kept: true},
	{name: "another category is blocked", do: site(func(s *catalog.Site) { s.BlockedCategories = []string{alcohol} }), kept: true},
	{name: "price, categories, landing page of the campaign change", do: campaign(func(c *catalog.Campaign) {
		c.MaxCPM, c.LandingURL = 9_000_000, "https://elsewhere.example/"
	}), kept: true},

	{name: "the site itself is gone", do: func(w *world) {
		campaign(func(c *catalog.Campaign) { c.Status = catalog.Paused })(w)
		w.delete(catalog.KindSite, "blog")
	}},

	// A pause leaves the approval as it is, and so does everything that comes back.
	{name: "a pause and its end", do: func(w *world) {
		campaign(func(c *catalog.Campaign) { c.Status = catalog.Paused })(w)
		campaign(func(c *catalog.Campaign) {})(w)
	}, kept: true},
	{name: "deleted and put back", do: func(w *world) {
		w.delete(catalog.KindCreative, "ryokan")
		w.put(exampleCreative())
	}, kept: true},
	{name: "advertiser removed and put back", do: func(w *world) {
		w.delete(catalog.KindAdvertiser, "inn")
		w.put(exampleAdvertiser())
	}, kept: true},
}

func tokyo(local string) time.Time {
	at, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		panic(err)
	}
	t, err := time.ParseInLocation("2006-01-02T15:04:05", local, at)
	if err != nil {
		panic(err)
	}
	return t
}

func campaign(change func(*catalog.Campaign)) func(*world) {
	return func(w *world) { e := exampleCampaign(); change(e); w.put(e) }
}

func creative(change func(*catalog.Creative)) func(*world) {
	return func(w *world) { e := exampleCreative(); change(e); w.put(e) }
}

func advertiser(change func(*catalog.Advertiser)) func(*world) {
	return func(w *world) { e := exampleAdvertiser(); change(e); w.put(e) }
}

func site(change func(*catalog.Site)) func(*world) {
	return func(w *world) { e := exampleSite("blog"); change(e); w.put(e) }
}

// newVersion edits the creative, which leads to another domain, so that no trust
// anchor approves it.
func (w *world) newVersion(headline string) {
	w.Helper()
	e := exampleCreative()
	e.Pages[0].Headline = headline
	e.LandingURL = "https://new.example/" + headline[:1]
	w.put(e)
	w.settled()
}

func TestRemoved(t *testing.T) {
	for _, test := range sentences {
		t.Run(test.name, func(t *testing.T) {
			inWorld(t, catalog.Config{}, func(w *world) {
				w.example()
				if test.do != nil {
					test.do(w)
				}
				s, at := w.settled(), test.at
				if at.IsZero() {
					at = day
				}
				removed, why := catalog.Removed(s, "blog", "ryokan", at)
				if removed != (test.why != "") || why != test.why {
					t.Errorf("Removed = %v, %q; want %q", removed, why, test.why)
				}
				if got := served(s, "blog", travel)["ryokan"]; (got == 1) != test.kept && test.at.IsZero() {
					t.Errorf("version %d is shown, want version 1: %v", got, test.kept)
				}
				// Where nothing was done to it, nothing follows.
				if removed, why := catalog.Removed(s, "blog", "never-held", at); removed {
					t.Errorf("an id that the catalog has never held is %q", why)
				}
				if removed, why := catalog.Removed(s, "nowhere", "ryokan", at); removed {
					t.Errorf("on a site that the catalog has never held it is %q", why)
				}
			})
		})
	}
}

func TestRemovedOnTheOtherSiteStays(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.example()
		site(func(s *catalog.Site) { s.BlockedDomains = []string{"inn.example"} })(w)
		s := w.settled()
		if removed, _ := s.Removed("shop", "ryokan", day); removed || served(s, "shop", travel)["ryokan"] != 1 {
			t.Error("what one site blocks has left the other")
		}
	})
}

func TestNothingIsRemovedBeforeTheCatalogIsLoaded(t *testing.T) {
	w := newWorld(t, catalog.Config{})
	if removed, why := w.Snapshot().Removed("blog", "ryokan", day); removed || w.Snapshot().Loaded() {
		t.Errorf("removed by a catalog that is not loaded: %q", why)
	}
	// An empty catalog that is loaded has never held it either.
	inWorld(t, catalog.Config{}, func(w *world) {
		if removed, why := w.settled().Removed("blog", "ryokan", day); removed {
			t.Errorf("removed by an empty catalog: %q", why)
		}
	})
}

// A restart reads the same facts, tombstones included.
func TestRemovedAfterARestart(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.example()
		w.delete(catalog.KindCreative, "ryokan")
		again := catalog.New(w.kv, w.keys, catalog.Config{})
		node := &world{TB: w, Catalog: again, ctx: w.ctx, kv: w.kv, keys: w.keys}
		node.run()
		if removed, why := node.settled().Removed("blog", "ryokan", day); !removed || why != catalog.CreativeDeleted {
			t.Errorf("after a restart Removed = %v, %q", removed, why)
		}
	})
}

// Never approved there is not the same as no approved version left.
func TestWaitingForTheFirstApprovalIsNoProof(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.example()
		e := exampleCreative()
		e.ID, e.LandingURL = "garden", "https://garden.example/"
		w.put(e)
		if removed, why := w.settled().Removed("blog", "garden", day); removed {
			t.Errorf("what waits for its first approval is %q", why)
		}
		w.reject("blog", "garden", 1)
		if removed, why := w.settled().Removed("blog", "garden", day); why != catalog.NotApproved {
			t.Errorf("what has been rejected is %v %q", removed, why)
		}
	})
}
