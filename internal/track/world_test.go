package track_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/prometheus/client_golang/prometheus"

	"deckle/internal/catalog"
	"deckle/internal/journal"
	"deckle/internal/projection"
	"deckle/internal/publicapi"
	"deckle/internal/store"
	"deckle/internal/store/memory"
	"deckle/internal/token"
	"deckle/internal/track"
)

var quiet = slog.New(slog.DiscardHandler)

// A node is flow C as it is in a process, from the handlers to the log: real tokens,
// catalog, journal and fold.
type node struct {
	testing.TB
	log      store.Log
	catalog  *catalog.Catalog
	ring     *token.Ring
	journal  *journal.Journal
	hot      *projection.Hot // nil: none yet
	config   track.Config
	registry *prometheus.Registry
	handlers map[string]http.Handler
	said     bytes.Buffer // everything that was logged

	stop func() // ends the journal
}

// inBubble runs f with a node on a log in memory, in a synctest bubble.
func inBubble(t *testing.T, f func(n *node, log *memory.Log)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		log := memory.NewLog()
		f(newNode(t, log, nil), log)
	})
}

// newNode makes a node whose configuration change may alter.
func newNode(t testing.TB, log store.Log, change func(*track.Config)) *node {
	t.Helper()
	n := &node{TB: t, log: log, registry: prometheus.NewRegistry()}
	n.openCatalog()
	n.openJournal(journal.Config{})
	n.config = track.Config{
		Tokens: &token.Verifier{
			Keys:         func(site string) (*token.Ring, bool) { return n.ring, site == "blog" || site == "shop" },
			FoldWindow:   30 * time.Minute,
			BeaconWindow: 3 * time.Minute, ClickWindow: 30 * time.Minute,
			MaxSkew: 2 * time.Minute,
		},
		Journal: n.journal,
		Catalog: n.catalog.Snapshot,
		Address: func(r *http.Request) netip.Addr { return netip.MustParseAddrPort(r.RemoteAddr).Addr() },
		Bot:     func(agent string) bool { return strings.Contains(agent, "bot") },
		DataCentre: func(a netip.Addr) bool {
			return netip.MustParsePrefix("198.51.100.0/24").Contains(a)
		},
	}
	if change != nil {
		change(&n.config)
	}
	n.serve()
	return n
}

// serve makes the handlers anew, as after a restart.
func (n *node) serve() {
	n.registry = prometheus.NewRegistry()
	counted, answered := track.NewMetrics(), publicapi.NewMetrics()
	if err := counted.Register(n.registry); err != nil {
		n.Fatal(err)
	}
	if err := answered.Register(n.registry); err != nil {
		n.Fatal(err)
	}
	t := track.New(n.config, counted)
	n.handlers = track.Endpoints(publicapi.New(answered, slog.New(slog.NewTextHandler(&n.said, nil))), func() *track.Tracker { return t })
}

// openCatalog makes a catalog with one creative on two sites.
func (n *node) openCatalog() {
	n.Helper()
	n.catalog = catalog.New(memory.NewKV(), memory.NewKV(), catalog.Config{})
	n.inBackground(n.catalog.Run)
	for _, e := range []catalog.Entity{
		&catalog.Publisher{ID: "yuki", Name: "Yuki Media", Currency: "USD"},
		&catalog.Site{ID: "blog", Publisher: "yuki"},
		&catalog.Site{ID: "shop", Publisher: "yuki"},
		&catalog.Advertiser{ID: "inn", Publisher: "yuki", Name: "An Inn", DailyBudget: 50_000_000, TimeZone: "Asia/Tokyo"},
		&catalog.Campaign{
			ID: "autumn", Advertiser: "inn", Categories: []string{"653"}, ProductCategory: "1529",
			MaxCPM: 4_000_000, DailyBudget: 20_000_000, DogEar: true, LandingURL: "https://www.inn.example/stay",
		},
		&catalog.Creative{ID: "ryokan", Campaign: "autumn", Content: catalog.Content{Pages: []catalog.Page{{Headline: "A quiet room"}}}},
		&catalog.Publisher{ID: "other", Name: "Other Media", Currency: "USD"},
		&catalog.Site{ID: "others", Publisher: "other"},
	} {
		n.put(e)
	}
	if err := n.catalog.WaitForKeys(n.Context(), "yuki", 1); err != nil {
		n.Fatal(err)
	}
	ring, ok := n.catalog.Snapshot().KeyRing("yuki")
	if !ok {
		n.Fatal("no key ring")
	}
	n.ring = token.NewRing(ring.Current.Secret, nil)
}

func (n *node) put(e catalog.Entity) {
	n.Helper()
	now, _ := n.catalog.Get(n.Context(), e.Kind(), e.EntityID())
	r, err := n.catalog.Put(n.Context(), e, catalog.Write{By: "tester", Revision: now.Revision})
	if err == nil {
		err = n.catalog.WaitFor(n.Context(), r.Revision)
	}
	if err != nil {
		n.Fatalf("put %s %s: %v", e.Kind(), e.EntityID(), err)
	}
}

func (n *node) delete(k catalog.Kind, id string) {
	n.Helper()
	now, err := n.catalog.Get(n.Context(), k, id)
	if err == nil {
		now, err = n.catalog.Delete(n.Context(), k, id, catalog.Write{By: "tester", Revision: now.Revision})
	}
	if err == nil {
		err = n.catalog.WaitFor(n.Context(), now.Revision)
	}
	if err != nil {
		n.Fatalf("delete %s %s: %v", k, id, err)
	}
}

func (n *node) openJournal(c journal.Config) {
	n.journal = journal.New(n.log, c, journal.NewMetrics(), quiet)
	n.stop = n.inBackground(n.journal.Run)
}

// foldAlong folds the journal from now on, and lets the tracker know.
func (n *node) foldAlong() {
	n.hot = projection.NewHot(projection.Config{}, quiet)
	n.inBackground(func(ctx context.Context) error { return n.hot.Run(ctx, n.log) })
	if err := n.hot.Wait(n.Context()); err != nil {
		n.Fatal(err)
	}
	n.config.Folded = n.hot.Folded
	n.serve()
}

// inBackground runs f until the test ends or the returned function is called.
func (n *node) inBackground(f func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(n.Context()))
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			n.Errorf("background: %v", err)
		}
	})
	n.Cleanup(stop)
	return stop
}

// An answer is what a browser got.
type answer struct {
	status int
	body   string
	header http.Header
}

// reason is why, from a body of JSON.
func (a answer) reason() string {
	_, rest, _ := strings.Cut(a.body, `"reason":"`)
	reason, _, _ := strings.Cut(rest, `"`)
	return reason
}

func (a answer) String() string { return fmt.Sprintf("%d %s", a.status, a.body) }

const reader = "203.0.113.7"

var browser = http.Header{"User-Agent": {"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}}

// ask sends a request through the front door, as the reader's browser.
func (n *node) ask(method, target, body string) answer {
	n.Helper()
	return n.askAs(reader, browser, method, target, body)
}

// askAs is ask from an address, with a header.
func (n *node) askAs(address string, header http.Header, method, target, body string) answer {
	n.Helper()
	r := httptest.NewRequestWithContext(n.Context(), method, target, io.NopCloser(strings.NewReader(body)))
	r.Header = header.Clone()
	if body != "" && r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "text/plain;charset=UTF-8")
	}
	return n.send(address, r)
}

// send sends a request, and checks what is true of every answer.
func (n *node) send(address string, r *http.Request) answer {
	n.Helper()
	r.RemoteAddr = netip.AddrPortFrom(netip.MustParseAddr(address), 40_000).String()
	path, _, _ := strings.Cut(r.RequestURI, "?")
	h := n.handlers[path]
	if h == nil {
		n.Fatalf("nobody answers for %s", path)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	a := answer{w.Code, w.Body.String(), w.Result().Header}
	if got := a.header.Values("Access-Control-Allow-Origin"); !slices.Equal(got, []string{"*"}) {
		n.Errorf("%s %s: Access-Control-Allow-Origin %q", r.Method, path, got)
	}
	if a.header.Get("Access-Control-Allow-Credentials") != "" || a.header.Get("Cache-Control") != "no-store" {
		n.Errorf("%s %s: header %v", r.Method, path, a.header)
	}
	if a.status == http.StatusServiceUnavailable || a.status == http.StatusTooManyRequests {
		if after := a.header.Get("Retry-After"); after == "" || strings.Trim(after, "0123456789") != "" || after == "0" {
			n.Errorf("%s %s: %d with Retry-After %q", r.Method, path, a.status, after)
		}
	}
	if a.status >= 400 && (a.reason() == "" || strings.Count(a.body, "\n") != 1) {
		n.Errorf("%s %s: %v", r.Method, path, a)
	}
	return a
}

// slot is a filled slot.
func slot() token.Slot {
	return token.Slot{
		Site: "blog", URL: "https://blog.example/hikes", Slot: "sidebar-1",
		Creative: "ryokan", Version: 3, Campaign: "autumn", Advertiser: "inn",
	}
}

// filled is the beacon of the n-th filled slot.
func filled(n int) token.Beacon {
	return token.Beacon{Slot: slot(), Price: 1_460, RequestID: fmt.Sprintf("%016x", n), Leases: []string{"n1-7", "n1-12"}, Category: "653"}
}

// beacon is where the browser tells an event of a slot that has just been filled.
func (n *node) beacon(e token.Event, b token.Beacon) string {
	return "/v1/" + string(e) + "?t=" + n.ring.MintBeacon(e, b, time.Now())
}

func (n *node) foldToken() string { return n.ring.MintFold(slot(), time.Now()) }

// dogear is the body of a fold or an unfold with a token, which may be empty.
func dogear(event, token string) string {
	text, err := json.Marshal(token)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"pub":"blog","url":"https://blog.example/hikes?utm_source=x","creativeId":"ryokan","slotId":"sidebar-1","event":%q,"foldToken":%s,"page":2}`, event, text)
}

// events are all that the log has, without their times, which are checked to be now.
func (n *node) events() []journal.Event {
	n.Helper()
	state, err := n.log.State(n.Context())
	if err != nil {
		n.Fatal(err)
	}
	if state.Last < state.First {
		return nil
	}
	var events []journal.Event
	ctx, stop := context.WithCancel(n.Context())
	defer stop()
	if err := journal.Read(ctx, n.log, 1, func(envelope []journal.Record) error {
		for _, r := range envelope {
			events = append(events, r.Event)
		}
		if envelope[0].Seq == state.Last {
			stop()
		}
		return nil
	}); err != nil {
		n.Fatal(err)
	}
	return events
}

// kinds counts the events of the log by kind.
func (n *node) kinds() map[journal.Kind]int {
	kinds := map[journal.Kind]int{}
	for _, e := range n.events() {
		kinds[e.Kind]++
	}
	return kinds
}

// report folds the journal into the tables and says what they count.
func (n *node) report() projection.Counts {
	n.Helper()
	tables, err := projection.OpenTables(n.Context(), n.TempDir()+"/report.db", projection.Config{}, quiet, projection.Report{})
	if err != nil {
		n.Fatal(err)
	}
	defer tables.Close()
	ctx, stop := context.WithCancel(n.Context())
	defer stop()
	done := make(chan error, 1)
	go func() { done <- tables.Run(ctx, n.log) }()
	state, err := n.log.State(n.Context())
	if err != nil {
		n.Fatal(err)
	}
	for seq := store.Seq(0); seq < state.Last; {
		select {
		case err := <-done:
			n.Fatal(err)
		case <-time.After(time.Millisecond):
			seq, _, _ = tables.Freshness("report")
		}
	}
	rows, err := tables.Report(n.Context(), projection.Filter{})
	if err != nil {
		n.Fatal(err)
	}
	if len(rows) == 0 {
		return projection.Counts{}
	}
	return rows[0].Counts
}

// counted is how often an outcome of an event was counted.
func (n *node) counted(event, outcome string) float64 {
	return n.metric("deckle_track_events_total", map[string]string{"event": event, "outcome": outcome})
}

func (n *node) metric(name string, labels map[string]string) float64 {
	n.Helper()
	families, err := n.registry.Gather()
	if err != nil {
		n.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			same := f.GetName() == name
			for _, l := range m.Label {
				same = same && labels[l.GetName()] == l.GetValue()
			}
			if same {
				return m.Counter.GetValue()
			}
		}
	}
	return 0
}

// want checks an answer's status and reason.
func (n *node) want(what string, got answer, status int, reason string) {
	n.Helper()
	if got.status != status || got.reason() != reason {
		n.Errorf("%s: %v, want %d %s", what, got, status, reason)
	}
}

// escaped writes every byte of a text as a query has it, in one of n spellings.
func escaped(text string, n int) string {
	var b strings.Builder
	for i := range len(text) {
		switch n >> (i % 10) & 1 {
		case 1:
			fmt.Fprintf(&b, "%%%02x", text[i])
		default:
			b.WriteString(url.QueryEscape(text[i : i+1]))
		}
	}
	return b.String()
}

// openStore opens the real, embedded store.
func openStore(t testing.TB, folder string, reserve int64) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{DataDir: folder, Reserve: reserve}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// catalogUnread is a catalog that has not been read.
func catalogUnread() *catalog.Snapshot {
	return catalog.New(memory.NewKV(), memory.NewKV(), catalog.Config{}).Snapshot()
}

// request is a beacon's, until its reader hangs up.
func request(target string) (r *http.Request, hangUp func()) {
	ctx, cancel := context.WithCancel(context.Background())
	r = httptest.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	r.Header = browser.Clone()
	return r, cancel
}

// roundTrip asks a real server.
func roundTrip(t *testing.T, method, target, body string) (status int, header http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "text/plain;charset=UTF-8")
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode, resp.Header
}
