package projection

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Tables are report.db: tables that projections fold the journal into, and the
// cursor of each, which moves in the same transaction.
//
// There is one writer, and there are readers on connections of their own that it
// never keeps waiting. The file holds nothing that the journal does not: a power
// cut may cost its last transactions, whole ones, and they are folded again.
type Tables struct {
	path    string
	config  Config
	log     *slog.Logger
	lock    *os.File // nil while whoever opened it has the lock
	batch   int      // events of a transaction, and what is left of the last envelope
	maxRows int      // of a report
	folders []*folder
	reader  *sql.DB

	// mu serialises transactions: SQLite has one writer.
	mu     sync.Mutex
	writer *sql.DB
	conn   *sql.Conn
	stmts  map[string]*sql.Stmt // prepared on conn, by their text

	// beforeCommit is nil, or what a test does between the rows and the commit.
	beforeCommit func() error
}

// OpenTables opens report.db, makes it if there is none, and brings it to this
// version's form. A file that is damaged, or of a newer version, is not trusted in any
// part: it is set aside as report.db.aside, and everything is folded anew.
//
// The file is this process's until Close; one that another process has is
// [store.ErrInUse].
func OpenTables(ctx context.Context, path string, c Config, log *slog.Logger, projections ...Projection) (*Tables, error) {
	held, err := lock(path)
	if err != nil {
		return nil, fmt.Errorf("open report.db: %w", err)
	}
	t, err := openTables(ctx, path, c, log, migrations, projections)
	if errors.Is(err, ErrDamaged) || errors.Is(err, ErrNewer) {
		log.Error("report.db is set aside as report.db.aside and made anew from the journal", "err", err)
		if err = setAside(path); err == nil {
			t, err = openTables(ctx, path, c, log, migrations, projections)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open report.db: %w", err), held.Close())
	}
	t.lock = held
	return t, nil
}

// setAside gives a file and its log other names.
func setAside(path string) error {
	aside := path + ".aside"
	if err := removeFile(aside); err != nil {
		return err
	}
	if err := os.Rename(path+"-wal", aside+"-wal"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(path, aside)
}

func openTables(ctx context.Context, path string, c Config, log *slog.Logger, steps fs.FS, projections []Projection) (*Tables, error) {
	t := &Tables{path: path, config: c, log: log, batch: maxBatch, maxRows: MaxRows, stmts: map[string]*sql.Stmt{}}
	if err := t.open(ctx, steps); err != nil {
		return nil, fmt.Errorf("%s: %w", path, errors.Join(err, t.Close()))
	}
	for _, p := range projections {
		f := &folder{projection: p}
		t.folders = append(t.folders, f)
		if err := t.load(ctx, f); err != nil {
			return nil, fmt.Errorf("%s: %w", path, errors.Join(err, t.Close()))
		}
	}
	return t, nil
}

func (t *Tables) open(ctx context.Context, steps fs.FS) (err error) {
	if err := makePrivate(t.path); err != nil {
		return err
	}
	// FULL is not needed: what a power cut takes from the end is folded again.
	if t.writer, err = openSQLite(t.path, 1, "journal_mode(WAL)", "synchronous(NORMAL)", "cache_size(-16384)"); err != nil {
		return err
	}
	if t.conn, err = t.writer.Conn(ctx); err != nil {
		return damaged(err)
	}
	if err := t.check(ctx); err != nil {
		return err
	}
	if err := t.migrate(ctx, steps); err != nil {
		return damaged(err)
	}
	t.reader, err = openSQLite(t.path, 4, "query_only(1)")
	return err
}

// makePrivate makes a file the owner's alone, also one that there is not yet: SQLite
// makes one for the group and everybody, and its log as the file is.
func makePrivate(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o600), f.Close())
}

// openSQLite opens a file with pragmas that hold on every connection to it, of which
// there are as many as that at most.
func openSQLite(path string, connections int, pragmas ...string) (*sql.DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	q := url.Values{"_txlock": {"immediate"}, "_pragma": append(pragmas, "busy_timeout(5000)")}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(abs), RawQuery: q.Encode()}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(connections)
	return db, nil
}

// check reads every page once, so that damage is found at the start and not by a
// report.
func (t *Tables) check(ctx context.Context) error {
	var verdict string
	if err := t.conn.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		return damaged(err)
	}
	if verdict != "ok" {
		return fmt.Errorf("%w: %s", ErrDamaged, verdict)
	}
	return nil
}

// migrate runs the numbered steps that the file has not seen, each in a
// transaction with its number. A step that changes what rows mean also deletes the
// cursor of their projection, and its rows, so that they are folded anew.
func (t *Tables) migrate(ctx context.Context, steps fs.FS) error {
	names, err := fs.Glob(steps, "migrations/*.sql")
	if err != nil {
		return err
	}
	var version int
	if err := t.conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version > len(names) {
		return fmt.Errorf("%w: its form is %d, and this one knows %d", ErrNewer, version, len(names))
	}
	for _, name := range names[version:] {
		version++
		if n, _, _ := strings.Cut(filepath.Base(name), "_"); n != fmt.Sprintf("%03d", version) {
			return fmt.Errorf("migration %s is not number %03d", name, version)
		}
		step, err := fs.ReadFile(steps, name)
		if err != nil {
			return err
		}
		if _, err := t.conn.ExecContext(ctx, "BEGIN IMMEDIATE; "+string(step)+"; PRAGMA user_version = "+strconv.Itoa(version)+"; COMMIT"); err != nil {
			_, _ = t.conn.ExecContext(ctx, "ROLLBACK") // fails when SQLite has done it already
			return fmt.Errorf("migration %s: %w", name, err)
		}
	}
	return nil
}

// Close ends every connection. Run must have returned.
func (t *Tables) Close() error {
	var errs []error
	for _, s := range t.stmts {
		errs = append(errs, s.Close())
	}
	if t.reader != nil {
		errs = append(errs, t.reader.Close())
	}
	if t.conn != nil {
		errs = append(errs, t.conn.Close())
	}
	if t.writer != nil {
		errs = append(errs, t.writer.Close())
	}
	if t.lock != nil {
		errs = append(errs, t.lock.Close())
	}
	return errors.Join(errs...)
}

// A Tx is one transaction on report.db. Its statements are prepared once and kept:
// their texts must be constants.
type Tx struct {
	tables *Tables
	ctx    context.Context
}

// Exec runs a statement and returns how many rows it changed.
func (tx *Tx) Exec(query string, args ...any) (changed int64, err error) {
	s, err := tx.prepare(query)
	if err != nil {
		return 0, err
	}
	r, err := s.ExecContext(tx.ctx, args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// QueryRow runs a statement that returns at most one row.
func (tx *Tx) QueryRow(query string, args []any, into ...any) error {
	s, err := tx.prepare(query)
	if err != nil {
		return err
	}
	return s.QueryRowContext(tx.ctx, args...).Scan(into...)
}

func (tx *Tx) prepare(query string) (*sql.Stmt, error) {
	if s, ok := tx.tables.stmts[query]; ok {
		return s, nil
	}
	s, err := tx.tables.conn.PrepareContext(tx.ctx, query)
	if err != nil {
		return nil, err
	}
	tx.tables.stmts[query] = s
	return s, nil
}

// transact runs f in one transaction: all of it happens, or nothing.
func (t *Tables) transact(ctx context.Context, f func(tx *Tx) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()

	// What has begun is ended, so that stopping never interrupts a statement; and a
	// context that can end costs a goroutine for each of them.
	tx := &Tx{tables: t, ctx: context.WithoutCancel(ctx)}
	if _, err := tx.Exec("BEGIN IMMEDIATE"); err != nil {
		return damaged(err)
	}
	err := f(tx)
	if err == nil && t.beforeCommit != nil {
		err = t.beforeCommit()
	}
	if err == nil {
		_, err = tx.Exec("COMMIT")
	}
	if err != nil {
		_, _ = tx.Exec("ROLLBACK") // fails when SQLite has done it already, as on a full disk
	}
	return damaged(err)
}

// damaged wraps [ErrDamaged] around SQLite's ways to say so.
func damaged(err error) error {
	if code := sqliteCode(err); code == sqlite3.SQLITE_CORRUPT || code == sqlite3.SQLITE_NOTADB {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

// passing reports whether an error of SQLite is about the disk and not about the
// data, so that another try may go well.
func passing(err error) bool {
	switch sqliteCode(err) {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN:
		return true
	}
	return false
}

// sqliteCode is SQLite's primary result code, or 0 for other errors.
func sqliteCode(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

func removeAll(paths ...string) error {
	for _, p := range paths {
		if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
