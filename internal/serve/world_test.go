package serve_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"deckle"
	"deckle/internal/catalog"
	"deckle/internal/classify"
	"deckle/internal/publicapi"
	"deckle/internal/quality"
	"deckle/internal/serve"
	"deckle/internal/store"
	"deckle/internal/store/memory"
	"deckle/internal/token"
)

const (
	site    = "yuki-site"
	pageURL = "https://yukiblog.jp/autumn-hikes?utm_source=mail"
	travel  = "653"
	science = "464"
	tourism = "1529"
)

var now = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// A world is a catalog that has been read, and all else that a decision depends on.
type world struct {
	testing.TB
	*catalog.Catalog
	kv       *memory.KV
	revision uint64 // of the last write
	stop     func() // the catalog stays as it is

	page   classify.Page
	known  bool
	stats  map[string]quality.Stats // by creative
	broke  map[string]bool          // campaigns that cannot pay
	held   map[string]bool          // campaigns that sit out
	floors map[string]deckle.CPM    // of templates, by slot
	parent func(string) string
	ready  bool
	at     time.Time
	seed   uint64

	mu       sync.Mutex
	reserved map[string]reservation // by request id
}

type reservation struct {
	campaign string
	price    deckle.Money
}

// newWorld has the example: three advertisers whose campaigns all want travel pages,
// and creatives that readers like so differently that the best is no matter of luck.
//
//	inn  autumn (4.00) ryokan, onsen    spring (3.50) sakura
//	air  fly    (3.00) jet
//	tea  leaf   (2.00) matcha, which may not be folded
func newWorld(t testing.TB) *world {
	t.Helper()
	w := emptyWorld(t, memory.NewKV(), catalog.Config{})
	w.apply(exampleCatalog())
	for creative, clicks := range map[string]float64{"ryokan": 300, "onsen": 200, "sakura": 150, "jet": 100, "matcha": 50} {
		w.stats[creative] = quality.Stats{Impressions: 1000, Clicks: clicks, Folds: clicks / 10, Shown: 1000}
	}
	return w
}

func emptyWorld(t testing.TB, kv *memory.KV, c catalog.Config) *world {
	t.Helper()
	w := &world{
		TB: t, Catalog: catalog.New(kv, memory.NewKV(), c), kv: kv,
		page:  classify.Page{Categories: []classify.Category{{ID: travel, Confidence: 1, Source: classify.Rule}}, At: now.Add(-time.Hour)},
		known: true, ready: true, at: now, seed: 1,
		stats: map[string]quality.Stats{}, broke: map[string]bool{}, held: map[string]bool{},
		floors: map[string]deckle.CPM{}, reserved: map[string]reservation{},
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("catalog: %v", err)
		}
	})
	t.Cleanup(w.stop)
	<-w.Loaded()
	return w
}

// unread is a node on the same store that has not read the catalog yet.
func unread(w *world) *world {
	return &world{
		TB: w.TB, Catalog: catalog.New(w.kv, memory.NewKV(), catalog.Config{}), kv: w.kv,
		page: w.page, known: true, ready: true, at: w.at, stats: w.stats,
	}
}

func exampleCatalog() *catalog.Document {
	d := &catalog.Document{
		Publishers: []*catalog.Publisher{{ID: "yuki", Name: "Yuki Media", Currency: "USD"}},
		Sites:      []*catalog.Site{{ID: site, Publisher: "yuki"}},
	}
	for _, id := range []string{"inn", "air", "tea"} {
		d.Advertisers = append(d.Advertisers, &catalog.Advertiser{ID: id, Publisher: "yuki", Name: id, DailyBudget: 50_000_000, TimeZone: "Asia/Tokyo"})
	}
	for _, c := range []struct {
		id, advertiser string
		bid            deckle.CPM
		creatives      string
	}{
		{"autumn", "inn", 4_000_000, "ryokan onsen"},
		{"spring", "inn", 3_500_000, "sakura"},
		{"fly", "air", 3_000_000, "jet"},
		{"leaf", "tea", 2_000_000, "matcha"},
	} {
		d.Campaigns = append(d.Campaigns, &catalog.Campaign{
			ID: c.id, Advertiser: c.advertiser, Categories: []string{travel}, ProductCategory: tourism,
			MaxCPM: c.bid, DailyBudget: 20_000_000, DogEar: c.id != "leaf", LandingURL: "https://www." + c.advertiser + ".example/" + c.id,
		})
		for id := range strings.FieldsSeq(c.creatives) {
			d.Creatives = append(d.Creatives, &catalog.Creative{ID: id, Campaign: c.id, Content: catalog.Content{Pages: []catalog.Page{{Headline: id}}}})
			d.Approvals = append(d.Approvals, catalog.DocumentApproval{Site: site, Creative: id, State: catalog.Approved})
		}
	}
	return d
}

// apply writes a document and waits until the snapshot has it.
func (w *world) apply(d *catalog.Document) {
	w.Helper()
	diff, err := w.Import(d)
	if err != nil {
		w.Fatal(err)
	}
	if _, err := w.Apply(w.Context(), diff, "tester"); err != nil {
		w.Fatal(err)
	}
	w.settle()
}

// settle waits until the snapshot has all that has been written.
func (w *world) settle() {
	w.Helper()
	err := w.kv.Watch(w.Context(), func(c store.Change) error {
		if c.Complete {
			return errComplete
		}
		w.revision = max(w.revision, c.Revision)
		return nil
	})
	if !errors.Is(err, errComplete) {
		w.Fatal(err)
	}
	if err := w.WaitFor(w.Context(), w.revision); err != nil {
		w.Fatal(err)
	}
}

var errComplete = errors.New("everything has been told")

// put writes an entity over whatever there is.
func (w *world) put(e catalog.Entity) {
	w.Helper()
	before, _ := w.Get(w.Context(), e.Kind(), e.EntityID())
	if _, err := w.Put(w.Context(), e, catalog.Write{By: "tester", Revision: before.Revision}); err != nil {
		w.Fatal(err)
	}
	w.settle()
}

func (w *world) delete(k catalog.Kind, id string) {
	w.Helper()
	before, err := w.Get(w.Context(), k, id)
	if err == nil {
		_, err = w.Delete(w.Context(), k, id, catalog.Write{By: "tester", Revision: before.Revision})
	}
	if err != nil {
		w.Fatal(err)
	}
	w.settle()
}

// reject rejects the present version of a creative.
func (w *world) reject(creative string) {
	w.Helper()
	c, _ := w.Snapshot().Creative(creative)
	approvals := w.Snapshot().Approvals(site, creative)
	if _, err := w.Reject(w.Context(), site, creative, c.Version, catalog.Write{By: "tester", Revision: approvals.Revision}); err != nil {
		w.Fatal(err)
	}
	w.settle()
}

// The editors below change one entity of the example.

func (w *world) site(edit func(*catalog.Site)) {
	w.Helper()
	s, _ := w.Snapshot().Site(site)
	c := *s
	edit(&c)
	w.put(&c)
}

func (w *world) advertiser(id string, edit func(*catalog.Advertiser)) {
	w.Helper()
	a, _ := w.Snapshot().Advertiser(id)
	c := *a
	edit(&c)
	w.put(&c)
}

func (w *world) campaign(id string, edit func(*catalog.Campaign)) {
	w.Helper()
	a, _ := w.Snapshot().Campaign(id)
	c := *a
	edit(&c)
	w.put(&c)
}

func (w *world) creative(id string, edit func(*catalog.Creative)) {
	w.Helper()
	a, _ := w.Snapshot().Creative(id)
	c := *a
	edit(&c)
	w.put(&c)
}

// approve approves the present version of a creative.
func (w *world) approve(creative string) {
	w.Helper()
	w.apply(&catalog.Document{Approvals: []catalog.DocumentApproval{{Site: site, Creative: creative, State: catalog.Approved}}})
}

// market is the world as a pipeline sees it.
func (w *world) market() serve.Market {
	return serve.Market{
		Stats: func(_, creative string, _ time.Time) quality.Stats { return w.stats[creative] },
		Reserve: func(c *catalog.Campaign, a *catalog.Advertiser, price deckle.Money, id string, _ time.Time) ([]string, bool) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.broke[c.ID] || w.broke[a.ID] {
				return nil, false
			}
			w.reserved[id] = reservation{c.ID, price}
			return []string{"lease-" + c.ID}, true
		},
		SlotFloor: func(_, slot string) deckle.CPM { return w.floors[slot] },
		Pace: func(_ *catalog.Site, campaigns []*catalog.Campaign, held []bool, _ rand.Source, _ time.Time) {
			for i, c := range campaigns {
				held[i] = w.held[c.ID]
			}
		},
		Parent: w.parent,
	}
}

func (w *world) random() rand.Source { return rand.NewPCG(w.seed, 0) }

// question is what a batch asks, which is the JSON of a request.
func (w *world) question(batch string) serve.Question {
	w.Helper()
	b := &serve.Batch{}
	if err := publicapi.Decode([]byte(batch), b); err != nil {
		w.Fatal(err)
	}
	s, ok := w.Snapshot().Site(site)
	if !ok {
		s = &catalog.Site{ID: site, Status: catalog.Active, FreshnessHours: 48, BidWeight: 0.5}
	}
	return serve.Question{Batch: b, Site: s, Catalog: w.Snapshot(), Page: w.page, Known: w.known, Now: w.at, Random: w.random()}
}

func (w *world) decide(batch string) *serve.Decision {
	w.Helper()
	return serve.NewPipeline(w.market()).Decide(w.question(batch))
}

var ring = token.NewRing([]byte("a secret of thirty-two bytes ..."), nil)

func (w *world) verifier() *token.Verifier {
	return &token.Verifier{
		Keys: func(id string) (*token.Ring, bool) {
			_, ok := w.Snapshot().Site(id)
			return ring, ok
		},
		FoldWindow: 30 * time.Minute, BeaconWindow: 3 * time.Minute, ClickWindow: 3 * time.Minute, MaxSkew: 2 * time.Minute,
	}
}

func (w *world) config() serve.Config {
	return serve.Config{
		Market:  w.market(),
		Catalog: w.Snapshot,
		Page:    func(*catalog.Site, string, time.Time) (classify.Page, bool) { return w.page, w.known },
		Tokens:  w.verifier(),
		Hosts:   map[string][]string{site: {"yukiblog.jp", "www.yukiblog.jp"}},
		Base:    func(r *http.Request) string { return "https://" + r.Host },
		Address: func(*http.Request) netip.Addr { return netip.MustParseAddr("192.0.2.1") },
		Ready:   func() bool { return w.ready },
		Random:  w.random,
		Now:     func() time.Time { return w.at },
	}
}

func (w *world) handler() http.Handler {
	s := serve.New(w.config(), serve.NewMetrics())
	return serve.Endpoint(publicapi.New(publicapi.NewMetrics(), slog.New(slog.DiscardHandler)), func() *serve.Server { return s })
}

// post sends a batch from a page of the site.
func post(h http.Handler, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "https://ads.yukiblog.jp"+serve.BatchPath, strings.NewReader(body))
	r.Header.Set("Content-Type", "text/plain;charset=UTF-8")
	r.Header.Set("Origin", "https://yukiblog.jp")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec
}

// A batch is a request as a test writes it.
type batch map[string]any

// imps are slots, "id WxH" each.
func imps(slots ...string) (out []map[string]any) {
	for _, s := range slots {
		var id string
		var w, h int
		if _, err := fmt.Sscanf(s, "%s %dx%d", &id, &w, &h); err != nil {
			panic(err)
		}
		out = append(out, map[string]any{"id": id, "w": w, "h": h})
	}
	return out
}

// pins are bookmarks, "slot creative" each.
func pins(pairs ...string) (out []map[string]string) {
	for _, p := range pairs {
		slot, creative, _ := strings.Cut(p, " ")
		out = append(out, map[string]string{"slotId": slot, "creativeId": creative})
	}
	return out
}

// ask is a batch for a page of the site, as JSON; further members are added.
func ask(slots []map[string]any, more ...batch) string {
	b := batch{"pub": site, "url": pageURL, "imp": slots}
	for _, m := range more {
		maps.Copy(b, m)
	}
	data, err := json.Marshal(b, json.Deterministic(true))
	if err != nil {
		panic(err)
	}
	return string(data)
}

// told is a decision in short: "sidebar-1: honored ryokan; footer: used, removed".
func told(d *serve.Decision) string {
	var out []string
	for _, o := range d.Outcomes {
		text := o.Imp.ID + ": " + o.String()
		if o.Winner != nil {
			text += " " + o.Winner.Creative.ID
		}
		if o.PinRemoved {
			text += ", removed"
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

func wantTold(t testing.TB, d *serve.Decision, want string) {
	t.Helper()
	if got := told(d); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
