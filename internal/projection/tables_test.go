package projection_test

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"deckle/internal/journal"
	"deckle/internal/obs"
	"deckle/internal/projection"
	"deckle/internal/store"
)

// checks has rapid try n times, unless the command line says how often.
func checks(t *testing.T, n int) {
	f := flag.Lookup("rapid.checks")
	if f.Value.String() != f.DefValue {
		return
	}
	if err := f.Value.Set(fmt.Sprint(n)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Value.Set(f.DefValue) })
}

func open(t testing.TB, path string, projections ...projection.Projection) *projection.Tables {
	t.Helper()
	if projections == nil {
		projections = []projection.Projection{projection.Report{}}
	}
	tables, err := projection.OpenTables(t.Context(), path, projection.Config{}, quiet, projections...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeTables(t, tables) })
	return tables
}

func closeTables(t testing.TB, tables *projection.Tables) {
	t.Helper()
	if err := tables.Close(); err != nil {
		t.Error(err)
	}
}

// dump returns every row of every table of a file, in the order of its key: none of
// them has another.
func dump(t testing.TB, path string) (all []string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, table := range []string{"cursors", "seen", "report", "leases"} {
		rows, err := db.Query("SELECT * FROM " + table + "")
		if err != nil {
			t.Fatal(err)
		}
		columns, _ := rows.Columns()
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		for rows.Next() {
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			all = append(all, fmt.Sprint(table, values))
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		rows.Close()
	}
	return all
}

// The rows are what a judge who looks at every event says they are.
func TestReportIsWhatTheJudgeSays(t *testing.T) {
	checks(t, 60)
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		h := drawHistory(rt)
		n++
		tables := open(t, filepath.Join(dir, fmt.Sprint(n)))
		if err := tables.FoldTo(t.Context(), h, h.last()); err != nil {
			rt.Fatal(err)
		}
		j := newJudge(h.records(), projection.Config{}, false)
		rows, err := tables.Report(t.Context(), projection.Filter{}, projection.ByDay, projection.BySite, projection.ByAdvertiser, projection.ByCampaign, projection.ByCreative)
		if err != nil {
			rt.Fatal(err)
		}
		got := map[projection.Row]projection.Counts{}
		for _, r := range rows {
			got[projection.Row{Day: r.Day, Site: r.Site, Advertiser: r.Advertiser, Campaign: r.Campaign, Creative: r.Creative}] = r.Counts
		}
		if diff := cmp.Diff(j.rows(), got); diff != "" {
			rt.Fatalf("report (-want +got):\n%s", diff)
		}
		for _, id := range leaseIDs {
			l, ok, err := tables.Lease(t.Context(), id)
			if err != nil || ok != j.known(id) {
				rt.Fatalf("lease %s: %v, %v", id, ok, err)
			}
			if want := (projection.Lease{ID: id, Line: l.Line, Amount: j.amount(id), Spent: j.spent(id), Sealed: j.sealed(id)}); ok && l != want {
				rt.Fatalf("lease %+v, want %+v", l, want)
			}
		}
	})
}

// However the journal is cut into batches, and wherever the process is killed between
// the rows and their commit, the tables are the same.
func TestRebuildEqualsIncremental(t *testing.T) {
	errCrash := errors.New("killed")
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 1))
			h, dir := traffic(4_000, seed), t.TempDir()
			once := filepath.Join(dir, "once.db")
			if err := open(t, once).FoldTo(t.Context(), h, h.last()); err != nil {
				t.Fatal(err)
			}
			path, crashes := filepath.Join(dir, "report.db"), 0
			for {
				tables, err := projection.OpenTables(t.Context(), path, projection.Config{}, quiet, projection.Report{})
				if err != nil {
					t.Fatal(err)
				}
				tables.SetBatch(1 + r.IntN(400))
				left := r.IntN(8) // commits until the process dies
				tables.BeforeCommit(func() error {
					if left--; left < 0 {
						crashes++
						return errCrash
					}
					return nil
				})
				err = tables.FoldTo(t.Context(), h, h.last())
				closeTables(t, tables)
				if err == nil {
					break
				}
				if !errors.Is(err, errCrash) {
					t.Fatal(err)
				}
			}
			if crashes == 0 {
				t.Fatal("nothing was killed")
			}
			if diff := cmp.Diff(dump(t, once), dump(t, path)); diff != "" {
				t.Errorf("after %d crashes (-rebuilt +incremental):\n%s", crashes, diff)
			}
		})
	}
}

// A duplicate is recognised for as long as a token could be told again, whatever the
// deduplication of the store has forgotten; and by journal time alone.
func TestRepeatsAreRemembered(t *testing.T) {
	remember := time.Duration(projection.Config{}.Remember()) * time.Millisecond
	if remember != 65*time.Minute {
		t.Errorf("remembers for %v, want twice the longest window of 30 min and 5 min", remember)
	}
	for name, test := range map[string]struct {
		after time.Duration // of journal time, until the repeat
		quiet bool          // nothing is told in between
		want  int64         // impressions
	}{
		"at once":              {0, true, 1},
		"after 2 min":          {2*time.Minute + time.Second, false, 1},
		"at the end":           {remember, false, 1},
		"at the end, quiet":    {remember, true, 1},
		"long after":           {2*remember + time.Minute, false, 2},
		"long after, quiet":    {2*remember + time.Minute, true, 2},
		"the clock went back":  {-time.Hour, true, 1},
		"the clock is broken":  {-24 * 365 * time.Hour, true, 1},
		"a fresh one in 2038":  {12 * 365 * 24 * time.Hour, true, 2},
		"late, and out of day": {-time.Hour, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			for offset := time.Duration(0); offset < remember; offset += 13 * time.Minute {
				h := newHistory()
				e := impression(0)
				e.At = e.At.Add(offset)
				h.add(e)
				if !test.quiet {
					between := impression(1)
					between.At = e.At.Add(test.after / 2)
					h.add(between)
				}
				e.At = e.At.Add(test.after)
				h.add(e)
				want := test.want
				if !test.quiet {
					want++
				}
				tables := open(t, filepath.Join(t.TempDir(), "report.db"))
				if err := tables.FoldTo(t.Context(), h, h.last()); err != nil {
					t.Fatal(err)
				}
				rows, err := tables.Report(t.Context(), projection.Filter{})
				if err != nil || len(rows) != 1 || rows[0].Organic.Impressions != want {
					t.Errorf("first told at %v: %+v, %v; want %d impressions", offset, rows, err, want)
				}
			}
		})
	}
}

// What a slow clock says is remembered for as long as anything else that was told at
// that place of the journal.
func TestSlowClockIsRemembered(t *testing.T) {
	h := newHistory()
	tell := func(n int, at time.Duration) {
		e := impression(n)
		e.At = monday.Add(8*time.Hour + at)
		h.add(e)
	}
	tell(0, 0)
	tell(1, -3*time.Hour)
	tell(2, 64*time.Minute) // of the next generation, wherever that begins
	tell(1, -3*time.Hour)
	tables := open(t, filepath.Join(t.TempDir(), "report.db"))
	if err := tables.FoldTo(t.Context(), h, h.last()); err != nil {
		t.Fatal(err)
	}
	rows, err := tables.Report(t.Context(), projection.Filter{})
	if err != nil || rows[0].Organic.Impressions != 3 {
		t.Errorf("%+v, %v; want 3 impressions", rows, err)
	}
	hot := fold(t, h, projection.Config{})
	if n := hot.Impressions(projection.Duplicate); n != 1 {
		t.Errorf("%d duplicates in memory, want 1", n)
	}
}

// An id whose time has passed leaves the file.
func TestSeenDoesNotGrow(t *testing.T) {
	h, path := newHistory(), filepath.Join(t.TempDir(), "report.db")
	for i := range 200 {
		e := impression(i)
		e.At = monday.Add(time.Duration(i) * 30 * time.Minute)
		h.add(e)
	}
	if err := open(t, path).FoldTo(t.Context(), h, h.last()); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, row := range dump(t, path) {
		if strings.HasPrefix(row, "seen") {
			seen++
		}
	}
	if seen < 3 || seen > 5 {
		t.Errorf("%d ids are remembered, want those of one to two times 65 min, one every 30 min", seen)
	}
}

// A projection that fails stops, says so, and loses nothing; the others go on, and
// after the next start so does it.
func TestOneProjectionFailsAlone(t *testing.T) {
	h, path := newHistory(), filepath.Join(t.TempDir(), "report.db")
	for i := range 10 {
		h.add(impression(i))
	}
	bad := &failing{at: 6}
	tables, err := projection.OpenTables(t.Context(), path, projection.Config{}, quiet, projection.Report{}, bad)
	if err != nil {
		t.Fatal(err)
	}
	tables.SetBatch(1)
	runUntil(t, tables, h, func() bool {
		seq, _, _ := tables.Freshness("report")
		return seq == 10 && tables.Checks()[1].State == obs.Degraded
	})
	if c := tables.Checks(); c[0].State != obs.OK || !strings.Contains(c[1].Note, "cannot count this") {
		t.Errorf("checks: %+v", c)
	}
	if seq, _, _ := tables.Freshness("failing"); seq >= 6 {
		t.Errorf("cursor of the failed one at %d, want before 6", seq)
	}
	closeTables(t, tables)

	bad.at = 0
	tables = open(t, path, projection.Report{}, bad)
	runUntil(t, tables, h, func() bool { seq, _, _ := tables.Freshness("failing"); return seq == 10 })
	if bad.rolledBack == 0 {
		t.Error("nothing failed")
	}
}

// failing counts into report's rows of a site of its own, and fails at one envelope
// after it has written.
type failing struct{ at, rolledBack int }

func (*failing) Name() string { return "failing" }

func (f *failing) Apply(tx *projection.Tx, rec journal.Record) error {
	rec.Site = "failing"
	if err := (projection.Report{}).Apply(tx, rec); err != nil {
		return err
	}
	if int(rec.Seq) == f.at {
		f.rolledBack++
		return errors.New("cannot count this")
	}
	return nil
}

func (*failing) Repeat(*projection.Tx, journal.Record) error { return nil }

// runUntil runs tables on h until done, which is asked again and again.
func runUntil(t *testing.T, tables *projection.Tables, h store.Log, done func() bool) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- tables.Run(ctx, h) }()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("never happened; %+v", tables.Checks())
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// What is appended while it runs is folded as it comes.
func TestRunFollows(t *testing.T) {
	all, h := traffic(3_000, 9), newHistory()
	dir := t.TempDir()
	tables := open(t, filepath.Join(dir, "report.db"))
	go func() {
		for _, envelope := range all.envelopes {
			h.add(events(envelope)...)
		}
	}()
	runUntil(t, tables, h, func() bool { seq, _, _ := tables.Freshness("report"); return seq == all.last() })
	once := filepath.Join(dir, "once.db")
	if err := open(t, once).FoldTo(t.Context(), all, all.last()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(dump(t, once), dump(t, filepath.Join(dir, "report.db"))); diff != "" {
		t.Error(diff)
	}
}

// A full disk is said, undoes what was begun, and is got over when there is room.
func TestFullDisk(t *testing.T) {
	h, dir := traffic(8_000, 4), t.TempDir()
	path := filepath.Join(dir, "report.db")
	tables := open(t, path)
	if err := tables.FoldTo(t.Context(), h, 20); err != nil {
		t.Fatal(err)
	}
	before := dump(t, path)
	if err := tables.Write(t.Context(), "PRAGMA max_page_count = 60"); err != nil {
		t.Fatal(err)
	}
	err := tables.FoldTo(t.Context(), h, h.last())
	if err == nil || !strings.Contains(err.Error(), "full") {
		t.Fatalf("on a full disk: %v", err)
	}
	after := dump(t, path)
	seq, _, _ := tables.Freshness("report")
	once := filepath.Join(dir, "once.db")
	if err := open(t, once).FoldTo(t.Context(), h, seq); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(dump(t, once), after); diff != "" {
		t.Errorf("something is half applied (-want +got):\n%s", diff)
	}
	if len(after) < len(before) {
		t.Error("something is lost")
	}
	if err := tables.Write(t.Context(), "PRAGMA max_page_count = 1000000"); err != nil {
		t.Fatal(err)
	}
	if err := tables.FoldTo(t.Context(), h, h.last()); err != nil {
		t.Errorf("when there is room again: %v", err)
	}
}

// A projection that waits for room says so, and goes on by itself when there is some.
func TestFullDiskPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := traffic(3_000, 4)
		tables := open(t, filepath.Join(t.TempDir(), "report.db"))
		if err := tables.Write(t.Context(), "PRAGMA max_page_count = 40"); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- tables.Run(ctx, h) }()
		synctest.Wait()
		if c := tables.Checks()[0]; c.State != obs.Degraded || !strings.Contains(c.Note, "full") {
			t.Errorf("on a full disk: %+v", c)
		}
		if err := tables.Write(t.Context(), "PRAGMA max_page_count = 1000000"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second) // of the bubble
		if c := tables.Checks()[0]; c.State != obs.OK {
			t.Errorf("when there is room again: %+v", c)
		}
		if seq, _, _ := tables.Freshness("report"); seq != h.last() {
			t.Errorf("folded to envelope %d of %d", seq, h.last())
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// Damage is found at the start. The file is set aside as it is, and all is folded anew.
func TestDamagedFiles(t *testing.T) {
	h := traffic(2_000, 2)
	for name, damage := range map[string]func(file []byte) []byte{
		"not a database":          func([]byte) []byte { return []byte(strings.Repeat("<!doctype html>\n", 1000)) },
		"a broken header":         func(b []byte) []byte { copy(b, "SQLite format 4"); return b },
		"cut in the middle":       func(b []byte) []byte { return b[:len(b)/2] },
		"a block of zeros":        func(b []byte) []byte { clear(b[8192:20480]); return b },
		"a block of another file": func(b []byte) []byte { copy(b[12288:], b[4096:8192]); return b },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "report.db")
			tables, err := projection.OpenTables(t.Context(), path, projection.Config{}, quiet, projection.Report{})
			if err != nil {
				t.Fatal(err)
			}
			if err := tables.FoldTo(t.Context(), h, h.last()); err != nil {
				t.Fatal(err)
			}
			closeTables(t, tables)
			file, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			file = damage(file)
			if err := os.WriteFile(path, file, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, _, err := verify(t, path, h); !errors.Is(err, projection.ErrDamaged) || !strings.Contains(err.Error(), path) {
				t.Errorf("verified with %v, want ErrDamaged and the file's name", err)
			}
			tables = open(t, path)
			if seq, _, _ := tables.Freshness("report"); seq != 0 {
				t.Errorf("begins at envelope %d", seq)
			}
			if aside, _ := os.ReadFile(path + ".aside"); string(aside) != string(file) {
				t.Error("the damaged file was not set aside as it was")
			}
			if err := tables.FoldTo(t.Context(), h, h.last()); err != nil {
				t.Error(err)
			}
		})
	}
}

// report.db of another journal, or of one whose events are gone, is not gone on with.
func TestOtherJournals(t *testing.T) {
	h := traffic(1_000, 1)
	folded := func() *projection.Tables {
		tables := open(t, filepath.Join(t.TempDir(), "report.db"))
		if err := tables.FoldTo(t.Context(), h, 10); err != nil {
			t.Fatal(err)
		}
		return tables
	}
	if err := folded().FoldTo(t.Context(), h.copied(5), 20); !errors.Is(err, projection.ErrOtherJournal) {
		t.Errorf("a journal that is shorter: %v", err)
	}
	if err := folded().FoldTo(t.Context(), traffic(1_000, 2), 20); !errors.Is(err, projection.ErrOtherJournal) {
		t.Errorf("a journal with other events: %v", err)
	}
	behind, before, after := folded(), folded(), h.copied(20)
	after.Purge(11)
	if err := before.FoldTo(t.Context(), after, 20); err != nil {
		t.Errorf("a journal without events that have been folded: %v", err)
	}
	after.Purge(15)
	if err := behind.FoldTo(t.Context(), after, 20); !errors.Is(err, journal.ErrGap) {
		t.Errorf("a journal without some of the next events: %v", err)
	}
}

// A file of an older version is brought up to date with all its rows; one of a newer
// version is left alone.
func TestMigration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.db")
	old := fstest.MapFS{}
	for _, name := range []string{"migrations/001_folds.sql", "migrations/002_report.sql"} {
		text, err := fs.ReadFile(projection.Migrations, name)
		if err != nil {
			t.Fatal(err)
		}
		old[name] = &fstest.MapFile{Data: text}
	}
	h := traffic(1_000, 1)
	openWith := func(steps fs.FS) (*projection.Tables, error) {
		return projection.OpenTablesWith(t.Context(), path, quiet, steps, projection.Report{})
	}
	tables, err := openWith(old)
	if err != nil {
		t.Fatal(err)
	}
	if err := tables.FoldTo(t.Context(), h, 10); err != nil {
		t.Fatal(err)
	}
	closeTables(t, tables)

	broken := fstest.MapFS{"migrations/003_broken.sql": {Data: []byte("ALTER TABLE report ADD COLUMN half INTEGER; DELETE FROM report; SELEKT")}}
	later := fstest.MapFS{"migrations/003_hours.sql": {Data: []byte("ALTER TABLE report ADD COLUMN hours TEXT NOT NULL DEFAULT ''")}}
	for name, f := range old {
		broken[name], later[name] = f, f
	}
	before := dump(t, path)
	if _, err := openWith(broken); err == nil || !strings.Contains(err.Error(), "003_broken.sql") {
		t.Errorf("a broken migration: %v", err)
	}
	if diff := cmp.Diff(before, dump(t, path)); diff != "" {
		t.Errorf("a broken migration was half applied:\n%s", diff)
	}
	if tables, err = openWith(later); err != nil {
		t.Fatal(err)
	}
	if err := tables.FoldTo(t.Context(), h, h.last()); err != nil {
		t.Fatal(err)
	}
	closeTables(t, tables)
	if _, err := openWith(old); !errors.Is(err, projection.ErrNewer) {
		t.Errorf("a file of a newer version: %v", err)
	}
}

// A path may have what means something in a URL.
func TestOddPath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a b?mode=memory#c%20d&_pragma=x")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	h, path := traffic(100, 1), filepath.Join(dir, "report.db")
	if err := open(t, path).FoldTo(t.Context(), h, h.last()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

// An older program does not wait for a file that it cannot read: it makes its own.
func TestNewerFileIsSetAside(t *testing.T) {
	h, path := traffic(500, 1), filepath.Join(t.TempDir(), "report.db")
	tables, err := projection.OpenTables(t.Context(), path, projection.Config{}, quiet, projection.Report{})
	if err != nil {
		t.Fatal(err)
	}
	if err := tables.FoldTo(t.Context(), h, 5); err != nil {
		t.Fatal(err)
	}
	if err := tables.Write(t.Context(), "PRAGMA user_version = 99"); err != nil {
		t.Fatal(err)
	}
	closeTables(t, tables)
	if _, _, err := verify(t, path, h); !errors.Is(err, projection.ErrNewer) {
		t.Errorf("verified with %v", err)
	}
	if err := open(t, path).FoldTo(t.Context(), h, h.last()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path + ".aside"); err != nil {
		t.Error(err)
	}
}

// The readiness of a projection follows the store: out of reach, back, without a new
// event.
func TestStoreOutOfReach(t *testing.T) {
	h := traffic(200, 1)
	tables := open(t, filepath.Join(t.TempDir(), "report.db"))
	runUntil(t, tables, h, func() bool { seq, _, _ := tables.Freshness("report"); return seq == h.last() })
	h.Close()
	runUntil(t, tables, h, func() bool {
		c := tables.Checks()[0]
		if c.State == obs.Degraded && strings.Contains(c.Note, "waits") {
			h.Reopen()
			return true
		}
		return false
	})
	runUntil(t, tables, h, func() bool { return tables.Checks()[0].State == obs.OK })
}

// A crash while report.db was replaced may leave the old one's log. SQLite does not
// take it for the new file's: it deletes a log beside an empty file.
func TestStaleLogIsNotTaken(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "report.db")
	h := traffic(1_000, 1)
	tables := open(t, path)
	if err := tables.FoldTo(t.Context(), h, 5); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(path + "-wal")
	if err != nil || len(log) == 0 {
		t.Fatal("no log to leave behind", err)
	}
	other := filepath.Join(dir, "other.db")
	if err := os.WriteFile(other+"-wal", log, 0o600); err != nil {
		t.Fatal(err)
	}
	if seq, _, _ := open(t, other).Freshness("report"); seq != 0 {
		t.Errorf("a new file begins at envelope %d", seq)
	}
}

// Spend is nobody's business who has only an account on the machine: not in the file,
// not in what SQLite keeps beside it, not in one that an older program has made.
func TestFilesAreTheOwners(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.db")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, filepath.Join(t.TempDir(), "new.db")} {
		tables := open(t, name)
		if err := tables.FoldTo(t.Context(), traffic(50, 1), 1); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(name + "*")
		if err != nil || len(files) < 3 {
			t.Fatalf("there is %v, %v", files, err)
		}
		for _, f := range files {
			if info, err := os.Stat(f); err != nil || info.Mode() != 0o600 {
				t.Errorf("%s: %v, %v", f, info.Mode(), err)
			}
		}
	}
}
