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
	"regexp"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Logger writes structured lines to w, from level on. Attributes come from a
// fixed list: site, slot, seat, provider, reason, err. Never a token, a TC
// string, an address, a user agent or the query of a URL.
func Logger(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: withoutAddresses}))
}

// address is an IP address with a port, as the errors of package net have it.
var address = regexp.MustCompile(`\b\d{1,3}(?:\.\d{1,3}){3}:\d+|\[[0-9a-fA-F:.%\w]+\]:\d+`)

// withoutAddresses keeps the addresses of readers, which errors of connections
// name, out of messages and errors. Listeners are told in attributes of their own.
func withoutAddresses(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.MessageKey || a.Key == "err" {
		if s := a.Value.String(); address.MatchString(s) {
			return slog.String(a.Key, address.ReplaceAllString(s, "address"))
		}
	}
	return a
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
// answers) and /readyz (503 when a part is not ready), which say what they know in
// plain lines; everything else is rest's.
func Admin(r *prometheus.Registry, ready func() []Check, rest http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(r, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		plain(w, http.StatusOK, "ok\n")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		status, text := readiness(ready())
		plain(w, status, text)
	})
	mux.Handle("/", rest)
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

// ServeConfig configures [Serve].
type ServeConfig struct {
	Drain  time.Duration      // how long requests under way may take at the end
	Panics prometheus.Counter // of handlers; see [Panics]
	Log    *slog.Logger
}

// Panics makes the counter of requests that ended in a panic of ours.
func Panics() prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: "deckle", Name: "handler_panics_total", Help: "Requests that ended in a panic of ours.",
	})
}

// Serve answers requests on ln with h until ctx is done, then accepts no more,
// waits up to c.Drain for those under way, and ends. It closes ln. It returns nil
// after a complete drain.
//
// A handler that panics costs its request: it is counted, logged with its stack,
// and the connection is cut. A reader who takes nothing for two minutes is left.
func Serve(ctx context.Context, ln net.Listener, h http.Handler, c ServeConfig) error {
	// There is no WriteTimeout: a page streams for as long as its origin and its
	// reader go on.
	s := &http.Server{
		Handler:                      Guard(h, c),
		DisableGeneralOptionsHandler: true, // OPTIONS * is the origin's to answer
		ReadHeaderTimeout:            10 * time.Second,
		IdleTimeout:                  2 * time.Minute,
		MaxHeaderBytes:               64 << 10,
		ErrorLog:                     slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug), // strangers' bad requests
	}
	drained := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		c.Log.Info("draining", "listener", ln.Addr().String(), "at_most", c.Drain)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Drain)
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

// Guard is what [Serve] puts around its handler, for servers that are not ours: a
// panic costs its request, and a reader who takes nothing for two minutes is left.
func Guard(h http.Handler, c ServeConfig) http.Handler { return steady(recovered(h, c)) }

// recovered is the one place where a panic of a handler ends.
func recovered(h http.Handler, c ServeConfig) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v != http.ErrAbortHandler { // that one is meant: the reader must see a broken answer
				c.Panics.Inc()
				c.Log.Error("handler panicked", "err", v, "stack", string(debug.Stack()))
			}
			panic(http.ErrAbortHandler)
		}()
		h.ServeHTTP(w, r)
	})
}

// patience is how long a reader may take nothing.
const patience = 2 * time.Minute

// steady moves a deadline for writing along with what is written.
func steady(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := &steadyWriter{ResponseWriter: w, rc: http.NewResponseController(w)}
		s.extend()
		h.ServeHTTP(s, r)
	})
}

type steadyWriter struct {
	http.ResponseWriter
	rc       *http.ResponseController
	extended time.Time
}

// extend sets the deadline anew. It can fail only where there is none to set.
func (s *steadyWriter) extend() {
	s.extended = time.Now()
	_ = s.rc.SetWriteDeadline(s.extended.Add(patience))
}

func (s *steadyWriter) Write(b []byte) (int, error) {
	if time.Since(s.extended) > patience/8 {
		s.extend()
	}
	return s.ResponseWriter.Write(b)
}

// Unwrap gives http.ResponseController what is below.
func (s *steadyWriter) Unwrap() http.ResponseWriter { return s.ResponseWriter }
