package budget

import (
	"sort"
	"time"
)

// A Day is a date in a time zone and the time that it covers: [From, To). Where clocks
// are changed it has 23 hours, or 25, or begins at another hour than midnight.
type Day struct {
	Date     string // 2026-11-30
	From, To time.Time
}

// DayOf is the day that t is in.
func DayOf(t time.Time, zone *time.Location) Day {
	t = t.In(zone)
	date := t.Format(time.DateOnly)
	return Day{Date: date, From: dateChange(t.Add(-longestDay), date, zone), To: nextDate(t, zone)}
}

// After is the day that follows.
func (d Day) After(zone *time.Location) Day {
	t := d.To.In(zone)
	return Day{Date: t.Format(time.DateOnly), From: d.To, To: nextDate(t, zone)}
}

// longestDay is more than any day has; a day after another may be left out, as where
// the date line was moved.
const longestDay = 28 * time.Hour

// nextDate is the first instant of the date that follows t's.
func nextDate(t time.Time, zone *time.Location) time.Time {
	y, m, d := t.In(zone).Date()
	return dateChange(t, time.Date(y, m, d+1, 0, 0, 0, 0, time.UTC).Format(time.DateOnly), zone)
}

// dateChange is the first second, within two days of from, with a date not before the
// one given. [time.Date] cannot say: where midnight is left out, it may give an instant
// of the day before.
func dateChange(from time.Time, date string, zone *time.Location) time.Time {
	second := from.Unix()
	n := sort.Search(int(2*longestDay/time.Second), func(i int) bool {
		return time.Unix(second+int64(i), 0).In(zone).Format(time.DateOnly) >= date
	})
	return time.Unix(second+int64(n), 0).In(zone)
}
