package sim

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A Fault is a way in which a server fails that no status code tells. The zero
// value is none.
type Fault string

const (
	Hang           Fault = "hang"            // accepts and never answers
	Drip           Fault = "drip"            // a correct header, then one byte a second
	EndlessHeaders Fault = "endless-headers" // a header field a while, never the empty line
	ServerError    Fault = "500"             // Internal Server Error, in plain text
	HTMLPage       Fault = "html"            // status 200 and an HTML page
	TruncatedJSON  Fault = "truncated-json"  // ends within a string
	Huge           Fault = "huge"            // 100 MB of well-formed JSON
	GzipBomb       Fault = "gzip-bomb"       // 1 GB of white space and an object, in 1 MB of gzip
	Reset          Fault = "reset"           // the connection is cut without a byte
)

// Faults are all faults.
func Faults() []Fault {
	return []Fault{Hang, Drip, EndlessHeaders, ServerError, HTMLPage, TruncatedJSON, Huge, GzipBomb, Reset}
}

// serve fails in f's way. It returns when the client is gone or has got
// everything that there is.
func (f Fault) serve(w http.ResponseWriter, r *http.Request) {
	// The server notices that a client has gone only once the body has been read.
	_, _ = io.Copy(io.Discard, r.Body)
	ctx := r.Context()
	switch f {
	case Hang:
		<-ctx.Done()
	case Drip:
		drip(ctx, w)
	case EndlessHeaders:
		endlessHeaders(ctx, w)
	case ServerError:
		http.Error(w, "Critical error while running the auction", http.StatusInternalServerError)
	case HTMLPage:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<!doctype html><title>504</title><h1>The upstream did not answer</h1>")
	case TruncatedJSON:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"x","seatbid":[{"seat":"automatad","bid":[{"id":"b","impid":"to`)
	case Huge:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"`)
		_, _ = io.CopyN(w, repeat('a'), 100<<20)
		_, _ = io.WriteString(w, `"}`)
	case GzipBomb:
		gzipBomb(w)
	case Reset:
	}
	if f == Hang || f == Reset {
		panic(http.ErrAbortHandler) // cuts the connection; net/http logs nothing for it
	}
}

// drip writes a correct answer far too slowly.
func drip(ctx context.Context, w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	flush := http.NewResponseController(w).Flush
	for _, b := range []byte(`{"id":"drip","seatbid":[],"cur":"USD"}`) {
		if _, err := w.Write([]byte{b}); err != nil || flush() != nil || !wait(ctx, time.Second) {
			return
		}
	}
}

// endlessHeaders writes header fields until the client leaves. It needs the bare
// connection: net/http would end the header at the first byte of the body.
func endlessHeaders(ctx context.Context, w http.ResponseWriter) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = rw.WriteString("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
	for i := 0; ; i++ {
		if _, err := rw.WriteString("X-More-" + strconv.Itoa(i) + ": to come\r\n"); err != nil {
			return
		}
		if rw.Flush() != nil || !wait(ctx, 100*time.Millisecond) {
			return
		}
	}
}

// gzipBomb writes about 1 MB that decodes to 1 GB: white space in one gzip member,
// repeated (RFC 1952 section 2.2), and an object at the end.
func gzipBomb(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Encoding", "gzip")
	const members, perMember = 64, 16 << 20
	blanks := gzipMember(io.LimitReader(repeat(' '), perMember))
	for range members {
		if _, err := w.Write(blanks); err != nil {
			return
		}
	}
	_, _ = w.Write(gzipMember(strings.NewReader("{}")))
}

// gzipMember is what r reads as one gzip member.
func gzipMember(r io.Reader) []byte {
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	_, _ = io.Copy(z, r) // neither the reader nor the buffer fails
	_ = z.Close()
	return buf.Bytes()
}

// repeat is an endless reader of one byte.
type repeat byte

func (b repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(b)
	}
	return len(p), nil
}
