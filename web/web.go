// Package web holds what runs in a reader's browser: the scripts of the page plane
// and of the reader plane, built from TypeScript and served for ever under names
// that are their content, and the two runners that the edge writes into pages.
//
// The files of dist/ are made by web/build and committed; this package and
// everything above it needs no Node.
package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
)

//go:embed dist
var dist embed.FS

// Prefix is what every path that [Client] serves begins with.
const Prefix = "/_deckle/"

// SlotsRunner is the text of the script element that follows the data block of
// hole 1. It is the same for every page and ASCII, and nothing in it can end a
// script element.
func SlotsRunner() string { return read("slots-runner.js") }

// BidsRunner is the text of the script element that follows the data block of
// hole 2, with the properties of [SlotsRunner].
func BidsRunner() string { return read("bids-runner.js") }

// Hash is the CSP source that lets exactly this inline script run:
// 'sha256-…', the quotes included (CSP3 section 2.3.1, hash-source).
func Hash(runner string) string {
	sum := sha256.Sum256([]byte(runner))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// ClientPath is the path of the page plane's script, for the data block of hole 1:
// "/_deckle/client-HASH.js".
func ClientPath() string { return Prefix + named("client") }

// ReaderPath is the path of the reader plane's script, for the data block of hole 1
// of a page with magazine slots: "/_deckle/reader-HASH.js".
func ReaderPath() string { return Prefix + named("reader") }

// MagazinePath is the path of the module that defines <deckle-magazine>, for pages
// of our own: "/_deckle/magazine-HASH.js". The reader plane's script knows it.
func MagazinePath() string { return Prefix + named("magazine") }

// TagPath is where sites that have a script tag of ours instead of us in front of
// them find what is at [ReaderPath].
const TagPath = Prefix + "deckle.js"

// A file is what is served at one path.
type file struct {
	plain, zipped []byte
	cacheControl  string
}

const (
	forEver = "public, max-age=31536000, immutable"

	// Of a name that stays. A page that asks within a day gets what it has and
	// fetches the next version beside it.
	aWhile = "public, max-age=600, stale-while-revalidate=86400"
)

// Client serves the browser's scripts to GET and HEAD, from any origin: for a year
// where the path is named by the content, for ten minutes at [TagPath]. Everything
// else is a 404 that nothing may store: during a deploy the page of one version can
// ask the other one for its scripts.
func Client() http.Handler {
	files := make(map[string]file)
	for _, name := range []string{named("client"), named("reader"), named("magazine")} {
		plain := []byte(read(name))
		files[Prefix+name] = file{plain: plain, zipped: compress(plain), cacheControl: forEver}
	}
	tag := files[ReaderPath()]
	tag.cacheControl = aWhile
	files[TagPath] = tag

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		f, ok := files[r.URL.Path]
		if !ok || (r.Method != http.MethodGet && r.Method != http.MethodHead) {
			h.Set("Cache-Control", "no-store")
			http.Error(w, "not found", http.StatusNotFound)
			return
		}
		f.serve(w, r)
	})
}

func (f file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	body := f.plain
	if acceptsGzip(r.Header) {
		h.Set("Content-Encoding", "gzip")
		body = f.zipped
	}
	h.Set("Content-Type", "text/javascript; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", f.cacheControl)
	h.Set("Vary", "Accept-Encoding")
	// A module is asked for with CORS, and a page that embeds only what says so
	// (COEP) may be on another origin.
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	if r.Method == http.MethodGet {
		_, _ = w.Write(body) // an error says that the reader has gone
	}
}

// acceptsGzip reads Accept-Encoding as RFC 9110 section 12.5.3 has it, as far as
// that gzip is named, and not with a weight of zero.
func acceptsGzip(h http.Header) bool {
	for _, field := range h.Values("Accept-Encoding") {
		for coding := range strings.SplitSeq(field, ",") {
			name, params, _ := strings.Cut(coding, ";")
			if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
				continue
			}
			weight, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(params)), "q=")
			q, err := strconv.ParseFloat(weight, 64)
			return !ok || (err == nil && q > 0)
		}
	}
	return false
}

// compress cannot fail: it writes to memory.
func compress(b []byte) []byte {
	var buf bytes.Buffer
	z, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		panic(fmt.Sprintf("web: gzip: %v", err))
	}
	_, _ = z.Write(b)
	_ = z.Close()
	return buf.Bytes()
}

// named is the name in dist/ of a script that is named by its content; web/build
// keeps exactly one of each.
func named(script string) string {
	names, err := fs.Glob(dist, "dist/"+script+"-*.js")
	if err != nil || len(names) != 1 {
		panic(fmt.Sprintf("web: want one %s in dist, got %v, %v", script, names, err))
	}
	return strings.TrimPrefix(names[0], "dist/")
}

// read gives a file of dist/. That it is there was decided when we were built.
func read(name string) string {
	b, err := dist.ReadFile("dist/" + name)
	if err != nil {
		panic(fmt.Sprintf("web: %v", err))
	}
	return string(b)
}
