package store_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckle/internal/store"
)

var discard = slog.New(slog.DiscardHandler)

// contents are a folder's files and what is in them, but for the lock.
func contents(t *testing.T, dir string) map[string][32]byte {
	t.Helper()
	files := map[string][32]byte{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "lock" {
			return err
		}
		data, err := os.ReadFile(path)
		files[path] = sha256.Sum256(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// write makes a file and its folders.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// used makes a store with something in it, closed.
func used(t *testing.T, dir string) {
	t.Helper()
	st, err := store.Open(t.Context(), store.Config{DataDir: dir}, discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b", "c"} {
		if _, err := st.Journal().Append(t.Context(), id, message(id)); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestFoldersThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		prepare func(t *testing.T, dir string)
		want    []string // of the error, beside the folder
	}{
		"foreign": {func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "solo", "holiday.jpg"), "x")
		}, []string{"is not a store", "holiday.jpg", "give data_dir another folder"}},
		"an engine's, not ours": {func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "solo", "jetstream", "$G", "streams", "ORDERS", "meta.inf"), "{}")
		}, []string{"is not a store", "jetstream"}},
		"of another mode, renamed": {func(t *testing.T, dir string) {
			used(t, dir)
			write(t, filepath.Join(dir, "solo", "deckle-store.json"), `{"store":"deckle","mode":"clustered","version":1}`)
		}, []string{`written in mode "clustered"`, "would delete what is in it", "set store.mode back"}},
		"of another mode, beside": {func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "cluster", "deckle-store.json"), `{"store":"deckle","mode":"clustered","version":1}`)
		}, []string{"cluster has the store of another mode", "deckle store import"}},
		"of a later version": {func(t *testing.T, dir string) {
			used(t, dir)
			write(t, filepath.Join(dir, "solo", "deckle-store.json"), `{"store":"deckle","mode":"embedded","version":2}`)
		}, []string{"later version", "start that version"}},
		"somebody else's marker": {func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "solo", "deckle-store.json"), `{"store":"other","mode":"embedded","version":1}`)
		}, []string{"does not say whose folder"}},
		"broken marker": {func(t *testing.T, dir string) {
			used(t, dir)
			write(t, filepath.Join(dir, "solo", "deckle-store.json"), `{"sto`)
		}, []string{"does not say whose folder", "from a backup"}},
		"a file": {func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "solo"), "x")
		}, []string{"solo", "a folder that this user may write"}},
		"a stream cannot be read": {func(t *testing.T, dir string) {
			used(t, dir)
			write(t, filepath.Join(dir, "solo", "jetstream", "$G", "streams", "journal", "meta.inf"), `{"name"`)
		}, []string{"journal", "store is damaged", "from a backup"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			test.prepare(t, dir)
			before := contents(t, dir)
			st, err := store.Open(t.Context(), store.Config{DataDir: dir}, discard)
			if err == nil {
				t.Fatal("opened", st.Close())
			}
			for _, want := range append(test.want, dir) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v\ndoes not say %q", err, want)
				}
			}
			if errors.Is(err, store.ErrUnavailable) {
				t.Errorf("%v: passes by itself?", err)
			}
			if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
				t.Error("the folder was changed:", diff)
			}
		})
	}
}

func TestUnwritableFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	used(t, dir)
	readOnly(t, dir)
	_, err := store.Open(t.Context(), store.Config{DataDir: dir}, discard)
	if err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "may write") {
		t.Errorf("err = %v, want one that names the folder and the remedy", err)
	}
	_, err = store.Open(t.Context(), store.Config{DataDir: filepath.Join(dir, "deeper")}, discard)
	if err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "may write") {
		t.Errorf("err = %v, want one that names the folder and the remedy", err)
	}
}

// readOnly makes a folder read-only: to root, whom modes do not stop, by a mount.
func readOnly(t *testing.T, dir string) {
	t.Helper()
	if os.Getuid() != 0 {
		for _, d := range []string{filepath.Join(dir, "solo"), dir} {
			mode := fs.FileMode(0o500)
			if err := os.Chmod(d, mode); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Chmod(d, 0o700) })
		}
		lock := filepath.Join(dir, "solo", "lock")
		if err := os.Chmod(lock, 0o400); err != nil {
			t.Fatal(err)
		}
		return
	}
	mount(t, dir, dir, "", syscall.MS_BIND, "")
	if err := syscall.Mount(dir, dir, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
}

// mount mounts until the test ends.
func mount(t *testing.T, source, dir, kind string, flags uintptr, data string) {
	t.Helper()
	if err := syscall.Mount(source, dir, kind, flags, data); err != nil {
		t.Fatalf("mount %s: %v (a container without CAP_SYS_ADMIN runs this as another user than root)", dir, err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

func TestSecondProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := startHelper(t, dir, "", 0)
	_, err := store.Open(t.Context(), store.Config{DataDir: dir}, discard)
	if !errors.Is(err, store.ErrInUse) {
		t.Fatalf("err = %v, want ErrInUse", err)
	}
	for _, want := range []string{dir, fmt.Sprint("process ", first.Process.Pid), "another data_dir"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\ndoes not say %q", err, want)
		}
	}
	if _, err := store.Inspect(t.Context(), store.Config{DataDir: dir}, discard); !errors.Is(err, store.ErrInUse) {
		t.Errorf("inspect: %v, want ErrInUse", err)
	}

	// The lock ends with its process, however that ends.
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	open(t, store.Config{DataDir: dir})
}

func TestFirstStartThatWasKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "solo", "lock"), "1\n")
	write(t, filepath.Join(dir, "solo", "deckle-store.json.part"), `{"sto`)
	open(t, store.Config{DataDir: dir})
}

func TestContentOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	used(t, dir)
	st := open(t, store.Config{DataDir: dir})
	var got []string
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err := st.Journal().Read(ctx, 1, func(m store.Message) error {
		if got = append(got, idOf(m.Data)); len(got) == 3 {
			cancel()
		}
		return nil
	})
	if diff := cmp.Diff([]string{"a", "b", "c"}, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	// An id is remembered across restarts.
	if seq, err := st.Journal().Append(t.Context(), "b", message("b")); err != nil || seq != 2 {
		t.Errorf("append b again = %d, %v; want 2", seq, err)
	}
}

func TestModes(t *testing.T) {
	t.Parallel()
	for mode, want := range map[store.Mode]string{
		store.Clustered: "not built yet",
		store.External:  "store.external.urls",
		"raft":          "none of embedded, clustered, external",
	} {
		dir := t.TempDir()
		if _, err := store.Open(t.Context(), store.Config{Mode: mode, DataDir: dir}, discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("mode %s: %v, want %q", mode, err, want)
		}
		if files := contents(t, dir); len(files) > 0 {
			t.Errorf("mode %s made %v", mode, files)
		}
	}
}

// The engine has no port, and leaves nothing running.
func TestNoPortAndNoGoroutines(t *testing.T) {
	sockets := socketsOf(t)
	before := runtime.NumGoroutine()
	st := open(t, store.Config{DataDir: t.TempDir()})
	if got := socketsOf(t); got != sockets {
		t.Errorf("%d sockets with an open store, %d before", got, sockets)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(5 * time.Second)
	for runtime.NumGoroutine() > before && time.Now().Before(deadline) {
		runtime.Gosched()
	}
	if n := runtime.NumGoroutine(); n > before {
		stacks := make([]byte, 1<<16)
		t.Errorf("%d goroutines after Close, %d before\n%s", n, before, stacks[:runtime.Stack(stacks, true)])
	}
}

// socketsOf counts this process's.
func socketsOf(t *testing.T) (n int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(target, "socket:") {
			n++
		}
	}
	return n
}
