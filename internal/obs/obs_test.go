package obs_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"deckle/internal/obs"
)

func get(tb testing.TB, h http.Handler, path string) (int, string) {
	tb.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w.Code, w.Body.String()
}

func TestAdmin(t *testing.T) {
	checks := []obs.Check{{Part: "templates yuki-site", State: obs.OK, Note: "12 slots"}}
	h := obs.Admin(obs.Registry(), func() []obs.Check { return checks }, http.NotFoundHandler())

	if code, body := get(t, h, "/healthz"); code != 200 || body != "ok\n" {
		t.Errorf("healthz = %d %q", code, body)
	}
	if code, body := get(t, h, "/readyz"); code != 200 || body != "templates yuki-site: ok: 12 slots\n" {
		t.Errorf("readyz = %d %q", code, body)
	}
	checks[0] = obs.Check{Part: "templates yuki-site", State: obs.Degraded, Note: "last good"}
	if code, body := get(t, h, "/readyz"); code != 200 || body != "templates yuki-site: degraded: last good\n" {
		t.Errorf("readyz = %d %q", code, body)
	}
	checks = append(checks, obs.Check{Part: "store", State: obs.NotReady, Note: "disk full"})
	if code, body := get(t, h, "/readyz"); code != 503 || !strings.Contains(body, "store: not ready: disk full\n") {
		t.Errorf("readyz = %d %q", code, body)
	}
	if code, body := get(t, h, "/metrics"); code != 200 || !strings.Contains(body, "go_goroutines") {
		t.Errorf("metrics = %d %.80q", code, body)
	}
	if code, _ := get(t, h, "/other"); code != 404 {
		t.Errorf("other = %d", code)
	}
}

// A request under way when the end comes is answered in full; a later one is not
// accepted.
func TestServeDrains(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	started, release := make(chan struct{}), make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(started)
		<-release
		_, _ = io.WriteString(w, "whole")
	})
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- obs.Serve(ctx, ln, h, obs.ServeConfig{Drain: time.Minute, Panics: obs.Panics(), Log: slog.New(slog.DiscardHandler)})
	}()

	body := make(chan string, 1)
	go func() {
		resp, err := http.Get("http://" + ln.Addr().String())
		if err != nil {
			body <- err.Error()
			return
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		body <- string(b)
	}()
	<-started
	stop()
	for { // until the listener is closed
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			break
		}
		c.Close()
	}
	close(release)
	if got := <-body; got != "whole" {
		t.Errorf("request under way got %q", got)
	}
	if err := <-served; err != nil {
		t.Errorf("serve: %v", err)
	}
}

// Readers' addresses stay out of the log, listeners' do not.
func TestLogHasNoAddresses(t *testing.T) {
	var b strings.Builder
	log := obs.Logger(&b, slog.LevelDebug)
	log.Info("http: TLS handshake error from 203.0.113.7:4711: EOF", "err", errors.New("write tcp 127.0.0.1:8080->[2001:db8::1]:4712: broken pipe"), "public", "127.0.0.1:8080")
	if got := b.String(); strings.Contains(got, "203.0.113.7") || strings.Contains(got, "2001:db8") || !strings.Contains(got, "public=127.0.0.1:8080") {
		t.Error(got)
	}
}

// serveOnce runs h behind Serve and returns its URL and what it logs.
func serveOnce(t *testing.T, h http.Handler, panics prometheus.Counter) (url string, log func() string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() {
		served <- obs.Serve(ctx, ln, h, obs.ServeConfig{Drain: time.Minute, Panics: panics, Log: obs.Logger(&b, slog.LevelWarn)})
	}()
	end := sync.OnceFunc(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(end)
	return "http://" + ln.Addr().String(), func() string { end(); return b.String() }
}

// A panic is seen by its reader as a cut connection, and by us in log and metric.
func TestPanicIsSeen(t *testing.T) {
	panics := obs.Panics()
	url, log := serveOnce(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/cut" {
			panic(http.ErrAbortHandler)
		}
		panic("our own fault")
	}), panics)
	for _, path := range []string{"/", "/cut"} {
		if resp, err := http.Get(url + path); err == nil {
			resp.Body.Close()
			t.Errorf("%s: answered %d", path, resp.StatusCode)
		}
	}
	if got := log(); strings.Count(got, "handler panicked") != 1 || !strings.Contains(got, "our own fault") || !strings.Contains(got, "obs_test.go") {
		t.Errorf("logged %q", got)
	}
	if got := testutil.ToFloat64(panics); got != 1 {
		t.Errorf("counted %v", got)
	}
}

// One deadline for writing does not outlive its request on a kept connection, nor
// does it keep http.ResponseController from what is below.
func TestFlushThroughServe(t *testing.T) {
	url, _ := serveOnce(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.WriteString(w, r.Method); err != nil || http.NewResponseController(w).Flush() != nil {
			t.Errorf("write or flush: %v", err)
		}
	}), obs.Panics())
	for range 2 {
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(b) != "GET" {
			t.Errorf("got %q", b)
		}
	}
}
