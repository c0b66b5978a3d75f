package publicapi_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deckle/internal/publicapi"
)

// An endpoint of these tests reads its body, or answers without.
func reading(r *publicapi.Request) (publicapi.Answer, error) {
	var b body
	return publicapi.Answer{}, r.ReadJSON(100, &b)
}

func ignoring(*publicapi.Request) (publicapi.Answer, error) { return publicapi.Answer{}, nil }

func limited(*publicapi.Request) (publicapi.Answer, error) {
	return publicapi.Answer{}, publicapi.TooMany(time.Second)
}

// Nobody waits for a body that never comes in order to be told what does not depend
// on it; and whoever is told so sends nothing more on this connection.
func TestAnswerDoesNotWaitForBody(t *testing.T) {
	const text, length = "Content-Type: text/plain\r\n", "Content-Length: 10\r\n"
	for name, c := range map[string]struct {
		answer         publicapi.Func
		method, header string
		status         int
		after          time.Duration
	}{
		"what needs no body":      {ignoring, "POST", length, 204, 250 * time.Millisecond},
		"preflight":               {reading, "OPTIONS", length, 204, 250 * time.Millisecond},
		"wrong method":            {reading, "PUT", length, 405, 250 * time.Millisecond},
		"wrong media type":        {reading, "POST", length, 415, 250 * time.Millisecond},
		"limited":                 {limited, "POST", text + length, 429, 250 * time.Millisecond},
		"in chunks":               {ignoring, "POST", "Transfer-Encoding: chunked\r\n", 204, 250 * time.Millisecond},
		"not worth a moment":      {ignoring, "POST", "Content-Length: 5000\r\n", 204, 0},
		"asks whether to send":    {ignoring, "POST", length + "Expect: 100-continue\r\n", 204, 0},
		"too large, as it says":   {reading, "POST", text + "Content-Length: 101\r\n", 413, 0},
		"far too large":           {reading, "POST", text + "Content-Length: 1000000\r\n", 413, 0},
		"what does need the body": {reading, "POST", text + length, 408, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := publicapi.New(publicapi.NewMetrics(), slog.New(slog.DiscardHandler))
				conn := dial(t, api.Handler("test", c.answer, http.MethodPost))
				start := time.Now()
				fmt.Fprintf(conn, "%s / HTTP/1.1\r\nHost: x\r\n%s\r\n", c.method, c.header)
				in := bufio.NewReader(conn)
				resp, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatal(err)
				}
				if after := time.Since(start); resp.StatusCode != c.status || after != c.after || !resp.Close {
					t.Errorf("%d after %v, closes: %t", resp.StatusCode, after, resp.Close)
				}
				// What comes later is not taken for a request.
				go fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
				if rest, err := io.ReadAll(in); err != nil && len(rest) > 0 || bytes.Contains(rest, []byte("HTTP/1.1")) {
					t.Errorf("after the answer: %q, %v", rest, err)
				}
				if took := time.Since(start); took > 11*time.Second {
					t.Errorf("the connection ended after %v", took)
				}
			})
		})
	}
}

// A body that has come is read, needed or not: the connection goes on, and is not held
// to the time that the body had.
func TestConnectionIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(r *publicapi.Request) (publicapi.Answer, error) {
			select {
			case <-time.After(time.Minute):
				return publicapi.Answer{}, nil
			case <-r.Context().Done():
				return publicapi.Answer{}, r.Context().Err()
			}
		}
		conn := dial(t, publicapi.New(publicapi.NewMetrics(), slog.New(slog.DiscardHandler)).Handler("slow", slow, http.MethodPost))
		in := bufio.NewReader(conn)
		for i, request := range []string{
			"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nping",
			"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nping\r\n0\r\n\r\n",
			"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
			"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nping",
			"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nping",
		} {
			fmt.Fprint(conn, request)
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatalf("request %d: %v", i+1, err)
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.Close || resp.StatusCode != 204 && resp.StatusCode != 405 {
				t.Errorf("request %d: %s, closes: %t, %v", i+1, resp.Status, resp.Close, err)
			}
		}
	})
}

// What is wrong with a body is its sender's doing: it is 400, or told to nobody, and
// never our mistake.
func TestBrokenBody(t *testing.T) {
	for name, sent := range map[string]string{
		"no size of a chunk":       "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
		"a chunk longer than told": "Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n",
		"a huge chunk":             "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
		"a broken trailer":         "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nx\r\n\r\n",
		"it ends early":            "Content-Length: 10\r\n\r\n{",
		"it ends within chunks":    "Transfer-Encoding: chunked\r\n\r\n2\r\n{",
	} {
		t.Run(name, func(t *testing.T) {
			w := overSockets(t, false)
			conn := w.dial(t)
			fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n"+sent)
			if err := conn.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			told, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != 400 || !strings.Contains(string(told), `"reason":"bad_json"`) {
				t.Errorf("%s %s, %v", resp.Status, told, err)
			}
			w.end(t)
		})
	}
}

// A reader who goes in the middle of a body leaves nothing in the log.
func TestReaderGoesInMidBody(t *testing.T) {
	t.Run("TCP reset", func(t *testing.T) {
		w := overSockets(t, false)
		conn := w.dial(t)
		fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\n{")
		<-w.begun
		if err := conn.SetLinger(0); err != nil {
			t.Fatal(err)
		}
		conn.Close()
		w.end(t)
	})
	t.Run("HTTP/2 CANCEL", func(t *testing.T) {
		w := overSockets(t, true)
		ctx, cancel := context.WithCancel(t.Context())
		in, out := io.Pipe()
		defer out.Close()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.server.URL, in)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "text/plain")
		go func() {
			fmt.Fprint(out, "{")
			<-w.begun
			cancel()
		}()
		if resp, err := w.server.Client().Do(r); err == nil {
			t.Error(resp.Status)
		}
		w.end(t)
	})
}

// A socketWorld is an endpoint that reads bodies, over real connections.
type socketWorld struct {
	server       *httptest.Server
	begun, ended chan struct{} // a request has
	log          bytes.Buffer
}

func overSockets(t *testing.T, h2 bool) *socketWorld {
	t.Helper()
	w := &socketWorld{begun: make(chan struct{}, 1), ended: make(chan struct{}, 1)}
	api := publicapi.New(publicapi.NewMetrics(), slog.New(slog.NewTextHandler(&w.log, nil)))
	h := api.Handler("read", func(r *publicapi.Request) (publicapi.Answer, error) {
		w.begun <- struct{}{}
		return reading(r)
	}, http.MethodPost)
	w.server = httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(rw, r)
		w.ended <- struct{}{}
	}))
	w.server.EnableHTTP2 = h2
	if h2 {
		w.server.StartTLS()
	} else {
		w.server.Start()
	}
	t.Cleanup(w.server.Close)
	return w
}

func (w *socketWorld) dial(t *testing.T) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", w.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.(*net.TCPConn)
}

// end waits for the request's end, and checks that nothing was logged.
func (w *socketWorld) end(t *testing.T) {
	t.Helper()
	<-w.ended
	if w.log.Len() > 0 {
		t.Errorf("logged: %s", &w.log)
	}
}
