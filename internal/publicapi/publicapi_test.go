package publicapi_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
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

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"deckle/internal/publicapi"
)

// A body is what the endpoint of these tests takes.
type body struct {
	Pub string `json:"pub"`
	Imp []struct {
		W int    `json:"w"`
		P uint16 `json:"p"`
	} `json:"imp"`
	Seen map[string]struct {
		H int `json:"h"`
	} `json:"seen"`
	On bool `json:"on"`
}

// echo takes a body, and answers as its pub says.
func echo(r *publicapi.Request) (publicapi.Answer, error) {
	var b body
	if err := r.ReadJSON(100, &b); err != nil {
		return publicapi.Answer{}, err
	}
	none := publicapi.Answer{}
	switch b.Pub {
	case "":
		return none, publicapi.Missing("pub")
	case "json":
		return publicapi.Answer{Status: http.StatusOK, Body: []byte(`{"w":300}` + "\n")}, nil
	case "unknown":
		return none, publicapi.UnknownPub()
	case "forbidden":
		return none, fmt.Errorf("wrapped: %w", publicapi.Forbidden("bad_signature", "no"))
	case "limited":
		return none, publicapi.TooMany(1100 * time.Millisecond)
	case "cold":
		return none, publicapi.Unavailable(0)
	case "broken":
		return none, errors.New("disk on fire")
	}
	return none, nil
}

func serve(t testing.TB, log *slog.Logger) (*httptest.Server, *prometheus.Registry) {
	t.Helper()
	m, registry := publicapi.NewMetrics(), prometheus.NewRegistry()
	if err := m.Register(registry); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(publicapi.New(m, log).Handler("echo", echo, http.MethodPost))
	t.Cleanup(s.Close)
	return s, registry
}

// Whatever happens, a page of any origin can read what, and nobody keeps it.
func TestEveryAnswerCanBeRead(t *testing.T) {
	var logged bytes.Buffer
	server, registry := serve(t, slog.New(slog.NewTextHandler(&logged, nil)))
	const text, form = "text/plain;charset=UTF-8", "application/x-www-form-urlencoded"
	for name, c := range map[string]struct {
		method, media, body string
		status              int
		answer              string
		header              http.Header
	}{
		"nothing to say":   {"POST", "application/json", `{"pub":"x"}`, 204, "", nil},
		"sendBeacon":       {"POST", text, `{"pub":"x"}`, 204, "", nil},
		"unknown fields":   {"POST", text, `{"pub":"x","new":{"a":[1]}}`, 204, "", nil},
		"something to say": {"POST", text, `{"pub":"json"}`, 200, `{"w":300}`, nil},
		"preflight": {"OPTIONS", "", "", 204, "", http.Header{
			"Access-Control-Max-Age": {"86400"}, "Access-Control-Allow-Methods": {"POST, OPTIONS"},
			"Access-Control-Allow-Headers": {"Content-Type"}, "Allow": {"POST, OPTIONS"},
		}},
		"wrong method":  {"GET", "", "", 405, `{"error":"this path has POST, OPTIONS","reason":"method"}`, http.Header{"Allow": {"POST, OPTIONS"}}},
		"not JSON":      {"POST", text, `{"pub":`, 400, `{"error":"not JSON at byte 7: unexpected EOF","reason":"bad_json","field":"pub"}`, nil},
		"missing":       {"POST", text, `{}`, 400, `{"error":"is missing","reason":"missing_field","field":"pub"}`, nil},
		"null":          {"POST", text, `{"pub":null}`, 400, `{"error":"is missing","reason":"missing_field","field":"pub"}`, nil},
		"wrong type":    {"POST", text, `{"pub":7}`, 400, `{"error":"must be a text","reason":"wrong_field","field":"pub"}`, nil},
		"forbidden":     {"POST", text, `{"pub":"forbidden"}`, 403, `{"error":"no","reason":"bad_signature"}`, nil},
		"unknown pub":   {"POST", text, `{"pub":"unknown"}`, 404, `{"error":"there is no such site","reason":"unknown_pub","field":"pub"}`, nil},
		"too large":     {"POST", text, `{"pub":"` + strings.Repeat("x", 100) + `"}`, 413, `{"error":"the body has more than 100 bytes","reason":"too_large"}`, nil},
		"a form":        {"POST", form, `pub=x`, 415, `{"error":"want application/json or text/plain in UTF-8, without Content-Encoding","reason":"media_type"}`, nil},
		"no media type": {"POST", "", `{"pub":"x"}`, 415, `{"error":"want application/json or text/plain in UTF-8, without Content-Encoding","reason":"media_type"}`, nil},
		"UTF-16":        {"POST", "text/plain; charset=utf-16", `{"pub":"x"}`, 415, `{"error":"want application/json or text/plain in UTF-8, without Content-Encoding","reason":"media_type"}`, nil},
		"limited": {"POST", text, `{"pub":"limited"}`, 429, `{"error":"too many requests from this address","reason":"rate"}`, http.Header{
			"Retry-After": {"2"}, "Access-Control-Expose-Headers": {"Retry-After"},
		}},
		"our mistake": {"POST", text, `{"pub":"broken"}`, 500, `{"error":"this is our mistake","reason":"internal"}`, nil},
		"not ready":   {"POST", text, `{"pub":"cold"}`, 503, `{"error":"not ready, ask again later","reason":"unavailable"}`, http.Header{"Retry-After": {"1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequest(c.method, server.URL, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			if c.media != "" {
				r.Header.Set("Content-Type", c.media)
			}
			r.Header.Set("Origin", "https://amp.example")
			resp, err := server.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			got, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			want := c.answer
			if want != "" {
				want += "\n"
			}
			if resp.StatusCode != c.status || string(got) != want {
				t.Errorf("%d %s\nwant %d %s", resp.StatusCode, got, c.status, want)
			}
			checkHeader(t, resp.Header, c.header, c.answer != "")
		})
	}
	if got := logged.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "disk on fire") {
		t.Errorf("logged, want our mistake and nothing else:\n%s", got)
	}
	checkCount(t, registry, "429", 1)
	checkCount(t, registry, "415", 3)
}

// checkHeader checks what is in every answer, and what is in this one alone.
func checkHeader(t *testing.T, got, special http.Header, hasBody bool) {
	t.Helper()
	want := http.Header{
		"Access-Control-Allow-Origin":  {"*"},
		"Cache-Control":                {"no-store"},
		"Cross-Origin-Resource-Policy": {"cross-origin"},
		"X-Content-Type-Options":       {"nosniff"},
	}
	if hasBody {
		want.Set("Content-Type", "application/json")
	}
	for name, values := range special {
		want[name] = values
	}
	if _, ok := got["Access-Control-Allow-Credentials"]; ok {
		t.Error("credentials are allowed")
	}
	for name, values := range want {
		if diff := cmp.Diff(values, got[name]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// checkCount checks how often a status was counted.
func checkCount(t *testing.T, registry *prometheus.Registry, status string, want float64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			for _, l := range m.Label {
				if f.GetName() == "deckle_reader_requests_total" && l.GetName() == "status" && l.GetValue() == status {
					if got := m.Counter.GetValue(); got != want {
						t.Errorf("%v answers %s were counted, want %v", got, status, want)
					}
					return
				}
			}
		}
	}
	t.Errorf("no answer %s was counted", status)
}

// Compressed bodies could be bombs, and no browser makes them by itself.
func TestBodyIsNotCompressed(t *testing.T) {
	server, _ := serve(t, slog.New(slog.DiscardHandler))
	r, err := http.NewRequest(http.MethodPost, server.URL, strings.NewReader(`{"pub":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {"text/plain"}, "Content-Encoding": {"gzip"}}
	resp, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnsupportedMediaType {
		t.Error(resp.Status)
	}
}

// A body that does not come costs ten seconds, and whoever waits for an answer after a
// body that did is not taken for gone after them.
func TestSlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(r *publicapi.Request) (publicapi.Answer, error) {
			a, err := echo(r)
			select {
			case <-time.After(time.Minute):
			case <-r.Context().Done(): // as if the reader had gone
			}
			return a, err
		}
		conn := dial(t, publicapi.New(publicapi.NewMetrics(), slog.New(slog.DiscardHandler)).Handler("slow", slow, http.MethodPost))
		ask := func(sent string) (status int, after time.Duration) {
			start := time.Now()
			fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 11\r\n\r\n%s", sent)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			return resp.StatusCode, time.Since(start)
		}
		if status, after := ask(`{"pub":"x"}`); status != 204 || after != time.Minute {
			t.Errorf("a whole body: %d after %v", status, after)
		}
		if status, after := ask(`{"pub`); status != 408 || after != 10*time.Second {
			t.Errorf("half a body: %d after %v", status, after)
		}
	})
}

// dial serves h in a bubble, and gives the browser's end of one connection.
func dial(t *testing.T, h http.Handler) net.Conn {
	t.Helper()
	here, there := net.Pipe()
	once := make(chan net.Conn, 1)
	once <- there
	server := &http.Server{Handler: h}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(oneConn{once, t.Context()}) }()
	t.Cleanup(func() {
		here.Close()
		server.Close()
		<-ended
	})
	return here
}

// oneConn is a listener that gets one connection.
type oneConn struct {
	conn chan net.Conn
	ctx  context.Context
}

func (l oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.ctx.Done():
		return nil, net.ErrClosed
	}
}
func (l oneConn) Close() error   { return nil }
func (l oneConn) Addr() net.Addr { return &net.UnixAddr{} }

func TestDecode(t *testing.T) {
	for in, want := range map[string]publicapi.Error{
		``:                             {Reason: "bad_json", Message: "not JSON at byte 0: unexpected EOF"},
		`{} {}`:                        {Reason: "bad_json", Message: "not JSON at byte 3: invalid character '{' after top-level value"},
		`{"pub":"a","pub":"b"}`:        {Reason: "bad_json", Field: "pub", Message: "not JSON at byte 11: duplicate object member name"},
		`{"x":{"y":1,"y":2}}`:          {Reason: "bad_json", Field: "x.y", Message: "not JSON at byte 12: duplicate object member name"},
		"{\"pub\":\"\xff\"}":           {Reason: "bad_json", Field: "pub", Message: "not JSON at byte 8: invalid UTF-8"},
		`[]`:                           {Reason: "wrong_field", Message: "must be an object"},
		`"pub"`:                        {Reason: "wrong_field", Message: "must be an object"},
		`{"imp":{}}`:                   {Reason: "wrong_field", Field: "imp", Message: "must be a list"},
		`{"imp":[{"w":1},{"w":"1"}]}`:  {Reason: "wrong_field", Field: "imp[1].w", Message: "must be a whole number that is not too large"},
		`{"imp":[{"w":1e99}]}`:         {Reason: "wrong_field", Field: "imp[0].w", Message: "must be a whole number that is not too large"},
		`{"imp":[{"p":-1}]}`:           {Reason: "wrong_field", Field: "imp[0].p", Message: "must be a whole number, not below 0 and not too large"},
		`{"imp":[{"p":65536}]}`:        {Reason: "wrong_field", Field: "imp[0].p", Message: "must be a whole number, not below 0 and not too large"},
		`{"seen":{"c1":{"h":true}}}`:   {Reason: "wrong_field", Field: "seen.c1.h", Message: "must be a whole number that is not too large"},
		`{"seen":[]}`:                  {Reason: "wrong_field", Field: "seen", Message: "must be an object"},
		`{"on":"yes"}`:                 {Reason: "wrong_field", Field: "on", Message: "must be true or false"},
		`{"seen":{"` + long + `":[]}}`: {Reason: "wrong_field", Field: "seen." + long[:123] + "…", Message: "must be an object"},
	} {
		err := publicapi.Decode([]byte(in), &body{})
		got, ok := errors.AsType[*publicapi.Error](err)
		if !ok {
			t.Errorf("%s: %v", in, err)
			continue
		}
		want.Status = http.StatusBadRequest
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Errorf("%s: %s", in, diff)
		}
	}
}

var long = strings.Repeat("a", 200)

// Every body is taken, or refused with one bounded line of JSON.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"pub":"x","imp":[{"w":300,"p":1}],"seen":{"c":{"h":1}},"on":true}`, `{"seen":{"` + long + `":[]}}`,
		"{\"\xff\":1}", `{"a":1,"a":2}`, `[[[[[[`, `{"pub":"\ud800"}`, `{"seen":{"~0~1/":{"h":"x"}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		err := publicapi.Decode(data, &body{})
		if err == nil {
			return
		}
		e, ok := errors.AsType[*publicapi.Error](err)
		if !ok || e.Status != http.StatusBadRequest {
			t.Fatalf("%T: %v", err, err)
		}
		line, err := json.Marshal(e)
		if err != nil || bytes.ContainsAny(line, "\n\r") || len(line) > 1_000 {
			t.Fatalf("%v: %q", err, line)
		}
	})
}
