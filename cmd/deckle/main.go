// Command deckle is a publisher's own ad edge: one binary in front of a site that
// decides every ad slot of a page on the server, while the page is being fetched.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

// commands are the subcommands of deckle.
type commands struct {
	Serve   serveCmd   `cmd:"" help:"Stand in front of the sites of a deckle.toml."`
	Demo    demoCmd    `cmd:"" help:"Show everything on this machine: a sample magazine, bidders and an ad server."`
	Check   checkCmd   `cmd:"" help:"Say everything that is wrong with deckle.toml and template files."`
	Match   matchCmd   `cmd:"" help:"Say which slots a URL has, and why."`
	Admin   adminCmd   `cmd:"" help:"Make a password or an API key for the admin listener."`
	Catalog catalogCmd `cmd:"" help:"Move the catalog of a running server in and out."`
	Token   tokenCmd   `cmd:"" help:"Make a token by hand."`
	Replay  replayCmd  `cmd:"" help:"Make the reports anew from the journal, or compare them with it."`
	Store   storeCmd   `cmd:"" help:"Look at the store, or move another one into it."`
	Version versionCmd `cmd:"" help:"Print the version."`

	VersionFlag versionFlag `name:"version" help:"Print the version."`
}

func main() {
	// net/http tells the standard logger, and nobody else, when an origin sends more
	// than it said, and quotes it: that may be a reader's page.
	log.SetOutput(io.Discard)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	err := command(ctx, os.Args[1:])
	stop()
	if exit, ok := errors.AsType[exitError](err); ok {
		os.Exit(exit.code) // everything has been said
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "deckle:", err)
		os.Exit(1)
	}
}

// command runs one subcommand. Flags may begin with one dash or with two.
func command(ctx context.Context, args []string) error {
	var c commands
	parser, err := kong.New(&c,
		kong.Name("deckle"),
		kong.Description("A publisher's own ad edge."),
		kong.UsageOnError(),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.BindTo(os.Stdout, (*io.Writer)(nil)),
	)
	if err != nil {
		return fmt.Errorf("build command line: %w", err)
	}
	selected, err := parser.Parse(twoDashes(args))
	if err != nil {
		parser.FatalIfErrorf(err)
	}
	return selected.Run()
}

// twoDashes lets long flags be written as Go programs write them: -config as
// --config.
func twoDashes(args []string) []string {
	out := make([]string, len(args))
	for i, arg := range args {
		if strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") && len(arg) > 2 {
			arg = "-" + arg
		}
		out[i] = arg
	}
	return out
}

// versionFlag is --version, which people try first.
type versionFlag bool

// BeforeReset prints the version in place of running anything.
func (versionFlag) BeforeReset(app *kong.Kong) error {
	err := versionCmd{}.Run(app.Stdout)
	app.Exit(0)
	return err
}

type versionCmd struct{}

// Run prints the module's version and the commit it was built from, as far as
// the build knows them.
func (versionCmd) Run(out io.Writer) error {
	version, revision := "unknown", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = " " + s.Value
			}
		}
		_, err := fmt.Fprintf(out, "deckle %s%s %s\n", version, revision, info.GoVersion)
		return err
	}
	_, err := fmt.Fprintf(out, "deckle %s\n", version)
	return err
}
