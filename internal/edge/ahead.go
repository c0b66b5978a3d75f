package edge

import (
	"fmt"
	"io"
	"sync"
)

// maxAhead is about how many decoded bytes of a page are read before they are
// taken: while a hold lasts the origin's worker can finish and go. What was taken
// and waits for a slow reader comes on top, once more as much.
const maxAhead = 256 << 10

// readAhead reads a body in the background, so that whoever writes the page can
// wait for bytes and for the auction at the same time. Bytes change hands by
// swapping two buffers, which are lent for the time of a page.
type readAhead struct {
	// arrived holds a token while there may be something to take; room holds one
	// after something was taken. quit is closed when nobody takes any more.
	arrived, room chan struct{}
	quit, ended   chan struct{}

	taken *[]byte // what the last take returned; owned by the taker

	mu   sync.Mutex
	data *[]byte // read and not taken
	err  error   // what ended the body; io.EOF at its end
}

var aheadBuffers = sync.Pool{New: func() any { b := make([]byte, 0, 64<<10); return &b }}

// startAhead starts reading body. The caller must call stop.
func startAhead(body io.Reader) *readAhead {
	a := &readAhead{
		arrived: make(chan struct{}, 1), room: make(chan struct{}, 1),
		quit: make(chan struct{}), ended: make(chan struct{}),
		taken: aheadBuffers.Get().(*[]byte), data: aheadBuffers.Get().(*[]byte),
	}
	*a.taken, *a.data = (*a.taken)[:0], (*a.data)[:0]
	go func() {
		defer close(a.ended)
		a.run(body)
	}()
	return a
}

// stop ends the reading and waits for it. A Read of the body that is under way
// must have been made to return, by closing what is below it. What was taken is
// not valid any more.
func (a *readAhead) stop() {
	close(a.quit)
	<-a.ended
	aheadBuffers.Put(a.taken)
	aheadBuffers.Put(a.data)
}

func (a *readAhead) run(body io.Reader) {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	defer func() {
		if v := recover(); v != nil { // a decoder's fault costs this page, not the process
			a.put(nil, fmt.Errorf("decoder panicked: %v", v))
		}
	}()
	for a.hasRoom() {
		n, err := body.Read(*buf)
		a.put((*buf)[:n], err)
		if err != nil {
			return
		}
	}
}

// hasRoom waits until more may be read; false: nobody wants it.
func (a *readAhead) hasRoom() bool {
	for {
		a.mu.Lock()
		full := len(*a.data) >= maxAhead
		a.mu.Unlock()
		select {
		case <-a.quit:
			return false
		default:
		}
		if !full {
			return true
		}
		select {
		case <-a.room:
		case <-a.quit:
		}
	}
}

func (a *readAhead) put(b []byte, err error) {
	a.mu.Lock()
	*a.data = append(*a.data, b...)
	a.err = err
	a.mu.Unlock()
	signal(a.arrived)
}

// take returns what has been read, and what ended the body, if it has ended. The
// bytes are valid until the next take.
func (a *readAhead) take() (data []byte, err error) {
	*a.taken = (*a.taken)[:0]
	a.mu.Lock()
	a.taken, a.data = a.data, a.taken
	err = a.err
	a.mu.Unlock()
	signal(a.room)
	return *a.taken, err
}

// idle reports whether all that the origin has written so far has been taken.
func (a *readAhead) idle() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(*a.data) == 0 && a.err == nil
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
