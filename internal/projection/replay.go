package projection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"deckle/internal/store"
)

// Rebuild folds the whole journal into a new report.db, and then puts it in the place
// of the one at path, whatever that was. It returns how many envelopes it has folded.
// A file that another process has is [store.ErrInUse].
//
// The journal must have its beginning: what an archive has taken out of it would be
// missing from every report.
func Rebuild(ctx context.Context, path string, journal store.Log, c Config, log *slog.Logger, projections ...Projection) (store.Seq, error) {
	held, err := lock(path)
	if err != nil {
		return 0, err
	}
	defer held.Close()
	state, err := journal.State(ctx)
	if err != nil {
		return 0, err
	}
	beside := path + ".new"
	defer removeFile(beside)
	if err := build(ctx, beside, journal, c, log, projections, func(string) store.Seq { return state.Last }); err != nil {
		return 0, err
	}
	return state.Last, replace(path, beside)
}

// build folds the journal into a new file, each projection to an envelope of its own.
func build(ctx context.Context, path string, journal store.Log, c Config, log *slog.Logger, projections []Projection, until func(projection string) store.Seq) (err error) {
	if err := removeFile(path); err != nil {
		return err
	}
	t, err := openTables(ctx, path, c, log, migrations, projections)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	for _, f := range t.folders {
		end := until(f.projection.Name())
		err := t.fold(ctx, journal, f, end)
		if err == nil && f.at.seq < end {
			err = cmp.Or(ctx.Err(), errEnded)
		}
		if err != nil {
			return fmt.Errorf("projection %s: %w", f.projection.Name(), err)
		}
	}
	_, err = t.conn.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	return err
}

// removeFile removes a database and what SQLite keeps beside it.
func removeFile(path string) error { return removeAll(path, path+"-wal", path+"-shm") }

// replace puts beside in the place of path. A crash on the way leaves the old file,
// no file or the new one: where there is none, everything is folded from the start.
func replace(path, beside string) error {
	if err := syncPath(beside); err != nil {
		return err
	}
	// The old log goes after the old file, which is nothing without it, and before the
	// new file comes, which it would be taken for.
	if err := removeFile(path); err != nil {
		return err
	}
	if err := os.Rename(beside, path); err != nil {
		return err
	}
	return syncPath(filepath.Dir(path))
}

// syncPath makes a file, or the names in a folder, durable.
func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
