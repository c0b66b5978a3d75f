package edge

import (
	"errors"
	"io"
	"sync"

	"github.com/molecule-man/go-brrr"
)

// brotlied is the coding br (RFC 7932), by a library that is fast and young. The
// tests have another one behind the same two methods, hold both to the same suite,
// and fuzz them against each other.
type brotlied struct{}

// Readers are not kept for the next page: a fault of theirs could show it a part of
// this one.
func (brotlied) decode(r io.Reader) io.Reader {
	return &bounded{in: &counter{r: r}, open: func(r io.Reader) (io.Reader, error) {
		return &ending{out: brotliReader{brrr.NewReader(r)}, in: r}, nil
	}}
}

// A brotliReader passes over what follows the end of a body, as browsers do.
type brotliReader struct{ *brrr.Reader }

func (r brotliReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if errors.Is(err, brrr.ErrExcessiveInput) {
		err = io.EOF
	}
	return n, err
}

// Of what brotli costs a page, and what it saves. A window of 256 KiB is as large as
// most pages and a sixteenth of the default's memory.
const (
	brotliLevel  = 4
	brotliWindow = 18 // bits
)

var brotliWriters = sync.Pool{New: func() any {
	w, err := brrr.NewWriterOptions(nil, brotliLevel, brrr.WriterOptions{LGWin: brotliWindow})
	if err != nil {
		panic(err) // the options are constant
	}
	return w
}}

func (brotlied) encode(w io.Writer) encoder {
	z := brotliWriters.Get().(*brrr.Writer)
	z.Reset(w)
	return &brotliEncoder{z}
}

type brotliEncoder struct{ *brrr.Writer }

// Close ends the body and gives the writer back. The encoder of a page that is
// cut off is never closed and left to the garbage collector.
func (e *brotliEncoder) Close() error {
	err := e.Writer.Close()
	e.Writer.Reset(nil)
	brotliWriters.Put(e.Writer)
	e.Writer = nil
	return err
}
