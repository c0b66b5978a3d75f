package track_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"deckle"
	"deckle/internal/journal"
	"deckle/internal/publicapi"
	"deckle/internal/store"
	"deckle/internal/store/memory"
	"deckle/internal/token"
	"deckle/internal/track"
)

// times are n of the same fault.
func times(n int, f memory.Fault) []memory.Fault { return slices.Repeat([]memory.Fault{f}, n) }

// Whatever the store does, a 204 means that the event is durable; and when the reader
// tells it again, it counts once.
func TestStoreFaults(t *testing.T) {
	slow := memory.Fault{Delay: 3 * time.Second}
	for name, c := range map[string]struct {
		faults  []memory.Fault
		status  int
		took    time.Duration // at most 15 ms more
		durable bool
		after   string // Retry-After
	}{
		"well":                {nil, 204, 0, true, ""},
		"slow":                {times(1, memory.Fault{Delay: 900 * time.Millisecond}), 204, 900 * time.Millisecond, true, ""},
		"gone for a moment":   {times(3, memory.Fault{Refuse: store.ErrUnavailable}), 204, 70 * time.Millisecond, true, ""},
		"answer lost":         {times(1, memory.Fault{LoseAnswer: true}), 204, 10 * time.Millisecond, true, ""},
		"every answer lost":   {times(12, memory.Fault{LoseAnswer: true}), 503, 2 * time.Second, true, "5"},
		"gone":                {times(12, memory.Fault{Refuse: store.ErrUnavailable}), 503, 2 * time.Second, false, "5"},
		"hangs":               {times(2, slow), 503, 2 * time.Second, false, "5"},
		"full":                {times(1, memory.Fault{Refuse: store.ErrFull}), 503, 0, false, "60"},
		"full after a moment": {times(1, memory.Fault{Delay: 900 * time.Millisecond, Refuse: store.ErrFull}), 503, 900 * time.Millisecond, false, "60"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(n *node, log *memory.Log) {
				n.journalLease("n1-7", 10_000)
				n.journalLease("n1-12", 10_000)
				log.Fail(c.faults...)
				target, start := n.beacon(token.Imp, filled(1)), time.Now()
				got := n.ask("GET", target, "")
				if took := time.Since(start); took < c.took || took > c.took+15*time.Millisecond {
					t.Errorf("took %v, want %v", took, c.took)
				}
				if got.status != c.status || got.header.Get("Retry-After") != c.after {
					t.Errorf("%v after %v", got, got.header)
				}
				if durable := n.kinds()[journal.Impression] > 0; durable != c.durable {
					t.Errorf("durable: %v", durable)
				}
				if log.Pending() > 2 { // the last pauses are longer than what is left
					t.Errorf("%d faults have not happened", log.Pending())
				}
				if c.status == 204 {
					n.checkOneImpression()
					return
				}
				log.Fail() // what is left of them is still to come
				for range 5 {
					if n.ask("GET", target, "").status == 204 {
						n.checkOneImpression()
						return
					}
				}
				t.Error("never taken")
			})
		})
	}
}

// journalLease takes a lease that pays.
func (n *node) journalLease(id string, amount deckle.Money) {
	n.Helper()
	e := journal.Event{Kind: journal.Lease, At: time.Now(), Lease: id, Line: "campaign/autumn", Amount: amount}
	if _, err := n.journal.Append(n.Context(), e); err != nil {
		n.Fatal(err)
	}
}

// checkOneImpression checks that the first slot's impression counts once.
func (n *node) checkOneImpression() {
	n.Helper()
	c := n.report()
	if c.Organic.Impressions != 1 || c.Spend != filled(1).Price {
		n.Errorf("%d impressions for %d, want one for %d", c.Organic.Impressions, c.Spend, filled(1).Price)
	}
}

// As many events wait as may wait; the next is refused at once.
func TestJournalIsBusy(t *testing.T) {
	inBubble(t, func(n *node, log *memory.Log) {
		n.stop()
		n.openJournal(journal.Config{Queue: 1})
		n.config.Journal = n.journal
		n.serve()
		log.Fail(memory.Fault{Delay: 900 * time.Millisecond})
		first := make(chan answer, 1)
		go func() { first <- n.ask("GET", n.beacon(token.Imp, filled(1)), "") }()
		synctest.Wait()
		start := time.Now()
		got := n.ask("GET", n.beacon(token.Imp, filled(2)), "")
		n.want("busy", got, 503, "unavailable")
		if got.header.Get("Retry-After") != "1" || time.Since(start) > 0 {
			t.Errorf("%v after %v", got.header, time.Since(start))
		}
		n.want("first", <-first, 204, "")
		n.want("again", n.ask("GET", n.beacon(token.Imp, filled(2)), ""), 204, "")
	})
}

// A journal that is ending takes nothing.
func TestJournalIsClosed(t *testing.T) {
	inBubble(t, func(n *node, _ *memory.Log) {
		n.stop()
		n.want("closed", n.ask("POST", track.DogearPath, dogear("fold", n.foldToken())), 503, "unavailable")
		if len(n.events()) > 0 {
			t.Error("it has written something")
		}
	})
}

// A token that cannot be journaled is our own mistake: it is logged without what is
// in it, and nobody outside is told.
func TestOurMistake(t *testing.T) {
	inBubble(t, func(n *node, _ *memory.Log) {
		wrong := filled(1)
		wrong.URL += "?email=a@b.example"
		target := n.beacon(token.Imp, wrong)
		n.want("query in the token", n.ask("GET", target, ""), 500, "internal")
		said := n.said.String()
		if !strings.Contains(said, "URL has a query") || strings.Contains(said, "email") || strings.Contains(said, target[12:40]) || strings.Contains(said, reader) {
			t.Errorf("said %s", said)
		}
		if n.counted("imp", "failed") != 1 {
			t.Error("not counted")
		}
	})
}

// What this node has folded it does not write again, also after a restart; what
// another has written, and this one has not folded yet, counts once all the same.
func TestTwoNodes(t *testing.T) {
	inBubble(t, func(a *node, log *memory.Log) {
		b := newNode(a.TB, log, nil)
		b.ring = a.ring
		imp, fold := a.beacon(token.Imp, filled(1)), a.foldToken()
		for _, n := range []*node{a, b} {
			n.want("imp", n.ask("GET", imp, ""), 204, "")
			n.want("fold", n.ask("POST", track.DogearPath, dogear("fold", fold)), 204, "")
			time.Sleep(time.Millisecond) // of the bubble: the same bytes twice would be one message
		}
		if got := len(a.events()); got != 4 {
			t.Errorf("%d events, want each from each node", got)
		}
		c := newNode(a.TB, log, nil) // or b after a restart
		c.ring = a.ring
		c.foldAlong()
		c.want("imp", c.ask("GET", imp, ""), 204, "")
		c.want("fold", c.ask("POST", track.DogearPath, dogear("fold", fold)), 204, "")
		if got := len(a.events()); got != 4 || c.counted("imp", "repeat") != 1 {
			t.Errorf("%d events after a repeat at a node that has folded them", got)
		}
		a.want("view by a", a.ask("GET", a.beacon(token.View, filled(1)), ""), 204, "")
		synctest.Wait()
		c.want("view at c", c.ask("GET", a.beacon(token.View, filled(1)), ""), 204, "")
		if got := len(a.events()); got != 5 {
			t.Errorf("%d events", got)
		}
		if r := a.report(); r.Organic.Impressions != 1 || r.Folds != 1 || r.Organic.Viewable != 1 || r.Unbilled.Duplicate != 1 {
			t.Errorf("report %+v", r)
		}
	})
}

// A crowd on the real store: what it was told is durable is there after a restart,
// and counts once.
func TestOnTheRealStore(t *testing.T) {
	t.Parallel()
	const readers, slots = 64, 25
	folder := t.TempDir()
	st := openStore(t, folder, 0)
	n := newNode(t, st.Journal(), nil)
	var all sync.WaitGroup
	for i := range readers {
		all.Go(func() {
			for s := range slots { // every slot is told by four readers
				b := filled(i/4*slots + s)
				n.want("imp", n.askAs(many(i), browser, "GET", n.beacon(token.Imp, b), ""), 204, "")
			}
		})
	}
	all.Wait()
	n.stop()
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}

	st = openStore(t, folder, 0)
	again := newNode(t, st.Journal(), nil)
	again.ring = n.ring
	again.foldAlong()
	for i := range readers / 4 * slots {
		again.want("repeat", again.askAs(many(i), browser, "GET", again.beacon(token.Imp, filled(i)), ""), 204, "")
	}
	if got := again.report(); got.Organic.Impressions != readers/4*slots {
		t.Errorf("%d impressions, want %d", got.Organic.Impressions, readers/4*slots)
	}
	if got := len(again.events()); got != readers/4*slots {
		t.Errorf("%d events, want %d", got, readers/4*slots)
	}
}

// A disk without room costs no promise, and mends by itself.
func TestDiskIsFull(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	st := openStore(t, folder, 0)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	const everything = 1 << 60
	st = openStore(t, folder, everything)
	n := newNode(t, st.Journal(), nil)
	fold := n.foldToken()
	got := n.ask("POST", track.DogearPath, dogear("fold", fold))
	n.want("full", got, 503, "unavailable")
	if got.header.Get("Retry-After") != "60" || len(n.events()) > 0 {
		t.Errorf("%v; %d events", got.header, len(n.events()))
	}
	n.stop()
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	st = openStore(t, folder, 0)
	roomy := newNode(t, st.Journal(), nil)
	roomy.ring = n.ring
	roomy.want("room again", roomy.ask("POST", track.DogearPath, dogear("fold", fold)), 204, "")
	if got := roomy.kinds()[journal.Fold]; got != 1 {
		t.Errorf("%d folds", got)
	}
}

// Through a real server, as a browser sees it.
func TestOverHTTP(t *testing.T) {
	t.Parallel()
	n := newNode(t, memory.NewLog(), nil)
	for path, h := range n.handlers {
		server := httptest.NewServer(h)
		defer server.Close()
		method, target, body := "POST", path, dogear("fold", n.foldToken())
		if path != track.DogearPath {
			method, target, body = "GET", n.beacon(token.Event(strings.TrimPrefix(path, "/v1/")), filled(1)), ""
		}
		status, header := roundTrip(t, method, server.URL+target, body)
		if status != 204 || header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: %d %v", path, status, header)
		}
	}
	if got := len(n.events()); got != 5 {
		t.Errorf("%d events, want one of each", got)
	}
}

// A body that never comes holds up no answer that does not depend on it, at any
// endpoint and for any reason.
func TestNoAnswerWaitsForABody(t *testing.T) {
	t.Parallel()
	n := newNode(t, memory.NewLog(), nil)
	closed := track.Endpoints(publicapi.New(publicapi.NewMetrics(), quiet), func() *track.Tracker { return nil })
	busy := n.config
	busy.Limits = track.DefaultLimits()
	busy.Limits.Refuse = publicapi.Limit{PerMinute: 1, Burst: 1}
	limited := track.New(busy, track.NewMetrics())
	limiting := track.Endpoints(publicapi.New(publicapi.NewMetrics(), quiet), func() *track.Tracker { return limited })
	first := httptest.NewRequest(http.MethodGet, "/v1/imp", nil)
	first.RemoteAddr = "127.0.0.1:1"
	limiting["/v1/imp"].ServeHTTP(httptest.NewRecorder(), first) // takes the one that there is
	for path, h := range n.handlers {
		target, taken := path, 415 // without a media type
		if path != track.DogearPath {
			target, taken = n.beacon(token.Event(strings.TrimPrefix(path, "/v1/")), filled(1)), 204
		}
		for _, c := range []struct {
			handler http.Handler
			method  string
			status  int
		}{{h, "POST", taken}, {h, "PUT", 405}, {h, "OPTIONS", 204}, {closed[path], "POST", 503}, {limiting[path], "POST", 429}} {
			t.Run(fmt.Sprintf("%s %d", path, c.status), func(t *testing.T) {
				t.Parallel()
				if got := statusWithoutBody(t, c.handler, c.method, target); got != c.status {
					t.Errorf("%d, want %d", got, c.status)
				}
			})
		}
	}
}

// statusWithoutBody is the answer to a request that announces a body and sends none.
func statusWithoutBody(t *testing.T, h http.Handler, method, target string) int {
	t.Helper()
	server := httptest.NewServer(h)
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil { // half of what a body has
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n", method, target)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}
