package edge

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// A coding is a Content-Encoding (RFC 9110 section 8.4.1) that we read and write.
type coding interface {
	// decode reads what is encoded in r. Its reader fails where r is corrupt, cut
	// off, or grows beyond all measure.
	decode(r io.Reader) io.Reader

	// encode writes to w. The caller must call Flush to have bytes on their way, and
	// Close for a complete body; without Close a reader sees that it is cut off.
	encode(w io.Writer) encoder
}

type encoder interface {
	io.WriteCloser
	Flush() error
}

// codings are those that we read, by their name in Content-Encoding.
var codings = map[string]coding{
	"":         identity{},
	"identity": identity{},
	"gzip":     gzipped{},
	"x-gzip":   gzipped{},
	"br":       brotlied{},
	"zstd":     zstandard{},
}

// A wish is what Accept-Encoding says of a coding that we read.
type wish struct {
	name    string
	weight  string // "0.5"; "" for none
	refused bool
}

func (w wish) String() string {
	if w.weight == "" {
		return w.name
	}
	return w.name + ";q=" + w.weight
}

// readableCodings is an Accept-Encoding that asks for nothing that the reader did
// not ask for and that we cannot read, in the reader's order and with its weights.
func readableCodings(accept []string) string {
	var texts []string
	named := false // one that is not identity
	for _, w := range wishes(accept) {
		if !w.refused || w.name == "identity" {
			texts = append(texts, w.String())
			named = named || w.name != "identity"
		}
	}
	if !named {
		return "identity"
	}
	return strings.Join(texts, ", ")
}

// wishes reads Accept-Encoding (RFC 9110 section 12.5.3): each coding once, and what
// "*" says for those that are not named.
func wishes(accept []string) (all []wish) {
	var others *wish
	for _, line := range accept {
		for part := range strings.SplitSeq(strings.ToLower(line), ",") {
			name, params, _ := strings.Cut(part, ";")
			w := wish{name: strings.TrimPrefix(strings.TrimSpace(name), "x-")}
			w.weight, w.refused = weight(params)
			if w.name == "*" {
				others = &w
			} else if w.name != "" && codings[w.name] != nil {
				all = wishFor(all, w)
			}
		}
	}
	if others == nil || others.refused {
		return all
	}
	for _, name := range []string{"gzip", "br", "zstd"} {
		if !slices.ContainsFunc(all, func(w wish) bool { return w.name == name }) {
			all = append(all, wish{name: name, weight: others.weight})
		}
	}
	return all
}

// wishFor adds a wish. Of two for one coding that counts which does not refuse.
func wishFor(all []wish, w wish) []wish {
	i := slices.IndexFunc(all, func(other wish) bool { return other.name == w.name })
	if i < 0 {
		return append(all, w)
	}
	if all[i].refused {
		all[i] = w
	}
	return all
}

// weight reads the parameters of a coding, in lower case. What is no weight is none.
func weight(params string) (text string, refused bool) {
	_, q, ok := strings.Cut(strings.ReplaceAll(params, " ", ""), "q=")
	if !ok || len(q) > 5 {
		return "", false
	}
	value, err := strconv.ParseFloat(q, 64)
	if err != nil || !(value >= 0 && value <= 1) {
		return "", false
	}
	return q, value == 0
}

type identity struct{}

func (identity) decode(r io.Reader) io.Reader { return r }
func (identity) encode(w io.Writer) encoder   { return plainEncoder{w} }

type plainEncoder struct{ io.Writer }

func (plainEncoder) Flush() error { return nil }
func (plainEncoder) Close() error { return nil }

// errBomb ends a body that grows out of all proportion when it is decoded.
var errBomb = errors.New("decoded body is out of proportion")

// What may come out of a compressed page: anything up to freeSize; above that
// less than maxRatio times what went in, and less than maxSize.
const (
	freeSize = 8 << 20
	maxRatio = 200
	maxSize  = 512 << 20
)

// bounded decodes with limits. The decoder is opened at the first Read, since
// opening reads.
type bounded struct {
	in   *counter
	open func(io.Reader) (io.Reader, error)
	out  io.Reader
	n    int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.decode(p)
	b.n += int64(n)
	if b.in.isEmpty {
		return 0, io.EOF // in every coding
	}
	if b.n > freeSize && (b.n > maxSize || b.n/maxRatio > b.in.n) {
		return 0, errBomb
	}
	return n, err
}

func (b *bounded) decode(p []byte) (int, error) {
	if b.out == nil {
		out, err := b.open(b.in)
		if err != nil {
			return 0, fmt.Errorf("decode page: %w", err)
		}
		b.out = out
	}
	return b.out.Read(p)
}

type counter struct {
	r       io.Reader
	n       int64
	isEmpty bool // it has ended without a byte
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	c.isEmpty = c.n == 0 && errors.Is(err, io.EOF)
	return n, err
}

// ending reads a decoded body to its end, and then on to the end of what it was
// decoded from: a body that breaks off after its last byte of content is still broken.
type ending struct {
	out, in io.Reader
	done    func() // when all of it has been read; may be nil
	err     error  // sticky
}

func (e *ending) Read(p []byte) (int, error) {
	if e.err != nil {
		return 0, e.err
	}
	n, err := e.out.Read(p)
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	_, err = io.Copy(io.Discard, e.in)
	if err == nil && e.done != nil {
		e.done()
	}
	e.err = cmp.Or(err, io.EOF)
	return n, e.err
}
