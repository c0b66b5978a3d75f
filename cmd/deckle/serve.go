package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sync/errgroup"

	"deckle/internal/auction"
	"deckle/internal/config"
	"deckle/internal/edge"
	"deckle/internal/obs"
	"deckle/web"
)

type serveCmd struct {
	Config string `help:"The deckle.toml to serve." default:"deckle.toml" type:"path"`
}

// Run serves until the process is told to end. A deckle.toml with an error
// refuses the start.
func (c *serveCmd) Run(ctx context.Context) error {
	cfg, problems := config.Load(c.Config)
	if _, err := problems.WriteTo(os.Stderr); err != nil {
		return err
	}
	if len(problems.Errors()) > 0 {
		return exitError{1}
	}
	return run(ctx, cfg, options{})
}

// options are what a demonstration may do that a server may not.
type options struct {
	// noticesTo are networks that notices may go to though they are not public.
	noticesTo []netip.Prefix
}

// run builds the whole system, in the order in which a page meets it, and serves
// until ctx is done or a part fails.
func run(ctx context.Context, cfg *config.Config, o options) (err error) {
	log := obs.Logger(os.Stderr, cfg.Server.LogLevel)

	// The listeners open first: pages do not wait for anything below.
	public, err := net.Listen("tcp", cfg.Server.Listen)
	if err != nil {
		return fmt.Errorf("open the public listener: %w", err)
	}
	defer public.Close()
	private, err := net.Listen("tcp", cfg.Server.AdminListen)
	if err != nil {
		return fmt.Errorf("open the admin listener: %w", err)
	}
	defer private.Close()

	// What we have been told: which slots a URL has.
	templates := config.Watch(cfg, log)

	// Decisions: who wins which slot, and who is told.
	figures := auction.NewMetrics()
	house := auction.New(auctionConfig(cfg), figures, log)
	defer house.Close()
	notices := auction.NewNotifier(auction.NotifierConfig{Allow: o.noticesTo}, figures, log)
	waitForNotices := inBackground(ctx, notices.Run)
	defer func() { err = errors.Join(err, waitForNotices()) }()

	// Surfaces: the page; and, apart, the people who run it.
	pages := edge.New(edgeConfig(cfg, templates), edge.Own{
		"/_deckle/": web.Client(),
		"/__ts/":    web.Client(), // reserved, and nothing there yet
	}, house, notices, log)
	defer pages.Close()
	registry := obs.Registry()
	if err := errors.Join(figures.Register(registry), templates.Metrics().Register(registry), pages.Metrics().Register(registry)); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	admin := obs.Admin(registry, func() []obs.Check { return readiness(cfg, templates) })

	// Servers drain before the rest ends: deferred calls run last.
	log.Info("listening", "public", public.Addr().String(), "admin", private.Addr().String())
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return templates.Run(ctx) })
	g.Go(func() error { return reloadOnHangup(ctx, templates, log) })
	g.Go(func() error { return obs.Serve(ctx, public, pages, cfg.Server.DrainTimeout, log) })
	g.Go(func() error { return obs.Serve(ctx, private, admin, cfg.Server.DrainTimeout, log) })
	return g.Wait()
}

// inBackground runs f, which goes on when ctx is done, until the returned
// function is called; that waits for its end.
func inBackground(ctx context.Context, f func(context.Context) error) (wait func() error) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var g errgroup.Group
	g.Go(func() error { return f(ctx) })
	return func() error {
		stop()
		return g.Wait()
	}
}

// reloadOnHangup reads every template file again at each SIGHUP.
func reloadOnHangup(ctx context.Context, t *config.Templates, log *slog.Logger) error {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	for {
		select {
		case <-hangup:
			log.Info("reloading templates")
			t.Reload()
		case <-ctx.Done():
			return nil
		}
	}
}
