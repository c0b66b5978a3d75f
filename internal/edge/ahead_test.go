package edge

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
)

// all takes until the body has ended.
func all(a *readAhead) (string, error) {
	var b strings.Builder
	for {
		<-a.arrived
		data, err := a.take()
		b.Write(data)
		if err != nil {
			return b.String(), err
		}
	}
}

func TestReadAheadKeepsOrderAndEnd(t *testing.T) {
	text := strings.Repeat("0123456789", 100_000) // about four times what is read ahead
	for name, r := range map[string]io.Reader{
		"whole":        strings.NewReader(text),
		"byte by byte": iotest.OneByteReader(strings.NewReader(text)),
		"data and EOF": iotest.DataErrReader(strings.NewReader(text)),
	} {
		a := startAhead(r)
		if got, err := all(a); got != text || !errors.Is(err, io.EOF) {
			t.Errorf("%s: %d bytes, %v; want %d", name, len(got), err, len(text))
		}
		a.stop()
	}
}

// No more is read than fits, and a page that is given up ends the reading.
func TestReadAheadIsBounded(t *testing.T) {
	read := 0
	a := startAhead(readerFunc(func(p []byte) (int, error) {
		read += len(p)
		return len(p), nil
	}))
	for full := false; !full; {
		<-a.arrived
		a.mu.Lock()
		full = len(*a.data) >= maxAhead
		a.mu.Unlock()
	}
	a.stop()
	if read > maxAhead+64<<10 {
		t.Errorf("%d bytes read ahead", read)
	}
}

// Whoever has stopped reading ahead may take the buffers and the body away.
func TestReadAheadHasEndedWhenItIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, stopped := make(chan struct{}), false
		a := startAhead(readerFunc(func([]byte) (int, error) {
			<-release
			return 0, io.EOF
		}))
		synctest.Wait()
		go func() {
			a.stop()
			stopped = true
		}()
		synctest.Wait()
		if stopped {
			t.Error("stopped while a Read was under way")
		}
		close(release)
		synctest.Wait()
		if !stopped {
			t.Error("did not stop")
		}
	})
}

func TestReadAheadSurvivesADecoder(t *testing.T) {
	a := startAhead(readerFunc(func([]byte) (int, error) { panic("index out of range") }))
	defer a.stop()
	if _, err := all(a); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("a panic ended the body with %v", err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
