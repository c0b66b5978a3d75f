package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"deckle/internal/catalog"
	"deckle/internal/sim"
	"deckle/internal/sim/desk"
	"deckle/internal/sim/readers"
)

// BenchmarkBatches asks the whole server for batches at rates that do not wait for
// its answers (an open loop), with 1,000 campaigns of 5 creatives each, and says how
// long those took from when they were due. Client and server share the machine.
func BenchmarkBatches(b *testing.B) {
	world, err := sim.Start(context.WithoutCancel(b.Context()), sim.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer world.Close()
	ctx, stop := context.WithCancel(b.Context())
	full := make(chan struct{})
	stock := func(ctx context.Context, c *catalog.Catalog, blobs catalog.Blobs) error {
		defer close(full)
		return manyCampaigns(ctx, c, blobs)
	}
	site, ended := serveDemo(b, ctx, world, stock, func(toml, template string) (string, string) {
		return strings.Replace(toml, "[server]", "[server]\ntrusted_proxies = [\"127.0.0.0/8\"]", 1), template
	})
	<-full
	if err := stocked(ctx, site); err != nil {
		b.Fatal(err)
	}
	within(b, func() bool { return strings.Contains(readyz(site), "leased, 0 not") })
	defer func() {
		stop()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	}()
	for _, rate := range []int{250, 500, 1000, 2000, 3000} {
		b.Run(fmt.Sprintf("%d_a_second", rate), func(b *testing.B) {
			l := newLoad(site)
			b.ResetTimer()
			for b.Loop() {
				l.run(b.Context(), rate, 3*time.Second)
			}
			l.client.CloseIdleConnections()
			l.report(b)
		})
	}
}

// manyCampaigns fills a site with 1,000 campaigns of 5 creatives.
func manyCampaigns(ctx context.Context, c *catalog.Catalog, blobs catalog.Blobs) error {
	d, err := desk.Document(ctx, blobs)
	if err != nil {
		return err
	}
	content := catalog.ContentTaxonomy().Categories()
	template := d.Creatives[0]
	d.Creatives, d.Approvals = nil, nil
	d.Sites[0].AutoApprove = true
	campaign := *d.Campaigns[0]
	d.Campaigns, d.Advertisers = nil, d.Advertisers[:1]
	for i := range 1000 {
		if i%10 == 0 {
			a := *d.Advertisers[0]
			a.ID = fmt.Sprintf("advertiser-%03d", i/10)
			a.DailyBudget = 1e12
			d.Advertisers = append(d.Advertisers, &a)
		}
		m := campaign
		m.ID, m.Advertiser = fmt.Sprintf("campaign-%04d", i), fmt.Sprintf("advertiser-%03d", i/10)
		m.Categories = []string{content[i%len(content)], content[(i+5)%len(content)]}
		m.DailyBudget = 1e12
		d.Campaigns = append(d.Campaigns, &m)
		for j := range 5 {
			k := *template
			k.ID, k.Campaign = fmt.Sprintf("creative-%04d-%d", i, j), m.ID
			d.Creatives = append(d.Creatives, &k)
		}
	}
	if err := importDocument(ctx, c, d, "a benchmark"); err != nil {
		return err
	}
	// Approving by itself is work for the store, which no page is to be measured beside.
	for s := c.Snapshot(); s.Lookup(desk.Site, content[0]).Len() == 0 || len(s.Queue(desk.Site, time.Now())) > 0; s = c.Snapshot() {
		if pause(ctx, 100*time.Millisecond); ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// readyz is what a site's admin listener says of its parts.
func readyz(site *demoSite) string {
	resp, err := http.Get(site.admin + "/readyz")
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return string(text)
}

// stocked waits until batches are won: the catalog is read, and its budgets leased.
func stocked(ctx context.Context, site *demoSite) error {
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	for ctx.Err() == nil {
		l := newLoad(site)
		l.ask(ctx, 0, time.Now())
		if l.won.Load() == 3 {
			return nil
		}
		pause(ctx, 50*time.Millisecond)
	}
	return fmt.Errorf("nothing is won: %w", ctx.Err())
}

// A load is batches and what they took.
type load struct {
	site   *demoSite
	client *http.Client
	bodies [][]byte

	mu     sync.Mutex
	took   *hdrhistogram.Histogram // microseconds
	failed atomic.Int64
	won    atomic.Int64
}

func newLoad(site *demoSite) *load {
	l := &load{
		site: site, took: hdrhistogram.New(1, 60_000_000, 3),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 512}, Timeout: 10 * time.Second},
	}
	for _, path := range []string{"/", "/2026/11/night-ferry/", "/water/"} {
		body, err := json.Marshal(map[string]any{
			"pub": desk.Site, "url": site.url + path,
			"imp": []readers.Imp{{ID: "a", W: 300, H: 250}, {ID: "b", W: 300, H: 600}, {ID: "c", W: 728, H: 90}},
		})
		if err != nil {
			panic(err) // of our own types
		}
		l.bodies = append(l.bodies, body)
	}
	return l
}

// run sends rate batches a second for d, each when it is due, whether or not those
// before it are answered.
func (l *load) run(ctx context.Context, rate int, d time.Duration) {
	start := time.Now()
	var wg sync.WaitGroup
	for i := range int(d.Seconds() * float64(rate)) {
		due := start.Add(time.Duration(i) * time.Second / time.Duration(rate))
		pause(ctx, time.Until(due))
		wg.Go(func() { l.ask(ctx, i, due) })
	}
	wg.Wait()
}

func (l *load) ask(ctx context.Context, i int, due time.Time) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.site.url+"/v1/serve/batch", bytes.NewReader(l.bodies[i%len(l.bodies)]))
	if err != nil {
		panic(err) // of our own URL
	}
	req.Header.Set("Content-Type", "text/plain")
	req.Header.Set("X-Forwarded-For", fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255)) // every reader is another
	resp, err := l.client.Do(req)
	if err != nil {
		l.failed.Add(1)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		l.failed.Add(1)
		return
	}
	l.won.Add(int64(bytes.Count(body, []byte(`"winner"`))))
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.took.RecordValue(time.Since(due).Microseconds()) // what is above a minute is not asked for
}

func (l *load) report(b *testing.B) {
	for _, q := range []float64{50, 99, 99.9} {
		b.ReportMetric(float64(l.took.ValueAtQuantile(q))/1000, fmt.Sprintf("p%v-ms", q))
	}
	b.ReportMetric(float64(l.failed.Load()), "failed")
	b.ReportMetric(float64(l.won.Load())/max(1, float64(l.took.TotalCount())), "winners/batch")
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapAlloc)/(1<<20), "heap-MB")
}
