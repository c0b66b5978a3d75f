package track_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"deckle/internal/store"
	"deckle/internal/store/memory"
	"deckle/internal/token"
	"deckle/internal/track"
)

// Whoever reads all that we keep and say learns nothing of the reader, whatever
// happens to the reader's request.
func TestNothingOfTheReaderIsKept(t *testing.T) {
	inBubble(t, func(n *node, log *memory.Log) {
		header := http.Header{
			"User-Agent": {"ReaderAgent/1.0 bot"}, "Cookie": {"ts-ec=reader-cookie"}, "Referer": {"https://blog.example/?reader-referer"},
			"Accept-Language": {"reader-language"}, "X-Forwarded-For": {"203.0.113.99"},
		}
		const address = "203.0.113.88"
		wrong := filled(3)
		wrong.URL += "?reader-query"
		imp, fold := n.beacon(token.Imp, filled(1)), n.foldToken()
		told := []struct{ method, target, body string }{
			{"GET", imp + "&reader-query=1", ""},
			{"GET", imp[:len(imp)-2], ""},
			{"GET", n.beacon(token.Imp, wrong), ""}, // which is our mistake, and logged
			{"POST", track.DogearPath, dogear("fold", fold)},
			{"POST", track.DogearPath, strings.Replace(dogear("unfold", ""), "utm_source=x", "reader-query", 1)},
			{"POST", track.DogearPath, strings.Replace(dogear("unfold", ""), `"ryokan"`, `"reader-creative"`, 1)},
			{"POST", track.DogearPath, `{"pub":"reader-pub`},
		}
		for _, well := range []bool{false, true} {
			if !well {
				log.Fail(times(len(told), memory.Fault{Refuse: store.ErrFull})...)
			}
			for _, c := range told {
				n.askAs(address, header, c.method, c.target, c.body)
			}
			for log.Pending() > 0 {
				n.ask("POST", track.DogearPath, dogear("unfold", ""))
			}
		}
		if len(n.events()) < 3 || n.said.Len() == 0 {
			t.Fatal("nothing has been kept or said")
		}
		kept := map[string]string{"log": n.said.String(), "journal": raw(n, log), "metrics": exposition(n)}
		for where, text := range kept {
			for _, secret := range []string{
				address, "203.0.113.99", "\xcb\x00\x71\x58", "ReaderAgent", "reader-", imp[len("/v1/imp?t=") : len(imp)-20], imp[len(imp)-20:], fold[:20], "utm_source",
			} {
				if strings.Contains(text, secret) {
					t.Errorf("%q is in the %s", secret, where)
				}
			}
		}
	})
}

// raw is everything that the log has, byte for byte.
func raw(n *node, log *memory.Log) string {
	n.Helper()
	state, err := log.State(n.Context())
	if err != nil {
		n.Fatal(err)
	}
	var all bytes.Buffer
	ctx, stop := context.WithCancel(n.Context())
	defer stop()
	if err := log.Read(ctx, 1, func(m store.Message) error {
		all.Write(m.Data)
		if m.Seq == state.Last {
			stop()
		}
		return nil
	}); err != nil {
		n.Fatal(err)
	}
	return all.String()
}

// exposition is what /metrics says.
func exposition(n *node) string {
	n.Helper()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(n.registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if !strings.Contains(w.Body.String(), "deckle_track_events_total") {
		n.Fatalf("no metrics: %s", w.Body)
	}
	return w.Body.String()
}
