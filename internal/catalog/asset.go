package catalog

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	_ "image/gif"
	_ "image/jpeg"
	_ "image/png"
	"io"
	"slices"
	"strings"

	_ "golang.org/x/image/webp"

	"deckle/internal/store"
)

// Limits of an image. A page of a magazine fills a screen.
const (
	MaxAssetBytes = 5 << 20
	maxImageSide  = 8192
	maxPixels     = 16 << 20 // 64 MiB when decoded
	maxSVGDepth   = 64
)

// An Asset is an image that we serve ourselves.
type Asset struct {
	Src         string `json:"src"` // its path: /_deckle/asset/<SHA-256>
	ContentType string `json:"contentType"`
	W           int    `json:"w"` // pixels; 0 for SVG
	H           int    `json:"h"`
}

// Blobs keep the bytes of assets.
type Blobs = store.Blobs

const svgType = "image/svg+xml"

// Rehost checks an image and keeps it under its SHA-256. What it is follows from
// its bytes alone. Its error is an [*InvalidError] for what is not a whole PNG, JPEG,
// GIF or WebP within the limits, or an SVG without anything that runs or loads.
//
// Whoever serves it sends ContentType with nosniff, and a policy of sandbox and
// default-src 'none' with an SVG.
func Rehost(ctx context.Context, b Blobs, data []byte) (Asset, error) {
	a, problem := examine(data)
	if problem != nil {
		return Asset{}, &InvalidError{Problems: []Problem{*problem}}
	}
	id, err := b.Put(ctx, data, a.ContentType)
	if err != nil {
		return Asset{}, fmt.Errorf("keep image: %w", err)
	}
	a.Src = AssetPath + id
	return a, nil
}

// examine says what an image is, or what is wrong with it.
func examine(data []byte) (Asset, *Problem) {
	const remedy = "PNG, JPEG, GIF, WebP or SVG"
	if len(data) > MaxAssetBytes {
		return Asset{}, &Problem{Msg: fmt.Sprintf("has %d bytes", len(data)), Remedy: fmt.Sprintf("at most %d", MaxAssetBytes)}
	}
	kind := sniff(data)
	if kind == svgType {
		if err := checkSVG(data); err != nil {
			return Asset{}, &Problem{Msg: "SVG is refused: " + err.Error(), Remedy: "shapes, text and gradients only; no scripts, handlers, styles or references to elsewhere"}
		}
		return Asset{ContentType: kind}, nil
	}
	if kind == "" {
		return Asset{}, &Problem{Msg: "is not an image that we know", Remedy: remedy}
	}
	// The header says how large the picture is before anything of it is decoded.
	config, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return Asset{}, &Problem{Msg: "cannot be read: " + err.Error(), Remedy: remedy}
	}
	if config.Width < 1 || config.Height < 1 || config.Width > maxImageSide || config.Height > maxImageSide ||
		config.Width*config.Height > maxPixels {
		return Asset{}, &Problem{
			Msg:    fmt.Sprintf("has %d×%d pixels", config.Width, config.Height),
			Remedy: fmt.Sprintf("1 to %d on a side, %d in all", maxImageSide, maxPixels),
		}
	}
	if _, _, err := image.Decode(bytes.NewReader(data)); err != nil {
		return Asset{}, &Problem{Msg: "is damaged: " + err.Error(), Remedy: remedy}
	}
	return Asset{ContentType: kind, W: config.Width, H: config.Height}, nil
}

// sniff is the content type by the first bytes; "" for none that we take.
func sniff(data []byte) string {
	switch {
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(data, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(data, []byte("GIF87a")), bytes.HasPrefix(data, []byte("GIF89a")):
		return "image/gif"
	case len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP":
		return "image/webp"
	case bytes.HasPrefix(bytes.TrimLeft(bytes.TrimPrefix(data, []byte("\ufeff")), " \t\r\n"), []byte("<")):
		return svgType
	}
	return ""
}

const svgNamespace = "http://www.w3.org/2000/svg"

// svgElements and svgAttributes are what an SVG may have: what draws. Everything
// else is refused, so that what we do not know cannot run or load anything.
var svgElements = []string{
	"svg", "g", "defs", "symbol", "use", "title", "desc", "path", "rect", "circle", "ellipse", "line", "polyline", "polygon",
	"text", "tspan", "linearGradient", "radialGradient", "stop", "clipPath", "mask", "pattern",
}

var svgAttributes = []string{
	"id", "class", "version", "viewBox", "width", "height", "x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r", "rx", "ry", "fx", "fy",
	"dx", "dy", "d", "points", "transform", "preserveAspectRatio", "pathLength", "role", "lang", "space",
	"fill", "fill-opacity", "fill-rule", "stroke", "stroke-width", "stroke-linecap", "stroke-linejoin", "stroke-miterlimit",
	"stroke-dasharray", "stroke-dashoffset", "stroke-opacity", "opacity", "color", "display", "visibility", "overflow",
	"clip-path", "clip-rule", "clipPathUnits", "mask", "maskUnits", "maskContentUnits", "vector-effect", "paint-order",
	"gradientUnits", "gradientTransform", "spreadMethod", "offset", "stop-color", "stop-opacity",
	"patternUnits", "patternContentUnits", "patternTransform", "shape-rendering", "text-rendering", "mix-blend-mode",
	"font-family", "font-size", "font-style", "font-weight", "letter-spacing", "word-spacing", "text-anchor",
	"dominant-baseline", "alignment-baseline", "baseline-shift", "writing-mode", "textLength", "lengthAdjust", "aria-label", "aria-hidden",
}

// checkSVG reads an SVG as XML without entities and takes nothing that it does not
// know.
func checkSVG(data []byte) error {
	d := xml.NewDecoder(bytes.NewReader(data))
	d.Strict = true
	depth, seen := 0, false
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			if !seen || depth > 0 {
				return errors.New("it is not whole")
			}
			return nil
		}
		if err != nil {
			return err
		}
		switch t := token.(type) {
		case xml.Directive:
			return errors.New("it has a DOCTYPE or another declaration")
		case xml.ProcInst:
			if t.Target != "xml" {
				return fmt.Errorf("it has a processing instruction %s", quote(t.Target))
			}
		case xml.StartElement:
			if depth == 0 && (seen || t.Name.Local != "svg") {
				return errors.New("its root is not one svg element")
			}
			if depth++; depth > maxSVGDepth {
				return fmt.Errorf("it is nested deeper than %d", maxSVGDepth)
			}
			seen = true
			if err := checkSVGElement(t); err != nil {
				return err
			}
		case xml.EndElement:
			depth--
		case xml.CharData:
			if depth == 0 && len(bytes.TrimSpace(bytes.TrimPrefix(t, []byte("\ufeff")))) > 0 {
				return errors.New("it has text outside its root")
			}
		}
	}
}

func checkSVGElement(t xml.StartElement) error {
	if t.Name.Space != svgNamespace || !slices.Contains(svgElements, t.Name.Local) {
		return fmt.Errorf("it has an element %s", quote(t.Name.Local))
	}
	for _, a := range t.Attr {
		switch {
		case a.Name.Space == "xmlns" || a.Name.Space == "" && a.Name.Local == "xmlns":
		case a.Name.Local == "href":
			if !strings.HasPrefix(a.Value, "#") {
				return fmt.Errorf("it refers to %s", quote(a.Value))
			}
		case !slices.Contains(svgAttributes, a.Name.Local):
			return fmt.Errorf("it has an attribute %s", quote(a.Name.Local))
		case !localOnly(a.Value):
			return fmt.Errorf("it refers to something in %s", quote(a.Value))
		}
	}
	return nil
}

// localOnly reports whether every url() of a presentation attribute points into
// the document. A backslash could hide one: CSS has escapes.
func localOnly(value string) bool {
	v := strings.ToLower(value)
	if strings.ContainsAny(v, `\`) || strings.Contains(v, "/*") || strings.Contains(v, "image-set") || strings.Contains(v, "image(") {
		return false
	}
	for {
		_, rest, found := strings.Cut(v, "url")
		if !found {
			return true
		}
		if !strings.HasPrefix(strings.TrimLeft(rest, "( \t\r\n'\""), "#") {
			return false
		}
		v = rest
	}
}
