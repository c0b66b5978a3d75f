package budget

import (
	"math"
	"sync/atomic"
	"time"

	"deckle"
	"deckle/internal/catalog"
)

// An index is what Reserve reads: from which lines each campaign pays, today and
// tomorrow. It is replaced as a whole and never changed.
type index struct {
	of        *catalog.Snapshot
	until     time.Time // when the time alone asks for another one
	campaigns map[string]*account
}

// An account is what a campaign pays from.
type account struct {
	advertiser string
	purses     [2]purse // today's and tomorrow's
}

// A purse is the lines that a campaign pays from on a day.
type purse struct {
	from, to int64 // Unix seconds
	lines    []*line

	last atomic.Pointer[payers] // who paid last: mostly those who pay next
}

// payers are the ids of the leases that pay for something together.
type payers struct {
	leases [maxLines]*lease
	ids    []string
}

// purse is where a campaign pays from at a moment; nil for one that is not known.
func (x *index) purse(campaign, advertiser string, now time.Time) *purse {
	a := x.campaigns[campaign]
	if a == nil || a.advertiser != advertiser {
		return nil
	}
	second := now.Unix()
	for i := range a.purses {
		if p := &a.purses[i]; p.from <= second && second < p.to {
			return p
		}
	}
	return nil
}

// ids are those of leases, made once for as long as they stay the same.
func (p *purse) ids(leases *[maxLines]*lease) []string {
	if last := p.last.Load(); last != nil && last.leases == *leases {
		return last.ids
	}
	next := &payers{leases: *leases, ids: make([]string, 0, maxLines)}
	for _, l := range leases {
		if l != nil {
			next.ids = append(next.ids, l.id)
		}
	}
	next.ids = next.ids[:len(next.ids):len(next.ids)]
	p.last.Store(next)
	return next.ids
}

// terms are what the catalog says of a line.
type terms struct {
	budget   deckle.Money
	highest  deckle.Money // price of an impression that one of its campaigns may pay
	from, to time.Time    // its day; zero for a total, which has no end
}

// ahead is how long before its day a line may get its first lease, and a campaign
// before it begins: nobody waits for the store at midnight.
const ahead = 10 * time.Minute

// reindex makes the index anew where the catalog has changed, or the time asks for it.
func (b *Book) reindex(now time.Time) {
	last, snapshot := b.index.Load(), b.config.Snapshot()
	if !snapshot.Loaded() || last.of == snapshot && now.Before(last.until) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	x := indexer{
		book: b, now: now, snapshot: snapshot,
		index:  &index{of: snapshot, until: now.Add(longestDay), campaigns: make(map[string]*account, len(last.campaigns))},
		zones:  map[string]*calendar{},
		wanted: make(map[*line]terms, len(b.lines)),
	}
	for _, r := range snapshot.List(catalog.KindCampaign, "", math.MaxInt) {
		x.campaign(r.Entity.(*catalog.Campaign))
	}
	for l := range x.wanted {
		l.terms = new(x.wanted[l])
	}
	for _, l := range b.lines {
		if _, ok := x.wanted[l]; !ok {
			l.terms = nil
		}
	}
	b.index.Store(x.index)
}

// An indexer makes an index.
type indexer struct {
	book     *Book
	now      time.Time
	snapshot *catalog.Snapshot
	index    *index
	zones    map[string]*calendar
	wanted   map[*line]terms
}

// A calendar is today and tomorrow in a time zone.
type calendar struct{ days [2]Day }

// again asks for another index at a time to come.
func (x *indexer) again(at time.Time) {
	if at.After(x.now) && at.Before(x.index.until) {
		x.index.until = at
	}
}

func (x *indexer) calendar(zone string) *calendar {
	c := x.zones[zone]
	if c == nil {
		where, err := time.LoadLocation(zone)
		if err != nil {
			where = time.UTC // none that the catalog would have taken
		}
		today := DayOf(x.now, where)
		c = &calendar{[2]Day{today, today.After(where)}}
		x.zones[zone] = c
		x.again(today.To.Add(-ahead))
		x.again(today.To)
	}
	return c
}

// campaign adds the account of a campaign that may serve now or soon.
func (x *indexer) campaign(c *catalog.Campaign) {
	advertiser, ok := x.snapshot.Advertiser(c.Advertiser)
	if !ok || !active(c.Status) || !active(advertiser.Status) {
		return
	}
	start, end := x.snapshot.Schedule(c)
	x.again(start.Add(-ahead))
	x.again(end)
	if x.now.Before(start.Add(-ahead)) || !end.IsZero() && !x.now.Before(end) {
		return
	}
	var total *line
	if c.TotalBudget > 0 {
		total = x.line(TotalLine(c.ID), CampaignTotal, terms{budget: c.TotalBudget, highest: c.MaxCPM.Imp()})
	}
	a := &account{advertiser: advertiser.ID}
	for i, day := range x.calendar(advertiser.TimeZone).days {
		if i > 0 && (x.now.Before(day.From.Add(-ahead)) || !end.IsZero() && !day.From.Before(end)) {
			break
		}
		t := terms{budget: c.DailyBudget, highest: c.MaxCPM.Imp(), from: day.From, to: day.To}
		p := &a.purses[i]
		p.from, p.to = day.From.Unix(), day.To.Unix()
		if total != nil {
			p.lines = append(p.lines, total)
		}
		p.lines = append(p.lines, x.line(DayLine(c.ID, day.Date), CampaignDay, t))
		t.budget = advertiser.DailyBudget
		p.lines = append(p.lines, x.line(AdvertiserLine(advertiser.ID, day.Date), AdvertiserDay, t))
	}
	x.index.campaigns[c.ID] = a
}

// line notes that a line is wanted. The highest price is that of all who want it.
func (x *indexer) line(name string, k Kind, t terms) *line {
	l := x.book.line(name, k)
	t.highest = max(t.highest, x.wanted[l].highest)
	x.wanted[l] = t
	return l
}

func active(s catalog.Status) bool { return s == catalog.Active || s == "" }
