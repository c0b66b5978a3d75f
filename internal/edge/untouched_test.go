package edge_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deckle/internal/edge"
)

// ways are paths of the two ways to the origin: that of pages with slots, where
// an answer may turn out to be no page, and net/http's own proxy.
var ways = map[string]string{"with slots": "/x", "plain": "/plain"}

// eachWay runs f in a bubble for both ways.
func eachWay(t *testing.T, f func(t *testing.T, path string)) {
	t.Helper()
	for name, path := range ways {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) { f(t, path) })
		})
	}
}

// What breaks off at the origin breaks off for its reader.
func TestUntouchedAnswerThatBreaksOff(t *testing.T) {
	for name, origin := range map[string]http.HandlerFunc{
		"shorter than its length": answerWith(200, map[string]string{"Content-Type": "image/png", "Content-Length": "5000"}, "PNG"),
		"without its last chunk": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "image/png")
			_, _ = w.Write([]byte("PNG"))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
	} {
		eachWay(t, func(t *testing.T, path string) {
			w := newWorld(t, setup{}, origin, hang)
			_, body, err := w.overTheWire(t, navigation(path))
			if err == nil {
				t.Errorf("%s looks whole: %q", name, body)
			}
		})
	}
}

// An origin that writes for somebody who waits is read by somebody who waits.
func TestUntouchedAnswerFlows(t *testing.T) {
	eachWay(t, func(t *testing.T, path string) {
		origin := func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/x-ndjson")
			_, _ = w.Write([]byte("one\n"))
			_ = http.NewResponseController(w).Flush()
			waitUntil(r.Context(), time.Now().Add(time.Second))
			_, _ = w.Write([]byte("two\n"))
		}
		a := newWorld(t, setup{}, origin, hang).get(t.Context(), navigation(path))
		if one, two := a.when("one"), a.when("two"); one != 0 || two != time.Second {
			t.Errorf("with the reader after %v and %v", one, two)
		}
	})
}

// An answer of a known length is as long, and no type is made up.
func TestUntouchedAnswerKeepsItsForm(t *testing.T) {
	eachWay(t, func(t *testing.T, path string) {
		origin := func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			w.Header().Set("Content-Length", strconv.Itoa(len(page)))
			_, _ = w.Write([]byte(page))
		}
		resp, body, err := newWorld(t, setup{}, origin, hang).overTheWire(t, navigation(path))
		if err != nil {
			t.Fatal(err)
		}
		if types, ok := resp.Header["Content-Type"]; ok {
			t.Errorf("Content-Type became %q", types)
		}
		if body != page || resp.ContentLength != int64(len(page)) {
			t.Errorf("length %d, body %q", resp.ContentLength, body)
		}
	})
}

func TestTrailersReachTheReader(t *testing.T) {
	for _, announced := range []bool{true, false} {
		eachWay(t, func(t *testing.T, path string) {
			origin := func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/grpc-web")
				name := http.TrailerPrefix + "X-Sum"
				if announced {
					name = "X-Sum"
					w.Header().Set("Trailer", name)
				}
				_, _ = w.Write([]byte("data"))
				_ = http.NewResponseController(w).Flush()
				w.Header().Set(name, "17")
			}
			resp, body, err := newWorld(t, setup{}, origin, hang).overTheWire(t, navigation(path))
			if err != nil || body != "data" {
				t.Fatalf("%q, %v", body, err)
			}
			if got := resp.Trailer.Get("X-Sum"); got != "17" {
				t.Errorf("announced: %v, trailers %v", announced, resp.Trailer)
			}
			if resp.Header.Get("X-Sum") != "" {
				t.Error("a trailer stands in the header")
			}
		})
	}
}

// What an origin says before its answer is with the reader while the page is still
// being made, and says nothing of the page.
func TestEarlyHints(t *testing.T) {
	eachWay(t, func(t *testing.T, path string) {
		origin := func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", "</a.css>; rel=preload; as=style")
			w.Header().Set("Alt-Svc", `h3=":443"`)
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Set("Link", "</b.js>; rel=preload; as=script")
			w.WriteHeader(http.StatusEarlyHints)
			clear(w.Header())
			wait(time.Second)
			html(page)(w, r)
		}
		type hint struct {
			status  int
			link    string
			alt     string
			elapsed time.Duration
		}
		var got []hint
		start := time.Now()
		r := navigation(path)
		r = r.WithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(status int, h textproto.MIMEHeader) error {
			got = append(got, hint{status, h.Get("Link"), h.Get("Alt-Svc"), time.Since(start)})
			return nil
		}}))
		resp, body, err := newWorld(t, setup{}, origin, bids(0, "1")).overTheWire(t, r)
		if err != nil || resp.StatusCode != 200 || withoutOurs(body) != page {
			t.Fatalf("%v %q %v", resp, body, err)
		}
		want := []hint{{103, "</a.css>; rel=preload; as=style", "", 0}, {103, "</b.js>; rel=preload; as=script", "", 0}}
		if !slices.Equal(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
		if link := resp.Header["Link"]; slices.ContainsFunc(link, func(l string) bool { return strings.Contains(l, "preload") }) {
			t.Errorf("the page says %q", link)
		}
	})
}

// An answer without a type stays without, also after early hints.
func TestNoTypeAfterEarlyHints(t *testing.T) {
	eachWay(t, func(t *testing.T, path string) {
		origin := func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			w.Header()["Content-Type"] = nil
			_, _ = io.WriteString(w, page)
		}
		resp, body, err := newWorld(t, setup{}, origin, hang).overTheWire(t, navigation(path))
		if err != nil || body != page || len(resp.Header["Content-Type"]) > 0 {
			t.Errorf("type %q, %v", resp.Header["Content-Type"], err)
		}
	})
}

// What is said to one connection goes no further, in either direction (RFC 9110
// section 7.6.1).
func TestHopByHopHeaders(t *testing.T) {
	hops := map[string]string{
		"Connection": "X-Hop, x-second", "X-Hop": "1", "X-Second": "1", "Keep-Alive": "timeout=5",
		"Proxy-Connection": "keep-alive", "Proxy-Authenticate": "Basic", "Proxy-Authorization": "Basic x", "Te": "gzip",
	}
	eachWay(t, func(t *testing.T, path string) {
		var got http.Header
		origin := func(w http.ResponseWriter, r *http.Request) {
			if got = r.Header; r.Close {
				t.Error("the origin's connection is to close with the reader's")
			}
			answerWith(200, hops, `{}`)(w, r)
		}
		r := navigation(path)
		r.Close = true
		for name, value := range hops {
			r.Header.Set(name, value)
		}
		r.Header.Set("X-Own", "kept")
		a := newWorld(t, setup{}, origin, bids(0, "1")).get(t.Context(), r)
		for name := range hops {
			if got.Get(name) != "" {
				t.Errorf("the origin got %s: %s", name, got.Get(name))
			}
			if a.header.Get(name) != "" {
				t.Errorf("the reader got %s: %s", name, a.header.Get(name))
			}
		}
		if got.Get("X-Own") != "kept" {
			t.Error("X-Own did not reach the origin")
		}
	})
	bubble(t, func(t *testing.T) { // an answer that nothing goes into
		hops["Content-Type"] = "text/plain"
		a := newWorld(t, setup{}, answerWith(200, hops, ""), hang).get(t.Context(), navigation("/x"))
		for name := range hops {
			if name != "Content-Type" && a.header.Get(name) != "" {
				t.Errorf("untouched: the reader got %s: %s", name, a.header.Get(name))
			}
		}
	})
}

// A part of a page, or the word that it has not changed, is never asked for where
// pages differ by reader; elsewhere it is the origin's matter.
func TestPartsOfPages(t *testing.T) {
	asks := []string{"If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "Range", "If-Range"}
	for name, c := range map[string]struct {
		method, path, dest string
		kept               bool
	}{
		"page":             {"GET", "/x", "document", false},
		"iframe":           {"GET", "/x", "iframe", false},
		"script's fetch":   {"GET", "/x", "empty", false},
		"HEAD":             {"HEAD", "/x", "document", false},
		"POST":             {"POST", "/x", "document", true},
		"page, no slots":   {"GET", "/plain", "document", true},
		"iframe, no slots": {"GET", "/plain", "iframe", true},
		"HEAD, no slots":   {"HEAD", "/plain", "document", true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var got http.Header
				w := newWorld(t, setup{}, func(w http.ResponseWriter, r *http.Request) { got = r.Header; html(page)(w, r) }, bids(0, "1"))
				r := navigation(c.path)
				r.Method = c.method
				r.Header.Set("Sec-Fetch-Dest", c.dest)
				for _, name := range asks {
					r.Header.Set(name, "bytes=0-1")
				}
				w.get(t.Context(), r)
				for _, name := range asks {
					if kept := got.Get(name) != ""; kept != c.kept {
						t.Errorf("%s reached the origin: %v, want %v", name, kept, c.kept)
					}
				}
			})
		})
	}
}

// The header that HEAD gets is true of the page that GET gets.
func TestHeadOfAPageWithSlots(t *testing.T) {
	described := map[string]string{
		"Content-Length": strconv.Itoa(len(page)), "Accept-Ranges": "bytes", "Content-Md5": "x", "Digest": "x", "Etag": `"1"`,
	}
	for path, kept := range map[string]bool{"/x": false, "/plain": true} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t, setup{}, answerWith(200, described, ""), hang)
			r := navigation(path)
			r.Method = "HEAD"
			a := w.get(t.Context(), r)
			for name := range described {
				if got := a.header.Get(name) != ""; got != kept {
					t.Errorf("%s: %s kept: %v, want %v", path, name, got, kept)
				}
			}
		})
	}
	bubble(t, func(t *testing.T) { // an iframe's bytes are the origin's, so what describes them is true
		r := navigation("/x")
		r.Header.Set("Sec-Fetch-Dest", "iframe")
		a := newWorld(t, setup{}, answerWith(200, described, page), hang).get(t.Context(), r)
		if a.header.Get("Content-Length") == "" || a.header.Get("Etag") != "" {
			t.Errorf("iframe: %v", a.header)
		}
	})
}

func TestHostForTheOrigin(t *testing.T) {
	for configured, want := range map[string]string{"": "www.test:8080", "origin.internal": "origin.internal"} {
		eachWay(t, func(t *testing.T, path string) {
			got := ""
			w := newWorld(t, setup{site: func(s *edge.Site) { s.HostHeader = configured }},
				func(w http.ResponseWriter, r *http.Request) { got = r.Host; html(page)(w, r) }, bids(0, "1"))
			r := navigation(path)
			r.Host = "www.test:8080"
			w.get(t.Context(), r)
			if got != want {
				t.Errorf("Host = %q, want %q", got, want)
			}
		})
	}
}

// The origin learns who asked, for what and how: from us, from proxies that are
// trusted, and from nobody else.
func TestForwardedToTheOrigin(t *testing.T) {
	const stranger, proxy = "203.0.113.5:9", "192.0.2.7:1234"
	for name, c := range map[string]struct {
		peer             string
		forwarded        []string // X-Forwarded-For
		proto, host      string
		wantFor          string
		wantProto, wantH string
	}{
		"nothing forwarded":         {stranger, nil, "", "", "203.0.113.5", "http", "www.test"},
		"by a stranger":             {stranger, []string{"1.2.3.4"}, "https", "evil.test", "203.0.113.5", "http", "www.test"},
		"by a trusted proxy":        {proxy, []string{"1.2.3.4"}, "https", "www.test:8443", "1.2.3.4, 192.0.2.7", "https", "www.test:8443"},
		"in two lines":              {proxy, []string{"1.2.3.4", "5.6.7.8"}, "http", "", "1.2.3.4, 5.6.7.8, 192.0.2.7", "http", "www.test"},
		"by a proxy in IPv6":        {"[::ffff:192.0.2.7]:9", []string{"1.2.3.4"}, "https", "", "1.2.3.4, 192.0.2.7", "https", "www.test"},
		"by a proxy that says none": {proxy, nil, "", "", "192.0.2.7", "http", "www.test"},
		"an odd scheme":             {proxy, nil, "HTTPS ", "", "192.0.2.7", "http", "www.test"},
		"another scheme":            {proxy, nil, "ftp", "", "192.0.2.7", "http", "www.test"},
	} {
		t.Run(name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, path string) {
				var got http.Header
				w := newWorld(t, setup{config: func(c *edge.Config) { c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")} }},
					func(w http.ResponseWriter, r *http.Request) { got = r.Header; html(page)(w, r) }, bids(0, "1"))
				r := navigation(path)
				r.RemoteAddr = c.peer
				r.Header["X-Forwarded-For"] = c.forwarded
				r.Header.Set("X-Forwarded-Proto", c.proto)
				r.Header.Set("Forwarded", "for=evil")
				if c.host != "" {
					r.Header.Set("X-Forwarded-Host", c.host)
				}
				w.get(t.Context(), r)
				for name, want := range map[string]string{
					"X-Forwarded-For": c.wantFor, "X-Forwarded-Proto": c.wantProto, "X-Forwarded-Host": c.wantH,
				} {
					if !slices.Equal(got[name], []string{want}) {
						t.Errorf("%s = %q, want %q", name, got[name], want)
					}
				}
				if got.Get("Forwarded") != "" {
					t.Errorf("Forwarded: %s", got.Get("Forwarded"))
				}
			})
		})
	}
}

// Where TLS ends here, the scheme is ours to tell.
func TestSchemeOfTLS(t *testing.T) {
	eachWay(t, func(t *testing.T, path string) {
		got := ""
		w := newWorld(t, setup{}, func(w http.ResponseWriter, r *http.Request) {
			got = r.Header.Get("X-Forwarded-Proto")
			html(page)(w, r)
		}, bids(0, "1"))
		r := navigation(path)
		r.TLS = &tls.ConnectionState{}
		if w.get(t.Context(), r); got != "https" {
			t.Errorf("X-Forwarded-Proto = %q", got)
		}
	})
}

// A client that does not name itself is not given a name.
func TestNoUserAgentStaysNone(t *testing.T) {
	eachWay(t, func(t *testing.T, path string) {
		var got http.Header
		w := newWorld(t, setup{}, func(w http.ResponseWriter, r *http.Request) { got = r.Header; html(page)(w, r) }, hang)
		r := navigation(path)
		r.Header.Del("User-Agent")
		w.get(t.Context(), r)
		if agent, ok := got["User-Agent"]; ok {
			t.Errorf("User-Agent = %q", agent)
		}
	})
}

// The body of a request goes to the origin as it came.
func TestBodyReachesTheOrigin(t *testing.T) {
	eachWay(t, func(t *testing.T, path string) {
		got := ""
		w := newWorld(t, setup{}, func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			got = string(b)
			html(page)(w, r)
		}, bids(0, "1"))
		for _, method := range []string{"GET", "POST"} {
			r := navigation(path)
			r.Method, r.Body, r.ContentLength = method, io.NopCloser(strings.NewReader("q=1")), 3
			w.get(t.Context(), r)
			if got != "q=1" {
				t.Errorf("%s: body %q", method, got)
			}
		}
	})
}

// A reader who leaves before the origin has answered takes its request along.
func TestReaderLeavesBeforeTheAnswer(t *testing.T) {
	eachWay(t, func(t *testing.T, path string) {
		gone := make(chan struct{})
		w := newWorld(t, setup{}, func(w http.ResponseWriter, r *http.Request) { defer close(gone); hang(w, r) }, hang)
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(100*ms, leave)
		a := w.get(ctx, navigation(path))
		<-gone
		if took := time.Since(w.started); took != 100*ms || !a.aborted || a.status != 0 {
			t.Errorf("origin left after %v; aborted %v, status %d", took, a.aborted, a.status)
		}
	})
}

// As soon as it is known that nothing can go in, no bidder works for it any more,
// however long the answer still takes.
func TestUntouchedAnswerEndsItsAuction(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var ended time.Duration
		start := time.Now()
		origin := func(w http.ResponseWriter, r *http.Request) {
			waitUntil(r.Context(), start.Add(100*ms))
			w.Header().Set("Content-Type", "application/json")
			_ = http.NewResponseController(w).Flush()
			waitUntil(r.Context(), start.Add(300*ms))
		}
		bidder := func(w http.ResponseWriter, r *http.Request) {
			defer func() { ended = time.Since(start) }()
			hang(w, r)
		}
		w := newWorld(t, setup{}, origin, bidder)
		w.get(t.Context(), navigation("/x"))
		synctest.Wait()
		if ended != 100*ms {
			t.Errorf("the bidder was asked until %v", ended)
		}
	})
}

// An answer that its reader cannot be given is not read to its end.
func TestUntouchedAnswerForNobody(t *testing.T) {
	eachWay(t, func(t *testing.T, path string) {
		gone := make(chan struct{})
		origin := func(w http.ResponseWriter, r *http.Request) {
			defer close(gone)
			w.Header().Set("Content-Type", "application/json")
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, "{}")
				_ = http.NewResponseController(w).Flush()
			}
		}
		lost := &answer{writing: func() error { return errors.New("broken pipe") }}
		newWorld(t, setup{}, origin, hang).read(t.Context(), navigation(path), lost)
		<-gone
	})
}
