package sim

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// A Request is what a part of the world has been asked.
type Request struct {
	At     time.Time
	Method string
	URI    string // the request line's target, as it came
	Host   string
	Header http.Header
	Body   []byte // at most maxRecordedBody
}

// maxRecorded is how many requests or events a part remembers: the latest ones.
const maxRecorded = 4096

// maxRecordedBody is how much of a request's body is kept.
const maxRecordedBody = 64 << 10

// A record remembers the latest things that happened. The zero value is empty.
type record[T any] struct {
	mu    sync.Mutex
	items []T
}

func (r *record[T]) add(item T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.items) >= maxRecorded {
		r.items = append(r.items[:0], r.items[maxRecorded/2:]...)
	}
	r.items = append(r.items, item)
}

// snapshot is a copy of what is remembered, oldest first.
func (r *record[T]) snapshot() []T {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.items)
}

// note reads r's body, as far as it is kept, into the record. The handler reads
// the whole body from r.Body as if nothing had happened.
func note(rec *record[Request], r *http.Request) {
	body, _ := io.ReadAll(io.LimitReader(r.Body, maxRecordedBody)) // a body that breaks off is recorded as it came
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}
	rec.add(Request{
		At: time.Now(), Method: r.Method, URI: r.RequestURI, Host: r.Host,
		Header: r.Header.Clone(), Body: body,
	})
}
