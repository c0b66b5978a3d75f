package edge_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deckle/internal/edge"
	"deckle/internal/template"
)

// noise is bytes of every kind, as of a picture.
func noise(size int) string {
	b := make([]byte, size)
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(b)
	return string(b)
}

// A badOrigin is an answer as it comes over the wire, and what its reader gets.
type badOrigin struct {
	answer string
	status int
	whole  string // the body, without ours, where the answer is whole; else the reader sees that it is not
}

func badOrigins() map[string]badOrigin {
	const ok, html = "HTTP/1.1 200 OK\r\n", "Content-Type: text/html; charset=utf-8\r\n"
	chunked := ok + html + "Transfer-Encoding: chunked\r\n\r\n"
	text, binary := strings.Repeat("a", 5<<20), noise(1<<20)
	head := "<!doctype html><head>" + strings.Repeat("<meta name=a content=b>", 5<<20/23)
	withLength := func(body string) string {
		return fmt.Sprintf("%s%sContent-Length: %d\r\n\r\n%s", ok, html, len(body), body)
	}
	return map[string]badOrigin{
		"length, too long":           {ok + html + "Content-Length: 5000\r\n\r\n" + page, 200, ""},
		"length, too short":          {ok + html + "Content-Length: 15\r\n\r\n" + page, 200, page[:15]},
		"length, negative":           {ok + html + "Content-Length: -5\r\n\r\n" + page, 502, ""},
		"length, a word":             {ok + html + "Content-Length: five\r\n\r\n" + page, 502, ""},
		"two lengths that differ":    {ok + html + "Content-Length: 15\r\nContent-Length: 16\r\n\r\n" + page, 502, ""},
		"two lengths alike":          {ok + html + "Content-Length: 15\r\nContent-Length: 15\r\n\r\n" + page, 200, page[:15]},
		"length and chunks":          {ok + html + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nf\r\n" + page[:15] + "\r\n0\r\n\r\n", 200, page[:15]},
		"a chunk size of no number":  {chunked + "f\r\n" + page[:15] + "\r\nxyz\r\n" + page, 200, ""},
		"a chunk that is too short":  {chunked + "ffff\r\n" + page, 200, ""},
		"a chunk that is too long":   {chunked + "5\r\n" + page + "\r\n0\r\n\r\n", 200, ""},
		"a chunk size without end":   {chunked + strings.Repeat("0", 1<<20), 200, ""},
		"chunks without end":         {chunked + "f\r\n" + page[:15] + "\r\n", 200, ""},
		"no length, closed":          {ok + html + "\r\n" + page, 200, page},
		"a header without end":       {ok + "X-Long: " + strings.Repeat("x", 1<<20), 502, ""},
		"headers without end":        {ok + strings.Repeat("X-Many: x\r\n", 100_000), 502, ""},
		"a head without end":         {withLength(head), 200, head},
		"5 MB without a tag":         {withLength(text), 200, text},
		"a picture called a page":    {withLength(binary), 200, binary},
		"an empty page":              {withLength(""), 200, ""},
		"a redirect to itself":       {"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", 302, ""},
		"200 after a hundred hints":  {strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 100) + withLength(page), 200, page},
		"another protocol, unasked":  {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", 502, ""},
		"a status that is no status": {"HTTP/1.1 999 What\r\nContent-Length: 0\r\n\r\n", 999, ""},
	}
}

// Whatever an origin sends, its reader gets it whole and unaltered, or sees that it is
// not; and nothing of ours is worse than nothing.
func TestBadOrigins(t *testing.T) {
	for name, c := range badOrigins() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachWay(t, func(t *testing.T, path string) {
				r := navigation(path)
				r = r.WithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
					Got1xxResponse: func(int, textproto.MIMEHeader) error { return nil }, // however many
				}))
				resp, body, err := newWorld(t, setup{}, raw(c.answer), bids(0, "1")).overTheWire(t, r)
				isWhole := c.whole != "" || strings.Contains(c.answer, "Content-Length: 0\r\n")
				if resp == nil && err != nil && !isWhole && c.status == http.StatusOK {
					return // it broke before the first byte was on its way
				}
				if resp == nil || resp.StatusCode != c.status {
					t.Fatalf("got %+v, %v; want %d", resp, err, c.status)
				}
				if c.status == http.StatusBadGateway {
					return
				}
				if isWhole != (err == nil) {
					t.Errorf("after %d bytes: %v", len(body), err)
				}
				if got := withoutOurs(body); isWhole && got != c.whole {
					t.Errorf("%d bytes, want %d: %.200q", len(got), len(c.whole), got)
				}
			})
		})
	}
}

// What could be two requests to one of us and one to the other is none, or is one to
// both (RFC 9112 section 11.2).
func TestSmuggling(t *testing.T) {
	const next = "GET /admin HTTP/1.1\r\nHost: www.test\r\nConnection: close\r\n\r\n"
	for name, request := range map[string]string{
		"length and chunks":           "POST /x HTTP/1.1\r\nHost: www.test\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + next,
		"two lengths":                 "POST /x HTTP/1.1\r\nHost: www.test\r\nContent-Length: 0\r\nContent-Length: 63\r\n\r\n" + next,
		"a length with a sign":        "POST /x HTTP/1.1\r\nHost: www.test\r\nContent-Length: +0\r\n\r\n" + next,
		"an obscure coding":           "POST /x HTTP/1.1\r\nHost: www.test\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + next,
		"a coding in capitals, twice": "POST /x HTTP/1.1\r\nHost: www.test\r\nTransfer-Encoding: Chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + next,
		"a space before the colon":    "POST /x HTTP/1.1\r\nHost: www.test\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + next,
		"a folded header":             "POST /x HTTP/1.1\r\nHost: www.test\r\nX: y\r\n Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n" + next,
		"two hosts":                   "GET /x HTTP/1.1\r\nHost: www.test\r\nHost: evil.test\r\n\r\n" + next,
		"no host":                     "GET /x HTTP/1.1\r\n\r\n" + next,
		"a line feed in the target":   "GET /x\nX: HTTP/1.1\r\nHost: www.test\r\n\r\n" + next,
		"a space in the target":       "GET /x y HTTP/1.1\r\nHost: www.test\r\n\r\n" + next,
		"a bare carriage return":      "GET /x HTTP/1.1\r\nHost: www.test\r\nX: a\rTransfer-Encoding: chunked\r\n\r\n" + next,
		"a chunk extension":           "POST /x HTTP/1.1\r\nHost: www.test\r\nTransfer-Encoding: chunked\r\n\r\n0;a=\n\r\n" + next,
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var asked []string
			origin := func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				asked = append(asked, r.Method+" "+r.RequestURI+" "+r.Host)
				mu.Unlock()
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = io.WriteString(w, "ok")
			}
			w := newWorld(t, setup{sockets: true}, origin, hang)
			conn := connect(t, w.served(t), request)
			_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
			answers := 0
			for in := bufio.NewReader(conn); ; answers++ {
				resp, err := http.ReadResponse(in, nil)
				if err != nil {
					break
				}
				_, _ = io.Copy(io.Discard, resp.Body)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, request := range asked {
				if !strings.HasSuffix(request, " www.test") {
					t.Errorf("the origin was asked %q", request)
				}
			}
			if len(asked) > answers {
				t.Errorf("the origin was asked %q, and the reader has %d answers", asked, answers)
			}
		})
	}
}

// Whatever happens to pages, nothing of them is left: no goroutine, no socket, no
// memory.
func TestNothingIsLeftBehind(t *testing.T) {
	before := goleak.IgnoreCurrent()
	files, memory := openFiles(t), heap()
	t.Run("pages", func(t *testing.T) {
		w, addr := leakyWorld(t)
		rounds := 6
		if os.Getenv("DECKLE_SLOW") != "" {
			rounds = 300
		}
		for i := range rounds {
			for _, path := range leakyPaths() {
				leakyVisit(t, addr, path, i)
			}
		}
		w.edge.Close()
	})
	goleak.VerifyNone(t, before)
	if now := openFiles(t); now > files {
		t.Errorf("%d files are open, and were %d", now, files)
	}
	if now := heap(); now > memory+16<<20 {
		t.Errorf("%d KiB of memory are in use, and were %d", now>>10, memory>>10)
	}
}

func leakyPaths() []string {
	return []string{"/page", "/gzip", "/br", "/zstd", "/cut", "/gzip-cut", "/br-cut", "/zstd-cut", "/stall", "/bomb", "/plain/big", "/none"}
}

// leakyWorld has pages of every kind, and bidders that never answer.
func leakyWorld(t *testing.T) (*world, string) {
	t.Helper()
	big := "<!doctype html><head></head><body>" + strings.Repeat("<p>text</p>", 100_000)
	bodies := map[string]string{"/page": big, "/plain/big": big}
	for _, coding := range []string{"gzip", "br", "zstd"} {
		bodies["/"+coding] = edge.Encoded(coding, big)
		bodies["/"+coding+"-cut"] = bodies["/"+coding][:len(bodies["/"+coding])/2]
	}
	bodies["/bomb"] = edge.Encoded("zstd", "<body>"+strings.Repeat(" ", 20<<20))
	origin := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		coding, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "-")
		if coding == "bomb" {
			coding = "zstd"
		}
		if len(coding) < 5 && coding != "page" && coding != "cut" {
			w.Header().Set("Content-Encoding", coding)
		}
		switch r.URL.Path {
		case "/cut":
			_, _ = io.WriteString(w, big[:5000])
			panic(http.ErrAbortHandler)
		case "/stall":
			_, _ = io.WriteString(w, big[:5000])
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		default:
			_, _ = io.WriteString(w, bodies[r.URL.Path])
		}
	}
	quick := func(s *template.Settings) { s.AuctionTimeout, s.HeadHold = 20*ms, 20*ms }
	w := newWorld(t, setup{sockets: true, settings: quick}, origin, hang)
	return w, w.served(t)
}

// leakyVisit reads a page: whole, a part of it, or not at all.
func leakyVisit(t *testing.T, addr string, path string, how int) {
	t.Helper()
	conn := connect(t, addr, "GET "+path+" HTTP/1.1\r\nHost: www.test\r\nAccept: text/html\r\nUser-Agent: reader\r\n"+
		"Accept-Encoding: gzip, br, zstd\r\nConnection: close\r\n\r\n")
	defer conn.Close()
	switch {
	case how%3 == 0 && path != "/stall":
		_, _ = io.Copy(io.Discard, conn)
	case how%3 < 2:
		_, _ = io.CopyN(io.Discard, conn, 300)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc on this machine")
	}
	return len(files)
}

// heap is how much memory is in use once nothing is kept for later.
func heap() uint64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A reader who leaves ends everything that was done for it: the origin is asked no
// more, and neither is any bidder.
func TestLeavingEndsEverything(t *testing.T) {
	for name, c := range map[string]struct{ path, first string }{
		"before the page": {"/x", ""},
		"in its middle":   {"/x", "<!doctype html><head></head><body>"},
		"plain":           {"/plain", "<!doctype html><head></head><body>"},
	} {
		bubble(t, func(t *testing.T) {
			var left atomic.Int32
			bidder := func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				<-r.Context().Done()
				left.Add(1)
			}
			origin := func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/html; charset=utf-8")
				if c.first != "" {
					_, _ = io.WriteString(w, c.first)
					_ = http.NewResponseController(w).Flush()
				}
				<-r.Context().Done()
				left.Add(1)
			}
			w := newWorld(t, setup{}, origin, bidder)
			ctx, leave := context.WithCancel(t.Context())
			time.AfterFunc(50*ms, leave)
			a := w.get(ctx, navigation(c.path))
			wait(time.Millisecond)
			want := int32(2)
			if c.path == "/plain" {
				want = 1
			}
			// net/http's own proxy cuts off only what a server of net/http serves.
			if left.Load() != want || !a.aborted && c.path != "/plain" || a.ended != 50*ms {
				t.Errorf("%s: %d of %d have been left, after %v", name, left.Load(), want, a.ended)
			}
		})
	}
}

// Connections that say nothing keep nobody from a page, and are closed when their time
// is over.
func TestIdleConnections(t *testing.T) {
	if os.Getenv("DECKLE_SLOW") == "" {
		t.Skip("DECKLE_SLOW is not set")
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, setup{sockets: true}, html(page), bids(0, "1"))
	addr := w.served(t)
	before, memory := runtime.NumGoroutine(), heap()
	idle := make([]net.Conn, min(10_000, int(min(limit.Cur, 1<<20))/2-500)) // both ends are ours
	for i := range idle {
		var err error
		if idle[i], err = net.Dial("tcp", addr); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		if i%2 == 0 { // half of a request is no request
			_, _ = io.WriteString(idle[i], "GET /x HTTP/1.1\r\nHost: www.test\r\n")
		}
	}
	start := time.Now()
	leakyVisit(t, addr, "/x", 0)
	t.Logf("a page took %v beside %d idle connections, which take %d KiB each", time.Since(start), len(idle), (heap()-memory)>>10/uint64(len(idle)))
	for _, c := range idle {
		_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
		if _, err := io.Copy(io.Discard, c); err != nil {
			t.Fatalf("it is kept: %v", err)
		}
		_ = c.Close()
	}
	end := time.After(10 * time.Second)
	for look := time.Tick(50 * time.Millisecond); runtime.NumGoroutine() > before+20; {
		select {
		case <-look:
		case <-end:
			t.Fatalf("%d goroutines are left, and there were %d", runtime.NumGoroutine(), before)
		}
	}
}
