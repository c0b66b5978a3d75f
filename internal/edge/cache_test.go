package edge_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deckle/internal/edge"
)

// sharedCache starts nginx with a cache of its own in front of an address, and returns
// where it listens.
func sharedCache(t *testing.T, behind string) (address string) {
	t.Helper()
	if os.Getenv("DECKLE_SLOW") == "" {
		t.Skip("DECKLE_SLOW is not set")
	}
	program, err := exec.LookPath("nginx")
	if err != nil {
		t.Fatal("no nginx on this machine, and this test is about a real shared cache: install it (Debian: apt-get install nginx-light)")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = l.Addr().String()
	_ = l.Close()
	dir := t.TempDir()
	conf := fmt.Sprintf(`daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/error.log;
events {}
http {
	access_log off;
	client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
	proxy_cache_path %[1]s/cache keys_zone=pages:1m;
	server {
		listen %[2]s;
		location / {
			proxy_pass http://%[3]s;
			proxy_http_version 1.1;
			proxy_set_header Host www.test;
			proxy_cache pages;
			proxy_cache_revalidate on;
			add_header X-Cache $upstream_cache_status;
		}
	}
}
`, dir, address, behind)
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-p", dir, "-c", file)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for look, end := time.Tick(10*time.Millisecond), time.After(10*time.Second); ; {
		if c, err := net.Dial("tcp", address); err == nil {
			_ = c.Close()
			return address
		}
		select {
		case <-look:
		case <-end:
			t.Fatal("nginx does not listen")
		}
	}
}

// ask sends a request for the site to an address.
func ask(t *testing.T, address string, r *http.Request) (*http.Response, string) {
	t.Helper()
	r.URL.Scheme, r.URL.Host, r.RequestURI = "http", address, ""
	resp, err := http.DefaultTransport.RoundTrip(r.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// whoseVisit are visitors by what they are to the gate.
func whoseVisit(path string) map[string]*http.Request {
	with := func(name, value string) *http.Request {
		r := navigation(path)
		if name != "" {
			r.Header.Set(name, value)
		}
		return r
	}
	return map[string]*http.Request{
		"reader":   with("", ""),
		"bot":      with("User-Agent", "Googlebot"),
		"refused":  with("Cookie", "euconsent-v2=unreadable"),
		"prefetch": with("Sec-Purpose", "prefetch"),
		"frame":    with("Sec-Fetch-Dest", "iframe"),
	}
}

// Through a real shared cache nobody ever gets what was made for another: no bid, no
// bot's page, no refused reader's page.
func TestSharedCache(t *testing.T) {
	w := newWorld(t, setup{sockets: true}, cacheable("text/html; charset=utf-8", page), bids(0, "1"))
	address := sharedCache(t, w.served(t))
	random := rand.New(rand.NewPCG(1, 2))
	bids, hits := map[string]bool{}, 0
	for range 400 {
		path := []string{"/a", "/b?c", "/plain/a"}[random.IntN(3)]
		all := whoseVisit(path)
		who := []string{"reader", "bot", "refused", "prefetch", "frame"}[random.IntN(5)]
		resp, body := ask(t, address, all[who])
		if resp.Header.Get("X-Cache") == "HIT" {
			hits++
			if !strings.HasPrefix(path, "/plain") {
				t.Fatalf("%s: %s gets a page that was kept", path, who)
			}
		}
		if strings.HasPrefix(path, "/plain") {
			if body != page {
				t.Fatalf("%s: %q", path, body)
			}
			continue
		}
		mustBeFor(t, who, body, bids)
	}
	if hits == 0 || len(bids) == 0 {
		t.Errorf("%d pages were kept, and %d had bids: nothing was shown", hits, len(bids))
	}
}

// mustBeFor judges a page with slots by what its visitor is; bids are those that
// others have got.
func mustBeFor(t *testing.T, who, body string, bids map[string]bool) {
	t.Helper()
	a := &answer{parts: []part{{text: body}}}
	var slots struct {
		Skip   string
		Client json.RawMessage
	}
	hasSlots := a.block(t, "slots", &slots)
	var winners map[string]struct {
		AdID string `json:"hb_adid"`
	}
	hasBids := a.block(t, "bids", &winners)
	want := map[string]struct {
		slots, client, bids bool
		skip                string
	}{
		"reader": {true, true, true, ""}, "bot": {true, false, false, ""}, "refused": {true, true, false, "no_consent"},
		"prefetch": {true, true, false, "prefetch"}, "frame": {},
	}[who]
	if hasSlots != want.slots || (slots.Client != nil) != want.client || hasBids != want.bids || slots.Skip != want.skip {
		t.Fatalf("%s gets another's page: %s", who, body)
	}
	if hasBids {
		id := winners["top"].AdID
		if id == "" || bids[id] {
			t.Fatalf("bid %q has been another's", id)
		}
		bids[id] = true
	}
}

// With bids = "fetch" the cache keeps pages with slots, and all get the same one.
func TestSharedCacheOfFetchedBids(t *testing.T) {
	w := newWorld(t, setup{sockets: true, site: func(s *edge.Site) { s.Fetch = true }}, cacheable("text/html; charset=utf-8", page), hang)
	address := sharedCache(t, w.served(t))
	first, hits := "", 0
	for range 20 {
		for who, r := range whoseVisit("/x") {
			resp, body := ask(t, address, r)
			if first == "" {
				first = body
			}
			if body != first || !strings.Contains(body, `"bids":"fetch"`) {
				t.Fatalf("%s gets %s", who, body)
			}
			if resp.Header.Get("X-Cache") == "HIT" {
				hits++
			}
		}
	}
	if hits != 99 {
		t.Errorf("%d of 100 pages were kept, want all but the first", hits)
	}
}
