package classify_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckle/internal/catalog"
	"deckle/internal/classify"
	"deckle/internal/store"
	"deckle/internal/store/memory"
)

var p0 = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// node runs a classifier until the test ends.
func node(t *testing.T, kv store.KV, c classify.Config) *classify.Classifier {
	t.Helper()
	cl := classify.New(kv, full(t), c)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- cl.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return cl
}

var travel, television = classify.Meta{Sections: []string{"Travel"}}, classify.Meta{Sections: []string{"Television"}}

// pass lets time go by in a bubble.
func pass(d time.Duration) { <-time.After(d) }

func known(cl *classify.Classifier, url string) []string {
	p, _ := cl.Page(&catalog.Site{ID: "yuki-site"}, url, time.Now())
	return short(p)
}

func TestNodesShareWhatTheyLearn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := memory.NewKV()
		here, there := node(t, kv, classify.Config{}), node(t, kv, classify.Config{})
		at := time.Now()
		here.Head("yuki-site", page, travel)
		synctest.Wait()
		p, ok := there.Page(site(), page, time.Now())
		if !ok || short(p)[0] != "6 0.9 section" || !p.At.Equal(at.Truncate(time.Millisecond)) {
			t.Errorf("another node knows %v, %v", p, ok)
		}
		pass(time.Minute)
		there.Head("yuki-site", page, television)
		synctest.Wait()
		if diff := cmp.Diff([]string{"3 0.9 section"}, known(here, page)); diff != "" {
			t.Errorf("after the page has changed: %s", diff)
		}
		later := node(t, kv, classify.Config{})
		synctest.Wait()
		if diff := cmp.Diff([]string{"3 0.9 section"}, known(later, page)); diff != "" {
			t.Errorf("after a restart: %s", diff)
		}
	})
}

// However often a page is read, it is written when that says something: on a
// change, and before it is too old for any site.
func TestAPageIsWrittenSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := memory.NewKV()
		cl := node(t, kv, classify.Config{})
		for range 60 { // an hour and a half, read every 90 seconds by many
			for range 10 {
				cl.Head("yuki-site", page, travel)
			}
			synctest.Wait()
			pass(90 * time.Second)
		}
		if n := gauge(t, cl, "deckle_classify_writes_total", "written"); n != 3 {
			t.Errorf("written %v times in 90 minutes, want 3", n)
		}
		if p, _ := cl.Page(site(), page, time.Now()); time.Since(p.At) != 90*time.Second {
			t.Errorf("known as of %v ago, want of the last reading", time.Since(p.At))
		}
	})
}

// Two nodes that learn the same page at once write it once.
func TestTheFirstNodeWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := memory.NewKV()
		first, second := node(t, kv, classify.Config{}), classify.New(kv, full(t), classify.Config{})
		first.Head("yuki-site", page, travel)
		synctest.Wait()
		second.Head("yuki-site", page, travel)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = second.Run(ctx) }() // its queue may come before its watch
		synctest.Wait()
		if n := gauge(t, second, "deckle_classify_writes_total", "elsewhere"); n != 1 {
			t.Errorf("%v pages are left to the other node, want 1", n)
		}
		if n := gauge(t, second, "deckle_classify_writes_total", "written"); n != 0 {
			t.Errorf("%v pages are written twice", n)
		}
		if diff := cmp.Diff([]string{"6 0.9 section"}, known(second, page)); diff != "" {
			t.Error(diff)
		}
	})
}

// What is forgotten in memory and read again long after is written over what the
// bucket has of it.
func TestForgottenPagesAreWrittenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := memory.NewKV()
		cl := node(t, kv, classify.Config{Remember: 1})
		cl.Head("yuki-site", page, travel)
		synctest.Wait()
		cl.Head("yuki-site", page+"/other", travel)
		synctest.Wait()
		pass(time.Hour)
		cl.Head("yuki-site", page, television)
		synctest.Wait()
		if n := gauge(t, cl, "deckle_classify_writes_total", "written"); n != 3 {
			t.Errorf("%v writes, want 3", n)
		}
		again := node(t, kv, classify.Config{})
		synctest.Wait()
		if diff := cmp.Diff([]string{"3 0.9 section"}, known(again, page)); diff != "" {
			t.Error(diff)
		}
	})
}

// A store that does not answer keeps nobody from knowing pages, and nothing waits
// for it in a queue without end.
func TestAStoreOutOfReach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := memory.NewKV()
		kv.Close()
		cl := node(t, kv, classify.Config{})
		url := func(i int) string { return page + "/" + strings.Repeat("x", i) }
		for i := range 1100 {
			cl.Head("yuki-site", url(i), travel)
		}
		if n := gauge(t, cl, "deckle_classify_writes_total", "dropped"); n < 1 || n > 1100-1024 {
			t.Errorf("%v pages are dropped of 1100", n)
		}
		if known(cl, url(7)) == nil || known(cl, url(1099)) == nil {
			t.Error("a page is not known here")
		}
		pass(time.Minute)
		synctest.Wait()
		failed := gauge(t, cl, "deckle_classify_writes_total", "failed")
		if failed < 1000 {
			t.Errorf("%v writes have failed", failed)
		}
		kv.Reopen()
		cl.Head("yuki-site", url(7), travel)
		pass(time.Second)
		synctest.Wait()
		if n := gauge(t, cl, "deckle_classify_writes_total", "written"); n != 1 {
			t.Errorf("%v pages are written once the store answers, want 1", n)
		}
	})
}

// The disk is the journal's first: pages are written slowly, however fast somebody
// asks for new ones.
func TestWritesAreSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := node(t, memory.NewKV(), classify.Config{WritesPerSecond: 10})
		for i := range 100 {
			cl.Head("yuki-site", page+strings.Repeat("x", i), travel)
		}
		pass(2*time.Second + time.Millisecond)
		synctest.Wait()
		if n := gauge(t, cl, "deckle_classify_writes_total", "written"); n != 30 { // a burst of ten, and ten a second
			t.Errorf("%v writes in two seconds, want 30", n)
		}
	})
}

// What others keep in the bucket, and what we cannot read, harms nothing.
func TestStrangeEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := memory.NewKV()
		const key = "yuki-site/AAAAAAAAAAAAAAAAAAAAAA"
		for i, c := range []struct{ key, value string }{
			{"clock/JBSWY3DPEHPK3PXP", "t"},
			{"x", "{}"},
			{"yuki-site/AAAA", "{}"},
			{key + "1", ""},
			{key + "2", "{"},
			{key + "3", "{}"},
			{key + "4", `{"at":1,"categories":[{"id":"1","confidence":2,"source":"tag"}]}`},
			{key + "5", `{"at":1,"categories":[{"id":"","confidence":1,"source":"tag"}]}`},
			{key + "6", `{"at":1,"categories":[{"id":"1"},{"id":"2"},{"id":"3"},{"id":"4"}]}`},
		} {
			c.key = strings.Replace(c.key, "AA"+c.key[len(c.key)-1:], "A"+c.key[len(c.key)-1:], 1)
			if _, err := kv.Put(t.Context(), c.key, []byte(c.value), 0); err != nil {
				t.Fatal(i, err)
			}
		}
		cl := node(t, kv, classify.Config{})
		cl.Head("yuki-site", page, travel)
		synctest.Wait()
		if known(cl, page) == nil || gauge(t, cl, "deckle_classify_pages", "") != 1 {
			t.Error("the page is not the only one that is known")
		}
		if n := gauge(t, cl, "deckle_classify_unreadable_total", ""); n != 6 {
			t.Errorf("%v entries are unreadable, want 6", n)
		}
	})
}

// No URL, and nothing of one, is ever written.
func TestNoURLIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := memory.NewKV()
		cl := node(t, kv, classify.Config{})
		cl.Head("yuki-site", "https://yukiblog.jp/account?mail=yuki%40example.com&utm_source=letter", travel)
		synctest.Wait()
		entries := 0
		ctx, stop := context.WithCancel(t.Context())
		_ = kv.Watch(ctx, func(c store.Change) error {
			if c.Complete {
				stop()
				return nil
			}
			entries++
			text := c.Key + string(c.Value)
			for _, part := range []string{"yukiblog", "account", "mail", "example", "letter"} {
				if strings.Contains(text, part) {
					t.Errorf("%q is in %q", part, text)
				}
			}
			return nil
		})
		if entries != 1 {
			t.Errorf("%d entries", entries)
		}
	})
}

// The same on the engine.
func TestOnTheEngine(t *testing.T) {
	s, err := store.Open(t.Context(), store.Config{DataDir: t.TempDir()}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	here := node(t, s.Pages(), classify.Config{})
	here.Head("yuki-site", page, travel)
	there := node(t, s.Pages(), classify.Config{})
	deadline := time.After(20 * time.Second)
	for look := time.Tick(5 * time.Millisecond); known(there, page) == nil; {
		select {
		case <-look:
		case <-deadline:
			t.Fatal("another node does not learn of the page")
		}
	}
	if diff := cmp.Diff([]string{"6 0.9 section"}, known(here, page)); diff != "" {
		t.Error(diff)
	}
}
