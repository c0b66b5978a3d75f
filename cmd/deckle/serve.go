package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sync/errgroup"

	"deckle/internal/auction"
	"deckle/internal/catalog"
	"deckle/internal/config"
	"deckle/internal/edge"
	"deckle/internal/obs"
	"deckle/internal/telemetry"
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
	// reachable are networks that notices may go to, and landing pages be read from,
	// though they are not public.
	reachable []netip.Prefix

	stock stocking
}

// A stocking puts something to sell into a catalog, once it and the assets are open.
// Nil: there is what there is.
type stocking func(context.Context, *catalog.Catalog, catalog.Blobs) error

// run builds the whole system, in the order in which a page meets it, and serves
// until ctx is done or a part fails.
func run(ctx context.Context, cfg *config.Config, o options) (err error) {
	log := obs.Logger(os.Stderr, cfg.Server.LogLevel)
	if err := checkAccess(cfg, log); err != nil {
		return err
	}

	// The listeners open first: pages do not wait for anything below.
	public, err := openFront(cfg.Server, log)
	if err != nil {
		return err
	}
	defer public.Close()
	private, err := listen("server.admin_listen", cfg.Server.AdminListen)
	if err != nil {
		return err
	}
	defer private.Close()

	// What we have been told: which slots a URL has.
	templates := config.Watch(cfg, log)

	// Decisions: who wins which slot, and who is told.
	figures := auction.NewMetrics()
	house := auction.New(auctionConfig(cfg), figures, log)
	defer house.Close()
	notices := auction.NewNotifier(auction.NotifierConfig{Allow: o.reachable}, figures, log)
	waitForNotices := inBackground(ctx, notices.Run)
	defer func() { err = errors.Join(err, waitForNotices()) }()

	// Facts: what happened, and what we have been told to do. Pages need none of it.
	registry, panics := obs.Registry(), obs.Panics()
	g, serving := errgroup.WithContext(ctx)
	known, err := newFacts(cfg, templates, registry, log, func() []obs.Check { return readiness(serving, cfg, templates) })
	if err != nil {
		return err
	}
	known.options = o
	waitForFacts := inBackground(ctx, known.Run)
	defer func() { err = errors.Join(err, waitForFacts()) }()

	// What became of every auction is told behind the pages' backs.
	told := telemetry.New(telemetry.Config{Log: known.auctions, ExportFile: cfg.Auction.ExportFile}, log)
	waitForTold := inBackground(ctx, told.Run)
	defer func() { err = errors.Join(err, waitForTold()) }()

	// Surfaces: the page; and, apart, the people who run it.
	own := known.own(edge.Own{
		"/_deckle/":       web.Client(),
		web.FramePath:     web.Frame(),
		catalog.AssetPath: http.HandlerFunc(known.assets),
		"/__ts/":          web.Client(), // reserved: a 404
	})
	pages := edge.New(edgeConfig(cfg, templates, known.head, told.Record), own, house, notices, log)
	defer pages.Close()
	askForBids(own, pages, cfg, bidsConfig(cfg, known.api, told.Record))
	if err := errors.Join(registry.Register(panics), figures.Register(registry), templates.Metrics().Register(registry), pages.Metrics().Register(registry), told.Metrics().Register(registry)); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	admin := obs.Admin(registry, known.checks, known)
	serveConfig := obs.ServeConfig{Drain: cfg.Server.DrainTimeout, Panics: panics, Log: log}
	waitForAdmin := inBackground(ctx, func(ctx context.Context) error {
		return obs.Serve(ctx, private, admin, serveConfig)
	})
	defer func() { err = errors.Join(err, waitForAdmin()) }()

	// The public server drains before the rest ends: deferred calls run last. The
	// admin listener says meanwhile that no traffic should come here.
	log.Info("listening", "public", public.Addr().String(), "admin", private.Addr().String())
	g.Go(func() error { return templates.Run(serving) })
	g.Go(func() error {
		return onHangup(serving, func() {
			log.Info("reading templates, certificate, password and keys again")
			public.reload()
			templates.Reload()
			known.reload()
		})
	})
	g.Go(func() error { return public.serve(serving, pages, serveConfig) })
	err = g.Wait()
	log.Info("ended")
	return err
}

// listen opens a listener; key is where its address comes from.
func listen(key, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s: %s is in use by another process: end it, or choose another address", key, address)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("%s: %s may not be opened: a port below 1024 needs a privilege (CAP_NET_BIND_SERVICE)", key, address)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return l, nil
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

// onHangup calls reload at each SIGHUP, until ctx is done.
func onHangup(ctx context.Context, reload func()) error {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	for {
		select {
		case <-hangup:
			reload()
		case <-ctx.Done():
			return nil
		}
	}
}
