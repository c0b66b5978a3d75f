package catalog_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"deckle/internal/catalog"
	"deckle/internal/store/memory"
)

// A model says in the plainest way what may be shown, what waits and what has been
// removed. It shares no code with the catalog.
type model struct {
	sites       map[string]*catalog.Site
	advertisers map[string]*catalog.Advertiser
	campaigns   map[string]*catalog.Campaign
	creatives   map[string]*modelCreative
	gone        map[string]bool              // kind/id of tombstones
	decisions   map[string]map[uint32]string // by site/creative and version
	anchors     map[string]bool              // site/campaign/domain
	refused     map[string]bool              // site/creative/content and site/campaign/content
}

type modelCreative struct {
	now      catalog.Creative
	versions []string // landing URL and headline of each
	owner    string   // the advertiser whose campaigns it was in
}

var domains = map[string]string{"https://www.inn.example/x": "inn.example", "https://new.example/x": "new.example"}

func (m *model) landing(creative string, version uint32) string {
	url, _, _ := strings.Cut(m.creatives[creative].versions[version-1], " ")
	return url
}

func (m *model) present(creative string) uint32 { return uint32(len(m.creatives[creative].versions)) }

// shown is the highest version that is approved.
func (m *model) shown(site, creative string) uint32 {
	var best uint32
	for v, state := range m.decisions[site+"/"+creative] {
		if state == "approved" && v > best {
			best = v
		}
	}
	return best
}

// removed goes through the contract's list, in its words.
func (m *model) removed(site, creative string) bool {
	e, known := m.creatives[creative]
	if !known {
		return false
	}
	if m.gone["creative/"+creative] || e.now.Campaign == "" {
		return true
	}
	c, s := m.campaigns[e.now.Campaign], m.sites[site]
	if m.gone["campaign/"+c.ID] || c.Status == catalog.Paused || c.Status == catalog.Ended || m.gone["advertiser/"+c.Advertiser] {
		return true
	}
	if len(c.Sites) > 0 && !slices.Contains(c.Sites, site) || slices.Contains(s.BlockedCategories, c.ProductCategory) {
		return true
	}
	v := m.shown(site, creative)
	if v == 0 {
		return len(m.decisions[site+"/"+creative]) > 0
	}
	return slices.Contains(s.BlockedDomains, domains[m.landing(creative, v)])
}

func (m *model) running(site, creative string) bool {
	e := m.creatives[creative]
	return e != nil && !m.removed(site, creative) && e.now.Status == catalog.Active &&
		m.advertisers[m.campaigns[e.now.Campaign].Advertiser].Status == catalog.Active
}

func (m *model) serves(site, creative string) uint32 {
	if !m.running(site, creative) {
		return 0
	}
	return m.shown(site, creative)
}

// waits reports whether the present version would be shown if it were approved.
func (m *model) waits(site, creative string) bool {
	e := m.creatives[creative]
	if e == nil || m.sites[site].Status == catalog.Suspended {
		return false
	}
	v := m.present(creative)
	if m.decisions[site+"/"+creative][v] != "" || slices.Contains(m.sites[site].BlockedDomains, domains[m.landing(creative, v)]) {
		return false
	}
	// As if it were approved: what is removed only for want of approval waits.
	with := m.decisions[site+"/"+creative]
	trial := map[uint32]string{}
	for at, state := range with {
		trial[at] = state
	}
	trial[v] = "approved"
	m.decisions[site+"/"+creative] = trial
	runs := m.running(site, creative)
	m.decisions[site+"/"+creative] = with
	return runs
}

// settle gives the approvals that need no person.
func (m *model) settle() {
	for _, site := range sortedKeys(m.sites) {
		for creative, e := range m.creatives {
			v := m.present(creative)
			content := "/" + e.versions[v-1]
			if m.refused[site+"/"+creative+content] || m.refused[site+"/"+e.now.Campaign+content] {
				continue
			}
			if m.waits(site, creative) && (m.sites[site].AutoApprove || m.anchors[site+"/"+e.now.Campaign+"/"+domains[m.landing(creative, v)]]) {
				m.decide(site, creative, v, "approved")
			}
		}
	}
}

func (m *model) decide(site, creative string, version uint32, state string) {
	if m.decisions[site+"/"+creative] == nil {
		m.decisions[site+"/"+creative] = map[uint32]string{}
	}
	m.decisions[site+"/"+creative][version] = state
}

// A modelRun applies one random step after another to both.
type modelRun struct {
	*rapid.T
	*model
	w *world
}

func (r *modelRun) one(label string, of ...string) string {
	return rapid.SampledFrom(of).Draw(r.T, label)
}

func (r *modelRun) put(e catalog.Entity) {
	if _, err := r.w.tryPut(e); err != nil {
		r.Fatalf("put %s %s: %v", e.Kind(), e.EntityID(), err)
	}
	delete(r.gone, string(e.Kind())+"/"+e.EntityID())
}

func (r *modelRun) site() {
	e := *r.sites[r.one("site", "blog", "shop")]
	e.Status = catalog.Status(r.one("status", "active", "warmup", "suspended"))
	e.BlockedDomains, e.BlockedCategories = nil, nil
	if r.one("blocks domain", "no", "no", "yes") == "yes" {
		e.BlockedDomains = []string{r.one("domain", "inn.example", "new.example", "other.example")}
	}
	if r.one("blocks category", "no", "no", "no", "yes") == "yes" {
		e.BlockedCategories = []string{r.one("product", tourism, alcohol)}
	}
	e.AutoApprove = r.one("auto", "no", "no", "no", "yes") == "yes"
	r.sites[e.ID] = &e
	r.put(&e)
}

func (r *modelRun) advertiser() {
	id := r.one("advertiser", "inn", "farm")
	e := *r.advertisers[id]
	e.Status = catalog.Status(r.one("status", "active", "active", "suspended"))
	r.advertisers[id] = &e
	r.put(&e)
}

func (r *modelRun) campaign() {
	e := *r.campaigns[r.one("campaign", "c1", "c2", "c3")]
	if r.gone["advertiser/"+e.Advertiser] {
		return
	}
	e.Status = catalog.Status(r.one("status", "active", "active", "active", "paused", "ended"))
	e.Sites = map[string][]string{"all": nil, "blog": {"blog"}, "shop": {"shop"}}[r.one("sites", "all", "all", "blog", "shop")]
	e.ProductCategory = r.one("product", tourism, tourism, alcohol)
	e.Categories = map[string][]string{"travel": {travel}, "science": {science}, "both": {science, travel}}[r.one("categories", "travel", "travel", "science", "both")]
	r.campaigns[e.ID] = &e
	r.put(&e)
}

func (r *modelRun) creative() {
	id := r.one("creative", "e1", "e2", "e3")
	campaign := r.one("campaign", "c1", "c2", "c3", "")
	if campaign != "" && r.gone["campaign/"+campaign] {
		return
	}
	e := catalog.Creative{ID: id, Campaign: campaign, Status: catalog.Status(r.one("status", "active", "active", "active", "paused"))}
	e.LandingURL = r.one("landing", sortedKeys(domains)...)
	e.Pages = []catalog.Page{{Headline: r.one("headline", "a", "b")}}
	m := r.creatives[id]
	if m == nil {
		m = &modelCreative{}
		r.creatives[id] = m
	}
	if campaign != "" {
		owner := r.campaigns[campaign].Advertiser
		if m.owner != "" && m.owner != owner {
			if _, err := r.w.tryPut(&e); !errors.Is(err, catalog.ErrInvalid) {
				r.Fatalf("creative %s of %s was moved to %s: %v", id, m.owner, owner, err)
			}
			return
		}
	}
	content := e.LandingURL + " " + e.Pages[0].Headline
	if n := len(m.versions); n == 0 || m.versions[n-1] != content {
		if n == 19 {
			return // more would be forgotten, which the model does not do
		}
		m.versions = append(m.versions, content)
	}
	if m.now = e; campaign != "" {
		m.owner = r.campaigns[campaign].Advertiser
	}
	r.put(&e)
}

func (r *modelRun) remove() {
	at := r.one("what", "advertiser/inn", "campaign/c1", "campaign/c2", "creative/e1", "creative/e2")
	kind, id, _ := strings.Cut(at, "/")
	now, err := r.w.Get(r.w.ctx, catalog.Kind(kind), id)
	if err != nil {
		return
	}
	if _, err := r.w.Delete(r.w.ctx, catalog.Kind(kind), id, catalog.Write{By: "m", Revision: now.Revision}); err != nil {
		r.Fatalf("delete %s: %v", at, err)
	}
	r.gone[at] = true
}

func (r *modelRun) judge() {
	site, creative := r.one("site", "blog", "shop"), r.one("creative", "e1", "e2", "e3")
	e := r.creatives[creative]
	if e == nil || r.gone["creative/"+creative] {
		return
	}
	version := r.present(creative)
	do, state := r.w.Approve, "approved"
	if r.one("decision", "approve", "approve", "reject") == "reject" {
		do, state = r.w.Reject, "rejected"
		var decided []int
		for v := range r.decisions[site+"/"+creative] {
			decided = append(decided, int(v))
		}
		if sort.Ints(decided); len(decided) > 0 && r.one("which", "present", "old") == "old" {
			version = uint32(rapid.SampledFrom(decided).Draw(r.T, "version"))
		}
	}
	revision := r.w.Snapshot().Approvals(site, creative).Revision
	_, err := do(r.w.ctx, site, creative, version, catalog.Write{By: "m", Revision: revision})
	if e.owner == "" && state == "approved" {
		if !errors.Is(err, catalog.ErrInvalid) {
			r.Fatalf("%s is nobody's and was approved on %s: %v", creative, site, err)
		}
		return
	}
	if err != nil {
		r.Fatalf("%s version %d of %s on %s: %v", state, version, creative, site, err)
	}
	r.decide(site, creative, version, state)
	for _, of := range []string{creative, e.now.Campaign} {
		r.refused[site+"/"+of+"/"+e.versions[version-1]] = of != "" && state == "rejected"
	}
	if e.now.Campaign != "" {
		anchor := site + "/" + e.now.Campaign + "/" + domains[r.landing(creative, version)]
		if delete(r.anchors, anchor); state == "approved" {
			r.anchors[anchor] = true
		}
	}
}

func (r *modelRun) check(after string) {
	s := r.w.settled()
	for site := range r.sites {
		shown := map[string]map[string]uint32{travel: served(s, site, travel), science: served(s, site, science)}
		waiting := map[string]bool{}
		for _, q := range s.Queue(site, day) {
			waiting[q.Creative] = true
		}
		for _, creative := range []string{"e1", "e2", "e3", "never"} {
			for category, shown := range shown {
				want := r.serves(site, creative)
				if want > 0 && !slices.Contains(r.campaigns[r.creatives[creative].now.Campaign].Categories, category) {
					want = 0
				}
				if got := shown[creative]; got != want {
					r.Fatalf("after %s: version %d of %s is shown on %s in %s, want %d", after, got, creative, site, category, want)
				}
			}
			if got, why := s.Removed(site, creative, day); got != r.removed(site, creative) {
				r.Fatalf("after %s: %s on %s removed %v (%s), want %v", after, creative, site, got, why, !got)
			}
			if got, want := waiting[creative], r.waits(site, creative); got != want {
				r.Fatalf("after %s: %s waits on %s %v, want %v", after, creative, site, got, want)
			}
		}
	}
}

// checkRoundTrip exports what there is and imports it into an empty catalog, which
// exports the same, but that more of it may be left to a person, and shows nothing that
// was not shown.
func (r *modelRun) checkRoundTrip(seen map[string]int) {
	d := r.w.settled().Export()
	if len(d.Tombstones.Campaigns)+len(d.Tombstones.Advertisers) > 0 {
		seen["exported with tombstones"]++
	}
	if slices.ContainsFunc(d.Approvals, func(a catalog.DocumentApproval) bool { return a.State == catalog.Pending }) {
		seen["exported as left to a person"]++
	}
	data, err := json.Marshal(d)
	if err != nil {
		r.Fatal(err)
	}
	if diff, err := r.w.Import(decodeDocument(r, data)); err != nil || !diff.Empty() {
		r.Fatalf("importing the export of a catalog into itself: %v, %v", diff, err)
	}
	other := newWorld(r.w.TB, catalog.Config{})
	defer other.start()()
	diff, err := other.Import(decodeDocument(r, data))
	if err != nil {
		r.Fatalf("import into an empty catalog: %v\n%s", err, data)
	}
	if _, err := other.Apply(other.ctx, diff, "importer"); err != nil {
		r.Fatal(err)
	}
	checkExportedAgain(r, other.settled().Export(), d)
	for site := range r.sites {
		for _, category := range []string{travel, science} {
			for id := range served(other.Snapshot(), site, category) {
				if r.serves(site, id) == 0 {
					r.Fatalf("%s is shown on %s after the import, and was not before", id, site)
				}
			}
		}
	}
}

func decodeDocument(t fataler, data []byte) *catalog.Document {
	d, err := catalog.DecodeDocument(data)
	if err != nil {
		t.Errorf("decode an export: %v", err)
	}
	return d
}

// checkExportedAgain compares the export of an imported catalog with what was imported:
// it is the same, and may leave more to a person.
func checkExportedAgain(t fataler, got, want *catalog.Document) {
	more := *got
	more.Approvals = slices.DeleteFunc(slices.Clone(got.Approvals), func(a catalog.DocumentApproval) bool {
		return a.State == catalog.Pending && !slices.Contains(want.Approvals, a)
	})
	if got, want := withoutVersions(&more), withoutVersions(want); got != want {
		t.Errorf("exported again:\n%s\nwant\n%s", got, want)
	}
}

// withoutVersions is a document as JSON, without the versions that the catalog gives.
func withoutVersions(d *catalog.Document) string {
	bare := *d
	bare.Creatives = nil
	for _, e := range d.Creatives {
		e = new(*e)
		e.Version = 0
		bare.Creatives = append(bare.Creatives, e)
	}
	data, err := json.Marshal(&bare)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func newModel() *model {
	m := &model{
		sites: map[string]*catalog.Site{"blog": exampleSite("blog"), "shop": exampleSite("shop")}, advertisers: map[string]*catalog.Advertiser{},
		campaigns: map[string]*catalog.Campaign{}, creatives: map[string]*modelCreative{}, gone: map[string]bool{},
		decisions: map[string]map[uint32]string{}, anchors: map[string]bool{}, refused: map[string]bool{},
	}
	for _, id := range []string{"inn", "farm"} {
		a := exampleAdvertiser()
		a.ID, a.Status = id, catalog.Active
		m.advertisers[id] = a
	}
	for i, id := range []string{"c1", "c2", "c3"} {
		c := exampleCampaign()
		c.ID, c.Advertiser = id, []string{"inn", "inn", "farm"}[i]
		m.campaigns[id] = c
	}
	return m
}

// rapidly sets a flag of rapid for one test.
func rapidly(t *testing.T, name, value string) {
	t.Helper()
	old := flag.Lookup(name).Value.String()
	set := func(value string) {
		if err := flag.Set(name, value); err != nil {
			t.Error(err)
		}
	}
	set(value)
	t.Cleanup(func() { set(old) })
}

func TestCatalogAgainstTheModel(t *testing.T) {
	if os.Getenv("DECKLE_SLOW") == "" {
		rapidly(t, "rapid.checks", "60")
	}
	rapidly(t, "rapid.shrinktime", "0s") // the time stands still in a bubble: it would shrink for ever
	synctest.Test(t, func(t *testing.T) {
		seen := map[string]int{} // what has happened at least once
		rapid.Check(bubbled{t}, func(rt *rapid.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			kv, keys := memory.NewKV(), memory.NewKV()
			w := &world{TB: t, Catalog: catalog.New(kv, keys, catalog.Config{}), ctx: ctx, kv: kv, keys: keys}
			done := make(chan error, 1)
			go func() { done <- w.Run(ctx) }()
			r := &modelRun{T: rt, model: newModel(), w: w}
			r.put(examplePublisher())
			for _, id := range sortedKeys(r.sites) {
				r.put(r.sites[id])
			}
			for _, id := range sortedKeys(r.advertisers) {
				r.put(r.advertisers[id])
			}
			for _, id := range sortedKeys(r.campaigns) {
				r.put(r.campaigns[id])
			}
			steps := []struct {
				name string
				do   func()
			}{{"site", r.site}, {"advertiser", r.advertiser}, {"campaign", r.campaign}, {"creative", r.creative}, {"creative", r.creative}, {"judge", r.judge}, {"judge", r.judge}, {"remove", r.remove}}
			for i := range 120 {
				step := steps[rapid.IntRange(0, len(steps)-1).Draw(rt, "step")]
				step.do()
				r.settle()
				r.check(fmt.Sprintf("step %d (%s)", i, step.name))
				for _, site := range []string{"blog", "shop"} {
					for id := range r.creatives {
						if r.serves(site, id) > 0 {
							seen["served"]++
						}
						if r.serves(site, id) > 0 && r.serves(site, id) < r.present(id) {
							seen["older version served"]++
						}
						if r.removed(site, id) {
							seen["removed"]++
						}
						if r.waits(site, id) {
							seen["waits"]++
						}
					}
				}
			}
			r.checkRoundTrip(seen)
			stop()
			<-done
		})
		for _, what := range []string{"served", "older version served", "removed", "waits"} {
			if seen[what] < 100 {
				t.Errorf("%s: %d times only, nothing was tested", what, seen[what])
			}
		}
		for _, what := range []string{"exported with tombstones", "exported as left to a person"} {
			if seen[what] < 3 {
				t.Errorf("%s: %d times only, nothing was tested", what, seen[what])
			}
		}
	})
}

// bubbled is a test in a synctest bubble, whose deadline must not be asked for.
type bubbled struct{ testing.TB }
