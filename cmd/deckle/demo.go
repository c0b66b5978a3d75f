package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"text/template"
	"time"

	"deckle/internal/catalog"
	"deckle/internal/config"
	"deckle/internal/dashboard/access"
	"deckle/internal/sim"
	"deckle/internal/sim/desk"
	"deckle/internal/sim/readers"
)

type demoCmd struct {
	Listen  string      `help:"Address of the magazine, with Deckle in front." default:"127.0.0.1:8080"`
	Admin   string      `help:"Address of metrics and health." default:"127.0.0.1:8081"`
	Latency demoLatency `help:"How long the parts of the world take." default:"prebid=80ms,origin=40ms,gpt=30ms"`
	Readers int         `name:"simulate-readers" help:"How many readers open pages beside you, up to 1000, so that the reports live." default:"0"`
}

// demoLatency keeps the default of each part that a flag does not name.
type demoLatency struct{ sim.Latency }

// UnmarshalText reads what [sim.Latency] does.
func (l *demoLatency) UnmarshalText(text []byte) error {
	l.Latency = sim.Latency{Prebid: 80 * time.Millisecond, Origin: 40 * time.Millisecond, GPT: 30 * time.Millisecond}
	return l.Latency.UnmarshalText(text)
}

// Run starts the world outside and stands in front of it, as serve does, until the
// process is told to end. Nothing of it remains.
func (c *demoCmd) Run(ctx context.Context, out io.Writer) (err error) {
	listen, errListen := free(ctx, "listen", c.Listen)
	admin, errAdmin := free(ctx, "admin", c.Admin)
	if err := errors.Join(errListen, errAdmin); err != nil {
		return err
	}
	// The world outlives the server in front of it, which drains.
	world, err := sim.Start(context.WithoutCancel(ctx), sim.Options{Latency: c.Latency.Latency})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, world.Close()) }()
	dir, err := os.MkdirTemp("", "deckle-demo-")
	if err != nil {
		return fmt.Errorf("make the demo's folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	cfg, err := demoConfig(world, dir, listen, admin)
	if err != nil {
		return err
	}
	if err := c.guide(out, world, cfg); err != nil {
		return err
	}
	if c.Readers > 0 {
		waitForReaders := inBackground(ctx, func(ctx context.Context) error { return simulateReaders(ctx, c.Readers, "http://"+listen) })
		defer func() { err = errors.Join(err, waitForReaders()) }()
	}
	loopback := netip.PrefixFrom(netip.AddrFrom4([4]byte{127}), 8)
	return run(ctx, cfg, options{reachable: []netip.Prefix{loopback}, stock: stockDesk})
}

// simulateReaders has readers open pages of the magazine behind url until ctx is
// done: each about every four seconds, from an address of its own.
func simulateReaders(ctx context.Context, n int, url string) error {
	if n > 1000 {
		return fmt.Errorf("--simulate-readers is %d: 1000 are the most", n)
	}
	pages := []readers.Page{{URL: url + "/", Imps: []readers.Imp{{ID: "home_magazine", W: 320, H: 420}}}}
	for _, path := range sim.Articles() {
		pages = append(pages, readers.Page{URL: url + path, Imps: []readers.Imp{
			{ID: "article_magazine", W: 600, H: 420}, {ID: "article_aside", W: 300, H: 250},
		}})
	}
	reader := func(i int) *readers.Reader {
		return &readers.Reader{
			Client: readers.Client(i), Server: url, Pub: desk.Site, Rand: rand.New(rand.NewPCG(rand.Uint64(), uint64(i))),
			Habits: readers.Habits{View: 0.7, Click: 0.12, CTA: 0.2, Fold: 0.25, Unfold: 0.1},
		}
	}
	readers.Stream(ctx, n, 4*time.Second, reader, func(r *rand.Rand) readers.Page { return pages[r.IntN(len(pages))] })
	return nil
}

// stockDesk imports what the demo's sales desk sells.
func stockDesk(ctx context.Context, c *catalog.Catalog, blobs catalog.Blobs) error {
	document, err := desk.Document(ctx, blobs)
	if err != nil {
		return err
	}
	if err := importDocument(ctx, c, document, "the sales desk"); err != nil {
		return fmt.Errorf("import the demo's desk: %w", err)
	}
	return nil
}

// importDocument applies a document to a catalog that is being followed.
func importDocument(ctx context.Context, c *catalog.Catalog, document *catalog.Document, by string) error {
	select {
	case <-c.Loaded():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	diff, err := c.Import(document)
	if err != nil {
		return err
	}
	_, err = c.Apply(ctx, diff, by)
	return err
}

// free says which address listening on addr gets, or that it cannot be had; flag
// is what chooses another.
func free(ctx context.Context, flag, addr string) (string, error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return "", fmt.Errorf("%s is in use: choose another address with -%s", addr, flag)
	}
	if err != nil {
		return "", fmt.Errorf("-%s: %w", flag, err)
	}
	defer ln.Close()
	return ln.Addr().String(), nil
}

// demoPassword opens the demo's dashboard, which listens on this machine alone unless
// somebody asks for another address.
const demoPassword = "slow lines and long platforms"

// demoConfig writes the demo's two files into dir and loads them as serve would.
func demoConfig(world *sim.World, dir, listen, admin string) (*config.Config, error) {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return nil, fmt.Errorf("address %s: %w", listen, err)
	}
	hosts := []string{"127.0.0.1", "localhost"}
	if ip, err := netip.ParseAddr(host); err == nil && ip.Is4() && !ip.IsUnspecified() && host != hosts[0] {
		hosts = append(hosts, host)
	}
	file := filepath.Join(dir, "deckle.toml")
	text := world.Config(sim.ConfigOptions{
		Listen: listen, AdminListen: admin, Hosts: hosts,
		TemplateFile: "creative-opportunities.toml", DataDir: filepath.Join(dir, "data"), PasswordFile: filepath.Join(dir, "password"),
	})
	hash, err := access.HashPassword([]byte(demoPassword))
	if err != nil {
		return nil, fmt.Errorf("hash the demo's password: %w", err)
	}
	err = errors.Join(
		os.WriteFile(filepath.Join(dir, "password"), []byte(hash+"\n"), 0o600),
		os.WriteFile(file, []byte(text), 0o600),
		os.WriteFile(filepath.Join(dir, "creative-opportunities.toml"), []byte(sim.Template()), 0o600),
	)
	if err != nil {
		return nil, fmt.Errorf("write the demo's files: %w", err)
	}
	cfg, problems := config.Load(file)
	if errs := problems.Errors(); len(errs) > 0 {
		return nil, fmt.Errorf("load the demo's deckle.toml: %s", errs[0])
	}
	return cfg, nil
}

// demoGuide says what there is to look at.
var demoGuide = template.Must(template.New("guide").Parse(`
Slow Lines, a sample travel magazine, with Deckle in front of it.

  Front page        {{.Site}}/
  An article        {{.Site}}{{.Article}}
                    its last ad is a house ad: the only bid for that slot was too low
  The same, refused {{.Site}}/preferences/refuse?from={{.Article}}
                    no bidder is asked; the footer takes you back
  A bookmark        open a magazine in an article, fold its corner, reload the page
                    pause its campaign at the desk, reload: the bookmark is gone
  Without Deckle    {{.Origin}}{{.Article}}
  What went in      curl -s -H 'Accept: text/html' -A Mozilla/5.0 {{.Site}}{{.Article}} | grep -o 'data-deckle="[a-z]*"'
  What a bot gets   curl -s -H 'Accept: text/html' -A Googlebot {{.Site}}{{.Article}} | grep -o 'data-deckle="[a-z]*"'
  The sales desk    http://{{.Admin}}/   password: {{.Password}}
                    campaigns, approvals, reports, and why a page has the ads that it has
  Metrics           http://{{.Admin}}/metrics   and /readyz
  On a phone        open it on one, or choose one in the browser's device toolbar: bidders go by the user agent
  The slots         {{.Template}}
                    change a floor or a pattern and save: the next page has it

Bidders answer after {{.Latency.Prebid}}, pages take {{.Latency.Origin}}, the ad server {{.Latency.GPT}}: see -latency. Ctrl-C ends.

`))

// guide writes demoGuide.
func (c *demoCmd) guide(out io.Writer, world *sim.World, cfg *config.Config) error {
	host, port, err := net.SplitHostPort(cfg.Server.Listen)
	if err != nil {
		return fmt.Errorf("address %s: %w", cfg.Server.Listen, err)
	}
	if ip, err := netip.ParseAddr(host); err != nil || ip.IsUnspecified() || ip.Is6() {
		host = "127.0.0.1"
	}
	return demoGuide.Execute(out, map[string]any{
		"Site": "http://" + net.JoinHostPort(host, port), "Article": sim.SampleArticle,
		"Origin": world.PublisherURL, "Admin": cfg.Server.AdminListen,
		"Template": cfg.Sites[0].Templates, "Latency": c.Latency, "Password": demoPassword,
	})
}
