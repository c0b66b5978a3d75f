// Package htmlstream copies a page and fills the holes that it finds on the way:
// it never changes, reorders or keeps back what it copies.
//
// A [Writer] knows where in an HTML document something may go in, whatever
// stands there: it follows the tokenizer of the HTML standard in every state and
// as much of tree construction as the answer needs. It does not know what goes
// in. Where it cannot be certain, nothing goes in.
//
// Two promises hold for every document and for every way to cut it into Writes.
// Parsing the output gives the tree of the input and the elements that were put
// in, nothing else. And the output without what was put in is the input, byte
// for byte.
//
// All of it assumes a browser that runs scripts: noscript is raw text.
package htmlstream

import (
	"errors"
	"io"
)

// A Point is a place in a document where something may go in, or a set of them.
type Point uint8

// The points of a document in the order in which they are met.
const (
	// HeadStart is the start of head: after an explicit <head>, else before the
	// first token that makes a parser open head. While nobody has named the
	// charset it is further down, see [Options.CharsetKnown].
	HeadStart Point = 1 << iota

	// HeadEnd is the end of head: before </head>, or before the first token
	// that makes a parser close head. A document has it even without head tags.
	HeadEnd

	// Body is the first safe point of the body after a call of [Writer.Late].
	// A point is safe when an element that goes in there ends up in body, is
	// executed, and leaves the tree as it is otherwise.
	Body

	// BodyEnd is before the first </body>, if that is a safe point.
	BodyEnd

	// End is the end of the document, if that is a safe point or in head. It
	// comes also where BodyEnd has come before.
	End

	everywhere = HeadStart | HeadEnd | Body | BodyEnd | End
)

// MaxHeld is how many bytes a [Writer] keeps back at most, while it cannot know
// yet whether a hole stands before them.
const MaxHeld = 32

// ErrClosed is returned by a Write after Close.
var ErrClosed = errors.New("htmlstream: write after close")

// A Filler gives what goes in at a point, or nothing.
//
// It is called at most once for each point, in document order, when every byte
// that precedes the point has been written, by the goroutine that calls Write,
// Late or Close. It may block: nothing that follows the point is written before
// it returns. It may ask what has been found, call [Writer.Stop], and no other method. What it returns
// must be complete elements that parse as children of head, such as script; it
// is not kept.
type Filler func(Point) []byte

// Options say what is known about a document and wanted from it. The zero value
// is ready to use.
type Options struct {
	// CharsetKnown says that the Content-Type names the charset. Where it does
	// not, a browser looks for a meta that does in the first 1,024 bytes, and
	// what goes in must not push that out of them. HeadStart is then directly
	// after the meta, or past these bytes, or at the end of head, whichever is
	// first. A byte order mark is recognised by the Writer.
	CharsetKnown bool

	// Points are the points that are wanted. After the last of them the
	// document is not parsed any more. Defaults to all.
	Points Point

	// Metas are the properties of metas in head that are wanted, such as
	// "article:section", in any case. [Writer.Metas] has what was found; that takes
	// HeadEnd to be wanted too. It is shared and not changed.
	Metas []string

	// Policies says that [Writer.Policies] is wanted.
	Policies bool
}

// A Writer copies a document to another writer and fills its holes on the way.
// What it writes does not depend on how the document is cut into Writes.
//
// It keeps back [MaxHeld] bytes at most and never more than the start of a tag
// or a character reference. It allocates nothing after [NewWriter] but for what
// it finds of the metas that it was asked for.
//
// A document in UTF-16 or ISO-2022-JP, by its byte order mark or its meta, has
// no points: what goes in is ASCII. A document with a frameset has HeadStart, and
// HeadEnd if a </head> comes before the frameset.
//
// It follows the bytes of the document, not what scripts add to them by
// document.write while they are parsed.
//
// A Writer belongs to one goroutine.
type Writer struct {
	out  io.Writer
	fill Filler
	s    scanner
	err  error // of out; sticky

	// held has the n bytes that were taken and not passed on, because the
	// scanner has not decided what they are.
	held [MaxHeld]byte
	n    int

	// first has the nfirst bytes that the document starts with, until it is
	// sniffed: until they are, or cannot be, a byte order mark.
	first   [maxSignature]byte
	nfirst  int
	sniffed bool

	filling bool // fill has been called and has not returned
	stopped bool // by Stop
	closed  bool
}

// NewWriter returns a Writer that copies to w. Without a fill it only copies.
func NewWriter(w io.Writer, o Options, fill Filler) *Writer {
	if o.Points == 0 {
		o.Points = everywhere
	}
	if fill == nil {
		o.Points = 0
	}
	return &Writer{out: w, fill: fill, s: newScanner(o)}
}

// Write takes the next bytes of the document. It returns the error of the
// underlying writer, from then on; how much that had taken is not told.
func (w *Writer) Write(p []byte) (int, error) {
	if w.closed {
		return 0, ErrClosed
	}
	if w.sniffed || w.Done() {
		w.scan(p)
	} else {
		w.sniff(p)
	}
	if w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

// Late says that what was late has come. [Body] is filled at the first safe
// point from here on: before Late returns, if the document stands at one.
func (w *Writer) Late() error {
	w.s.late = true
	if w.Safe() {
		w.fillAll(w.s.take(Body))
	}
	return w.err
}

// Safe reports whether the document stands at a safe point of its body, so that
// Late would fill [Body] right now: all that was taken has been passed on.
func (w *Writer) Safe() bool { return w.n == 0 && w.s.safeNow() }

// Done reports whether no point is left. The Writer only copies from then on.
func (w *Writer) Done() bool { return w.s.want == 0 }

// Stop passes on what is held and gives up all points that are left. It is also
// the way to end a document that broke off: Close would take it for complete.
func (w *Writer) Stop() error {
	w.s.want, w.stopped = 0, true
	if w.filling { // what is held follows what is being filled in
		return w.err
	}
	w.release()
	w.emit(w.first[:w.nfirst])
	w.nfirst = 0
	return w.err
}

// Close says that the document is complete: it fills the points that are left at
// its end, if it ends where something may go in, and passes on what is held. It
// does not close the underlying writer.
func (w *Writer) Close() error {
	if w.closed {
		return w.err
	}
	w.closed = true
	if !w.sniffed {
		w.settle(w.first[:w.nfirst])
	}
	w.fillAll(w.s.endReference()) // before what is held
	w.release()
	w.fillAll(w.s.end())
	return w.err
}

// sniff takes the first bytes of the document, until they have told whether it
// starts with a byte order mark.
func (w *Writer) sniff(p []byte) {
	if w.nfirst == 0 && len(p) >= maxSignature {
		w.settle(p)
		return
	}
	n := copy(w.first[w.nfirst:], p)
	w.nfirst += n
	if b := w.first[:w.nfirst]; !mayBeSignature(b) {
		w.settle(b)
		w.scan(p[n:])
	}
}

// settle acts on the signature that p may start with, and passes p on.
func (w *Writer) settle(p []byte) {
	w.sniffed, w.nfirst = true, 0
	switch sig := signatureOf(p); {
	case sig == utf8BOM:
		w.emit(p[:len(utf8BOM)])
		p = p[len(utf8BOM):]
		w.s.base = int64(len(utf8BOM))
		w.s.charsetKnown = true
		w.s.nlabel = copy(w.s.label[:], "utf-8")
	case sig.isBOM(), sig != "" && !w.s.charsetKnown:
		w.s.want = 0
	}
	w.scan(p)
}

// scan passes p on and fills the holes in it.
func (w *Writer) scan(p []byte) {
	start, i := 0, 0
	for i < len(p) && w.s.want != 0 {
		n, hole, points := w.s.next(p[i:])
		hole += i
		i += n
		if points == 0 {
			continue
		}
		if hole >= 0 {
			w.release()
			w.emit(p[start:hole])
			start = hole
		}
		w.fillAll(points) // a negative hole is before all that is held
	}
	end := len(p) - w.s.undecided()
	if end < 0 {
		w.n += copy(w.held[w.n:], p)
		return
	}
	w.release()
	w.emit(p[start:end])
	w.n = copy(w.held[:], p[end:])
}

// fillAll fills a set of points that are at the same place, in their order.
func (w *Writer) fillAll(points Point) {
	for pt := HeadStart; pt <= End; pt <<= 1 {
		if points&pt == 0 || w.stopped || w.err != nil {
			continue
		}
		w.filling = true
		b := w.fill(pt)
		w.filling = false
		w.emit(b)
	}
}

// release passes on what is held.
func (w *Writer) release() {
	w.emit(w.held[:w.n])
	w.n = 0
}

func (w *Writer) emit(b []byte) {
	if len(b) > 0 && w.err == nil {
		_, w.err = w.out.Write(b)
	}
}
