package projection

import (
	"context"
	"io/fs"
	"log/slog"

	"deckle/internal/store"
)

// SetBatch makes transactions of at least n events.
func (t *Tables) SetBatch(n int) { t.batch = n }

// SetMaxRows makes reports of more than n rows too large.
func (t *Tables) SetMaxRows(n int) { t.maxRows = n }

// BeforeCommit has f called between the rows of a batch and their commit. Its error
// is a crash there.
func (t *Tables) BeforeCommit(f func() error) { t.beforeCommit = f }

// FoldTo folds every projection to the envelope until, once.
func (t *Tables) FoldTo(ctx context.Context, log store.Log, until store.Seq) error {
	for _, f := range t.folders {
		if err := t.fold(ctx, log, f, until); err != nil {
			return err
		}
	}
	return nil
}

// Write runs a statement on the writer's connection.
func (t *Tables) Write(ctx context.Context, query string) error {
	_, err := t.conn.ExecContext(ctx, query)
	return err
}

// OpenTablesWith opens with other migrations.
func OpenTablesWith(ctx context.Context, path string, log *slog.Logger, steps fs.FS, projections ...Projection) (*Tables, error) {
	return openTables(ctx, path, Config{}, log, steps, projections)
}

// Migrations are the embedded ones.
var Migrations fs.FS = migrations

// Remember is for how long of journal time an id is known at least.
func (c Config) Remember() (d int64) { return c.remember().Milliseconds() }
