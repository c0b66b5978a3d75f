package access

import (
	"fmt"
	"os"
	"sync"
	"time"
)

// maxFileBytes bounds both kinds of file.
const maxFileBytes = 256 << 10

// settled is how old a change must be before size and time of a file prove that
// there was none since: file systems tell times as coarsely as in two seconds.
const settled = 2 * time.Second

// A file is what a small file says. It is read again when it changes; to find out
// takes one system call.
type file[T any] struct {
	path  string
	parse func([]byte) (T, error)

	// changed hears of what was read again. It is set before the file is shared.
	changed func(T, error)

	mu    sync.Mutex
	info  os.FileInfo // of what was read; nil: to be read
	at    time.Time   // when that was
	value T
	err   error
}

// read gives what the file says now. After an error the value is the zero value.
func (f *file[T]) read() (T, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.path)
	if err != nil {
		var none T
		if f.info != nil && f.changed != nil {
			f.changed(none, err)
		}
		f.info, f.value, f.err = nil, none, err
		return none, err
	}
	if f.info != nil && f.same(info) {
		return f.value, f.err
	}
	again := f.info == nil || !os.SameFile(info, f.info) || info.Size() != f.info.Size() || !info.ModTime().Equal(f.info.ModTime())
	f.info, f.at = info, time.Now()
	f.value, f.err = f.load(info)
	if again && f.changed != nil {
		f.changed(f.value, f.err)
	}
	return f.value, f.err
}

// same reports whether info proves that the file is what was read.
func (f *file[T]) same(info os.FileInfo) bool {
	return os.SameFile(info, f.info) && info.Size() == f.info.Size() &&
		info.ModTime().Equal(f.info.ModTime()) && f.at.Sub(info.ModTime()) > settled
}

func (f *file[T]) load(info os.FileInfo) (v T, err error) {
	if !info.Mode().IsRegular() { // to open a pipe could block
		return v, fmt.Errorf("%s is not a file", f.path)
	}
	r, err := os.Open(f.path)
	if err != nil {
		return v, err
	}
	defer r.Close()
	data, err := readAll(r, maxFileBytes)
	if err == nil {
		v, err = f.parse(data)
	}
	if err != nil {
		var none T
		return none, fmt.Errorf("%s: %w", f.path, err)
	}
	return v, nil
}

// forget makes the next read a real one.
func (f *file[T]) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.info = nil
}
