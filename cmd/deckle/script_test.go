package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"deckle"
	"deckle/internal/sim"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"deckle": main})
}

// TestScripts runs the real binary through scenarios that a reviewer can read.
// testdata/script/README.md has the commands.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Values[scenarioKey{}] = &scenario{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"origin": cmdOrigin,
			"bidder": cmdBidder,
			"asked":  cmdAsked,
			"serve":  cmdServe,
			"stop":   cmdStop,
			"hangup": cmdHangup,
			"get":    cmdGet,
			"status": cmdStatus,
			"header": cmdHeader,
			"body":   cmdBody,
			"page":   cmdPage,
			"ready":  cmdReady,
			"metric": cmdMetric,
			"logged": cmdLogged,
		},
	})
}

type scenarioKey struct{}

// A scenario is the world of one script, and the last answer in it.
type scenario struct {
	origin *httptest.Server
	bidder *sim.PrebidServer
	prebid *httptest.Server

	server *exec.Cmd
	log    lockedBuffer
	public string // host:port
	admin  string

	resp *http.Response
	body string
}

func of(ts *testscript.TestScript) *scenario { return ts.Value(scenarioKey{}).(*scenario) }

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// cmdOrigin: origin DIR [gzip]. /a/b is DIR/a/b.html, with the header lines of
// DIR/a/b.header. A POST is answered with what was posted.
func cmdOrigin(ts *testscript.TestScript, _ bool, args []string) {
	s, dir := of(ts), ts.MkAbs(args[0])
	zip := len(args) > 1 && args[1] == "gzip"
	s.origin = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			body, _ := io.ReadAll(r.Body)
			fmt.Fprintf(w, "posted to %s: %s", r.RequestURI, body)
			return
		}
		page, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(r.URL.Path)+".html"))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "public, max-age=60")
		w.Header().Set("Etag", `"1"`)
		header, _ := os.ReadFile(filepath.Join(dir, filepath.FromSlash(r.URL.Path)+".header"))
		for line := range strings.Lines(string(header)) {
			if k, v, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
				w.Header().Set(k, v)
			}
		}
		if zip && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = z.Write(page)
			_ = z.Close()
			return
		}
		_, _ = w.Write(page)
	}))
	ts.Defer(s.origin.Close)
	ts.Setenv("ORIGIN", s.origin.URL)
}

// cmdBidder: bidder [FAULT]. A Prebid Server that has 2.50 for slot top and 0.40
// for slot cheap, or that fails in a way of [sim.Faults].
func cmdBidder(ts *testscript.TestScript, _ bool, args []string) {
	s := of(ts)
	size := []deckle.Size{{W: 300, H: 250}}
	if s.bidder == nil {
		s.bidder = sim.NewPrebidServer(sim.PrebidOptions{Stored: map[string]sim.StoredImp{
			"top":   {Formats: size, Offers: []sim.Offer{{Seat: "automatad", CPM: 2.5}}},
			"cheap": {Formats: size, Offers: []sim.Offer{{Seat: "automatad", CPM: 0.4}}},
			"new":   {Formats: size, Offers: []sim.Offer{{Seat: "automatad", CPM: 1.0}}},
		}})
		s.prebid = httptest.NewServer(s.bidder)
		ts.Defer(func() {
			s.prebid.CloseClientConnections()
			s.prebid.Close()
		})
		ts.Setenv("PREBID", s.prebid.URL)
	}
	var fault sim.Fault
	if len(args) > 0 {
		fault = sim.Fault(args[0])
	}
	s.bidder.SetFault(fault)
}

// cmdAsked: asked N. How often bidders have been asked in all.
func cmdAsked(ts *testscript.TestScript, _ bool, args []string) {
	if got := strconv.Itoa(len(of(ts).bidder.Requests())); got != args[0] {
		ts.Fatalf("bidders asked %s times, want %s", got, args[0])
	}
}

// cmdServe: serve FILE. Runs deckle serve with FILE, in which $ORIGIN and $PREBID
// are replaced, and waits until it listens. ! serve expects that it refuses.
func cmdServe(ts *testscript.TestScript, neg bool, args []string) {
	s := of(ts)
	text := os.Expand(ts.ReadFile(args[0]), ts.Getenv)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	path, err := exec.LookPath(filepath.Join(binDir(ts), "deckle"))
	ts.Check(err)
	s.server = exec.CommandContext(ctx, path, "serve", "-config", ts.MkAbs(args[0]))
	s.server.Dir = ts.Getenv("WORK")
	s.server.Env = append(os.Environ(), "HOME="+ts.Getenv("WORK"))
	stderr, err := s.server.StderrPipe()
	ts.Check(err)
	ts.Check(s.server.Start())
	ts.Defer(func() {
		if s.server != nil {
			_ = s.server.Process.Kill()
			_ = s.server.Wait()
		}
		cancel()
	})
	listening := make(chan [2]string, 1)
	go s.follow(stderr, listening)
	where, ok := <-listening
	if ok == neg {
		ts.Fatalf("serves: %v; it said:\n%s", ok, s.log.String())
	}
	s.public, s.admin = where[0], where[1]
	ts.Setenv("DECKLE_ADMIN_URL", "http://"+s.admin)
	if neg {
		_ = s.server.Wait()
		s.server = nil
	}
}

// binDir is where testscript has put deckle: it is first on PATH.
func binDir(ts *testscript.TestScript) string {
	return filepath.SplitList(ts.Getenv("PATH"))[0]
}

var listeningLine = regexp.MustCompile(`msg=listening public=(\S+) admin=(\S+)`)

// follow keeps what the server says, and tells where it listens. The channel is
// closed when it says no more.
func (s *scenario) follow(stderr io.Reader, listening chan<- [2]string) {
	defer close(listening)
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		fmt.Fprintln(&s.log, lines.Text())
		if m := listeningLine.FindStringSubmatch(lines.Text()); m != nil {
			listening <- [2]string{m[1], m[2]}
		}
	}
}

// cmdStop: stop. SIGTERM; the server must end by itself and without an error.
func cmdStop(ts *testscript.TestScript, _ bool, _ []string) {
	s := of(ts)
	ts.Check(s.server.Process.Signal(syscall.SIGTERM))
	if err := s.server.Wait(); err != nil {
		ts.Fatalf("ended with %v; it said:\n%s", err, s.log.String())
	}
	s.server = nil
}

// cmdHangup: hangup. SIGHUP.
func cmdHangup(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Check(of(ts).server.Process.Signal(syscall.SIGHUP))
}

// cmdGet: get [METHOD] [NAME=VALUE…] PATH. Asks as a browser does for a document;
// NAME=VALUE changes a header, NAME= removes it.
func cmdGet(ts *testscript.TestScript, _ bool, args []string) {
	s := of(ts)
	method, path := http.MethodGet, args[len(args)-1]
	var body io.Reader
	req, err := http.NewRequest(method, "http://"+s.public+path, body)
	ts.Check(err)
	for k, v := range map[string]string{
		"User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/156.0", "Sec-Fetch-Dest": "document",
		"Accept": "text/html,*/*;q=0.8", "Accept-Encoding": "identity",
	} {
		req.Header.Set(k, v)
	}
	for _, arg := range args[:len(args)-1] {
		if k, v, ok := strings.Cut(arg, "="); !ok {
			req.Method = arg
		} else if v == "" {
			req.Header[http.CanonicalHeaderKey(k)] = nil
		} else {
			req.Header.Set(k, v)
		}
	}
	if req.Method == http.MethodPost {
		req.Body = io.NopCloser(strings.NewReader("a=1"))
		req.ContentLength = 3
	}
	req.Host = "www.test"
	client := http.Client{
		Timeout:       20 * time.Second, // only against hanging for ever
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	s.resp, err = client.Do(req)
	ts.Check(err)
	defer s.resp.Body.Close()
	b, err := io.ReadAll(s.resp.Body)
	ts.Check(err)
	s.body = string(b)
	if s.resp.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(b))
		ts.Check(err)
		b, err = io.ReadAll(z)
		ts.Check(err)
		s.body = string(b)
	}
}

func cmdStatus(ts *testscript.TestScript, _ bool, args []string) {
	if got := strconv.Itoa(of(ts).resp.StatusCode); got != args[0] {
		ts.Fatalf("status %s, want %s", got, args[0])
	}
}

// cmdHeader: [!] header NAME REGEXP.
func cmdHeader(ts *testscript.TestScript, neg bool, args []string) {
	value := strings.Join(of(ts).resp.Header[http.CanonicalHeaderKey(args[0])], ", ")
	matches(ts, neg, args[1], value, args[0])
}

// cmdBody: [!] body REGEXP.
func cmdBody(ts *testscript.TestScript, neg bool, args []string) {
	matches(ts, neg, args[0], of(ts).body, "body")
}

func matches(ts *testscript.TestScript, neg bool, pattern, text, what string) {
	re, err := regexp.Compile("(?s)" + pattern)
	ts.Check(err)
	if re.MatchString(text) == neg {
		ts.Fatalf("%s does not pass (negated: %v) %s:\n%s", what, neg, pattern, text)
	}
}

var ourElements = regexp.MustCompile(`(?s)<script type="application/json" data-deckle="\w+">.*?</script>(?:<script>.*?</script>)?`)

// cmdPage: page FILE [BLOCK…]. The answer without our elements is FILE, byte for
// byte, and our data blocks are these, in this order.
func cmdPage(ts *testscript.TestScript, _ bool, args []string) {
	s := of(ts)
	if got, want := ourElements.ReplaceAllString(s.body, ""), ts.ReadFile(args[0]); got != want {
		ts.Fatalf("without our elements the page is\n%s\nwant\n%s", got, want)
	}
	var blocks []string
	for _, m := range regexp.MustCompile(`data-deckle="(\w+)"`).FindAllStringSubmatch(s.body, -1) {
		blocks = append(blocks, m[1])
	}
	if got, want := strings.Join(blocks, " "), strings.Join(args[1:], " "); got != want {
		ts.Fatalf("our blocks are %q, want %q; page:\n%s", got, want, s.body)
	}
}

// cmdReady: ready REGEXP. Waits until /readyz says so.
func cmdReady(ts *testscript.TestScript, _ bool, args []string) {
	eventually(ts, "/readyz", args[0])
}

// cmdMetric: metric NAME{LABELS} VALUE. Waits until the metric has the value.
func cmdMetric(ts *testscript.TestScript, _ bool, args []string) {
	eventually(ts, "/metrics", `(?m)^`+regexp.QuoteMeta(args[0]+" "+args[1])+`$`)
}

// cmdLogged: logged REGEXP. Waits until the server has said so.
func cmdLogged(ts *testscript.TestScript, _ bool, args []string) {
	poll(ts, args[0], of(ts).log.String)
}

func eventually(ts *testscript.TestScript, path, pattern string) {
	poll(ts, pattern, func() string {
		resp, err := http.Get("http://" + of(ts).admin + path)
		ts.Check(err)
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		ts.Check(err)
		return string(b)
	})
}

// poll asks until the answer matches, and no longer than twenty seconds.
func poll(ts *testscript.TestScript, pattern string, ask func() string) {
	re, err := regexp.Compile(pattern)
	ts.Check(err)
	deadline := time.After(20 * time.Second)
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	for {
		answer := ask()
		if re.MatchString(answer) {
			return
		}
		select {
		case <-every.C:
		case <-deadline:
			ts.Fatalf("never said %s; last:\n%s", pattern, answer)
		}
	}
}
