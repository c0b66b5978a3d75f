package budget_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"deckle/internal/budget"
)

func TestDays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		zone, at string // UTC
		date     string
		from, to string // UTC
	}{
		{"UTC", "2026-11-30T12:00:00Z", "2026-11-30", "2026-11-30T00:00:00Z", "2026-12-01T00:00:00Z"},
		{"Asia/Tokyo", "2026-11-30T15:00:00Z", "2026-12-01", "2026-11-30T15:00:00Z", "2026-12-01T15:00:00Z"},
		{"America/New_York", "2026-03-08T12:00:00Z", "2026-03-08", "2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z"}, // 23 hours
		{"America/New_York", "2026-11-01T12:00:00Z", "2026-11-01", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"}, // 25 hours
		{"Australia/Lord_Howe", "2026-04-04T20:00:00Z", "2026-04-05", "2026-04-04T13:00:00Z", "2026-04-05T13:30:00Z"},
		{"Asia/Beirut", "2024-03-30T22:30:00Z", "2024-03-31", "2024-03-30T22:00:00Z", "2024-03-31T21:00:00Z"}, // begins at 01:00
		{"Asia/Beirut", "2024-03-29T22:30:00Z", "2024-03-30", "2024-03-29T22:00:00Z", "2024-03-30T22:00:00Z"}, // and what is before it
		{"Africa/Cairo", "2024-04-25T21:59:59Z", "2024-04-25", "2024-04-24T22:00:00Z", "2024-04-25T22:00:00Z"},
		{"America/Havana", "2024-11-03T04:30:00Z", "2024-11-03", "2024-11-03T04:00:00Z", "2024-11-04T05:00:00Z"}, // has midnight twice
		{"Pacific/Apia", "2011-12-30T09:59:59Z", "2011-12-29", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"},   // the 30th was left out
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		at, _ := time.Parse(time.RFC3339, c.at)
		d := budget.DayOf(at, zone)
		if from, to := d.From.UTC().Format(time.RFC3339), d.To.UTC().Format(time.RFC3339); d.Date != c.date || from != c.from || to != c.to {
			t.Errorf("%s in %s: %s from %s to %s, want %s from %s to %s", c.at, c.zone, d.Date, from, to, c.date, c.from, c.to)
		}
	}
}

// Days follow each other without a gap, and each has the instants of its date.
func TestDaysAreWithoutGaps(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		zone, err := time.LoadLocation(rapid.SampledFrom([]string{
			"UTC", "America/New_York", "Asia/Beirut", "Africa/Cairo", "America/Santiago", "Australia/Lord_Howe", "America/Asuncion",
			"Pacific/Apia", "Pacific/Kiritimati", "Asia/Kathmandu", "America/Scoresbysund", "Europe/Lisbon",
		}).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		at := time.Unix(rapid.Int64Range(1_600_000_000, 1_900_000_000).Draw(t, "second"), 0)
		d := budget.DayOf(at, zone)
		next := d.After(zone)
		date := func(t time.Time) string { return t.In(zone).Format(time.DateOnly) }
		switch {
		case at.Before(d.From) || !at.Before(d.To):
			t.Fatalf("%v is not in %+v", at, d)
		case date(d.From) != d.Date || date(d.To.Add(-time.Second)) != d.Date || date(at) != d.Date:
			t.Fatalf("%+v has another date at one of its ends", d)
		case date(d.From.Add(-time.Second)) >= d.Date || next.Date <= d.Date || !next.From.Equal(d.To):
			t.Fatalf("%+v does not end where %+v begins", d, next)
		case budget.DayOf(d.To, zone) != next:
			t.Fatalf("%+v is followed by %+v", d, next)
		}
	})
}
