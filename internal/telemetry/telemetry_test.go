package telemetry_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"deckle"
	"deckle/internal/auction"
	"deckle/internal/store"
	"deckle/internal/store/memory"
	"deckle/internal/telemetry"
)

var discard = slog.New(slog.DiscardHandler)

// run records n events with an auction and ends the recorder when they are taken.
func run(t *testing.T, r *telemetry.Recorder, n int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	for i := range n {
		r.Record(event(i))
	}
	cancel()
	if err := r.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

func event(i int) telemetry.Event {
	return telemetry.Event{At: time.Unix(int64(i), 0), Site: "s", From: telemetry.Page, Outcome: telemetry.OutcomeRun, Slots: []deckle.SlotID{"top"}}
}

// counted is what became of events, by sink and outcome, where that is not zero.
func counted(t *testing.T, r *telemetry.Recorder) map[string]int {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := r.Metrics().Register(registry); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, f := range families {
		for _, s := range f.GetMetric() {
			if n := int(s.GetCounter().GetValue()); n > 0 {
				counts[s.GetLabel()[1].GetValue()+" "+s.GetLabel()[0].GetValue()] = n // labels are sorted by name
			}
		}
	}
	return counts
}

// lines are the events in some JSON lines, by their second.
func lines(t *testing.T, data []byte) (seconds []int) {
	t.Helper()
	s := bufio.NewScanner(bytes.NewReader(data))
	for s.Scan() {
		var e telemetry.Event
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			t.Fatalf("%v in %q", err, s.Text())
		}
		seconds = append(seconds, int(e.At.Unix()))
	}
	return seconds
}

func upTo(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// stored are the events in a log, and how many messages they are in.
func stored(t *testing.T, l store.Log) (seconds []int, messages int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	state, err := l.State(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if state.Last == 0 {
		return nil, 0
	}
	err = l.Read(ctx, 1, func(m store.Message) error {
		seconds = append(seconds, lines(t, m.Data)...)
		if messages++; m.Seq == state.Last {
			return io.EOF
		}
		return nil
	})
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return seconds, messages
}

// The record as it stands in file and log: everything of an auction, and nothing
// of who saw it.
func TestRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "auctions.ndjson")
	r := telemetry.New(telemetry.Config{ExportFile: path}, discard)
	e := telemetry.Event{
		At: time.Date(2026, 11, 30, 14, 0, 0, 123_456_789, time.FixedZone("", 3600)), Site: "yuki-site", From: telemetry.Page, Outcome: "run",
		Slots: []deckle.SlotID{"top", "side"}, Where: "head", HoldMS: 12,
	}
	e.Held(&auction.Result{
		Elapsed: 130 * time.Millisecond, Deadline: true,
		Providers: []auction.ProviderResult{
			{Name: "prebid", Status: auction.StatusBid, Elapsed: 99 * time.Millisecond, Bids: 2, NonBids: map[auction.NonBidReason]int{auction.ReasonSize: 1, auction.ReasonBelowFloor: 2}},
			{Name: "aps", Status: auction.StatusTimeout, Elapsed: 130 * time.Millisecond},
		},
		Winners: []auction.Winner{
			{Bid: auction.Bid{Slot: "top", Seat: "kargo", NURL: "https://n.example/?secret", AdM: "<b>"}, Bucket: "2.50", EdgeNURL: true},
			{Bid: auction.Bid{Slot: "side", Seat: "<b>203.0.113.7", NURL: "https://n.example/"}, Bucket: "0.10"},
		},
	}, true)
	r.Record(e)
	run(t, r, 0)
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"at":"2026-11-30T13:00:00.123Z","site":"yuki-site","from":"page","outcome":"run","slots":["top","side"],` +
		`"providers":[{"name":"prebid","status":"bid","ms":99,"bids":2,"nonbids":{"below_floor":2,"size":1}},{"name":"aps","status":"timeout","ms":130}],` +
		`"winners":[{"slot":"top","bidder":"kargo","bucket":"2.50"},{"slot":"side","bidder":"other","bucket":"0.10"}],` +
		`"auction_ms":130,"deadline":true,"where":"head","hold_ms":12,"notices":1}` + "\n"
	if string(got) != want {
		t.Errorf("record\n%s\nwant\n%s", got, want)
	}
}

// Both sinks get every event, in order; a busy node writes many in one message.
func TestBothSinks(t *testing.T) {
	l := memory.NewLog()
	path := filepath.Join(t.TempDir(), "a.ndjson")
	r := telemetry.New(telemetry.Config{Log: func() store.Log { return l }, ExportFile: path}, discard)
	run(t, r, 1000)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(upTo(1000), lines(t, data)); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
	got, messages := stored(t, l)
	if diff := cmp.Diff(upTo(1000), got); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	if messages != 4 {
		t.Errorf("%d messages, want 1,000 events in four", messages)
	}
	if diff := cmp.Diff(map[string]int{"file written": 1000, "store written": 1000}, counted(t, r)); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
}

// An auction is recorded each time; a page view without one every hundredth time,
// and says so.
func TestSkipsAreSampled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.ndjson")
	r := telemetry.New(telemetry.Config{ExportFile: path}, discard)
	for range 250 {
		r.Record(telemetry.Event{Site: "s", From: telemetry.Page, Outcome: "bot"})
	}
	run(t, r, 0)
	data, err := os.ReadFile(path)
	if err != nil || strings.Count(string(data), "\n") != 3 || strings.Count(string(data), `"sample":100`) != 3 {
		t.Errorf("%v, %s", err, data)
	}
}

// A full queue drops and counts; nobody waits.
func TestFullQueueDrops(t *testing.T) {
	r := telemetry.New(telemetry.Config{ExportFile: filepath.Join(t.TempDir(), "a.ndjson"), Queue: 10}, discard)
	run(t, r, 15)
	if diff := cmp.Diff(map[string]int{"file written": 10, "file dropped": 5}, counted(t, r)); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
}

// flaky is a log that fails a few times, or for good.
type flaky struct {
	store.Log
	failures atomic.Int32
	err      error
	ids      []string
}

func (f *flaky) Append(ctx context.Context, id string, data []byte) (store.Seq, error) {
	f.ids = append(f.ids, id)
	if f.failures.Add(-1) >= 0 {
		return 0, f.err
	}
	return f.Log.Append(ctx, id, data)
}

// A store that cannot answer now is asked again, with the same id, so that nothing
// is there twice; one that is not open yet is waited for.
func TestStoreComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &flaky{Log: memory.NewLog(), err: store.ErrUnavailable}
		l.failures.Store(3)
		start := time.Now()
		r := telemetry.New(telemetry.Config{Log: func() store.Log {
			if time.Since(start) < 10*time.Second {
				return nil
			}
			return l
		}}, discard)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		for i := range 5 {
			r.Record(event(i))
		}
		<-time.After(time.Minute)
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if got, _ := stored(t, l); len(got) != 5 {
			t.Errorf("stored %v, want all five", got)
		}
		for _, id := range l.ids[:4] {
			if id != l.ids[0] {
				t.Errorf("ids = %q, want the same for each attempt", l.ids)
				break
			}
		}
		if diff := cmp.Diff(map[string]int{"store written": 5}, counted(t, r)); diff != "" {
			t.Errorf("counted (-want +got):\n%s", diff)
		}
	})
}

// A store that is gone delays the end by a second, and its events are counted as
// lost, each.
func TestStoreIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := telemetry.New(telemetry.Config{Log: func() store.Log { return nil }}, discard)
		start := time.Now()
		run(t, r, 600)
		if took := time.Since(start); took != time.Second {
			t.Errorf("ended after %v, want one second", took)
		}
		if diff := cmp.Diff(map[string]int{"store failed": 600}, counted(t, r)); diff != "" {
			t.Errorf("counted (-want +got):\n%s", diff)
		}
	})
}

// What a store refuses for good is not sent again.
func TestStoreRefuses(t *testing.T) {
	l := &flaky{Log: memory.NewLog(), err: store.ErrTooLarge}
	l.failures.Store(1)
	r := telemetry.New(telemetry.Config{Log: func() store.Log { return l }}, discard)
	run(t, r, 3)
	if diff := cmp.Diff(map[string]int{"store failed": 3}, counted(t, r)); diff != "" || len(l.ids) != 1 {
		t.Errorf("%d attempts; counted (-want +got):\n%s", len(l.ids), diff)
	}
}

// A full file is kept as .1 and the one before it as .2; what is older goes. No
// line is cut, and none is in two files.
func TestRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.ndjson")
	var all []int
	for i := range 5 { // one file each: a batch is one write
		r := telemetry.New(telemetry.Config{ExportFile: path, RotateAt: 1, Keep: 2}, discard)
		ctx, cancel := context.WithCancel(t.Context())
		r.Record(event(i))
		cancel()
		if err := r.Run(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{path + ".2", path + ".1", path} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, lines(t, data)...)
	}
	if diff := cmp.Diff([]int{2, 3, 4}, all); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if files, _ := filepath.Glob(path + "*"); len(files) != 3 {
		t.Errorf("files = %q, want three", files)
	}
}

// After a crash in the middle of a line the next one stands on a line of its own.
func TestFileAfterACrash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.ndjson")
	if err := os.WriteFile(path, []byte(`{"at":"2026`), 0o600); err != nil {
		t.Fatal(err)
	}
	r := telemetry.New(telemetry.Config{ExportFile: path}, discard)
	run(t, r, 1)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first, rest, _ := strings.Cut(string(data), "\n")
	if first != `{"at":"2026` || len(lines(t, []byte(rest))) != 1 {
		t.Errorf("file = %q", data)
	}
}

// A file that an operator's own rotation moves away is begun anew, and one that
// cannot be written is counted and tried again.
func TestFileIsMovedAway(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "a.ndjson")
	r := telemetry.New(telemetry.Config{ExportFile: path}, discard)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	record := func(i int, outcome string) {
		t.Helper()
		before := counted(t, r)["file "+outcome]
		r.Record(event(i))
		for counted(t, r)["file "+outcome] == before {
			if t.Context().Err() != nil {
				t.Fatal("never counted")
			}
		}
	}
	record(0, "written")
	if err := os.Rename(path, path+".mine"); err != nil {
		t.Fatal(err)
	}
	record(1, "written")
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	record(2, "failed")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	record(3, "written")
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{path + ".mine": 0, path: 3} {
		data, err := os.ReadFile(name)
		if err != nil || !cmp.Equal(lines(t, data), []int{want}) {
			t.Errorf("%s: %v, %s; want event %d", name, err, data, want)
		}
	}
}

// With no sink nothing is done, and nothing has to run.
func TestNoSink(t *testing.T) {
	r := telemetry.New(telemetry.Config{}, discard)
	run(t, r, 3)
	if got := counted(t, r); len(got) != 0 {
		t.Errorf("counted %v", got)
	}
}

func BenchmarkRecord(b *testing.B) {
	r := telemetry.New(telemetry.Config{ExportFile: filepath.Join(b.TempDir(), "a"), Queue: 1}, discard)
	e := event(1)
	e.Held(&auction.Result{Providers: make([]auction.ProviderResult, 2), Winners: make([]auction.Winner, 3)}, true)
	b.ReportAllocs()
	for b.Loop() {
		r.Record(e)
	}
}
