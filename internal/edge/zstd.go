package edge

import (
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// zstandard is the coding zstd (RFC 8878).
type zstandard struct{}

// maxZstdWindow is what RFC 9659 allows in HTTP.
const maxZstdWindow = 8 << 20

// Readers and writers do their work in the goroutine that calls them, so that none
// of a page that is cut off is left behind.
var (
	zstdReaders = sync.Pool{New: func() any {
		r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxZstdWindow))
		if err != nil {
			panic(err) // the options are constant
		}
		return r
	}}
	zstdWriters = sync.Pool{New: func() any {
		w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(512<<10))
		if err != nil {
			panic(err) // the options are constant
		}
		return w
	}}
)

func (zstandard) decode(r io.Reader) io.Reader {
	return &bounded{in: &counter{r: r}, open: openZstd}
}

func openZstd(r io.Reader) (io.Reader, error) {
	z := zstdReaders.Get().(*zstd.Decoder)
	if err := z.Reset(r); err != nil {
		return nil, err
	}
	return &ending{out: z, in: r, done: func() {
		_ = z.Reset(nil) // so that it keeps nothing of the page
		zstdReaders.Put(z)
	}}, nil
}

func (zstandard) encode(w io.Writer) encoder {
	z := zstdWriters.Get().(*zstd.Encoder)
	z.Reset(w)
	return &zstdEncoder{z}
}

type zstdEncoder struct{ *zstd.Encoder }

// Close ends the body and gives the writer back. The encoder of a page that is
// cut off is never closed and left to the garbage collector.
func (e *zstdEncoder) Close() error {
	err := e.Encoder.Close()
	e.Encoder.Reset(nil)
	zstdWriters.Put(e.Encoder)
	e.Encoder = nil
	return err
}
