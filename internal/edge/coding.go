package edge

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
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
}

// readableCodings is an Accept-Encoding that asks for nothing that the reader did
// not ask for and that we cannot read. What "*" says does not count for a coding
// that is named (RFC 9110 section 12.5.3).
func readableCodings(accept []string) string {
	named, wanted, others := false, false, false
	for _, line := range accept {
		for part := range strings.SplitSeq(strings.ToLower(line), ",") {
			name, params, _ := strings.Cut(part, ";")
			switch strings.TrimSpace(name) {
			case "gzip", "x-gzip":
				named, wanted = true, wanted || !refused(params)
			case "*":
				others = !refused(params)
			}
		}
	}
	if wanted || others && !named {
		return "gzip"
	}
	return "identity"
}

// refused reports whether the parameters of a coding, in lower case, weigh it zero.
func refused(params string) bool {
	_, q, ok := strings.Cut(strings.ReplaceAll(params, " ", ""), "q=")
	return ok && strings.Trim(q, "0.") == ""
}

type identity struct{}

func (identity) decode(r io.Reader) io.Reader { return r }
func (identity) encode(w io.Writer) encoder   { return plainEncoder{w} }

type plainEncoder struct{ io.Writer }

func (plainEncoder) Flush() error { return nil }
func (plainEncoder) Close() error { return nil }

type gzipped struct{}

func (gzipped) decode(r io.Reader) io.Reader {
	return &bounded{in: &counter{r: r}, open: openMembers}
}

// members reads a gzip body of several members (RFC 1952 section 2.2). Bytes after
// the last one that begin no other are passed over, as browsers do: some servers
// pad.
type members struct {
	in *bufio.Reader
	z  *gzip.Reader
}

func openMembers(r io.Reader) (io.Reader, error) {
	in := bufio.NewReader(r)
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, err
	}
	z.Multistream(false)
	return &members{in, z}, nil
}

func (m *members) Read(p []byte) (int, error) {
	n, err := m.z.Read(p)
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	if n > 0 {
		return n, nil // the end of this member is met again
	}
	if magic, err := m.in.Peek(2); err != nil || magic[0] != 0x1f || magic[1] != 0x8b {
		_, err := io.Copy(io.Discard, m.in) // a body that breaks off is still broken
		return 0, cmp.Or(err, io.EOF)
	}
	if err := m.z.Reset(m.in); err != nil {
		return 0, err
	}
	m.z.Multistream(false)
	return 0, nil
}

// gzipWriters are kept at a level that costs a page little time.
var gzipWriters = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, 4) // the level is valid
	return w
}}

func (gzipped) encode(w io.Writer) encoder {
	z := gzipWriters.Get().(*gzip.Writer)
	z.Reset(w)
	return &gzipEncoder{z}
}

type gzipEncoder struct{ *gzip.Writer }

// Close ends the body and gives the writer back. The encoder of a page that is
// cut off is never closed and left to the garbage collector.
func (e *gzipEncoder) Close() error {
	err := e.Writer.Close()
	gzipWriters.Put(e.Writer)
	e.Writer = nil
	return err
}

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
	if b.out == nil {
		out, err := b.open(b.in)
		if errors.Is(err, io.EOF) && b.in.n == 0 {
			return 0, io.EOF // an empty body is empty in every coding
		}
		if err != nil {
			return 0, fmt.Errorf("decode page: %w", err)
		}
		b.out = out
	}
	n, err := b.out.Read(p)
	b.n += int64(n)
	if b.n > freeSize && (b.n > maxSize || b.n/maxRatio > b.in.n) {
		return 0, errBomb
	}
	return n, err
}

type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
