package sim_test

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"deckle/internal/sim"
)

// Every link of the magazine leads somewhere, every page has balanced tags and no
// resource of another host, and the home page links at least ten dated articles.
func TestMagazine(t *testing.T) {
	w := start(t, sim.Options{})
	seen := map[string]bool{}
	queue := []string{"/"}
	for len(queue) > 0 {
		path := queue[0]
		queue = queue[1:]
		if seen[path] || strings.HasPrefix(path, "/preferences/") {
			continue
		}
		seen[path] = true
		resp, body := get(t, w.PublisherURL+path)
		if resp.StatusCode != http.StatusOK {
			t.Errorf("GET %s: status %d", path, resp.StatusCode)
		}
		if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") {
			queue = append(queue, links(t, w, path, body)...)
		}
	}
	dated := 0
	for path := range seen {
		if regexp.MustCompile(`^/2026/11/[a-z-]+/$`).MatchString(path) {
			dated++
		}
	}
	if dated < 10 {
		t.Errorf("%d dated articles, want at least 10", dated)
	}
}

// links are the addresses in a page; what is not the magazine's own is an error.
func links(t *testing.T, w *sim.World, path, body string) []string {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for n := range doc.Descendants() {
		for _, a := range n.Attr {
			switch {
			case a.Key != "href" && a.Key != "src" && a.Key != "action":
			case a.Val == w.GPTURL(), strings.HasPrefix(a.Val, "#"), a.Key == "action":
			case !strings.HasPrefix(a.Val, "/") || strings.HasPrefix(a.Val, "//"):
				t.Errorf("%s has a link out of the magazine: %s", path, a.Val)
			default:
				found = append(found, a.Val)
			}
		}
	}
	return found
}

// Every slot of the template has its container on some page, and the other way round.
func TestTemplateAndContainersAgree(t *testing.T) {
	w := start(t, sim.Options{})
	inTemplate := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^div_id +=.*"(.*)"`).FindAllStringSubmatch(sim.Template(), -1) {
		inTemplate[m[1]] = true
	}
	onPages := map[string]bool{}
	for _, path := range []string{"/", "/rail/", "/2026/11/night-ferry/"} {
		_, body := get(t, w.PublisherURL+path)
		for _, m := range regexp.MustCompile(`id="(div-[^"]*)"`).FindAllStringSubmatch(body, -1) {
			onPages[m[1]] = true
			if !inTemplate[m[1]] {
				t.Errorf("%s: container %s has no slot", path, m[1])
			}
		}
	}
	for id := range inTemplate {
		if !onPages[id] {
			t.Errorf("slot of %s has no container", id)
		}
	}
}

func TestPreferencesWriteTheTCString(t *testing.T) {
	p := sim.NewPublisher(sim.PublisherOptions{})
	for choice, want := range map[string]string{"accept": sim.TCAccepted, "refuse": sim.TCRefused, "forget": ""} {
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/preferences/"+choice+"?from=/rail/", nil))
		cookies := w.Result().Cookies()
		if len(cookies) != 1 || cookies[0].Name != "euconsent-v2" || cookies[0].Value != want {
			t.Errorf("%s: cookies = %v", choice, cookies)
		}
		if to := w.Header().Get("Location"); to != "/rail/" {
			t.Errorf("%s leads to %q", choice, to)
		}
	}
	for _, from := range []string{"https://evil.example/", "//evil.example/", `/\evil.example`, "x"} {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/preferences/accept", nil)
		r.URL.RawQuery = "from=" + from
		p.ServeHTTP(w, r)
		if to := w.Header().Get("Location"); to != "/" {
			t.Errorf("from=%s leads to %q", from, to)
		}
	}
}

func TestPageFaults(t *testing.T) {
	t.Parallel()
	w := start(t, sim.Options{})
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	tests := []struct {
		name   string
		page   sim.Page
		status int
		body   string
		broken bool // the body ends with an error
	}{
		{"fragment", sim.Page{Chunks: []string{"<p>one", "<p>two"}}, 200, "<p>one<p>two", false},
		{"error", sim.Page{Status: 500, Chunks: []string{"down"}}, 500, "down", false},
		{"redirect", sim.Page{Status: 302, Header: http.Header{"Location": {"https://x.example/"}}}, 302, "", false},
		{"truncated", sim.Page{Chunks: []string{"half"}, Length: 100}, 200, "half", true},
		{"cut", sim.Page{Chunks: []string{"half"}, Abort: true}, 200, "half", true},
		{"stalled", sim.Page{Chunks: []string{"half"}, Stall: true}, 200, "half", true},
		{"slow", sim.Page{FirstByte: time.Minute}, 0, "", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w.Publisher.Handle("/fault", test.page)
			client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
			if test.page.Stall || test.page.FirstByte > 0 {
				client.Timeout = time.Second
			}
			status, body, err := fetch(t, client, w.PublisherURL+"/fault")
			if status != test.status || body != test.body || (err != nil) != test.broken {
				t.Errorf("status %d, body %q, error %v; want %d, %q, broken %t", status, body, err, test.status, test.body, test.broken)
			}
		})
	}
}

func TestRequestsAreRemembered(t *testing.T) {
	w := start(t, sim.Options{})
	if status, body, err := post(t, t.Context(), w.PublisherURL+"/newsletter?a=%2F", "email=x"); err != nil || status != 200 || !strings.Contains(body, "Thank you") {
		t.Fatalf("status %d, %v", status, err)
	}
	got := w.Publisher.Requests()
	if len(got) != 1 || got[0].Method != "POST" || got[0].URI != "/newsletter?a=%2F" || string(got[0].Body) != "email=x" {
		t.Errorf("requests = %+v", got)
	}
}

// Every chunk reaches the client before the next one is written, compressed or not.
func TestChunksAreFlushed(t *testing.T) {
	w := start(t, sim.Options{})
	for _, coding := range []string{"identity", "gzip"} {
		w.Publisher.Handle("/stream", sim.Page{Chunks: []string{"first", "second"}, Pause: time.Hour, Gzip: true})
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.PublisherURL+"/stream", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept-Encoding", coding)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var body io.Reader = resp.Body
		if coding == "gzip" {
			if body, err = gzip.NewReader(body); err != nil || resp.Header.Get("Content-Encoding") != "gzip" {
				t.Fatalf("not gzip: %v", err)
			}
		}
		first := make([]byte, len("first"))
		if _, err := io.ReadFull(body, first); err != nil || string(first) != "first" {
			t.Errorf("%s: %q, %v", coding, first, err)
		}
		cancel()
		resp.Body.Close()
	}
}
