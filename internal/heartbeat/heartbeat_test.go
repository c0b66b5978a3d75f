package heartbeat_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckle/internal/heartbeat"
	"deckle/internal/publicapi"
)

// A world is an ear with a clock of its own, asked over HTTP.
type world struct {
	ear     *heartbeat.Ear
	handler http.Handler
	now     time.Time
	from    netip.Addr
}

func newWorld() *world {
	w := &world{now: time.Date(2026, 11, 30, 12, 30, 0, 0, time.UTC), from: netip.MustParseAddr("192.0.2.1")}
	w.ear = heartbeat.New(heartbeat.Config{
		Sites:   func(id string) bool { return id == "yuki-site" },
		Address: func(*http.Request) netip.Addr { return w.from },
		Now:     func() time.Time { return w.now },
	})
	w.handler = w.ear.Endpoint(publicapi.New(publicapi.NewMetrics(), slog.New(slog.DiscardHandler)))
	return w
}

func (w *world) tell(body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", heartbeat.Path, strings.NewReader(body))
	r.Header.Set("Content-Type", "text/plain")
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, r)
	return answer
}

func TestAnswers(t *testing.T) {
	for body, want := range map[string]int{
		`{"pub":"yuki-site","stage":"render","reason":"module"}`:                          204,
		`{"pub":"yuki-site","stage":"render","reason":"module","ua":"x"}`:                 204,
		`{"stage":"render","reason":"module"}`:                                            400,
		`{"pub":"yuki-site","stage":"paint","reason":"module"}`:                           400,
		`{"pub":"yuki-site","stage":"render","reason":""}`:                                400,
		`{"pub":"yuki-site","stage":"render","reason":"reader@example.com"}`:              400,
		`{"pub":"yuki-site","stage":"render","reason":"` + strings.Repeat("a", 33) + `"}`: 400,
		`{"pub":"other-site","stage":"render","reason":"module"}`:                         404,
		`{`: 400,
		`{"pub":"yuki-site","stage":"render","reason":"module","x":"` + strings.Repeat("a", 2000) + `"}`: 413,
	} {
		w := newWorld()
		answer := w.tell(body)
		if answer.Code != want {
			t.Errorf("%.80s: %d %s, want %d", body, answer.Code, answer.Body, want)
		}
		if heard := len(w.ear.Day()); heard != map[bool]int{true: 1}[want == 204] {
			t.Errorf("%.80s: %d counts are kept", body, heard)
		}
		if answer.Header().Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%.80s: the page cannot read the answer", body)
		}
	}
}

// What was heard is forgotten after a day, hour by hour.
func TestDay(t *testing.T) {
	w := newWorld()
	tell := func(n int, stage, reason string) {
		for i := range n {
			w.from = netip.AddrFrom4([4]byte{10, 0, byte(w.now.Hour()), byte(i)})
			if answer := w.tell(fmt.Sprintf(`{"pub":"yuki-site","stage":%q,"reason":%q}`, stage, reason)); answer.Code != 204 {
				t.Fatal(answer.Code, answer.Body)
			}
		}
	}
	tell(2, "slot", "missing")
	w.now = w.now.Add(20 * time.Hour)
	tell(1, "slot", "missing")
	tell(4, "serve", "timeout")
	want := []heartbeat.Count{{"yuki-site", "serve", "timeout", 4}, {"yuki-site", "slot", "missing", 3}}
	if diff := cmp.Diff(want, w.ear.Day()); diff != "" {
		t.Errorf("after 20 hours (-want +got):\n%s", diff)
	}
	w.now = w.now.Add(4 * time.Hour)
	want[1].Pages = 1
	if diff := cmp.Diff(want, w.ear.Day()); diff != "" {
		t.Errorf("after 24 hours (-want +got):\n%s", diff)
	}
}

// Strangers who make up reasons and come from everywhere fill no memory and no page.
func TestBounds(t *testing.T) {
	w := newWorld()
	for i := range 5000 {
		w.from = netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
		w.tell(fmt.Sprintf(`{"pub":"yuki-site","stage":"serve","reason":"r%d"}`, i))
	}
	day := w.ear.Day()
	if len(day) != 33 || day[0] != (heartbeat.Count{Site: "yuki-site", Stage: "serve", Reason: heartbeat.Other, Pages: 4968}) {
		t.Errorf("%d reasons are kept, most often %+v", len(day), day[0])
	}
}

func TestOneAddressIsHeardSomeTimesAMinute(t *testing.T) {
	w := newWorld()
	codes := map[int]int{}
	for range 100 {
		codes[w.tell(`{"pub":"yuki-site","stage":"slot","reason":"missing"}`).Code]++
	}
	if diff := cmp.Diff(map[int]int{204: 20, 429: 80}, codes); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}
