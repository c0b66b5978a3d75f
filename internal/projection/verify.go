package projection

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strconv"
	"strings"

	"deckle/internal/store"
)

// A Difference is a row that is not the same in report.db and in a replay.
type Difference struct {
	Table   string
	Key     string // "day=2026-03-02 site=demo …"
	Columns []ColumnDifference
}

// ColumnDifference is one value. A row that is in one file only has one difference
// without a name, with "no row" on the other side.
type ColumnDifference struct{ Column, Running, Replayed string }

// String is one line: "report day=2026-03-02 …: clicks is 3, replayed 4".
func (d Difference) String() string {
	var parts []string
	for _, c := range d.Columns {
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s is %s, replayed %s", c.Column, c.Running, c.Replayed)))
	}
	return d.Table + " " + d.Key + ": " + strings.Join(parts, "; ")
}

// Verify folds the journal anew, beside report.db and as far as that has come, and
// compares the two row by row: reports, leases, cursors and remembered ids. It calls
// yield for each row that differs and returns how many rows it compared. A file that
// another process has is [store.ErrInUse].
func Verify(ctx context.Context, path string, journal store.Log, c Config, log *slog.Logger, yield func(Difference) error, projections ...Projection) (rows int, err error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("there is no %s to compare with: %w", path, err)
	}
	held, err := lock(path)
	if err != nil {
		return 0, err
	}
	defer held.Close()
	running, err := openTables(ctx, path, c, log, migrations, projections)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, running.Close()) }()
	for _, f := range running.folders {
		if err := running.examine(ctx, journal, f); err != nil {
			return 0, fmt.Errorf("projection %s: %w", f.projection.Name(), err)
		}
	}
	beside := path + ".verify"
	defer removeFile(beside)
	until := func(projection string) store.Seq {
		seq, _, _ := running.Freshness(projection)
		return seq
	}
	if err := build(ctx, beside, journal, c, log, projections, until); err != nil {
		return 0, err
	}
	replayed, err := openSQLite(beside, 1, "query_only(1)")
	if err != nil {
		return 0, err
	}
	defer replayed.Close()
	return compare(ctx, running.reader, replayed, yield)
}

// compare compares every table of two files of the same form.
func compare(ctx context.Context, running, replayed *sql.DB, yield func(Difference) error) (rows int, err error) {
	tables, err := tablesOf(ctx, replayed)
	if err != nil {
		return 0, err
	}
	for _, table := range tables {
		n, err := compareTable(ctx, table, running, replayed, yield)
		rows += n
		if err != nil {
			return rows, fmt.Errorf("compare table %s: %w", table.name, err)
		}
	}
	return rows, nil
}

// A table is one of a file, with its columns, those of the primary key first and in
// its order.
type table struct {
	name    string
	columns []string
	keys    int
}

func tablesOf(ctx context.Context, db *sql.DB) ([]table, error) {
	rows, err := db.QueryContext(ctx, `SELECT t.name, c.name, c.pk FROM sqlite_schema AS t, pragma_table_info(t.name) AS c
		WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%' ORDER BY t.name, c.pk = 0, c.pk, c.cid`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var tables []table
	for rows.Next() {
		var name, column string
		var key int
		if err := rows.Scan(&name, &column, &key); err != nil {
			return nil, err
		}
		if len(tables) == 0 || tables[len(tables)-1].name != name {
			tables = append(tables, table{name: name})
		}
		t := &tables[len(tables)-1]
		t.columns = append(t.columns, column)
		t.keys = max(t.keys, key)
	}
	return tables, rows.Err()
}

// compareTable goes through both tables side by side, in the order of the key.
func compareTable(ctx context.Context, t table, running, replayed *sql.DB, yield func(Difference) error) (n int, err error) {
	a, err := t.read(ctx, running)
	if err != nil {
		return 0, err
	}
	defer a.rows.Close()
	b, err := t.read(ctx, replayed)
	if err != nil {
		return 0, err
	}
	defer b.rows.Close()
	for {
		if err := cmp.Or(a.err, b.err); err != nil || a.row == nil && b.row == nil {
			return n, err
		}
		n++
		order := t.order(a.row, b.row)
		if d := t.difference(order, a.row, b.row); len(d.Columns) > 0 {
			if err := yield(d); err != nil {
				return n, err
			}
		}
		if order <= 0 {
			a.next()
		}
		if order >= 0 {
			b.next()
		}
	}
}

// A side is one of the two files that are compared, at one row of a table.
type side struct {
	rows    *sql.Rows
	row     []any // nil behind the last one
	columns int
	err     error
}

// read begins to read the table, at its first row.
func (t table) read(ctx context.Context, db *sql.DB) (*side, error) {
	order := make([]string, t.keys)
	for i := range order {
		order[i] = strconv.Itoa(i + 1)
	}
	rows, err := db.QueryContext(ctx, "SELECT "+strings.Join(t.columns, ", ")+" FROM "+t.name+" ORDER BY "+strings.Join(order, ", "))
	if err != nil {
		return nil, err
	}
	s := &side{rows: rows, columns: len(t.columns)}
	s.next()
	return s, nil
}

func (s *side) next() {
	s.row = nil
	if !s.rows.Next() {
		s.err = s.rows.Err()
		return
	}
	row, into := make([]any, s.columns), make([]any, s.columns)
	for i := range row {
		into[i] = &row[i]
	}
	s.err, s.row = s.rows.Scan(into...), row
}

// order compares two rows by their key, as SQLite orders them. No row is behind
// every row.
func (t table) order(a, b []any) int {
	if a == nil || b == nil {
		return cmp.Compare(len(b), len(a))
	}
	for i := range t.keys {
		if order := compareValues(a[i], b[i]); order != 0 {
			return order
		}
	}
	return 0
}

// compareValues compares two values of one column of a STRICT table.
func compareValues(a, b any) int {
	switch a := a.(type) {
	case int64:
		if b, ok := b.(int64); ok {
			return cmp.Compare(a, b)
		}
	case string:
		if b, ok := b.(string); ok {
			return cmp.Compare(a, b)
		}
	case []byte:
		if b, ok := b.([]byte); ok {
			return bytes.Compare(a, b)
		}
	}
	return cmp.Compare(show(a), show(b))
}

// difference is what is not the same, if a is in the running file and b in the
// replayed one, and has no columns when all is.
func (t table) difference(order int, a, b []any) Difference {
	d := Difference{Table: t.name}
	row := a
	switch {
	case order < 0:
		d.Columns = []ColumnDifference{{Running: "there", Replayed: "no row"}}
	case order > 0:
		row = b
		d.Columns = []ColumnDifference{{Running: "no row", Replayed: "there"}}
	default:
		for i := t.keys; i < len(a); i++ {
			if compareValues(a[i], b[i]) != 0 {
				d.Columns = append(d.Columns, ColumnDifference{t.columns[i], show(a[i]), show(b[i])})
			}
		}
	}
	var key []string
	for i, name := range t.columns[:t.keys] {
		key = append(key, name+"="+show(row[i]))
	}
	d.Key = strings.Join(key, " ")
	return d
}

// show is a value as people read it.
func show(v any) string {
	if b, ok := v.([]byte); ok {
		return hex.EncodeToString(b)
	}
	return fmt.Sprint(v)
}
