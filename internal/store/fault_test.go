package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"deckle/internal/store"
)

// smallDisk is a folder on a disk of so many MiB: a tmpfs to root, else nil.
func smallDisk(t *testing.T, mib int) string {
	t.Helper()
	dir := t.TempDir()
	if os.Getuid() == 0 {
		mount(t, "tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", mib))
	}
	return dir
}

// Below the reserve nothing is written, and what was is there; it goes on when
// there is room.
func TestReserve(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t, 24)
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		t.Fatal(err)
	}
	free := int64(disk.Bavail) * disk.Bsize
	st := open(t, store.Config{DataDir: dir, Reserve: free - 12<<20})
	acked, err := appendUntil(t, st, store.ErrFull)
	if !errors.Is(err, store.ErrUnavailable) || len(acked) == 0 {
		t.Errorf("%d appends, then %v; want ErrFull, which wraps ErrUnavailable", len(acked), err)
	}
	if _, err := st.Catalog().Put(t.Context(), "a", []byte("1"), 0); !errors.Is(err, store.ErrFull) {
		t.Errorf("put: %v, want ErrFull", err)
	}
	if _, err := st.Assets().Put(t.Context(), []byte("1"), ""); !errors.Is(err, store.ErrFull) {
		t.Errorf("put asset: %v, want ErrFull", err)
	}
	verify(t, st, acked)

	if err := store.Purge(st, store.Seq(len(acked)/2)); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		if _, err := st.Journal().Append(t.Context(), "room", message("room")); err == nil {
			break
		} else if time.Now().After(deadline) || !errors.Is(err, store.ErrFull) {
			t.Fatal(err)
		}
	}
}

// appendUntil appends until an error that must wrap want, and returns the ids of
// what was acknowledged, by place.
func appendUntil(t *testing.T, st *store.Store, want error) (acked map[store.Seq]string, _ error) {
	t.Helper()
	acked = map[store.Seq]string{}
	for i := range 10_000 {
		id := fmt.Sprint("id", i)
		seq, err := st.Journal().Append(t.Context(), id, append(message(id), make([]byte, 100<<10)...))
		if err != nil {
			if !errors.Is(err, want) {
				t.Fatalf("append %d: %v, want %v", i, err, want)
			}
			return acked, err
		}
		acked[seq] = id
	}
	t.Fatal("it never ends")
	return nil, nil
}

// verify shows that what was acknowledged is there, at its place, once.
func verify(t *testing.T, st *store.Store, acked map[store.Seq]string) {
	t.Helper()
	state, err := st.Journal().State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	places := map[string]store.Seq{}
	if state.Last > 0 {
		enough := errors.New("enough")
		ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
		defer cancel()
		err = st.Journal().Read(ctx, 1, func(m store.Message) error {
			if first, ok := places[idOf(m.Data)]; ok {
				return fmt.Errorf("%s is at %d and at %d", idOf(m.Data), first, m.Seq)
			}
			places[idOf(m.Data)] = m.Seq
			if m.Seq == state.Last {
				return enough
			}
			return nil
		})
		if !errors.Is(err, enough) {
			t.Fatal("read: ", err)
		}
	}
	lost := 0
	for seq, id := range acked {
		if places[id] != seq {
			if lost++; lost <= 5 {
				t.Errorf("%s was acknowledged at %d, and is at %d of %d", id, seq, places[id], state.Last)
			}
		}
	}
	if lost > 0 {
		t.Errorf("of %d acknowledged messages %d are lost or elsewhere", len(acked), lost)
	}
}

// A disk that is full all the same stops the engine. Nothing is acknowledged that
// is not there afterwards.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t, 8)
	c := store.Config{DataDir: dir, Reserve: 1, CallTimeout: 500 * time.Millisecond}
	if os.Getuid() != 0 {
		c.Reserve = 1 << 60 // another's disk is not filled up: the reserve must do
	}
	st, err := store.Open(t.Context(), c, discard)
	if err != nil {
		if os.Getuid() != 0 && errors.Is(err, store.ErrFull) {
			return
		}
		t.Fatal(err)
	}
	acked, err := appendUntil(t, st, store.ErrUnavailable)
	t.Logf("%d messages, then: %v", len(acked), err)
	for range 3 {
		if seq, err := st.Journal().Append(t.Context(), "after", message("after")); err == nil {
			acked[seq] = "after"
		} else if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("append after: %v, want ErrUnavailable", err)
		}
	}
	closeErr := st.Close() // there is no room to write down how it ended
	t.Log("close:", closeErr)

	if os.Getuid() == 0 {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=64m"); err != nil {
			t.Fatal(err)
		}
	}
	verify(t, open(t, store.Config{DataDir: dir, Reserve: 1}), acked)
}

// What ends while it is used answers everybody, and has what it acknowledged.
func TestEndUnderLoad(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*store.Store) error{
		"closed":         (*store.Store).Close,
		"engine stopped": store.StopEngine,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c := store.Config{DataDir: dir, CallTimeout: 500 * time.Millisecond}
			st := open(t, c)
			acked := map[store.Seq]string{}
			var mu sync.Mutex
			var wg sync.WaitGroup
			ready := make(chan struct{}, 1)
			for w := range 8 {
				wg.Go(func() {
					for i := 0; ; i++ {
						id := fmt.Sprintf("%d-%d", w, i)
						seq, err := st.Journal().Append(t.Context(), id, message(id))
						if err != nil {
							if !errors.Is(err, store.ErrUnavailable) {
								t.Errorf("append: %v, want ErrUnavailable", err)
							}
							return
						}
						mu.Lock()
						acked[seq] = id
						if len(acked) == 200 {
							ready <- struct{}{}
						}
						mu.Unlock()
					}
				})
			}
			for range 2 {
				wg.Go(func() {
					err := st.Journal().Read(t.Context(), 1, func(store.Message) error { return nil })
					if !errors.Is(err, store.ErrUnavailable) {
						t.Errorf("read: %v, want ErrUnavailable", err)
					}
				})
				wg.Go(func() {
					err := st.Catalog().Watch(t.Context(), func(store.Change) error { return nil })
					if !errors.Is(err, store.ErrUnavailable) {
						t.Errorf("watch: %v, want ErrUnavailable", err)
					}
				})
			}
			<-ready
			if err := end(st); err != nil {
				t.Error(err)
			}
			wg.Wait()
			for _, call := range []func() error{
				func() error { _, err := st.Journal().Append(t.Context(), "x", nil); return err },
				func() error { _, err := st.Journal().State(t.Context()); return err },
				func() error { _, err := st.Catalog().Get(t.Context(), "a"); return err },
				func() error { _, err := st.Status(t.Context()); return err },
				func() error { _, err := st.Assets().Get(t.Context(), fmt.Sprintf("%064d", 0)); return err },
			} {
				if err := call(); !errors.Is(err, store.ErrUnavailable) {
					t.Errorf("afterwards: %v, want ErrUnavailable", err)
				}
			}
			if err := st.Close(); err != nil {
				t.Error(err)
			}
			verify(t, open(t, c), acked)
		})
	}
}

// More calls than may be outstanding wait for their turn.
func TestManyCallers(t *testing.T) {
	t.Parallel()
	st := open(t, store.Config{DataDir: t.TempDir(), CallTimeout: 20 * time.Second})
	var wg sync.WaitGroup
	for i := range 1500 {
		wg.Go(func() {
			if _, err := st.Journal().Append(t.Context(), fmt.Sprint(i), []byte("x")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if state, err := st.Journal().State(t.Context()); err != nil || state.Last != 1500 {
		t.Errorf("state = %+v, %v", state, err)
	}
}

func TestStatusAndInspect(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := store.Inspect(t.Context(), store.Config{DataDir: dir}, discard); err == nil || len(contents(t, dir)) > 0 {
		t.Errorf("inspect of nothing: %v, and made %v", err, contents(t, dir))
	}
	fill(t, dir)
	status, err := store.Inspect(t.Context(), store.Config{DataDir: dir}, discard)
	if err != nil {
		t.Fatal(err)
	}
	if status.Mode != store.Embedded || status.Folder != filepath.Join(dir, "solo") || status.Offset != 0 || status.Free <= 0 || len(status.Streams) != 8 {
		t.Errorf("status = %+v", status)
	}
	s := status.Streams[0]
	if s.Name != "journal" || s.Messages != 12 || s.First != 9 || s.Last != 20 || s.Bytes == 0 || s.MaxBytes != 64<<30 {
		t.Errorf("journal = %+v", s)
	}
	open(t, store.Config{DataDir: dir}) // what was inspected is as it was
}

// An asset is what its id says, whatever the engine has.
func TestAssetOfAnotherDigest(t *testing.T) {
	t.Parallel()
	st := open(t, store.Config{DataDir: t.TempDir()})
	objects, err := store.JetStream(st).ObjectStore(t.Context(), "assets")
	if err != nil {
		t.Fatal(err)
	}
	id := fmt.Sprintf("%064x", 7)
	if _, err := objects.PutBytes(t.Context(), id, []byte("another")); err != nil {
		t.Fatal(err)
	}
	if b, err := st.Assets().Get(t.Context(), id); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("get = %q, %v; want ErrDamaged", b.Data, err)
	}
}
