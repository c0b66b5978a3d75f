package catalog_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"deckle/internal/catalog"
	"deckle/internal/store"
	"deckle/internal/store/memory"
)

// A gated store holds back the first write of a key until it is let through, so that
// somebody else's come before it.
type gated struct {
	*memory.KV

	mu      sync.Mutex
	key     string // "" for none
	reached chan struct{}
	open    chan struct{}
}

func (g *gated) Put(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	g.mu.Lock()
	held := key == g.key
	if held {
		g.key = ""
	}
	reached, open := g.reached, g.open
	g.mu.Unlock()
	if held {
		close(reached)
		<-open
	}
	return g.KV.Put(ctx, key, value, revision)
}

// hold holds the next write of a key: reached is closed when it comes, and it goes on
// when open is closed.
func (g *gated) hold(key string) (reached <-chan struct{}, open chan<- struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.key, g.reached, g.open = key, make(chan struct{}), make(chan struct{})
	return g.reached, g.open
}

// inGatedWorld is inWorld on a gated store.
func inGatedWorld(t *testing.T, f func(w *world, g *gated)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := &gated{KV: memory.NewKV()}
		keys := memory.NewKV()
		w := &world{TB: t, Catalog: catalog.New(g, keys, catalog.Config{}), ctx: t.Context(), kv: g.KV, keys: keys}
		w.run()
		f(w, g)
	})
}

// An automatic approval that is on its way while a person decides otherwise does not
// stand.
func TestAutomaticApprovalBehindADecision(t *testing.T) {
	for _, test := range []struct {
		name string
		auto bool // by the site instead of an anchor
		do   func(w *world)
	}{
		{"the content is rejected, anchor", false, func(w *world) { w.rejectNow("blog", "ryokan", 1) }},
		{"the content is rejected, auto-approve", true, func(w *world) { w.rejectNow("blog", "ryokan", 1) }},
		{"the site wants to look again", true, func(w *world) {
			w.rejectNow("blog", "garden", 1) // and no anchor is left
			w.put(exampleSite("blog"))
		}},
		{"the anchor is withdrawn", false, func(w *world) { w.rejectNow("blog", "garden", 1) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			inGatedWorld(t, func(w *world, g *gated) {
				w.example()
				garden := exampleCreative()
				garden.ID, garden.Pages[0].Headline = "garden", "A garden"
				w.put(garden)
				site(func(s *catalog.Site) { s.AutoApprove = test.auto })(w)
				w.settled()
				reached, open := g.hold("approval/blog/copy")
				e := exampleCreative()
				e.ID = "copy"
				w.put(e)
				<-reached
				test.do(w)
				close(open)
				if got := w.settled().Approvals("blog", "copy"); got.State(1) != catalog.Pending {
					t.Errorf("decided by itself as %+v", got.Decisions)
				}
				if got := served(w.Snapshot(), "blog", travel)["copy"]; got != 0 {
					t.Errorf("version %d is shown", got)
				}
				w.wantQueue("blog", "copy 1")
			})
		})
	}
}

// rejectNow rejects a version while something else is on its way.
func (w *world) rejectNow(site, creative string, version uint32) {
	w.Helper()
	revision := w.settled().Approvals(site, creative).Revision
	if _, err := w.Reject(w.ctx, site, creative, version, catalog.Write{By: "tester", Revision: revision}); err != nil {
		w.Fatalf("reject version %d of %s on %s: %v", version, creative, site, err)
	}
}

// A person's decision that comes while the automatic approval is looked at again stays.
func TestDecisionBehindAnAutomaticApproval(t *testing.T) {
	inGatedWorld(t, func(w *world, g *gated) {
		w.example()
		reached, open := g.hold("approval/blog/copy")
		e := exampleCreative()
		e.ID = "copy"
		w.put(e)
		<-reached
		w.rejectNow("blog", "ryokan", 1)
		if _, err := w.Approve(w.ctx, "blog", "copy", 1, catalog.Write{By: "second"}); err != nil && !errors.Is(err, catalog.ErrConflict) {
			t.Fatal(err)
		}
		close(open)
		got := w.settled().Approvals("blog", "copy")
		if got.State(1) != catalog.Approved || got.Decisions[0].By != "second" {
			t.Errorf("decided as %+v, want what a person has said", got.Decisions)
		}
	})
}

// Of an approval and a rejection of one version the later one counts for the trust as
// well, wherever the first one is held up.
func TestTrustBehindARejection(t *testing.T) {
	for _, refused := range []bool{false, true} { // the content, before both
		inGatedWorld(t, func(w *world, g *gated) {
			w.put(examplePublisher())
			w.put(exampleSite("blog"))
			w.put(exampleAdvertiser())
			w.put(exampleCampaign())
			w.put(exampleCreative())
			if refused {
				w.reject("blog", "ryokan", 1)
			}
			revision := w.settled().Approvals("blog", "ryokan").Revision
			reached, open := g.hold("trust/blog/autumn")
			done := make(chan error, 1)
			go func() {
				_, err := w.Approve(w.ctx, "blog", "ryokan", 1, catalog.Write{By: "one", Revision: revision})
				done <- err
			}()
			<-reached
			w.rejectNow("blog", "ryokan", 1)
			close(open)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if got := w.settled().Anchors("blog", "autumn"); len(got) > 0 {
				t.Errorf("refused before %v: anchors are %q, and the last word was no", refused, got)
			}
			e := exampleCreative()
			e.ID = "copy"
			w.put(e)
			site(func(s *catalog.Site) { s.AutoApprove = true })(w)
			if got := w.settled().Approvals("blog", "copy"); got.State(1) != catalog.Pending {
				t.Errorf("refused before %v: a copy is decided by itself as %+v", refused, got.Decisions)
			}
		})
	}
}

// The anchor that an approval makes between the two writes of a rejection is withdrawn.
func TestTrustWithinARejection(t *testing.T) {
	inGatedWorld(t, func(w *world, g *gated) {
		w.example()
		w.newVersion("Another room")
		revision := w.settled().Approvals("blog", "ryokan").Revision
		reached, open := g.hold("approval/blog/ryokan")
		done := make(chan error, 1)
		go func() {
			_, err := w.Reject(w.ctx, "blog", "ryokan", 1, catalog.Write{By: "one", Revision: revision})
			done <- err
		}()
		<-reached // the trust is withdrawn, the version still approved
		garden := exampleCreative()
		garden.ID, garden.Pages[0].Headline = "garden", "A garden"
		w.put(garden)
		if _, err := w.Approve(w.ctx, "blog", "garden", 1, catalog.Write{By: "two"}); err != nil {
			t.Fatal(err)
		}
		close(open)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if got := w.settled().Anchors("blog", "autumn"); len(got) > 0 {
			t.Errorf("anchors are %q behind a rejection", got)
		}
	})
}

// A publisher whose deletion had no answer, while an advertiser came to be below it, is
// put back when it is deleted again. Until then the catalog can be exported.
func TestPublisherDeletedWithoutAnAnswer(t *testing.T) {
	for _, document := range []bool{false, true} {
		inGatedWorld(t, func(w *world, g *gated) {
			p := w.put(examplePublisher())
			w.settled()
			by := catalog.Write{By: "two", Revision: p.Revision}
			remove := func() error {
				_, err := w.Delete(w.ctx, catalog.KindPublisher, "yuki", by)
				return err
			}
			if document {
				diff, err := w.Import(&catalog.Document{Delete: []string{"publisher/yuki"}})
				if err != nil {
					t.Fatal(err)
				}
				remove = func() error {
					_, err := w.Apply(w.ctx, diff, "two")
					return err
				}
			}
			reached, open := g.hold("publisher/yuki")
			done := make(chan error, 1)
			go func() { done <- remove() }()
			<-reached
			w.put(exampleAdvertiser())
			w.put(exampleCampaign())
			w.kv.Fail(lost)
			close(open)
			err := <-done
			if !document {
				if !errors.Is(err, store.ErrUnavailable) {
					t.Fatalf("deleted: %v", err)
				}
				w.checkOrphans()
				err = remove()
			}
			if !errors.Is(err, catalog.ErrInvalid) {
				t.Errorf("document %v: got %v, want that there is an advertiser", document, err)
			}
			if _, ok := w.settled().Publisher("yuki"); !ok {
				t.Errorf("document %v: the publisher of a living advertiser is deleted", document)
			}
		})
	}
}

// So it is where the tombstone was to be the first half of another currency.
func TestCurrencyChangedWithoutAnAnswer(t *testing.T) {
	inGatedWorld(t, func(w *world, g *gated) {
		w.put(examplePublisher())
		w.settled()
		euros := &catalog.Document{Publishers: []*catalog.Publisher{examplePublisher()}}
		euros.Publishers[0].Currency = "EUR"
		diff, err := w.Import(euros)
		if err != nil {
			t.Fatal(err)
		}
		reached, open := g.hold("publisher/yuki")
		done := make(chan error, 1)
		go func() {
			_, err := w.Apply(w.ctx, diff, "two")
			done <- err
		}()
		<-reached
		w.put(exampleAdvertiser())
		w.kv.Fail(lost)
		close(open)
		if err := <-done; !errors.Is(err, catalog.ErrInvalid) {
			t.Errorf("got %v, want that there is an advertiser", err)
		}
		if p, ok := w.settled().Publisher("yuki"); !ok || p.Currency != "USD" {
			t.Errorf("the publisher is %+v, living %v", p, ok)
		}
	})
}

// checkOrphans exports a catalog with an advertiser whose publisher is deleted.
func (w *world) checkOrphans() {
	w.Helper()
	d := w.settled().Export()
	if len(d.Advertisers) > 0 || len(d.Tombstones.Advertisers) != 1 || len(d.Tombstones.Publishers) != 1 {
		w.Errorf("exported: living %v, tombstones %+v", d.Advertisers, d.Tombstones)
	}
	other := w.roundTrip(catalog.Config{})
	if _, ok := other.settled().Advertiser("inn"); ok {
		w.Error("the advertiser of no publisher lives after an import")
	}
}
