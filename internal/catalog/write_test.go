package catalog_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"deckle"
	"deckle/internal/catalog"
	"deckle/internal/store"
	"deckle/internal/store/memory"
)

var (
	none = memory.Fault{}
	down = memory.Fault{Refuse: store.ErrUnavailable}
	lost = memory.Fault{LoseAnswer: true}
)

func TestPutAndGet(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.example()
		got, err := w.Get(w.ctx, catalog.KindCreative, "ryokan")
		if err != nil {
			t.Fatal(err)
		}
		e := got.Entity.(*catalog.Creative)
		if e.Version != 1 || e.LandingURL != "https://www.inn.example/stay" || e.Pages[0].Headline != "A quiet room" {
			t.Errorf("got %+v", e)
		}
		if _, err := w.Get(w.ctx, catalog.KindCreative, "nothing"); !errors.Is(err, catalog.ErrNotFound) {
			t.Errorf("what there is not: %v", err)
		}
		if _, err := w.Get(w.ctx, "animal", "cat"); !errors.Is(err, catalog.ErrNotFound) {
			t.Errorf("a kind that there is not: %v", err)
		}
	})
}

// Text that is not UTF-8 is refused: it could not be stored as what it is.
func TestTextIsUTF8(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.example()
		for field, edit := range map[string]func(*catalog.Creative){
			"name":               func(c *catalog.Creative) { c.Name = "a\xff" },
			"pages[0].headline":  func(c *catalog.Creative) { c.Pages[0].Headline = "a\xff" },
			"pages[0].body":      func(c *catalog.Creative) { c.Pages[0].Body = "a\xe3\x81" },
			"pages[0].image.alt": func(c *catalog.Creative) { c.Pages[0].Image = &catalog.Image{Alt: "\xc0\x80"} },
		} {
			c := exampleCreative()
			c.Pages = slices.Clone(c.Pages)
			edit(c)
			_, err := w.tryPut(c)
			bad, ok := errors.AsType[*catalog.InvalidError](err)
			if !ok || !slices.ContainsFunc(bad.Problems, func(p catalog.Problem) bool { return p.Field == field }) {
				t.Errorf("%s: %v", field, err)
			}
		}
	})
}

// What is the same is not written again, and is no conflict only for who has seen
// it.
func TestTheSameIsNotWrittenAgain(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.example()
		before := w.settled().Revision()
		for _, e := range []catalog.Entity{examplePublisher(), exampleSite("blog"), exampleAdvertiser(), exampleCampaign(), exampleCreative()} {
			if r, err := w.tryPut(e); err != nil || len(r.History) != 1 {
				t.Errorf("%s: %v, history %+v", e.Kind(), err, r.History)
			}
			if _, err := w.Put(w.ctx, e, catalog.Write{By: "tester"}); !errors.Is(err, catalog.ErrConflict) {
				t.Errorf("%s as if it were new: %v", e.Kind(), err)
			}
		}
		if after := w.settled().Revision(); after != before {
			t.Errorf("revision %d, then %d", before, after)
		}
	})
}

func TestVersionsGrowWithWhatIsApproved(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.example()
		e := exampleCreative()
		for _, step := range []struct {
			change func()
			want   uint32
		}{
			{func() { e.Name = "Ryokan" }, 1},
			{func() { e.Status = catalog.Paused }, 1},
			{func() { e.Version = 99 }, 1}, // not the writer's to say
			{func() { e.Pages = []catalog.Page{{Headline: "Another"}} }, 2},
			{func() { e.Shapes = []catalog.Shape{{W: 300, H: 250}} }, 3},
			{func() { e.LandingURL = "https://www.inn.example/other" }, 4},
			{func() { e.LandingURL = "" }, 5}, // the campaign's again
			{func() {}, 5},
		} {
			step.change()
			if got := w.put(e).Entity.(*catalog.Creative).Version; got != step.want {
				t.Errorf("version %d, want %d", got, step.want)
			}
		}
	})
}

// An edit of the campaign's landing page changes nothing that has been approved.
func TestLandingPageIsKeptWithTheVersion(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.example()
		campaign(func(c *catalog.Campaign) { c.LandingURL = "https://casino.example/" })(w)
		for c := range w.settled().Lookup("blog", travel).All() {
			if c.Content.LandingURL != "https://www.inn.example/stay" || c.Domain != "inn.example" {
				t.Errorf("leads to %s (%s)", c.Content.LandingURL, c.Domain)
			}
		}
	})
}

func TestLostRaceHasTheNewest(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.example()
		old, _ := w.Get(w.ctx, catalog.KindCampaign, "autumn")
		newest := exampleCampaign()
		newest.MaxCPM = 5_000_000
		written := w.put(newest)

		mine := exampleCampaign()
		mine.MaxCPM = 6_000_000
		_, err := w.Put(w.ctx, mine, catalog.Write{By: "late", Revision: old.Revision})
		lost, ok := errors.AsType[*catalog.ConflictError](err)
		if !ok || !errors.Is(err, catalog.ErrConflict) || lost.Revision != written.Revision ||
			lost.Current.Entity.(*catalog.Campaign).MaxCPM != 5_000_000 {
			t.Fatalf("got %v", err)
		}
		_, err = w.Delete(w.ctx, catalog.KindCampaign, "autumn", catalog.Write{By: "late", Revision: old.Revision})
		if !errors.Is(err, catalog.ErrConflict) {
			t.Errorf("deleting an old revision: %v", err)
		}
		unseen := exampleCampaign()
		unseen.MaxCPM = 7_000_000
		if _, err := w.Put(w.ctx, unseen, catalog.Write{By: "late"}); !errors.Is(err, catalog.ErrConflict) {
			t.Errorf("creating what there is: %v", err)
		}
	})
}

// Many writers raise one budget, each by compare-and-set until it has won once.
func TestLostRaces(t *testing.T) {
	w := newWorld(t, catalog.Config{})
	w.put(examplePublisher())
	w.put(exampleAdvertiser())
	const writers, each = 32, 10
	var (
		g    sync.WaitGroup
		mu   sync.Mutex
		lost int
	)
	for i := range writers {
		g.Go(func() {
			for range each {
				for {
					r, err := w.Get(w.ctx, catalog.KindAdvertiser, "inn")
					if err != nil {
						t.Error(err)
						return
					}
					e := *r.Entity.(*catalog.Advertiser)
					e.DailyBudget++
					_, err = w.Put(w.ctx, &e, catalog.Write{By: fmt.Sprint("writer ", i), Revision: r.Revision})
					if err == nil {
						break
					}
					if !errors.Is(err, catalog.ErrConflict) {
						t.Error(err)
						return
					}
					mu.Lock()
					lost++
					mu.Unlock()
				}
			}
		})
	}
	g.Wait()
	r, err := w.Get(w.ctx, catalog.KindAdvertiser, "inn")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.Entity.(*catalog.Advertiser).DailyBudget, 50_000_000+deckle.Money(writers*each); got != want {
		t.Errorf("the budget is %d, want %d: an update was lost", got, want)
	}
	if lost == 0 {
		t.Error("no race was lost: nothing was tested")
	}
	if len(r.History) != 16 {
		t.Errorf("%d changes are kept, want 16", len(r.History))
	}
}

func TestTombstones(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.example()
		w.delete(catalog.KindCreative, "ryokan")
		r, err := w.Get(w.ctx, catalog.KindCreative, "ryokan")
		if err != nil || !r.Deleted || r.Entity.(*catalog.Creative).Status != catalog.Deleted {
			t.Fatalf("the tombstone is %+v, %v", r, err)
		}
		s := w.settled()
		if _, ok := s.Creative("ryokan"); ok || len(s.List(catalog.KindCreative, "", 10)) != 0 || len(s.Children(catalog.KindCreative, "autumn")) != 0 {
			t.Error("a tombstone is listed")
		}
		if got, _ := s.Record(catalog.KindCreative, "ryokan"); !got.Deleted {
			t.Error("a tombstone is not kept")
		}
		again, err := w.Delete(w.ctx, catalog.KindCreative, "ryokan", catalog.Write{By: "tester"})
		if err != nil || again.Revision != r.Revision {
			t.Errorf("deleting again: %v", err)
		}
		back := w.put(exampleCreative())
		if back.Deleted || back.Entity.(*catalog.Creative).Version != 1 || back.History[2].What != "restored" {
			t.Errorf("put back: %+v", back)
		}

		w.delete(catalog.KindCampaign, "autumn")
		e := exampleCreative()
		e.ID = "garden"
		_, err = w.tryPut(e)
		checkFields(t, err, "campaign") // a reference to a tombstone is none
		w.delete(catalog.KindCreative, "ryokan")
		_, err = w.tryPut(exampleCreative())
		checkFields(t, err, "campaign") // nor for what is put back
	})
}

// What cannot be changed cannot be changed by deleting and putting back either.
func TestOwnersStayInTombstones(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.example()
		w.put(&catalog.Publisher{ID: "other", Name: "Other", Currency: "EUR"})
		farm := exampleAdvertiser()
		farm.ID = "farm"
		w.put(farm)
		site, advertiser, campaign := exampleSite("shop"), exampleAdvertiser(), exampleCampaign()
		site.Publisher, advertiser.Publisher, campaign.Advertiser = "other", "other", "farm"
		for _, test := range []struct {
			catalog.Entity
			field string
		}{{campaign, "advertiser"}, {advertiser, "publisher"}, {site, "publisher"}} {
			refused := func() {
				t.Helper()
				_, err := w.tryPut(test.Entity)
				checkFields(t, err, test.field)
				d := &catalog.Document{}
				switch e := test.Entity.(type) {
				case *catalog.Site:
					d.Sites = append(d.Sites, e)
				case *catalog.Advertiser:
					d.Advertisers = append(d.Advertisers, e)
				case *catalog.Campaign:
					d.Campaigns = append(d.Campaigns, e)
				}
				w.settled()
				_, err = w.Import(d)
				checkFields(t, err, string(test.Kind())+"s[0]."+test.field)
			}
			refused()
			w.delete(test.Kind(), test.EntityID())
			refused()
		}

		w.delete(catalog.KindSite, "blog")
		w.delete(catalog.KindAdvertiser, "farm")
		w.settled()
		euro := examplePublisher()
		euro.Currency = "EUR"
		w.put(euro)
		_, err := w.tryPut(exampleAdvertiser())
		checkFields(t, err, "currency") // its account is in USD
	})
}

// What a publisher has approved for one advertiser is not shown for another.
func TestCreativesStayWithTheirAdvertiser(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.example()
		farm := exampleAdvertiser()
		farm.ID = "farm"
		w.put(farm)
		for id, advertiser := range map[string]string{"winter": "inn", "harvest": "farm"} {
			c := exampleCampaign()
			c.ID, c.Advertiser = id, advertiser
			w.put(c)
		}
		move := func(campaign string) error {
			e := exampleCreative()
			e.Campaign, e.LandingURL = campaign, "https://www.inn.example/stay"
			_, err := w.tryPut(e)
			w.settled()
			return err
		}
		checkFields(t, move("harvest"), "campaign")
		for _, campaign := range []string{"winter", ""} {
			if err := move(campaign); err != nil {
				t.Errorf("moved to %q: %v", campaign, err)
			}
		}
		checkFields(t, move("harvest"), "campaign") // by way of none
		w.delete(catalog.KindCreative, "ryokan")
		checkFields(t, move("harvest"), "campaign") // by way of a deletion
		if err := move("autumn"); err != nil {
			t.Errorf("moved back: %v", err)
		}
		w.wantServed("blog", 1)
	})
}

// What is left of a deletion stands in the way of nothing else.
func TestReferencesToTombstonesAreKept(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.example()
		c := exampleCampaign()
		c.Sites = []string{"blog", "shop"}
		w.put(c)
		winter := exampleCampaign()
		winter.ID = "winter"
		w.put(winter)
		e := exampleCreative()
		e.ID, e.Campaign = "snow", "winter"
		w.put(e)
		unchanged := func() {
			t.Helper()
			if got := w.apply(w.settled().Export()); len(got) > 0 {
				t.Errorf("importing the export would do %q", got)
			}
		}

		w.delete(catalog.KindSite, "shop")
		unchanged()
		c.Status = catalog.Paused
		w.put(c)

		w.delete(catalog.KindCampaign, "winter")
		unchanged()
		e.Name = "Snow"
		w.put(e)

		w.delete(catalog.KindAdvertiser, "inn")
		unchanged()
		c.Status, c.Sites = catalog.Ended, []string{"shop"}
		w.put(c)
		c.Sites = nil
		w.put(c)
		c.Sites = []string{"shop"}
		_, err := w.tryPut(c)
		checkFields(t, err, "sites[0]") // a new reference is none
	})
}

func TestPublisherWithSitesStays(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.example()
		r, _ := w.Get(w.ctx, catalog.KindPublisher, "yuki")
		w.settled()
		by := catalog.Write{By: "tester", Revision: r.Revision}
		if _, err := w.Delete(w.ctx, catalog.KindPublisher, "yuki", by); !errors.Is(err, catalog.ErrInvalid) {
			t.Errorf("with sites: %v", err)
		}
		w.delete(catalog.KindSite, "blog")
		w.delete(catalog.KindSite, "shop")
		w.delete(catalog.KindAdvertiser, "inn")
		// The snapshot need not have seen it yet.
		if _, err := w.Delete(w.ctx, catalog.KindPublisher, "yuki", by); err != nil {
			t.Errorf("without sites: %v", err)
		}
	})
}

// A publisher is never deleted under what is created below it.
func TestDeletingAPublisherRacesWithItsChildren(t *testing.T) {
	w := newWorld(t, catalog.Config{})
	w.run()
	for i := range 200 {
		publisher, child := examplePublisher(), exampleAdvertiser()
		publisher.ID = fmt.Sprint("p", i)
		child.ID, child.Publisher = fmt.Sprint("a", i), publisher.ID
		r := w.put(publisher)
		var g sync.WaitGroup
		var created, deleted error
		g.Go(func() { _, created = w.Put(w.ctx, child, catalog.Write{By: "one"}) })
		g.Go(func() {
			_, deleted = w.Delete(w.ctx, catalog.KindPublisher, publisher.ID, catalog.Write{By: "other", Revision: r.Revision})
		})
		g.Wait()
		if created == nil && deleted == nil {
			t.Fatalf("%s was deleted, %s created below it", publisher.ID, child.ID)
		}
		for _, err := range []error{created, deleted} {
			if err != nil && !errors.Is(err, catalog.ErrInvalid) {
				t.Error(err)
			}
		}
		above, _ := w.Get(w.ctx, publisher.Kind(), publisher.ID)
		below, err := w.Get(w.ctx, child.Kind(), child.ID)
		if above.Deleted && err == nil && !below.Deleted {
			t.Fatalf("%s has no publisher: %v, %v", child.ID, created, deleted)
		}
	}
}

// Money never changes its meaning under who counts in it.
func TestChangingACurrencyRacesWithChildren(t *testing.T) {
	for _, restored := range []bool{false, true} {
		w := newWorld(t, catalog.Config{})
		w.run()
		won := map[string]int{}
		for i := range 200 {
			publisher, child := examplePublisher(), exampleAdvertiser()
			publisher.ID = fmt.Sprint("p", i)
			child.ID, child.Publisher = fmt.Sprint("a", i), publisher.ID
			r := w.put(publisher)
			var below catalog.Record
			if restored {
				below = w.put(child)
				w.delete(catalog.KindAdvertiser, child.ID)
				below, _ = w.Get(w.ctx, catalog.KindAdvertiser, child.ID)
				if err := w.WaitFor(w.ctx, below.Revision); err != nil {
					t.Fatal(err)
				}
			}
			changed := *publisher
			changed.Currency = "EUR"
			var g sync.WaitGroup
			var created, moved error
			g.Go(func() { _, created = w.Put(w.ctx, child, catalog.Write{By: "one", Revision: below.Revision}) })
			g.Go(func() { _, moved = w.Put(w.ctx, &changed, catalog.Write{By: "other", Revision: r.Revision}) })
			g.Wait()
			for _, err := range []error{created, moved} {
				if err != nil && !errors.Is(err, catalog.ErrInvalid) {
					t.Error(err)
				}
			}
			won[fmt.Sprint(created == nil, moved == nil)]++
			above, _ := w.Get(w.ctx, publisher.Kind(), publisher.ID)
			below, err := w.Get(w.ctx, child.Kind(), child.ID)
			if err != nil || below.Deleted {
				continue
			}
			if got, want := below.Entity.(*catalog.Advertiser).Currency, above.Entity.(*catalog.Publisher).Currency; got != want {
				t.Fatalf("%s counts in %s, its publisher in %s: %v, %v", child.ID, got, want, created, moved)
			}
		}
		t.Logf("created and moved: %v", won)
	}
}

// What a crash in the middle of that leaves buys nothing.
func TestAdvertiserOfAnotherCurrencyBuysNothing(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.example()
		w.wantServed("blog", 1)
		entry, err := w.kv.Get(w.ctx, "publisher/yuki")
		if err != nil {
			t.Fatal(err)
		}
		euro := strings.Replace(string(entry.Value), `"USD"`, `"EUR"`, 1)
		if _, err := w.kv.Put(w.ctx, "publisher/yuki", []byte(euro), entry.Revision); err != nil {
			t.Fatal(err)
		}
		w.wantServed("blog", 0)
		if removed, why := w.Snapshot().Removed("blog", "ryokan", day); removed {
			t.Errorf("and removes a bookmark: %q", why)
		}
	})
}

func TestAudit(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.example()
		time.Sleep(time.Second) // of the bubble
		campaign(func(c *catalog.Campaign) { c.MaxCPM, c.Status = 5_000_000, catalog.Paused })(w)
		time.Sleep(time.Second)
		w.reject("blog", "ryokan", 1)
		time.Sleep(time.Second)
		w.delete(catalog.KindCreative, "ryokan")
		got := w.settled().Audit(3)
		var keys, whats []string
		for _, e := range got {
			keys, whats = append(keys, e.Key), append(whats, e.What)
			if e.By != "tester" {
				t.Errorf("%s by %q", e.Key, e.By)
			}
		}
		if !slices.Equal(keys, []string{"creative/ryokan", "approval/blog/ryokan", "campaign/autumn"}) ||
			!slices.Equal(whats, []string{"deleted", "rejected version 1", "updated"}) {
			t.Errorf("audit is %q %q", keys, whats)
		}
		want := []catalog.Edit{{Field: "maxCpm", From: "4000000", To: "5000000"}, {Field: "status", From: `"active"`, To: `"paused"`}}
		if !slices.Equal(got[2].Fields, want) {
			t.Errorf("edits are %+v, want %+v", got[2].Fields, want)
		}
	})
}

// crashes are writes of several keys. A fault at each of their writes in turn must
// leave what was there before or after, and doing it again must finish it.
var crashes = []struct {
	name   string
	before func(w *world)
	do     func(w *world) error
	writes int // to the catalog's bucket
	// state is what a reader can tell of it, which has to be one of two.
	state func(w *world) string
}{
	{
		name:   "creative",
		before: func(w *world) { w.example() },
		do: func(w *world) error {
			e := exampleCreative()
			e.Pages[0].Headline = "Another room"
			_, err := w.tryPut(e)
			return err
		},
		writes: 2,
		state: func(w *world) string {
			e, err := w.Get(w.ctx, catalog.KindCreative, "ryokan")
			if err != nil {
				return err.Error()
			}
			return e.Entity.(*catalog.Creative).Pages[0].Headline
		},
	},
	{
		name: "approval by hand",
		before: func(w *world) {
			w.example()
			w.newVersion("Another room")
		},
		do: func(w *world) error {
			_, err := w.Approve(w.ctx, "blog", "ryokan", 2, catalog.Write{By: "tester", Revision: w.settled().Approvals("blog", "ryokan").Revision})
			return err
		},
		writes: 1, // the anchor, which comes second, may be missing: tested apart
		state: func(w *world) string {
			return fmt.Sprint(served(w.settled(), "blog", travel))
		},
	},
	{
		name:   "rejection",
		before: func(w *world) { w.example() },
		do: func(w *world) error {
			_, err := w.Reject(w.ctx, "blog", "ryokan", 1, catalog.Write{By: "tester", Revision: w.settled().Approvals("blog", "ryokan").Revision})
			return err
		},
		writes: 2,
		state: func(w *world) string {
			return fmt.Sprint(served(w.settled(), "blog", travel))
		},
	},
}

func TestCrashBetweenWrites(t *testing.T) {
	for _, crash := range crashes {
		before, after := "", ""
		inWorld(t, catalog.Config{}, func(w *world) {
			crash.before(w)
			before = crash.state(w)
			if err := crash.do(w); err != nil {
				t.Fatal(err)
			}
			after = crash.state(w)
		})
		if before == after {
			t.Fatalf("%s changes nothing: %s", crash.name, before)
		}
		for at := range crash.writes {
			for _, fault := range []memory.Fault{down, lost} {
				t.Run(fmt.Sprintf("%s/write %d/lost %v", crash.name, at+1, fault.LoseAnswer), func(t *testing.T) {
					inWorld(t, catalog.Config{}, func(w *world) {
						crash.before(w)
						w.settled()
						w.kv.Fail(slices.Concat(slices.Repeat([]memory.Fault{none}, at), []memory.Fault{fault})...)
						err := crash.do(w)
						if n := w.kv.Pending(); n != 0 {
							t.Fatalf("%d faults have not happened", n)
						}
						if err == nil || !errors.Is(err, store.ErrUnavailable) {
							t.Errorf("got %v, want the store's error", err)
						}
						if got := crash.state(w); got != before && got != after {
							t.Errorf("half-applied: %s, want %s or %s", got, before, after)
						}
						if err := crash.do(w); err != nil {
							t.Errorf("doing it again: %v", err)
						}
						if got := crash.state(w); got != after {
							t.Errorf("after doing it again: %s, want %s", got, after)
						}
					})
				})
			}
		}
	}
}

// Without its anchor an approval stands, and the next version asks a person.
func TestCrashBeforeTheAnchor(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.example()
		w.newVersion("Another room")
		w.kv.Fail(none, down)
		w.approve("blog", "ryokan")
		w.wantServed("blog", 2)
		if got := w.settled().Anchors("blog", "autumn"); slices.Contains(got, "new.example") {
			t.Errorf("anchors are %q", got)
		}
		w.newVersion("B third room")
		w.wantQueue("blog", "ryokan 3")
	})
}

// A rejection that stops half-way has withdrawn the trust already.
func TestCrashBeforeTheRejection(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.example()
		w.kv.Fail(none, down)
		_, err := w.Reject(w.ctx, "blog", "ryokan", 1, catalog.Write{By: "tester", Revision: w.settled().Approvals("blog", "ryokan").Revision})
		if !errors.Is(err, store.ErrUnavailable) {
			t.Fatalf("got %v", err)
		}
		if got := w.settled().Anchors("blog", "autumn"); len(got) > 0 {
			t.Errorf("anchors are %q", got)
		}
		w.wantServed("blog", 1)
	})
}

func TestPublisherKeys(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		if _, ok := w.settled().KeyRing("yuki"); ok {
			t.Fatal("a look-up has made keys")
		}
		// The ring comes first: without it there is no publisher.
		w.keys.Fail(down)
		if _, err := w.tryPut(examplePublisher()); !errors.Is(err, store.ErrUnavailable) {
			t.Fatalf("got %v", err)
		}
		if _, err := w.Get(w.ctx, catalog.KindPublisher, "yuki"); !errors.Is(err, catalog.ErrNotFound) {
			t.Fatalf("a publisher without keys: %v", err)
		}
		// A ring without a publisher is kept for it.
		w.kv.Fail(down)
		if _, err := w.tryPut(examplePublisher()); !errors.Is(err, store.ErrUnavailable) {
			t.Fatalf("got %v", err)
		}
		ring, ok := w.settled().KeyRing("yuki")
		if !ok || len(ring.Current.Secret) != 32 || ring.Previous != nil {
			t.Fatalf("ring is %+v", ring)
		}
		w.put(examplePublisher())
		if again, _ := w.settled().KeyRing("yuki"); string(again.Current.Secret) != string(ring.Current.Secret) {
			t.Error("the ring has changed")
		}

		seen := ring.Revision
		time.Sleep(time.Second) // the clock of the bubble
		made, err := w.RotateKeys(w.ctx, "yuki", catalog.Write{By: "ana", Revision: seen})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.WaitForKeys(w.ctx, "yuki", made.Revision); err != nil {
			t.Fatal(err)
		}
		rotated, _ := w.settled().KeyRing("yuki")
		if a := w.settled().Audit(1); a[0].Key != "publisher/yuki" || a[0].By != "ana" || a[0].What != "rotated the keys of" {
			t.Errorf("audit log has %+v", a)
		}
		if _, err := w.RotateKeys(w.ctx, "yuki", catalog.Write{By: "ana", Revision: seen}); !errors.Is(err, catalog.ErrConflict) {
			t.Errorf("a second rotation by somebody who has seen none: %v", err)
		}
		if rotated.Previous == nil || string(rotated.Previous.Secret) != string(ring.Current.Secret) ||
			string(rotated.Current.Secret) == string(ring.Current.Secret) {
			t.Error("the current key has not become the previous one")
		}
		if _, err := w.RotateKeys(w.ctx, "nobody", catalog.Write{By: "ana"}); !errors.Is(err, catalog.ErrNotFound) {
			t.Errorf("keys of nobody: %v", err)
		}
		if _, ok := w.settled().KeyRing("nobody"); ok {
			t.Error("a rotation has made keys")
		}
		// An edit of the publisher leaves its keys alone.
		w.put(&catalog.Publisher{ID: "yuki", Name: "Yuki Media K.K.", Currency: "USD"})
		if after, _ := w.settled().KeyRing("yuki"); string(after.Current.Secret) != string(rotated.Current.Secret) {
			t.Error("an edit has changed the keys")
		}
	})
}

func TestWaitFor(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		r := w.put(examplePublisher())
		if err := w.WaitFor(w.ctx, r.Revision); err != nil {
			t.Fatal(err)
		}
		if _, ok := w.Snapshot().Publisher("yuki"); !ok {
			t.Error("what was waited for is not in the snapshot")
		}
	})
}

// A value that cannot be read is left out; all else goes on.
func TestDamagedEntry(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.example()
		for _, key := range []string{"campaign/bad", "approval/blog/bad", "trust/blog/bad", "content/bad/bad", "nonsense"} {
			if _, err := w.kv.Put(w.ctx, key, []byte(`{"format":7`), 0); err != nil {
				t.Fatal(err)
			}
		}
		w.wantServed("blog", 1)
		campaign(func(c *catalog.Campaign) { c.Status = catalog.Paused })(w)
		w.wantServed("blog", 0)
	})
}

func TestMetrics(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		registry := prometheus.NewRegistry()
		if err := w.Metrics().Register(registry); err != nil {
			t.Fatal(err)
		}
		w.example()
		w.newVersion("Another room")
		if _, err := w.kv.Put(w.ctx, "campaign/bad", []byte("{"), 0); err != nil {
			t.Fatal(err)
		}
		w.settled()
		got := map[string]float64{}
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.Metric {
				name := f.GetName()
				for _, l := range m.Label {
					name += " " + l.GetValue()
				}
				got[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
		for name, want := range map[string]float64{
			"deckle_catalog_entities site": 2, "deckle_catalog_entities creative": 1, "deckle_catalog_waiting blog": 1,
			"deckle_catalog_unreadable_total": 1, "deckle_catalog_revision": float64(w.Snapshot().Revision()),
		} {
			if got[name] != want {
				t.Errorf("%s is %v, want %v", name, got[name], want)
			}
		}
		if got["deckle_catalog_rebuild_seconds"] < 1 {
			t.Error("no rebuild was measured")
		}
	})
}

// What depends on everything is not decided by a node that has read nothing.
func TestPublishersBeforeTheCatalogIsLoaded(t *testing.T) {
	w := newWorld(t, catalog.Config{})
	r := w.put(examplePublisher())
	by := catalog.Write{By: "tester", Revision: r.Revision}
	if _, err := w.Delete(w.ctx, catalog.KindPublisher, "yuki", by); !errors.Is(err, catalog.ErrNotLoaded) {
		t.Errorf("deleting: %v", err)
	}
	if _, err := w.Put(w.ctx, &catalog.Publisher{ID: "yuki", Name: "Yuki", Currency: "EUR"}, by); !errors.Is(err, catalog.ErrNotLoaded) {
		t.Errorf("another currency: %v", err)
	}
	if _, err := w.Put(w.ctx, &catalog.Publisher{ID: "yuki", Name: "Yuki", Currency: "USD"}, by); err != nil {
		t.Errorf("another name: %v", err)
	}
}

func TestLargeEntityIsRefused(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.example()
		s := exampleSite("blog")
		for i := range 9_000 {
			s.BlockedDomains = append(s.BlockedDomains, fmt.Sprintf("a-rather-long-name-that-is-%d.example", i))
		}
		if _, err := w.tryPut(s); !errors.Is(err, catalog.ErrInvalid) {
			t.Errorf("got %v", err)
		}
	})
}
