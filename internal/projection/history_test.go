package projection_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"deckle"
	"deckle/internal/journal"
	"deckle/internal/journal/journaltest"
	"deckle/internal/store"
	"deckle/internal/store/memory"
)

// A history is a journal in memory, and what is in it.
type history struct {
	*memory.Log
	envelopes [][]journal.Record
}

func newHistory() *history { return &history{Log: memory.NewLog()} }

// add appends one envelope, at the time of its latest event.
func (h *history) add(events ...journal.Event) {
	latest := slices.MaxFunc(events, func(a, b journal.Event) int { return a.At.Compare(b.At) })
	h.addAt(latest.At, events...)
}

// addAt appends one envelope when the store's clock says so.
func (h *history) addAt(now time.Time, events ...journal.Event) {
	h.Skew(time.Until(now))
	data, err := journal.Encode(events)
	if err != nil {
		panic(err)
	}
	seq, err := h.Append(context.Background(), strconv.Itoa(len(h.envelopes)), data)
	if err != nil {
		panic(err)
	}
	envelope := make([]journal.Record, len(events))
	for i, e := range events {
		envelope[i] = journal.Record{Seq: seq, Index: i, Event: e}
	}
	h.envelopes = append(h.envelopes, envelope)
}

func (h *history) last() store.Seq { return store.Seq(len(h.envelopes)) }

func (h *history) records() []journal.Record { return slices.Concat(h.envelopes...) }

// copied is another journal with the envelopes up to one of h.
func (h *history) copied(until int) *history {
	c := newHistory()
	for _, envelope := range h.envelopes[:until] {
		c.add(events(envelope)...)
	}
	return c
}

func events(envelope []journal.Record) []journal.Event {
	list := make([]journal.Event, len(envelope))
	for i, r := range envelope {
		list[i] = r.Event
	}
	return list
}

// monday is the day on which every history begins.
var monday = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

// drawHistory draws a journal of few names, so that everything meets everything:
// repeats within and beyond what is remembered, leases that are too small, sealed or
// unknown, clocks that differ, silent days.
func drawHistory(t *rapid.T) *history {
	h := newHistory()
	at := monday.Add(time.Duration(rapid.IntRange(0, 6*24).Draw(t, "hour")) * time.Hour)
	for range rapid.IntRange(1, 40).Draw(t, "envelopes") {
		var events []journal.Event
		for range rapid.IntRange(1, 6).Draw(t, "events") {
			at = at.Add(rapid.SampledFrom([]time.Duration{
				0, 0, time.Second, time.Minute, 7 * time.Minute, 50 * time.Minute, 66 * time.Minute, 3 * time.Hour, 27 * time.Hour, 75 * time.Hour,
			}).Draw(t, "later"))
			e := drawEvent(t)
			e.At = at.Add(-rapid.SampledFrom([]time.Duration{0, 0, 0, time.Second, 2 * time.Minute, 59 * time.Minute, 80 * time.Hour}).Draw(t, "clock"))
			events = append(events, e)
		}
		h.add(events...)
	}
	return h
}

var leaseIDs = []string{"l1", "l2", "l3", "l4"}

func drawEvent(t *rapid.T) journal.Event {
	kind := rapid.SampledFrom([]journal.Kind{
		journal.Impression, journal.Impression, journal.Impression, journal.View, journal.Click, journal.CTA,
		journal.Fold, journal.Unfold, journal.Lease, journal.Lease, journal.Seal,
	}).Draw(t, "kind")
	if kind == journal.Lease || kind == journal.Seal {
		e := journal.Event{Kind: kind, Lease: rapid.SampledFrom(leaseIDs).Draw(t, "lease"), Line: "campaign/c1/2026-03-02"}
		if kind == journal.Lease {
			e.Amount = deckle.Money(100 * rapid.IntRange(1, 30).Draw(t, "amount"))
		}
		return e
	}
	e := journal.Event{
		Kind: kind, Site: rapid.SampledFrom([]string{"s1", "s2"}).Draw(t, "site"), Slot: "top", Version: 1,
		Campaign:  rapid.SampledFrom([]string{"c1", "c2"}).Draw(t, "campaign"),
		Creative:  rapid.SampledFrom([]string{"k1", "k2"}).Draw(t, "creative"),
		URL:       "https://example.com/a",
		RequestID: fmt.Sprintf("%016x", rapid.IntRange(0, 30).Draw(t, "request")),
		Dogeared:  rapid.IntRange(0, 5).Draw(t, "dogeared") == 5,
		Suspect:   journal.Suspect(rapid.SampledFrom([]int{0, 0, 0, 0, 0, 2}).Draw(t, "suspect")),
	}
	e.Advertiser = map[string]string{"c1": "a1", "c2": "a2"}[e.Campaign]
	if kind == journal.Impression && !e.Dogeared {
		e.Price = deckle.Money(rapid.SampledFrom([]int{0, 100, 700}).Draw(t, "price"))
		e.Leases = rapid.SliceOfNDistinct(rapid.SampledFrom(append(leaseIDs, "never")), 1, 3, rapid.ID[string]).Draw(t, "leases")
	}
	return e
}

// impression is the n-th of different impressions, all on Monday morning.
func impression(n int) journal.Event {
	return journal.Event{
		Kind: journal.Impression, At: monday.Add(time.Duration(n) * time.Millisecond), Site: "s1", Slot: "top", Advertiser: "a1", Campaign: "c1",
		Creative: "k1", Version: 1, URL: "https://example.com/a", RequestID: fmt.Sprintf("%016x", 1_000+n), Price: 100, Leases: []string{"l1"},
	}
}

// traffic makes n events as a busy day has them, some fifty an envelope, for what
// rapid would be too slow for.
func traffic(n int, seed uint64) *history {
	h := newHistory()
	g := journaltest.New(seed, journaltest.Config{Start: monday.Add(8 * time.Hour), Sites: 5, Advertisers: 20, Campaigns: 25, Lease: 40_000})
	for left := n; left > 0; left -= 50 {
		h.add(g.Take(min(left, 50))...)
	}
	return h
}

// Every event that the tests make could be in a journal.
func TestHistoriesAreValid(t *testing.T) {
	for _, r := range traffic(5_000, 1).records() {
		if err := r.Validate(); err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		for _, r := range drawHistory(t).records() {
			if err := r.Validate(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
