package web_test

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"deckle/web"
)

// The budget of the page plane's contract for the GPT part.
const maxClientBytes = 6 << 10

func get(method, path, accept string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	if accept != "" {
		r.Header.Set("Accept-Encoding", accept)
	}
	w := httptest.NewRecorder()
	web.Client().ServeHTTP(w, r)
	return w
}

func TestClientIsSmallAndCachedForEver(t *testing.T) {
	w := get(http.MethodGet, web.ClientPath(), "br, gzip;q=0.8")
	if w.Code != http.StatusOK {
		t.Fatalf("GET %s: status %d", web.ClientPath(), w.Code)
	}
	for key, want := range map[string]string{
		"Cache-Control":          "public, max-age=31536000, immutable",
		"Content-Encoding":       "gzip",
		"Content-Type":           "text/javascript; charset=utf-8",
		"Vary":                   "Accept-Encoding",
		"X-Content-Type-Options": "nosniff",
	} {
		if got := w.Header().Get(key); got != want {
			t.Errorf("%s = %q, want %q", key, got, want)
		}
	}
	if n := w.Body.Len(); n > maxClientBytes {
		t.Errorf("the client has %d bytes gzipped, its budget is %d", n, maxClientBytes)
	}

	z, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	code, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if plain := get(http.MethodGet, web.ClientPath(), "gzip;q=0").Body.String(); plain != string(code) {
		t.Error("the gzipped client is not the plain one")
	}
	sum := sha256.Sum256(code)
	if want := "/_deckle/client-" + hex.EncodeToString(sum[:8]) + ".js"; web.ClientPath() != want {
		t.Errorf("ClientPath() = %s, want the name of its content, %s", web.ClientPath(), want)
	}
}

func TestClientAnswersNothingElse(t *testing.T) {
	for _, tt := range []struct{ method, path string }{
		{http.MethodPost, web.ClientPath()},
		{http.MethodGet, web.ClientPath() + "/"},
		{http.MethodGet, "/_deckle/client-0000000000000000.js"},
		{http.MethodGet, "/_deckle/slots-runner.js"},
		{http.MethodGet, "/_deckle/"},
	} {
		w := get(tt.method, tt.path, "")
		if w.Code != http.StatusNotFound || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s %s: %d, Cache-Control %q; want 404, no-store",
				tt.method, tt.path, w.Code, w.Header().Get("Cache-Control"))
		}
	}
}

func TestHeadIsGetWithoutBody(t *testing.T) {
	g, h := get(http.MethodGet, web.ClientPath(), ""), get(http.MethodHead, web.ClientPath(), "")
	if h.Code != http.StatusOK || h.Body.Len() != 0 {
		t.Errorf("HEAD: status %d and %d bytes, want 200 and none", h.Code, h.Body.Len())
	}
	if got, want := h.Header().Get("Content-Length"), g.Header().Get("Content-Length"); got != want || got == "" {
		t.Errorf("Content-Length of HEAD = %q, of GET %q", got, want)
	}
}

func TestRunnersCanBeInlined(t *testing.T) {
	for name, runner := range map[string]string{"slots": web.SlotsRunner(), "bids": web.BidsRunner()} {
		if len(runner) > 1<<10 {
			t.Errorf("%s: %d bytes in every page, want at most 1 KiB", name, len(runner))
		}
		// What changes the state of the HTML tokenizer inside a script element.
		for _, bad := range []string{"</script", "<script", "<!--", "-->"} {
			if strings.Contains(strings.ToLower(runner), bad) {
				t.Errorf("%s contains %q", name, bad)
			}
		}
		for i, c := range []byte(runner) {
			if c > 0x7e || c < 0x20 {
				t.Errorf("%s has the byte %#x at %d, want printable ASCII", name, c, i)
			}
		}
		sum := sha256.Sum256([]byte(runner))
		want := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
		if got := web.Hash(runner); got != want {
			t.Errorf("%s: Hash = %s, want %s", name, got, want)
		}
	}
}
