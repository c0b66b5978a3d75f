package telemetry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"
)

// A file writes events as lines of JSON, whole ones only, and begins another file
// when one is full. A file that somebody has moved away is begun anew.
type file struct {
	path     string
	rotateAt int64
	keep     int
	metrics  *Metrics
	log      *slog.Logger

	open   *os.File // nil: not open
	size   int64
	logged time.Time // when a failure was last logged
}

func (f *file) run(_ context.Context, q queue) {
	defer f.close()
	for {
		lines, n := q.batch()
		if n == 0 {
			return
		}
		if err := f.write(lines); err != nil {
			f.metrics.add(sinkFile, outcomeFailed, n)
			f.complain(err)
			continue
		}
		f.metrics.add(sinkFile, outcomeWritten, n)
	}
}

// complain logs that events are lost, and why, once in a while.
func (f *file) complain(err error) {
	const quiet = time.Minute
	if now := time.Now(); now.Sub(f.logged) >= quiet {
		f.logged = now
		f.log.Error("auctions are not exported", "err", err)
	}
}

// write appends lines. After an error none of them is in the file, as far as the
// file system lets us take back what it has written.
func (f *file) write(lines []byte) error {
	if err := f.ready(); err != nil {
		return err
	}
	n, err := f.open.Write(lines)
	if err == nil {
		f.size += int64(n)
		return nil
	}
	return errors.Join(err, f.open.Truncate(f.size), f.close())
}

// ready opens the file, or another one where it is full or has been moved away.
func (f *file) ready() error {
	if f.open != nil && !f.isThere() {
		if err := f.close(); err != nil {
			return err
		}
	}
	if f.open == nil {
		if err := f.begin(); err != nil {
			return err
		}
	}
	if f.size < f.rotateAt {
		return nil
	}
	if err := errors.Join(f.close(), f.shift()); err != nil {
		return err
	}
	return f.begin()
}

// isThere reports whether the open file is still the one with our path.
func (f *file) isThere() bool {
	ours, err := f.open.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(f.path)
	return err == nil && os.SameFile(ours, named)
}

// begin opens the file to append to it: after a line that a crash has cut off, on
// a line of its own.
func (f *file) begin() (err error) {
	f.open, err = os.OpenFile(f.path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o640)
	if err != nil {
		f.open = nil
		return err
	}
	info, err := f.open.Stat()
	if err != nil {
		return errors.Join(err, f.close())
	}
	if f.size = info.Size(); f.size == 0 {
		return nil
	}
	last := make([]byte, 1)
	if _, err := f.open.ReadAt(last, f.size-1); err != nil {
		return errors.Join(err, f.close())
	}
	if !bytes.Equal(last, []byte("\n")) {
		n, err := f.open.WriteString("\n")
		if f.size += int64(n); err != nil {
			return errors.Join(err, f.close())
		}
	}
	return nil
}

// shift renames FILE to FILE.1, FILE.1 to FILE.2 and so on; the oldest goes.
func (f *file) shift() error {
	for i := f.keep; i > 0; i-- {
		from := f.path
		if i > 1 {
			from = fmt.Sprintf("%s.%d", f.path, i-1)
		}
		if err := os.Rename(from, fmt.Sprintf("%s.%d", f.path, i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (f *file) close() error {
	if f.open == nil {
		return nil
	}
	err := f.open.Close()
	f.open = nil
	return err
}
