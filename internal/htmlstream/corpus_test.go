package htmlstream_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"deckle/internal/htmlstream"
)

var update = flag.Bool("update", false, "write the points that are found into testdata/*.txtar")

// oddDocuments returns the documents of testdata: what is odd about each, and
// how it stands there, with its points marked as [S], [H], [L], [B] and [E].
//
// Bytes that do not show are written as {00}, repetitions as {1000*x}. Where Late
// is called stands [!].
func oddDocuments(t testing.TB) map[string]*txtar.Archive {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("testdata: %v, %v", files, err)
	}
	docs := make(map[string]*txtar.Archive)
	for _, f := range files {
		a, err := txtar.ParseFile(f)
		if err != nil {
			t.Fatal(err)
		}
		docs[f] = a
	}
	return docs
}

var (
	markers  = regexp.MustCompile(`\[[SHLBE]\]`)
	lateMark = "[!]"
	escapes  = regexp.MustCompile(`\{([0-9a-f]{2})\}|\{(\d+)\*([^}]*)\}`)
)

// sceneOf makes a scene of a golden document. The first part of its name says
// how it is played.
func sceneOf(name, marked string) scene {
	before, after, late := strings.Cut(markers.ReplaceAllString(marked, ""), lateMark)
	s := scene{doc: unescape(before) + unescape(after), fill: everywhere, late: -1}
	s.opts.CharsetKnown = !strings.HasPrefix(name, "charset/")
	if late {
		s.late = len(unescape(before))
	} else if strings.HasPrefix(name, "late/") {
		s.late = 0
	}
	return s
}

func unescape(text string) string {
	return escapes.ReplaceAllStringFunc(text, func(e string) string {
		m := escapes.FindStringSubmatch(e)
		if m[1] != "" {
			b, _ := strconv.ParseUint(m[1], 16, 8)
			return string([]byte{byte(b)})
		}
		n, _ := strconv.Atoi(m[2])
		return strings.Repeat(m[3], n)
	})
}

// mark writes holes into a golden document.
func mark(marked string, holes []hole) string {
	var b strings.Builder
	text := markers.ReplaceAllString(marked, "")
	at := 0
	for i := 0; ; {
		for len(holes) > 0 && holes[0].offset <= at {
			b.WriteString("[" + pointName(holes[0].point) + "]")
			holes = holes[1:]
		}
		if i == len(text) {
			return b.String()
		}
		n, size := 1, 1 // of the golden text, of the document
		if strings.HasPrefix(text[i:], lateMark) {
			n, size = len(lateMark), 0
		} else if loc := escapes.FindStringIndex(text[i:]); loc != nil && loc[0] == 0 {
			n = loc[1]
			size = len(unescape(text[i : i+n]))
		}
		b.WriteString(text[i : i+n])
		i, at = i+n, at+size
	}
}

func TestOddDocuments(t *testing.T) {
	t.Parallel()
	count := 0
	for file, a := range oddDocuments(t) {
		for i := range a.Files {
			f := &a.Files[i]
			odd, marked, _ := strings.Cut(strings.TrimSuffix(string(f.Data), "\n"), "\n")
			count++
			t.Run(f.Name, func(t *testing.T) {
				if !strings.HasPrefix(odd, "# ") {
					t.Fatalf("first line is %q, want what is odd", odd)
				}
				s := sceneOf(f.Name, marked)
				out, holes := play(t, s, nil)
				if !deviates(s.doc) {
					out, holes = judge(t, s)
				}
				got := mark(marked, holes)
				if *update {
					f.Data = []byte(odd + "\n" + got + "\n")
				} else if got != marked {
					t.Errorf("points are\n%s\nwant\n%s", got, marked)
				}
				judgeChunks(t, s, out, upTo(len(s.doc), 80), uint64(len(s.doc)))
			})
		}
		if *update {
			if err := os.WriteFile(file, txtar.Format(a), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	if count < 80 {
		t.Errorf("only %d documents", count)
	}
}

// upTo returns the sizes from 1 to n. Of more than most it leaves some out.
func upTo(n, most int) []int {
	var sizes []int
	for size := 1; size <= n; size += 1 + size/most {
		sizes = append(sizes, size)
	}
	return sizes
}

// treeConstruction returns the documents of the html5lib tree construction tests
// that the module of the oracle ships.
func treeConstruction(t testing.TB) []string {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/net").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var docs []string
	for _, pattern := range []string{"html5lib-tests/tree-construction/*.dat", "go/*.dat"} {
		files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "html/testdata", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, test := range strings.Split("\n"+string(b), "\n#data\n")[1:] {
				doc, _, _ := strings.Cut(test, "\n#errors\n")
				docs = append(docs, doc)
			}
		}
	}
	if len(docs) < 1000 {
		t.Fatalf("only %d tree construction tests", len(docs))
	}
	return docs
}

func TestTreeConstruction(t *testing.T) {
	t.Parallel()
	seen := make(map[htmlstream.Point]int)
	docs := treeConstruction(t)
	excluded := 0
	for _, doc := range docs {
		for _, s := range []scene{
			{doc: doc, fill: everywhere, late: -1, opts: htmlstream.Options{CharsetKnown: true}},
			{doc: doc, fill: everywhere, late: 0},
			{doc: doc, fill: htmlstream.Body | htmlstream.End, late: len(doc) / 2},
			{doc: doc, fill: htmlstream.BodyEnd, late: -1},
		} {
			out, holes := play(t, s, nil)
			if deviates(doc) {
				excluded++
			} else {
				out, holes = judge(t, s)
			}
			for _, h := range holes {
				seen[h.point]++
			}
			judgeChunks(t, s, out, []int{1, 2, 3, 7}, uint64(len(doc)))
		}
	}
	t.Logf("%d documents, points: %v, excluded: %d", len(docs), seen, excluded/4)
	for _, pt := range []htmlstream.Point{htmlstream.HeadStart, htmlstream.HeadEnd, htmlstream.Body, htmlstream.BodyEnd, htmlstream.End} {
		if seen[pt] == 0 {
			t.Errorf("%s was never met", pointName(pt))
		}
	}
}

// documents returns every document of the corpora, with and without the charset.
func documents(t testing.TB) []string {
	docs := treeConstruction(t)
	for _, a := range oddDocuments(t) {
		for _, f := range a.Files {
			_, marked, _ := strings.Cut(strings.TrimSuffix(string(f.Data), "\n"), "\n")
			docs = append(docs, sceneOf(f.Name, marked).doc)
		}
	}
	slices.Sort(docs)
	return slices.Compact(docs)
}
