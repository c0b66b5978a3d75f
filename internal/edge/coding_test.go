package edge

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
)

// member is one gzip member of size bytes: spaces, and noise letters of chance
// spread over them.
func member(tb testing.TB, size, noise int) string {
	tb.Helper()
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	random := rand.New(rand.NewPCG(1, 2))
	text := bytes.Repeat([]byte(" "), size)
	for i := range noise {
		text[i*(size/max(noise, 1))] = letters[random.IntN(len(letters))]
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(text)
	_ = z.Close()
	return b.String()
}

// Some pages compress well: 20 MB at a ratio of 150 is one. A bomb is what no page is.
func TestDecodedSizeInProportion(t *testing.T) {
	const size, each = 20, 1 << 20 // members, and bytes of each
	for name, c := range map[string]struct {
		noise    int
		from, to int // its ratio lies between
		bomb     bool
	}{
		"a good ratio":      {2150, 130, 190, false},
		"beyond every page": {750, 250, 350, true},
	} {
		one := member(t, each, c.noise)
		if ratio := each / len(one); ratio < c.from || ratio > c.to {
			t.Errorf("%s: has ratio %d", name, ratio)
		}
		n, err := io.Copy(io.Discard, gzipped{}.decode(strings.NewReader(strings.Repeat(one, size))))
		if bomb := errors.Is(err, errBomb); bomb != c.bomb || !bomb && n != size*each || bomb && n > freeSize+64<<10 {
			t.Errorf("%s: %d bytes, %v", name, n, err)
		}
	}
}

// Where proportion begins to count, and where it ends, to the byte.
func TestBoundsOfProportion(t *testing.T) {
	for _, c := range []struct {
		in, before int64 // bytes that went in, and that have come out
		bomb       bool
	}{
		{1, freeSize - 10, false},
		{1, freeSize - 9, true},
		{100_000, maxRatio*100_000 - 10, false},
		{100_000, maxRatio*100_001 - 11, false},
		{100_000, maxRatio*100_001 - 10, true},
		{maxSize, maxSize - 10, false},
		{maxSize, maxSize - 9, true},
	} {
		b := bounded{in: &counter{n: c.in}, n: c.before, out: strings.NewReader("0123456789")}
		if _, err := b.Read(make([]byte, 10)); errors.Is(err, errBomb) != c.bomb {
			t.Errorf("10 bytes after %d of %d: %v", c.before, c.in, err)
		}
	}
}

// A body may have several members and be padded, and arrive in any pieces.
func TestGzipMembers(t *testing.T) {
	one, two := member(t, 300, 100), member(t, 5000, 2000)
	empty := member(t, 0, 0)
	for name, c := range map[string]struct {
		body string
		size int // decoded; negative: it is an error
	}{
		"one":                       {one, 300},
		"two":                       {one + two, 5300},
		"many":                      {strings.Repeat(one, 50), 15_000},
		"an empty one between":      {one + empty + two, 5300},
		"an empty one alone":        {empty, 0},
		"no byte":                   {"", 0},
		"padded":                    {one + "\x00\x00\x00", 300},
		"one byte of padding":       {one + "\x1f", 300},
		"padding that begins alike": {one + "\x1f\x00\x00", 300},
		"padded with much":          {one + strings.Repeat("x", 100_000), 300},
		"two, padded":               {one + two + "garbage", 5300},
		"cut in the first":          {one[:len(one)-9], -1},
		"cut in the checksum":       {one[:len(one)-1], -1},
		"cut in the second":         {one + two[:len(two)-9], -1},
		"cut in the second header":  {one + two[:5], -1},
		"a member that is broken":   {one + "\x1f\x8b\x00\x00\x00", -1},
		"cut in the first header":   {one[:5], -1},
		"one byte":                  {one[:1], -1},
	} {
		for pieces, r := range map[string]io.Reader{
			"whole":        strings.NewReader(c.body),
			"byte by byte": iotest.OneByteReader(strings.NewReader(c.body)),
			"with its end": iotest.DataErrReader(iotest.HalfReader(strings.NewReader(c.body))),
		} {
			got, err := io.ReadAll(gzipped{}.decode(r))
			if (err != nil) != (c.size < 0) || err == nil && len(got) != c.size {
				t.Errorf("%s, %s: %d bytes, %v; want %d", name, pieces, len(got), err, c.size)
			}
		}
	}
}

// A body that breaks off after its last member is broken: its reader would wait
// for the rest of a page that looks whole.
func TestBreakInThePadding(t *testing.T) {
	lost := errors.New("connection reset")
	for _, padding := range []string{"", "\x1f", "xx", "padding"} {
		body := io.MultiReader(strings.NewReader(member(t, 300, 100)+padding), iotest.ErrReader(lost))
		if _, err := io.ReadAll(gzipped{}.decode(body)); !errors.Is(err, lost) {
			t.Errorf("after %q: %v", padding, err)
		}
	}
}
