package projection_test

import (
	"math"
	"slices"
	"time"

	"deckle"
	"deckle/internal/journal"
	"deckle/internal/projection"
	"deckle/internal/store"
)

// A judge is the journal's meaning told slowly: it keeps every event and answers each
// question by looking at all of them.
type judge struct {
	remember int64
	forgets  bool // leases, as the hot fold does: 48 hours after their seal
	events   []judged
}

type judged struct {
	journal.Record
	latest  int64 // of all At so far, Unix ms
	repeat  bool
	verdict projection.Billing // of an organic impression
}

func newJudge(records []journal.Record, c projection.Config, forgets bool) *judge {
	j := &judge{remember: c.Remember(), forgets: forgets}
	for _, r := range records {
		j.hear(r)
	}
	return j
}

func (j *judge) hear(r journal.Record) {
	e := judged{Record: r, latest: r.At.UnixMilli()}
	if n := len(j.events); n > 0 {
		e.latest = max(e.latest, j.events[n-1].latest)
	}
	period := func(e judged) int64 { return e.latest / j.remember }
	for _, before := range j.events {
		if !before.repeat && before.Kind == e.Kind && before.RequestID == e.RequestID && before.Lease == e.Lease && period(e)-period(before) <= 1 {
			e.repeat = true
		}
	}
	j.events = append(j.events, e)
	if e.organic() {
		last := &j.events[len(j.events)-1]
		last.verdict = projection.Duplicate // until it is judged it has paid nothing
		last.verdict = j.bill(e)
	}
}

// organic reports whether it is an impression that somebody may have to pay.
func (e judged) organic() bool {
	return e.Kind == journal.Impression && e.Suspect == 0 && !e.Dogeared
}

func (j *judge) bill(e judged) projection.Billing {
	if e.repeat {
		return projection.Duplicate
	}
	short := false
	for _, id := range e.Leases {
		if j.sealed(id) != 0 || !j.taken(id) {
			return projection.Sealed
		}
		short = short || j.spent(id)+e.Price > j.amount(id)
	}
	if short {
		return projection.LeaseExhausted
	}
	return projection.Billed
}

// life are the events from which a lease is known: all of them, or those since it was
// forgotten.
func (j *judge) life(id string) []judged {
	start := 0
	sealed := int64(-1)
	for i, e := range j.events {
		if j.forgets && sealed >= 0 && e.latest-sealed > 48*3_600_000 {
			start, sealed = i, -1
		}
		if sealed < 0 && !e.repeat && e.Kind == journal.Seal && e.Lease == id {
			sealed = e.latest
		}
	}
	return j.events[start:]
}

// taken reports whether a lease has been taken.
func (j *judge) taken(id string) bool {
	return slices.ContainsFunc(j.life(id), func(e judged) bool { return e.Kind == journal.Lease && e.Lease == id && !e.repeat })
}

// sealed is the envelope of the first seal of a lease.
func (j *judge) sealed(id string) store.Seq {
	for _, e := range j.life(id) {
		if e.Kind == journal.Seal && e.Lease == id && !e.repeat {
			return e.Seq
		}
	}
	return 0
}

// known reports whether anything was told of a lease.
func (j *judge) known(id string) bool {
	for _, e := range j.life(id) {
		if e.Lease == id && !e.repeat {
			return true
		}
	}
	return false
}

// amount is what a lease was opened with.
func (j *judge) amount(id string) deckle.Money {
	for _, e := range j.life(id) {
		switch {
		case e.Lease != id || e.repeat:
		case e.Kind == journal.Lease:
			return e.Amount
		case e.Kind == journal.Seal:
			return 0
		}
	}
	return 0
}

func (j *judge) spent(id string) (sum deckle.Money) {
	for _, e := range j.life(id) {
		if e.organic() && e.verdict == projection.Billed && slices.Contains(e.Leases, id) {
			sum += e.Price
		}
	}
	return sum
}

func (j *judge) billings() (n [4]int64) {
	for _, e := range j.events {
		if e.organic() {
			n[e.verdict]++
		}
	}
	return n
}

// spend is the sum of what was billed and is of the day of at, or of all days.
func (j *judge) spend(of func(journal.Record) bool, at time.Time) (sum deckle.Money) {
	for _, e := range j.events {
		if e.organic() && e.verdict == projection.Billed && of(e.Record) &&
			(at.IsZero() || e.At.Format(time.DateOnly) == at.Format(time.DateOnly)) {
			sum += e.Price
		}
	}
	return sum
}

// rows are the report's, by its key.
func (j *judge) rows() map[projection.Row]projection.Counts {
	rows := map[projection.Row]projection.Counts{}
	for _, e := range j.events {
		if e.Lease != "" {
			continue
		}
		key := projection.Row{Day: e.At.Format(time.DateOnly), Site: e.Site, Advertiser: e.Advertiser, Campaign: e.Campaign, Creative: e.Creative}
		c := count(rows[key], e)
		if c != rows[key] {
			rows[key] = c
		}
	}
	return rows
}

// count adds an event to its row.
func count(c projection.Counts, e judged) projection.Counts {
	actions := &c.Organic
	if e.Dogeared {
		actions = &c.Dogeared
	}
	switch {
	case e.repeat && (e.Kind != journal.Impression || e.Suspect != 0 || e.Dogeared):
	case e.repeat:
		c.Unbilled.Duplicate++
	case e.Suspect != 0:
		c.Suspects++
	case e.Kind == journal.Impression:
		actions.Impressions++
		switch e.verdict {
		case projection.Billed:
			c.Spend += e.Price
		case projection.Sealed:
			c.Unbilled.Sealed++
		case projection.LeaseExhausted:
			c.Unbilled.LeaseExhausted++
		}
	case e.Kind == journal.View:
		actions.Viewable++
	case e.Kind == journal.Click:
		actions.Clicks++
	case e.Kind == journal.CTA:
		actions.CTA++
	case e.Kind == journal.Fold:
		c.Folds++
	case e.Kind == journal.Unfold:
		c.Unfolds++
	}
	return c
}

// engagement is what a creative's window must be: every event's weight by its age,
// with n lifted to its least at every event and at the end.
func (j *judge) engagement(site, creative string, now time.Time) (w projection.Engagement) {
	latest := int64(0)
	lift := func() {
		if least := math.Min(float64(w.Shown), 50); w.Impressions > 0 && w.Impressions < least {
			up := least / w.Impressions
			w.Impressions, w.Clicks, w.Folds = least, w.Clicks*up, w.Folds*up
		}
	}
	age := func(to int64) {
		if to > latest {
			f := math.Pow(0.5, float64(to-latest)/86_400_000)
			w.Impressions, w.Clicks, w.Folds = w.Impressions*f, w.Clicks*f, w.Folds*f
			latest = to
			lift()
		}
	}
	for _, e := range j.events {
		if e.repeat || e.Suspect != 0 || e.Dogeared || e.Site != site || e.Creative != creative {
			continue
		}
		if e.Kind != journal.Impression && e.Kind != journal.Click && e.Kind != journal.Fold {
			continue
		}
		age(e.At.UnixMilli())
		weight := math.Pow(0.5, float64(latest-e.At.UnixMilli())/86_400_000)
		switch e.Kind {
		case journal.Impression:
			w.Impressions += weight
			w.Shown++
		case journal.Click:
			w.Clicks += weight
		case journal.Fold:
			w.Folds += weight
		}
		lift()
	}
	age(now.UnixMilli())
	return w
}

// hour is the same with HardHour.
func (j *judge) hour(site, creative string, now time.Time) (w projection.Engagement) {
	for _, e := range j.events {
		if e.repeat || e.Suspect != 0 || e.Dogeared || e.Site != site || e.Creative != creative {
			continue
		}
		age := now.Unix()/60 - e.At.Unix()/60
		in := age >= 0 && age < 60
		switch {
		case e.Kind == journal.Impression:
			w.Shown++
			if in {
				w.Impressions++
			}
		case e.Kind == journal.Click && in:
			w.Clicks++
		case e.Kind == journal.Fold && in:
			w.Folds++
		}
	}
	return w
}

// shape is a site's traffic on days like now's: day after day, a fifth of the day and
// the rest of before.
func (j *judge) shape(site string, now time.Time) projection.Shape {
	var s projection.Shape
	for h := range s {
		s[h] = 1.0 / 24
	}
	weekend := func(t time.Time) bool { return t.Weekday() == time.Saturday || t.Weekday() == time.Sunday }
	today := now.Truncate(24 * time.Hour)
	for d := monday.AddDate(0, 0, -5); d.Before(today); d = d.AddDate(0, 0, 1) {
		var hours [24]float64
		sum := 0.0
		newest := int64(0)
		for _, e := range j.events {
			if e.repeat || e.Suspect != 0 || e.Kind != journal.Impression || e.Site != site {
				continue
			}
			day := e.At.Unix() / 86_400
			newest = max(newest, day)
			if day == d.Unix()/86_400 && day == newest {
				hours[e.At.Hour()]++
				sum++
			}
		}
		if sum > 0 && weekend(d) == weekend(now) {
			for h := range s {
				s[h] = 0.8*s[h] + 0.2*hours[h]/sum
			}
		}
	}
	return s
}
