package catalog_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"deckle"
	"deckle/internal/catalog"
	"deckle/internal/store"
	"deckle/internal/store/memory"
)

func exampleDocument() *catalog.Document {
	return &catalog.Document{
		Publishers:  []*catalog.Publisher{examplePublisher()},
		Sites:       []*catalog.Site{exampleSite("blog"), exampleSite("shop")},
		Advertisers: []*catalog.Advertiser{exampleAdvertiser()},
		Campaigns:   []*catalog.Campaign{exampleCampaign()},
		Creatives:   []*catalog.Creative{exampleCreative()},
		Approvals:   []catalog.DocumentApproval{{Site: "blog", Creative: "ryokan", State: catalog.Approved}},
	}
}

// steps are a diff in short: "create campaign/autumn".
func steps(d *catalog.Diff) []string {
	var out []string
	for _, s := range d.Steps {
		out = append(out, s.What+" "+s.Key)
	}
	return out
}

// apply imports a document and applies what it would change, and returns that.
func (w *world) apply(d *catalog.Document) []string {
	w.Helper()
	w.settled()
	diff, err := w.Import(d)
	if err != nil {
		w.Fatal(err)
	}
	if done, err := w.Apply(w.ctx, diff, "importer"); err != nil || done != len(diff.Steps) {
		w.Fatalf("%d of %d steps: %v", done, len(diff.Steps), err)
	}
	w.settled()
	return steps(diff)
}

func TestImport(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		want := []string{
			"create publisher/yuki", "create site/blog", "create site/shop", "create advertiser/inn", "create campaign/autumn",
			"create creative/ryokan", "approve approval/blog/ryokan",
		}
		if got := w.apply(exampleDocument()); !slices.Equal(got, want) {
			t.Errorf("steps are %q, want %q", got, want)
		}
		w.wantServed("blog", 1)
		w.wantServed("shop", 0)
		if _, ok := w.settled().KeyRing("yuki"); !ok {
			t.Error("the publisher has no keys")
		}
		if got := w.settled().Audit(1)[0]; got.By != "importer" {
			t.Errorf("audit says %+v", got)
		}

		if got := w.apply(exampleDocument()); len(got) > 0 {
			t.Errorf("importing it again would do %q", got)
		}

		d := exampleDocument()
		d.Campaigns[0].MaxCPM = 5_000_000
		d.Creatives[0].Pages[0].Headline = "Another room"
		d.Sites, d.Delete = d.Sites[:1], []string{"site/shop", "advertiser/never-there"}
		diff, err := w.Import(d)
		if err != nil {
			t.Fatal(err)
		}
		want = []string{"update campaign/autumn", "update creative/ryokan", "approve approval/blog/ryokan", "delete site/shop"}
		if got := steps(diff); !slices.Equal(got, want) {
			t.Errorf("steps are %q, want %q", got, want)
		}
		if got := diff.Steps[0].Fields; !slices.Equal(got, []catalog.Edit{{Field: "maxCpm", From: "4000000", To: "5000000"}}) {
			t.Errorf("the difference is %+v", got)
		}
		w.wantServed("blog", 1) // a diff is only shown
		w.apply(d)
		w.wantServed("blog", 2)
		if got := w.apply(d); len(got) > 0 {
			t.Errorf("importing it again would do %q", got)
		}
	})
}

func TestDeletionIsChildrenFirst(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.apply(exampleDocument())
		got := w.apply(&catalog.Document{Delete: []string{"publisher/yuki", "site/blog", "site/shop", "advertiser/inn", "campaign/autumn", "creative/ryokan"}})
		want := []string{
			"delete creative/ryokan", "delete campaign/autumn", "delete advertiser/inn", "delete site/blog", "delete site/shop", "delete publisher/yuki",
		}
		if !slices.Equal(got, want) {
			t.Errorf("steps are %q, want %q", got, want)
		}
		if got := w.settled().Export(); !emptyDocument(got) {
			t.Errorf("left is %+v", got)
		}
		if got := w.apply(exampleDocument()); !slices.Contains(got, "restore publisher/yuki") {
			t.Errorf("put back by %q", got)
		}
	})
}

func emptyDocument(d *catalog.Document) bool {
	data, err := json.Marshal(d)
	return err == nil && string(data) == "{}"
}

func TestExportImportsAsNothing(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.example()
		w.reject("shop", "ryokan", 1)
		site(func(s *catalog.Site) {
			s.Floors = catalog.Floors{Site: 1000, Slots: map[string]deckle.CPM{"top": 2000}}
			s.BlockedDomains, s.CategoryRules = []string{"bad.example"}, []catalog.CategoryRule{{Path: "/a/**", Categories: []string{travel}}}
		})(w)
		data, err := json.Marshal(w.settled().Export())
		if err != nil {
			t.Fatal(err)
		}
		d, err := catalog.DecodeDocument(data)
		if err != nil {
			t.Fatal(err)
		}
		if got := w.apply(d); len(got) > 0 {
			t.Errorf("importing the export would do %q", got)
		}

		// Into an empty catalog it gives the same.
		other := newWorld(w, catalog.Config{})
		other.run()
		other.apply(d)
		again, err := json.Marshal(other.settled().Export())
		if err != nil || string(again) != string(data) {
			t.Errorf("exported again:\n%s\nwant\n%s", again, data)
		}
	})
}

// roundTrip imports a catalog's export into an empty one, and compares.
func (w *world) roundTrip(c catalog.Config) *world {
	w.Helper()
	d := w.settled().Export()
	data, err := json.Marshal(d)
	if err != nil {
		w.Fatal(err)
	}
	if got := w.apply(decodeDocument(w, data)); len(got) > 0 {
		w.Errorf("importing the export would do %q", got)
	}
	other := newWorld(w, c)
	other.run()
	other.apply(decodeDocument(w, data))
	if got, want := withoutVersions(other.settled().Export()), withoutVersions(d); got != want {
		w.Errorf("exported again:\n%s\nwant\n%s", got, want)
	}
	if got := other.apply(decodeDocument(w, data)); len(got) > 0 {
		w.Errorf("importing it twice would do %q", got)
	}
	return other
}

// What refers to something deleted goes with a tombstone into an empty catalog, and
// is as dead there as it was here.
func TestExportHasTheTombstonesThatItNeeds(t *testing.T) {
	for _, test := range []struct {
		name   string
		do     func(w *world)
		config catalog.Config
		want   []string // steps about tombstones
	}{
		{"campaign", func(w *world) { w.delete(catalog.KindCampaign, "autumn") }, catalog.Config{}, []string{"entomb campaign/autumn"}},
		{"advertiser", func(w *world) { w.delete(catalog.KindAdvertiser, "inn") }, catalog.Config{}, []string{"entomb advertiser/inn"}},
		{"campaign and advertiser", func(w *world) {
			w.delete(catalog.KindCampaign, "autumn")
			w.delete(catalog.KindAdvertiser, "inn")
		}, catalog.Config{}, []string{"entomb advertiser/inn", "entomb campaign/autumn"}},
		{"site of an allowlist, and of deckle.toml", func(w *world) {
			e := exampleCampaign()
			e.Sites = []string{"blog", "shop"}
			w.put(e)
			w.delete(catalog.KindSite, "shop")
		}, catalog.Config{Sites: facts().Sites[:1]}, []string{"entomb site/shop"}},
		{"publisher", func(w *world) {
			e := exampleCampaign()
			e.Sites = []string{"blog"}
			w.put(e)
			w.delete(catalog.KindSite, "blog")
			w.delete(catalog.KindSite, "shop")
			w.delete(catalog.KindAdvertiser, "inn")
			w.settled()
			w.delete(catalog.KindPublisher, "yuki")
		}, catalog.Config{}, []string{"entomb publisher/yuki", "entomb site/blog", "entomb advertiser/inn"}},
		{"advertiser of another currency", func(w *world) {
			w.delete(catalog.KindSite, "blog")
			w.delete(catalog.KindSite, "shop")
			w.delete(catalog.KindAdvertiser, "inn")
			w.settled()
			e := examplePublisher()
			e.Currency = "EUR"
			w.put(e)
		}, catalog.Config{}, []string{"entomb advertiser/inn"}},
		{"nothing", func(w *world) { w.delete(catalog.KindCreative, "ryokan") }, catalog.Config{}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			inWorld(t, catalog.Config{}, func(w *world) {
				w.example()
				test.do(w)
				other := w.roundTrip(test.config)
				empty := newWorld(w, test.config)
				empty.run()
				diff, err := empty.Import(w.settled().Export())
				if err != nil {
					t.Fatal(err)
				}
				got := slices.DeleteFunc(steps(diff), func(s string) bool { return !strings.HasPrefix(s, "entomb ") })
				if !slices.Equal(got, test.want) {
					t.Errorf("buried: %q, want %q", got, test.want)
				}
				for _, site := range []string{"blog", "shop"} {
					want, why := w.Snapshot().Removed(site, "ryokan", day)
					if _, known := other.Snapshot().Site(site); !known || test.want == nil {
						continue // what is gone altogether is not known
					}
					if got, reason := other.Snapshot().Removed(site, "ryokan", day); got != want || reason != why {
						t.Errorf("removed from %s: %v (%s), was %v (%s)", site, got, reason, want, why)
					}
				}
			})
		})
	}
}

// A document's tombstones bury nothing that lives, and hold up nothing that must have
// a living parent.
func TestTombstonesOfADocument(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.apply(exampleDocument())
		d := &catalog.Document{Tombstones: catalog.Tombstones{Campaigns: []*catalog.Campaign{exampleCampaign()}}}
		if got := w.apply(d); len(got) > 0 {
			t.Errorf("a tombstone of what lives does %q", got)
		}
		w.wantServed("blog", 1)
	})
	for _, test := range []struct {
		name string
		edit func(d *catalog.Document)
		want string
	}{
		{"a site below it", func(d *catalog.Document) {
			d.Publishers, d.Tombstones.Publishers = nil, d.Publishers
		}, `sites[0].publisher: there is no publisher "yuki"`},
		{"twice", func(d *catalog.Document) { d.Tombstones.Campaigns = d.Campaigns }, `tombstones.campaigns[0].id: "autumn" is in the document twice`},
		{"deleted", func(d *catalog.Document) {
			d.Campaigns, d.Tombstones.Campaigns, d.Delete = nil, d.Campaigns, []string{"campaign/autumn"}
		}, `delete[0]: "campaign/autumn" is in the document as well`},
		{"wrong", func(d *catalog.Document) {
			d.Campaigns, d.Tombstones.Campaigns = nil, d.Campaigns
			d.Tombstones.Campaigns[0].MaxCPM = -1
		}, `tombstones.campaigns[0].maxCpm: -1 is out of range`},
		{"of nothing", func(d *catalog.Document) {
			d.Campaigns, d.Advertisers, d.Tombstones.Campaigns = nil, nil, d.Campaigns
		}, `tombstones.campaigns[0].advertiser: there is no advertiser "inn"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			inWorld(t, catalog.Config{}, func(w *world) {
				d := exampleDocument()
				test.edit(d)
				if _, err := w.Import(d); !errors.Is(err, catalog.ErrInvalid) || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %s", err, test.want)
				}
			})
		})
	}
}

// An import approves what its document has as approved. What waits there waits here,
// also where a decision of the document would be reason enough for an automatic one.
func TestImportApprovesNothingElse(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.example()
		site(func(s *catalog.Site) { s.AutoApprove = true })(w)
		second := exampleCreative() // approved by the site
		second.ID, second.Pages[0].Headline = "second", "A second room"
		w.put(second)
		w.settled()
		w.reject("blog", "second", 1) // and so withdrawn, the anchor with it
		copied := exampleCreative()   // what a person has rejected, in the same campaign
		copied.Pages[0].Headline = "A second room"
		w.put(copied)
		third := exampleCreative()
		third.ID, third.Pages[0].Headline = "third", "A third room"
		site(func(s *catalog.Site) { s.AutoApprove = false })(w)
		w.put(third)
		site(func(s *catalog.Site) { s.AutoApprove = true })(w) // only now: it is approved
		w.settled()
		site(func(s *catalog.Site) { s.AutoApprove = false })(w)
		fourth := exampleCreative()
		fourth.ID, fourth.Pages[0].Headline = "fourth", "A fourth room"
		w.put(fourth) // waits, with an approved one of the same landing domain beside it

		other := w.roundTrip(catalog.Config{})
		if got, want := other.queue("blog"), []string{"fourth 1", "ryokan 1"}; !slices.Equal(slices.Sorted(slices.Values(got)), want) {
			t.Errorf("waiting after the import: %q, want %q", got, want)
		}
		other.put(func() catalog.Entity { s := exampleSite("blog"); s.AutoApprove = true; return s }())
		if got, want := other.queue("blog"), []string{"ryokan 1"}; !slices.Equal(got, want) {
			t.Errorf("waiting on a site that approves by itself: %q, want %q", got, want)
		}
	})
}

func TestDocumentsThatAreRefused(t *testing.T) {
	for _, test := range []struct {
		name string
		edit func(d *catalog.Document)
		want []string
	}{
		{"twice", func(d *catalog.Document) { d.Campaigns = append(d.Campaigns, exampleCampaign()) }, []string{`campaigns[1].id: "autumn" is in the document twice`}},
		{"reference", func(d *catalog.Document) { d.Creatives[0].Campaign = "spring" }, []string{`creatives[0].campaign: there is no campaign "spring"`}},
		{"money", func(d *catalog.Document) {
			d.Campaigns[0].MaxCPM = 1e15
			d.Advertisers[0].DailyBudget = -1
		}, []string{"advertisers[0].dailyBudget: -1 is out of range", "campaigns[0].maxCpm: 1000000000000000 is out of range"}},
		{"page", func(d *catalog.Document) { d.Creatives[0].Pages[0].Ink = "red" }, []string{`creatives[0].pages[0].ink: "red" is not a colour`}},
		{"approval of nothing", func(d *catalog.Document) { d.Approvals[0].Creative = "spring" }, []string{`approvals[0].creative: there is no creative "spring"`}},
		{"approval state", func(d *catalog.Document) { d.Approvals[0].State = "decided" }, []string{`approvals[0].state: "decided" is not a state`}},
		{"approval twice", func(d *catalog.Document) { d.Approvals = append(d.Approvals, d.Approvals[0]) }, []string{`approvals[1]: the decision on "ryokan" on "blog" is in the document twice`}},
		{"delete what is in it", func(d *catalog.Document) { d.Delete = []string{"site/shop"} }, []string{`delete[0]: "site/shop" is in the document as well`}},
		{"delete a parent", func(d *catalog.Document) {
			d.Publishers, d.Sites = nil, nil
			d.Delete = []string{"publisher/yuki"}
		}, []string{`advertisers[0].publisher: there is no publisher "yuki"`, `delete[0]: "yuki" has sites or advertisers`}},
		{"another currency for what it deletes", func(d *catalog.Document) {
			d.Publishers[0].Currency = "EUR"
			*d = catalog.Document{Publishers: d.Publishers, Delete: []string{"site/blog", "site/shop", "advertiser/inn"}}
		}, []string{`publishers[0].currency: cannot change from USD (delete its sites and advertisers first`}},
		{"delete nonsense", func(d *catalog.Document) { d.Delete = []string{"animal/cat"} }, []string{`delete[0]: "animal/cat" is not an entity (kind/id, such as "campaign/spring")`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inWorld(t, catalog.Config{}, func(w *world) {
				w.apply(exampleDocument())
				before := w.settled().Revision()
				d := exampleDocument()
				d.Campaigns[0].Name = "would be changed"
				test.edit(d)
				_, err := w.Import(d)
				for _, want := range test.want {
					if !errors.Is(err, catalog.ErrInvalid) || !strings.Contains(err.Error(), want) {
						t.Errorf("got %v, want %s", err, want)
					}
				}
				if after := w.settled().Revision(); after != before {
					t.Error("something was written")
				}
			})
		})
	}
}

func TestDocumentDecoding(t *testing.T) {
	_, err := catalog.DecodeDocument([]byte(`{"campaigns": [{"id": "a"}, {"id": 7, "maxCpm": 0.5}], "creative": [], "sites": {}}`))
	checkFields(t, err, "campaigns[1].id", "campaigns[1].maxCpm", "creative", "sites")
	_, err = catalog.DecodeDocument([]byte(`{"campaigns": [{"id": "a", "advertiser": "x", "id": "b"}]}`))
	checkFields(t, err, "campaigns[0].id")
}

func TestImportBeforeTheCatalogIsLoaded(t *testing.T) {
	w := newWorld(t, catalog.Config{})
	if _, err := w.Import(exampleDocument()); !errors.Is(err, catalog.ErrNotLoaded) || !strings.Contains(err.Error(), "catalog has not been loaded yet") {
		t.Errorf("got %v", err)
	}
}

func TestApplyLosesARace(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.apply(exampleDocument())
		d := exampleDocument()
		d.Sites[0].FreshnessHours = 24
		d.Campaigns[0].MaxCPM = 5_000_000
		diff, err := w.Import(d)
		if err != nil {
			t.Fatal(err)
		}
		theirs := exampleCampaign()
		theirs.Status = catalog.Paused
		w.put(theirs)
		w.settled()
		done, err := w.Apply(w.ctx, diff, "late")
		lost, ok := errors.AsType[*catalog.ConflictError](err)
		if !ok || done != 0 || lost.ID != "autumn" || lost.Current.Entity.(*catalog.Campaign).Status != catalog.Paused {
			t.Errorf("%d done, %v", done, err)
		}
		if s, _ := w.settled().Site("blog"); s.FreshnessHours != 48 {
			t.Error("a part was applied although the race was seen to be lost")
		}
	})
}

// What a document rejects or leaves to a person is never approved by itself while it is applied.
func TestApplyIsFasterThanAutomaticApproval(t *testing.T) {
	const creatives = 40
	for _, test := range []struct {
		name   string
		before func(w *world, d *catalog.Document)
	}{
		{"all at once", func(*world, *catalog.Document) {}},
		{"creatives that wait", func(w *world, d *catalog.Document) {
			now := *d
			now.Sites, now.Approvals = []*catalog.Site{exampleSite("blog")}, nil
			w.apply(&now)
		}},
		{"new versions of what waits", func(w *world, d *catalog.Document) {
			now := *d
			now.Sites, now.Approvals, now.Creatives = []*catalog.Site{exampleSite("blog")}, nil, nil
			for i, e := range d.Creatives {
				old := *e
				old.Pages = []catalog.Page{{Headline: fmt.Sprint("Old room ", i)}}
				now.Creatives = append(now.Creatives, &old)
			}
			w.apply(&now)
		}},
	} {
		for _, state := range []catalog.State{catalog.Rejected, catalog.Pending} {
			inWorld(t, catalog.Config{}, func(w *world) {
				d := exampleDocument()
				d.Sites, d.Creatives, d.Approvals = []*catalog.Site{exampleSite("blog")}, nil, nil
				d.Sites[0].AutoApprove = true
				for i := range creatives {
					e := exampleCreative()
					e.ID, e.Pages[0].Headline = fmt.Sprint("room-", i), fmt.Sprint("Room ", i)
					d.Creatives = append(d.Creatives, e)
					d.Approvals = append(d.Approvals, catalog.DocumentApproval{Site: "blog", Creative: e.ID, State: state})
				}
				test.before(w, d)
				w.apply(d)
				s := w.settled()
				for _, a := range d.Approvals {
					of := s.Approvals(a.Site, a.Creative)
					creative, _ := s.Creative(a.Creative)
					if of.State(creative.Version) != state {
						t.Errorf("%s: %s is decided as %+v, want %s", test.name, a.Creative, of.Decisions, state)
					}
				}
				if got := w.apply(d); len(got) > 0 {
					t.Errorf("importing it again would do %q", got)
				}
			})
		}
	}
}

// A document may reject any number of contents of a campaign, more than are remembered
// of all decisions in it.
func TestApplyRejectsAnyNumber(t *testing.T) {
	const remembered = 1_000
	inWorld(t, catalog.Config{}, func(w *world) {
		d := exampleDocument()
		d.Sites, d.Creatives, d.Approvals = []*catalog.Site{exampleSite("blog")}, nil, nil
		d.Sites[0].AutoApprove = true
		for i := range remembered + 100 {
			e := exampleCreative()
			e.ID, e.Pages[0].Headline = fmt.Sprint("room-", i), fmt.Sprint("Room ", i)
			state := catalog.Rejected
			if i%2 == 0 {
				state = catalog.Pending
			}
			d.Creatives = append(d.Creatives, e)
			d.Approvals = append(d.Approvals, catalog.DocumentApproval{Site: "blog", Creative: e.ID, State: state})
		}
		w.apply(d)
		s := w.settled()
		for _, a := range d.Approvals {
			if got := s.Approvals(a.Site, a.Creative); got.State(1) != a.State {
				t.Errorf("%s is decided as %+v, want %s", a.Creative, got.Decisions, a.State)
			}
		}
		for _, entry := range s.Audit(math.MaxInt) {
			if strings.Contains(entry.What, "auto-approve") {
				t.Errorf("%s: %s", entry.Key, entry.What)
			}
		}
		if got := w.apply(d); len(got) > 0 {
			t.Errorf("importing it again would do %d steps", len(got))
		}
	})
}

// A rejection goes with the creative into another campaign; a document then has it as
// one there, and what else has the content waits for a person.
func TestExportOfARejectionThatWasMoved(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.put(examplePublisher())
		w.put(exampleSite("blog"))
		w.put(exampleAdvertiser())
		w.put(exampleCampaign())
		winter := exampleCampaign()
		winter.ID = "winter"
		w.put(winter)
		w.put(exampleCreative())
		w.reject("blog", "ryokan", 1)
		for _, id := range []string{"ryokan", "copy"} {
			e := exampleCreative()
			e.ID, e.Campaign = id, "winter"
			w.put(e)
		}
		d := w.settled().Export()
		other := newWorld(w, catalog.Config{})
		other.run()
		other.apply(d)
		checkExportedAgain(t, other.settled().Export(), d)
		site(func(s *catalog.Site) { s.AutoApprove = true })(other)
		if got := served(other.settled(), "blog", travel); len(got) > 0 {
			t.Errorf("shown after the import: %v", got)
		}
	})
}

// What a document approves is the very content that it leaves to a person, or rejects,
// in other creatives of the campaign: they are not approved along with it.
func TestApplyApprovesNoCopies(t *testing.T) {
	for _, state := range []catalog.State{catalog.Rejected, catalog.Pending} {
		inWorld(t, catalog.Config{}, func(w *world) {
			d := exampleDocument()
			d.Sites = []*catalog.Site{exampleSite("blog")}
			d.Sites[0].AutoApprove = true
			for i := range 40 {
				e := exampleCreative()
				e.ID = fmt.Sprint("copy-", i)
				d.Creatives = append(d.Creatives, e)
				d.Approvals = append(d.Approvals, catalog.DocumentApproval{Site: "blog", Creative: e.ID, State: state})
			}
			w.apply(d)
			s := w.settled()
			for _, a := range d.Approvals {
				if got := s.Approvals(a.Site, a.Creative); got.State(1) != a.State {
					t.Errorf("%s is decided as %+v, want %s", a.Creative, got.Decisions, a.State)
				}
			}
			if got := w.apply(d); len(got) > 0 {
				t.Errorf("importing it again would do %q", got)
			}
		})
	}
}

// What a document leaves to a person stays so where the campaign refuses the content
// already, and the document ends that by approving it in another creative.
func TestApplyLeavesWhatTheCampaignRefused(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.example()
		w.reject("blog", "ryokan", 1)
		d := &catalog.Document{Sites: []*catalog.Site{exampleSite("blog")}}
		d.Sites[0].AutoApprove = true
		for _, state := range []catalog.State{catalog.Pending, catalog.Approved} {
			e := exampleCreative()
			e.ID = string(state)
			d.Creatives = append(d.Creatives, e)
			d.Approvals = append(d.Approvals, catalog.DocumentApproval{Site: "blog", Creative: e.ID, State: state})
		}
		w.apply(d)
		for _, a := range d.Approvals {
			if got := w.settled().Approvals("blog", a.Creative); got.State(1) != a.State {
				t.Errorf("%s is decided as %+v", a.Creative, got.Decisions)
			}
		}
		if got := w.apply(d); len(got) > 0 {
			t.Errorf("importing it again would do %q", got)
		}
	})
}

// Nobody's edit is approved unseen, however late it comes.
func TestApplyApprovesOnlyWhatTheDocumentHas(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.apply(exampleDocument())
		d := exampleDocument()
		d.Approvals[0].Site = "shop"
		diff, err := w.Import(d)
		if err != nil {
			t.Fatal(err)
		}
		w.newVersion("Something else")
		if done, err := w.Apply(w.ctx, diff, "late"); !errors.Is(err, catalog.ErrConflict) || done != 0 {
			t.Errorf("%d done, %v", done, err)
		}
		w.wantServed("shop", 0)
	})
}

// A store that stays away at any write of a document leaves a catalog in which every
// reference holds, and applying the document again finishes it.
func TestCrashWithinADocument(t *testing.T) {
	const outage = 100
	const writes = 7
	for at := range writes {
		inWorld(t, catalog.Config{}, func(w *world) {
			w.kv.Fail(slices.Concat(slices.Repeat([]memory.Fault{none}, at), slices.Repeat([]memory.Fault{down}, outage))...)
			diff, err := w.Import(exampleDocument())
			if err != nil {
				t.Fatal(err)
			}
			done, err := w.Apply(w.ctx, diff, "importer")
			if !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("a fault at write %d was not noticed: %v", at+1, err)
			}
			if w.kv.Pending() >= outage {
				t.Fatalf("write %d never came: %d done", at+1, done)
			}
			for w.kv.Pending() > 0 { // the outage ends
				_, _ = w.kv.Put(w.ctx, "used/up", nil, 1)
			}
			// Whatever there is can be exported and imported: it is valid.
			if got := w.apply(w.settled().Export()); len(got) > 0 {
				t.Errorf("after a fault at write %d the catalog would be changed by itself: %q", at+1, got)
			}
			w.apply(exampleDocument())
			w.wantServed("blog", 1)
		})
	}
}

// One answer that is lost, at any write, stops nothing.
func TestLostAnswersWithinADocument(t *testing.T) {
	for _, fault := range []memory.Fault{down, lost} {
		for at := range 8 {
			inWorld(t, catalog.Config{}, func(w *world) {
				w.kv.Fail(append(slices.Repeat([]memory.Fault{none}, at), fault)...)
				w.apply(exampleDocument())
				if n := w.kv.Pending(); n != 0 {
					t.Fatalf("%d faults have not happened", n)
				}
				w.wantServed("blog", 1)
				if got := w.apply(exampleDocument()); len(got) > 0 {
					t.Errorf("left after a lost answer at write %d: %q", at+1, got)
				}
			})
		}
	}
}

// A currency is changed by two writes. One answer that is lost, at either, stops nothing.
func TestLostAnswersWithinAChangeOfCurrency(t *testing.T) {
	for _, fault := range []memory.Fault{down, lost} {
		for at := range 2 {
			inWorld(t, catalog.Config{}, func(w *world) {
				w.put(examplePublisher())
				w.settled()
				euros := &catalog.Document{Publishers: []*catalog.Publisher{examplePublisher()}}
				euros.Publishers[0].Currency = "EUR"
				w.kv.Fail(append(slices.Repeat([]memory.Fault{none}, at), fault)...)
				w.apply(euros)
				if n := w.kv.Pending(); n != 0 {
					t.Fatalf("%d faults have not happened", n)
				}
				if p, ok := w.settled().Publisher("yuki"); !ok || p.Currency != "EUR" {
					t.Errorf("after a lost answer at write %d: %+v, living %v", at+1, p, ok)
				}
			})
		}
	}
}

// 10,000 campaigns where DECKLE_SLOW is set.
func TestManyCampaigns(t *testing.T) {
	w := newWorld(t, catalog.Config{})
	w.run()
	many := campaigns()
	start := time.Now()
	w.big(many)
	t.Logf("%d campaigns imported and approved in %v", many, time.Since(start))

	data, err := json.Marshal(w.Snapshot().Export())
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > catalog.MaxDocumentBytes {
		t.Fatalf("the export has %d bytes, more than is read", len(data))
	}
	start = time.Now()
	d, err := catalog.DecodeDocument(data)
	if err != nil {
		t.Fatal(err)
	}
	diff, err := w.Import(d)
	if err != nil || !diff.Empty() {
		t.Errorf("importing the export: %v", err)
	}
	t.Logf("%d bytes decoded and compared in %v", len(data), time.Since(start))

	// All wrong: the first are named, the others counted, nothing is written.
	for _, c := range d.Campaigns {
		c.MaxCPM = -1
	}
	before := w.Snapshot().Revision()
	_, err = w.Import(d)
	invalid, ok := errors.AsType[*catalog.InvalidError](err)
	if !ok || len(invalid.Problems) != 100 || invalid.More != many-100 {
		t.Fatalf("got %.200v", err)
	}
	if want := fmt.Sprintf("campaigns[%d].maxCpm", 0); invalid.Problems[0].Field != want || w.Snapshot().Revision() != before {
		t.Errorf("the first problem is %v", invalid.Problems[0])
	}
}
