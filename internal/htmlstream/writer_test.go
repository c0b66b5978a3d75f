package htmlstream_test

import (
	"bytes"
	"testing"

	"deckle/internal/htmlstream"
)

func TestSmoke(t *testing.T) {
	for _, doc := range []string{
		"", "x", "<!doctype html><head><title>x</title></head><body><p>y</p></body></html>",
		"<!doctype html><title>x</title><p>y", "  &#32;x", "<p>x<svg><title/>s</svg><div></body>\n",
	} {
		var b bytes.Buffer
		w := htmlstream.NewWriter(&b, htmlstream.Options{CharsetKnown: true}, func(p htmlstream.Point) []byte {
			return []byte{'[', map[htmlstream.Point]byte{1: 'S', 2: 'H', 4: 'L', 8: 'B', 16: 'E'}[p], ']'}
		})
		w.Late()
		w.Write([]byte(doc))
		w.Close()
		t.Logf("%q", b.String())
	}
}
