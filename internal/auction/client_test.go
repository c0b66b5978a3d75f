package auction_test

import (
	"bytes"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckle/internal/auction"
	"deckle/internal/auction/auctiontest"
)

// A provider that offers HTTP/2 gets it, and is left on time as well.
func TestHTTP2(t *testing.T) {
	var proto atomic.Value
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proto.Store(r.Proto)
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/hang" {
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, good)
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	h := house(auction.Config{Providers: []auction.Provider{
		{Name: "answers", Dialect: plain{url: srv.URL}, Timeout: 10 * time.Second},
		{Name: "hangs", Dialect: plain{url: srv.URL + "/hang"}, Timeout: 10 * time.Second},
	}})
	h.Trust(srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	res := h.Start(ctx, request()).Result()
	if got := statuses(res); got["answers"] != auction.StatusBid || got["hangs"] != auction.StatusTimeout {
		t.Errorf("statuses = %v", got)
	}
	if proto.Load() != "HTTP/2.0" {
		t.Errorf("protocol = %v, want HTTP/2.0", proto.Load())
	}
	h.Close()
}

// What leaves is what the dialect says, and no more of ours than a coding.
func TestCallOnTheWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got bytes.Buffer
		n := auctiontest.Network{"p": func(c *auctiontest.Conn) {
			req, err := http.ReadRequest(c.Reader)
			if err != nil {
				return
			}
			_ = req.Write(&got)
			c.Send("HTTP/1.1 204 No Content\r\n\r\n")
		}}
		p := auction.Provider{Name: "p", Dialect: plain{encode: func(time.Duration) (*auction.Call, error) {
			return &auction.Call{URL: "http://p/path", Header: http.Header{"Content-Type": {"application/json"}, "User-Agent": {"deckle"}}, Body: []byte("{}")}, nil
		}}}
		h := house(auction.Config{Providers: []auction.Provider{p}, Dial: n.Dial})
		h.Start(t.Context(), request()).Result()
		h.Close()
		want := "POST /path HTTP/1.1\r\nHost: p\r\nUser-Agent: deckle\r\nContent-Length: 2\r\nAccept-Encoding: gzip\r\nContent-Type: application/json\r\n\r\n{}"
		if got.String() != want {
			t.Errorf("request = %q, want %q", got.String(), want)
		}
	})
}

// A page does not pay for a connection that the page before has made.
func TestConnectionsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dials := 0
		n := auctiontest.Network{"p": auctiontest.Replies(auctiontest.OK(good))}
		h := house(auction.Config{Providers: []auction.Provider{provider("p")}, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			dials++
			return n.Dial(ctx, network, address)
		}})
		for range 3 {
			if got := statuses(h.Start(t.Context(), request()).Result())["p"]; got != auction.StatusBid {
				t.Errorf("status = %s", got)
			}
			synctest.Wait() // until the connection is idle
		}
		h.Close()
		if dials != 1 {
			t.Errorf("%d connections for three auctions, want 1", dials)
		}
	})
}

// A provider is held to the bound on connections, within its time.
func TestConnectionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := auctiontest.Network{"p": auctiontest.Late(200*time.Millisecond, auctiontest.OK(good))}
		h := house(auction.Config{Providers: []auction.Provider{provider("p")}, Dial: n.Dial, MaxConnsPerHost: 1})
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		defer cancel()
		first, second := h.Start(ctx, request()), h.Start(ctx, request())
		got := map[auction.Status]int{}
		got[statuses(first.Result())["p"]]++
		got[statuses(second.Result())["p"]]++
		if got[auction.StatusBid] != 1 || got[auction.StatusTimeout] != 1 {
			t.Errorf("statuses = %v, want one bid and one timeout", got)
		}
		h.Close()
	})
}

// However much a bidder sends, we take no more than we are going to use.
func TestReadsNoMoreThanTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		n := auctiontest.Network{"p": func(c *auctiontest.Conn) {
			c.ReadRequest()
			c.Send("HTTP/1.1 200 OK\r\n\r\n")
			for c.Send(strings.Repeat(" ", 1<<10)) {
				sent += 1 << 10
			}
		}}
		h := house(auction.Config{Providers: []auction.Provider{provider("p")}, Dial: n.Dial})
		h.Start(t.Context(), request()).Result()
		h.Close()
		synctest.Wait()
		if sent < 2<<20 || sent > 2<<20+64<<10 {
			t.Errorf("took %d bytes, want 2 MiB and a buffer", sent)
		}
	})
}

// What goes wrong below HTTP/1.1 ends as well, and is told apart from an answer.
func TestTLSAndHTTP2Faults(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch r.URL.Path {
		case "/reset": // RST_STREAM
			panic(http.ErrAbortHandler)
		case "/reset-later":
			_, _ = io.WriteString(w, good[:10])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case "/endless":
			for _, err := io.WriteString(w, strings.Repeat(" ", 1<<16)); err == nil; {
				_, err = io.WriteString(w, strings.Repeat(" ", 1<<16))
			}
		case "/trailers":
			_, _ = io.WriteString(w, good)
			w.Header().Set(http.TrailerPrefix+"X-A", "b")
		}
	}))
	srv.EnableHTTP2 = true
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	plainText := auctiontest.Listen(t, auctiontest.Replies(auctiontest.OK(good)))
	hangs := auctiontest.Listen(t, auctiontest.Hang)

	providers := []auction.Provider{}
	want := map[string]auction.Status{}
	add := func(name, url string, status auction.Status) {
		providers = append(providers, auction.Provider{Name: name, Dialect: plain{url: url}, Timeout: 30 * time.Second})
		want[name] = status
	}
	add("resets its stream", srv.URL+"/reset", auction.StatusTransport)
	add("resets its stream within the answer", srv.URL+"/reset-later", auction.StatusTransport)
	add("answers without end", srv.URL+"/endless", auction.StatusParse)
	add("ends with trailers", srv.URL+"/trailers", auction.StatusBid)
	add("speaks no TLS", strings.Replace(plainText, "http:", "https:", 1), auction.StatusTransport)
	add("hangs within the handshake", strings.Replace(hangs, "http:", "https:", 1), auction.StatusTimeout)
	h := house(auction.Config{Providers: providers})
	h.Trust(srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // a handshake has a second of its own
	defer cancel()
	if diff := cmp.Diff(want, statuses(h.Start(ctx, request()).Result())); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	h.Close()

	stranger := house(auction.Config{Providers: []auction.Provider{{Name: "p", Dialect: plain{url: srv.URL}, Timeout: 10 * time.Second}}})
	if got := statuses(stranger.Start(t.Context(), request()).Result())["p"]; got != auction.StatusTransport {
		t.Errorf("a certificate that nobody vouches for: %s", got)
	}
	stranger.Close()
}
