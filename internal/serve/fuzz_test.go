package serve_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"deckle/internal/serve"
)

// Whatever a stranger sends gets an answer that a script can read, and what is
// accepted is within the limits.
func FuzzBatch(f *testing.F) {
	for _, c := range contract() {
		f.Add(c.batch)
	}
	f.Add(ask(imps("a 300x250", "b 728x90"), batch{"recent": []string{"autumn"}, "seen": map[string]any{"jet": twice}}))
	f.Add(`{"pub":"yuki-site","url":"https://yukiblog.jp/","imp":[{"id":"a","w":1e3,"h":250}],"pins":null,"seen":{},"debug":""}`)
	f.Add(`{"pub":"yuki-site","url":"HTTPS://YUKIBLOG.JP:443/%zz","imp":[{}],"pins":[{}]}`)
	w := newWorld(f)
	h := w.handler()
	f.Fuzz(func(t *testing.T, body string) {
		w.at = w.at.Add(1e9) // so that nobody asks too often
		w.page.At = w.at
		rec := post(h, body)
		got := rec.Body.Bytes()
		if rec.Code != http.StatusOK {
			var a answer
			if !slices.Contains([]int{400, 403, 404, 413}, rec.Code) || json.Unmarshal(got, &a) != nil || a.Error == "" || a.Reason == "" {
				t.Fatalf("%d %s", rec.Code, got)
			}
			return
		}
		var b serve.Batch
		if err := json.Unmarshal([]byte(body), &b); err != nil {
			t.Fatalf("accepted: %v", err)
		}
		if len(body) > 64<<10 || len(b.URL) > 2048 || len(b.Imps) > 40 || len(b.Pins) > 200 || len(b.Seen) > 500 {
			t.Fatal("accepted beyond the limits")
		}
		var a answer
		if err := json.Unmarshal(got, &a); err != nil || !jsontext.Value(got).IsValid() {
			t.Fatalf("%v in %s", err, got)
		}
		if len(a.Seatbid) != len(b.Imps) {
			t.Fatalf("%d outcomes for %d imps", len(a.Seatbid), len(b.Imps))
		}
		for i, s := range a.Seatbid {
			if s.ID != b.Imps[i].ID || (s.Winner == nil) == (s.Reason == "") {
				t.Fatalf("outcome %d is %+v", i, s)
			}
			if s.Winner != nil && strings.ContainsAny(s.Winner.ImpURL, " \n\"") {
				t.Fatalf("beacon is %q", s.Winner.ImpURL)
			}
		}
	})
}
