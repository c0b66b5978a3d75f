package sim_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deckle/internal/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start opens a world that ends with the test.
func start(t *testing.T, o sim.Options) *sim.World {
	t.Helper()
	w, err := sim.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// get fetches a URL and returns the response and its body.
func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return do(t, req)
}

func do(t *testing.T, req *http.Request) (*http.Response, string) {
	t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("GET %s: %v", req.URL, err)
	}
	return resp, string(body)
}

// post sends a body and returns the status and the answer.
func post(t *testing.T, ctx context.Context, url, body string) (int, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	return resp.StatusCode, string(answer), err
}

func TestCloseEndsEverything(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w, err := sim.Start(ctx, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{w.PublisherURL, w.PrebidURL + "/status", w.GPTURL()} {
		if resp, _ := get(t, url); resp.StatusCode >= 300 {
			t.Errorf("GET %s: status %d", url, resp.StatusCode)
		}
	}
	cancel()
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, w.PublisherURL, nil)
	if resp, err := http.DefaultClient.Do(req); err == nil {
		resp.Body.Close()
		t.Error("the publisher still answers after Close")
	}
}

func TestLatency(t *testing.T) {
	l := sim.Latency{}
	if err := l.UnmarshalText([]byte("prebid=80ms, origin=40ms,gpt=30ms")); err != nil {
		t.Fatal(err)
	}
	if want := (sim.Latency{Prebid: 80 * time.Millisecond, Origin: 40 * time.Millisecond, GPT: 30 * time.Millisecond}); l != want {
		t.Errorf("latency = %+v, want %+v", l, want)
	}
	for _, bad := range []string{"", "prebid", "prebid=", "prebid=-1s", "gpt=2h", "redis=1ms"} {
		if err := l.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q was read without an error", bad)
		}
	}
}

// fetch reads as much of a URL as there is.
func fetch(t *testing.T, client *http.Client, url string) (status int, body string, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}
