package projection

import (
	"math"
	"time"

	"deckle/internal/journal"
)

// Engagement is what readers did with a creative on a site: all of its versions and
// slots, organic only. Dog-eared and suspect events teach nothing.
type Engagement struct {
	// Impressions, Clicks (expands) and Folds are n, c and f: decayed with a half-life
	// of a day, with n never below min(Shown, 50) and the others in the same ratio to
	// it; or those of the last hour, in whole minutes, where Config.HardHour is set.
	Impressions, Clicks, Folds float64

	// Shown is N: all impressions so far.
	Shown int64
}

// halfLife is the time in which an event loses half of its weight.
const halfLife = 24 * time.Hour

// enough is how many impressions a creative never falls below again by decay.
const enough = 50

// A window is the engagement of one creative on one site as it goes on.
type window interface {
	add(kind journal.Kind, at int64)
	read(now int64) Engagement // times are in Unix milliseconds
}

func newWindow(c Config) window {
	if c.HardHour {
		return new(lastHour)
	}
	return new(decaying)
}

// decaying has the weights as they were at the time of its latest event.
type decaying struct {
	Engagement
	at int64
}

func (d *decaying) add(kind journal.Kind, at int64) {
	*d = d.moved(at)
	weight := decay(d.at - at) // of an event that comes late
	switch kind {
	case journal.Impression:
		d.Shown++
		d.Impressions += weight
	case journal.Click:
		d.Clicks += weight
	case journal.Fold:
		d.Folds += weight
	}
	d.Engagement = d.scaled(1)
}

func (d *decaying) read(now int64) Engagement { return d.moved(now).Engagement }

// moved is d at a time, or unchanged if it is there already.
func (d *decaying) moved(to int64) decaying {
	if to <= d.at {
		return *d
	}
	return decaying{d.scaled(decay(to - d.at)), to}
}

// scaled is e with its weights multiplied by factor, or by what keeps n at its
// least. That holds after any silence: the ratios do not fade with the numbers.
func (e Engagement) scaled(factor float64) Engagement {
	if least := float64(min(e.Shown, enough)); e.Impressions > 0 && e.Impressions*factor < least {
		factor = least / e.Impressions
	}
	return Engagement{e.Impressions * factor, e.Clicks * factor, e.Folds * factor, e.Shown}
}

// decay is the weight of what is so many milliseconds old.
func decay(ms int64) float64 { return math.Exp2(-float64(ms) / float64(halfLife.Milliseconds())) }

// lastHour counts by the minute. A minute's place is its number modulo 60; newest is
// the latest that has been counted.
type lastHour struct {
	newest  int64
	minutes [60]struct{ impressions, clicks, folds int32 }
	shown   int64
}

func (h *lastHour) add(kind journal.Kind, at int64) {
	minute := at / time.Minute.Milliseconds()
	if kind == journal.Impression {
		h.shown++
	}
	if minute > h.newest {
		for m := max(h.newest+1, minute-59); m <= minute; m++ {
			h.minutes[m%60] = struct{ impressions, clicks, folds int32 }{}
		}
		h.newest = minute
	}
	if minute <= h.newest-60 {
		return
	}
	switch m := &h.minutes[minute%60]; kind {
	case journal.Impression:
		m.impressions++
	case journal.Click:
		m.clicks++
	case journal.Fold:
		m.folds++
	}
}

func (h *lastHour) read(now int64) Engagement {
	e := Engagement{Shown: h.shown}
	last := max(now/time.Minute.Milliseconds(), h.newest) // another node's clock may be ahead
	for m := max(last-59, 0); m <= h.newest; m++ {
		e.Impressions += float64(h.minutes[m%60].impressions)
		e.Clicks += float64(h.minutes[m%60].clicks)
		e.Folds += float64(h.minutes[m%60].folds)
	}
	return e
}
