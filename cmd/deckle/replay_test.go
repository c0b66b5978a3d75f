package main

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"deckle/internal/journal"
	"deckle/internal/journal/journaltest"
	"deckle/internal/projection"
	"deckle/internal/store"
)

// replayConfig is all that a replay needs of a deckle.toml.
const replayConfig = `
[server]
listen = "127.0.0.1:0"
[auction]
enabled = false
[[site]]
id = "demo"
hosts = ["localhost"]
origin = "http://127.0.0.1:1"
`

// ranServer is what a server leaves behind: a journal, and a report.db that has come
// as far as it could.
func ranServer(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "deckle.toml"), []byte(replayConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	st := openTestStore(t, filepath.Join(dir, "data"))
	g := journaltest.New(1, journaltest.Config{})
	for i := range 20 {
		data, err := journal.Encode(g.Take(50))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := st.Journal().Append(t.Context(), strconv.Itoa(i+1), data); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := replayed(t, false, st); err != nil {
		t.Fatal(out, err)
	}
	return dir
}

func openTestStore(t *testing.T, dir string) *store.Store {
	t.Helper()
	st, err := store.Open(t.Context(), store.Config{DataDir: dir}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

// replayed runs deckle replay in the folder of the test, after st has been closed.
func replayed(t *testing.T, verify bool, st *store.Store) (string, error) {
	t.Helper()
	if st != nil {
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	c := replayCmd{Config: "deckle.toml", Verify: verify}
	err := c.Run(t.Context(), &out)
	return out.String(), err
}

func TestReplay(t *testing.T) {
	dir := ranServer(t)
	out, err := replayed(t, true, nil)
	if err != nil || !strings.Contains(out, "rows compared, 0 differ") {
		t.Errorf("verify after a replay: %q, %v", out, err)
	}

	db, err := sql.Open("sqlite", filepath.Join(dir, "data", "report.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`UPDATE report SET clicks = clicks + 1`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	out, err = replayed(t, true, nil)
	if exit, ok := errors.AsType[exitError](err); !ok || exit.code != 1 {
		t.Errorf("verify with differences: %v, want exit status 1", err)
	}
	if first, _, _ := strings.Cut(out, "\n"); !strings.HasPrefix(first, "report day=2026-06-01 site=site-") || !strings.Contains(first, ": clicks is ") {
		t.Errorf("verify with differences prints %q first", first)
	}

	if out, err := replayed(t, false, nil); err != nil || !strings.Contains(out, "report.db: made anew from 20 envelopes") {
		t.Errorf("replay: %q, %v", out, err)
	}
	if out, err := replayed(t, true, nil); err != nil {
		t.Errorf("verify after the second replay: %q, %v", out, err)
	}
}

// A replay beside a running server changes nothing and says what to do.
func TestReplayInUse(t *testing.T) {
	dir := ranServer(t)
	st := openTestStore(t, filepath.Join(dir, "data"))
	var out strings.Builder
	err := (&replayCmd{Config: "deckle.toml"}).Run(t.Context(), &out)
	if !errors.Is(err, store.ErrInUse) || !strings.Contains(err.Error(), "stop the server first") {
		t.Errorf("beside a server: %v", err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	tables, err := projection.OpenTables(context.Background(), filepath.Join(dir, "data", "report.db"), projection.Config{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := replayed(t, false, nil); !errors.Is(err, store.ErrInUse) {
		t.Errorf("beside somebody with report.db: %q, %v", out, err)
	}
	if err := tables.Close(); err != nil {
		t.Error(err)
	}
}

func TestReplayWithoutStore(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("deckle.toml", []byte(replayConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := replayed(t, false, nil); err == nil || !strings.Contains(err.Error(), "no store to replay") {
		t.Errorf("without a store: %q, %v", out, err)
	}
	if _, err := os.Stat("data"); err == nil {
		t.Error("a store was made")
	}
}
