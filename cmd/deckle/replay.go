package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"deckle/internal/config"
	"deckle/internal/obs"
	"deckle/internal/projection"
	"deckle/internal/store"
)

type replayCmd struct {
	Config string `help:"The deckle.toml whose journal is replayed." default:"deckle.toml" type:"path"`
	Verify bool   `help:"Change nothing; compare report.db with a replay, row by row."`
}

// Help is what a user reads before running it.
func (replayCmd) Help() string {
	return `Makes report.db, the tables behind all reports, anew from the journal and puts it in the place of the old one.
With --verify, compares the two instead, prints each row that differs, and ends with exit status 1 if one does.
The server must be stopped.`
}

// Run replays the journal of a stopped server.
func (c *replayCmd) Run(ctx context.Context, out io.Writer) (err error) {
	cfg, problems := config.Load(c.Config)
	if _, err := problems.WriteTo(os.Stderr); err != nil {
		return err
	}
	if len(problems.Errors()) > 0 {
		return exitError{1}
	}
	log := obs.Logger(os.Stderr, slog.LevelWarn)
	st, err := openStopped(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	journal := st.Journal()
	if c.Verify {
		return verifyReports(ctx, cfg, journal, log, out)
	}
	return rebuildReports(ctx, cfg, journal, log, out)
}

// openStopped opens the store of a server that must not run.
func openStopped(ctx context.Context, cfg *config.Config, log *slog.Logger) (*store.Store, error) {
	if _, err := os.Stat(cfg.Store.DataDir); err != nil {
		return nil, fmt.Errorf("there is no store to replay: %w", err)
	}
	st, err := store.Open(ctx, storeConfig(cfg), log)
	if errors.Is(err, store.ErrInUse) {
		return nil, fmt.Errorf("%w: a replay needs the store for itself; stop the server first", err)
	}
	return st, err
}

func rebuildReports(ctx context.Context, cfg *config.Config, journal store.Log, log *slog.Logger, out io.Writer) error {
	seq, err := projection.Rebuild(ctx, reportFile(cfg), journal, projectionConfig(cfg), log, projections()...)
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	_, err = fmt.Fprintf(out, "%s: made anew from %s\n", reportFile(cfg), count(int(seq), "envelope"))
	return err
}

// maxDifferences is how many rows that differ are printed.
const maxDifferences = 100

func verifyReports(ctx context.Context, cfg *config.Config, journal store.Log, log *slog.Logger, out io.Writer) error {
	differences := 0
	show := func(d projection.Difference) error {
		if differences++; differences > maxDifferences {
			return nil
		}
		_, err := fmt.Fprintln(out, d)
		return err
	}
	rows, err := projection.Verify(ctx, reportFile(cfg), journal, projectionConfig(cfg), log, show, projections()...)
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	if more := differences - maxDifferences; more > 0 {
		if _, err := fmt.Fprintf(out, "and %s more\n", count(more, "row")); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(out, "%s compared, %d differ\n", count(rows, "row"), differences); err != nil {
		return err
	}
	if differences > 0 {
		return exitError{1}
	}
	return nil
}

// projections are those of report.db.
func projections() []projection.Projection { return []projection.Projection{projection.Report{}} }

func reportFile(cfg *config.Config) string { return filepath.Join(cfg.Store.DataDir, "report.db") }

// projectionConfig says what folds depend on.
func projectionConfig(cfg *config.Config) projection.Config {
	r := cfg.Reader
	return projection.Config{
		Window:   max(r.BeaconWindow, r.ClickWindow, r.FoldWindow),
		HardHour: r.EngagementWindow == "1h",
	}
}
