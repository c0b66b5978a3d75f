package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"deckle/internal/catalog"
)

// queue is what waits on a site, as "creative version".
func (w *world) queue(site string) []string {
	var out []string
	for _, q := range w.settled().Queue(site, day) {
		out = append(out, q.Creative+" "+string(rune('0'+q.Version)))
	}
	return out
}

func (w *world) wantQueue(site string, want ...string) {
	w.Helper()
	if got := w.queue(site); !slices.Equal(got, want) {
		w.Errorf("waiting on %s: %q, want %q", site, got, want)
	}
}

func (w *world) wantServed(site string, version uint32) {
	w.Helper()
	if got := served(w.settled(), site, travel)["ryokan"]; got != version {
		w.Errorf("version %d is shown on %s, want %d", got, site, version)
	}
}

func TestNothingServesBeforeItIsApproved(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.put(examplePublisher())
		w.put(exampleSite("blog"))
		w.put(exampleSite("shop"))
		w.put(exampleAdvertiser())
		paused := exampleCampaign()
		paused.Status = catalog.Paused
		w.put(paused)
		w.put(exampleCreative())
		w.wantQueue("blog") // it would not serve
		w.put(exampleCampaign())
		w.wantQueue("blog", "ryokan 1") // by itself
		w.wantQueue("shop", "ryokan 1")
		w.wantServed("blog", 0)

		w.approve("blog", "ryokan")
		w.wantQueue("blog")
		w.wantQueue("shop", "ryokan 1")
		w.wantServed("blog", 1)
		w.wantServed("shop", 0)

		edited := exampleCreative()
		edited.Pages = []catalog.Page{{Headline: "Another"}}
		edited.LandingURL = "https://elsewhere.example/"
		w.put(edited)
		if version, shown, ok := w.settled().Shown("blog", "ryokan"); !ok || version != 1 || shown.Pages[0].Headline != "A quiet room" {
			t.Errorf("blog shows version %d, %+v", version, shown)
		}
		if _, _, ok := w.settled().Shown("shop", "ryokan"); ok {
			t.Error("shop shows what it has not approved")
		}
	})
}

func TestQueueHoldsOnlyWhatWouldServe(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(w *world)
		want bool
	}{
		{"as it is", func(*world) {}, true},
		{"before its start", campaign(func(c *catalog.Campaign) { c.Start = "2199-01-01" }), true},
		{"after its end", campaign(func(c *catalog.Campaign) { c.End = "2026-11-30" }), false},
		{"campaign ended", campaign(func(c *catalog.Campaign) { c.Status = catalog.Ended }), false},
		{"campaign elsewhere", campaign(func(c *catalog.Campaign) { c.Sites = []string{"shop"} }), false},
		{"creative paused", creative(func(c *catalog.Creative) {
			c.Status, c.LandingURL = catalog.Paused, "https://new.example/"
		}), false},
		{"advertiser suspended", advertiser(func(a *catalog.Advertiser) { a.Status = catalog.Suspended }), false},
		{"site suspended", site(func(s *catalog.Site) { s.Status = catalog.Suspended }), false},
		{"site in warm-up", site(func(s *catalog.Site) { s.Status = catalog.Warmup }), true},
		{"domain blocked", site(func(s *catalog.Site) { s.BlockedDomains = []string{"new.example"} }), false},
		{"the version that is shown is blocked, the new one not", site(func(s *catalog.Site) { s.BlockedDomains = []string{"inn.example"} }), true},
		{"all before it is rejected", func(w *world) { w.reject("blog", "ryokan", 1) }, true},
		{"category blocked", site(func(s *catalog.Site) { s.BlockedCategories = []string{tourism} }), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			inWorld(t, catalog.Config{}, func(w *world) {
				w.example()
				w.newVersion("Another room")
				test.do(w)
				if got := w.queue("blog"); (len(got) == 1) != test.want {
					t.Errorf("waiting: %q, want something: %v", got, test.want)
				}
			})
		})
	}
}

func TestLastApprovedVersionServesUntilTheNext(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.example()
		w.newVersion("Another room")
		w.wantServed("blog", 1)
		w.wantQueue("blog", "ryokan 2")
		if q := w.settled().Queue("blog", day)[0]; q.Serving != 1 || q.Campaign != "autumn" || q.Advertiser != "inn" {
			t.Errorf("waiting is %+v", q)
		}
		for c := range w.settled().Lookup("blog", travel).All() {
			if c.Content.Pages[0].Headline != "A quiet room" || string(c.PagesJSON) != `[{"headline":"A quiet room"}]` {
				t.Errorf("shown is %+v %s, want what was approved", c.Content, c.PagesJSON)
			}
		}
		w.approve("blog", "ryokan")
		w.wantServed("blog", 2)
		w.wantServed("shop", 1)
		w.reject("blog", "ryokan", 2)
		w.wantServed("blog", 1) // the last that is approved
	})
}

func TestTrustAnchors(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.example() // approves by hand what leads to www.inn.example
		if got := w.settled().Anchors("blog", "autumn"); !slices.Equal(got, []string{"inn.example"}) {
			t.Fatalf("anchors are %q, want the registrable domain", got)
		}

		// Another version, another host, the same domain: no person is asked.
		e := exampleCreative()
		e.LandingURL = "https://book.inn.example/now"
		w.put(e)
		w.wantServed("blog", 2)
		a := w.settled().Approvals("blog", "ryokan").Decisions[1]
		if a.Via != catalog.ByAnchor || a.Anchor != "inn.example" || a.By != "tester" || a.State != catalog.Approved {
			t.Errorf("approved as %+v", a)
		}

		// Another creative of the campaign as well; of another campaign not.
		e = exampleCreative()
		e.ID = "garden"
		w.put(e)
		if got := served(w.settled(), "blog", travel)["garden"]; got != 1 {
			t.Errorf("version %d of another creative is shown", got)
		}
		winter := exampleCampaign()
		winter.ID = "winter"
		w.put(winter)
		e = exampleCreative()
		e.ID, e.Campaign = "snow", "winter"
		w.put(e)
		w.wantQueue("blog", "snow 1")

		// What an anchor approves makes no anchor; a rejection withdraws it.
		w.reject("blog", "ryokan", 2)
		if got := w.settled().Anchors("blog", "autumn"); len(got) > 0 {
			t.Errorf("anchors are %q after a rejection", got)
		}
		e = exampleCreative()
		e.Pages[0].Headline = "A third room"
		w.put(e)
		w.wantQueue("blog", "ryokan 3", "snow 1")
		w.wantQueue("shop", "snow 1") // where nothing was rejected
	})
}

// What a person has rejected is asked of a person, whatever is trusted since.
func TestRejectedContentIsNotApprovedByItself(t *testing.T) {
	for _, test := range []struct {
		name string
		auto bool // by the site instead of an anchor
	}{{"anchor", false}, {"auto-approve", true}} {
		t.Run(test.name, func(t *testing.T) {
			inWorld(t, catalog.Config{}, func(w *world) {
				w.example()
				put := func(id, headline string) {
					e := exampleCreative()
					e.ID, e.Pages[0].Headline = id, headline
					w.put(e)
					w.settled()
				}
				w.reject("blog", "ryokan", 1)
				put("garden", "A garden")
				w.approve("blog", "garden") // the anchor is back
				site(func(s *catalog.Site) { s.AutoApprove = test.auto })(w)
				put("ryokan", "Another room")
				w.wantServed("blog", 2)

				put("ryokan", "A quiet room")
				put("copy", "A quiet room")
				w.wantServed("blog", 2)
				w.wantQueue("blog", "copy 1", "ryokan 3")
				w.wantQueue("shop") // where nobody has rejected it

				w.approve("blog", "ryokan") // until a person thinks otherwise
				w.wantServed("blog", 3)
				w.wantQueue("blog")
			})
		})
	}
}

func TestAutoApprove(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.example()
		w.newVersion("Another room")
		w.wantServed("blog", 1)
		site(func(s *catalog.Site) { s.AutoApprove = true })(w)
		w.wantServed("blog", 2)
		w.wantServed("shop", 1)
		if d := w.settled().Approvals("blog", "ryokan").Decisions[1]; d.Via != catalog.BySite {
			t.Errorf("approved as %+v", d)
		}
		if got := w.settled().Anchors("blog", "autumn"); slices.Contains(got, "new.example") {
			t.Errorf("anchors are %q: only a person makes one", got)
		}
		// What was approved stays so when the site wants to look again.
		site(func(*catalog.Site) {})(w)
		w.newVersion("Third room")
		w.wantServed("blog", 2)
		w.wantQueue("blog", "ryokan 3")
	})
}

func TestDecisionsAreCompareAndSet(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.example()
		w.newVersion("Another room")
		now := w.settled().Approvals("blog", "ryokan")

		_, err := w.Approve(w.ctx, "blog", "ryokan", 2, catalog.Write{By: "late", Revision: now.Revision - 1})
		lost, ok := errors.AsType[*catalog.ConflictError](err)
		if !ok || lost.Revision != now.Revision || lost.Kind != "approval" || lost.ID != "blog/ryokan" {
			t.Errorf("an old revision: %v", err)
		}
		_, err = w.Approve(w.ctx, "blog", "ryokan", 1, catalog.Write{By: "late", Revision: now.Revision})
		checkFields(t, err, "version") // nobody has looked at the present one
		_, err = w.Reject(w.ctx, "blog", "ryokan", 7, catalog.Write{By: "late", Revision: now.Revision})
		checkFields(t, err, "version")
		_, err = w.Approve(w.ctx, "nowhere", "ryokan", 2, catalog.Write{By: "late"})
		if !errors.Is(err, catalog.ErrNotFound) {
			t.Errorf("on a site that there is not: %v", err)
		}
		_, err = w.Approve(w.ctx, "blog", "ryokan", 2, catalog.Write{Revision: now.Revision})
		checkFields(t, err, "by")

		// What is decided already is not decided again.
		w.approve("blog", "ryokan")
		before := w.settled()
		got, err := w.Approve(w.ctx, "blog", "ryokan", 2, catalog.Write{By: "second", Revision: 1})
		if err != nil || got.Decisions[1].By != "tester" || w.settled().Revision() != before.Revision() {
			t.Errorf("approving again gave %+v, %v", got, err)
		}
	})
}

// Whoever took a creative into a campaign would have an approval that was given
// nobody.
func TestApprovalNeedsAnAdvertiser(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.example()
		loose := exampleCreative()
		loose.ID, loose.Campaign, loose.LandingURL = "loose", "", "https://www.inn.example/"
		w.put(loose)
		_, err := w.Approve(w.ctx, "blog", "loose", 1, catalog.Write{By: "ana"})
		if want := `creative: "loose" belongs to no advertiser yet (put it into a campaign first)`; !errors.Is(err, catalog.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		w.settled()
		_, err = w.Import(&catalog.Document{Approvals: []catalog.DocumentApproval{{Site: "blog", Creative: "loose", State: catalog.Approved}}})
		if want := `approvals[0].creative: "loose" belongs to no advertiser yet`; !errors.Is(err, catalog.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("a document: got %v, want %s", err, want)
		}
		if got := w.settled().Approvals("blog", "loose"); got.Revision != 0 {
			t.Errorf("decided is %+v", got)
		}
		// Rejected it can be; and one that has been in a campaign keeps its advertiser.
		w.reject("blog", "loose", 1)
		taken := exampleCreative()
		taken.Campaign, taken.LandingURL, taken.Pages[0].Headline = "", "https://www.inn.example/", "Another room"
		w.put(taken)
		w.approve("blog", taken.ID)
	})
}

// The reason of a decision is with it and in the audit log, apart from who decided.
func TestDecisionsHaveNotes(t *testing.T) {
	clock := day
	inWorld(t, catalog.Config{Now: func() time.Time { clock = clock.Add(time.Second); return clock }}, func(w *world) {
		w.example()
		now := w.settled().Approvals("blog", "ryokan")
		got, err := w.Reject(w.ctx, "blog", "ryokan", 1, catalog.Write{By: "ana", Note: "The house is closed.", Revision: now.Revision})
		if err != nil {
			t.Fatal(err)
		}
		if d := got.Decisions[0]; d.By != "ana" || d.Note != "The house is closed." {
			t.Errorf("decided is %+v", d)
		}
		if d := w.settled().Approvals("blog", "ryokan").Decisions[0]; d.Note != "The house is closed." {
			t.Errorf("stored is %+v", d)
		}
		if e := w.settled().Audit(1)[0]; e.By != "ana" || e.What != "rejected version 1" || e.Note != "The house is closed." {
			t.Errorf("audit says %+v", e)
		}
		r, _ := w.Get(w.ctx, catalog.KindCampaign, "autumn")
		if _, err := w.Delete(w.ctx, catalog.KindCampaign, "autumn", catalog.Write{By: "ana", Note: "The season is over.", Revision: r.Revision}); err != nil {
			t.Fatal(err)
		}
		if e := w.settled().Audit(1)[0]; e.What != "deleted" || e.Note != "The season is over." {
			t.Errorf("audit says %+v", e)
		}
		for _, note := range []string{"a\nb", strings.Repeat("é", 301)} {
			if _, err := w.tryPutBy(exampleSite("blog"), catalog.Write{By: "ana", Note: note}); !errors.Is(err, catalog.ErrInvalid) || !strings.Contains(err.Error(), "note: ") {
				t.Errorf("a note of %d characters: %v", len([]rune(note)), err)
			}
		}
	})
}

func TestDecisionsAreBounded(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.example()
		for i := range 40 {
			w.newVersion(fmt.Sprint(i%10, " room ", i))
			w.reject("blog", "ryokan", uint32(i)+2)
		}
		a := w.settled().Approvals("blog", "ryokan")
		if len(a.Decisions) != 20 || a.Serving() != 1 || a.State(41) != catalog.Rejected {
			t.Errorf("%d decisions, version %d is shown", len(a.Decisions), a.Serving())
		}
		w.wantServed("blog", 1)
	})
}

// What a crash or a slow store has left undone is done later, by whichever node.
func TestAutomaticApprovalIsMadeUpFor(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.example()
		ctx, stop := context.WithCancel(w.ctx)
		stop()
		if err := w.Run(ctx); err != nil { // a node that stops at once
			t.Fatal(err)
		}
		e := exampleCreative()
		e.Pages[0].Headline = "A room with a view"
		current, err := w.Get(w.ctx, e.Kind(), e.ID)
		if err != nil {
			t.Fatal(err)
		}
		w.kv.Fail(none, none, down, down) // content and creative; then both approvals
		if _, err := w.Put(w.ctx, e, catalog.Write{By: "tester", Revision: current.Revision}); err != nil {
			t.Fatal(err)
		}
		w.wantServed("blog", 1)
		if n := w.kv.Pending(); n != 0 {
			t.Fatalf("%d faults have not happened", n)
		}
		time.Sleep(6 * time.Second) // of the bubble: it tries again after five
		w.wantServed("blog", 2)
		w.wantServed("shop", 2)
	})
}
