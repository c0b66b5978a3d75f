package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zeebo/xxh3"

	"deckle"
	"deckle/internal/catalog"
	"deckle/internal/config"
	"deckle/internal/journal"
	"deckle/internal/projection"
	"deckle/internal/sim"
	"deckle/internal/sim/desk"
	"deckle/internal/sim/readers"
	"deckle/internal/store"
)

// Servers are killed while readers ask for ads, look at them and fold corners. Each
// event that was answered with 204 is in the journal and in the reports exactly once,
// no budget is exceeded, no bookmark is said to be dead, and a replay gives the same
// reports. DECKLE_SLOW=1 kills 50 of them.
func TestKilledServersLoseNothing(t *testing.T) {
	kills := 2
	if os.Getenv("DECKLE_SLOW") != "" {
		kills = 50
	}
	world, err := sim.Start(context.WithoutCancel(t.Context()), sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer world.Close()
	v := newVictim(t, world)
	for range kills {
		v.serve(t)
		stop := v.read(t)
		pause(t.Context(), time.Duration(100+rand.IntN(900))*time.Millisecond)
		v.kill(t, syscall.SIGKILL)
		stop()
	}
	v.serve(t)
	v.read(t)()
	v.kill(t, syscall.SIGTERM)

	t.Logf("%d kills; told and acknowledged: %v; answers: %v", kills, v.counts(), v.answers)
	if len(v.told[journal.Impression]) == 0 || len(v.told[journal.Fold]) == 0 || v.honoured == 0 {
		t.Errorf("there was nothing to lose: %v, %d bookmarks honoured", v.counts(), v.honoured)
	}
	if v.removed > 0 {
		t.Errorf("%d bookmarks were said to be dead", v.removed)
	}
	v.checkJournal(t)
	v.checkReplay(t)
}

// A victim is a server that is killed, its files, and what it has acknowledged.
type victim struct {
	cfg     *config.Config
	file    string
	url     string
	process *exec.Cmd
	ended   chan error
	readers []*readers.Reader

	mu       sync.Mutex
	told     map[journal.Kind]map[string]bool // request ids that were answered with 204
	answers  map[int]int                      // by status
	honoured int
	removed  int
}

func newVictim(t *testing.T, world *sim.World) *victim {
	t.Helper()
	dir, listen := t.TempDir(), freeAddr(t)
	if _, err := demoConfig(world, dir, listen, freeAddr(t)); err != nil {
		t.Fatal(err)
	}
	cfg := editFiles(t, dir, func(toml, template string) (string, string) {
		// Leases of killed servers are sealed within the test.
		return toml + "\n[reader]\nbeacon_window = \"1s\"\nmax_skew = \"2s\"\n", template
	})
	v := &victim{
		cfg: cfg, file: filepath.Join(dir, "deckle.toml"), url: "http://" + listen,
		told: map[journal.Kind]map[string]bool{}, answers: map[int]int{},
	}
	for k := journal.Impression; k <= journal.Unfold; k++ {
		v.told[k] = map[string]bool{}
	}
	v.stock(t)
	for i := range 200 {
		v.readers = append(v.readers, &readers.Reader{
			Client: readers.Client(i), Server: v.url, Pub: desk.Site, Rand: rand.New(rand.NewPCG(uint64(i), 1)),
			Habits: readers.Habits{View: 0.7, Click: 0.5, CTA: 0.3, Fold: 0.4, Unfold: 0.1},
			Told:   v.note,
		})
	}
	return v
}

// stock puts the demo's desk into the store, with budgets that do not last.
func (v *victim) stock(t *testing.T) {
	t.Helper()
	st, err := store.Open(t.Context(), storeConfig(v.cfg), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	cat := catalog.New(st.Catalog(), st.Keys(), catalog.Config{Sites: siteFacts(v.cfg)})
	ran := make(chan error, 1)
	go func() { ran <- cat.Run(ctx) }()
	document, err := desk.Document(ctx, st.Assets())
	if err == nil {
		for _, a := range document.Advertisers {
			a.TimeZone, a.DailyBudget = "UTC", v.budget(a.ID)
		}
		err = importDocument(ctx, cat, document, "a test")
	}
	stop()
	if err := <-ran; err != nil {
		t.Error(err)
	}
	if errClose := st.Close(); err != nil || errClose != nil {
		t.Fatal(err, errClose)
	}
}

// budget is what an advertiser has for a day: some have little.
func (v *victim) budget(advertiser string) deckle.Money {
	switch advertiser {
	case "hoshimi":
		return 1e6 / 2
	case "kestrel":
		return 5e6
	}
	return 10_000e6
}

// serve starts a server and returns when it answers batches.
func (v *victim) serve(t *testing.T) {
	t.Helper()
	v.process = exec.Command("deckle", "serve", "--config", v.file)
	v.process.Dir = filepath.Dir(v.file)
	if err := v.process.Start(); err != nil {
		t.Fatal(err)
	}
	v.ended = make(chan error, 1)
	go func() { v.ended <- v.process.Wait() }()
	within(t, func() bool {
		select {
		case err := <-v.ended:
			t.Fatalf("the server ended by itself: %v", err)
		default:
		}
		answer, err := v.readers[0].Visit(t.Context(), v.page(v.readers[0].Rand))
		v.judge(answer)
		return err == nil && answer.Status == http.StatusOK
	})
}

// read lets all readers read until stop is called, which waits for their last pages.
func (v *victim) read(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, r := range v.readers {
		wg.Go(func() {
			for ctx.Err() == nil {
				answer, _ := r.Visit(context.WithoutCancel(ctx), v.page(r.Rand)) // the kill may come in between
				v.judge(answer)
				pause(ctx, time.Duration(r.Rand.IntN(1500))*time.Millisecond)
			}
		})
	}
	return func() {
		cancel()
		wg.Wait()
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (v *victim) kill(t *testing.T, sig os.Signal) {
	t.Helper()
	if err := v.process.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	err := <-v.ended
	if sig == syscall.SIGTERM && err != nil {
		t.Errorf("an orderly end: %v", err)
	}
}

func (v *victim) page(r *rand.Rand) readers.Page {
	paths := []string{"/", "/2026/11/night-ferry/", "/2026/11/the-last-carriage/", "/water/"}
	imps := []readers.Imp{{ID: "article_magazine", W: 300, H: 250}, {ID: "sidebar", W: 300, H: 600}, {ID: "top", W: 728, H: 90}}
	return readers.Page{URL: v.url + paths[r.IntN(len(paths))], Imps: imps[:1+r.IntN(3)]}
}

// note keeps what was acknowledged.
func (v *victim) note(d readers.Deed) {
	if d.Status != http.StatusNoContent {
		return
	}
	kind := map[string]journal.Kind{"imp": journal.Impression, "view": journal.View, "click": journal.Click, "cta": journal.CTA, "fold": journal.Fold}[d.What]
	id := requestIDOf(d)
	v.mu.Lock()
	defer v.mu.Unlock()
	if kind != 0 {
		v.told[kind][id] = true
	}
}

// requestIDOf is the request id of a deed's token: written in a beacon's, the hash of
// a fold's.
func requestIDOf(d readers.Deed) string {
	if d.What == "fold" {
		return fmt.Sprintf("%016x", xxh3.HashString(d.Token))
	}
	payload, _, _ := strings.Cut(d.Token, ".")
	text, _ := base64.RawURLEncoding.DecodeString(payload)
	fields := strings.Split(string(text), "|")
	if len(fields) < 11 {
		return ""
	}
	return fields[10]
}

func (v *victim) judge(a readers.Answer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.answers[a.Status]++
	v.removed += len(a.StalePins)
	for _, seat := range a.SeatBid {
		if seat.Dogear == nil {
			continue
		}
		if seat.Dogear.Honored {
			v.honoured++
		}
		if seat.Dogear.Reason != "" {
			v.removed++
		}
	}
}

func (v *victim) counts() string {
	var b strings.Builder
	for k := journal.Impression; k <= journal.Fold; k++ {
		fmt.Fprintf(&b, "%s %d ", k, len(v.told[k]))
	}
	return b.String()
}

// checkJournal compares what was acknowledged with the journal and the reports.
func (v *victim) checkJournal(t *testing.T) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	st, err := store.Open(t.Context(), storeConfig(v.cfg), log)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	journaled := v.journaled(t, st)
	for kind, ids := range v.told {
		lost := 0
		for id := range ids {
			if !journaled[kind][id] {
				lost++
			}
		}
		if lost > 0 {
			t.Errorf("%d of %d acknowledged events of kind %s are not in the journal", lost, len(ids), kind)
		}
	}

	tables, err := projection.OpenTables(t.Context(), reportFile(v.cfg), projectionConfig(v.cfg), log, projections()...)
	if err != nil {
		t.Fatal(err)
	}
	defer tables.Close()
	v.fold(t, tables, st)
	rows, err := tables.Report(t.Context(), projection.Filter{})
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	all := rows[0].Counts
	for kind, got := range map[journal.Kind]int64{
		journal.Impression: all.Organic.Impressions + all.Dogeared.Impressions, journal.View: all.Organic.Viewable + all.Dogeared.Viewable,
		journal.Click: all.Organic.Clicks + all.Dogeared.Clicks, journal.CTA: all.Organic.CTA + all.Dogeared.CTA, journal.Fold: all.Folds,
	} {
		if int(got) != len(journaled[kind]) {
			t.Errorf("the reports have %d of kind %s, the journal %d", got, kind, len(journaled[kind]))
		}
	}
	if all.Suspects > 0 {
		t.Errorf("%d events are suspect: the readers are too fast to be any", all.Suspects)
	}
	v.checkBudgets(t, tables)
}

// journaled are the request ids in the journal by kind.
func (v *victim) journaled(t *testing.T, st *store.Store) map[journal.Kind]map[string]bool {
	t.Helper()
	state, err := st.Journal().State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := map[journal.Kind]map[string]bool{}
	seals := 0
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	err = journal.Read(ctx, st.Journal(), 1, func(records []journal.Record) error {
		for _, r := range records {
			if found[r.Kind] == nil {
				found[r.Kind] = map[string]bool{}
			}
			found[r.Kind][r.RequestID] = true
			if r.Kind == journal.Seal {
				seals++
			}
			if r.Seq == state.Last {
				stop()
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d envelopes, %d seals", state.Last, seals)
	return found
}

// fold brings the tables to the end of the journal.
func (v *victim) fold(t *testing.T, tables *projection.Tables, st *store.Store) {
	t.Helper()
	state, err := st.Journal().State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- tables.Run(ctx, st.Journal()) }()
	within(t, func() bool {
		seq, _, _ := tables.Freshness(projection.Report{}.Name())
		return seq >= state.Last
	})
	stop()
	if err := <-ran; err != nil {
		t.Fatal(err)
	}
}

func (v *victim) checkBudgets(t *testing.T, tables *projection.Tables) {
	t.Helper()
	rows, err := tables.Report(t.Context(), projection.Filter{}, projection.ByDay, projection.ByAdvertiser)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		t.Logf("%s %s: %d of %d micros spent, unbilled %+v", r.Day, r.Advertiser, r.Spend, v.budget(r.Advertiser), r.Unbilled)
		if r.Spend > v.budget(r.Advertiser) {
			t.Errorf("%s has spent %d on %s, of %d", r.Advertiser, r.Spend, r.Day, v.budget(r.Advertiser))
		}
	}
}

// checkReplay folds the journal anew, with the command for it.
func (v *victim) checkReplay(t *testing.T) {
	t.Helper()
	cmd := exec.Command("deckle", "replay", "--verify", "--config", v.file)
	cmd.Dir = filepath.Dir(v.file)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Errorf("replay: %v", err)
	}
}
