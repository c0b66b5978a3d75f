// Package api is the management API of the catalog: JSON over HTTP for programs
// that have a key, in which nobody overwrites what they have not seen.
//
// Every answer that is not a success is a problem document (RFC 9457). Every write
// names the revision that it replaces (If-Match) and is durable when it is
// answered. /api/v1/openapi.json describes all of it, from the same list of routes
// that serves it.
package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"deckle/internal/catalog"
	"deckle/internal/dashboard/access"
	"deckle/internal/dashboard/report"
)

// Prefix is what every path of the API begins with.
const Prefix = "/api/v1"

// Bounds of a request.
const (
	maxBody     = catalog.MaxEntityBytes
	maxDocument = catalog.MaxDocumentBytes
	maxAsset    = catalog.MaxAssetBytes
	timeout     = 20 * time.Second // of what the store does; of reading a body, with a second for each MiB

	perSecond = 50 // requests of one key, after
	burst     = 200

	applyTimeout = 5 * time.Minute // of a document: 10,000 writes, each on disk
	large        = 2               // documents, assets and reports that are worked on at once
)

// An API answers requests below [Prefix].
type API struct {
	catalog *catalog.Catalog
	blobs   catalog.Blobs
	tables  report.Tables // nil: there are none
	keys    *access.Keys
	log     *slog.Logger

	mux      *http.ServeMux
	document []byte // /openapi.json
	answers  *answers
	large    chan struct{} // a place for each large request

	mu    sync.Mutex
	rates map[string]*rate.Limiter // by the name of the key
}

// New makes the API of a catalog, of the assets in blobs, and of the reports of
// tables; without these, which may be nil, reports are answered with 503.
func New(c *catalog.Catalog, blobs catalog.Blobs, tables report.Tables, keys *access.Keys, log *slog.Logger) *API {
	a := &API{
		catalog: c, blobs: blobs, tables: tables, keys: keys, log: log,
		mux:     http.NewServeMux(),
		answers: newAnswers(),
		large:   make(chan struct{}, large),
		rates:   map[string]*rate.Limiter{},
	}
	routes := a.routes()
	a.document = document(routes)
	byPath := map[string]map[string]route{}
	for _, r := range routes {
		if byPath[r.path] == nil {
			byPath[r.path] = map[string]route{}
		}
		byPath[r.path][r.method] = r
	}
	for path, methods := range byPath {
		a.mux.Handle(Prefix+path, a.dispatch(methods))
	}
	a.mux.Handle("/", a.dispatch(nil))
	return a
}

// A call is one request on its way, by somebody whom we know.
type call struct {
	w    http.ResponseWriter
	r    *http.Request
	by   string // who, for the audit log
	body []byte
}

type handler func(call) error

// A route is one method of one path, and what the description says of it.
type route struct {
	method, path string
	handle       handler
	op           operation
}

func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	a.mux.ServeHTTP(w, r)
}

// dispatch answers the requests of one path: who asks is known first, so that a
// stranger learns nothing, not even which paths there are.
func (a *API) dispatch(methods map[string]route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		route, known := methods[method]
		c := call{w: w, r: r}
		var err error
		if !known || !route.op.open {
			c.by, err = a.authenticate(r)
		}
		switch {
		case err != nil:
		case methods == nil:
			err = problem(http.StatusNotFound, "not_found", "there is no such path; see %s/openapi.json", Prefix)
		case !known:
			err = notAllowed(methods)
		default:
			err = a.serve(c, route)
		}
		if err != nil {
			a.answer(w, r, err)
		}
	})
}

// answer tells what went wrong.
func (a *API) answer(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	if p.Status == http.StatusInternalServerError {
		a.log.ErrorContext(r.Context(), "management API", "err", fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err))
	}
	p.ServeHTTP(w, r)
}

func notAllowed(methods map[string]route) *Problem {
	var allow []string
	for m := range methods {
		allow = append(allow, m)
		if m == http.MethodGet {
			allow = append(allow, http.MethodHead)
		}
	}
	slices.Sort(allow)
	list := strings.Join(allow, ", ")
	return problem(http.StatusMethodNotAllowed, "method_not_allowed", "this path has %s", list).with("Allow", list)
}

// authenticate gives the name of the key that a request carries (RFC 6750), and
// takes one of the requests that it has.
func (a *API) authenticate(r *http.Request) (by string, err error) {
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || secret == "" {
		return "", problem(http.StatusUnauthorized, "unauthorized", `want "Authorization: Bearer KEY" with a key of [admin].api_keys_file`).
			with("Www-Authenticate", `Bearer realm="deckle"`)
	}
	name, ok := a.keys.Owner(strings.TrimSpace(secret))
	if !ok {
		return "", problem(http.StatusUnauthorized, "unauthorized", "this is none of the keys of [admin].api_keys_file").
			with("Www-Authenticate", `Bearer realm="deckle", error="invalid_token"`)
	}
	now := time.Now()
	if l := a.limiter(name); !l.AllowN(now, 1) {
		wait := time.Duration((1 - l.TokensAt(now)) / perSecond * float64(time.Second))
		return "", problem(http.StatusTooManyRequests, "too_many_requests", "more than %d requests a second", perSecond).after(wait)
	}
	return "key:" + name, nil
}

// limiter is that of a key. There are no more than names of keys that were good.
func (a *API) limiter(name string) *rate.Limiter {
	a.mu.Lock()
	defer a.mu.Unlock()
	l, ok := a.rates[name]
	if !ok {
		l = rate.NewLimiter(perSecond, burst)
		a.rates[name] = l
	}
	return l
}

// serve reads the body that a route takes, and calls it: a POST once for every
// Idempotency-Key.
func (a *API) serve(c call, rt route) error {
	if err := onlyKnownQuery(c.r, rt.op); err != nil {
		return err
	}
	if rt.op.large || rt.op.limit > maxBody {
		select {
		case a.large <- struct{}{}:
			defer func() { <-a.large }()
		default:
			return problem(http.StatusServiceUnavailable, "busy", "%d large requests are being worked on", large).after(time.Second)
		}
	}
	if err := c.read(rt.op); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), timeout)
	defer cancel()
	c.r = c.r.WithContext(ctx)
	if rt.method != http.MethodPost {
		return rt.handle(c)
	}
	a.answers.serve(c.w, c.r, c.by, c.body, func(w http.ResponseWriter, r *http.Request) {
		c.w = w
		if err := rt.handle(c); err != nil {
			a.answer(w, r, err)
		}
	})
	return nil
}

// read takes the body of a request, if it should have one, in bounded time and
// space.
func (c *call) read(op operation) error {
	if op.limit == 0 {
		return nil // net/http reads no more of it than a little
	}
	if media := c.r.Header.Get("Content-Type"); !op.accepts(media) {
		return problem(http.StatusUnsupportedMediaType, "unsupported_media_type", "want %s, not %.80q", op.accept, media).
			with("Accept", op.accept)
	}
	rc := http.NewResponseController(c.w)
	if err := rc.SetReadDeadline(time.Now().Add(timeout + time.Duration(op.limit>>20)*time.Second)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("bound the reading of a body: %w", err)
	}
	var b bytes.Buffer
	if n := c.r.ContentLength; n > 0 && n <= op.limit {
		b.Grow(int(n) + bytes.MinRead)
	}
	if _, err := io.Copy(&b, http.MaxBytesReader(c.w, c.r.Body, op.limit)); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return invalid(catalog.Problem{Msg: "the body ended early"})
		}
		return err
	}
	// The deadline would end a connection whose answer takes longer.
	if err := rc.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("bound the reading of a body: %w", err)
	}
	c.body = b.Bytes()
	return nil
}

func onlyKnownQuery(r *http.Request, op operation) error {
	var errs []catalog.Problem
	for name, values := range r.URL.Query() {
		i := slices.IndexFunc(op.query, func(p parameter) bool { return p.name == name })
		switch {
		case i < 0:
			errs = append(errs, catalog.Problem{Field: name, Msg: "no such parameter"})
		case len(values) > 1:
			errs = append(errs, catalog.Problem{Field: name, Msg: "given more than once"})
		}
	}
	if errs != nil {
		slices.SortFunc(errs, func(a, b catalog.Problem) int { return strings.Compare(a.Field, b.Field) })
		return invalid(errs...)
	}
	return nil
}
