package auction_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/dns/dnsmessage"

	"deckle/internal/auction"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// notify fires the notices at urls and counts what became of them.
func notify(t *testing.T, c auction.NotifierConfig, urls ...string) map[string]int {
	t.Helper()
	m := auction.NewMetrics()
	n := auction.NewNotifier(c, m, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	for _, u := range urls {
		n.Selected(selected(u))
	}
	cancel() // Run sends what waits before it returns
	if err := n.Run(ctx); err != nil {
		t.Fatal(err)
	}
	return counted(t, m, "deckle_notices_total", "outcome")
}

func selected(nurl string) *auction.Result {
	return &auction.Result{Winners: []auction.Winner{{Bid: auction.Bid{NURL: nurl}, EdgeNURL: true}}}
}

// counted sums the counters of a metric by one label.
func counted(t *testing.T, m *auction.Metrics, metric, label string) map[string]int {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	if err := m.Register(r); err != nil {
		t.Fatal(err)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]int)
	for _, f := range families {
		if f.GetName() != metric {
			continue
		}
		for _, s := range f.GetMetric() {
			for _, l := range s.GetLabel() {
				if l.GetName() == label {
					out[l.GetValue()] += int(s.GetCounter().GetValue() + s.GetGauge().GetValue())
				}
			}
		}
	}
	return out
}

func TestNoticeOutcomes(t *testing.T) {
	mux := http.NewServeMux()
	hits := make(chan string, 10)
	mux.HandleFunc("/ok", func(_ http.ResponseWriter, r *http.Request) {
		hits <- r.Method + " " + r.RequestURI + " " + r.Header.Get("Referer") + r.Header.Get("Authorization")
	})
	mux.HandleFunc("/500", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/reset", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	mux.HandleFunc("/to", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.FormValue("u"), http.StatusFound)
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	closed := httptest.NewServer(nil)
	closed.Close()

	for url, want := range map[string]string{
		srv.URL + "/ok?p=1.5":                   "ok",
		srv.URL + "/to?u=/ok":                   "ok",
		srv.URL + "/500":                        "http_status",
		srv.URL + "/404":                        "http_status",
		srv.URL + "/reset":                      "transport",
		closed.URL:                              "transport",
		srv.URL + "/slow":                       "timeout",
		srv.URL + "/to?u=/slow":                 "timeout",
		srv.URL + "/to?u=/to?u=/ok":             "ok",
		srv.URL + "/to?u=ftp://a.example":       "bad_url",
		srv.URL + "/to?u=http://u:p@127.0.0.1/": "bad_url",
		srv.URL + "/to?u=" + strings.TrimPrefix(srv.URL, "http:") + "/ok": "ok",
		"javascript:alert(1)":   "bad_url",
		"http://u:p@127.0.0.1/": "bad_url",
		"/ok":                   "bad_url",
	} {
		got := notify(t, auction.NotifierConfig{Allow: loopback, Timeout: 200 * time.Millisecond}, url)
		if len(got) != 1 || got[want] != 1 {
			t.Errorf("%s: %v, want one %s", url, got, want)
		}
	}
	if got := <-hits; !strings.HasPrefix(got, "GET /ok") || strings.Contains(got, "http") {
		t.Errorf("request = %q, want a GET without referrer", got)
	}
}

func TestNoticeStopsRedirecting(t *testing.T) {
	var hits atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, fmt.Sprintf("/%d", hits.Add(1)), http.StatusFound)
	}))
	defer srv.Close()
	if got := notify(t, auction.NotifierConfig{Allow: loopback}, srv.URL); got["bad_url"] != 1 || hits.Load() != 4 {
		t.Errorf("%v after %d requests, want bad_url after the first and three redirects", got, hits.Load())
	}
}

// addresses that no notice may reach.
var private = []string{
	"127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
	"169.254.169.254", "100.64.0.1", "192.0.0.8", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1",
	"224.0.0.1", "240.0.0.1", "255.255.255.255",
	"::", "::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.0.0.1", "::127.0.0.1", "fe80::1", "fc00::1", "fd12::1",
	"ff02::1", "64:ff9b::7f00:1", "64:ff9b:1::7f00:1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "3fff::1", "4000::1",
}

// Each address is refused as a literal, as what a name resolves to, and as the
// target of a redirect; so are the spellings of a literal that resolvers accept.
func TestNoticesGoToPublicAddressesOnly(t *testing.T) {
	var target atomic.Value
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, target.Load().(string), http.StatusFound)
	}))
	defer srv.Close()
	here := netip.MustParseAddrPort(srv.Listener.Addr().String())
	onlyHere := auction.NotifierConfig{Allow: []netip.Prefix{netip.PrefixFrom(here.Addr(), 32)}}

	for _, ip := range private {
		host := ip
		if strings.Contains(ip, ":") {
			host = "[" + ip + "]"
		}
		if got := notify(t, auction.NotifierConfig{}, "http://"+host+"/"); got["blocked"] != 1 {
			t.Errorf("http://%s/: %v, want blocked", host, got)
		}
		if got := notify(t, auction.NotifierConfig{Resolver: resolver(t, ip)}, "http://n.example/"); got["blocked"] != 1 {
			t.Errorf("a name that resolves to %s: %v, want blocked", ip, got)
		}
		if ip == "127.0.0.1" || ip == "::ffff:127.0.0.1" {
			continue // allowed in what follows
		}
		target.Store("http://" + host + "/")
		if got := notify(t, onlyHere, srv.URL); got["blocked"] != 1 {
			t.Errorf("a redirect to %s: %v, want blocked", host, got)
		}
	}
	target.Store("http://inner.example/")
	onlyHere.Resolver = resolver(t, "10.0.0.1")
	if got := notify(t, onlyHere, srv.URL); got["blocked"] != 1 {
		t.Errorf("a redirect to a name that resolves to 10.0.0.1: %v, want blocked", got)
	}
}

// resolver answers every question with one address, over the DNS protocol.
func resolver(t *testing.T, ip string) *net.Resolver {
	t.Helper()
	addr := netip.MustParseAddr(ip)
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go func() {
			defer func() { _ = far.Close() }()
			if err := answerDNS(far, addr); err != nil && !errors.Is(err, net.ErrClosed) {
				t.Errorf("dns: %v", err)
			}
		}()
		return near, nil
	}}
}

// answerDNS answers one question in the framing of DNS over TCP (RFC 1035
// section 4.2.2), which the resolver uses on what is no packet connection.
func answerDNS(c net.Conn, addr netip.Addr) error {
	buf := make([]byte, 2+512)
	n, err := c.Read(buf)
	if err != nil {
		return err
	}
	var m dnsmessage.Message
	if err := m.Unpack(buf[2:n]); err != nil {
		return err
	}
	m.Response = true
	q := m.Questions[0]
	h := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 1}
	switch {
	case q.Type == dnsmessage.TypeA && addr.Is4():
		m.Answers = []dnsmessage.Resource{{Header: h, Body: &dnsmessage.AResource{A: addr.As4()}}}
	case q.Type == dnsmessage.TypeAAAA && addr.Is6():
		m.Answers = []dnsmessage.Resource{{Header: h, Body: &dnsmessage.AAAAResource{AAAA: addr.As16()}}}
	}
	m.Additionals = nil
	out, err := m.AppendPack([]byte{0, 0})
	if err != nil {
		return err
	}
	out[0], out[1] = byte((len(out)-2)>>8), byte(len(out)-2)
	_, err = c.Write(out)
	return err
}

func TestSelectedIsFiredOnce(t *testing.T) {
	var hits atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer srv.Close()
	m := auction.NewMetrics()
	n := auction.NewNotifier(auction.NotifierConfig{Allow: loopback}, m, slog.New(slog.DiscardHandler))
	r := &auction.Result{Winners: []auction.Winner{
		{Bid: auction.Bid{NURL: srv.URL}, EdgeNURL: true},
		{Bid: auction.Bid{NURL: srv.URL}}, // the client's
		{EdgeNURL: true},                  // has none
	}}
	for range 3 {
		n.Selected(r)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = n.Run(ctx)
	if hits.Load() != 1 {
		t.Errorf("%d requests, want 1", hits.Load())
	}
	n.Selected(selected(srv.URL)) // too late
	if got := counted(t, m, "deckle_notices_total", "outcome"); got["ok"] != 1 || got["dropped"] != 1 {
		t.Errorf("outcomes = %v, want one ok, one dropped", got)
	}
}

func TestFullQueueDrops(t *testing.T) {
	var urls []string
	for range 5 {
		urls = append(urls, "http://127.0.0.1/")
	}
	if got := notify(t, auction.NotifierConfig{Queue: 2}, urls...); got["dropped"] != 3 || got["blocked"] != 2 {
		t.Errorf("outcomes = %v, want three dropped", got)
	}
}

// A server that hangs delays the end by no more than Drain.
func TestDrainEnds(t *testing.T) {
	var once sync.Once
	busy := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		once.Do(func() { close(busy) })
		<-r.Context().Done()
	}))
	defer srv.Close()
	m := auction.NewMetrics()
	n := auction.NewNotifier(auction.NotifierConfig{Allow: loopback, Workers: 1, Timeout: time.Minute, Drain: time.Millisecond}, m, slog.New(slog.DiscardHandler))
	for range 3 {
		n.Selected(selected(srv.URL))
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-busy; cancel() }()
	_ = n.Run(ctx)
	if got := counted(t, m, "deckle_notices_total", "outcome"); len(got) != 1 || got["dropped"] != 3 {
		t.Errorf("outcomes = %v, want three dropped", got)
	}
}

// hosts answers notices at once, but for those to "hangs.test", and counts them.
type hosts struct {
	fired    atomic.Int64 // answered
	underway atomic.Int64 // to the host that hangs
	most     atomic.Int64 // of those at once
}

func (h *hosts) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Hostname() == "hangs.test" {
		h.most.Store(max(h.most.Load(), h.underway.Add(1)))
		defer h.underway.Add(-1)
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	h.fired.Add(1)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// A host that hangs costs nobody else's notices, however many go to it.
func TestHangingHostCostsOnlyItsOwnNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := auction.NewMetrics()
		n := auction.NewNotifier(auction.NotifierConfig{Queue: 64, Workers: 16}, m, slog.New(slog.DiscardHandler))
		h := &hosts{}
		n.Through(h)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- n.Run(ctx) }()
		sent := int64(0)
		for i := range 2000 { // ten seconds of two hundred pages each
			n.Selected(selected("https://hangs.test/n"))
			if i%2 == 0 {
				n.Selected(selected(fmt.Sprintf("https://good-%d.test/n", i%6)))
				sent++
			}
			<-time.After(5 * time.Millisecond)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if h.fired.Load() != sent {
			t.Errorf("%d of %d notices to other hosts were fired", h.fired.Load(), sent)
		}
		if most := h.most.Load(); most != 4 {
			t.Errorf("%d notices were under way to the host that hangs, want a quarter of the workers", most)
		}
		total := 0
		for _, count := range counted(t, m, "deckle_notices_total", "outcome") {
			total += count
		}
		if total != 3000 {
			t.Errorf("%d notices counted, want 3000: each once", total)
		}
	})
}
