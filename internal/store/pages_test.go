package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"deckle/internal/store"
)

// shrinkPages gives the bucket of pages so little room that a test can fill it.
func shrinkPages(t *testing.T, st *store.Store, discard jetstream.DiscardPolicy) {
	t.Helper()
	js := store.JetStream(st)
	stream, err := js.Stream(t.Context(), "KV_pages")
	if err != nil {
		t.Fatal(err)
	}
	c := stream.CachedInfo().Config
	c.MaxBytes, c.Discard = 64<<10, discard
	if _, err := js.UpdateStream(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// fillPages puts 100 pages of 1 KiB: more than a bucket that was shrunk has room for.
// It returns the first error.
func fillPages(t *testing.T, kv store.KV, site string) error {
	t.Helper()
	for i := range 100 {
		if _, err := kv.Put(t.Context(), fmt.Sprintf("%s/%d", site, i), bytes.Repeat([]byte("x"), 1<<10), 0); err != nil {
			return err
		}
	}
	return nil
}

// told are the keys that a bucket has.
func told(t *testing.T, kv store.KV) map[string]bool {
	t.Helper()
	keys := map[string]bool{}
	errAll := errors.New("all")
	err := kv.Watch(t.Context(), func(c store.Change) error {
		if c.Complete {
			return errAll
		}
		keys[c.Key] = true
		return nil
	})
	if !errors.Is(err, errAll) {
		t.Fatal(err)
	}
	return keys
}

// Strangers can make us remember pages without end. The oldest go for them, one that
// is written again stays, and the store opens with what is left, after a crash as well.
func TestPagesMakeRoom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st := open(t, store.Config{DataDir: dir})
	kv := st.Pages()
	first, err := kv.Put(t.Context(), "blog/read", []byte("1"), 0)
	if err != nil {
		t.Fatal(err)
	}
	gone, err := kv.Put(t.Context(), "blog/gone", []byte("1"), 0)
	if err != nil {
		t.Fatal(err)
	}
	shrinkPages(t, st, jetstream.DiscardOld)
	if err := fillPages(t, kv, "a"); err != nil {
		t.Fatalf("a full bucket of pages: %v", err)
	}
	if _, err := kv.Put(t.Context(), "blog/gone", []byte("2"), gone); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a write over a value that made room: %v, want ErrConflict", err)
	}
	if _, err := kv.Get(t.Context(), "blog/read"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the oldest, of revision %d, is there: %v", first, err)
	}
	if _, err := kv.Put(t.Context(), "blog/read", []byte("2"), 0); err != nil {
		t.Errorf("a value that made room comes back: %v", err)
	}
	if err := fillPages(t, kv, "b"); err != nil {
		t.Fatal(err)
	}
	want := told(t, kv)
	if len(want) < 40 || !want["b/99"] || want["a/0"] {
		t.Errorf("it has %d pages", len(want))
	}

	crashed := t.TempDir()
	if err := os.CopyFS(crashed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	for how, dir := range map[string]string{"in order": dir, "by a crash": crashed} {
		again := open(t, store.Config{DataDir: dir})
		have := told(t, again.Pages())
		for key := range want {
			if !have[key] {
				t.Errorf("ended %s: %s is missing", how, key)
			}
		}
		if _, err := again.Pages().Put(t.Context(), "blog/new", []byte("1"), 0); err != nil {
			t.Errorf("ended %s: %v", how, err)
		}
	}
}

// A folder of an earlier version, whose bucket of pages takes nothing more, opens and
// takes pages again.
func TestFullPagesOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st := open(t, store.Config{DataDir: dir})
	shrinkPages(t, st, jetstream.DiscardNew)
	if err := fillPages(t, st.Pages(), "a"); !errors.Is(err, store.ErrFull) {
		t.Fatalf("filled: %v", err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	st = open(t, store.Config{DataDir: dir})
	shrinkPages(t, st, settings(t, st, "KV_pages").Discard)
	if err := fillPages(t, st.Pages(), "b"); err != nil {
		t.Errorf("after the start: %v", err)
	}
}

func settings(t *testing.T, st *store.Store, stream string) jetstream.StreamConfig {
	t.Helper()
	s, err := store.JetStream(st).Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo().Config
}

// Who asks for the store's time learns it from a full store, and not from a closed one.
func TestNow(t *testing.T) {
	t.Parallel()
	st := open(t, store.Config{DataDir: filepath.Join(t.TempDir(), "full"), Reserve: 1 << 62})
	if now, err := st.Now(context.Background()); err != nil || now.IsZero() {
		t.Errorf("now = %v, %v", now, err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Now(context.Background()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("of a closed store: %v", err)
	}
}
