package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Each mode has its own folder below data_dir: the engine deletes the streams of
// a folder that was made alone and is opened as a member of a cluster.
const (
	soloFolder    = "solo"
	clusterFolder = "cluster"

	markerFile    = "deckle-store.json"
	lockFile      = "lock"
	markerVersion = 1
)

// A marker says what a folder is. It is replaced as a whole.
type marker struct {
	Store   string `json:"store"`   // "deckle": whose it is
	Mode    Mode   `json:"mode"`    // Embedded or Clustered
	Version int    `json:"version"` // of what is in the folder

	// Streams are what was in the store when it was closed: a stream that ends before
	// has lost something. If nobody has opened it since, it is all still there.
	Streams map[string]extent `json:"streams,omitempty"`
	Closed  bool              `json:"closed"`
}

// An extent is what a stream has.
type extent struct {
	First    uint64 `json:"first"`
	Last     uint64 `json:"last"`
	Messages uint64 `json:"messages"`
}

// A folder is a mode's folder, locked for this process.
type folder struct {
	path    string
	lock    *os.File
	marker  marker
	reserve int64

	// The disk is measured again when that is older than roomAge; meanwhile what is
	// written is taken off.
	measured atomic.Int64 // Unix nanoseconds
	free     atomic.Int64 // bytes
}

const roomAge = 100 * time.Millisecond

// openFolder locks the folder of an embedded store. It makes it unless asIs.
func openFolder(c Config, how opening) (_ *folder, err error) {
	f := &folder{path: filepath.Join(c.DataDir, soloFolder), reserve: c.Reserve}
	if how.folder != "" {
		f.path = how.folder
	}
	if how.asIs {
		if _, err := os.Stat(f.path); err != nil {
			return nil, fmt.Errorf("no store in %s: %w", f.path, err)
		}
	} else if err := os.MkdirAll(f.path, 0o700); err != nil {
		return nil, fmt.Errorf("make folder %s: %w; give data_dir a folder that this user may write", f.path, err)
	}
	if err := f.examine(how); err != nil {
		return nil, err
	}
	if err := f.acquire(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.close())
		}
	}()
	if f.marker.Version == 0 {
		if err := refuseOrphan(c.DataDir, f.path, how); err != nil {
			return nil, err
		}
		f.marker = marker{Store: "deckle", Mode: Embedded, Version: markerVersion}
		if err := f.writeMarker(); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// examine reads the marker. A folder without one must be empty.
func (f *folder) examine(how opening) error {
	text, err := os.ReadFile(filepath.Join(f.path, markerFile))
	if errors.Is(err, fs.ErrNotExist) {
		return f.examineUnmarked(how)
	}
	if err != nil {
		return fmt.Errorf("read marker of %s: %w", f.path, err)
	}
	m := marker{}
	if err := json.Unmarshal(text, &m); err != nil || m.Store != "deckle" || m.Version < 1 {
		return fmt.Errorf("%s does not say whose folder %s is: give data_dir another folder, or restore the file from a backup", markerFile, f.path)
	}
	if m.Version > markerVersion {
		return fmt.Errorf("folder %s was written by a later version of Deckle (%d, and this one knows %d): start that version", f.path, m.Version, markerVersion)
	}
	if m.Mode != Embedded {
		return fmt.Errorf("folder %s was written in mode %q, and opening it in mode %q would delete what is in it: set store.mode back, or move the folder to where that mode has it", f.path, m.Mode, Embedded)
	}
	f.marker = m
	return nil
}

func (f *folder) examineUnmarked(how opening) error {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return fmt.Errorf("read folder %s: %w", f.path, err)
	}
	for _, e := range entries {
		// A process that was killed at its first start leaves these two.
		if e.Name() != lockFile && !strings.HasPrefix(e.Name(), markerFile) {
			return fmt.Errorf("folder %s is not a store: it has %s and no %s; give data_dir another folder, or move this one away", f.path, e.Name(), markerFile)
		}
	}
	if how.asIs {
		return fmt.Errorf("no store in %s: the folder is empty", f.path)
	}
	return nil
}

// refuseOrphan refuses to begin from nothing beside a store of another mode:
// somebody has changed store.mode, and would lose sight of everything.
func refuseOrphan(dataDir, own string, how opening) error {
	if how.fresh || how.asIs {
		return nil
	}
	for _, name := range []string{soloFolder, clusterFolder} {
		other := filepath.Join(dataDir, name)
		if _, err := os.Stat(filepath.Join(other, markerFile)); err != nil || other == own {
			continue
		}
		return fmt.Errorf("%s has the store of another mode, and this mode has none: set store.mode back, or take it over with `deckle store import %s`, or move it away to begin from nothing", other, other)
	}
	return nil
}

// acquire locks the folder. The lock ends with the process, however that ends.
func (f *folder) acquire() error {
	path := filepath.Join(f.path, lockFile)
	lock, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("lock folder %s: %w; give data_dir a folder that this user may write", f.path, err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("lock folder %s: %w", f.path, err)
		}
		holder, _ := os.ReadFile(path)
		return fmt.Errorf("folder %s is %w by process %s: stop it first, or give this one another data_dir", f.path, ErrInUse, strings.TrimSpace(string(holder)))
	}
	f.lock = lock
	if err := lock.Truncate(0); err != nil {
		return fmt.Errorf("lock folder %s: %w", f.path, err)
	}
	if _, err := lock.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0); err != nil {
		return fmt.Errorf("lock folder %s: %w", f.path, err)
	}
	return nil
}

// writeMarker replaces the marker. A crash leaves the one or the other.
func (f *folder) writeMarker() error {
	text, err := json.Marshal(f.marker)
	if err != nil {
		return fmt.Errorf("write marker of %s: %w", f.path, err)
	}
	path := filepath.Join(f.path, markerFile)
	err = writeSynced(path+".part", append(text, '\n'))
	if err == nil {
		err = os.Rename(path+".part", path)
	}
	if err == nil {
		err = syncFolder(f.path)
	}
	if err != nil {
		return fmt.Errorf("write marker of %s: %w", f.path, err)
	}
	return nil
}

func writeSynced(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Sync(), file.Close())
}

func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// take returns ErrFull when n bytes would leave less than the reserve on the
// folder's disk.
func (f *folder) take(n int) error {
	if now := time.Now().UnixNano(); now-f.measured.Load() > int64(roomAge) {
		free, err := freeSpace(f.path)
		if err != nil {
			return fmt.Errorf("measure disk of %s: %w: %w", f.path, ErrUnavailable, err)
		}
		f.free.Store(free)
		f.measured.Store(now)
	}
	if free := f.free.Add(-int64(n)); free < f.reserve {
		return fmt.Errorf("%w: %d bytes would be free on the disk of %s, and %d are kept", ErrFull, free, f.path, f.reserve)
	}
	return nil
}

// freeSpace returns how many bytes an unprivileged process may still write.
func freeSpace(path string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil // of other types elsewhere
}

// close releases the lock. The file stays: removing it would let a third
// process lock another one of the same name.
func (f *folder) close() error {
	if f.lock == nil {
		return nil
	}
	return f.lock.Close()
}
