package catalog_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"slices"
	"strings"
	"testing"

	"deckle/internal/catalog"
)

// inSVG is an SVG with this in it.
func inSVG(body string) string {
	return `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">` + body + `</svg>`
}

// levels repeats a level of a bomb, which refers to the one below, over a rectangle.
func levels(n int, level func(i int) string) string {
	var b strings.Builder
	b.WriteString(`<rect id="x0" width="1" height="1"/>`)
	for i := 1; i <= n; i++ {
		b.WriteString(level(i))
	}
	return b.String()
}

// ten is an element ten times.
func ten(format string, args ...any) string { return strings.Repeat(fmt.Sprintf(format, args...), 10) }

// bombs are SVGs of some kilobytes that a browser would not be done with.
var bombs = map[string]struct{ body, want string }{
	"use": {levels(9, func(i int) string {
		return fmt.Sprintf(`<g id="x%d">%s</g>`, i, ten(`<use href="#x%d"/>`, i-1))
	}), "draw too much"},
	"use by xlink in defs": {levels(9, func(i int) string {
		return fmt.Sprintf(`<defs><symbol id="x%d">%s</symbol></defs>`, i, ten(`<use xlink:href="#x%d"/>`, i-1))
	}), "draw too much"},
	"use, the ids twice": {levels(9, func(i int) string {
		return fmt.Sprintf(`<g id="x%d">%s</g><g id="x%d"/>`, i, ten(`<use href="#x%d"/>`, i-1), i)
	}), "draw too much"},
	"use, the other way round": {`<use href="#x9"/>` + levels(9, func(i int) string {
		return fmt.Sprintf(`<g id="x%d">%s</g>`, i, ten(`<use href="#x%d"/>`, i-1))
	}), "draw too much"},
	"pattern": {levels(9, func(i int) string {
		return fmt.Sprintf(`<pattern id="x%d">%s</pattern>`, i, ten(`<rect fill="url(#x%d)"/>`, i-1))
	}), "draw too much"},
	"pattern, inherited": {levels(9, func(i int) string {
		return fmt.Sprintf(`<g fill="URL( '#x%d' )"><pattern id="x%d">%s</pattern></g>`, i-1, i, ten(`<rect/>`))
	}), "draw too much"},
	"pattern, inherited by what is used": {
		`<pattern id="p">` + strings.Repeat(`<rect/>`, 200) + `</pattern><g id="g">` + strings.Repeat(`<rect/>`, 200) + `</g><use fill="url(#p)" href="#g"/>`,
		"draw too much",
	},
	"mask": {levels(9, func(i int) string {
		return fmt.Sprintf(`<mask id="x%d">%s</mask>`, i, ten(`<rect mask="url(&quot;#x%d&quot;)"/>`, i-1))
	}), "draw too much"},
	"clip path": {levels(9, func(i int) string {
		return fmt.Sprintf(`<clipPath id="x%d">%s</clipPath>`, i, ten(`<rect clip-path="url(#x%d"/>`, i-1))
	}), "draw too much"},
	"one of each": {levels(9, func(i int) string {
		return fmt.Sprintf(`<%s id="x%d">%s</%[1]s>`, []string{"g", "pattern", "mask"}[i%3], i,
			ten([]string{`<rect fill="url(#x%d)"/>`, `<rect mask="url(#x%d)"/>`, `<use href="#x%d"/>`}[i%3], i-1))
	}), "draw too much"},
	"two urls": {levels(24, func(i int) string {
		return fmt.Sprintf(`<pattern id="x%d"><rect fill="url(#x%d) url(#x%d)"/></pattern>`, i, i-1, i-1)
	}), "draw too much"},
	"a long path, often": {
		`<path id="p" d="` + strings.Repeat("M0 0h1", 10_000) + `"/>` + strings.Repeat(`<use href="#p"/>`, 200), "draw too much",
	},
	"a long text, often": {
		`<text id="p">` + strings.Repeat("word ", 10_000) + `</text>` + strings.Repeat(`<use href="#p"/>`, 200), "draw too much",
	},
	"a deep chain": {levels(17, func(i int) string { return fmt.Sprintf(`<use id="x%d" href="#x%d"/>`, i, i-1) }), "nested deeper than 16"},
	"a deep chain, known": {levels(17, func(i int) string {
		return fmt.Sprintf(`<use id="x%d" href="#x%d"/>`, i, i-1)
	}) + `<use href="#x17"/>`, "nested deeper than 16"},
	"itself":          {`<use id="a" href="#a"/>`, "in a circle"},
	"what it is in":   {`<g id="a"><use href="#a"/></g>`, "in a circle"},
	"each other":      {`<g id="a"><use href="#b"/></g><g id="b"><use href="#a"/></g>`, "in a circle"},
	"a pattern of it": {`<pattern id="a"><rect fill="url(#a)"/></pattern>`, "in a circle"},
	"a pattern in it": {`<g fill="url(#a)"><pattern id="a"><rect/></pattern></g>`, "in a circle"},
	"a mask of it":    {`<mask id="a" mask="url(#a)"/>`, "in a circle"},
	"many urls": {
		`<pattern id="a">` + strings.Repeat(`<rect/>`, 10) + `</pattern><rect fill="` + strings.Repeat(`url(#a)`, 700_000) + `"/>`, "draw too much",
	},
	"many elements":     {strings.Repeat(`<g/>`, 50_000), "more than 50000 elements"},
	"an id in disguise": {`<rect id="a"/><use href="#%61"/>`, "refers to"},
	"an id with a view": {`<rect fill="url(#svgView(a))"/>`, "refers to"},
	"no id":             {`<use href="#"/>`, "refers to"},
}

func TestSVGBombs(t *testing.T) {
	for name, test := range bombs {
		data := []byte(inSVG(test.body))
		var a catalog.Asset
		var err error
		grown := allocated(func() { a, err = catalog.Examine(data) })
		if !errors.Is(err, catalog.ErrInvalid) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %+v, %v, want %s", name, a, err, test.want)
		}
		if most := int64(64<<10 + 128*len(data)); grown > most {
			t.Errorf("%s: %d bytes were allocated for %d", name, grown, len(data))
		}
	}
}

// What a drawing program makes of a picture is taken.
func TestSVGWithReferences(t *testing.T) {
	for name, body := range map[string]string{
		"a tree 1,000 times":     `<g id="tree">` + strings.Repeat(`<path d="M0 0h1v1z"/>`, 5) + `</g>` + strings.Repeat(`<use href="#tree" x="1"/>`, 1_000),
		"a wood of such":         levels(3, func(i int) string { return fmt.Sprintf(`<g id="x%d">%s</g>`, i, ten(`<use href="#x%d"/>`, i-1)) }),
		"a gradient everywhere":  `<g fill="url(#g)"><linearGradient id="g"><stop/><stop/></linearGradient>` + strings.Repeat(`<path/>`, 5_000) + `</g>`,
		"gradients of gradients": `<linearGradient id="a"><stop/></linearGradient><linearGradient id="b" href="#a"/><rect fill="url(#b)" stroke="url('#a') none"/>`,
		"a mask and a clip":      `<mask id="m"><rect/></mask><clipPath id="c"><rect/></clipPath>` + strings.Repeat(`<g mask="url(#m)" clip-path="url( #c )"/>`, 1_000),
		"a chain":                levels(16, func(i int) string { return fmt.Sprintf(`<use id="x%d" href="#x%d"/>`, i, i-1) }),
		"nobody":                 `<use href="#nobody"/>`,
		"an id of two words":     `<rect id="two words"/>`,
		"many elements":          strings.Repeat(`<g/>`, 49_999),
	} {
		if _, err := catalog.Examine([]byte(inSVG(body))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// animated is a GIF of so many frames of one pixel on a picture of this size, with
// colour tables of their own, as the encoder writes it.
func animated(t *testing.T, frames, w, h int) []byte {
	t.Helper()
	a := &gif.GIF{Config: image.Config{Width: w, Height: h, ColorModel: color.Palette{color.Black, color.White}}}
	for i := range frames {
		img := image.NewPaletted(image.Rect(0, 0, 1, 1), color.Palette{color.Black, color.White, color.Gray{uint8(i)}})
		a.Image, a.Delay = append(a.Image, img), append(a.Delay, 2)
	}
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, a); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// animatedPNG is a PNG with so many frame controls behind its header.
func animatedPNG(t *testing.T, frames int) []byte {
	whole := picture(t, asPNG)
	control := append([]byte("fcTL"), make([]byte, 26)...)
	chunk := binary.BigEndian.AppendUint32(nil, 26)
	chunk = append(chunk, control...)
	chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(control))
	return slices.Concat(whole[:33], bytes.Repeat(chunk, frames), whole[33:])
}

// animatedWebP is a WebP with so many frames, of an odd length, before its still.
func animatedWebP(t *testing.T, frames int) []byte {
	still := webp(t)
	extended := "VP8X\x0a\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00" // animated, 1×1
	data := slices.Concat(still[:12], []byte(extended), bytes.Repeat([]byte("ANMF\x03\x00\x00\x00abc\x00"), frames), still[12:])
	binary.LittleEndian.PutUint32(data[4:], uint32(len(data)-8))
	return data
}

func TestAnimations(t *testing.T) {
	one := animated(t, 1, 1, 1) // its first 19 bytes are its header and colour table
	comment := []byte("!\xfe\x03abc\x02,;\x00")
	for _, test := range []struct {
		name string
		data []byte
		want string // "" for what is taken
	}{
		{"some frames", animated(t, 1_000, 300, 250), ""},
		{"many frames", animated(t, 1_001, 1, 1), "has 1001 frames of 1×1 pixels"},
		{"very many frames", slices.Concat(one[:19], bytes.Repeat(one[19:len(one)-1], 100_000), one[len(one)-1:]), "has 100000 frames"},
		{"large frames", animated(t, 9, 4_096, 4_096), "has 9 frames of 4096×4096 pixels"},
		{"some large frames", animated(t, 8, 4_096, 4_096), ""},
		{"many frames and no end", bytes.TrimSuffix(animated(t, 1_001, 1, 1), []byte(";")), "has 1001 frames"},
		{"a comment", slices.Concat(one[:19], comment, one[19:]), ""},
		{"some frames of a PNG", animatedPNG(t, 1_000), ""},
		{"some frames of a WebP", animatedWebP(t, 1_000), ""},
		{"many frames of a WebP", animatedWebP(t, 1_001), "has 1001 frames of 1×1 pixels"},
		{"many frames of a PNG", animatedPNG(t, 1_001), "has 1001 frames of 3×2 pixels"},
	} {
		_, err := catalog.Examine(test.data)
		if test.want == "" && err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if test.want != "" && (!errors.Is(err, catalog.ErrInvalid) || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got %v, want %s", test.name, err, test.want)
		}
	}
}
