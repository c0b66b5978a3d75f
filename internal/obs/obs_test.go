package obs_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

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
	h := obs.Admin(obs.Registry(), func() []obs.Check { return checks })

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
	go func() { served <- obs.Serve(ctx, ln, h, time.Minute, slog.New(slog.DiscardHandler)) }()

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
