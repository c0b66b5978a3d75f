package projection

import (
	"time"

	"deckle"
	"deckle/internal/journal"
)

const (
	// keepDays is how many days of spend are kept, that of journal time included.
	// It is today in every time zone and the day before in each.
	keepDays = 3

	// keepSealed is for how long of journal time a lease is known after its seal:
	// until it has been settled, and no token names it any more.
	keepSealed = 48 * time.Hour
)

// state is what the journal has told so far, as decisions need it. It is pure and
// not safe for concurrent use.
type state struct {
	config Config
	now    journalTime
	recent *recent

	leases ledger
	sealed []sealedLease // oldest first
	billed [LeaseExhausted + 1]int64

	days   map[int64]*daySpend // by dayNumber
	totals map[string]deckle.Money

	windows map[place]window
	traffic map[string]*traffic
}

// daySpend is the spend of one day of UTC, by campaign and by advertiser.
type daySpend struct{ campaigns, advertisers map[string]deckle.Money }

// A place is a creative on a site.
type place struct{ site, creative string }

type sealedLease struct {
	id string
	at journalTime
}

func newState(c Config) *state {
	return &state{
		config:  c,
		recent:  newRecent(c.remember()),
		leases:  ledger{},
		days:    map[int64]*daySpend{},
		totals:  map[string]deckle.Money{},
		windows: map[place]window{},
		traffic: map[string]*traffic{},
	}
}

// apply folds one event, and reports whether it told something new of a lease: that it
// has paid for an impression, or that it has ended.
func (s *state) apply(rec *journal.Record) (ofLease bool) {
	s.advance(s.now.after(rec))
	first := s.recent.first(rec.ID(), s.now)
	switch {
	case rec.Suspect != 0:
	case !first:
		if rec.Kind == journal.Impression && !rec.Dogeared {
			s.billed[Duplicate]++
		}
	case rec.Kind == journal.Lease:
		s.leases.open(rec)
	case rec.Kind == journal.Seal:
		if ofLease = s.leases.seal(rec); ofLease {
			s.sealed = append(s.sealed, sealedLease{rec.Lease, s.now})
		}
	case rec.Kind == journal.Impression:
		return s.impression(rec)
	case (rec.Kind == journal.Click || rec.Kind == journal.Fold) && !rec.Dogeared:
		s.window(rec).add(rec.Kind, rec.At.UnixMilli())
	}
	return ofLease
}

// advance moves journal time and lets go of what it has left behind.
func (s *state) advance(now journalTime) {
	was, is := dayNumber(s.now.time()), dayNumber(now.time())
	s.now = now
	if is > was {
		for d := range s.days {
			if d <= is-keepDays {
				delete(s.days, d)
			}
		}
	}
	for len(s.sealed) > 0 && now-s.sealed[0].at > journalTime(keepSealed.Milliseconds()) {
		delete(s.leases, s.sealed[0].id)
		s.sealed = s.sealed[1:]
	}
}

// impression folds an impression that is new, and reports whether leases paid for it.
func (s *state) impression(rec *journal.Record) (paid bool) {
	s.site(rec.Site).add(rec.At)
	if rec.Dogeared {
		return false
	}
	s.window(rec).add(rec.Kind, rec.At.UnixMilli())
	verdict := s.leases.pay(rec.Price, rec.Leases)
	s.billed[verdict]++
	if verdict == Billed && rec.Price > 0 {
		s.spend(rec)
	}
	return verdict == Billed
}

func (s *state) spend(rec *journal.Record) {
	s.totals[rec.Campaign] += rec.Price
	day := dayNumber(rec.At)
	if day <= dayNumber(s.now.time())-keepDays {
		return
	}
	d := s.days[day]
	if d == nil {
		d = &daySpend{map[string]deckle.Money{}, map[string]deckle.Money{}}
		s.days[day] = d
	}
	d.campaigns[rec.Campaign] += rec.Price
	d.advertisers[rec.Advertiser] += rec.Price
}

func (s *state) window(rec *journal.Record) window {
	at := place{rec.Site, rec.Creative}
	w := s.windows[at]
	if w == nil {
		w = newWindow(s.config)
		s.windows[at] = w
	}
	return w
}

func (s *state) site(id string) *traffic {
	t := s.traffic[id]
	if t == nil {
		t = newTraffic()
		s.traffic[id] = t
	}
	return t
}
