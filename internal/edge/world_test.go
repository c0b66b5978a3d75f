package edge_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"deckle"
	"deckle/internal/auction"
	"deckle/internal/consent"
	"deckle/internal/edge"
	"deckle/internal/prebid"
	"deckle/internal/template"
)

// network connects the servers of a test: in memory, so that they can live in a
// synctest bubble, or by sockets of the loopback interface.
type network struct {
	sockets bool // set before the first server

	mu    sync.Mutex
	hosts map[string]net.Listener
}

func (n *network) dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	host := n.hosts[address]
	n.mu.Unlock()
	if host == nil {
		return nil, fmt.Errorf("dial: %w", syscall.ECONNREFUSED)
	}
	memory, ok := host.(*listener)
	if !ok {
		return (&net.Dialer{}).DialContext(ctx, "tcp", host.Addr().String())
	}
	client, server := net.Pipe()
	select {
	case memory.conns <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// listen makes address, which is "host:port", reachable.
func (n *network) listen(t *testing.T, address string) net.Listener {
	t.Helper()
	var l net.Listener = &listener{conns: make(chan net.Conn), closed: make(chan struct{})}
	if n.sockets {
		var err error
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.hosts == nil {
		n.hosts = map[string]net.Listener{}
	}
	n.hosts[address] = l
	return l
}

// serve answers for address until the test ends.
func (n *network) serve(t *testing.T, address string, h http.HandlerFunc) {
	t.Helper()
	l := n.listen(t, address)
	s := &http.Server{Handler: h, DisableGeneralOptionsHandler: true, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	var served sync.WaitGroup
	served.Go(func() { _ = s.Serve(l) })
	t.Cleanup(func() {
		_ = s.Close()
		served.Wait()
	})
}

type listener struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}
func (l *listener) Addr() net.Addr { return &net.TCPAddr{} }

// A world is a site with its origin and one Prebid Server, in memory.
type world struct {
	network
	edge    *edge.Edge
	house   *auction.House
	notices *auction.Notifier
	started time.Time
}

// setup is what a test varies.
type setup struct {
	site     func(*edge.Site)
	config   func(*edge.Config)
	settings func(*template.Settings)
	provider func(*auction.Provider)
	notices  auction.NotifierConfig
	log      *slog.Logger  // default: nothing
	sockets  bool          // real ones, outside of bubbles
	client   http.Handler  // below /_deckle/; default: nothing
	slots    []deckle.Slot // default: one, "top", 300x250, on every path but /plain
	patterns []template.Patterns
}

const (
	originAddr = "origin.test:80"
	prebidAddr = "prebid.test:80"
)

func newWorld(t *testing.T, s setup, origin, bidder http.HandlerFunc) *world {
	t.Helper()
	w := &world{started: time.Now()}
	w.sockets = s.sockets
	w.serve(t, originAddr, origin)
	w.serve(t, prebidAddr, bidder)

	dense, _ := deckle.Granularity("dense")
	settings := template.Settings{
		Enabled: true, AuctionTimeout: 500 * time.Millisecond, HeadHold: 500 * time.Millisecond,
		Buckets: dense, TargetingKeys: []string{"hb_pb", "hb_bidder", "hb_adid"},
	}
	if s.settings != nil {
		s.settings(&settings)
	}
	if s.slots == nil {
		s.slots = []deckle.Slot{slot("top")}
		s.patterns = []template.Patterns{{Include: []string{"/**"}, Exclude: []string{"/plain{,/**}"}}}
	}
	tmpl, err := template.New(settings, s.slots, s.patterns)
	if err != nil {
		t.Fatal(err)
	}
	site := edge.Site{
		ID: "test", Hosts: []string{"www.test"}, Origin: &url.URL{Scheme: "http", Host: "origin.test"},
		Enabled: true, Currency: "USD", Template: func() *template.Template { return tmpl },
		Client: edge.ClientOptions{GPT: "page", GPTURL: "https://gpt.test/gpt.js", Init: "early"},
	}
	if s.site != nil {
		s.site(&site)
	}
	config := edge.Config{
		Sites: []edge.Site{site}, AuctionEnabled: true, Dial: w.dial,
		Consent: consent.Config{UnknownPlace: consent.PlaceOther},
	}
	if s.config != nil {
		s.config(&config)
	}
	log := cmp.Or(s.log, slog.New(slog.DiscardHandler))
	metrics := auction.NewMetrics()
	provider := auction.Provider{
		Name: "prebid", Timeout: time.Second, FireNURL: true,
		Dialect: prebid.New(prebid.Config{ServerURL: "http://prebid.test"}),
	}
	if s.provider != nil {
		s.provider(&provider)
	}
	w.house = auction.New(auction.Config{Dial: w.dial, Providers: []auction.Provider{provider}}, metrics, log)
	w.notices = auction.NewNotifier(s.notices, metrics, log)
	w.edge = edge.New(config, edge.Own{"/_deckle/": cmp.Or[http.Handler](s.client, http.NotFoundHandler()), "/exact": http.NotFoundHandler()}, w.house, w.notices, log)
	t.Cleanup(func() {
		w.edge.Close()
		w.house.Close()
	})
	return w
}

func slot(id deckle.SlotID) deckle.Slot {
	return deckle.Slot{
		ID: id, Kind: deckle.GPT, GAMUnitPath: "/1/{section}/" + string(id), DivID: "div-" + string(id),
		Formats: []deckle.Size{{W: 300, H: 250}}, AdServer: deckle.GAM,
		Targeting: []deckle.KeyValues{{Key: "pos", Values: []string{"atf"}}},
		Prebid:    deckle.PrebidParams{StoredRequest: string(id)},
	}
}

// An answer is what a reader got, and when.
type answer struct {
	started time.Time
	status  int
	header  http.Header
	parts   []part // by flush
	pending bytes.Buffer
	aborted bool // the connection was cut before the end
	ended   time.Duration

	// What a test does to its reader; both may be nil.
	writing  func() error            // before each write; an error: it fails
	flushing func(text string) error // before text is with the reader; an error: it never is
}

type part struct {
	at   time.Duration
	text string
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

func (a *answer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if a.writing != nil {
		if err := a.writing(); err != nil {
			return 0, err
		}
	}
	return a.pending.Write(b)
}

func (a *answer) FlushError() error {
	if a.pending.Len() > 0 {
		if a.flushing != nil {
			if err := a.flushing(a.pending.String()); err != nil {
				return err
			}
		}
		a.parts = append(a.parts, part{time.Since(a.started), a.pending.String()})
		a.pending.Reset()
	}
	return nil
}

func (a *answer) body() string {
	var b strings.Builder
	for _, p := range a.parts {
		b.WriteString(p.text)
	}
	return b.String()
}

// when is the moment at which text was with the reader; negative: never.
func (a *answer) when(text string) time.Duration {
	for i := range a.parts {
		so := answer{parts: a.parts[:i+1]}
		if strings.Contains(so.body(), text) {
			return a.parts[i].at
		}
	}
	return -1
}

// ours are the elements that we put into a page.
var ours = regexp.MustCompile(`(?s)<script type="application/json" data-deckle="(\w+)">(.*?)</script>(?:<script>.*?</script>)?`)

// after is the origin's text that follows one of our data blocks.
func (a *answer) after(name string) string {
	_, rest, _ := strings.Cut(a.body(), `<script type="application/json" data-deckle="`+name+`">`)
	return withoutOurs(`<script type="application/json" data-deckle="` + name + `">` + rest)
}

func withoutOurs(page string) string { return ours.ReplaceAllString(page, "") }

// block decodes one of our data blocks; false: it is not in the page.
func (a *answer) block(t *testing.T, name string, into any) bool {
	t.Helper()
	for _, m := range ours.FindAllStringSubmatch(a.body(), -1) {
		if m[1] == name {
			if err := json.Unmarshal([]byte(m[2]), into); err != nil {
				t.Errorf("block %s: %v in %s", name, err, m[2])
			}
			return true
		}
	}
	return false
}

// navigation is a request as a browser makes it for a document.
func navigation(path string) *http.Request {
	u, err := url.ParseRequestURI(path)
	if err != nil {
		panic(err)
	}
	return &http.Request{
		Method: "GET", URL: u, RequestURI: path, Host: "www.test", RemoteAddr: "192.0.2.7:1234",
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody,
		Header: http.Header{
			"User-Agent":      {"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36"},
			"Accept":          {"text/html,*/*;q=0.8"},
			"Accept-Language": {"de-CH,de;q=0.9,en;q=0.8"},
			"Sec-Fetch-Dest":  {"document"},
		},
	}
}

// get asks the edge and waits for the end of the answer.
func (w *world) get(ctx context.Context, r *http.Request) *answer {
	a := &answer{}
	w.read(ctx, r, a)
	return a
}

// read is get for a reader of a test's own.
func (w *world) read(ctx context.Context, r *http.Request, a *answer) {
	a.started, a.header = time.Now(), http.Header{}
	defer func() {
		switch cut := recover(); cut {
		case nil:
			_ = a.FlushError()
		case http.ErrAbortHandler:
			a.aborted = true
		default:
			panic(cut)
		}
		a.ended = time.Since(a.started)
	}()
	w.edge.ServeHTTP(a, r.WithContext(ctx))
}

// overTheWire sends a request to the edge through a server and a connection, and
// reads the answer as a client does: its header and trailers as they were sent.
func (w *world) overTheWire(t *testing.T, r *http.Request) (*http.Response, string, error) {
	t.Helper()
	const addr = "www.test:80"
	w.serve(t, addr, func(rw http.ResponseWriter, r *http.Request) {
		r.RemoteAddr = "192.0.2.7:1234"
		w.edge.ServeHTTP(rw, r)
	})
	reader := &http.Transport{DialContext: w.dial, DisableCompression: true, DisableKeepAlives: true}
	r.URL.Scheme, r.URL.Host, r.RequestURI = "http", r.Host, ""
	resp, err := reader.RoundTrip(r)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, string(body), err
}

// bubble runs f with fake time.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// html answers with a page, each part at its moment, counted from the request.
func html(parts ...any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		for _, p := range parts {
			switch p := p.(type) {
			case time.Duration:
				if !waitUntil(r.Context(), start.Add(p)) {
					panic(http.ErrAbortHandler)
				}
			case string:
				_, _ = io.WriteString(w, p)
				_ = http.NewResponseController(w).Flush()
			}
		}
	}
}

func waitUntil(ctx context.Context, at time.Time) bool {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// bids answers a bid request after a while with one bid for slot "top".
func bids(after time.Duration, price string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if !waitUntil(r.Context(), time.Now().Add(after)) {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"1","cur":"USD","seatbid":[{"seat":"quick","bid":[{"id":"b1","impid":"top","price":%s,`+
			`"adm":"<b>ad</b>","w":300,"h":250,"nurl":"https://n.test/n?p=${AUCTION_PRICE}","burl":"https://n.test/b?p=${AUCTION_PRICE}"}]}]}`, price)
	}
}

// hang never answers.
func hang(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// drip answers with one byte a second, for ever.
func drip(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	for waitUntil(r.Context(), time.Now().Add(time.Second)) {
		if _, err := w.Write([]byte("{")); err != nil || http.NewResponseController(w).Flush() != nil {
			return
		}
	}
}
