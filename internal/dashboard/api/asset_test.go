package api

import (
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"deckle/internal/catalog"
	"deckle/internal/store/memory"
)

// An asset can be looked at, and nothing else.
func TestServeAsset(t *testing.T) {
	var b strings.Builder
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 3, 2))); err != nil {
		t.Fatal(err)
	}
	blobs := memory.NewBlobs()
	asset, err := catalog.Rehost(t.Context(), blobs, []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		method string
		status int
		body   string
	}{
		{http.MethodGet, http.StatusOK, b.String()},
		{http.MethodHead, http.StatusOK, ""},
		{http.MethodPost, http.StatusMethodNotAllowed, "Method Not Allowed\n"},
		{http.MethodDelete, http.StatusMethodNotAllowed, "Method Not Allowed\n"},
	} {
		w := httptest.NewRecorder()
		if err := ServeAsset(w, httptest.NewRequest(tt.method, asset.Src, nil), blobs, assetID(asset.Src)); err != nil {
			t.Fatal(err)
		}
		h := w.Header()
		if w.Code != tt.status || w.Body.String() != tt.body {
			t.Errorf("%s: status %d, %d bytes", tt.method, w.Code, w.Body.Len())
		}
		if w.Code == http.StatusOK && h.Get("Content-Length") != strconv.Itoa(b.Len()) {
			t.Errorf("%s: Content-Length %q", tt.method, h.Get("Content-Length"))
		}
		if w.Code == http.StatusOK && h.Get("Cross-Origin-Resource-Policy") != "cross-origin" {
			t.Errorf("%s: pages with Cross-Origin-Embedder-Policy cannot show it: %v", tt.method, h)
		}
		if w.Code != http.StatusOK && (h.Get("Allow") != "GET, HEAD" || h.Get("Etag") != "" || strings.Contains(h.Get("Cache-Control"), "max-age")) {
			t.Errorf("%s: %v", tt.method, h)
		}
	}
}
