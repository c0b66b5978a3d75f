package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // a zone of an advertiser must not depend on the machine

	"golang.org/x/net/publicsuffix"

	"deckle"
	"deckle/internal/template"
)

// MaxBudget bounds every budget: a billion units of a currency. What is above is a
// typing error.
const MaxBudget deckle.Money = 1_000_000_000 * 1e6

// Limits of entities; those of creatives stand in creative.schema.json as well.
const (
	maxName            = 120
	maxNote            = 300
	maxURL             = 2048
	maxWanted          = 50     // categories of a campaign
	maxAllowed         = 1000   // sites of a campaign
	maxBlocked         = 10_000 // domains, categories
	maxFloors          = 1000
	maxRules           = 200
	maxRuleCategories  = 3
	defaultFreshness   = 48
	maxFreshness       = 30 * 24
	defaultBidWeight   = 0.5
	minBidWeight       = 0.1
	maxFrequencyCount  = 1000
	microsPerStep      = 1000 // of a CPM, so that one impression costs whole micros
	maxListedInRemedy  = 10
	maxCharactersShown = 60
)

// A world is what an entity is judged against.
type world struct {
	// find gives an entity, nil where there has never been one, and whether it is
	// living: not a tombstone.
	find func(k Kind, id string) (e Entity, living bool)
	// old is what the entity replaces, nil for one that is new. Where it is a tombstone,
	// restores is set: what must not change does not change by way of a deletion.
	old      Entity
	restores bool
	// owner is the advertiser of a creative, "" where it has never been in a campaign.
	owner string
	// hasChildren reports whether a publisher has sites or advertisers.
	hasChildren func(publisher string) bool

	graves
	*Config
}

// graves are what a document says of tombstones; the zero value is that of whatever
// does not come with one.
type graves struct {
	buried     bool              // the entity itself is a tombstone
	tombstones map[string]Entity // by key: to which the document's entities may refer
}

// find gives what an entity refers to, nil where there is none. A tombstone counts
// where the reference to it was there before (kept), or the document has it: what is
// left of a deletion must not stand in the way of another change.
func find[E any](w world, k Kind, id string, kept bool) *E {
	e, living := w.find(k, id)
	if !living && !w.mayBeTombstone(k, id, kept) {
		return nil
	}
	found, _ := any(e).(*E)
	return found
}

func (w world) mayBeTombstone(k Kind, id string, kept bool) bool {
	switch {
	case w.buried:
		return true
	case k == KindPublisher: // nothing is below one that is gone
		return false
	}
	return kept && !w.restores || w.tombstones[key(k, id)] != nil
}

func (e *Publisher) normalize(world) {}

func (e *Publisher) validate(p *problems, w world) {
	p.id("id", e.ID)
	p.text("name", e.Name, 1, maxName)
	if !currencyPattern.MatchString(e.Currency) {
		p.add("currency", `three capital letters of ISO 4217, such as "USD"`, "%s is not a currency", quote(e.Currency))
	} else if old, ok := w.old.(*Publisher); ok && old.Currency != e.Currency && w.hasChildren(e.ID) {
		p.add("currency", "delete its sites and advertisers first: their money would change its meaning",
			"cannot change from %s", old.Currency)
	}
}

func (e *Site) normalize(world) {
	if e.Status == "" {
		e.Status = Active
	}
	if e.FreshnessHours == 0 {
		e.FreshnessHours = defaultFreshness
	}
	if e.BidWeight == 0 {
		e.BidWeight = defaultBidWeight
	}
	e.Floors.Site = roundUp(e.Floors.Site)
	e.Floors.Categories, e.Floors.Slots = maps.Clone(e.Floors.Categories), maps.Clone(e.Floors.Slots)
	for _, floors := range []map[string]deckle.CPM{e.Floors.Categories, e.Floors.Slots} {
		for id, floor := range floors {
			floors[id] = roundUp(floor)
		}
	}
	e.BlockedDomains = slices.Clone(e.BlockedDomains)
	for i, d := range e.BlockedDomains {
		e.BlockedDomains[i] = strings.ToLower(strings.TrimSuffix(d, "."))
	}
}

// roundUp is a floor as a multiple of 1,000 micros.
func roundUp(p deckle.CPM) deckle.CPM {
	if p <= 0 || p > deckle.MaxCPM {
		return p
	}
	return (p + microsPerStep - 1) / microsPerStep * microsPerStep
}

func (e *Site) validate(p *problems, w world) {
	p.id("id", e.ID)
	publisher := find[Publisher](w, KindPublisher, e.Publisher, false)
	p.reference("publisher", KindPublisher, e.Publisher, publisher != nil)
	if old, ok := w.old.(*Site); ok && old.Publisher != e.Publisher {
		p.add("publisher", "", "cannot change from %q: approvals are its publisher's", old.Publisher)
	}
	e.validateFacts(p, w, publisher)
	p.status(e.Status, Active, Warmup, Suspended)
	if e.FreshnessHours < 1 || e.FreshnessHours > maxFreshness {
		p.add("freshnessHours", "1 to 720 hours", "%d is out of range", e.FreshnessHours)
	}
	if !(e.BidWeight >= minBidWeight && e.BidWeight <= 1) {
		p.add("bidWeight", "0.1 to 1", "%v is out of range", e.BidWeight)
	}
	e.validateFloors(p, w)
	e.validateBlocks(p, w)
	e.validateRules(p, w)
}

// validateFacts compares the site with deckle.toml.
func (e *Site) validateFacts(p *problems, w world, publisher *Publisher) {
	if w.Sites == nil || w.buried {
		return
	}
	i := slices.IndexFunc(w.Sites, func(s SiteFacts) bool { return s.ID == e.ID })
	if i < 0 {
		var known []string
		for _, s := range w.Sites[:min(len(w.Sites), maxListedInRemedy)] {
			known = append(known, s.ID)
		}
		p.add("id", "there are "+strings.Join(known, ", "), "no [[site]] of deckle.toml has the id %s", quote(e.ID))
	} else if publisher != nil && w.Sites[i].Currency != publisher.Currency {
		p.add("publisher", "all sites of a publisher have its currency",
			"%q sells in %s, the site's currency in deckle.toml is %s", publisher.ID, publisher.Currency, w.Sites[i].Currency)
	}
}

func (e *Site) validateFloors(p *problems, w world) {
	p.floor("floors.site", e.Floors.Site)
	p.atMost("floors.categories", len(e.Floors.Categories), maxFloors)
	p.atMost("floors.slots", len(e.Floors.Slots), maxFloors)
	for _, id := range slices.Sorted(maps.Keys(e.Floors.Categories)) {
		p.category("floors.categories", w.Content, id)
		p.floor("floors.categories."+id, e.Floors.Categories[id])
	}
	for _, id := range slices.Sorted(maps.Keys(e.Floors.Slots)) {
		p.id("floors.slots", id)
		p.floor("floors.slots."+id, e.Floors.Slots[id])
	}
}

func (e *Site) validateBlocks(p *problems, w world) {
	p.atMost("blockedDomains", len(e.BlockedDomains), maxBlocked)
	p.atMost("blockedCategories", len(e.BlockedCategories), maxBlocked)
	p.distinct("blockedDomains", e.BlockedDomains)
	p.distinct("blockedCategories", e.BlockedCategories)
	for i, d := range e.BlockedDomains {
		field := fmt.Sprintf("blockedDomains[%d]", i)
		suffix, icann := publicsuffix.PublicSuffix(d)
		switch {
		case len(d) > 253 || !hostPattern.MatchString(d):
			p.add(field, `a host name, such as "example.com" (xn-- for others than ASCII)`, "%s is not a domain", quote(d))
		case suffix == d && icann:
			p.add(field, "name a domain below it", "%q is a whole public suffix", d)
		}
	}
	for i, id := range e.BlockedCategories {
		p.category(fmt.Sprintf("blockedCategories[%d]", i), w.Products, id)
	}
}

func (e *Site) validateRules(p *problems, w world) {
	p.atMost("categoryRules", len(e.CategoryRules), maxRules)
	for i, rule := range e.CategoryRules {
		field := fmt.Sprintf("categoryRules[%d]", i)
		if _, err := template.ParsePattern(rule.Path); err != nil {
			p.add(field+".path", "a pattern as in templates", "%v", err)
		}
		if n := len(rule.Categories); n < 1 || n > maxRuleCategories {
			p.add(field+".categories", "1 to 3 categories", "has %d", n)
		}
		p.distinct(field+".categories", rule.Categories)
		for j, id := range rule.Categories {
			p.category(fmt.Sprintf("%s.categories[%d]", field, j), w.Content, id)
		}
	}
}

func (e *Advertiser) normalize(w world) {
	if e.Status == "" {
		e.Status = Active
	}
	if publisher := find[Publisher](w, KindPublisher, e.Publisher, false); publisher != nil && e.Currency == "" {
		e.Currency = publisher.Currency
	}
}

func (e *Advertiser) validate(p *problems, w world) {
	p.id("id", e.ID)
	publisher := find[Publisher](w, KindPublisher, e.Publisher, false)
	p.reference("publisher", KindPublisher, e.Publisher, publisher != nil)
	if old, ok := w.old.(*Advertiser); ok && old.Publisher != e.Publisher {
		p.add("publisher", "", "cannot change from %q: its money is in that account", old.Publisher)
	} else if ok && publisher != nil && old.Currency != e.Currency {
		p.add("currency", "", "cannot change from %s: its money is counted in it", old.Currency)
	}
	p.text("name", e.Name, 1, maxName)
	p.status(e.Status, Active, Suspended)
	p.budget("dailyBudget", e.DailyBudget)
	if _, err := zone(e.TimeZone); err != nil {
		p.add("timeZone", `an IANA name, such as "Asia/Tokyo"`, "%s is not a time zone", quote(e.TimeZone))
	}
	if publisher != nil && e.Currency != publisher.Currency && !w.buried {
		p.add("currency", "leave it out", "%s is not the publisher's, %s", quote(e.Currency), publisher.Currency)
	}
}

// zone loads a time zone by its IANA name.
func zone(name string) (*time.Location, error) {
	if name == "" || name == "Local" {
		return nil, fmt.Errorf("time zone %q", name)
	}
	return time.LoadLocation(name)
}

func (e *Campaign) normalize(world) {
	if e.Status == "" {
		e.Status = Active
	}
	if e.MaxCPM > 0 {
		e.MaxCPM -= e.MaxCPM % microsPerStep
	}
}

func (e *Campaign) validate(p *problems, w world) {
	p.id("id", e.ID)
	old, replaces := w.old.(*Campaign)
	advertiser := find[Advertiser](w, KindAdvertiser, e.Advertiser, replaces && old.Advertiser == e.Advertiser)
	p.reference("advertiser", KindAdvertiser, e.Advertiser, advertiser != nil)
	if replaces && old.Advertiser != e.Advertiser {
		p.add("advertiser", "", "cannot change from %q: it has been spending that one's money", old.Advertiser)
	}
	p.text("name", e.Name, 0, maxName)
	p.status(e.Status, Active, Paused, Ended)
	e.validateCategories(p, w)
	e.validateMoney(p)
	e.validateSchedule(p, advertiser)
	e.validateSites(p, w, advertiser)
	if c := e.FrequencyCap; c != nil {
		if c.Count < 1 || c.Count > maxFrequencyCount {
			p.add("frequencyCap.count", "1 to 1000", "%d is out of range", c.Count)
		}
		if c.Per != PerHour && c.Per != PerDay && c.Per != PerWeek {
			p.add("frequencyCap.per", "hour, day or week", "%s is not a period", quote(string(c.Per)))
		}
	}
	p.url("landingUrl", e.LandingURL)
	p.landing("landingUrl", e.LandingURL)
}

func (e *Campaign) validateCategories(p *problems, w world) {
	if n := len(e.Categories); n < 1 || n > maxWanted {
		p.add("categories", "1 to 50 ids of "+w.Content.Name, "has %d", n)
	}
	p.distinct("categories", e.Categories)
	for i, id := range e.Categories {
		p.category(fmt.Sprintf("categories[%d]", i), w.Content, id)
	}
	p.category("productCategory", w.Products, e.ProductCategory)
}

func (e *Campaign) validateMoney(p *problems) {
	const remedy = "micros for a thousand impressions: 1000 (0.001) to 1000000000000 (a million)"
	if e.MaxCPM < microsPerStep || e.MaxCPM > deckle.MaxCPM {
		p.add("maxCpm", remedy, "%d is out of range", e.MaxCPM)
	}
	p.budget("dailyBudget", e.DailyBudget)
	if e.TotalBudget != 0 {
		p.budget("totalBudget", e.TotalBudget)
	}
}

func (e *Campaign) validateSchedule(p *problems, advertiser *Advertiser) {
	at := time.UTC
	if advertiser != nil {
		if z, err := zone(advertiser.TimeZone); err == nil {
			at = z
		}
	}
	const remedy = `"2026-12-24" or "2026-12-24T18:00:00+09:00"`
	start, startErr := e.Start.start(at)
	end, endErr := e.End.end(at)
	if startErr != nil {
		p.add("start", remedy, "%s is not a date or time", quote(string(e.Start)))
	}
	if endErr != nil {
		p.add("end", remedy, "%s is not a date or time", quote(string(e.End)))
	}
	if startErr == nil && endErr == nil && !end.IsZero() && !end.After(start) {
		p.add("end", "later than the start", "%s is not after the start", quote(string(e.End)))
	}
}

func (e *Campaign) validateSites(p *problems, w world, advertiser *Advertiser) {
	p.atMost("sites", len(e.Sites), maxAllowed)
	p.distinct("sites", e.Sites)
	kept := map[string]bool{}
	if old, ok := w.old.(*Campaign); ok {
		for _, id := range old.Sites {
			kept[id] = true
		}
	}
	for i, id := range e.Sites {
		field := fmt.Sprintf("sites[%d]", i)
		site := find[Site](w, KindSite, id, kept[id])
		p.reference(field, KindSite, id, site != nil)
		if site != nil && advertiser != nil && site.Publisher != advertiser.Publisher {
			p.add(field, "", "%q is a site of %q, the advertiser buys from %q", id, site.Publisher, advertiser.Publisher)
		}
	}
}

// start is the first instant of a moment in a time zone; zero for an empty one.
func (m Moment) start(at *time.Location) (time.Time, error) {
	t, _, err := m.parse(at)
	return t, err
}

// end is the first instant after a moment in a time zone; zero for an empty one.
func (m Moment) end(at *time.Location) (time.Time, error) {
	t, day, err := m.parse(at)
	if day && err == nil {
		y, mon, d := t.Date()
		t = time.Date(y, mon, d+1, 0, 0, 0, 0, at) // a day may have 23 hours or 25
	}
	return t, err
}

// parse reads a date, or an instant as RFC 3339 has it. Years are bounded, so that
// every moment is within the nanoseconds of an int64.
func (m Moment) parse(at *time.Location) (t time.Time, day bool, err error) {
	if m == "" {
		return time.Time{}, false, nil
	}
	if t, err = time.ParseInLocation(time.DateOnly, string(m), at); err == nil {
		day = true
	} else {
		t, err = time.Parse(time.RFC3339, string(m))
	}
	if err == nil && (t.Year() < 2000 || t.Year() > 2199) {
		err = fmt.Errorf("year %d is out of range", t.Year())
	}
	return t, day, err
}
