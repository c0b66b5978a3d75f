package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"deckle/internal/sim"
)

// What an origin sends beyond the length that it named is a reader's, and in no log.
func TestLogsQuoteNoPage(t *testing.T) {
	world, err := sim.Start(context.WithoutCancel(t.Context()), sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer world.Close()
	dir, listen := t.TempDir(), freeAddr(t)
	if _, err := demoConfig(world, dir, listen, freeAddr(t)); err != nil {
		t.Fatal(err)
	}
	origin, closed := tooMuch(t)
	editFiles(t, dir, func(toml, template string) (string, string) {
		return strings.ReplaceAll(toml, world.PublisherURL, "http://"+origin), template
	})
	var said bytes.Buffer
	deckle := exec.Command("deckle", "serve", "--config", dir+"/deckle.toml")
	start(t, deckle, listen, &said)
	for _, path := range []string{"/2026/slots", "/about"} {
		_, body, err := fetch(t.Context(), http.DefaultTransport, "http://"+listen+path)
		if err != nil || !strings.Contains(body, "whole") {
			t.Errorf("%s: %q, %v", path, body, err)
		}
		<-closed // by our side, which has seen the rest
	}
	_ = deckle.Process.Signal(syscall.SIGTERM)
	_ = deckle.Wait()
	if !strings.Contains(said.String(), "listening") || strings.Contains(said.String(), "secret") {
		t.Errorf("logged:\n%s", said.String())
	}
}

// tooMuch is an origin that sends more than it says, and tells of each connection that
// has been closed by the other side.
func tooMuch(t *testing.T) (address string, closed <-chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	ends := make(chan struct{}, 10)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			b := make([]byte, 16<<10)
			_, _ = conn.Read(b)
			const page = "<head></head><body>whole"
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s and a secret", len(page), page)
			for err == nil {
				_, err = conn.Read(b)
			}
			_ = conn.Close()
			ends <- struct{}{}
		}
	}()
	return l.Addr().String(), ends
}
