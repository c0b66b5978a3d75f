package api

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"deckle/internal/catalog"
	"deckle/internal/store"
)

// A Problem is an answer that says what is wrong, as RFC 9457 has it. Its type is
// about:blank, since title and status say the kind; Code tells apart what shares a
// status.
type Problem struct {
	Type   string            `json:"type"`
	Title  string            `json:"title"`
	Status int               `json:"status"`
	Code   string            `json:"code"`
	Detail string            `json:"detail,omitzero"`
	Errors []catalog.Problem `json:"errors,omitempty"` // all that is wrong with the input
	More   int               `json:"more,omitzero"`    // how much more, beyond Errors

	// What a key holds now, for a writer who lost a race (409).
	Revision uint64         `json:"revision,omitzero"`
	Current  jsontext.Value `json:"current,omitempty"`

	Done *int `json:"done,omitempty"` // steps of a document that was not applied to its end

	retryAfter time.Duration // Retry-After; 0 = none
	header     http.Header   // further headers
}

func (p *Problem) Error() string {
	text := p.Code
	if p.Detail != "" {
		text += ": " + p.Detail
	}
	for _, e := range p.Errors {
		text += "; " + e.String()
	}
	return text
}

// problem is a Problem of a status.
func problem(status int, code, format string, args ...any) *Problem {
	return &Problem{
		Type:   "about:blank",
		Title:  cmp.Or(http.StatusText(status), strconv.Itoa(status)),
		Status: status,
		Code:   code,
		Detail: fmt.Sprintf(format, args...),
	}
}

func (p *Problem) after(d time.Duration) *Problem {
	p.retryAfter = d
	return p
}

func (p *Problem) with(key, value string) *Problem {
	if p.header == nil {
		p.header = http.Header{}
	}
	p.header.Set(key, value)
	return p
}

// invalid is the Problem of input that is wrong.
func invalid(errs ...catalog.Problem) *Problem {
	p := problem(http.StatusBadRequest, "invalid", "%d things are wrong with the request", len(errs))
	if len(errs) == 1 {
		p.Detail = "one thing is wrong with the request"
	}
	p.Errors = make([]catalog.Problem, len(errs))
	for i, e := range errs {
		p.Errors[i] = catalog.Problem{Field: shorten(e.Field), Msg: shorten(e.Msg), Remedy: e.Remedy}
	}
	return p
}

// maxText bounds, in bytes, what a problem repeats of the request: the path of a field
// is as long as its input is deep.
const maxText = 256

// shorten makes text of a request text of ours, which is valid UTF-8.
func shorten(s string) string {
	if len(s) <= maxText {
		return strings.ToValidUTF8(s, "\ufffd")
	}
	return strings.ToValidUTF8(s[:maxText], "") + "…"
}

// problemOf is the only place where an error becomes an answer.
func problemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if e, ok := errors.AsType[*catalog.InvalidError](err); ok {
		p := invalid(e.Problems...)
		if p.More = e.More; e.More > 0 {
			p.Detail = fmt.Sprintf("%d things are wrong with the request; here are the first %d", len(e.Problems)+e.More, len(e.Problems))
		}
		return p
	}
	if e, ok := errors.AsType[*catalog.ConflictError](err); ok {
		return lostRace(e)
	}
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return problem(http.StatusRequestEntityTooLarge, "too_large", "the body has more than %d bytes", e.Limit)
	}
	switch {
	case errors.Is(err, catalog.ErrNotFound), errors.Is(err, store.ErrNotFound):
		return problem(http.StatusNotFound, "not_found", "there is no such thing in the catalog")
	case errors.Is(err, store.ErrTooLarge):
		return problem(http.StatusRequestEntityTooLarge, "too_large", "this is larger than the store takes")
	case errors.Is(err, catalog.ErrNotLoaded):
		return problem(http.StatusServiceUnavailable, "not_loaded", "this node has not read the catalog yet").after(time.Second)
	case errors.Is(err, store.ErrFull):
		return problem(http.StatusServiceUnavailable, "store_full", "the store is full; nothing was written").after(time.Minute)
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return problem(http.StatusServiceUnavailable, "unavailable", "the store cannot answer now; the write may or may not have happened").after(2 * time.Second)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return problem(http.StatusRequestTimeout, "too_slow", "the body did not come in time")
	}
	return problem(http.StatusInternalServerError, "internal", "an error of ours; the log has it")
}

// lostRace tells a writer what is there by now.
func lostRace(e *catalog.ConflictError) *Problem {
	p := problem(http.StatusConflict, "conflict", "%s %q is at revision %d", e.Kind, e.ID, e.Revision)
	p.Revision = e.Revision
	if e.Current != nil {
		p.Current = encode(recordOf(*e.Current))
	}
	return p
}

// ServeHTTP answers with the problem.
func (p *Problem) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	for key, values := range p.header {
		h[key] = values
	}
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int((p.retryAfter+time.Second-1)/time.Second)))
	}
	h.Set("Cache-Control", "no-store")
	writeJSON(w, p.Status, "application/problem+json", p)
}

// writeJSON answers with v. That v can be encoded is ours to guarantee.
func writeJSON(w http.ResponseWriter, status int, mediaType string, v any) {
	b := append(encode(v, jsontext.Multiline(true)), '\n')
	h := w.Header()
	h.Set("Content-Type", mediaType)
	h.Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	_, _ = w.Write(b) // an error says that the client has gone
}

// encode writes v as JSON. That it can be written is ours to guarantee.
func encode(v any, o ...json.Options) jsontext.Value {
	b, err := json.Marshal(v, append(o, json.Deterministic(true))...)
	if err != nil {
		panic(fmt.Sprintf("api: encode %T: %v", v, err))
	}
	return b
}

// encodeCursor hides what a page begins after: clients must not build it.
func encodeCursor(after string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(after))
}

func decodeCursor(cursor string) (after string, err error) {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(b) > 1024 {
		return "", invalid(catalog.Problem{Field: "cursor", Msg: "not one that a list answered with"})
	}
	return string(b), nil
}

// Forbidden is the answer to who may not do that at all.
func Forbidden(detail string) http.Handler {
	return problem(http.StatusForbidden, "forbidden", "%s", detail)
}
