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

// Budgets of the contracts: what a page loads, gzipped, and what every page has in it.
const (
	maxClientBytes   = 6 << 10
	maxReaderBytes   = 6 << 10
	maxMagazineBytes = 14 << 10
	maxRunnerBytes   = 1200
)

func get(method, path, accept string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	if accept != "" {
		r.Header.Set("Accept-Encoding", accept)
	}
	w := httptest.NewRecorder()
	web.Client().ServeHTTP(w, r)
	return w
}

func TestScriptsAreSmallAndCached(t *testing.T) {
	const forEver = "public, max-age=31536000, immutable"
	for _, tt := range []struct {
		path, cacheControl string
		budget             int
	}{
		{web.ClientPath(), forEver, maxClientBytes},
		{web.ReaderPath(), forEver, maxReaderBytes},
		{web.MagazinePath(), forEver, maxMagazineBytes},
		{web.TagPath, "public, max-age=600, stale-while-revalidate=86400", maxReaderBytes},
	} {
		w := get(http.MethodGet, tt.path, "br, gzip;q=0.8")
		if w.Code != http.StatusOK {
			t.Fatalf("GET %s: status %d", tt.path, w.Code)
		}
		for key, want := range map[string]string{
			"Access-Control-Allow-Origin":  "*",
			"Cache-Control":                tt.cacheControl,
			"Content-Encoding":             "gzip",
			"Content-Type":                 "text/javascript; charset=utf-8",
			"Cross-Origin-Resource-Policy": "cross-origin",
			"Vary":                         "Accept-Encoding",
			"X-Content-Type-Options":       "nosniff",
		} {
			if got := w.Header().Get(key); got != want {
				t.Errorf("%s: %s = %q, want %q", tt.path, key, got, want)
			}
		}
		if n := w.Body.Len(); n > tt.budget {
			t.Errorf("%s has %d bytes gzipped, its budget is %d", tt.path, n, tt.budget)
		}
		code := unzip(t, w.Body)
		if plain := get(http.MethodGet, tt.path, "gzip;q=0").Body.String(); plain != code {
			t.Errorf("%s gzipped is not what it is plain", tt.path)
		}
		sum := sha256.Sum256([]byte(code))
		if tt.cacheControl == forEver && !strings.HasSuffix(tt.path, "-"+hex.EncodeToString(sum[:8])+".js") {
			t.Errorf("%s is not named by its content", tt.path)
		}
	}
}

func unzip(t *testing.T, r io.Reader) string {
	t.Helper()
	z, err := gzip.NewReader(r)
	if err != nil {
		t.Fatal(err)
	}
	code, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(code)
}

// The tag's script is the reader plane's, and that one knows which magazine goes
// with it.
func TestScriptsBelongTogether(t *testing.T) {
	reader := get(http.MethodGet, web.ReaderPath(), "").Body.String()
	if get(http.MethodGet, web.TagPath, "").Body.String() != reader {
		t.Errorf("%s is not %s", web.TagPath, web.ReaderPath())
	}
	if !strings.Contains(reader, web.MagazinePath()) {
		t.Errorf("%s does not load %s", web.ReaderPath(), web.MagazinePath())
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
		if len(runner) > maxRunnerBytes {
			t.Errorf("%s: %d bytes in every page, want at most %d", name, len(runner), maxRunnerBytes)
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
