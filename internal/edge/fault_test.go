package edge_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"deckle/internal/edge"
	"deckle/internal/obs"
)

// A logged is a log that a test reads.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// lines takes what has been logged so far.
func (l *logged) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return strings.FieldsFunc(l.text.String(), func(r rune) bool { return r == '\n' })
}

// raw is an origin that answers with these bytes and closes the connection.
func raw(answer string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, answer)
	}
}

// dialing makes every connection to the origin end in err.
func dialing(err error) func(*edge.Config) {
	return func(c *edge.Config) {
		c.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, err }
	}
}

// refusal is what a dialer says of a host that does not answer, with its address.
func refusal(err error) error {
	return &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(203, 0, 113, 9), Port: 80}, Err: err}
}

// What its origin does becomes a status for the reader, and a kind of failure,
// never a quotation, for the log.
func TestOriginFails(t *testing.T) {
	for name, c := range map[string]struct {
		config func(*edge.Config)
		origin http.HandlerFunc
		status int
		after  time.Duration
		reason string
	}{
		"refuses":                {dialing(refusal(syscall.ECONNREFUSED)), nil, 502, 0, "connection refused"},
		"resets":                 {dialing(refusal(syscall.ECONNRESET)), nil, 502, 0, "connection closed"},
		"has no name":            {dialing(&net.DNSError{Err: "no such host", Name: "secret.test", IsNotFound: true}), nil, 502, 0, "name not resolved"},
		"does not connect":       {dialing(refusal(syscall.ETIMEDOUT)), nil, 504, 0, "timeout"},
		"never answers":          {nil, hang, 504, 10 * time.Minute, "timeout"},
		"closes":                 {nil, raw(""), 502, 0, "connection closed"},
		"closes within a header": {nil, raw("HTTP/1.1 200 OK\r\nX-Secret: sec"), 502, 0, "connection closed"},
		"sends a bad header":     {nil, raw("HTTP/1.1 200 OK\r\nSet Cookie secret=1\r\n\r\n"), 502, 0, "malformed answer"},
		"sends a bad status":     {nil, raw("HTTP/1.1 secret\r\n\r\n"), 502, 0, "malformed answer"},
		"sends no HTTP":          {nil, raw("secret\r\n\r\n"), 502, 0, "malformed answer"},
		"sends a bad encoding":   {nil, raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: secret\r\n\r\n"), 502, 0, "transport"},
	} {
		t.Run(name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, path string) {
				log := &logged{}
				w := newWorld(t, setup{config: c.config, log: slog.New(slog.NewTextHandler(log, nil))}, c.origin, hang)
				a := w.get(t.Context(), navigation(path))
				if a.status != c.status || a.ended != c.after || a.aborted {
					t.Errorf("status %d after %v (aborted: %v)", a.status, a.ended, a.aborted)
				}
				for name, want := range map[string]string{
					"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
				} {
					if got := a.header.Get(name); got != want {
						t.Errorf("%s = %q", name, got)
					}
				}
				lines := log.lines()
				if len(lines) != 1 || !strings.Contains(lines[0], c.reason) || !strings.Contains(lines[0], "site=test") {
					t.Errorf("logged %q, want one line with %q", lines, c.reason)
				}
				if all := strings.Join(lines, "\n") + a.body(); strings.Contains(all, "secret") || strings.Contains(all, "203.0.113.9") {
					t.Errorf("quoted: %s", all)
				}
			})
		})
	}
}

// An origin that stays down is not a line a request.
func TestFailuresAreLoggedSparingly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		log := &logged{}
		w := newWorld(t, setup{config: dialing(syscall.ECONNREFUSED), log: slog.New(slog.NewTextHandler(log, nil))}, hang, hang)
		for _, c := range []struct {
			wait  time.Duration
			lines int
		}{{0, 1}, {0, 0}, {10*time.Second - 1, 0}, {1, 1}, {9 * time.Second, 0}, {time.Second, 1}} {
			wait(c.wait)
			w.get(t.Context(), navigation("/x"))
			w.get(t.Context(), navigation("/plain"))
			if got := log.lines(); len(got) != c.lines {
				t.Errorf("%v later: %q, want %d lines", c.wait, got, c.lines)
			}
		}
	})
}

// wait lets fake time go by.
func wait(d time.Duration) { <-time.After(d) }

// served serves the edge on a real listener, as the process does, and returns its
// address.
func (w *world) served(t *testing.T) string {
	t.Helper()
	l := w.listen(t, "www.test:80")
	ctx, end := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		c := obs.ServeConfig{Drain: 5 * time.Second, Panics: obs.Panics(), Log: slog.New(slog.DiscardHandler)}
		if err := obs.Serve(ctx, l, w.edge, c); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { end(); serving.Wait() })
	return l.Addr().String()
}

// connect opens a connection and sends a request.
func connect(t *testing.T, addr, request string) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second)) // so that a fault ends the test
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

// To net/http a reader who sends FIN after the request has left. Such a one must
// not take an empty answer for the page.
func TestHalfClosingReader(t *testing.T) {
	for name, path := range ways {
		t.Run(name, func(t *testing.T) {
			asked := make(chan struct{})
			w := newWorld(t, setup{sockets: true}, func(w http.ResponseWriter, r *http.Request) { close(asked); hang(w, r) }, hang)
			conn := connect(t, w.served(t), fmt.Sprintf("GET %s HTTP/1.1\r\nHost: www.test\r\nAccept: text/html\r\nUser-Agent: reader\r\n\r\n", path))
			<-asked
			if err := conn.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(conn); len(got) > 0 {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// A WebSocket is a tunnel: also where pages have slots, and also when the origin
// speaks first.
func TestWebSocket(t *testing.T) {
	echo := func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" || r.Header.Get("Connection") != "Upgrade" {
			t.Errorf("the origin got %v", r.Header)
		}
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Own: 1\r\n\r\nhello ")
		_, _ = io.Copy(conn, buffered)
	}
	for name, path := range ways {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, setup{sockets: true}, echo, hang)
			conn := connect(t, w.served(t), "GET "+path+" HTTP/1.1\r\nHost: www.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-Fetch-Dest: document\r\n\r\n")
			tunnel := bufio.NewReader(conn)
			resp, err := http.ReadResponse(tunnel, nil)
			if err != nil || resp.StatusCode != 101 || resp.Header.Get("X-Own") != "1" {
				t.Fatalf("got %+v, %v", resp, err)
			}
			_, _ = io.WriteString(conn, "one two")
			_ = conn.CloseWrite()
			if got, err := io.ReadAll(tunnel); err != nil || string(got) != "hello one two" {
				t.Errorf("got %q back, %v", got, err)
			}
		})
	}
}

// Any other protocol would take the connection past everything here.
func TestOtherUpgradesAreNotForwarded(t *testing.T) {
	for _, protocol := range []string{"h2c", "TLS/1.0", "websocket, h2c"} {
		eachWay(t, func(t *testing.T, path string) {
			var got http.Header
			w := newWorld(t, setup{}, func(w http.ResponseWriter, r *http.Request) { got = r.Header; html(page)(w, r) }, hang)
			r := navigation(path)
			for name, value := range map[string]string{"Connection": "Upgrade, HTTP2-Settings", "Upgrade": protocol, "HTTP2-Settings": "AAMAAABk"} {
				r.Header.Set(name, value)
			}
			a := w.get(t.Context(), r)
			for _, name := range []string{"Connection", "Upgrade", "Http2-Settings"} {
				if got.Get(name) != "" {
					t.Errorf("%s: the origin got %s: %s", protocol, name, got.Get(name))
				}
			}
			if a.status != 200 || a.body() != page {
				t.Errorf("%s: %d %q", protocol, a.status, a.body())
			}
		})
	}
}

// While its reader takes nothing, a page is not gathered in memory.
func TestSlowReader(t *testing.T) {
	bubble(t, func(t *testing.T) {
		written := 0
		origin := func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			for r.Context().Err() == nil {
				n, err := w.Write(bytes.Repeat([]byte("<p>text</p>"), 1000))
				if err != nil {
					return
				}
				written += n
			}
		}
		w := newWorld(t, setup{}, origin, hang)
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Hour, leave)
		time.AfterFunc(time.Minute, func() {
			synctest.Wait()
			// Twice what is read ahead: once on its way to the reader, once behind it.
			if written < 256<<10 || written > 640<<10 {
				t.Errorf("%d bytes were read ahead of the reader", written)
			}
		})
		w.read(ctx, navigation("/x"), &answer{writing: func() error { <-ctx.Done(); return nil }})
	})
}
