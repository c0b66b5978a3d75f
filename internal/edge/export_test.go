package edge

import (
	"bytes"
	"io"
	"net/http"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"deckle/web"
)

// Admit is admit for a client that goes in: the header that goes out, and the nonce.
func Admit(h http.Header, origin string) (out http.Header, nonce string, ok bool) {
	a, ok := admit(h, origin, needs{scripts: []string{web.ClientPath()}, images: true})
	out = h.Clone()
	a.apply(out)
	return out, a.nonce, ok
}

// NewEncoder writes a coding as an origin would: not by the code that is tested.
func NewEncoder(name string, w io.Writer) interface {
	io.WriteCloser
	Flush() error
} {
	switch name {
	case "br":
		return brotli.NewWriterLevel(w, 5)
	case "zstd":
		z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
		if err != nil {
			panic(err)
		}
		return z
	}
	return gzipped{}.encode(w)
}

// Encoded is text in a coding.
func Encoded(name, text string) string {
	var b bytes.Buffer
	z := NewEncoder(name, &b)
	_, _ = io.WriteString(z, text)
	_ = z.Close()
	return b.String()
}

// Decoded is what is in a body in a coding, and what was wrong with it, by another
// library where there is one.
func Decoded(name, body string) (string, error) {
	var r io.Reader = strings.NewReader(body)
	switch name {
	case "br":
		r = brotli.NewReader(r)
	case "zstd":
		z, err := zstd.NewReader(r)
		if err != nil {
			return "", err
		}
		defer z.Close()
		r = z
	case "gzip":
		r = gzipped{}.decode(r)
	}
	b, err := io.ReadAll(r)
	return string(b), err
}
