package catalog

import (
	"bytes"
	"context"
	"encoding/binary"
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
	maxFrames     = 1_000
	maxAllPixels  = 128 << 20 // of an animation: each frame is one of its whole picture
	maxScans      = 64        // of a JPEG; an encoder makes 10, and each goes over the whole picture
	maxScanPixels = 512 << 20 // of all scans
	maxSVGDepth   = 64

	// What an SVG's references to itself may come to; see svgNode.
	maxSVGElements  = 50_000
	maxSVGHops      = 16 // of a reference in what another one refers to
	maxSVGExpansion = 5 << 20
	svgElementBytes = 512 // that a browser needs for one, its attributes and text left out
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

// maxDecoding is how many images are looked at at once in the whole process: a small
// file may take 64 MiB when it is decoded, and a process has one memory, whoever has
// sent it.
const maxDecoding = 2

// decoding has a place for each of them. It is what the process has, like its memory.
var decoding = make(chan struct{}, maxDecoding)

// Rehost checks an image, when it is its turn, and keeps it under its SHA-256. Two are
// looked at at once in the whole process; the others wait until ctx is done, and have
// its error. What it is follows from its bytes alone. Its error is an [*InvalidError] for what is not a whole PNG, JPEG,
// GIF or WebP within the limits, or an SVG without anything that runs or loads, or
// draws more than its size would let it without references to itself.
//
// Whoever serves it sends ContentType with nosniff, and a policy of sandbox and
// default-src 'none' with an SVG.
func Rehost(ctx context.Context, b Blobs, data []byte) (Asset, error) {
	a, err := examineInTurn(ctx, data)
	if err != nil {
		return Asset{}, err
	}
	id, err := b.Put(ctx, data, a.ContentType)
	if err != nil {
		return Asset{}, fmt.Errorf("keep image: %w", err)
	}
	a.Src = AssetPath + id
	return a, nil
}

// examineInTurn is examine with the bound.
func examineInTurn(ctx context.Context, data []byte) (Asset, error) {
	select {
	case decoding <- struct{}{}:
		defer func() { <-decoding }()
	case <-ctx.Done():
		return Asset{}, fmt.Errorf("wait to look at an image: %w", context.Cause(ctx))
	}
	a, problem := examine(data)
	if problem != nil {
		return Asset{}, &InvalidError{Problems: []Problem{*problem}}
	}
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
	if frames := countFrames(kind, data); frames > maxFrames || frames*config.Width*config.Height > maxAllPixels {
		return Asset{}, &Problem{
			Msg:    fmt.Sprintf("has %d frames of %d×%d pixels", frames, config.Width, config.Height),
			Remedy: fmt.Sprintf("at most %d frames, %d pixels in all", maxFrames, maxAllPixels),
		}
	}
	if scans := countScans(kind, data); scans > maxScans || scans*config.Width*config.Height > maxScanPixels {
		return Asset{}, &Problem{
			Msg:    fmt.Sprintf("has %d scans of %d×%d pixels", scans, config.Width, config.Height),
			Remedy: fmt.Sprintf("at most %d scans, %d pixels in all", maxScans, maxScanPixels),
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

// countFrames is how many frames an animation has, as far as it is whole: the
// decoders look at the first one only, and browsers at all that they find.
func countFrames(kind string, data []byte) int {
	switch kind {
	case "image/gif":
		return countGIFFrames(data)
	case "image/png":
		return max(1, countPNGFrames(data))
	case "image/webp":
		return max(1, countWebPFrames(data))
	}
	return 1
}

// countGIFFrames counts the image descriptors among the blocks of a GIF.
func countGIFFrames(data []byte) (frames int) {
	const header, descriptor = 13, 10 // bytes, each with its flags in front of a colour table
	skip := func(n int) { data = data[min(n, len(data)):] }
	table := func(flags byte) int {
		if flags&0x80 == 0 {
			return 0
		}
		return 3 << (flags&7 + 1)
	}
	if len(data) < header {
		return 0
	}
	skip(header + table(data[10]))
	for len(data) > 0 {
		switch {
		case data[0] == '!':
			skip(2) // and its label
		case data[0] == ',' && len(data) >= descriptor:
			frames++
			skip(descriptor + table(data[9]) + 1) // and the size of its codes
		default:
			return frames // the trailer, or nothing that a decoder would go on after
		}
		for len(data) > 0 && data[0] > 0 {
			skip(1 + int(data[0]))
		}
		skip(1)
	}
	return frames
}

// countPNGFrames counts the frame controls among the chunks of a PNG.
func countPNGFrames(data []byte) (frames int) {
	const signature, around = 8, 12 // bytes: length, type and checksum are around a chunk
	for data = data[signature:]; len(data) >= around; {
		if string(data[4:8]) == "fcTL" {
			frames++
		}
		data = data[min(around+uint64(binary.BigEndian.Uint32(data)), uint64(len(data))):]
	}
	return frames
}

// countWebPFrames counts the frames among the chunks of a WebP.
func countWebPFrames(data []byte) (frames int) {
	const header, before = 12, 8 // bytes: type and length are before a chunk
	for data = data[header:]; len(data) >= before; {
		if string(data[:4]) == "ANMF" {
			frames++
		}
		size := uint64(binary.LittleEndian.Uint32(data[4:]))
		data = data[min(before+size+size%2, uint64(len(data))):]
	}
	return frames
}

// countScans is how often a decoder goes over a JPEG: a scan of a few bytes may say
// that nothing changes in the whole picture. It counts the markers of scans as far as
// the decoder reads, as the decoder reads them; what is within a segment, such as the
// scans of a thumbnail, is none.
func countScans(kind string, data []byte) (scans int) {
	const stuffed, restart, restartEnd, end, scan = 0x00, 0xd0, 0xd7, 0xd9, 0xda
	if kind != "image/jpeg" {
		return 0
	}
	for data = data[2:]; ; {
		at := bytes.IndexByte(data, 0xff)
		if at < 0 {
			return scans
		}
		for data = data[at:]; len(data) > 0 && data[0] == 0xff; {
			data = data[1:] // any number of them is before a marker
		}
		if len(data) == 0 {
			return scans
		}
		marker := data[0]
		data = data[1:]
		switch {
		case marker == stuffed, marker >= restart && marker <= restartEnd:
			continue
		case marker == end, len(data) < 2:
			return scans
		case marker == scan:
			scans++
		}
		data = data[min(int(binary.BigEndian.Uint16(data)), len(data)):]
	}
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
	tree := svgTree{byID: map[string][]*svgNode{}}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			if !seen || depth > 0 {
				return errors.New("it is not whole")
			}
			return tree.check()
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
			if err := tree.open(t); err != nil {
				return err
			}
		case xml.EndElement:
			depth--
			tree.close()
		case xml.CharData:
			if depth == 0 && len(bytes.TrimSpace(bytes.TrimPrefix(t, []byte("\ufeff")))) > 0 {
				return errors.New("it has text outside its root")
			}
			tree.text(len(t))
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

// An svgTree is an SVG as its references to itself see it: a use draws what it refers
// to once more, and so do a pattern, a mask and a clip path, in each other too. A
// kilobyte of them can draw more elements than a browser ever ends with.
type svgTree struct {
	nodes []*svgNode
	byID  map[string][]*svgNode // more than one if an id is not unique: all of them count
	at    *svgNode              // the element that is open
}

// An svgNode is an element, and what it comes to with all that it refers to, which is
// known once and for all after the first look. Where browsers differ, or the cascade
// decides, it is more than they draw.
type svgNode struct {
	parent   *svgNode
	children []*svgNode
	gradient bool  // it, or a part of one: it paints and is not painted
	bytes    int64 // of the element itself

	draws  []string // ids that it draws once more: of href, mask and clip-path
	paints []string // ids by which it and all below it are filled and stroked

	weight, paint svgSum
}

// An svgSum is how much is drawn, in bytes and elements, and through how many
// references on end.
type svgSum struct {
	bytes, elements int64
	hops            int
	state           int8 // 0 not looked at, 1 being looked at, 2 known
}

func (t *svgTree) open(e xml.StartElement) error {
	n := &svgNode{parent: t.at, gradient: e.Name.Local == "stop" || strings.HasSuffix(e.Name.Local, "Gradient")}
	n.bytes = int64(len(e.Name.Local))
	if !n.gradient {
		n.bytes += svgElementBytes
	}
	for _, a := range e.Attr {
		n.bytes += int64(len(a.Name.Local) + len(a.Value))
		ids, err := fragments(a)
		if err != nil {
			return err
		}
		switch a.Name.Local {
		case "id":
			t.byID[a.Value] = append(t.byID[a.Value], n)
		case "fill", "stroke":
			n.paints = append(n.paints, ids...)
		default:
			n.draws = append(n.draws, ids...)
		}
	}
	if t.at != nil {
		t.at.children = append(t.at.children, n)
	}
	t.at = n
	if t.nodes = append(t.nodes, n); len(t.nodes) > maxSVGElements {
		return fmt.Errorf("it has more than %d elements", maxSVGElements)
	}
	return nil
}

func (t *svgTree) close() { t.at = t.at.parent }

func (t *svgTree) text(length int) {
	if t.at != nil {
		t.at.bytes += int64(length)
	}
}

// fragments are the ids that an attribute refers to, in an href or in url()s, each as
// a browser reads it: those for which it would have to decode something are refused.
func fragments(a xml.Attr) (ids []string, err error) {
	rest, found := a.Value, a.Name.Local == "href"
	for {
		if !found {
			for len(rest) >= len("url") && !strings.EqualFold(rest[:len("url")], "url") {
				rest = rest[1:]
			}
			if len(rest) < len("url") {
				return ids, nil
			}
			rest = rest[len("url"):]
		}
		_, id, _ := strings.Cut(rest, "#")
		if end := strings.IndexAny(id, `'")`); end >= 0 {
			id = id[:end]
		}
		id = strings.TrimRight(id, " \t\r\n")
		if id == "" || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || strings.ContainsRune(`%(\#`, r) }) {
			return nil, fmt.Errorf("it refers to %s", quote(a.Value))
		}
		ids = append(ids, id)
		if found {
			return ids, nil
		}
	}
}

// check refuses references in circles, and those that make too much of the SVG.
func (t *svgTree) check() error {
	if err := t.weigh(t.nodes[0], 0); err != nil {
		return err
	}
	var written int64
	for _, n := range t.nodes {
		written += n.bytes
	}
	if t.nodes[0].weight.bytes-written > maxSVGExpansion {
		return errSVGExpansion
	}
	return nil
}

var (
	errSVGCircle    = errors.New("it refers to itself in a circle")
	errSVGHops      = fmt.Errorf("its references are nested deeper than %d", maxSVGHops)
	errSVGExpansion = errors.New("its references draw too much")
)

// weigh finds what a node comes to, from so many references away from the root.
func (t *svgTree) weigh(n *svgNode, hops int) error {
	if known, err := n.weight.begin(hops); known || err != nil {
		return err
	}
	n.weight.bytes, n.weight.elements = n.bytes, 1
	if !n.gradient {
		if err := t.weighPaint(n, hops); err != nil {
			return err
		}
		n.weight.bytes += n.paint.bytes
		n.weight.hops = n.paint.hops
	}
	for _, child := range n.children {
		if err := t.weigh(child, hops); err != nil {
			return err
		}
		if err := n.weight.add(child.weight, 0); err != nil {
			return err
		}
	}
	for _, id := range n.draws {
		for _, target := range t.byID[id] {
			if err := t.weigh(target, hops+1); err != nil {
				return err
			}
			// What is drawn once more inherits its paint from here.
			if err := n.weight.add(target.weight, 1); err != nil {
				return err
			}
			if n.weight.bytes += target.weight.elements * n.paint.bytes; n.weight.bytes > maxSVGWeight {
				return errSVGExpansion
			}
		}
	}
	n.weight.state = 2
	return nil
}

// weighPaint finds what it takes to paint one element as n says, or what n is in.
func (t *svgTree) weighPaint(n *svgNode, hops int) error {
	if known, err := n.paint.begin(hops); known || err != nil {
		return err
	}
	if n.parent != nil {
		if err := t.weighPaint(n.parent, hops); err != nil {
			return err
		}
		if err := n.paint.add(n.parent.paint, 0); err != nil {
			return err
		}
	}
	for _, id := range n.paints {
		for _, target := range t.byID[id] {
			if err := t.weigh(target, hops+1); err != nil {
				return err
			}
			if err := n.paint.add(target.weight, 1); err != nil {
				return err
			}
		}
	}
	n.paint.state = 2
	return nil
}

// maxSVGWeight is above that of every SVG that is taken, so that sums and products of
// two stay in their range.
const maxSVGWeight = MaxAssetBytes + maxSVGElements*(svgElementBytes+64) + maxSVGExpansion

// begin reports whether s is known; if not, it is being looked at from now on.
func (s *svgSum) begin(hops int) (known bool, err error) {
	switch {
	case s.state == 1:
		return false, errSVGCircle
	case hops > maxSVGHops, s.state == 2 && hops+s.hops > maxSVGHops:
		return false, errSVGHops
	}
	known = s.state == 2
	s.state = max(s.state, 1)
	return known, nil
}

// add adds what is so many references away.
func (s *svgSum) add(other svgSum, hops int) error {
	s.bytes += other.bytes
	s.elements += other.elements
	s.hops = max(s.hops, other.hops+hops)
	if s.bytes > maxSVGWeight {
		return errSVGExpansion
	}
	return nil
}
