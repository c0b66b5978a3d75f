// Package journaltest makes plausible events for tests and benchmarks: a made-up
// day of readers, advertisers and budgets, the same for the same seed.
package journaltest

import (
	"cmp"
	"container/heap"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"deckle"
	"deckle/internal/journal"
)

// Config says how large the made-up world is. The zero value is ready to use.
type Config struct {
	Start time.Time // of the journal; defaults to 2026-06-01T06:00:00Z
	Rate  float64   // served slots per second of journal time; defaults to 50

	Sites       int // defaults to 3
	Advertisers int // defaults to 4
	Campaigns   int // of each advertiser; defaults to 3
	Creatives   int // of each campaign; defaults to 2

	// Lease is how much of a budget a node takes at a time. Defaults to 2 units of the
	// currency, some hundred impressions.
	Lease deckle.Money
}

// How often something happens, in the world of a [Generator].
const (
	dogeared  = 0.05  // of the served slots: re-encounters, which are free
	suspect   = 0.03  // of the served slots
	late      = 0.002 // of the impressions: told when their leases are sealed
	unheld    = 0.005 // of the impressions: not reserved, so that they may exhaust a lease
	retold    = 0.02  // of all events of readers: told again
	viewed    = 0.6   // of the impressions
	clicked   = 0.04  // of the impressions
	followed  = 0.3   // of the clicks: a CTA
	folded    = 0.2   // of the clicks
	unfolded  = 0.25  // of the folds
	anonymous = 0.5   // of the unfolds: without a token
)

// A Generator makes events that are valid and in an order that a journal may have:
// by the time at which nodes took them, whose clocks differ by some milliseconds.
// Events are told twice, late, by bots, and after their leases were sealed; what
// must hold for a journal holds (a lease is taken before it pays, and sealed once).
//
// It is not for concurrent use.
type Generator struct {
	config Config
	random *rand.Rand
	now    time.Time // of the slot that was served last
	coming queue     // events that are going to be taken
	leases map[string]*lease
	ads    []journal.Event // what may be shown: the part of an event that says so
	taken  int             // leases so far
	made   int             // events so far
}

// A lease is what a made-up node has left of one.
type lease struct {
	id   string
	left deckle.Money
}

// New makes a generator. The same seed and config make the same events.
func New(seed uint64, c Config) *Generator {
	if c.Start.IsZero() {
		c.Start = time.Date(2026, 6, 1, 6, 0, 0, 0, time.UTC)
	}
	c.Rate = cmp.Or(c.Rate, 50)
	c.Sites = cmp.Or(c.Sites, 3)
	c.Advertisers = cmp.Or(c.Advertisers, 4)
	c.Campaigns = cmp.Or(c.Campaigns, 3)
	c.Creatives = cmp.Or(c.Creatives, 2)
	c.Lease = cmp.Or(c.Lease, 2_000_000)
	return &Generator{
		config: c,
		random: rand.New(rand.NewPCG(seed, 0)),
		now:    c.Start,
		leases: make(map[string]*lease),
		ads:    ads(c),
	}
}

// ads are the creatives of all campaigns.
func ads(c Config) (ads []journal.Event) {
	for a := range c.Advertisers {
		for p := range c.Campaigns {
			for m := range c.Creatives {
				ads = append(ads, journal.Event{
					Advertiser: fmt.Sprintf("adv-%d", a+1),
					Campaign:   fmt.Sprintf("camp-%d-%d", a+1, p+1),
					Creative:   fmt.Sprintf("mag-%d-%d-%d", a+1, p+1, m+1),
					Version:    uint32(1 + m%3),
				})
			}
		}
	}
	return ads
}

// Take makes the next n events.
func (g *Generator) Take(n int) []journal.Event {
	events := make([]journal.Event, n)
	for i := range events {
		events[i] = g.Next()
	}
	return events
}

// Next makes the next event.
func (g *Generator) Next() journal.Event {
	for len(g.coming) == 0 || g.coming[0].at.After(g.now) {
		g.now = g.now.Add(g.about(time.Duration(float64(time.Second) / g.config.Rate)))
		g.serve()
	}
	return heap.Pop(&g.coming).(told).Event
}

// serve fills a slot, and decides what becomes of it.
func (g *Generator) serve() {
	e := g.slot()
	delay := g.about(2 * time.Second)
	switch {
	case g.happens(dogeared):
		e.Dogeared = true
	default:
		e.Price = deckle.CPM(2_000_000 + 1_000*g.random.Int64N(18_000)).Imp()
		e.Leases = g.pay(&e)
		if g.happens(late) {
			delay += 12 * time.Minute
		}
	}
	if g.happens(suspect) {
		e.Suspect = journal.SuspectBot << g.random.IntN(3)
	}
	e.Kind = journal.Impression
	g.tell(e, delay)

	e.Price, e.Leases = 0, nil
	if g.happens(viewed) {
		e.Kind = journal.View
		g.tell(e, delay+time.Second+g.about(time.Second))
	}
	if g.happens(clicked) {
		g.click(e, delay+g.about(8*time.Second))
	}
}

func (g *Generator) click(e journal.Event, delay time.Duration) {
	e.Kind = journal.Click
	g.tell(e, delay)
	if g.happens(followed) {
		e.Kind = journal.CTA
		g.tell(e, delay+g.about(20*time.Second))
	}
	if !g.happens(folded) {
		return
	}
	delay += g.about(15 * time.Second)
	e.Kind, e.RequestID, e.Page = journal.Fold, g.requestID(), uint16(g.random.IntN(6))
	g.tell(e, delay)
	if !g.happens(unfolded) {
		return
	}
	e.Kind, e.Page, e.Verified = journal.Unfold, 0, true
	if g.happens(anonymous) {
		e.RequestID, e.Verified = g.requestID(), false
		e.Advertiser, e.Campaign, e.Version, e.URL, e.Category = "", "", 0, "", ""
	}
	g.tell(e, delay+g.about(5*time.Minute))
}

// slot is a slot of a page, and what is shown in it.
func (g *Generator) slot() journal.Event {
	site := 1 + g.random.IntN(g.config.Sites)
	e := g.ads[g.random.IntN(len(g.ads))]
	// Few pages are read by many: the square of an even distribution.
	page := int(200 * g.random.Float64() * g.random.Float64())
	section := [...]string{"travel", "food", "garden", "books"}[page%4]
	e.Site = "site-" + strconv.Itoa(site)
	e.Slot = [...]string{"sidebar-1", "in-article-1", "footer-1"}[g.random.IntN(3)]
	e.URL = "https://" + e.Site + ".example/" + section + "/an-article-of-note-" + strconv.Itoa(page)
	e.Category = [...]string{"653", "210", "275", "42"}[page%4]
	e.RequestID = g.requestID()
	return e
}

// pay reserves an impression's price from a lease of each of its lines, and takes
// leases where there is none with enough left.
func (g *Generator) pay(e *journal.Event) []string {
	day := g.now.UTC().Format(time.DateOnly)
	reserve := !g.happens(unheld)
	var ids []string
	for _, line := range [...]string{"campaign/" + e.Campaign + "/" + day, "advertiser/" + e.Advertiser + "/" + day} {
		l := g.leases[line]
		if l == nil || reserve && l.left < e.Price {
			l = g.take(line, l)
		}
		if reserve {
			l.left -= e.Price
		}
		ids = append(ids, l.id)
	}
	return ids
}

// take takes a lease of a line. The one before is sealed when its last token can no
// longer be redeemed.
func (g *Generator) take(line string, before *lease) *lease {
	if before != nil {
		g.add(journal.Event{Kind: journal.Seal, Lease: before.id, Line: line}, 9*time.Minute)
	}
	g.taken++
	l := &lease{id: fmt.Sprintf("n1-%06x-%d", g.random.Uint32N(1<<24), g.taken), left: g.config.Lease}
	g.leases[line] = l
	g.add(journal.Event{Kind: journal.Lease, Lease: l.id, Line: line, Amount: l.left}, 0)
	return l
}

// tell has an event of a reader taken after delay, and perhaps again.
func (g *Generator) tell(e journal.Event, delay time.Duration) {
	g.add(e, delay)
	if g.happens(retold) {
		g.add(e, delay+g.about(30*time.Second))
	}
}

// add has an event taken after delay, by a node whose clock is right to some
// milliseconds.
func (g *Generator) add(e journal.Event, delay time.Duration) {
	at := g.now.Add(delay)
	e.At = at.Add(time.Duration(g.random.IntN(40)-20) * time.Millisecond).Truncate(time.Millisecond).UTC()
	g.made++
	heap.Push(&g.coming, told{at: at, order: g.made, Event: e})
}

func (g *Generator) happens(probability float64) bool { return g.random.Float64() < probability }

// about is a random duration with a mean.
func (g *Generator) about(mean time.Duration) time.Duration {
	return time.Duration(g.random.ExpFloat64() * float64(mean))
}

func (g *Generator) requestID() string {
	var id [8]byte
	binary.BigEndian.PutUint64(id[:], g.random.Uint64())
	return hex.EncodeToString(id[:])
}
