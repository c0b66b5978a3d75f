package catalog_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"deckle/internal/catalog"
	"deckle/internal/store"
	"deckle/internal/store/memory"
)

// picture is 3×2 pixels, written by an encoder.
func picture(t testing.TB, encode func(*bytes.Buffer, image.Image) error) []byte {
	t.Helper()
	img := image.NewPaletted(image.Rect(0, 0, 3, 2), color.Palette{color.Black, color.White})
	var b bytes.Buffer
	if err := encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func asPNG(b *bytes.Buffer, i image.Image) error  { return png.Encode(b, i) }
func asJPEG(b *bytes.Buffer, i image.Image) error { return jpeg.Encode(b, i, nil) }
func asGIF(b *bytes.Buffer, i image.Image) error  { return gif.Encode(b, i, nil) }

// webp is one white pixel (lossless).
func webp(t testing.TB) []byte {
	data, err := base64.StdEncoding.DecodeString("UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

const svg = `<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 10 10">
  <defs><linearGradient id="g"><stop offset="0" stop-color="#fff"/></linearGradient><path id="p" d="M0 0h1"/></defs>
  <title>A sign</title><!-- drawn by hand -->
  <g transform="scale(2)"><rect width="4" height="4" fill="url(#g)"/><use xlink:href="#p"/><text x="1" y="2">Inn</text></g>
</svg>`

func TestRehost(t *testing.T) {
	blobs := memory.NewBlobs()
	for _, test := range []struct {
		data        []byte
		contentType string
		w, h        int
	}{
		{picture(t, asPNG), "image/png", 3, 2},
		{picture(t, asJPEG), "image/jpeg", 3, 2},
		{picture(t, asGIF), "image/gif", 3, 2},
		{webp(t), "image/webp", 1, 1},
		{[]byte(svg), "image/svg+xml", 0, 0},
		{[]byte("\ufeff  \n" + `<svg xmlns="http://www.w3.org/2000/svg"/>`), "image/svg+xml", 0, 0},
	} {
		a, err := catalog.Rehost(t.Context(), blobs, test.data)
		if err != nil {
			t.Errorf("%s: %v", test.contentType, err)
			continue
		}
		if a.ContentType != test.contentType || a.W != test.w || a.H != test.h {
			t.Errorf("%s is taken for %+v", test.contentType, a)
		}
		kept, err := blobs.Get(t.Context(), strings.TrimPrefix(a.Src, catalog.AssetPath))
		if err != nil || !bytes.Equal(kept.Data, test.data) || kept.ContentType != test.contentType {
			t.Errorf("%s: kept is %q, %v", a.Src, kept.ContentType, err)
		}
		// And its path is one that a creative takes.
		e := &catalog.Creative{ID: "a", Content: catalog.Content{Pages: []catalog.Page{{Image: &catalog.Image{Src: a.Src, Alt: "a"}}}}}
		if err := catalog.CheckCreativeForm(e); err != nil {
			t.Error(err)
		}
	}
}

// bomb is a PNG whose header promises more pixels than anybody has memory for.
func bomb(t testing.TB, w, h uint32) []byte {
	data := picture(t, asPNG)
	binary.BigEndian.PutUint32(data[16:], w)
	binary.BigEndian.PutUint32(data[20:], h)
	binary.BigEndian.PutUint32(data[29:], crc32.ChecksumIEEE(data[12:29]))
	return data
}

func TestImagesThatAreRefused(t *testing.T) {
	whole := picture(t, asPNG)
	for _, test := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "is not an image that we know"},
		{"text", []byte("hello"), "is not an image that we know"},
		{"html", []byte("<!doctype html><script>alert(1)</script>"), "SVG is refused"},
		{"avif", []byte("\x00\x00\x00\x20ftypavif"), "is not an image that we know"},
		{"half a PNG", whole[:len(whole)-20], "is damaged"},
		{"the head of a PNG", whole[:12], "cannot be read"},
		{"a large file", append(bytes.Clone(whole), make([]byte, catalog.MaxAssetBytes)...), "has 52"},
		{"a bomb", bomb(t, 8192, 8192), "has 8192×8192 pixels"},
		{"a long bomb", bomb(t, 100_000, 1), "has 100000×1 pixels"},
	} {
		blobs := memory.NewBlobs()
		_, err := catalog.Rehost(t.Context(), blobs, test.data)
		if !errors.Is(err, catalog.ErrInvalid) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", test.name, err, test.want)
		}
	}
}

// Two images are looked at at once, whoever sends them; the third waits for as long as
// it may.
func TestRehostIsBounded(t *testing.T) {
	first, second := catalog.TakeDecoder(), catalog.TakeDecoder()
	blobs, data := memory.NewBlobs(), picture(t, asPNG)
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error)
	go func() {
		_, err := catalog.Rehost(ctx, blobs, data)
		done <- err
	}()
	gone := errors.New("the sender is gone")
	cancel(gone)
	if err := <-done; !errors.Is(err, gone) {
		t.Errorf("while two are looked at: %v", err)
	}
	go func() {
		_, err := catalog.Rehost(t.Context(), blobs, data)
		done <- err
	}()
	first()
	if err := <-done; err != nil {
		t.Errorf("when it is its turn: %v", err)
	}
	second()
}

func TestRehostSaysWhenTheStoreIsGone(t *testing.T) {
	blobs := memory.NewBlobs()
	blobs.Fail(down)
	if _, err := catalog.Rehost(t.Context(), blobs, picture(t, asPNG)); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

// hostile are SVGs that run or load something, or might.
var hostile = map[string]string{
	"script":                  `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`,
	"script in its namespace": `<svg xmlns="http://www.w3.org/2000/svg"><h:script xmlns:h="http://www.w3.org/1999/xhtml">1</h:script></svg>`,
	"html namespace":          `<svg xmlns="http://www.w3.org/2000/svg"><path xmlns="http://www.w3.org/1999/xhtml" d=""/></svg>`,
	"handler":                 `<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`,
	"handler deep":            `<svg xmlns="http://www.w3.org/2000/svg"><g><rect onclick="alert(1)"/></g></svg>`,
	"handler upper case":      `<svg xmlns="http://www.w3.org/2000/svg"><rect ONCLICK="alert(1)"/></svg>`,
	"foreignObject":           `<svg xmlns="http://www.w3.org/2000/svg"><foreignObject/></svg>`,
	"image":                   `<svg xmlns="http://www.w3.org/2000/svg"><image href="https://evil.example/a.png"/></svg>`,
	"use elsewhere":           `<svg xmlns="http://www.w3.org/2000/svg"><use href="https://evil.example/a.svg#x"/></svg>`,
	"use data":                `<svg xmlns="http://www.w3.org/2000/svg"><use href="data:image/svg+xml,x"/></svg>`,
	"use script":              `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"><use xlink:href="javascript:alert(1)"/></svg>`,
	"link":                    `<svg xmlns="http://www.w3.org/2000/svg"><a href="#x"><rect/></a></svg>`,
	"style element":           `<svg xmlns="http://www.w3.org/2000/svg"><style>@import "https://evil.example/a.css"</style></svg>`,
	"style attribute":         `<svg xmlns="http://www.w3.org/2000/svg"><rect style="fill:url(https://evil.example/)"/></svg>`,
	"fill from elsewhere":     `<svg xmlns="http://www.w3.org/2000/svg"><rect fill="url(https://evil.example/a.svg#g)"/></svg>`,
	"fill hidden by case":     `<svg xmlns="http://www.w3.org/2000/svg"><rect fill="URL( 'https://evil.example/')"/></svg>`,
	"fill hidden by escape":   `<svg xmlns="http://www.w3.org/2000/svg"><rect fill="\75rl(https://evil.example/)"/></svg>`,
	"fill after a fragment":   `<svg xmlns="http://www.w3.org/2000/svg"><rect fill="url(#g) url(//evil.example)"/></svg>`,
	"image-set":               `<svg xmlns="http://www.w3.org/2000/svg"><rect mask='image-set("https://evil.example/a")'/></svg>`,
	"set":                     `<svg xmlns="http://www.w3.org/2000/svg"><set attributeName="href" to="javascript:alert(1)"/></svg>`,
	"animate":                 `<svg xmlns="http://www.w3.org/2000/svg"><animate attributeName="href" values="javascript:alert(1)"/></svg>`,
	"filter image":            `<svg xmlns="http://www.w3.org/2000/svg"><filter><feImage href="https://evil.example/"/></filter></svg>`,
	"entities":                `<!DOCTYPE svg [<!ENTITY a "b">]><svg xmlns="http://www.w3.org/2000/svg">&a;</svg>`,
	"doctype":                 `<!DOCTYPE svg SYSTEM "https://evil.example/a.dtd"><svg xmlns="http://www.w3.org/2000/svg"/>`,
	"stylesheet":              `<?xml-stylesheet href="https://evil.example/a.css"?><svg xmlns="http://www.w3.org/2000/svg"/>`,
	"base":                    `<svg xmlns="http://www.w3.org/2000/svg" xml:base="https://evil.example/"><use href="#a"/></svg>`,
	"no namespace":            `<svg><rect/></svg>`,
	"two roots":               `<svg xmlns="http://www.w3.org/2000/svg"/><svg xmlns="http://www.w3.org/2000/svg"/>`,
	"html after it":           `<svg xmlns="http://www.w3.org/2000/svg"/><script>alert(1)</script>`,
	"text after it":           `<svg xmlns="http://www.w3.org/2000/svg"/>alert(1)`,
	"not closed":              `<svg xmlns="http://www.w3.org/2000/svg"><g>`,
	"deep":                    `<svg xmlns="http://www.w3.org/2000/svg">` + strings.Repeat("<g>", 100) + strings.Repeat("</g>", 100) + `</svg>`,
	"other charset":           `<?xml version="1.0" encoding="UTF-7"?><svg xmlns="http://www.w3.org/2000/svg"/>`,
	"html root":               `<html><svg xmlns="http://www.w3.org/2000/svg"/></html>`,
}

func TestHostileSVG(t *testing.T) {
	for name, data := range hostile {
		if a, err := catalog.Examine([]byte(data)); !errors.Is(err, catalog.ErrInvalid) {
			t.Errorf("%s: taken as %+v, %v", name, a, err)
		}
	}
}

// What is taken has nothing in it that a browser would run or load, as a plain
// search sees it.
func FuzzExamine(f *testing.F) {
	for _, data := range hostile {
		f.Add([]byte(data))
	}
	f.Add([]byte(svg))
	f.Add(picture(f, asPNG))
	f.Add(picture(f, asGIF))
	f.Add(picture(f, asJPEG))
	f.Add(webp(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := catalog.Examine(data)
		if err != nil || a.ContentType != "image/svg+xml" {
			return
		}
		text := strings.ToLower(string(data))
		for _, bad := range []string{"<script", "<foreignobject", "<image", "<style", "<!doctype", "<a ", "<iframe", "javascript:\"", "url(http"} {
			if strings.Contains(outsideText(text), bad) {
				t.Errorf("taken with %s in it: %q", bad, data)
			}
		}
	})
}

// outsideText takes comments, CDATA and text between tags away.
func outsideText(s string) string {
	var b strings.Builder
	for s != "" {
		switch {
		case strings.HasPrefix(s, "<!--"):
			_, s, _ = strings.Cut(s[4:], "-->")
		case strings.HasPrefix(s, "<![cdata["):
			_, s, _ = strings.Cut(s, "]]>")
		case s[0] == '<':
			tag, rest, found := strings.Cut(s, ">")
			if !found {
				return b.String()
			}
			b.WriteString(tag + ">")
			s = rest
		default:
			next := strings.IndexByte(s, '<')
			if next < 0 {
				return b.String()
			}
			s = s[next:]
		}
	}
	return b.String()
}
