package htmlstream_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"deckle/internal/htmlstream"
)

const page = "<!doctype html><html><head><title>t</title></head><body><p>x</p></body></html>"

// letters fills every point with its letter in brackets.
func letters(pt htmlstream.Point) []byte { return []byte("[" + pointName(pt) + "]") }

func TestPointsAreThoseThatAreWanted(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		points htmlstream.Point
		want   string
	}{
		{0, "<head>[S][H]</head><body>x[B]</body>[E]"},
		{htmlstream.HeadStart, "<head>[S]</head><body>x</body>"},
		{htmlstream.HeadEnd, "<head>[H]</head><body>x</body>"},
		{htmlstream.HeadStart | htmlstream.End, "<head>[S]</head><body>x</body>[E]"},
		{htmlstream.BodyEnd, "<head></head><body>x[B]</body>"},
	} {
		var b strings.Builder
		w := htmlstream.NewWriter(&b, htmlstream.Options{CharsetKnown: true, Points: test.points}, letters)
		mustWrite(t, w, "<head></head><body>x</body>")
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); got != test.want {
			t.Errorf("points %b: %q, want %q", test.points, got, test.want)
		}
		if !w.Done() {
			t.Errorf("points %b: not done after Close", test.points)
		}
	}
}

func TestNothingIsParsedAfterTheLastPoint(t *testing.T) {
	t.Parallel()
	w := htmlstream.NewWriter(io.Discard, htmlstream.Options{Points: htmlstream.HeadEnd}, letters)
	mustWrite(t, w, "<head><title>t</title>")
	if w.Done() {
		t.Error("done before the last point")
	}
	mustWrite(t, w, "</head>")
	if !w.Done() {
		t.Error("not done after the last point")
	}
}

func TestWithoutFillerItOnlyCopies(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	w := htmlstream.NewWriter(&b, htmlstream.Options{}, nil)
	if !w.Done() {
		t.Error("not done")
	}
	mustWrite(t, w, "<he")
	if b.String() != "<he" {
		t.Errorf("%q was written, want all", b.String())
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

func TestStopWithinFill(t *testing.T) {
	t.Parallel()
	for _, stopAt := range []htmlstream.Point{htmlstream.HeadStart, htmlstream.HeadEnd, htmlstream.End} {
		for _, doc := range []string{page, "<title>t</title>", "x", "&#65;", ""} {
			for _, size := range []int{1, 1000} {
				var b strings.Builder
				var last htmlstream.Point
				var w *htmlstream.Writer
				w = htmlstream.NewWriter(&b, htmlstream.Options{CharsetKnown: true}, func(pt htmlstream.Point) []byte {
					last = pt
					if pt == stopAt {
						if err := w.Stop(); err != nil {
							t.Error(err)
						}
					}
					return letters(pt)
				})
				for at := 0; at < len(doc); at += size {
					mustWrite(t, w, doc[at:min(at+size, len(doc))])
				}
				if err := w.Close(); err != nil {
					t.Error(err)
				}
				if last != stopAt {
					t.Errorf("%q: last point is %s, want %s", doc, pointName(last), pointName(stopAt))
				}
				if got := markers.ReplaceAllString(b.String(), ""); got != doc {
					t.Errorf("stopped at %s: %q, want %q", pointName(stopAt), b.String(), doc)
				}
			}
		}
	}
}

func TestStopPassesOnWhatIsHeld(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{"\xef\xbb", "<", "<head></he", "<head>&#3", "<body></bod"} {
		var b strings.Builder
		w := htmlstream.NewWriter(&b, htmlstream.Options{Points: htmlstream.HeadEnd | htmlstream.End}, letters)
		mustWrite(t, w, doc)
		if b.String() == doc {
			t.Errorf("%q: nothing is held", doc)
		}
		if err := w.Stop(); err != nil {
			t.Fatal(err)
		}
		mustWrite(t, w, "ad>")
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got, want := markers.ReplaceAllString(b.String(), ""), doc+"ad>"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestBytesArePassedOnAtOnce looks at what matters to a reader of a page whose
// origin stalls: a script, a text, a comment or an attribute is not kept until it
// is complete.
func TestBytesArePassedOnAtOnce(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{
		"<head><script>var a = 1; if (a <", "<head><title>Half a", "<head><!-- half", "<head><link href=\"/ha", "<head><link hre",
		"<head><link", "<head></head><body><p>x</p>half", "<head> \n", "<head><noscript><img ", "<body><svg><pa",
	} {
		var b strings.Builder
		w := htmlstream.NewWriter(&b, htmlstream.Options{CharsetKnown: true}, func(htmlstream.Point) []byte { return nil })
		mustWrite(t, w, doc)
		switch got := b.String(); {
		case strings.HasSuffix(doc, "<link"):
			if got != strings.TrimSuffix(doc, "<link") {
				t.Errorf("%q of %q, want all but the last tag", got, doc)
			}
		case got != doc:
			t.Errorf("%q, want %q", got, doc)
		}
	}
}

func TestLateFillsAStalledDocument(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	w := htmlstream.NewWriter(&b, htmlstream.Options{CharsetKnown: true, Points: htmlstream.Body}, letters)
	mustWrite(t, w, "<head></head><body><p>x</p>")
	if !w.Safe() {
		t.Error("not safe after </p>")
	}
	if err := w.Late(); err != nil {
		t.Fatal(err)
	}
	if got, want := b.String(), "<head></head><body><p>x</p>[L]"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if w.Safe() || !w.Done() {
		t.Errorf("Safe = %v, Done = %v after the only point; want false, true", w.Safe(), w.Done())
	}
}

type brokenWriter struct{ left int }

var errBroken = errors.New("broken")

func (w *brokenWriter) Write(p []byte) (int, error) {
	if len(p) > w.left {
		return 0, errBroken
	}
	w.left -= len(p)
	return len(p), nil
}

func TestErrorsOfTheUnderlyingWriterStay(t *testing.T) {
	t.Parallel()
	for left := range len(page) {
		filled := 0
		w := htmlstream.NewWriter(&brokenWriter{left}, htmlstream.Options{CharsetKnown: true}, func(htmlstream.Point) []byte {
			filled++
			return nil
		})
		_, err := w.Write([]byte(page))
		if err == nil {
			err = w.Close()
		}
		if !errors.Is(err, errBroken) {
			t.Fatalf("after %d bytes: %v, want %v", left, err, errBroken)
		}
		before := filled
		if _, err := w.Write([]byte("x")); err == nil {
			t.Fatal("a Write after an error succeeds")
		}
		if err := w.Close(); !errors.Is(err, errBroken) {
			t.Fatalf("Close = %v, want %v", err, errBroken)
		}
		if filled != before {
			t.Fatal("a point is filled after an error")
		}
	}
}

func TestWriteAfterClose(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := htmlstream.NewWriter(&b, htmlstream.Options{CharsetKnown: true}, letters)
	for range 2 {
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Write([]byte("x")); !errors.Is(err, htmlstream.ErrClosed) {
		t.Errorf("Write after Close = %v, want ErrClosed", err)
	}
	if got, want := b.String(), "[S][H][E]"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestNoAllocations(t *testing.T) {
	chunk := []byte("<link rel=stylesheet href='a.css'><meta name=x content=y><script>var a = '<p>'</script>\n<!--c--><svg><g/></svg><p>x&amp;y")
	w := htmlstream.NewWriter(io.Discard, htmlstream.Options{Metas: []string{"article:tag"}, Policies: true}, func(htmlstream.Point) []byte { return nil })
	mustWrite(t, w, "<!doctype html><head>")
	if got := testing.AllocsPerRun(100, func() { w.Write(chunk) }); got != 0 {
		t.Errorf("%v allocations a chunk, want none", got)
	}
}
