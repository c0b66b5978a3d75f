package sim

import (
	"compress/gzip"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Page is a response that a test wants a [Publisher] to give, faults included.
// The zero value is an empty page with status 200.
type Page struct {
	Status int         // default: 200
	Header http.Header // default Content-Type: text/html; charset=utf-8
	Chunks []string    // each is flushed to the client before the next

	FirstByte time.Duration // before the status line
	Pause     time.Duration // before each further chunk

	// Gzip compresses for clients that accept it; the flushes remain.
	Gzip bool

	// Length declares the Content-Length. Greater than what Chunks have, the body
	// is truncated: the connection is cut at its end. 0: chunked.
	Length int

	// Stall keeps the connection open after the last chunk, without another byte,
	// until the client has gone.
	Stall bool

	// Abort cuts the connection after the last chunk, so that a chunked body has no
	// end.
	Abort bool
}

// serve writes the page, or as much of it as the page wants.
func (p Page) serve(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, 8<<20))
	if !wait(r.Context(), p.FirstByte) {
		return
	}
	h := w.Header()
	for name, values := range p.Header {
		h[name] = slices.Clone(values)
	}
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "text/html; charset=utf-8")
	}
	if p.Length > 0 {
		h.Set("Content-Length", strconv.Itoa(p.Length))
	}
	out := flusher(plain{w})
	if p.Gzip && p.Length == 0 {
		h.Add("Vary", "Accept-Encoding")
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			h.Set("Content-Encoding", "gzip")
			out = gzip.NewWriter(w)
		}
	}
	w.WriteHeader(max(p.Status, http.StatusOK))
	if r.Method == http.MethodHead {
		return
	}
	p.write(w, r, out)
}

// flusher is what plain and gzip writers have in common.
type flusher interface {
	io.WriteCloser
	Flush() error
}

// plain writes as it is.
type plain struct{ io.Writer }

func (plain) Flush() error { return nil }
func (plain) Close() error { return nil }

// write sends the chunks and then ends, stalls or cuts the connection.
func (p Page) write(w http.ResponseWriter, r *http.Request, out flusher) {
	flush := http.NewResponseController(w).Flush
	for i, chunk := range p.Chunks {
		if i > 0 && !wait(r.Context(), p.Pause) {
			return
		}
		if _, err := io.WriteString(out, chunk); err != nil || out.Flush() != nil || flush() != nil {
			return
		}
	}
	if p.Stall {
		<-r.Context().Done()
	}
	if p.Stall || p.Abort {
		panic(http.ErrAbortHandler) // cuts the connection; net/http logs nothing for it
	}
	_ = out.Close()
}
