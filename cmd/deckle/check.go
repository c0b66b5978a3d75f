package main

import (
	"context"
	"fmt"
	"io"

	"deckle/internal/config"
)

// exitError ends the process with a code after everything has been said.
type exitError struct{ code int }

func (e exitError) Error() string { return fmt.Sprintf("exit %d", e.code) }

type checkCmd struct {
	Files []string `arg:"" name:"file" help:"A deckle.toml, whose template files are checked as well, or a template file."`
	Probe bool     `help:"Ask Prebid Server once for every slot, as a test: one stored request that it does not know costs a page's whole auction."`
}

// Run prints everything that is wrong with the files, and ends with exit status
// 1 if any of it is an error. With Probe it asks Prebid Server as well.
func (c *checkCmd) Run(ctx context.Context, out io.Writer) error {
	problems := config.Examine(c.Files...)
	if _, err := problems.WriteTo(out); err != nil {
		return err
	}
	refused := 0
	if c.Probe && len(problems.Errors()) == 0 {
		var err error
		if refused, err = probeFiles(ctx, out, c.Files); err != nil {
			return err
		}
	}
	errors, warnings := len(problems.Errors()), len(problems.Warnings())
	if _, err := fmt.Fprintf(out, "%s, %s\n", count(errors, "error"), count(warnings, "warning")); err != nil {
		return err
	}
	if errors+refused > 0 {
		return exitError{1}
	}
	return nil
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
