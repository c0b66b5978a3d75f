package htmlstream_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"deckle/internal/htmlstream"
)

// TestTokenSoup judges documents that are random tokens in a row. Fuzzing cuts
// bytes; this cuts where the tree changes. HTMLSTREAM_SOUP is how many others to
// judge than the few that are always the same.
func TestTokenSoup(t *testing.T) {
	t.Parallel()
	n, seed := 2000, uint64(1)
	if v, err := strconv.Atoi(os.Getenv("HTMLSTREAM_SOUP")); err == nil {
		n, seed = v, rand.Uint64()
	}
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	seen := make(map[htmlstream.Point]int)
	for range n {
		doc := soup(r)
		if deviates(doc) {
			continue
		}
		s := scene{doc: doc, fill: htmlstream.Point(r.UintN(32)), late: r.IntN(len(doc)+2) - 1}
		if r.IntN(2) == 0 {
			s.late = 0
		}
		s.opts.CharsetKnown = r.IntN(3) > 0
		out, holes := judge(t, s)
		for _, h := range holes {
			seen[h.point]++
		}
		judgeChunks(t, s, out, []int{1}, r.Uint64())
		if t.Failed() {
			t.Fatalf("%+v", s)
		}
	}
	t.Logf("points in %d documents: %v", n, seen)
}

func soup(r *rand.Rand) string {
	var b strings.Builder
	start := r.IntN(len(openings))
	b.WriteString(openings[start])
	family := families[r.IntN(len(families))]
	for range r.IntN(24) {
		names := family
		if r.IntN(4) == 0 {
			names = families[r.IntN(len(families))]
		}
		name := names[r.IntN(len(names))]
		if r.IntN(8) == 0 {
			name = strings.ToUpper(name)
		}
		switch k := r.IntN(20); {
		case k < 8:
			b.WriteString("<" + name + attributes[r.IntN(len(attributes))] + ">")
		case k < 14:
			b.WriteString("</" + name + ">")
		case k < 16:
			b.WriteString("<" + name + ">x</" + name + ">")
		default:
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
	}
	b.WriteString(closings[r.IntN(len(closings))])
	return b.String()
}

var (
	openings = []string{
		"", "<!doctype html>", "<html><head>", "<!doctype html><html><head></head><body>",
		"<head></head>", "<body>", "<!--c-->", " \n", strings.Repeat(" ", 1020), "<head>" + strings.Repeat(" ", 1020),
	}
	closings = []string{"", "</body>", "</body></html>", "</body>\n</html>\n", "</html>", "x</body>y", "</body><!--c-->", "<p"}
	families = [][]string{
		{"html", "head", "body", "title", "meta", "link", "base", "style", "script", "noscript", "template", "noframes", "br"},
		{"body", "p", "div", "b", "i", "a", "span", "li", "ul", "pre", "listing", "h1", "button", "nobr", "form", "img"},
		{"table", "caption", "colgroup", "col", "tbody", "tr", "td", "th", "thead", "form", "input", "template", "p", "b"},
		{"svg", "g", "path", "title", "style", "desc", "foreignObject", "script", "math", "mi", "mtext", "annotation-xml", "p", "font", "template"},
		{"select", "option", "optgroup", "hr", "div", "input", "textarea", "button", "script", "select"},
		{"frameset", "frame", "noframes", "body", "html", "p", "li", "template", "frameset"},
		{"textarea", "xmp", "iframe", "noembed", "plaintext", "noscript", "style", "title", "object", "marquee", "x-y-z-long-name"},
	}
	attributes = []string{
		"", "", "", "", " ", "/", " /", " a=b", ` a="b>c"`, " a='</head>'", " =", " a=", ` a="x"b`, " a=x/", " charset=utf-8",
		` http-equiv=content-type content="text/html; charset=utf-8"`, " type=hidden",
	}
	pieces = []string{
		"x", " ", "\n", "\r\n", "\x00", "&#32;", "&#x9", "&Tab;", "&amp;", "&NewLine;x", "&#00000000000000000000000000000000000032;",
		"<", "</", "</>", "< p>", "<!--x-->", "<!-->", "<!--->", "<!--a--!>", "<!---->", "<!x>", "<?x?>", "</ x>", "<!doctype html>",
		"<![CDATA[x]]>", "<![CDATA[<p>]]>", "<script><!--<script></script>--></script>", "<script><!--</script>", "\ufeff",
		"<script><!--><script></script>", "<script><!--<script>--></script>", "<script><!--<script></script></script>",
		"<![CDATA[></svg><p>]]>", "<!--a--!->-->", "<!--a--!-><p>-->", "<desc><style><p></style></desc>", "<title/>",
		"<script>'</scrip'</script >", "<title></titl></title\t>", "x y", "\f", "é",
	}
)
