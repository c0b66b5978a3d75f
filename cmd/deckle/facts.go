package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"deckle/internal/budget"
	"deckle/internal/catalog"
	"deckle/internal/classify"
	"deckle/internal/clock"
	"deckle/internal/config"
	"deckle/internal/dashboard"
	"deckle/internal/dashboard/access"
	"deckle/internal/dashboard/api"
	"deckle/internal/heartbeat"
	"deckle/internal/journal"
	"deckle/internal/landing"
	"deckle/internal/obs"
	"deckle/internal/projection"
	"deckle/internal/publicapi"
	"deckle/internal/serve"
	"deckle/internal/store"
	"deckle/internal/template"
	"deckle/internal/track"
)

// Facts are the store and what stands on it: the journal and its folds, the
// catalog, the dashboard. Pages and the exchange auction need none of it. It opens
// beside them, and if it cannot be opened they go on: readiness and the admin
// listener say what is wrong.
type facts struct {
	cfg      *config.Config
	template func(site string) *template.Template
	registry *prometheus.Registry
	log      *slog.Logger
	others   func() []obs.Check // how the parts of this node are that are no facts

	options options

	// What outlives a store that is opened again.
	api     *publicapi.API
	served  *serve.Metrics
	tracked *track.Metrics
	ear     *heartbeat.Ear

	open   atomic.Pointer[openFacts] // nil until everything is open, and again at the end
	broken atomic.Pointer[string]    // why it is not open
}

// openFacts are facts that can be used, and what stands on them.
type openFacts struct {
	store   *store.Store
	writes  [4]*health // of journal, catalog, keys and leases
	wedged  chan struct{}
	journal *journal.Journal
	written *journal.Metrics
	catalog *catalog.Catalog
	centres *track.DataCentres

	clock  *clock.Clock
	pages  *classify.Classifier
	hot    *projection.Hot
	tables *projection.Tables
	book   *budget.Book

	batches *serve.Server
	events  *track.Tracker
	desk    *dashboard.Dashboard
}

// newFacts makes facts that are not open. Metrics of what outlives a store are
// registered at once.
func newFacts(cfg *config.Config, templates *config.Templates, registry *prometheus.Registry, log *slog.Logger, others func() []obs.Check) (*facts, error) {
	asked := publicapi.NewMetrics()
	f := &facts{
		cfg: cfg, template: templates.For, registry: registry, log: log, others: others,
		api: publicapi.New(asked, log), served: serve.NewMetrics(), tracked: track.NewMetrics(), ear: newEar(cfg),
	}
	if err := errors.Join(asked.Register(registry), f.served.Register(registry), f.tracked.Register(registry), f.ear.Register(registry)); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return f, nil
}

// checkAccess refuses the start for a file of passwords or keys that cannot be
// used: somebody relies on it.
func checkAccess(cfg *config.Config, log *slog.Logger) error {
	_, errDoor := access.OpenDoor(cfg.Admin.PasswordFile, log)
	_, errKeys := access.OpenKeys(cfg.Admin.APIKeysFile, log)
	return errors.Join(errDoor, errKeys)
}

// How long after a failure the store is opened again: one that may pass by itself,
// and one that somebody has to mend. Opening a store that is refused changes
// nothing in it.
const (
	retryStore  = 5 * time.Second
	retryMended = 30 * time.Second
)

// Run opens the facts and keeps them until ctx is done. It returns no error for a
// store that cannot be opened: that stops what depends on it, and never the pages.
func (f *facts) Run(ctx context.Context) error {
	for {
		err := f.serve(ctx)
		if ctx.Err() != nil {
			if errors.Is(err, context.Canceled) { // the end came while it was being opened
				return nil
			}
			return err
		}
		f.brokenBy(err)
		again := retryMended
		if errors.Is(err, store.ErrUnavailable) {
			again = retryStore
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return nil
		}
	}
}

// brokenBy keeps why the facts are not open, and says it once.
func (f *facts) brokenBy(err error) {
	text := err.Error()
	if before := f.broken.Swap(&text); before == nil || *before != text {
		f.log.Error("store is not open: no catalog, no journal, no magazine ads", "err", err)
	}
}

// serve opens everything, from the ground up, and runs it until ctx is done. What
// writes ends before what it writes to: deferred calls run last.
func (f *facts) serve(ctx context.Context) (err error) {
	o := &openFacts{}
	defer func() { err = errors.Join(err, o.close()) }()
	if err := o.openAll(ctx, f); err != nil {
		return err
	}
	figures := &lent{Registerer: f.registry}
	defer figures.giveBack()
	if err := o.register(figures); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	waitForJournal := inBackground(ctx, o.journal.Run)
	defer func() { err = errors.Join(err, waitForJournal()) }()
	f.open.Store(o)
	f.broken.Store(nil)
	defer f.open.Store(nil)
	return o.run(ctx, f.options.stock)
}

// openAll opens everything. What is open when it fails is for [openFacts.close].
func (o *openFacts) openAll(ctx context.Context, f *facts) (err error) {
	if o.store, err = store.Open(ctx, storeConfig(f.cfg), f.log); err != nil {
		return err
	}
	folds := projectionConfig(f.cfg)
	if o.tables, err = projection.OpenTables(ctx, reportFile(f.cfg), folds, f.log, projections()...); err != nil {
		return fmt.Errorf("open report.db: %w", err)
	}
	content, products, err := catalog.ReadTaxonomies(filepath.Join(f.cfg.Store.DataDir, "taxonomy"))
	if err != nil {
		return fmt.Errorf("read taxonomies: %w", err)
	}
	if o.centres, err = track.OpenDataCentres(hygieneFile(f.cfg)); err != nil {
		return fmt.Errorf("read the networks of data centres: %w", err)
	}

	// Facts: what has happened, and what we have been told to do.
	st := o.store
	o.wedged = make(chan struct{}, 1)
	o.writes = [...]*health{{part: "journal", wedged: o.wedged}, {part: "catalog", wedged: o.wedged}, {part: "keys", wedged: o.wedged}, {part: "leases", wedged: o.wedged}}
	o.written = journal.NewMetrics()
	o.journal = journal.New(watchedLog{st.Journal(), o.writes[0]}, journal.Config{}, o.written, f.log)
	o.catalog = catalog.New(watchedKV{st.Catalog(), o.writes[1]}, watchedKV{st.Keys(), o.writes[2]},
		catalog.Config{Sites: siteFacts(f.cfg), Content: content, Products: products, Log: f.log})

	// State: folded from them.
	o.clock = clock.New(st, clock.Config{MaxSkew: f.cfg.Reader.MaxSkew, Log: f.log})
	o.pages = classify.New(st.Pages(), content, classify.Config{Log: f.log})
	o.hot = projection.NewHot(folds, f.log)
	o.book = budget.New(budget.Config{
		KV: watchedKV{st.Leases(), o.writes[3]}, Journal: o.journal, Fold: o.hot, Snapshot: o.catalog.Snapshot,
		BeaconWindow: f.cfg.Reader.BeaconWindow, MaxSkew: f.cfg.Reader.MaxSkew, Log: f.log,
	})
	o.hot.Notify(o.book.Folded)

	// Surfaces: what readers' browsers ask and tell, and the desk.
	tokens := verifier(f.cfg, newRings(o.catalog.Snapshot).of)
	o.batches = o.newServer(f, content, tokens)
	o.events = o.newTracker(f, tokens)
	o.desk, err = dashboard.New(dashboardConfig(f.cfg, f.checks), o.catalog, st.Assets(), o.parts(f), f.log)
	return err
}

// parts are what the dashboard shows of the rest of this node.
func (o *openFacts) parts(f *facts) dashboard.Parts {
	return dashboard.Parts{
		Tables: o.tables, Budgets: o.book, SlotsOf: f.magazineSlots, Explain: o.batches.Explain,
		Drafts: o.store.Drafts(), Landing: landing.New(landing.Config{Allow: f.options.reachable}), Heartbeats: f.ear,
	}
}

func (o *openFacts) register(r prometheus.Registerer) error {
	return errors.Join(o.written.Register(r), o.catalog.Metrics().Register(r), o.hot.Register(r), o.tables.Register(r),
		o.clock.Register(r), o.pages.Metrics().Register(r), o.book.Metrics().Register(r))
}

// run follows what is written until ctx is done, or the store has to be opened
// anew.
func (o *openFacts) run(ctx context.Context, stock stocking) error {
	g, ctx := errgroup.WithContext(ctx)
	if stock != nil {
		g.Go(func() error { return stock(ctx, o.catalog, o.store.Assets()) })
	}
	g.Go(func() error { return o.catalog.Run(ctx) })
	g.Go(func() error { return o.clock.Run(ctx) })
	g.Go(func() error { return o.pages.Run(ctx) })
	g.Go(func() error { return o.hot.Run(ctx, o.store.Journal()) })
	g.Go(func() error { return o.tables.Run(ctx, o.store.Journal()) })
	g.Go(func() error { return o.book.Run(ctx) })
	g.Go(func() error {
		select {
		case <-o.wedged:
			return errWedged
		case <-ctx.Done():
			return nil
		}
	})
	return g.Wait()
}

// close closes what is open, the ground last.
func (o *openFacts) close() (err error) {
	if o.tables != nil {
		err = o.tables.Close()
	}
	if o.store != nil {
		err = errors.Join(err, o.store.Close())
	}
	return err
}

// reload reads again what SIGHUP is meant for.
func (f *facts) reload() {
	o := f.open.Load()
	if o == nil {
		return
	}
	o.desk.Reload()
	if err := o.centres.Reload(); err != nil {
		f.log.Error("the networks of data centres are not read again", "err", err)
	}
}

// ServeHTTP is the dashboard and the management API of the admin listener; 503
// while the store is not open.
func (f *facts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if o := f.open.Load(); o != nil {
		o.desk.ServeHTTP(w, r)
		return
	}
	unavailable(w, f.why())
}

// assets are the pictures of creatives, on the public listener.
func (f *facts) assets(w http.ResponseWriter, r *http.Request) {
	o := f.open.Load()
	if o == nil {
		unavailable(w, "The store is not open.") // why is nobody's business out there
		return
	}
	id, _ := strings.CutPrefix(r.URL.Path, catalog.AssetPath)
	err := api.ServeAsset(w, r, o.store.Assets(), id)
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, catalog.ErrNotFound):
		http.NotFound(w, r)
	case err != nil:
		unavailable(w, "The store does not answer.")
	}
}

func unavailable(w http.ResponseWriter, text string) {
	w.Header().Set("Retry-After", "5")
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, text, http.StatusServiceUnavailable)
}

// auctions is the log of what the page plane did, or nil while the store is not open.
func (f *facts) auctions() store.Log {
	if o := f.open.Load(); o != nil {
		return o.store.Auctions()
	}
	return nil
}

// why says in a line why the facts are not open.
func (f *facts) why() string {
	if text := f.broken.Load(); text != nil {
		return "The store is not open: " + *text
	}
	return "The store is being opened."
}

// checks say how the facts are. None of it takes pages out of service.
func (f *facts) checks() []obs.Check {
	checks := f.others()
	o := f.open.Load()
	if o == nil {
		return append(checks, obs.Check{Part: "store", State: obs.Degraded, Note: f.why()})
	}
	checks = append(checks, spaceCheck(context.Background(), o.store), o.catalogCheck())
	for _, h := range o.writes {
		checks = append(checks, h.check())
	}
	checks = append(checks, degrade(o.clock.Check()), degrade(o.hot.Check()))
	checks = append(checks, o.book.Checks()...)
	checks = append(checks, o.tables.Checks()...)
	return append(checks, o.desk.Checks()...)
}

func (o *openFacts) catalogCheck() obs.Check {
	select {
	case <-o.catalog.Loaded():
		return obs.Check{Part: "index", State: obs.OK}
	default:
		return obs.Check{Part: "index", State: obs.Degraded, Note: "the catalog is being loaded"}
	}
}

// degrade keeps a node in service whose folds are cold: it answers batches with
// 503, and pages as well as ever.
func degrade(c obs.Check) obs.Check {
	if c.State == obs.NotReady {
		c.State = obs.Degraded
	}
	return c
}
