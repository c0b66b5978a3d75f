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

	"deckle/internal/catalog"
	"deckle/internal/config"
	"deckle/internal/dashboard"
	"deckle/internal/dashboard/access"
	"deckle/internal/dashboard/api"
	"deckle/internal/journal"
	"deckle/internal/obs"
	"deckle/internal/projection"
	"deckle/internal/store"
)

// Facts are the store and what stands on it: the journal and its folds, the
// catalog, the dashboard. Pages and the exchange auction need none of it. It opens
// beside them, and if it cannot be opened they go on: readiness and the admin
// listener say what is wrong.
type facts struct {
	cfg      *config.Config
	registry *prometheus.Registry
	log      *slog.Logger
	others   func() []obs.Check // how the parts of this node are that are no facts

	open   atomic.Pointer[openFacts] // nil until everything is open, and again at the end
	broken atomic.Pointer[string]    // why it is not open
}

// openFacts are facts that can be used.
type openFacts struct {
	store   *store.Store
	writes  [3]*health // of journal, catalog and keys
	journal *journal.Journal
	catalog *catalog.Catalog
	hot     *projection.Hot
	tables  *projection.Tables
	desk    *dashboard.Dashboard
}

func newFacts(cfg *config.Config, registry *prometheus.Registry, log *slog.Logger, others func() []obs.Check) *facts {
	return &facts{cfg: cfg, registry: registry, log: log, others: others}
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
// writes ends before the store does: deferred calls run last.
func (f *facts) serve(ctx context.Context) (err error) {
	st, err := store.Open(ctx, storeConfig(f.cfg), f.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()

	folds := projectionConfig(f.cfg)
	tables, err := projection.OpenTables(ctx, reportFile(f.cfg), folds, f.log, projections()...)
	if err != nil {
		return fmt.Errorf("open report.db: %w", err)
	}
	defer func() { err = errors.Join(err, tables.Close()) }()

	content, products, err := catalog.ReadTaxonomies(filepath.Join(f.cfg.Store.DataDir, "taxonomy"))
	if err != nil {
		return fmt.Errorf("read taxonomies: %w", err)
	}
	written := journal.NewMetrics()
	wedged := make(chan struct{}, 1)
	o := &openFacts{
		store:  st,
		writes: [...]*health{{part: "journal", wedged: wedged}, {part: "catalog", wedged: wedged}, {part: "keys", wedged: wedged}},
		hot:    projection.NewHot(folds, f.log),
		tables: tables,
	}
	o.journal = journal.New(watchedLog{st.Journal(), o.writes[0]}, journal.Config{}, written, f.log)
	o.catalog = catalog.New(watchedKV{st.Catalog(), o.writes[1]}, watchedKV{st.Keys(), o.writes[2]},
		catalog.Config{Sites: siteFacts(f.cfg), Content: content, Products: products, Log: f.log})
	if o.desk, err = dashboard.New(dashboardConfig(f.cfg, f.checks), o.catalog, st.Assets(), f.log); err != nil {
		return err
	}
	figures := &lent{Registerer: f.registry}
	defer figures.giveBack()
	if err := errors.Join(written.Register(figures), o.catalog.Metrics().Register(figures), o.hot.Register(figures), tables.Register(figures)); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	waitForJournal := inBackground(ctx, o.journal.Run)
	defer func() { err = errors.Join(err, waitForJournal()) }()
	f.open.Store(o)
	f.broken.Store(nil)
	defer f.open.Store(nil)

	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return o.catalog.Run(ctx) })
	g.Go(func() error { return o.hot.Run(ctx, st.Journal()) })
	g.Go(func() error { return tables.Run(ctx, st.Journal()) })
	g.Go(func() error {
		select {
		case <-wedged:
			return errWedged
		case <-ctx.Done():
			return nil
		}
	})
	return g.Wait()
}

// reload reads again what SIGHUP is meant for.
func (f *facts) reload() {
	if o := f.open.Load(); o != nil {
		o.desk.Reload()
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
	checks = append(checks, degrade(o.hot.Check()))
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
