package catalog_test

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"deckle/internal/catalog"
	"deckle/internal/store"
)

// node is a catalog on a bucket that others have as well.
func node(t testing.TB, kv, keys store.KV, c catalog.Config) *world {
	w := &world{TB: t, Catalog: catalog.New(kv, keys, c), ctx: t.Context()}
	w.run()
	return w
}

// The same on the engine: two nodes follow what a third has written, and a restart
// reads it again.
func TestOnTheEngine(t *testing.T) {
	dir := t.TempDir()
	open := func() *store.Store {
		s, err := store.Open(t.Context(), store.Config{DataDir: dir}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	writer := catalog.New(s.Catalog(), s.Keys(), catalog.Config{})
	w := &world{TB: t, Catalog: writer, ctx: t.Context()}
	other := node(t, s.Catalog(), s.Keys(), catalog.Config{})

	w.put(examplePublisher())
	w.put(&catalog.Site{ID: "blog", Publisher: "yuki", AutoApprove: true})
	w.put(exampleAdvertiser())
	w.put(exampleCampaign())
	w.put(exampleCreative())
	until(t, other, "the creative is shown", func(s *catalog.Snapshot) bool { return served(s, "blog", travel)["ryokan"] == 1 })
	ring, _ := other.Snapshot().KeyRing("yuki")

	paused := exampleCampaign()
	paused.Status = catalog.Paused
	r := w.put(paused)
	if err := other.WaitFor(other.ctx, r.Revision); err != nil {
		t.Fatal(err)
	}
	if removed, why := other.Snapshot().Removed("blog", "ryokan", day); why != catalog.CampaignPaused {
		t.Errorf("another node says %v %q", removed, why)
	}
	w.put(exampleCampaign())
	w.delete(catalog.KindCreative, "ryokan")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = open()
	t.Cleanup(func() { _ = s.Close() })
	again := node(t, s.Catalog(), s.Keys(), catalog.Config{})
	if removed, why := again.Snapshot().Removed("blog", "ryokan", day); why != catalog.CreativeDeleted {
		t.Errorf("after a restart: %v %q", removed, why)
	}
	if after, _ := again.Snapshot().KeyRing("yuki"); len(ring.Current.Secret) != 32 || string(after.Current.Secret) != string(ring.Current.Secret) {
		t.Error("the keys have not survived the restart")
	}
}

// until waits for something to be true of a node's snapshot.
func until(t *testing.T, w *world, what string, ok func(*catalog.Snapshot) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for s := w.Snapshot(); !ok(s); s = w.Snapshot() {
		if err := w.WaitFor(ctx, s.Revision()+1); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// How long it takes to import a large catalog into the engine, and to read it at a
// start. DECKLE_SLOW makes it 10,000 campaigns.
func TestManyCampaignsOnTheEngine(t *testing.T) {
	if os.Getenv("DECKLE_SLOW") == "" {
		t.Skip("DECKLE_SLOW is not set")
	}
	s, err := store.Open(t.Context(), store.Config{DataDir: t.TempDir()}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	w := node(t, s.Catalog(), s.Keys(), catalog.Config{})
	start := time.Now()
	w.big(many)
	t.Logf("%d campaigns imported and approved on two sites in %v", many, time.Since(start))
	start = time.Now()
	again := node(t, s.Catalog(), s.Keys(), catalog.Config{})
	t.Logf("read at a start in %v", time.Since(start))
	if got, want := again.Snapshot().Lookup("blog", travel).Len(), w.Snapshot().Lookup("blog", travel).Len(); got != want || got == 0 {
		t.Errorf("%d candidates after a start, want %d", got, want)
	}
}
