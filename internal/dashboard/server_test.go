package dashboard_test

import (
	"bufio"
	"context"
	"errors"
	"image/color"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"deckle/internal/catalog"
	"deckle/internal/dashboard"
	"deckle/internal/store"
	"deckle/internal/store/memory"
)

// near is a connection from this machine.
type near struct{ net.Conn }

func (near) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 50000} }

// pipes is a listener within a bubble.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// A body that does not come is not waited for, and answers may take longer than a
// body may.
func TestTimeOfAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		ln := make(pipes)
		server := &http.Server{Handler: w.handler, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
		go func() { _ = server.Serve(ln) }()
		defer server.Close()
		ask := func(request string) (status int, took time.Duration) {
			t.Helper()
			start := time.Now()
			client, conn := net.Pipe()
			defer client.Close()
			ln <- near{conn}
			if _, err := io.WriteString(client, strings.ReplaceAll(request, "\n", "\r\n")); err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(client), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, client); err != nil { // until the server closes
				t.Fatal(err)
			}
			return resp.StatusCode, time.Since(start)
		}
		const head = "POST /api/v1/publishers HTTP/1.1\nHost: localhost\nConnection: close\nAuthorization: Bearer " + apiKey + "\nContent-Type: application/json\nContent-Length: "
		if status, took := ask(head + "100\n\n{"); status != http.StatusRequestTimeout || took != 20*time.Second {
			t.Errorf("half a body: status %d after %v", status, took)
		}
		for name, tt := range map[string]struct {
			request string
			status  int
			most    time.Duration
		}{
			"log-in":             {"POST /login HTTP/1.1\nHost: localhost\nContent-Type: application/x-www-form-urlencoded\nContent-Length: 100\n\nname=a", http.StatusRequestTimeout, 30 * time.Second},
			"log-in, chunked":    {"POST /login HTTP/1.1\nHost: localhost\nContent-Type: application/x-www-form-urlencoded\nTransfer-Encoding: chunked\n\n6\nname=a\n", http.StatusRequestTimeout, 30 * time.Second},
			"log-out":            {"POST /logout HTTP/1.1\nHost: localhost\nContent-Length: 100\n\nx", http.StatusSeeOther, 30 * time.Second},
			"a form of nobody":   {"POST /publishers/new HTTP/1.1\nHost: localhost\nContent-Length: 100\n\nx", http.StatusSeeOther, 30 * time.Second},
			"a form of somebody": {"POST /publishers/new HTTP/1.1\nHost: localhost\nCookie: " + w.logIn("ana").cookie + "\nContent-Type: application/x-www-form-urlencoded\nContent-Length: 100\n\nx", http.StatusRequestTimeout, time.Minute},
			"pictures":           {"POST /publishers/new HTTP/1.1\nHost: localhost\nCookie: " + w.logIn("ana").cookie + "\nContent-Type: multipart/form-data; boundary=b\nContent-Length: 100\n\n--b\nContent-Disposition: form-data; name=\"id\"\n\ny", http.StatusRequestTimeout, time.Minute},
			"a key of nobody":    {"POST /api/v1/publishers HTTP/1.1\nHost: localhost\nContent-Length: 100\n\nx", http.StatusUnauthorized, 30 * time.Second},
			"no such path":       {"GET /nothing HTTP/1.1\nHost: localhost\nContent-Length: 100\n\nx", http.StatusSeeOther, 30 * time.Second},
		} {
			if status, took := ask(tt.request); status != tt.status || took > tt.most {
				t.Errorf("%s: status %d after %v", name, status, took)
			}
		}
		w.kv.Fail(memory.Fault{Delay: 19 * time.Second})
		const body = `{"id":"yuki","name":"Yuki","currency":"USD"}`
		if status, took := ask(head + "44\n\n" + body); status != http.StatusCreated || took != 19*time.Second {
			t.Errorf("a slow store: status %d after %v", status, took)
		}
		w.kv.Fail(memory.Fault{Delay: time.Hour})
		if status, took := ask(head + "44\n\n" + strings.ReplaceAll(body, "yuki", "kaze")); status != http.StatusServiceUnavailable || took != 20*time.Second {
			t.Errorf("a store that hangs: status %d after %v", status, took)
		}
	})
}

// Until this node has read the catalog it says so, and does not say that there is
// nothing.
func TestBeforeTheCatalogIsRead(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	w := newWorld(t, nil)
	w.catalog = catalog.New(memory.NewKV(), memory.NewKV(), catalog.Config{Log: log})
	h, err := dashboard.New(w.config, w.catalog, w.blobs, dashboard.Parts{}, log)
	if err != nil {
		t.Fatal(err)
	}
	w.handler = h
	for _, path := range []string{"/publishers", "/approvals", "/audit", "/document"} {
		if a := w.api("GET", path, ""); a.StatusCode != http.StatusServiceUnavailable || a.Header.Get("Retry-After") != "1" {
			t.Errorf("%s: %d", path, a.StatusCode)
		}
	}
	p := w.logIn("ana")
	for _, path := range []string{"/", "/inbox", "/audit", "/sites", "/sites/new"} {
		if a := p.get(path); a.StatusCode != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %d", path, a.StatusCode)
		}
	}
}

// brokenBlobs break, by an error that nobody expects or by a panic.
type brokenBlobs struct{ panics bool }

func (b brokenBlobs) Put(context.Context, []byte, string) (string, error) {
	if b.panics {
		panic("blobs are broken")
	}
	return "", errors.New("blobs are broken")
}

func (b brokenBlobs) Get(context.Context, string) (store.Blob, error) {
	_, err := b.Put(context.Background(), nil, "")
	return store.Blob{}, err
}

// slowBlobs take a second for each blob, and know how many came at once.
type slowBlobs struct {
	*memory.Blobs
	now, most atomic.Int32
}

func (b *slowBlobs) Put(ctx context.Context, data []byte, contentType string) (string, error) {
	now := b.now.Add(1)
	defer b.now.Add(-1)
	for most := b.most.Load(); now > most && !b.most.CompareAndSwap(most, now); most = b.most.Load() {
	}
	time.Sleep(time.Second)
	return b.Blobs.Put(ctx, data, contentType)
}

// A picture may take 64 MiB when it is decoded: many that come at once wait for each other,
// for as long as a page may take.
func TestPicturesAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		blobs := &slowBlobs{Blobs: memory.NewBlobs()}
		h, err := dashboard.New(w.config, w.catalog, blobs, dashboard.Parts{}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		w.handler = h
		p := w.logIn("ana")
		data := picture(color.RGBA{1, 2, 3, 255}, color.RGBA{9, 9, 9, 255})
		statuses := make(chan int)
		const forms = 24
		for range forms {
			go func() {
				a := p.upload("/creatives/new", url.Values{"pageCount": {"1"}, "action": {"add"}}, "pages[0].image.file", data)
				statuses <- a.StatusCode
			}()
		}
		count := map[int]int{}
		for range forms {
			count[<-statuses]++
		}
		if most := blobs.most.Load(); most != 2 {
			t.Errorf("%d pictures at once", most)
		}
		if count[http.StatusOK] < 18 || count[http.StatusOK]+count[http.StatusServiceUnavailable] != forms || count[http.StatusServiceUnavailable] == 0 {
			t.Errorf("statuses: %v", count)
		}
	})
}

// An error of ours is a 500 that tells a stranger nothing, and the log everything.
func TestOurErrors(t *testing.T) {
	for _, panics := range []bool{false, true} {
		var log strings.Builder
		w := newWorld(t, nil)
		h, err := dashboard.New(w.config, w.catalog, brokenBlobs{panics}, dashboard.Parts{}, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		w.handler = h
		image := string(picture(color.RGBA{1, 2, 3, 255}, color.RGBA{9, 9, 9, 255}))
		p := w.logIn("ana")
		for name, a := range map[string]*answer{
			"api":  w.ask("POST", "/api/v1/assets", image, "Authorization", "Bearer "+apiKey, "Content-Type", "image/png"),
			"page": p.get("/_deckle/asset/" + strings.Repeat("a", 64)),
		} {
			if a.StatusCode != http.StatusInternalServerError || strings.Contains(a.body, "blobs") {
				t.Errorf("%s, panics %v: %d %s", name, panics, a.StatusCode, a.body)
			}
		}
		for _, want := range []string{"blobs are broken", "POST /api/v1/assets", "GET /_deckle/asset/"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("panics %v: the log lacks %q:\n%s", panics, want, log.String())
			}
		}
	}
}
