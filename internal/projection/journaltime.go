package projection

import (
	"time"

	"deckle/internal/journal"
)

// journalTime is the latest At of the events so far, in Unix milliseconds. It never
// goes back.
//
// It is cut into generations that are as long as an id has to be remembered. Ids of
// the current and the previous generation are known, so one is remembered for one to
// two times that long. An event of a clock that is ahead, by [journal.MaxAhead] at
// most, makes us forget once, and then remember for longer; it never makes us count
// twice from there on.
type journalTime int64

func (t journalTime) after(rec *journal.Record) journalTime {
	return max(t, journalTime(rec.At.UnixMilli()))
}

func (t journalTime) generation(remember time.Duration) int64 {
	return int64(t) / remember.Milliseconds()
}

// oldest is when the generation before t's began.
func (t journalTime) oldest(remember time.Duration) journalTime {
	return journalTime((t.generation(remember) - 1) * remember.Milliseconds())
}

func (t journalTime) time() time.Time { return time.UnixMilli(int64(t)).UTC() }

// recent are the ids of the current and the previous generation, in memory: about
// 40 bytes each.
type recent struct {
	remember          time.Duration
	generation        int64
	current, previous map[journal.EventID]struct{}
}

func newRecent(remember time.Duration) *recent {
	return &recent{
		remember: remember,
		current:  map[journal.EventID]struct{}{},
		previous: map[journal.EventID]struct{}{},
	}
}

// first reports whether id is new at journal time now, and remembers it.
func (r *recent) first(id journal.EventID, now journalTime) bool {
	switch g := now.generation(r.remember); {
	case g == r.generation+1:
		r.generation, r.previous, r.current = g, r.current, map[journal.EventID]struct{}{}
	case g > r.generation:
		r.generation, r.previous, r.current = g, map[journal.EventID]struct{}{}, map[journal.EventID]struct{}{}
	}
	if r.has(id) {
		return false
	}
	r.current[id] = struct{}{}
	return true
}

// has reports whether id is remembered.
func (r *recent) has(id journal.EventID) bool {
	if _, ok := r.previous[id]; ok {
		return true
	}
	_, ok := r.current[id]
	return ok
}
