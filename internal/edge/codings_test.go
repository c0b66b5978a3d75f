package edge

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/andybalholm/brotli"
)

// otherBrotli is br by the library that is there in case: behind the same two
// methods, and held to the same tests.
type otherBrotli struct{}

func (otherBrotli) decode(r io.Reader) io.Reader {
	return &bounded{in: &counter{r: r}, open: func(r io.Reader) (io.Reader, error) {
		return &ending{out: otherReader{brotli.NewReader(r)}, in: r}, nil
	}}
}

type otherReader struct{ *brotli.Reader }

func (r otherReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && err.Error() == "brotli: excessive input" { // it has no name
		err = io.EOF
	}
	return n, err
}

func (otherBrotli) encode(w io.Writer) encoder {
	return brotli.NewWriterOptions(w, brotli.WriterOptions{Quality: brotliLevel, LGWin: brotliWindow})
}

func compressions() map[string]coding {
	return map[string]coding{"gzip": gzipped{}, "br": brotlied{}, "br by the other": otherBrotli{}, "zstd": zstandard{}}
}

// encoded is text in a coding, written in pieces with a flush after each.
func encoded(tb testing.TB, c coding, pieces ...string) string {
	tb.Helper()
	var b bytes.Buffer
	z := c.encode(&b)
	for _, piece := range pieces {
		_, err := io.WriteString(z, piece)
		if err := errors.Join(err, z.Flush()); err != nil {
			tb.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

// text is a page of so many bytes, which compresses as pages do.
func text(size int) string {
	random := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for b.Len() < size {
		fmt.Fprintf(&b, "<p class=%q>%d words of text &amp; more</p>\n", []string{"lead", "body", "note"}[random.IntN(3)], random.IntN(1000))
	}
	return b.String()[:size]
}

func TestEveryCoding(t *testing.T) {
	for name, c := range compressions() {
		for _, size := range []int{0, 1, 1000, 100_000, 3 << 20} {
			want := text(size)
			body := encoded(t, c, want[:size/3], want[size/3:size/2], want[size/2:])
			for how, r := range map[string]io.Reader{
				"whole":        strings.NewReader(body),
				"byte by byte": iotest.OneByteReader(strings.NewReader(body)),
				"with its end": iotest.DataErrReader(iotest.HalfReader(strings.NewReader(body))),
			} {
				if got, err := io.ReadAll(c.decode(r)); err != nil || string(got) != want {
					t.Errorf("%s: %d bytes, %s: %d bytes, %v", name, size, how, len(got), err)
				}
			}
		}
		if got, err := io.ReadAll(c.decode(strings.NewReader(""))); err != nil || len(got) != 0 {
			t.Errorf("%s: an empty body: %q, %v", name, got, err)
		}
		lost := errors.New("connection reset")
		if _, err := io.ReadAll(c.decode(iotest.ErrReader(lost))); !errors.Is(err, lost) {
			t.Errorf("%s: a body that is lost at once: %v", name, err)
		}
	}
}

// A body that is cut anywhere, or lost after its last byte, is not whole.
func TestEveryCut(t *testing.T) {
	lost := errors.New("connection reset")
	for name, c := range compressions() {
		body := encoded(t, c, text(300), text(200))
		for cut := 1; cut < len(body); cut++ {
			if got, err := io.ReadAll(c.decode(strings.NewReader(body[:cut]))); err == nil {
				t.Errorf("%s: cut at %d of %d: looks whole with %d bytes", name, cut, len(body), len(got))
			}
		}
		if _, err := io.ReadAll(c.decode(io.MultiReader(strings.NewReader(body), iotest.ErrReader(lost)))); !errors.Is(err, lost) {
			t.Errorf("%s: lost after its end: %v", name, err)
		}
	}
}

// What was flushed can be decoded before more comes, and a body that was not closed
// is not whole.
func TestEveryFlush(t *testing.T) {
	for name, c := range compressions() {
		synctest.Test(t, func(t *testing.T) {
			in, out := io.Pipe()
			defer in.Close() // ends the writer
			z := c.encode(out)
			go func() {
				for i := range 3 {
					_, _ = io.WriteString(z, text(1000+i))
					_ = z.Flush()
				}
				_ = out.Close() // but not z
			}()
			r := c.decode(in)
			for i := range 3 {
				want := text(1000 + i)
				got := make([]byte, len(want))
				if _, err := io.ReadFull(r, got); err != nil || string(got) != want {
					t.Fatalf("%s: part %d: %q, %v", name, i, got, err)
				}
			}
			if n, err := r.Read(make([]byte, 1)); n != 0 || err == nil || errors.Is(err, io.EOF) {
				t.Errorf("%s: the end: %d bytes, %v", name, n, err)
			}
		})
	}
}

// A bomb is cut off when it has become one, however it was made.
func TestEveryBomb(t *testing.T) {
	zeros := strings.Repeat("\x00", 12<<20)
	for name, c := range compressions() {
		n, err := io.Copy(io.Discard, c.decode(strings.NewReader(encoded(t, c, zeros))))
		if !errors.Is(err, errBomb) || n > freeSize+1<<20 {
			t.Errorf("%s: %d bytes, %v", name, n, err)
		}
	}
}

// A window that is larger than HTTP allows is refused before memory is taken for it.
func TestWindowOfZstd(t *testing.T) {
	// RFC 8878 section 3.1.1.1: magic number, no content size, window descriptor for
	// 2^(10+14) = 16 MiB, then a last raw block of one byte.
	body := "\x28\xb5\x2f\xfd\x00\x70\x09\x00\x00x"
	if _, err := io.ReadAll(zstandard{}.decode(strings.NewReader(body))); err == nil {
		t.Error("16 MiB are taken")
	}
	body = "\x28\xb5\x2f\xfd\x00\x68\x09\x00\x00x" // 8 MiB
	if got, err := io.ReadAll(zstandard{}.decode(strings.NewReader(body))); err != nil || string(got) != "x" {
		t.Errorf("8 MiB: %q, %v", got, err)
	}
}

// Writers come from a pool: whatever became of the page before, nothing of it is in
// the next.
func TestWritersAreCleanWhenTheyComeAgain(t *testing.T) {
	for name, c := range compressions() {
		want := encoded(t, c, text(5000))
		for i := range 5 {
			cut := c.encode(io.Discard)
			_, _ = io.WriteString(cut, text(70_000)) // and never closed
			_ = encoded(t, c, text(100_000*i))
			if got := encoded(t, c, text(5000)); got != want {
				t.Errorf("%s: another body after %d", name, i)
			}
		}
	}
}

// FuzzBrotli holds the library that we use to the other one: what one of them writes
// the other reads, and both read strangers' bytes alike.
func FuzzBrotli(f *testing.F) {
	f.Add([]byte(encoded(f, brotlied{}, "<p>", text(200))))
	f.Add([]byte(encoded(f, otherBrotli{}, text(3000))))
	f.Add([]byte("\x8b\x02\x80page\x03"))
	f.Add([]byte("70")) // an empty body, and a byte after it
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 64<<10 {
			return
		}
		cut := min(len(b), 1000)
		for name, pair := range map[string][2]coding{"ours to other": {brotlied{}, otherBrotli{}}, "other to ours": {otherBrotli{}, brotlied{}}} {
			body := encoded(t, pair[0], string(b[:cut]), string(b[cut:]))
			if got, err := io.ReadAll(pair[1].decode(strings.NewReader(body))); err != nil || !bytes.Equal(got, b) {
				t.Fatalf("%s: %q, %v", name, got, err)
			}
		}
		const most = 1 << 20
		ours, errOurs := io.ReadAll(io.LimitReader(brotlied{}.decode(bytes.NewReader(b)), most))
		other, errOther := io.ReadAll(io.LimitReader(otherBrotli{}.decode(bytes.NewReader(b)), most))
		if (errOurs == nil) != (errOther == nil) || errOurs == nil && !bytes.Equal(ours, other) {
			t.Fatalf("%x: %d bytes, %v; the other library: %d bytes, %v", b, len(ours), errOurs, len(other), errOther)
		}
		same := min(len(ours), len(other))
		if !bytes.Equal(ours[:same], other[:same]) {
			t.Fatalf("%x: %q and %q", b, ours, other)
		}
	})
}

// FuzzCodings decodes strangers' bytes: nothing panics, and what comes out is in
// proportion to what went in.
func FuzzCodings(f *testing.F) {
	for _, c := range compressions() {
		f.Add([]byte(encoded(f, c, text(100), text(5000))))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for name, c := range compressions() {
			n, _ := io.Copy(io.Discard, c.decode(bytes.NewReader(b)))
			if n > freeSize+1<<20 && n > int64(len(b))*maxRatio+1<<20 {
				t.Fatalf("%s: %d bytes become %d", name, len(b), n)
			}
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	page := []byte(text(100_000))
	for name, c := range compressions() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(page)))
			var out counterWriter
			for b.Loop() {
				out.n = 0
				z := c.encode(&out)
				_, _ = z.Write(page)
				_ = z.Close()
			}
			b.ReportMetric(float64(len(page))/float64(out.n), "ratio")
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	page := text(100_000)
	for name, c := range compressions() {
		body := encoded(b, c, page)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(page)))
			for b.Loop() {
				_, _ = io.Copy(io.Discard, c.decode(strings.NewReader(body)))
			}
		})
	}
}

type counterWriter struct{ n int }

func (c *counterWriter) Write(b []byte) (int, error) {
	c.n += len(b)
	return len(b), nil
}
