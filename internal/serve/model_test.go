package serve_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"deckle"
	"deckle/internal/catalog"
	"deckle/internal/classify"
	"deckle/internal/quality"
	"deckle/internal/serve"
	"deckle/internal/store/memory"
)

// An attempt is one call of Reserve.
type attempt struct {
	campaign, advertiser string
	price                deckle.Money
	request              string
	ok                   bool

	creative string // for which it was; Reserve is not told
}

// A trial is a question with everything that a judge needs to know about it.
type trial struct {
	world     *world
	question  serve.Question
	stats     map[string]quality.Stats
	templates map[string]deckle.CPM   // floors
	held      map[string]bool         // campaigns
	budgets   map[string]deckle.Money // of campaigns and advertisers
	attempts  []attempt
	asked     []string // campaigns that the pace was asked about
	taxonomy  *catalog.Taxonomy
}

// run decides anew, with the same chance and full budgets.
func (r *trial) run(p *serve.Pipeline) *serve.Decision {
	r.begin(p)
	return p.Decide(r.question)
}

func (r *trial) begin(p *serve.Pipeline) {
	left := map[string]deckle.Money{}
	for id, money := range r.budgets {
		left[id] = money
	}
	r.attempts, r.asked = nil, nil
	p.Market = serve.Market{
		Stats:     func(_, creative string, _ time.Time) quality.Stats { return r.stats[creative] },
		SlotFloor: func(_, slot string) deckle.CPM { return r.templates[slot] },
		Parent:    r.taxonomy.Parent,
		Pace: func(_ *catalog.Site, campaigns []*catalog.Campaign, held []bool, _ rand.Source, _ time.Time) {
			for i, c := range campaigns {
				if r.held[c.ID] {
					held[i] = true
				}
				r.asked = append(r.asked, c.ID)
			}
			if len(held) != len(campaigns) {
				r.asked = append(r.asked, "a list of another length")
			}
		},
		Reserve: func(c *catalog.Campaign, a *catalog.Advertiser, price deckle.Money, id string, _ time.Time) ([]string, bool) {
			ok := left[c.ID] >= price && left[a.ID] >= price
			r.attempts = append(r.attempts, attempt{campaign: c.ID, advertiser: a.ID, price: price, request: id, ok: ok})
			if !ok {
				return nil, false
			}
			left[c.ID] -= price
			left[a.ID] -= price
			return []string{"lease-" + c.ID, "lease-" + a.ID}, true
		},
	}
	r.question.Random = rand.NewPCG(7, 7)
}

// once is true about once in n times, and becomes false when a failure is made
// smaller. (rapid draws small numbers more often than large ones.)
func once(rt *rapid.T, n uint64, name string) bool {
	return rapid.Uint64Max(math.MaxUint32).Draw(rt, name)*0x9e3779b97f4a7c15>>32%n == 1
}

const modelTaxonomy = "Unique ID\tParent\tName\n1\t\tOne\n11\t1\tEleven\n111\t11\tMore\n2\t\tTwo\n3\t\tThree\n"

// drawTrial makes a catalog, a page and a batch.
func drawTrial(t *testing.T, rt *rapid.T) *trial {
	taxonomy, err := catalog.LoadTaxonomy("Model", strings.NewReader(modelTaxonomy))
	if err != nil {
		t.Fatal(err)
	}
	w := emptyWorld(t, memory.NewKV(), catalog.Config{Content: taxonomy})
	defer w.stop()
	d := drawCatalog(rt)
	w.apply(d)
	if edits := drawEdits(rt, d); len(edits.Creatives) > 0 {
		w.apply(edits) // versions that wait for approval, or have been rejected
	}
	r := &trial{
		world: w, taxonomy: taxonomy, stats: map[string]quality.Stats{}, templates: map[string]deckle.CPM{},
		held: map[string]bool{}, budgets: map[string]deckle.Money{},
	}
	for _, c := range d.Creatives {
		if rapid.Bool().Draw(rt, "measured "+c.ID) {
			n := rapid.Float64Range(1, 500).Draw(rt, "n")
			r.stats[c.ID] = quality.Stats{
				Impressions: n, Clicks: n * rapid.Float64Range(0, 1).Draw(rt, "ctr"), Folds: n * rapid.Float64Range(0, 0.3).Draw(rt, "folds"),
				Shown: rapid.Int64Range(1, 100).Draw(rt, "N"),
			}
		}
	}
	rich := rapid.Bool().Draw(rt, "rich")
	money := func(id string) {
		r.budgets[id] = 1_000_000_000
		if !rich && once(rt, 3, "poor "+id) {
			r.budgets[id] = deckle.Money(rapid.IntRange(0, 3000).Draw(rt, "budget "+id))
		}
	}
	for _, a := range d.Advertisers {
		money(a.ID)
	}
	for _, c := range d.Campaigns {
		money(c.ID)
		r.held[c.ID] = once(rt, 6, "held "+c.ID)
	}
	s, _ := w.Snapshot().Site(site)
	r.question = serve.Question{Batch: drawBatch(rt, d), Site: s, Catalog: w.Snapshot(), Now: now}
	for _, imp := range r.question.Imps {
		if once(rt, 4, "has a floor") {
			r.templates[imp.ID] = deckle.CPM(rapid.IntRange(0, 6_000_500).Draw(rt, "template floor"))
		}
	}
	r.question.Known = !once(rt, 20, "unknown")
	if r.question.Known {
		r.question.Page = drawPage(rt)
	}
	return r
}

func drawPage(rt *rapid.T) classify.Page {
	page := classify.Page{At: now.Add(-time.Duration(rapid.SampledFrom([]int{1, -1, 0, 47}).Draw(rt, "age")) * time.Hour)}
	if once(rt, 12, "stale") {
		page.At = now.Add(-48 * time.Hour)
	}
	ids := rapid.Permutation([]string{"1", "11", "111", "2", "3"}).Draw(rt, "categories")
	for _, id := range ids[:rapid.IntRange(1, 3).Draw(rt, "number of categories")] {
		page.Categories = append(page.Categories, classify.Category{ID: id, Confidence: rapid.SampledFrom([]float64{1, 0.9, 0.7, 0.6}).Draw(rt, "confidence")})
	}
	return page
}

func drawCatalog(rt *rapid.T) *catalog.Document {
	price := func(name string) deckle.CPM { return deckle.CPM(rapid.IntRange(0, 12).Draw(rt, name)) * 500_000 }
	s := &catalog.Site{ID: site, Publisher: "yuki", BidWeight: rapid.SampledFrom([]float64{0, 0.1, 0.3, 1}).Draw(rt, "alpha")}
	if once(rt, 12, "warms up") {
		s.Status = catalog.Warmup
	}
	s.Floors.Site = price("site floor") / 4
	s.Floors.Categories = map[string]deckle.CPM{rapid.SampledFrom([]string{"1", "11", "2"}).Draw(rt, "floored"): price("category floor") / 2}
	s.Floors.Slots = map[string]deckle.CPM{"s0": price("slot floor") / 2}
	d := &catalog.Document{
		Publishers: []*catalog.Publisher{{ID: "yuki", Name: "Yuki Media", Currency: "USD"}},
		Sites:      []*catalog.Site{s, {ID: "other", Publisher: "yuki"}},
	}
	advertisers := rapid.SampledFrom([]int{1, 3, 4, 5, 6}).Draw(rt, "advertisers")
	for i := range advertisers {
		a := &catalog.Advertiser{ID: fmt.Sprint("a", i), Publisher: "yuki", Name: "A", DailyBudget: 1_000_000_000, TimeZone: "UTC"}
		if once(rt, 10, "suspended") {
			a.Status = catalog.Suspended
		}
		d.Advertisers = append(d.Advertisers, a)
	}
	campaigns := rapid.SampledFrom([]int{1, 4, 6, 8, 10}).Draw(rt, "campaigns")
	for i := range campaigns {
		d.Campaigns = append(d.Campaigns, drawCampaign(rt, fmt.Sprint("c", i), fmt.Sprint("a", i%advertisers), price))
	}
	for i := range rapid.IntRange(1, 14).Draw(rt, "creatives") + campaigns/2 {
		c := &catalog.Creative{ID: fmt.Sprintf("m%02d", i), Campaign: fmt.Sprint("c", i%campaigns)}
		c.Pages = []catalog.Page{{Headline: "first"}}
		if once(rt, 10, "paused") {
			c.Status = catalog.Paused
		}
		if once(rt, 5, "shaped") {
			c.Shapes = []catalog.Shape{{W: 300, H: 250}}
		}
		d.Creatives = append(d.Creatives, c)
		switch {
		case once(rt, 10, "waits"):
		case once(rt, 10, "rejected"):
			d.Approvals = append(d.Approvals, catalog.DocumentApproval{Site: site, Creative: c.ID, State: catalog.Rejected})
		default:
			d.Approvals = append(d.Approvals, catalog.DocumentApproval{Site: site, Creative: c.ID, State: catalog.Approved})
		}
	}
	return d
}

func drawCampaign(rt *rapid.T, id, advertiser string, price func(string) deckle.CPM) *catalog.Campaign {
	c := &catalog.Campaign{
		ID: id, Advertiser: advertiser, ProductCategory: tourism, MaxCPM: max(price("bid"), 1_000),
		DailyBudget: 1_000_000_000, LandingURL: "https://" + advertiser + ".example/",
		Categories: rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"1", "11", "111", "2"}), 1, 3, rapid.ID).Draw(rt, "wants"),
	}
	switch {
	case once(rt, 12, "paused"):
		c.Status = catalog.Paused
	case once(rt, 12, "not begun"):
		c.Start = "2026-12-24"
	case once(rt, 12, "ended"):
		c.End = "2026-11-30"
	case once(rt, 12, "for another site"):
		c.Sites = []string{"other"}
	case once(rt, 2, "capped"):
		c.FrequencyCap = &catalog.FrequencyCap{
			Count: rapid.IntRange(1, 4).Draw(rt, "cap"),
			Per:   rapid.SampledFrom([]catalog.Period{catalog.PerHour, catalog.PerDay, catalog.PerWeek}).Draw(rt, "per"),
		}
	}
	return c
}

// drawEdits changes some creatives after they were decided on: what was approved is
// shown still.
func drawEdits(rt *rapid.T, d *catalog.Document) *catalog.Document {
	edits := &catalog.Document{}
	for _, c := range d.Creatives {
		if !once(rt, 5, "edited") {
			continue
		}
		e := *c
		e.Pages = []catalog.Page{{Headline: "second"}}
		e.LandingURL = "https://elsewhere.example/" // no trust anchor leads there
		edits.Creatives = append(edits.Creatives, &e)
		if once(rt, 4, "rejected") {
			edits.Approvals = append(edits.Approvals, catalog.DocumentApproval{Site: site, Creative: c.ID, State: catalog.Rejected})
		}
	}
	return edits
}

func drawBatch(rt *rapid.T, d *catalog.Document) *serve.Batch {
	b := &serve.Batch{Pub: site, URL: pageURL, Seen: map[string]serve.Seen{}}
	var ids []int
	for i := range len(d.Creatives) + 1 { // the last is not there
		ids = append(ids, i)
	}
	sizes := [][2]int{{300, 250}, {300, 600}, {970, 250}}
	creative := func() string {
		if once(rt, 3, "the same") {
			return "m00" // bookmarks of one ad on several slots
		}
		return fmt.Sprintf("m%02d", rapid.SampledFrom(ids).Draw(rt, "creative"))
	}
	for i := range rapid.IntRange(1, 6).Draw(rt, "imps") {
		size := rapid.SampledFrom(sizes).Draw(rt, "size")
		b.Imps = append(b.Imps, serve.Imp{ID: fmt.Sprint("s", i), W: size[0], H: size[1]})
	}
	for i := range 8 { // s6 and s7 are never in the batch
		if once(rt, 5, "pinned") {
			b.Pins = append(b.Pins, serve.Pin{Slot: fmt.Sprint("s", i), Creative: creative()})
		}
	}
	for range rapid.SampledFrom([]int{0, 4, 8}).Draw(rt, "seen") {
		n := rapid.Uint32Range(1, 3)
		b.Seen[creative()] = serve.Seen{Hour: n.Draw(rt, "h"), Day: n.Draw(rt, "d"), Week: n.Draw(rt, "w")}
	}
	for range rapid.IntRange(0, 2).Draw(rt, "recent") {
		b.Recent = append(b.Recent, d.Campaigns[rapid.IntRange(0, len(d.Campaigns)-1).Draw(rt, "campaign")].ID)
	}
	return b
}

// Whatever the catalog, the page and the batch: a judge who knows the contract, and
// neither the steps nor their order, finds nothing wrong.
func TestDecisions(t *testing.T) {
	reached := map[string]int{}
	used := serve.NewPipeline(serve.Market{}) // by one batch after another, of all worlds
	check := func(rt *rapid.T) {
		r := drawTrial(t, rt)
		first := fmt.Sprintf("%+v", flat(r.run(used)))
		if again := fmt.Sprintf("%+v", flat(r.run(used))); again != first {
			rt.Fatalf("decided\n%s\nthen\n%s", first, again)
		}
		p := serve.NewPipeline(serve.Market{})
		r.begin(p)
		d, explained := p.Explain(r.question)
		if fresh := fmt.Sprintf("%+v", flat(d)); fresh != first {
			rt.Fatalf("decided\n%s\nexplained\n%s", first, fresh)
		}
		r.name(rt, explained)
		for _, o := range d.Outcomes {
			reached[o.String()]++
		}
		r.judge(rt, d)
	}
	rapid.Check(t, check)
	if os.Getenv("DECKLE_SLOW") == "" {
		return
	}
	for range 29 {
		rapid.Check(t, check)
	}
	t.Logf("slots: %v", reached)
	for _, outcome := range []string{
		"filled", "honored", "warmup", "stale", "no_candidates", "capped", "paced", "excluded", "used", "below_floor", "budget",
	} {
		if reached[outcome] == 0 && !t.Failed() {
			t.Errorf("no slot was ever %s", outcome)
		}
	}
}

// flat is a decision that can be printed and compared.
func flat(d *serve.Decision) (out []any) {
	for _, o := range d.Outcomes {
		w := ""
		if o.Winner != nil {
			w = fmt.Sprint(o.Winner.Creative.ID, " ", o.Winner.Version)
		}
		out = append(out, fmt.Sprint(o.Imp.ID, " ", o.String(), " ", w, " ", o.PinRemoved, o.Category, o.Price, o.RequestID, o.Leases))
	}
	return append(out, d.StalePins, d.Fresh)
}

// A rival is a candidate as the judge sees it.
type rival struct {
	*catalog.Candidate
	affinity  float64
	category  string
	meanScore float64
	mean      float64
	fate      string // of the page: capped, paced, excluded
}

// judge finds out by itself, from the catalog and the batch, what may be decided.
func (r *trial) judge(t *rapid.T, d *serve.Decision) {
	q := r.question
	if len(d.Outcomes) != len(q.Imps) {
		t.Fatalf("%d outcomes for %d imps", len(d.Outcomes), len(q.Imps))
	}
	for i := range d.Outcomes {
		if d.Outcomes[i].Imp != &q.Imps[i] {
			t.Fatalf("outcome %d is not of imp %d", i, i)
		}
		r.judgeWinner(t, &d.Outcomes[i])
	}
	r.judgeStalePins(t, d)
	candidates := r.candidates()
	r.judgePace(t, candidates)
	r.judgePins(t, d, candidates)
	r.judgeAuctions(t, d, candidates)
}

// judgeWinner: nothing unapproved, or that does not run, is shown.
func (r *trial) judgeWinner(t *rapid.T, o *serve.Outcome) {
	if o.Winner == nil {
		if o.Honored || o.Price != 0 || o.Leases != nil || o.RequestID != "" {
			t.Fatalf("empty slot has %+v", o)
		}
		return
	}
	s, w := r.question.Catalog, o.Winner
	creative, _ := s.Creative(w.Creative.ID)
	campaign, _ := s.Campaign(creative.Campaign)
	advertiser, _ := s.Advertiser(campaign.Advertiser)
	approvals := s.Approvals(site, creative.ID)
	start, end := s.Schedule(campaign)
	switch {
	case w.Version == 0 || approvals.State(w.Version) != catalog.Approved || approvals.Serving() != w.Version:
		t.Fatalf("%s version %d is not approved", creative.ID, w.Version)
	case creative.Status != catalog.Active || campaign.Status != catalog.Active || advertiser.Status != catalog.Active:
		t.Fatalf("%s does not run", creative.ID)
	case !start.IsZero() && start.After(now) || !end.IsZero() && !end.After(now):
		t.Fatalf("%s is out of its schedule", creative.ID)
	case len(campaign.Sites) > 0 && !slices.Contains(campaign.Sites, site):
		t.Fatalf("%s is for other sites", creative.ID)
	case len(w.Content.Shapes) > 0 && !slices.Contains(w.Content.Shapes, catalog.Shape{W: o.Imp.W, H: o.Imp.H}):
		t.Fatalf("%s does not fit %+v", creative.ID, *o.Imp)
	}
	removed, _ := s.Removed(site, creative.ID, now)
	if removed {
		t.Fatalf("%s has been taken off", creative.ID)
	}
}

func (r *trial) pinOn(slot string) string {
	for _, p := range r.question.Pins {
		if p.Slot == slot {
			return p.Creative
		}
	}
	return ""
}

// offPage are the bookmarks on slots that the batch does not ask for.
func (r *trial) offPage() (out []string) {
	for _, p := range r.question.Pins {
		if !slices.ContainsFunc(r.question.Imps, func(i serve.Imp) bool { return i.ID == p.Slot }) {
			out = append(out, p.Creative)
		}
	}
	return out
}

func (r *trial) judgeStalePins(t *rapid.T, d *serve.Decision) {
	var want []string
	for _, creative := range r.offPage() {
		if removed, _ := r.question.Catalog.Removed(site, creative, now); removed && !slices.Contains(want, creative) {
			want = append(want, creative)
		}
	}
	if !slices.Equal(d.StalePins, want) && len(want)+len(d.StalePins) > 0 {
		t.Fatalf("stale pins %v, want %v", d.StalePins, want)
	}
}

// judgePace: the pace is asked once about each campaign that may be shown, and about
// no other.
func (r *trial) judgePace(t *rapid.T, candidates map[string]*rival) {
	want := map[string]bool{}
	for _, c := range candidates {
		if c.fate != "capped" {
			want[c.Campaign.ID] = true
		}
	}
	if got := slices.Sorted(slices.Values(r.asked)); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
		t.Fatalf("the pace was asked about %v, want %v", got, want)
	}
}

func (r *trial) fresh() bool {
	q := r.question
	return q.Known && now.Sub(q.Page.At) < time.Duration(q.Site.FreshnessHours)*time.Hour
}

// candidates are the lookup pool, but for shapes.
func (r *trial) candidates() map[string]*rival {
	out := map[string]*rival{}
	q := r.question
	if !r.fresh() {
		return out
	}
	for _, category := range q.Page.Categories {
		for c, factor := range q.Catalog.Lookup(site, category.ID).All() {
			if !c.InSchedule(now) {
				continue
			}
			affinity := category.Confidence * factor
			if old := out[c.Creative.ID]; old != nil && old.affinity >= affinity {
				continue
			}
			mean := quality.MeanEngagement(r.stats[c.Creative.ID], affinity)
			out[c.Creative.ID] = &rival{
				Candidate: c, affinity: affinity, category: category.ID, mean: mean,
				meanScore: quality.Score(mean, c.Campaign.MaxCPM, q.Site.BidWeight),
			}
		}
	}
	for _, c := range out {
		c.fate = r.fateOnPage(c)
	}
	return out
}

func (r *trial) fateOnPage(c *rival) string {
	if limit := c.Campaign.FrequencyCap; limit != nil {
		sum := 0
		for creative, n := range r.question.Seen {
			if e, ok := r.question.Catalog.Creative(creative); ok && e.Campaign == c.Campaign.ID {
				sum += int(map[catalog.Period]uint32{catalog.PerHour: n.Hour, catalog.PerDay: n.Day, catalog.PerWeek: n.Week}[limit.Per])
			}
		}
		if sum >= limit.Count {
			return "capped"
		}
	}
	if r.held[c.Campaign.ID] {
		return "paced"
	}
	for _, creative := range r.offPage() {
		if removed, _ := r.question.Catalog.Removed(site, creative, now); removed {
			continue
		}
		if e, ok := r.question.Catalog.Creative(creative); ok {
			campaign, _ := r.question.Catalog.Campaign(e.Campaign)
			if creative == c.Creative.ID || e.Campaign == c.Campaign.ID || campaign.Advertiser == c.Advertiser.ID {
				return "excluded"
			}
		}
	}
	return ""
}

// inSlotOrder are the places of the imps, in slot order.
func (r *trial) inSlotOrder() []int {
	order := make([]int, len(r.question.Imps))
	for i := range order {
		order[i] = i
	}
	class := func(i int) int {
		imp := r.question.Imps[i]
		n := -imp.W * imp.H
		if r.pinOn(imp.ID) != "" {
			n -= 1 << 40
		}
		return n
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(class(a), class(b)) })
	return order
}

// judgePins: what is in the pool is honoured, once and free; and creative_removed is
// said with proof, and only then.
func (r *trial) judgePins(t *rapid.T, d *serve.Decision, candidates map[string]*rival) {
	honored := map[string]bool{}
	for _, i := range r.inSlotOrder() {
		o := &d.Outcomes[i]
		pin := r.pinOn(o.Imp.ID)
		c := candidates[pin]
		inPool := c != nil && c.Fits(deckle.Size{W: o.Imp.W, H: o.Imp.H})
		removed, _ := r.question.Catalog.Removed(site, pin, now)
		if want := inPool && !honored[pin]; o.Honored != want {
			t.Fatalf("%s: honored %v, want %v", o.Imp.ID, o.Honored, want)
		}
		if want := pin != "" && !inPool && removed; o.PinRemoved != want {
			t.Fatalf("%s: creative_removed %v, want %v", o.Imp.ID, o.PinRemoved, want)
		}
		if o.Honored {
			honored[pin] = true
			if o.Winner.Creative.ID != pin || o.Price != 0 || o.Leases != nil || len(o.RequestID) != 16 || o.Category != c.category {
				t.Fatalf("%s: honored with %+v", o.Imp.ID, o)
			}
		}
	}
}

// name says for each attempt for which creative it was, as the explanation has it: in
// each slot the best by sampled score comes first, recent campaigns come last, and
// nobody comes twice.
func (r *trial) name(t *rapid.T, e *serve.Explanation) {
	n := 0
	for _, s := range e.Slots {
		tried := map[string]bool{}
		last := math.Inf(1)
		recentBefore := false
		for _, c := range s.Contenders {
			if c.Reservation == "" {
				continue
			}
			creative, _ := r.question.Catalog.Creative(c.Creative)
			recent := slices.Contains(r.question.Recent, creative.Campaign)
			if recent != recentBefore {
				last = math.Inf(1)
			}
			if n == len(r.attempts) || r.attempts[n].campaign != creative.Campaign || tried[c.Creative] || c.Score > last || recentBefore && !recent {
				t.Fatalf("%s: attempt %d of %+v was not for %+v", s.ID, n, r.attempts, c)
			}
			r.attempts[n].creative, tried[c.Creative], last, recentBefore = c.Creative, true, c.Score, recent
			n++
		}
	}
	if n != len(r.attempts) {
		t.Fatalf("%d attempts are explained, of %+v", n, r.attempts)
	}
}

// judgeAuctions goes through the slots again, in their order, with the attempts to
// reserve as they were made.
func (r *trial) judgeAuctions(t *rapid.T, d *serve.Decision, candidates map[string]*rival) {
	used := map[string]bool{} // creatives, campaigns, advertisers
	use := func(w *catalog.Candidate) {
		used["e "+w.Creative.ID], used["c "+w.Campaign.ID], used["a "+w.Advertiser.ID] = true, true, true
	}
	for i := range d.Outcomes {
		if d.Outcomes[i].Honored {
			use(d.Outcomes[i].Winner)
		}
	}
	refused := map[string]bool{} // creatives, in this batch
	attempts := r.attempts
	for _, i := range r.inSlotOrder() {
		o := &d.Outcomes[i]
		if o.Honored {
			continue
		}
		if status := r.question.Site.Status; status == catalog.Warmup || !r.fresh() {
			if want := map[bool]string{true: "warmup", false: "stale"}[status == catalog.Warmup]; o.String() != want {
				t.Fatalf("%s is %v, want %s", o.Imp.ID, o, want)
			}
			continue
		}
		open, furthest := r.open(o.Imp, candidates, used)
		var mine []attempt
		mine, attempts = attemptsOf(o, attempts, len(open))
		for _, a := range mine {
			if open[a.creative] == nil {
				t.Fatalf("%s: %s may not have it", o.Imp.ID, a.creative)
			}
			if !a.ok {
				refused[a.creative] = true
			}
		}
		if o.Winner != nil {
			r.judgePrice(t, o, open, refused, mine)
			use(o.Winner)
			continue
		}
		if len(open) > 0 {
			furthest = "budget"
		}
		if o.String() != furthest || len(mine) != len(open) {
			t.Fatalf("%s is %v after %d attempts of %d, want %s", o.Imp.ID, o, len(mine), len(open), furthest)
		}
	}
	if len(attempts) > 0 {
		t.Fatalf("%d attempts to reserve are nobody's", len(attempts))
	}
}

// open are those who may have a slot, and the furthest that anybody came who may not.
func (r *trial) open(imp *serve.Imp, candidates map[string]*rival, used map[string]bool) (open map[string]*rival, furthest string) {
	open, furthest = map[string]*rival{}, "no_candidates"
	ranks := []string{"no_candidates", "capped", "paced", "excluded", "used", "below_floor"}
	for id, c := range candidates {
		fate := c.fate
		switch {
		case !c.Fits(deckle.Size{W: imp.W, H: imp.H}):
			continue
		case fate != "":
		case used["e "+id] || used["c "+c.Campaign.ID] || used["a "+c.Advertiser.ID]:
			fate = "used"
		case c.Campaign.MaxCPM < r.floor(imp.ID, c.category):
			fate = "below_floor"
		default:
			open[id] = c
			continue
		}
		if slices.Index(ranks, fate) > slices.Index(ranks, furthest) {
			furthest = fate
		}
	}
	return open, furthest
}

func (r *trial) floor(slot, category string) deckle.CPM {
	floors := r.question.Site.Floors
	floor := max(floors.Slots[slot], r.templates[slot])
	for id := category; floor == 0 && id != ""; id = r.taxonomy.Parent(id) {
		floor = floors.Categories[id]
	}
	if floor == 0 {
		floor = floors.Site
	}
	return (floor + 999) / 1000 * 1000
}

// attemptsOf are the attempts for a slot: up to the one that was granted, or as many
// as there are candidates.
func attemptsOf(o *serve.Outcome, all []attempt, open int) (mine, rest []attempt) {
	n := min(open, len(all))
	if o.Winner != nil {
		n = 1 + slices.IndexFunc(all, func(a attempt) bool { return a.ok && a.request == o.RequestID })
	}
	return all[:n], all[n:]
}

func (r *trial) judgePrice(t *rapid.T, o *serve.Outcome, open map[string]*rival, refused map[string]bool, mine []attempt) {
	if len(mine) == 0 {
		t.Fatalf("%s: nothing was reserved for %s", o.Imp.ID, o.RequestID)
	}
	w := o.Winner
	last := mine[len(mine)-1]
	if want := (attempt{w.Campaign.ID, w.Advertiser.ID, o.Price.Imp(), o.RequestID, true, w.Creative.ID}); last != want {
		t.Fatalf("%s: reserved was %+v, want %+v", o.Imp.ID, last, want)
	}
	if want := []string{"lease-" + w.Campaign.ID, "lease-" + w.Advertiser.ID}; !slices.Equal(o.Leases, want) {
		t.Fatalf("%s is paid by %v", o.Imp.ID, o.Leases)
	}
	winner := open[w.Creative.ID]
	runnerUp := 0.0
	for id, c := range open {
		if c.category == winner.category && c.Advertiser.ID != winner.Advertiser.ID && !refused[id] {
			runnerUp = max(runnerUp, c.meanScore)
		}
	}
	floor := r.floor(o.Imp.ID, winner.category)
	want := quality.Clear(runnerUp, winner.mean, r.question.Site.BidWeight, floor, w.Campaign.MaxCPM)
	if o.Price != want || o.Price < floor || o.Price > w.Campaign.MaxCPM || o.Price%1000 != 0 || o.Category != winner.category {
		t.Fatalf("%s pays %v in category %s, want %v in %s; floor %v, bid %v", w.Creative.ID, o.Price, o.Category, want, winner.category, floor, w.Campaign.MaxCPM)
	}
}
