package auctiontest

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
	"slices"
	"strings"
	"testing"
	"time"
)

// A Conn is a provider's side of one connection.
type Conn struct {
	net.Conn
	Reader *bufio.Reader // of what comes over Conn; read from it alone
}

// ReadRequest reads one request to its end, and reports whether there was one.
func (c *Conn) ReadRequest() bool {
	req, err := http.ReadRequest(c.Reader)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, req.Body)
	return err == nil
}

// Hang waits until the other side closes.
func (c *Conn) Hang() { _, _ = io.Copy(io.Discard, c.Reader) }

// Pause waits for d, or reports false as soon as the other side closes.
func (c *Conn) Pause(d time.Duration) bool {
	_ = c.SetReadDeadline(time.Now().Add(d))
	defer func() { _ = c.SetReadDeadline(time.Time{}) }()
	_, err := c.Reader.Peek(c.Reader.Buffered() + 1)
	return err == nil || errors.Is(err, os.ErrDeadlineExceeded)
}

// Send writes s, and reports whether somebody took it.
func (c *Conn) Send(s string) bool {
	_, err := io.WriteString(c, s)
	return err == nil
}

// A Server plays a provider on one connection, which is closed when it returns.
type Server func(*Conn)

// A Network connects hosts to servers in memory, so that it works in fake time.
type Network map[string]Server

// Dial is an auction.Config.Dial. Where no server is, a connection is refused.
func (n Network) Dial(_ context.Context, _, address string) (net.Conn, error) {
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
		serve(&Conn{far, bufio.NewReader(far)})
	}()
	return near, nil
}

// Listen serves on a loopback socket and gives its URL. Without a server nobody
// listens there.
func Listen(t testing.TB, serve Server) string {
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
			serve(&Conn{c, bufio.NewReader(c)})
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return "http://" + l.Addr().String()
}

// Replies answers every request with text.
func Replies(text string) Server {
	return func(c *Conn) {
		for c.ReadRequest() && c.Send(text) {
		}
	}
}

// Late answers every request with text after d.
func Late(d time.Duration, text string) Server {
	return func(c *Conn) {
		for c.ReadRequest() && c.Pause(d) && c.Send(text) {
		}
	}
}

// Endless reads a request, writes start and then part until nobody reads it any
// more, pausing in between.
func Endless(start, part string, pause time.Duration) Server {
	return func(c *Conn) {
		if !c.ReadRequest() || !c.Send(start) {
			return
		}
		for c.Send(part) && (pause == 0 || c.Pause(pause)) {
		}
	}
}

// Hang accepts a connection and says nothing, ever.
func Hang(c *Conn) { c.Hang() }

// Response is an answer of HTTP/1.1; header has whole lines, or is empty.
func Response(status, header, body string) string {
	return fmt.Sprintf("HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n%s", status, header, len(body), body)
}

// OK is a Response with status 200.
func OK(body string) string { return Response("200 OK", "", body) }

// Gzipped is its parts as one gzip member.
func Gzipped(parts ...string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	for _, p := range parts {
		_, _ = io.WriteString(w, p)
	}
	_ = w.Close()
	return b.String()
}

// Bomb is 10 MB of spaces in 10 KB.
func Bomb() string { return Gzipped(slices.Repeat([]string{strings.Repeat(" ", 1e6)}, 10)...) }

// Chunked is s as one chunk, without the last one.
func Chunked(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }
