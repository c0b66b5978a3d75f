// Package publicapi answers the browsers of readers, whatever origin their page
// has: in JSON, in bounds, and readable by the page's scripts whatever happened.
//
// It is what every endpoint of the reader plane has in common. Each answer, errors
// included, has Access-Control-Allow-Origin: * and never allows credentials: what
// may be done depends on the body and its tokens, not on cookies. Nothing is cached.
// What a request carries is a stranger's: it is counted by endpoint and status, and
// no part of it is ever logged.
package publicapi

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// An Answer is what a browser gets when all went well. The zero Answer is 204.
type Answer struct {
	Status int    // 0: 204
	Body   []byte // JSON; nil: none. Not changed once it is returned
}

// A Func answers one request. It returns an [*Error] for what is the caller's to
// know; any other error is 500, logged, and told to nobody outside.
type Func func(r *Request) (Answer, error)

// A Request is what a browser asks.
type Request struct {
	*http.Request
	w http.ResponseWriter

	begun, whole bool // the body has been read from, has been read to its end
}

// An API makes handlers that count together.
type API struct {
	metrics *Metrics
	log     *slog.Logger
}

// New makes an API.
func New(m *Metrics, log *slog.Logger) *API { return &API{metrics: m, log: log} }

// Handler is an endpoint: answer, for requests with one of methods. OPTIONS is
// answered here, and so is what no method allows. name is the endpoint in metrics.
func (a *API) Handler(name string, answer Func, methods ...string) http.Handler {
	allow := strings.Join(append(slices.Clone(methods), http.MethodOptions), ", ")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		asked := &Request{Request: r, w: w}
		var got Answer
		var err error
		switch {
		case r.Method == http.MethodOptions:
			preflight(w.Header(), allow)
		case slices.Contains(methods, r.Method):
			got, err = answer(asked)
		default:
			w.Header().Set("Allow", allow)
			err = &Error{Status: http.StatusMethodNotAllowed, Reason: ReasonMethod, Message: "this path has " + allow}
		}
		if err != nil {
			got = a.failed(w.Header(), name, err)
		}
		asked.leaveBody()
		write(w, got)
		a.metrics.answered(name, got.status(), time.Since(start))
	})
}

// preflight is what a browser needs to know before it sends what a form could not
// (Fetch, section 3.2.3).
func preflight(h http.Header, allow string) {
	h.Set("Allow", allow)
	h.Set("Access-Control-Allow-Methods", allow)
	h.Set("Access-Control-Allow-Headers", "Content-Type")
	h.Set("Access-Control-Max-Age", "86400")
}

func (a Answer) status() int {
	if a.Status == 0 {
		return http.StatusNoContent
	}
	return a.Status
}

func write(w http.ResponseWriter, a Answer) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Cache-Control", "no-store")
	// A page with COEP: require-corp may send beacons without CORS as well.
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	if a.Body != nil {
		h.Set("Content-Type", "application/json")
		h.Set("Content-Length", strconv.Itoa(len(a.Body)))
	}
	w.WriteHeader(a.status())
	if a.Body != nil {
		_, _ = w.Write(a.Body) // a reader who has gone
	}
}

// failed is the only place where an error becomes an answer.
func (a *API) failed(h http.Header, endpoint string, err error) Answer {
	e := a.errorOf(endpoint, err)
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(e.RetryAfter.Seconds()))))
		h.Set("Access-Control-Expose-Headers", "Retry-After")
	}
	body, err := json.Marshal(e)
	if err != nil { // a field name that is not UTF-8
		body = []byte(`{"error":"the request is wrong","reason":"` + e.Reason + `"}`)
	}
	return Answer{Status: e.Status, Body: append(body, '\n')}
}

func (a *API) errorOf(endpoint string, err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if errors.Is(err, context.Canceled) { // the reader has gone
		return Unavailable(time.Second)
	}
	a.log.Error("reader plane", "endpoint", endpoint, "err", err)
	return &Error{Status: http.StatusInternalServerError, Reason: ReasonInternal, Message: "this is our mistake"}
}
