package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckle/internal/store"
)

// crashed makes a store with n messages whose process was killed, and returns the
// path of the journal's block.
func crashed(t *testing.T, dir string, n int) string {
	t.Helper()
	h := startHelper(t, dir, "m", 1)
	h.acks(t, n)
	if err := h.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = h.Wait()
	return journalBlock(t, dir)
}

func journalBlock(t *testing.T, dir string) string {
	t.Helper()
	blocks, err := filepath.Glob(filepath.Join(dir, "solo", "jetstream", "$G", "streams", "journal", "msgs", "*.blk"))
	if err != nil || len(blocks) != 1 {
		t.Fatalf("blocks: %v, %v", blocks, err)
	}
	return blocks[0]
}

// edit changes a file's content.
func edit(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

// flip changes one bit in the middle of the message with an id.
func flip(id string) func([]byte) []byte {
	return func(data []byte) []byte {
		at := bytes.Index(data, message(id))
		data[at+100] ^= 1
		return data
	}
}

func TestDamageIsRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		damage func(t *testing.T, dir string)
		want   []string
	}{
		"a bit, after a crash": {func(t *testing.T, dir string) {
			edit(t, crashed(t, dir, 20), flip("m-0-7"))
		}, []string{"stream journal", "record at byte", "after message 7"}},
		"a length, after a crash": {func(t *testing.T, dir string) {
			edit(t, crashed(t, dir, 20), func(data []byte) []byte {
				record := len(data) / bytes.Count(data, []byte("deckle.journal")) // about
				start := bytes.LastIndex(data[:5*record], []byte("deckle.journal")) - 22
				copy(data[start:], []byte{0xff, 0xff, 0xff, 0x01})
				return data
			})
		}, []string{"stream journal", "record at byte"}},
		"zeros, after a crash": {func(t *testing.T, dir string) {
			edit(t, crashed(t, dir, 20), func(data []byte) []byte {
				clear(data[len(data)/4 : len(data)/2])
				return data
			})
		}, []string{"stream journal", "record at byte"}},
		"cut off, after an orderly end": {func(t *testing.T, dir string) {
			used(t, dir)
			edit(t, journalBlock(t, dir), func(data []byte) []byte { return data[:len(data)-40] })
		}, []string{"stream journal", "1 messages are missing"}},
		"a bit, after an orderly end": {func(t *testing.T, dir string) {
			used(t, dir)
			edit(t, journalBlock(t, dir), flip("b"))
		}, []string{"stream journal", "after message 1"}},
		"a bit of an old block of the catalog": {func(t *testing.T, dir string) {
			st, err := store.Open(t.Context(), store.Config{DataDir: dir}, discard)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 40 {
				if _, err := st.Catalog().Put(t.Context(), fmt.Sprint("key", i), make([]byte, 512<<10), 0); err != nil {
					t.Fatal(err)
				}
			}
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "solo", "jetstream", "$G", "streams", "KV_catalog", "msgs", "1.blk")
			edit(t, path, func(data []byte) []byte { data[1<<20] ^= 1; return data })
			old := time.Now().Add(-time.Hour)
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
		}, []string{"stream KV_catalog", "record at byte"}},
		"a block gone": {func(t *testing.T, dir string) {
			used(t, dir)
			if err := os.Remove(journalBlock(t, dir)); err != nil {
				t.Fatal(err)
			}
		}, []string{"stream journal", "it has 0 messages from 4 on, and had 3 from 1 on when it was closed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			test.damage(t, dir)
			for range 2 { // it is not forgotten
				st, err := store.Open(t.Context(), store.Config{DataDir: dir}, discard)
				if err == nil {
					t.Fatal("opened", st.Close())
				}
				if !errors.Is(err, store.ErrDamaged) {
					t.Errorf("err = %v, want ErrDamaged", err)
				}
				for _, want := range append(test.want, dir, "from a backup") {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%v\ndoes not say %q", err, want)
					}
				}
			}
		})
	}
}

// A write that was still on its way when the store was closed is no damage.
func TestWriteAfterTheCount(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	used(t, dir)
	edit(t, filepath.Join(dir, "solo", "deckle-store.json"), func(text []byte) []byte {
		counted := bytes.Replace(text, []byte(`"first":1,"last":3,"messages":3`), []byte(`"first":1,"last":2,"messages":2`), 1)
		if bytes.Equal(text, counted) {
			t.Fatalf("the marker is %s", text)
		}
		return counted
	})
	open(t, store.Config{DataDir: dir})
}

// Any bit of any record but the last is missed; the last may be a write that a
// crash has cut short, and so may any part of it.
func TestEveryBitIsMissed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st, err := store.Open(t.Context(), store.Config{DataDir: dir}, discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b", "c"} {
		if _, err := st.Journal().Append(t.Context(), id, []byte("message "+id)); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	path := journalBlock(t, dir)
	folder := filepath.Dir(filepath.Dir(path))
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	last := bytes.LastIndex(good, []byte("deckle.journal")) - 22
	check := func(what string, data []byte, damaged bool) {
		t.Helper()
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := store.ExamineBlocks(folder, "journal"); errors.Is(err, store.ErrDamaged) != damaged {
			t.Errorf("%s: %v, want damage: %v", what, err, damaged)
		}
	}
	check("good", good, false)
	for bit := range 8 * len(good) {
		bad := bytes.Clone(good)
		bad[bit/8] ^= 1 << (bit % 8)
		check(fmt.Sprintf("bit %d of byte %d of %d", bit%8, bit/8, len(good)), bad, bit/8 < last)
	}
	for n := range len(good) {
		check(fmt.Sprintf("%d of %d bytes", n, len(good)), good[:n], false)
	}
}

// A write that a crash has cut short was never acknowledged.
func TestTornEndIsNoDamage(t *testing.T) {
	t.Parallel()
	for name, tear := range map[string]func([]byte) []byte{
		"half a record": func(data []byte) []byte { return append(data, data[:30]...) },
		"zeros":         func(data []byte) []byte { return append(data, make([]byte, 4096)...) },
	} {
		dir := t.TempDir()
		path := crashed(t, dir, 20)
		edit(t, path, tear)
		st := open(t, store.Config{DataDir: dir})
		state, err := st.Journal().State(t.Context())
		if err != nil || state.Last < 20 {
			t.Errorf("%s: state = %+v, %v", name, state, err)
		}
		if seq, err := st.Journal().Append(t.Context(), "next", message("next")); err != nil || seq != state.Last+1 {
			t.Errorf("%s: append = %d, %v", name, seq, err)
		}
	}
}

// What decays while the store is open is met by whoever reads it.
func TestHoleIsNotPassedOver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st := open(t, store.Config{DataDir: dir})
	const n = 40 // more than a block of 8 MiB, so that the first is read from the disk again
	appendMany(t, st.Journal(), n, 512<<10)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	blocks, err := filepath.Glob(filepath.Join(dir, "solo", "jetstream", "$G", "streams", "journal", "msgs", "*.blk"))
	if err != nil || len(blocks) < 2 {
		t.Fatal(blocks, err)
	}
	first := filepath.Join(filepath.Dir(blocks[0]), "1.blk")
	edit(t, first, flip("id5"))
	old := time.Now().Add(-time.Hour) // it is not one of those that are read at the start
	if err := os.Chtimes(first, old, old); err != nil {
		t.Fatal(err)
	}
	st = open(t, store.Config{DataDir: dir})
	var last store.Seq
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err = st.Journal().Read(ctx, 1, func(m store.Message) error {
		if want := fmt.Sprint("id", m.Seq); idOf(m.Data) != want {
			return fmt.Errorf("message %d is %q", m.Seq, idOf(m.Data))
		}
		last = m.Seq
		if m.Seq == n {
			return errors.New("read to the end")
		}
		return nil
	})
	if !errors.Is(err, store.ErrDamaged) || last != 4 {
		t.Errorf("read to %d, and then %v; want to 4, and ErrDamaged", last, err)
	}
}

// appendMany appends the messages id1 to idN, of at least so many bytes.
func appendMany(t testing.TB, l store.Log, n, size int) {
	t.Helper()
	for i := 1; i <= n; i++ {
		id := fmt.Sprint("id", i)
		if seq, err := l.Append(t.Context(), id, append(message(id), make([]byte, size)...)); err != nil || seq != store.Seq(i) {
			t.Fatalf("append %s = %d, %v", id, seq, err)
		}
	}
}

func TestImport(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), t.TempDir()
	fill(t, from)
	before := contents(t, from)
	done, err := store.ImportFrom(t.Context(), store.Config{DataDir: to}, from, false, discard)
	if err != nil {
		t.Fatal(err)
	}
	copied := map[string]uint64{}
	for _, s := range done.Streams {
		copied[s.Name] = s.Copied
		if s.Missing != 0 {
			t.Errorf("%s misses %d", s.Name, s.Missing)
		}
	}
	want := map[string]uint64{"journal": 12, "auctions": 0, "KV_catalog": 4, "KV_pages": 0, "KV_leases": 1, "KV_keys": 1, "KV_drafts": 0, "OBJ_assets": 2}
	if diff := cmp.Diff(want, copied); diff != "" {
		t.Error(diff)
	}
	for path, sum := range contents(t, from) {
		if strings.HasSuffix(path, ".blk") && before[path] != sum {
			t.Errorf("%s of the source was changed", path)
		}
	}
	if _, err := store.ImportFrom(t.Context(), store.Config{DataDir: to}, from, false, discard); err == nil || !strings.Contains(err.Error(), "is not empty: stream journal has 12 messages") || !strings.Contains(err.Error(), to) {
		t.Errorf("import again: %v", err)
	}
	same(t, from, to)
}

// fill makes a store with something of everything, whose journal was purged.
func fill(t *testing.T, dir string) {
	t.Helper()
	st, err := store.Open(t.Context(), store.Config{DataDir: dir}, discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	appendMany(t, st.Journal(), 20, 0)
	if err := store.Purge(st, 9); err != nil {
		t.Fatal(err)
	}
	revision := uint64(0)
	for _, value := range []string{"1", "2"} {
		if revision, err = st.Catalog().Put(ctx, "site/a", []byte(value), revision); err != nil {
			t.Fatal(err)
		}
	}
	gone, err1 := st.Catalog().Put(ctx, "site/gone", []byte("x"), 0)
	err2 := st.Catalog().Delete(ctx, "site/gone", gone)
	_, err3 := st.Leases().Put(ctx, "line", []byte("lease"), 0)
	_, err4 := st.Keys().Put(ctx, "publisher", []byte("ring"), 0)
	_, err5 := st.Assets().Put(ctx, []byte("hello"), "text/plain")
	if err := errors.Join(err1, err2, err3, err4, err5, st.Close()); err != nil {
		t.Fatal(err)
	}
}

// same compares what two stores hold.
func same(t *testing.T, a, b string) {
	t.Helper()
	if diff := cmp.Diff(holds(t, a), holds(t, b)); diff != "" {
		t.Error(diff)
	}
}

func holds(t *testing.T, dir string) (all []string) {
	t.Helper()
	st := open(t, store.Config{DataDir: dir})
	ctx := t.Context()
	state, err := st.Journal().State(ctx)
	if err != nil {
		t.Fatal(err)
	}
	all = append(all, fmt.Sprintf("journal %d to %d", state.First, state.Last))
	enough := errors.New("enough")
	err = st.Journal().Read(ctx, 1, func(m store.Message) error {
		all = append(all, fmt.Sprintf("%d %s", m.Seq, m.Data))
		if m.Seq == state.Last {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Fatal(err)
	}
	for _, kv := range []store.KV{st.Catalog(), st.Leases(), st.Keys()} {
		err := kv.Watch(ctx, func(c store.Change) error {
			if c.Complete {
				return enough
			}
			all = append(all, fmt.Sprintf("%s=%s %v", c.Key, c.Value, c.Deleted))
			return nil
		})
		if !errors.Is(err, enough) {
			t.Fatal(err)
		}
	}
	blob, err := st.Assets().Get(ctx, "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824")
	all = append(all, fmt.Sprintf("%s %s %v", blob.Data, blob.ContentType, err))
	// An id is remembered by both.
	seq, err := st.Journal().Append(ctx, "id20", []byte("again"))
	return append(all, fmt.Sprint(seq, err))
}

func TestImportOfWhatIsDamaged(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), t.TempDir()
	fill(t, from)
	edit(t, journalBlock(t, from), flip("id15"))
	before := contents(t, from)
	if _, err := store.ImportFrom(t.Context(), store.Config{DataDir: to}, from, false, discard); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("err = %v, want ErrDamaged", err)
	}
	done, err := store.ImportFrom(t.Context(), store.Config{DataDir: to}, from, true, discard)
	if err != nil {
		t.Fatal(err)
	}
	if s := done.Streams[0]; s.Name != "journal" || s.Copied+s.Missing != 12 || s.Copied < 6 || s.Missing == 0 {
		t.Errorf("of 12 messages, one damaged: %+v", s)
	}
	if diff := cmp.Diff(before, contents(t, from)); diff != "" {
		t.Error("the source was changed:", diff)
	}
	entries, err := os.ReadDir(to)
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	open(t, store.Config{DataDir: to})
}

func TestImportNothing(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), t.TempDir()
	if _, err := store.ImportFrom(t.Context(), store.Config{DataDir: to}, from, false, discard); err == nil || !strings.Contains(err.Error(), "no store in "+from) {
		t.Errorf("err = %v", err)
	}
	if len(contents(t, to))+len(contents(t, from)) > 0 {
		t.Error("something was made")
	}
}

// What the log took twice, since its window had passed, is there twice after an
// import, which is quicker than the window: places do not move.
func TestImportOfTheSameIDTwice(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), t.TempDir()
	st, err := store.Open(t.Context(), store.Config{DataDir: from}, discard)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := store.JetStream(st).Stream(t.Context(), "journal")
	if err != nil {
		t.Fatal(err)
	}
	short := stream.CachedInfo().Config
	short.Duplicates = 100 * time.Millisecond
	if _, err := store.JetStream(st).UpdateStream(t.Context(), short); err != nil {
		t.Fatal(err)
	}
	for seq := store.Seq(0); seq < 2; {
		if seq, err = st.Journal().Append(t.Context(), "a", message("a")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := st.Journal().Append(t.Context(), "b", message("b")); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := store.ImportFrom(t.Context(), store.Config{DataDir: to}, from, false, discard); err != nil {
		t.Fatal(err)
	}
	target := open(t, store.Config{DataDir: to})
	if state, err := target.Journal().State(t.Context()); err != nil || state.Last != 3 {
		t.Errorf("journal = %+v, %v; want 3 messages", state, err)
	}
	if seq, err := target.Journal().Append(t.Context(), "b", message("b")); err != nil || seq != 3 {
		t.Errorf("append b again = %d, %v; want 3", seq, err)
	}
}
