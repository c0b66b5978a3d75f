// Package obs is how the people who run Deckle see into it: one logger, one
// metrics registry, health on the admin listener, and servers that drain before
// they end.
package obs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Logger writes structured lines to w, from level on. Attributes come from a
// fixed list: site, slot, seat, provider, reason, err. Never a token, a TC
// string, an address, a user agent or the query of a URL.
func Logger(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

// Registry returns a metrics registry with the process's own figures in it.
func Registry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// A State says how a part is.
type State string

const (
	OK       State = "ok"
	Degraded State = "degraded"  // somebody should look; pages are served as well as ever
	NotReady State = "not ready" // no traffic should come here
)

// A Check is one line of readiness: a part, how it is, and in words what is wrong
// or worth knowing.
type Check struct {
	Part  string
	State State
	Note  string
}

// Admin is the handler of the admin listener: /metrics, /healthz (the process
// answers) and /readyz (503 when a part is not ready). Both say what they know in
// plain lines.
func Admin(r *prometheus.Registry, ready func() []Check) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(r, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		plain(w, http.StatusOK, "ok\n")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		status, text := readiness(ready())
		plain(w, status, text)
	})
	return mux
}

func readiness(checks []Check) (status int, text string) {
	status = http.StatusOK
	for _, c := range checks {
		if c.State == NotReady {
			status = http.StatusServiceUnavailable
		}
		text += fmt.Sprintf("%s: %s", c.Part, c.State)
		if c.Note != "" {
			text += ": " + c.Note
		}
		text += "\n"
	}
	return status, text
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

// Serve answers requests on ln with h until ctx is done, then accepts no more,
// waits up to drain for those under way, and ends. It closes ln. It returns nil
// after a complete drain.
func Serve(ctx context.Context, ln net.Listener, h http.Handler, drain time.Duration, log *slog.Logger) error {
	// There is no WriteTimeout: a page streams for as long as its origin and its
	// reader go on.
	s := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug), // strangers' bad requests
	}
	drained := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		log.Info("draining", "listener", ln.Addr().String(), "at_most", drain)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer cancel()
		drained <- s.Shutdown(ctx)
	})
	if err := s.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		stop()
		return fmt.Errorf("serve %s: %w", ln.Addr(), err)
	}
	if err := <-drained; err != nil {
		_ = s.Close()
		return fmt.Errorf("drain %s: %w", ln.Addr(), err)
	}
	return nil
}
