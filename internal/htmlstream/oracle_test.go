package htmlstream_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"deckle/internal/htmlstream"
)

// A scene is one document and how its holes are filled.
type scene struct {
	doc  string
	opts htmlstream.Options
	fill htmlstream.Point // the points at which something goes in
	late int              // offset in doc at which Late is called; negative: never
}

// A hole is a place in a document at which the filler was called.
type hole struct {
	point  htmlstream.Point
	offset int // in the document
}

// everywhere are all points.
const everywhere = htmlstream.HeadStart | htmlstream.HeadEnd | htmlstream.Body | htmlstream.BodyEnd | htmlstream.End

// pointName is what a point is called in golden documents.
func pointName(pt htmlstream.Point) string {
	return map[htmlstream.Point]string{
		htmlstream.HeadStart: "S", htmlstream.HeadEnd: "H", htmlstream.Body: "L", htmlstream.BodyEnd: "B", htmlstream.End: "E",
	}[pt]
}

// filling is what goes in at a point. It looks like what the edge puts in: with
// what could end a script, or a comment, if it were not one.
func filling(pt htmlstream.Point) string {
	return fmt.Sprintf(`<script type="application/json" data-hole="%s">{"a":"b<!--"}</script><script data-hole="%[1]s">1</script>`, pointName(pt))
}

// elements is how many elements a filling has.
const elements = 2

// play writes the document of s in chunks that end at cuts, and checks what must
// hold at every moment: all that precedes a hole is written before it is filled,
// and never more than MaxHeld bytes are held back.
func play(t testing.TB, s scene, cuts []int) (out string, holes []hole) {
	t.Helper()
	var b bytes.Buffer
	var inserted int
	w := htmlstream.NewWriter(&b, s.opts, func(pt htmlstream.Point) []byte {
		at := b.Len() - inserted
		if slices.ContainsFunc(holes, func(h hole) bool { return h.point >= pt || h.offset > at }) {
			t.Errorf("%s at %d after %v", pointName(pt), at, holes)
		}
		holes = append(holes, hole{pt, at})
		if s.fill&pt == 0 {
			return nil
		}
		fill := filling(pt)
		inserted += len(fill)
		return []byte(fill)
	})
	from := 0
	for _, to := range append(cuts, len(s.doc)) {
		if from <= s.late && s.late < to || s.late == to && to == len(s.doc) {
			mustWrite(t, w, s.doc[from:s.late])
			if err := w.Late(); err != nil {
				t.Fatalf("Late: %v", err)
			}
			from = s.late
		}
		mustWrite(t, w, s.doc[from:to])
		if held := to - (b.Len() - inserted); held < 0 || held > htmlstream.MaxHeld {
			t.Fatalf("%d bytes are held after %d of %q", held, to, s.doc)
		}
		from = to
	}
	if err := w.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	return b.String(), holes
}

func mustWrite(t testing.TB, w *htmlstream.Writer, p string) {
	t.Helper()
	if n, err := w.Write([]byte(p)); n != len(p) || err != nil {
		t.Fatalf("Write = %d, %v; want %d", n, err, len(p))
	}
}

// judge plays s whole and has both oracles look at it.
func judge(t testing.TB, s scene) (out string, holes []hole) {
	t.Helper()
	out, holes = play(t, s, nil)
	if got := withoutFillings(out); got != s.doc {
		t.Errorf("without what went in:\n%q, want\n%q", got, s.doc)
	}
	if err := sameTree(s.doc, out, filled(s, holes)); err != nil {
		t.Errorf("%v\n in: %q\nout: %q", err, s.doc, out)
	}
	return out, holes
}

// judgeChunks plays s in every kind of chunks, and compares with out.
func judgeChunks(t testing.TB, s scene, out string, sizes []int, seed uint64) {
	t.Helper()
	for _, size := range sizes {
		var cuts []int
		for at := size; at < len(s.doc); at += size {
			cuts = append(cuts, at)
		}
		if got, _ := play(t, s, cuts); got != out {
			t.Fatalf("in chunks of %d:\n%q, want\n%q", size, got, out)
		}
	}
	r := rand.New(rand.NewPCG(seed, 0))
	for range 3 {
		var cuts []int
		for at := 0; len(s.doc) > 0; {
			if at += r.IntN(1 + r.IntN(40)); at >= len(s.doc) {
				break
			}
			cuts = append(cuts, at)
		}
		if got, _ := play(t, s, cuts); got != out {
			t.Fatalf("in chunks %v:\n%q, want\n%q", cuts, got, out)
		}
	}
}

func filled(s scene, holes []hole) (points []htmlstream.Point) {
	for _, h := range holes {
		if s.fill&h.point != 0 {
			points = append(points, h.point)
		}
	}
	return points
}

func withoutFillings(out string) string {
	for pt := htmlstream.HeadStart; pt <= htmlstream.End; pt <<= 1 {
		out = strings.Replace(out, filling(pt), "", 1)
	}
	return out
}

// sameTree is the first oracle: the tree of out is the tree of doc and exactly
// the elements of points, each where it may be.
func sameTree(doc, out string, points []htmlstream.Point) error {
	want, err := parse(doc)
	if err != nil {
		return nil // deeper than the oracle goes
	}
	got, err := parse(out)
	if err != nil {
		return fmt.Errorf("parse: %w", err)
	}
	ours := slices.Collect(func(yield func(*html.Node) bool) {
		for n := range got.Descendants() {
			if isOurs(n) && !yield(n) {
				return
			}
		}
	})
	if len(ours) != elements*len(points) {
		return fmt.Errorf("%d of our elements are in the tree, want %d", len(ours), elements*len(points))
	}
	for _, n := range ours {
		if err := standsWell(n); err != nil {
			return err
		}
	}
	for _, n := range ours {
		n.Parent.RemoveChild(n)
	}
	if got, want := dump(got), dump(want); got != want {
		return fmt.Errorf("tree is\n%s\nwant\n%s", got, want)
	}
	return nil
}

func parse(doc string) (*html.Node, error) {
	// A byte order mark is for the decoder before the parser.
	return html.Parse(strings.NewReader(strings.TrimPrefix(doc, "\ufeff")))
}

func isOurs(n *html.Node) bool {
	return n.Type == html.ElementNode && n.Data == "script" &&
		slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "data-hole" })
}

// standsWell reports where one of our elements is not executed, or is not where
// its point is.
func standsWell(n *html.Node) error {
	name := n.Attr[len(n.Attr)-1].Val
	if n.Namespace != "" || n.FirstChild == nil || n.FirstChild.NextSibling != nil {
		return fmt.Errorf("%s is not a script with a text", name)
	}
	var within []string
	for a := range n.Ancestors() {
		within = append(within, a.Data)
		if a.Namespace != "" || a.Data == "template" || a.Data == "select" || a.Data == "colgroup" || a.Data == "frameset" {
			return fmt.Errorf("%s is in %v", name, within)
		}
	}
	inHead := within[0] == "head"
	inBody := slices.Contains(within, "body")
	switch name {
	case "S", "H":
		if !inHead {
			return fmt.Errorf("%s is in %v", name, within)
		}
	case "L", "B":
		if !inBody {
			return fmt.Errorf("%s is in %v", name, within)
		}
	}
	if !inHead && !inBody {
		return fmt.Errorf("%s is in %v", name, within)
	}
	if name == "L" && splitsText(n) {
		return errors.New("L is within a run of text")
	}
	return nil
}

func splitsText(n *html.Node) bool {
	prev, next := n.PrevSibling, n.NextSibling
	for prev != nil && isOurs(prev) {
		prev = prev.PrevSibling
	}
	for next != nil && isOurs(next) {
		next = next.NextSibling
	}
	return prev != nil && next != nil && prev.Type == html.TextNode && next.Type == html.TextNode
}

// dump writes the tree below n. Texts side by side are one: what is between
// </body> and the end continues the last text of body, so that an element before
// </body> cannot but part them.
func dump(n *html.Node) string {
	var b strings.Builder
	var walk func(n *html.Node, depth int)
	walk = func(n *html.Node, depth int) {
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			if c.Type == html.TextNode && c.PrevSibling != nil && c.PrevSibling.Type == html.TextNode {
				fmt.Fprintf(&b, "%s", strings.ReplaceAll(c.Data, "\n", `\n`))
				continue
			}
			fmt.Fprintf(&b, "\n%*s%d %s %q %s", depth, "", c.Type, c.Namespace, c.Attr, strings.ReplaceAll(c.Data, "\n", `\n`))
			walk(c, depth+1)
		}
	}
	walk(n, 0)
	return b.String()
}

// deviates reports whether x/net/html is known to differ from the HTML standard
// in how it parses doc, so that it cannot be an oracle for it.
//
// In script data after <!-- it takes a < that no letter and no / follows for the
// end of the escape (script data escaped less-than sign state, 13.2.5.23: it is
// to be reconsumed in the script data escaped state).
//
// It drops a newline at the start of a pre or listing that is still empty, also
// when tokens that were ignored stand before it; the standard drops one only if it
// is the very next token (13.2.6.4.7, "A start tag whose tag name is one of: pre,
// listing").
func deviates(doc string) bool {
	if lateNewline.MatchString(doc) {
		return true
	}
	_, rest, _ := strings.Cut(strings.ToLower(doc), "<script")
	for {
		_, after, ok := strings.Cut(rest, "<!--")
		if !ok {
			return false
		}
		escape, _, _ := strings.Cut(after, "-->")
		if escapedLess.MatchString(escape) {
			return true
		}
		rest = after
	}
}

var (
	escapedLess = regexp.MustCompile(`<[^/a-z]`)
	lateNewline = regexp.MustCompile(`(?i)<(?:pre|listing)\b[^<]*>(?:<[^<]*>|\x00)+[\r\n]`)
)
