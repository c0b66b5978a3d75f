package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"text/tabwriter"
	"time"

	"deckle/internal/config"
	"deckle/internal/obs"
	"deckle/internal/store"
)

// storeCmd looks at the store of a deckle.toml, and moves another one into it.
type storeCmd struct {
	Status storeStatusCmd `cmd:"" help:"Say what the store holds, and how much it may."`
	Import storeImportCmd `cmd:"" help:"Copy another store into this one, which must be empty."`
}

type storeStatusCmd struct {
	Config string `help:"The deckle.toml whose store is meant." default:"deckle.toml" type:"path"`
}

// Run prints the status of a store that no server has open, or that another
// machine has. It makes none.
func (c *storeStatusCmd) Run(ctx context.Context, out io.Writer) error {
	cfg, err := loadForStore(c.Config)
	if err != nil {
		return err
	}
	status, err := store.Inspect(ctx, storeConfig(cfg), storeLogger())
	if errors.Is(err, store.ErrInUse) {
		_, err = fmt.Fprintf(out, "%v\n", err)
		return err
	}
	if err != nil {
		return err
	}
	return printStatus(out, status)
}

// loadForStore loads a deckle.toml whose problems are printed.
func loadForStore(path string) (*config.Config, error) {
	cfg, problems := config.Load(path)
	if _, err := problems.WriteTo(os.Stderr); err != nil {
		return nil, err
	}
	if len(problems.Errors()) > 0 {
		return nil, exitError{1}
	}
	return cfg, nil
}

// storeLogger tells of what is wrong, and not of what is usual.
func storeLogger() *slog.Logger { return obs.Logger(os.Stderr, slog.LevelWarn) }

func printStatus(out io.Writer, s store.Status) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "mode\t%s\n", s.Mode)
	if s.Folder != "" {
		fmt.Fprintf(w, "folder\t%s\n", s.Folder)
		fmt.Fprintf(w, "disk\t%s free\n", size(s.Free))
	} else {
		fmt.Fprintf(w, "server\t%s\n", s.Server)
		fmt.Fprintf(w, "clock\t%v ahead of this machine's\n", s.Offset.Round(time.Millisecond))
	}
	if s.UnsealedKeys > 0 {
		fmt.Fprintf(w, "keys\t%s not sealed, though there is an encryption key; each is when it is written again\n", count(s.UnsealedKeys, "key ring"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nstream\tmessages\tfirst\tlast\tbytes\tof\treplicas")
	for _, x := range s.Streams {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\t%s\t%d\n", x.Name, x.Messages, x.First, x.Last, size(int64(x.Bytes)), size(x.MaxBytes), x.Replicas)
	}
	return w.Flush()
}

// size is a number of bytes for people.
func size(n int64) string {
	for _, unit := range []struct {
		bytes int64
		name  string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.bytes {
			return fmt.Sprintf("%.4g %s", float64(n)/float64(unit.bytes), unit.name)
		}
	}
	return fmt.Sprintf("%d B", n)
}

type storeImportCmd struct {
	From    string `arg:"" help:"A data_dir, or the folder of a mode in one. It is left as it is." type:"path"`
	Config  string `help:"The deckle.toml whose store it goes to." default:"deckle.toml" type:"path"`
	Salvage bool   `help:"Take what can be read of a damaged store."`
}

// Help is what a user reads before running it.
func (storeImportCmd) Help() string {
	return `Copies the journal in order, the values of all keys, and the assets. Both servers must be stopped.
The journal keeps its places, so reports go on where they were; after --salvage run deckle replay.`
}

// Run copies, and prints how much.
func (c *storeImportCmd) Run(ctx context.Context, out io.Writer) error {
	cfg, err := loadForStore(c.Config)
	if err != nil {
		return err
	}
	done, err := store.ImportFrom(ctx, storeConfig(cfg), c.From, c.Salvage, storeLogger())
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "from %s\n", done.From)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, s := range done.Streams {
		fmt.Fprintf(w, "%s\t%s", s.Name, count(int(s.Copied), "message"))
		if s.Missing > 0 {
			fmt.Fprintf(w, "\t%d missing", s.Missing)
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}
