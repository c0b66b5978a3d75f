package projection_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"deckle/internal/journal"
	"deckle/internal/projection"
	"deckle/internal/store"
)

func verify(t *testing.T, path string, h store.Log) (rows int, differences []string, err error) {
	t.Helper()
	rows, err = projection.Verify(t.Context(), path, h, projection.Config{}, quiet, func(d projection.Difference) error {
		differences = append(differences, d.String())
		return nil
	}, projection.Report{})
	if left, _ := filepath.Glob(path + ".verify*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	return rows, differences, err
}

// foldedFile returns a closed report.db that has come to an envelope of h.
func foldedFile(t *testing.T, h *history, until int) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "report.db")
	foldFile(t, path, h, store.Seq(until))
	return path
}

// foldFile brings a report.db to an envelope of h, and closes it.
func foldFile(t *testing.T, path string, h *history, until store.Seq) {
	t.Helper()
	tables, err := projection.OpenTables(t.Context(), path, projection.Config{}, quiet, projection.Report{})
	if err != nil {
		t.Fatal(err)
	}
	if err := tables.FoldTo(t.Context(), h, until); err != nil {
		t.Fatal(err)
	}
	closeTables(t, tables)
}

// A replay is compared with running tables as far as these have come.
func TestVerifyFindsNothing(t *testing.T) {
	h := traffic(3_000, 1)
	for _, until := range []int{1, 30, 60} {
		path := foldedFile(t, h, until)
		rows, differences, err := verify(t, path, h)
		if err != nil || len(differences) > 0 || rows != len(dump(t, path)) {
			t.Errorf("folded to %d: %d of %d rows compared, %v, %v", until, rows, len(dump(t, path)), differences, err)
		}
	}
}

// Every kind of difference is found, with its place.
func TestVerifyFindsEverything(t *testing.T) {
	h := traffic(3_000, 1)
	for statement, want := range map[string][]string{
		`UPDATE report SET spend = spend + 1 WHERE (day, site, creative) = (SELECT day, site, creative FROM report LIMIT 1)`: {
			"report day=2026-03-02 site=", ": spend is ",
		},
		`DELETE FROM report WHERE (day, site, creative) = (SELECT day, site, creative FROM report ORDER BY day DESC, site DESC, creative DESC LIMIT 1)`: {
			"report day=2026-03-02 site=", ": is no row, replayed there",
		},
		`UPDATE report SET impressions = 9999 WHERE (day, site, creative) = (SELECT day, site, creative FROM report LIMIT 1)`: {
			": impressions is 9999, replayed ",
		},
		`INSERT INTO leases (id, line, amount, spent, sealed) VALUES ('a', 'campaign/x', 1, 0, 0)`: {
			"leases id=a: is there, replayed no row",
		},
		`DELETE FROM seen WHERE id = (SELECT id FROM seen LIMIT 1)`: {"seen projection=report id=", "replayed there"},
		`UPDATE cursors SET repeats = 1000`:                         {"cursors projection=report: repeats is 1000, replayed "},
	} {
		path := foldedFile(t, h, 60)
		tables, err := projection.OpenTables(t.Context(), path, projection.Config{}, quiet, projection.Report{})
		if err != nil {
			t.Fatal(err)
		}
		if err := tables.Write(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
		if _, _, err := verify(t, path, h); !errors.Is(err, store.ErrInUse) {
			t.Errorf("verified while it is open: %v", err)
		}
		closeTables(t, tables)
		_, differences, err := verify(t, path, h)
		if err != nil || len(differences) != 1 {
			t.Errorf("%s: %q, %v; want one difference", statement, differences, err)
			continue
		}
		for _, part := range want {
			if !strings.Contains(differences[0], part) {
				t.Errorf("%s: %q, want %q in it", statement, differences[0], part)
			}
		}
	}
}

// Verify stops when it is told to, and refuses what it cannot compare with.
func TestVerifyRefusals(t *testing.T) {
	h := traffic(1_000, 1)
	path := foldedFile(t, h, 20)
	if _, _, err := verify(t, path, traffic(1_000, 2)); !errors.Is(err, projection.ErrOtherJournal) {
		t.Errorf("with another journal: %v", err)
	}
	if _, _, err := verify(t, filepath.Join(t.TempDir(), "report.db"), h); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
}

// A rebuild does not care what was there, not even whether it was a database.
func TestRebuild(t *testing.T) {
	h := traffic(3_000, 1)
	once := foldedFile(t, h, 60)
	for name, before := range map[string]func(path string) error{
		"nothing": func(string) error { return nil },
		"half of it": func(path string) error {
			return os.CopyFS(filepath.Dir(path), os.DirFS(filepath.Dir(foldedFile(t, h, 30))))
		},
		"another one": func(path string) error {
			return os.CopyFS(filepath.Dir(path), os.DirFS(filepath.Dir(foldedFile(t, traffic(900, 2), 9))))
		},
		"one of a killed process": func(path string) error {
			killed := filepath.Join(t.TempDir(), "report.db")
			if err := open(t, killed).FoldTo(t.Context(), h, 30); err != nil {
				return err
			}
			return os.CopyFS(filepath.Dir(path), os.DirFS(filepath.Dir(killed))) // with its log
		},
		"a damaged one": func(path string) error {
			return errors.Join(os.WriteFile(path, []byte("damaged"), 0o600), os.WriteFile(path+"-wal", []byte("damaged"), 0o600),
				os.WriteFile(path+".new", []byte("left by a crash"), 0o600))
		},
	} {
		path := filepath.Join(t.TempDir(), "report.db")
		if err := before(path); err != nil {
			t.Fatal(err)
		}
		seq, err := projection.Rebuild(t.Context(), path, h, projection.Config{}, quiet, projection.Report{})
		if err != nil || seq != 60 {
			t.Errorf("over %s: %d envelopes, %v", name, seq, err)
			continue
		}
		if diff := cmp.Diff(dump(t, once), dump(t, path)); diff != "" {
			t.Errorf("over %s:\n%s", name, diff)
		}
		files, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
		if files = slices.DeleteFunc(files, func(f string) bool { return f == path || f == path+".lock" }); len(files) > 0 {
			t.Errorf("over %s: left behind %v", name, files)
		}
	}
}

// A rebuild that fails leaves everything as it was.
func TestRebuildFails(t *testing.T) {
	h := traffic(3_000, 1)
	path := foldedFile(t, h, 30)
	before := dump(t, path)
	h.Purge(11)
	if _, err := projection.Rebuild(t.Context(), path, h, projection.Config{}, quiet, projection.Report{}); !errors.Is(err, journal.ErrGap) {
		t.Error("a journal without its beginning was rebuilt from")
	}
	if diff := cmp.Diff(before, dump(t, path)); diff != "" {
		t.Error(diff)
	}
	if left, _ := filepath.Glob(path + ".new*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
