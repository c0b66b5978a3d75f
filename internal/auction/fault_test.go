package auction_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"deckle/internal/auction"
)

// A conn is a provider's side of one connection.
type conn struct {
	net.Conn
	r *bufio.Reader
}

func (c *conn) readRequest() bool {
	req, err := http.ReadRequest(c.r)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, req.Body)
	return err == nil
}

// hang waits until the other side closes.
func (c *conn) hang() { _, _ = io.Copy(io.Discard, c.r) }

// pause waits for d, or reports false as soon as the other side closes.
func (c *conn) pause(d time.Duration) bool {
	_ = c.SetReadDeadline(time.Now().Add(d))
	defer func() { _ = c.SetReadDeadline(time.Time{}) }()
	_, err := c.r.Peek(c.r.Buffered() + 1)
	return err == nil || errors.Is(err, os.ErrDeadlineExceeded)
}

func (c *conn) write(s string) bool {
	_, err := io.WriteString(c, s)
	return err == nil
}

// A server plays a provider on one connection, which is closed when it returns.
type server func(*conn)

// network connects hosts to servers in memory, so that it works in fake time.
type network map[string]server

func (n network) dial(_ context.Context, _, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	serve := n[host]
	if serve == nil {
		return nil, errors.New("connection refused")
	}
	near, far := net.Pipe()
	go func() {
		defer func() { _ = far.Close() }()
		serve(&conn{far, bufio.NewReader(far)})
	}()
	return near, nil
}

// listen serves on a loopback socket and gives its URL. Without a server nobody
// listens there.
func listen(t *testing.T, serve server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if serve == nil {
		_ = l.Close()
		return "http://" + l.Addr().String()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serve(&conn{c, bufio.NewReader(c)})
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return "http://" + l.Addr().String()
}

// replies answers every request with text.
func replies(text string) server {
	return func(c *conn) {
		for c.readRequest() && c.write(text) {
		}
	}
}

// late answers every request with text after d.
func late(d time.Duration, text string) server {
	return func(c *conn) {
		for c.readRequest() && c.pause(d) && c.write(text) {
		}
	}
}

// endless reads a request, writes start and then part until nobody reads it any
// more, pausing in between.
func endless(start, part string, pause time.Duration) server {
	return func(c *conn) {
		if !c.readRequest() || !c.write(start) {
			return
		}
		for c.write(part) && (pause == 0 || c.pause(pause)) {
		}
	}
}

func hang(c *conn) { c.hang() }

func response(status, header, body string) string {
	return fmt.Sprintf("HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n%s", status, header, len(body), body)
}

func ok(body string) string { return response("200 OK", "", body) }

func gzipped(parts ...string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	for _, p := range parts {
		_, _ = io.WriteString(w, p)
	}
	_ = w.Close()
	return b.String()
}

// bomb is 100 MB of spaces in 100 KB.
func bomb() string {
	parts := make([]string, 100)
	for i := range parts {
		parts[i] = strings.Repeat(" ", 1e6)
	}
	return gzipped(parts...)
}

// faults is what bidders do, and what it is counted as.
var faults = []struct {
	name   string
	serve  server // nil: nobody listens
	status auction.Status
	winner string
}{
	{"answers", replies(ok(good)), auction.StatusBid, "odd"},
	{"answers in gzip", replies(response("200 OK", "Content-Encoding: gzip\r\n", gzipped(good))), auction.StatusBid, "odd"},
	{"answers in chunks", replies("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(good)), auction.StatusBid, "odd"},
	{"has no bid", replies("HTTP/1.1 204 No Content\r\n\r\n"), auction.StatusNoBid, "quick"},
	{"has only a bid that is none", replies(ok(answer(offer("odd", "1", "0")))), auction.StatusNoBid, "quick"},
	{"hangs", hang, auction.StatusTimeout, "quick"},
	{"hangs after the request", func(c *conn) { c.readRequest(); c.hang() }, auction.StatusTimeout, "quick"},
	{"drips a byte a second", endless("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", " ", time.Second), auction.StatusTimeout, "quick"},
	{"drips a byte a millisecond", endless("HTTP/1.1 200 OK\r\n\r\n", " ", time.Millisecond), auction.StatusTimeout, "quick"},
	{"never ends its headers", endless("HTTP/1.1 200 OK\r\n", "X-A: b\r\n", 10*time.Millisecond), auction.StatusTimeout, "quick"},
	{"sends headers without end", endless("HTTP/1.1 200 OK\r\n", "X-A: "+strings.Repeat("b", 1000)+"\r\n", 0), auction.StatusTransport, "quick"},
	{"sends one header without end", endless("HTTP/1.1 200 OK\r\nX-A: ", strings.Repeat("b", 1000), 0), auction.StatusTransport, "quick"},
	{"hints for ever", endless("", "HTTP/1.1 103 Early Hints\r\n\r\n", 0), auction.StatusTransport, "quick"},
	{"is not there", nil, auction.StatusTransport, "quick"},
	{"hangs up", func(c *conn) { c.readRequest() }, auction.StatusTransport, "quick"},
	{"hangs up within its answer", func(c *conn) {
		c.readRequest()
		c.write("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + good)
	}, auction.StatusTransport, "quick"},
	{"speaks another protocol", func(c *conn) { c.readRequest(); c.write("220 mail ESMTP\r\n") }, auction.StatusTransport, "quick"},
	{"answers 500", replies(response("500 Internal Server Error", "", "oops")), auction.StatusHTTPStatus, "quick"},
	{"answers 400 in plain text", replies(response("400 Bad Request", "", "Invalid request: Stored Imp not found.\n")), auction.StatusHTTPStatus, "quick"},
	{"answers 500 without end", endless("HTTP/1.1 500 Oops\r\n\r\n", strings.Repeat("x", 1000), 0), auction.StatusHTTPStatus, "quick"},
	{"redirects", replies(response("307 Temporary Redirect", "Location: http://quick/\r\n", "")), auction.StatusHTTPStatus, "quick"},
	{"answers in HTML", replies(ok("<!doctype html><title>Sign in</title>")), auction.StatusParse, "quick"},
	{"answers half a JSON", replies(ok(good[:len(good)/2])), auction.StatusParse, "quick"},
	{"answers nothing", replies(ok("")), auction.StatusParse, "quick"},
	{"answers 100 MB", endless("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n", strings.Repeat(" ", 1<<20), 0), auction.StatusParse, "quick"},
	{"answers without end", endless("HTTP/1.1 200 OK\r\n\r\n", strings.Repeat(" ", 1<<16), 0), auction.StatusParse, "quick"},
	{"answers a gzip bomb", replies(response("200 OK", "Content-Encoding: gzip\r\n", bomb())), auction.StatusParse, "quick"},
	{"answers half a gzip", replies(response("200 OK", "Content-Encoding: gzip\r\n", gzipped(good)[:30])), auction.StatusParse, "quick"},
	{"says gzip and is not", replies(response("200 OK", "Content-Encoding: gzip\r\n", good)), auction.StatusParse, "quick"},
	{"answers in a coding that we did not ask for", replies(response("200 OK", "Content-Encoding: br\r\n", good)), auction.StatusParse, "quick"},
	{"nests 33 deep", replies(ok(`{"a":` + strings.Repeat("[", 32) + strings.Repeat("]", 32) + `}`)), auction.StatusParse, "quick"},
}

// good beats quick's bid.
var good = answer(offer("odd", "o", "2"))

func chunked(s string) string { return fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(s), s) }
