package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"deckle/internal/sim"
)

// A page under way when the end comes is delivered whole; meanwhile the admin
// listener says that no traffic should come here.
func TestDrain(t *testing.T) {
	world, err := sim.Start(context.WithoutCancel(t.Context()), sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer world.Close()
	ctx, end := context.WithCancel(t.Context())
	d, ended := serveDemo(t, ctx, world, stockDesk, nil)
	world.Publisher.Handle("/2026/slow", sim.Page{FirstByte: time.Second, Chunks: []string{"<!doctype html><body>whole"}})

	body := make(chan string, 1)
	go func() {
		req, _ := http.NewRequestWithContext(context.WithoutCancel(ctx), "GET", d.url+"/2026/slow", nil)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			body <- err.Error()
			return
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			b = []byte(err.Error())
		}
		body <- string(b)
	}()
	within(t, func() bool { return len(world.Publisher.Requests()) > 0 })
	end()
	within(t, func() bool {
		resp, err := http.Get(d.admin + "/readyz")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode == 503 && strings.Contains(string(b), "server: not ready: draining")
	})
	if got := <-body; !strings.HasSuffix(got, "whole") {
		t.Errorf("the page under way was %q", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("run: %v", err)
	}
}
