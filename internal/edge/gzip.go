package edge

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
)

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
