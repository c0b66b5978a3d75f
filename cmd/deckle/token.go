package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/go-json-experiment/json"

	"deckle/internal/dashboard/api"
)

// tokenCmd makes tokens by hand.
type tokenCmd struct {
	Debug tokenDebugCmd `cmd:"" help:"Make a token with which the batches of a site explain themselves, for ten minutes."`
}

type tokenDebugCmd struct {
	management
	Site string `arg:"" help:"The id of a site of the catalog."`
}

// Run prints a debug token on standard output, so that it can be put into a request,
// and what to do with it on standard error.
func (c *tokenDebugCmd) Run(ctx context.Context, out io.Writer) error {
	body, err := json.Marshal(map[string]string{"site": c.Site})
	if err != nil {
		return fmt.Errorf("make a debug token: %w", err)
	}
	answer, _, err := c.send(ctx, http.MethodPost, "/debug-token", body, "")
	if err != nil {
		return fmt.Errorf("make a debug token: %w", err)
	}
	var t api.DebugToken
	if err := json.Unmarshal(answer, &t); err != nil {
		return fmt.Errorf("read the answer of the server: %w", err)
	}
	fmt.Fprintf(os.Stderr, "Send it as \"debug\" with a batch of %s, until %s.\n", t.Site, t.Expires.Local().Format(time.TimeOnly))
	_, err = fmt.Fprintln(out, t.Token)
	return err
}
