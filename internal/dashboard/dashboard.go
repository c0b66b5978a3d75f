// Package dashboard is where people run Deckle: pages for the sales desk and ad
// operations that need no script, and beside them the management API, on a
// listener of their own.
//
// Every page is made of one struct; every change is a form post that ends in a
// redirect, names the revision that it replaces, and shows both versions to whoever
// has lost a race. [New] has all routes.
package dashboard

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"
	"time"

	"deckle"
	"deckle/internal/catalog"
	"deckle/internal/dashboard/access"
	"deckle/internal/dashboard/api"
	"deckle/internal/dashboard/report"
	"deckle/internal/landing"
	"deckle/internal/obs"
	"deckle/internal/serve"
	"deckle/internal/store"
	"deckle/web"
)

// Config configures a [Dashboard]. Of the zero value nobody can use anything.
type Config struct {
	// PasswordFile has the argon2id hash of the password of the pages, as
	// [access.HashPassword] makes it. Empty: nobody can log in, and the page says why.
	PasswordFile string

	// APIKeysFile has the keys of the API, one "name:sha256" a line. Empty: none.
	APIKeysFile string

	// TrustedProxies are peers whose X-Forwarded-For and X-Forwarded-Proto are
	// believed: that a browser came by https, and from where.
	TrustedProxies []netip.Prefix

	// Sites are the sites of deckle.toml: their ids, in its order.
	Sites []string

	// Ready says how the parts of this node are, for the overview. Nil: nothing.
	Ready func() []obs.Check
}

// Parts are what a dashboard shows of the rest of the node. The pages of a part that
// is nil say that it is not open.
type Parts struct {
	Tables  report.Tables // what the journal has been folded into
	Budgets Budgets

	// SlotsOf is which site the page at a URL is of, and which magazine slots it has by
	// the site's template. The site is "" for a page that is of none.
	SlotsOf func(url string) (site string, slots []deckle.Slot)

	// Drafts keep creatives that nobody has published yet; nothing else may write here.
	// Nil: creatives are published at once, or not kept.
	Drafts store.KV

	// Landing reads the landing pages that people name. Nil: none are read.
	Landing *landing.Reader

	// Heartbeats are what browsers have told. Nil: nobody listens.
	Heartbeats Heartbeats

	// Explain says what a batch would be answered, and why; see [serve.Server.Explain].
	Explain func(*serve.Batch) (*serve.Explanation, error)
}

// A Dashboard answers the requests of the admin listener that are not for metrics
// or health.
type Dashboard struct {
	config  Config
	catalog *catalog.Catalog
	blobs   catalog.Blobs
	parts   Parts
	keys    *access.Keys
	door    *access.Door
	log     *slog.Logger
	handler http.Handler

	pictures chan struct{} // a place for each picture that is worked on

	stageKey [32]byte // signs the addresses of pictures in stages
}

// New makes the dashboard of a catalog, of the assets in blobs, and of the parts of a
// node. Its error says what is wrong with the two files.
func New(c Config, cat *catalog.Catalog, blobs catalog.Blobs, parts Parts, log *slog.Logger) (*Dashboard, error) {
	keys, errKeys := access.OpenKeys(c.APIKeysFile, log)
	door, errDoor := access.OpenDoor(c.PasswordFile, log)
	if err := errors.Join(errKeys, errDoor); err != nil {
		return nil, err
	}
	d := &Dashboard{
		config: c, catalog: cat, blobs: blobs, parts: parts, keys: keys, door: door, log: log,
		pictures: make(chan struct{}, maxPictures),
	}
	_, _ = rand.Read(d.stageKey[:]) // never fails
	d.handler = d.routes()
	return d, nil
}

// routes is everything that can be asked for.
func (d *Dashboard) routes() http.Handler {
	pages := http.NewServeMux()
	pages.Handle("GET /static/", static())
	pages.Handle("GET /login", d.page(d.showLogIn))
	pages.Handle("POST /login", d.page(d.logIn))
	pages.Handle("POST /logout", d.page(d.logOut))

	pages.Handle("GET /{$}", d.private(d.showOverview))
	pages.Handle("GET /inbox", d.private(d.showInbox))
	pages.Handle("POST /inbox/{site}/{creative}", d.private(d.decide))
	pages.Handle("GET /reports", d.private(d.showReports))
	pages.Handle("GET /reports.csv", d.private(d.exportReport))
	pages.Handle("GET /budgets", d.private(d.showBudgets))
	pages.Handle("GET /why", d.private(d.showWhy))
	pages.Handle("POST /why/token", d.private(d.makeDebugToken))
	pages.Handle("GET /audit", d.private(d.showAudit))
	pages.Handle("GET /_deckle/asset/{id}", d.private(d.showAsset)) // where creatives look for it
	for _, e := range editors() {
		collection := "/" + plural(e.kind)
		pages.Handle("GET "+collection, d.private(d.showList(e)))
		pages.Handle("GET "+collection+"/new", d.private(d.showNew(e)))
		pages.Handle("POST "+collection+"/new", d.private(d.create(e)))
		pages.Handle("GET "+collection+"/{id}", d.private(d.showEdit(e)))
		pages.Handle("POST "+collection+"/{id}", d.private(d.update(e)))
		pages.Handle("POST "+collection+"/{id}/delete", d.private(d.remove(e)))
		pages.Handle("GET "+collection+"/{id}/history", d.private(d.showHistory(e)))
	}
	pages.Handle("POST /publishers/{id}/keys", d.private(d.rotateKeys))
	pages.Handle("GET /creatives/{id}/preview", d.private(d.showPreview))
	pages.Handle("GET /drafts/{id}", d.private(d.showDraft))
	pages.Handle("POST /drafts/{id}", d.private(d.updateDraft))
	pages.Handle("POST /drafts/{id}/delete", d.private(d.dropDraft))
	pages.Handle("POST /landing", d.private(d.readLanding))
	pages.Handle("GET "+web.MagazinePath(), web.Client())
	pages.Handle("GET /stage/creatives/{id}", d.private(d.showStage))
	pages.Handle("GET /stage/drafts/{id}", d.private(d.stageDrafted))
	pages.Handle("GET /stage/new", d.private(d.showNoStage))
	pages.Handle("POST /stage", d.private(d.stageForm))
	pages.Handle("POST /stage/draft", d.private(d.stageDraft))
	pages.Handle("GET /stage/asset/{id}/{until}/{mac}", d.page(d.showSignedAsset))
	pages.Handle("GET /", d.private(notFound))
	sameOrigin := http.NewCrossOriginProtection()
	sameOrigin.SetDenyHandler(http.HandlerFunc(d.denyCrossOrigin))

	all := http.NewServeMux()
	all.Handle(api.Prefix+"/", api.New(d.catalog, d.blobs, d.parts.Tables, d.keys, d.log))
	all.Handle("/", pages)
	return d.survive(timely(sameOrigin.Handler(all)))
}

func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.handler.ServeHTTP(w, r) }

// Reload reads the password and the keys again, as SIGHUP asks for.
func (d *Dashboard) Reload() {
	d.keys.Reload()
	d.door.Reload()
}

// Checks say what is wrong with the password and the keys, for /readyz. Neither
// keeps pages from readers.
func (d *Dashboard) Checks() []obs.Check {
	checks := []obs.Check{{Part: "dashboard", State: obs.OK}, {Part: "management API", State: obs.OK}}
	switch err := d.door.Closed(); {
	case d.config.PasswordFile == "":
		checks[0].Note = "nobody can log in: [admin].password_file is not set"
	case err != nil:
		checks[0].State, checks[0].Note = obs.Degraded, err.Error()
	}
	switch err := d.keys.Err(); {
	case d.config.APIKeysFile == "":
		checks[1].Note = "no keys: [admin].api_keys_file is not set"
	case err != nil:
		checks[1].State, checks[1].Note = obs.Degraded, strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return checks
}

// survive answers a request for which we have broken, and goes on.
func (d *Dashboard) survive(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch v := recover(); v {
			case nil:
			case http.ErrAbortHandler: //nolint:errorlint // net/http compares it so
				panic(v)
			default:
				d.log.ErrorContext(r.Context(), "admin listener", "err", fmt.Sprintf("%s %s: panic: %v\n%s", r.Method, r.URL.Path, v, debug.Stack()))
				http.Error(w, "an error of ours; the log has it", http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// How long a body may take. What is large has more; see visit.parseForm and package api.
const (
	bodyTime = 30 * time.Second
	formTime = time.Minute // with pictures
)

// timely bounds how long the body of any request takes to come, also of one that
// nobody reads: net/http looks for its end before it takes the next request. Who
// reads a body to its end lifts the bound, which would end a slow answer as well.
func timely(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			bound(w, time.Now().Add(bodyTime))
		}
		next.ServeHTTP(w, r)
	})
}

// bound says until when a body is read; the zero time lifts the bound.
func bound(w http.ResponseWriter, until time.Time) {
	_ = http.NewResponseController(w).SetReadDeadline(until) // not supported in tests without a connection
}

// patience is how long a page waits for the store and for its turn at the password.
const patience = 10 * time.Second
