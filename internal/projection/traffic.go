package projection

import "time"

// A Shape says how the traffic of a day falls on its hours, by UTC: 24 weights whose
// sum is 1.
type Shape [24]float64

// learning is how much of a day's shape the next ones keep of it.
const learning = 0.2

// traffic is one site's: a shape for weekdays and one for weekends, flat until
// learned, and the day that is being counted.
type traffic struct {
	weekday, weekend Shape
	day              int64 // since 1970-01-01
	today            [24]int64
}

func newTraffic() *traffic {
	var flat Shape
	for i := range flat {
		flat[i] = 1.0 / 24
	}
	return &traffic{weekday: flat, weekend: flat}
}

// add counts an impression. One of a day that has been learned comes too late.
func (t *traffic) add(at time.Time) {
	switch d := dayNumber(at); {
	case d < t.day:
		return
	case d > t.day:
		t.learn()
		t.day, t.today = d, [24]int64{}
	}
	t.today[at.UTC().Hour()]++
}

// learn mixes the day into the shape of its like. A day without traffic teaches
// nothing.
func (t *traffic) learn() {
	var sum int64
	for _, n := range t.today {
		sum += n
	}
	if sum == 0 {
		return
	}
	shape := t.shape(t.day)
	for hour, n := range t.today {
		shape[hour] += learning * (float64(n)/float64(sum) - shape[hour])
	}
}

// shape is that of the days like this one.
func (t *traffic) shape(day int64) *Shape {
	if isWeekend(day) {
		return &t.weekend
	}
	return &t.weekday
}

// read is the shape of now's day, with every day before it learned.
func (t *traffic) read(now time.Time) Shape {
	d := dayNumber(now)
	rolled := *t
	if d > t.day {
		rolled.learn()
	}
	return *rolled.shape(d)
}

// dayNumber counts the days of UTC from 1970-01-01, a Thursday.
func dayNumber(t time.Time) int64 { return t.Unix() / (24 * 60 * 60) }

func isWeekend(day int64) bool {
	weekday := time.Weekday((day + int64(time.Thursday)) % 7)
	return weekday == time.Saturday || weekday == time.Sunday
}
