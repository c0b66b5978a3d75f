package catalog_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"deckle"
	"deckle/internal/catalog"
)

// tiers is a taxonomy of four tiers: 1 above 11 above 111 above 1111, and 2.
func tiers(t testing.TB) *catalog.Taxonomy {
	tax, err := catalog.LoadTaxonomy("Tiers", strings.NewReader(
		"Unique ID\tParent\tName\n1\t\tOne\n11\t1\tEleven\n111\t11\tMore\n1111\t111\tMost\n12\t1\tTwelve\n2\t\tTwo\n"))
	if err != nil {
		t.Fatal(err)
	}
	return tax
}

// wanting is a campaign with a creative of the same id.
func (w *world) wanting(id string, categories ...string) {
	w.Helper()
	c := exampleCampaign()
	c.ID, c.Categories = id, categories
	w.put(c)
	e := exampleCreative()
	e.ID, e.Campaign = id, id
	w.put(e)
}

// affinities are what a look-up gives, with three decimals, in its order.
func affinities(s *catalog.Snapshot, site, category string) string {
	var out []string
	for c, affinity := range s.Lookup(site, category).All() {
		out = append(out, fmt.Sprintf("%s %.3f", c.Creative.ID, affinity))
	}
	return strings.Join(out, ", ")
}

func TestLookupDecaysTowardsAncestors(t *testing.T) {
	inWorld(t, catalog.Config{Content: tiers(t)}, func(w *world) {
		w.put(examplePublisher())
		auto := exampleSite("blog")
		auto.AutoApprove = true
		w.put(auto)
		w.put(exampleAdvertiser())
		w.wanting("broad", "1")
		w.wanting("deep", "111")
		w.wanting("both", "1", "11")
		w.wanting("apart", "2", "12")
		s := w.settled()
		for _, test := range []struct{ category, want string }{
			{"1", "both 1.000, broad 1.000"},
			{"11", "both 1.000, broad 0.700"},
			{"12", "apart 1.000, both 0.700, broad 0.700"},
			{"111", "both 0.700, broad 0.490, deep 1.000"},
			{"1111", "both 0.490, broad 0.343, deep 0.700"},
			{"2", "apart 1.000"},
			{"999", ""},
			{"", ""},
		} {
			if got := affinities(s, "blog", test.category); got != test.want {
				t.Errorf("category %s: %s; want %s", test.category, got, test.want)
			}
		}
		if got := affinities(s, "shop", "1"); got != "" {
			t.Errorf("on a site that there is not: %s", got)
		}
	})
}

func TestCandidateHasWhatServingNeeds(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.example()
		campaign(func(c *catalog.Campaign) { c.Start, c.End = "2026-12-01", "2026-12-24" })(w)
		e := exampleCreative()
		e.Shapes = []catalog.Shape{{W: 300, H: 250}}
		w.put(e)
		pool := w.settled().Lookup("blog", travel)
		if pool.Len() != 1 {
			t.Fatalf("%d candidates", pool.Len())
		}
		c, affinity := pool.At(0)
		if affinity != 1 || c.Site.ID != "blog" || c.Campaign.MaxCPM != 4_000_000 || c.Advertiser.ID != "inn" || c.Version != 2 || c.Domain != "inn.example" {
			t.Errorf("candidate is %+v", c)
		}
		if !c.Fits(deckle.Size{W: 300, H: 250}) || c.Fits(deckle.Size{W: 300, H: 600}) {
			t.Error("shapes do not bind")
		}
		for at, want := range map[string]bool{
			"2026-11-30T23:59:59": false, "2026-12-01T00:00:00": true, "2026-12-24T23:59:59": true, "2026-12-25T00:00:00": false,
		} {
			if got := c.InSchedule(tokyo(at)); got != want {
				t.Errorf("in schedule at %s Tokyo: %v", at, got)
			}
		}
		open := catalog.Candidate{Content: &catalog.Content{}}
		if !open.InSchedule(day) || !open.Fits(deckle.Size{W: 1, H: 1}) {
			t.Error("without dates and shapes it always fits")
		}
	})
}

// A site whose currency in deckle.toml is not its publisher's any more sells
// nothing: prices would mean something else.
func TestOtherCurrencySellsNothing(t *testing.T) {
	inWorld(t, facts(), func(w *world) {
		w.example()
		w.wantServed("blog", 1)
		c := facts()
		c.Sites[0].Currency = "EUR"
		node := &world{TB: w, Catalog: catalog.New(w.kv, w.keys, c), ctx: w.ctx}
		node.run()
		node.wantServed("blog", 0)
		node.wantServed("shop", 1)
		if removed, why := node.Snapshot().Removed("blog", "ryokan", day); removed {
			t.Errorf("and removes a bookmark: %q", why)
		}
	})
}

func TestLookupAllocatesNothing(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.example()
		w.settled()
		sum := 0.0
		if n := testing.AllocsPerRun(100, func() {
			pool := w.Snapshot().Lookup("blog", travel)
			for i := range pool.Len() {
				_, affinity := pool.At(i)
				sum += affinity
			}
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

// big fills a catalog of n campaigns with a creative each on two sites, as a
// document, and waits until all is approved.
func (w *world) big(n int) {
	w.Helper()
	d := &catalog.Document{
		Publishers: []*catalog.Publisher{examplePublisher()},
		Sites: []*catalog.Site{
			{ID: "blog", Publisher: "yuki", AutoApprove: true}, {ID: "shop", Publisher: "yuki", AutoApprove: true},
		},
	}
	categories := catalog.ContentTaxonomy().Categories()
	for i := range n {
		if i%100 == 0 {
			a := exampleAdvertiser()
			a.ID = fmt.Sprint("a", i/100)
			d.Advertisers = append(d.Advertisers, a)
		}
		c := exampleCampaign()
		c.ID, c.Advertiser = fmt.Sprint("c", i), fmt.Sprint("a", i/100)
		c.Start, c.End = "2026-11-01", "2027-03-31"
		c.Categories = []string{categories[i%37], categories[(i+7)%37], categories[(i+19)%37]}
		e := exampleCreative()
		e.ID, e.Campaign = fmt.Sprint("e", i), c.ID
		e.Pages[0].Body = strings.Repeat("A room. ", 40)
		d.Campaigns, d.Creatives = append(d.Campaigns, c), append(d.Creatives, e)
	}
	diff, err := w.Import(d)
	if err != nil {
		w.Fatal(err)
	}
	if done, err := w.Apply(w.ctx, diff, "tester"); err != nil || done != len(diff.Steps) {
		w.Fatalf("%d of %d steps: %v", done, len(diff.Steps), err)
	}
	for s := w.Snapshot(); len(s.Queue("", day)) > 0 || len(s.List(catalog.KindCreative, "", n)) < n; s = w.Snapshot() {
		if err := w.WaitFor(w.ctx, s.Revision()+1); err != nil {
			w.Fatal(err)
		}
	}
}

const many = 10_000

// campaigns is how many a test takes when there is no time.
func campaigns() int {
	if os.Getenv("DECKLE_SLOW") == "" {
		return many / 20
	}
	return many
}

func bench(b *testing.B) *world {
	w := newWorld(b, catalog.Config{})
	w.run()
	w.big(many)
	return w
}

func BenchmarkLookup(b *testing.B) {
	w := bench(b)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n = w.Snapshot().Lookup("blog", travel).Len()
	}
	if n < many/37 {
		b.Fatalf("%d candidates", n)
	}
}

// BenchmarkRebuild is from a write that is durable to the snapshot that has it,
// with two sites.
func BenchmarkRebuild(b *testing.B) {
	for _, test := range []struct {
		name  string
		write func(i int) catalog.Entity
	}{
		{"campaign", func(i int) catalog.Entity {
			c := exampleCampaign()
			c.ID, c.Advertiser, c.MaxCPM = "c5", "a0", deckle.CPM(1000*(2+i))
			return c
		}},
		{"site", func(i int) catalog.Entity {
			s := exampleSite("blog")
			s.FreshnessHours = 1 + i%700
			return s
		}},
	} {
		b.Run(test.name, func(b *testing.B) {
			w := bench(b)
			var worst, sum time.Duration
			i := 0
			for b.Loop() {
				i++
				r := w.put(test.write(i))
				start := time.Now()
				if err := w.WaitFor(w.ctx, r.Revision); err != nil {
					b.Fatal(err)
				}
				took := time.Since(start)
				worst, sum = max(worst, took), sum+took
			}
			b.ReportMetric(float64(sum.Milliseconds())/float64(i), "ms/rebuild")
			b.ReportMetric(float64(worst.Milliseconds()), "ms/worst")
		})
	}
}

// BenchmarkLookupWhileRebuilding looks up beside a writer that never rests, and says
// how long the slowest of a thousand takes.
func BenchmarkLookupWhileRebuilding(b *testing.B) {
	w := bench(b)
	stop, done := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for ; ; n++ {
			select {
			case <-stop:
				done <- n
				return
			default:
			}
			c := exampleCampaign()
			c.ID, c.Advertiser, c.MaxCPM = "c5", "a0", deckle.CPM(1000*(2+n))
			if err := w.WaitFor(w.ctx, w.put(c).Revision); err != nil {
				b.Error(err)
			}
		}
	}()
	var (
		mu   sync.Mutex
		took []time.Duration
	)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		var mine []time.Duration
		for n := 0; pb.Next(); n++ {
			start := time.Now()
			pool := w.Snapshot().Lookup("blog", travel)
			if c, _ := pool.At(pool.Len() - 1); c == nil {
				b.Error("no candidate")
			}
			if n%64 == 0 && len(mine) < 1<<20 {
				mine = append(mine, time.Since(start))
			}
		}
		mu.Lock()
		took = append(took, mine...)
		mu.Unlock()
	})
	b.StopTimer()
	close(stop)
	b.ReportMetric(float64(<-done), "rebuilds")
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*999/1000].Nanoseconds()), "p99.9-ns")
}

// An index that is patched change by change is the one that is built at once, and no
// snapshot changes under its readers.
func TestPatchedIndexIsTheWholeOne(t *testing.T) {
	all := []string{"1", "11", "111", "1111", "12", "2"}
	picture := func(s *catalog.Snapshot) string {
		var b strings.Builder
		for _, site := range []string{"blog", "shop"} {
			for _, category := range all {
				fmt.Fprintf(&b, "%s %s: %s\n", site, category, affinities(s, site, category))
			}
			for _, q := range s.Queue(site, day) {
				fmt.Fprintf(&b, "%s waits for %s %d\n", site, q.Creative, q.Version)
			}
		}
		return b.String()
	}
	for seed := range uint64(4) {
		inWorld(t, catalog.Config{Content: tiers(t)}, func(w *world) {
			random := rand.New(rand.NewPCG(seed, 1))
			w.put(examplePublisher())
			w.put(&catalog.Site{ID: "blog", Publisher: "yuki", AutoApprove: true})
			w.put(exampleSite("shop"))
			w.put(exampleAdvertiser())
			pictures := map[string]bool{}
			for step := range 120 {
				id := fmt.Sprint("c", random.IntN(12))
				switch random.IntN(8) {
				default:
					var categories []string
					for _, i := range random.Perm(len(all))[:1+random.IntN(3)] {
						categories = append(categories, all[i])
					}
					w.wanting(id, categories...)
				case 0:
					if _, ok := w.settled().Creative(id); ok {
						w.delete(catalog.KindCreative, id)
					}
				case 1:
					if _, ok := w.settled().Creative(id); ok {
						w.approve("shop", id)
					}
				case 2:
					e := exampleCreative()
					other := fmt.Sprint("c", random.IntN(12))
					if _, ok := w.settled().Campaign(other); ok {
						e.ID, e.Campaign, e.Pages[0].Headline = id, other, fmt.Sprint(step)
						w.put(e)
					}
				case 3:
					advertiser(func(a *catalog.Advertiser) {
						a.Status = []catalog.Status{catalog.Active, catalog.Active, catalog.Suspended}[random.IntN(3)]
					})(w)
				}
				before := w.settled()
				was := picture(before)
				pictures[was] = true
				if step%8 == 0 {
					whole := catalog.New(w.kv, w.keys, catalog.Config{Content: tiers(t)})
					node := &world{TB: w, Catalog: whole, ctx: w.ctx}
					stop := node.run()
					if want := picture(node.settled()); was != want {
						w.Fatalf("seed %d, step %d: patched it is\n%s\nbuilt at once\n%s", seed, step, was, want)
					}
					stop()
				}
				w.wanting("z", all[step%len(all)])
				w.settled()
				if after := picture(before); after != was {
					w.Fatalf("seed %d, step %d: a snapshot has changed from\n%s\nto\n%s", seed, step, was, after)
				}
			}
			if len(pictures) < 60 {
				w.Errorf("seed %d: %d different indexes only", seed, len(pictures))
			}
		})
	}
}
