package catalog_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"deckle/internal/catalog"
	"deckle/internal/store/memory"
)

// A world is a catalog on a store in memory, followed by one node.
type world struct {
	testing.TB
	*catalog.Catalog
	ctx      context.Context
	kv, keys *memory.KV
}

// inWorld runs f in a synctest bubble with a catalog that has been read.
func inWorld(t *testing.T, c catalog.Config, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, c)
		w.run()
		f(w)
	})
}

func newWorld(t testing.TB, c catalog.Config) *world {
	kv, keys := memory.NewKV(), memory.NewKV()
	return &world{TB: t, Catalog: catalog.New(kv, keys, c), ctx: t.Context(), kv: kv, keys: keys}
}

// run is start until the test ends, or stop is called.
func (w *world) run() (stop func()) {
	w.Helper()
	stop = w.start()
	w.Cleanup(stop)
	return stop
}

// start follows the catalog until stop is called, and waits until it has been read.
func (w *world) start() (stop func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.Errorf("Run = %v", err)
		}
	})
	select {
	case <-w.Loaded():
	case err := <-done:
		cancel()
		w.Fatalf("Run ended: %v", err)
	}
	return stop
}

// settled waits until the node has seen everything and done what follows from it.
func (w *world) settled() *catalog.Snapshot {
	synctest.Wait()
	return w.Snapshot()
}

// put writes an entity over whatever revision there is.
func (w *world) put(e catalog.Entity) catalog.Record {
	w.Helper()
	r, err := w.tryPut(e)
	if err != nil {
		w.Fatalf("put %s %s: %v", e.Kind(), e.EntityID(), err)
	}
	return r
}

func (w *world) tryPut(e catalog.Entity) (catalog.Record, error) {
	return w.tryPutBy(e, catalog.Write{By: "tester"})
}

func (w *world) tryPutBy(e catalog.Entity, by catalog.Write) (catalog.Record, error) {
	now, _ := w.Get(w.ctx, e.Kind(), e.EntityID())
	by.Revision = now.Revision
	return w.Put(w.ctx, e, by)
}

func (w *world) delete(k catalog.Kind, id string) {
	w.Helper()
	now, err := w.Get(w.ctx, k, id)
	if err == nil {
		_, err = w.Delete(w.ctx, k, id, catalog.Write{By: "tester", Revision: now.Revision})
	}
	if err != nil {
		w.Fatalf("delete %s %s: %v", k, id, err)
	}
}

// approve approves the present version of a creative by hand.
func (w *world) approve(site, creative string) {
	w.Helper()
	w.decide(w.Approve, site, creative, w.version(creative))
}

func (w *world) reject(site, creative string, version uint32) {
	w.Helper()
	w.decide(w.Reject, site, creative, version)
}

type decision func(ctx context.Context, site, creative string, version uint32, w catalog.Write) (catalog.Approvals, error)

func (w *world) decide(do decision, site, creative string, version uint32) {
	w.Helper()
	revision := w.settled().Approvals(site, creative).Revision
	if _, err := do(w.ctx, site, creative, version, catalog.Write{By: "tester", Revision: revision}); err != nil {
		w.Fatalf("decide on version %d of %s on %s: %v", version, creative, site, err)
	}
	w.settled()
}

func (w *world) version(creative string) uint32 {
	w.Helper()
	r, err := w.Get(w.ctx, catalog.KindCreative, creative)
	if err != nil {
		w.Fatal(err)
	}
	return r.Entity.(*catalog.Creative).Version
}

// served is what is shown on a site in a category: creative ids with the version.
func served(s *catalog.Snapshot, site, category string) map[string]uint32 {
	out := map[string]uint32{}
	for c := range s.Lookup(site, category).All() {
		out[c.Creative.ID] = c.Version
	}
	return out
}

// The entities of the example: one publisher with two sites, one advertiser, one
// campaign, one creative.
const (
	travel   = "653"
	science  = "464"
	tourism  = "1529"
	alcohol  = "1002"
	examples = "ryokan"
)

func examplePublisher() *catalog.Publisher {
	return &catalog.Publisher{ID: "yuki", Name: "Yuki Media", Currency: "USD"}
}

func exampleSite(id string) *catalog.Site { return &catalog.Site{ID: id, Publisher: "yuki"} }

func exampleAdvertiser() *catalog.Advertiser {
	return &catalog.Advertiser{ID: "inn", Publisher: "yuki", Name: "An Inn", DailyBudget: 50_000_000, TimeZone: "Asia/Tokyo"}
}

func exampleCampaign() *catalog.Campaign {
	return &catalog.Campaign{
		ID: "autumn", Advertiser: "inn", Categories: []string{travel}, ProductCategory: tourism,
		MaxCPM: 4_000_000, DailyBudget: 20_000_000, DogEar: true, LandingURL: "https://www.inn.example/stay",
	}
}

func exampleCreative() *catalog.Creative {
	return &catalog.Creative{ID: "ryokan", Campaign: "autumn", Content: catalog.Content{Pages: []catalog.Page{{Headline: "A quiet room"}}}}
}

// example writes the example and approves the creative on both sites.
func (w *world) example() {
	w.Helper()
	w.put(examplePublisher())
	w.put(exampleSite("blog"))
	w.put(exampleSite("shop"))
	w.put(exampleAdvertiser())
	w.put(exampleCampaign())
	w.put(exampleCreative())
	w.approve("blog", "ryokan")
	w.approve("shop", "ryokan")
}

// edit is an entity as JSON with some of its members replaced; nil takes one away.
func edit(t testing.TB, e any, members map[string]any) []byte {
	t.Helper()
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	if err := d.Decode(&object); err != nil {
		t.Fatal(err)
	}
	for name, value := range members {
		if object[name] = value; value == nil {
			delete(object, name)
		}
	}
	data, err = json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

var day = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
