package serve_test

import (
	"bytes"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"deckle/internal/serve"
	"deckle/internal/token"
)

var update = flag.Bool("update", false, "write the goldens in testdata anew")

// An answer is what a browser gets.
type answer struct {
	status int
	world  *world

	Seatbid []struct {
		ID     string `json:"id"`
		Winner *struct {
			CreativeID   string         `json:"creativeId"`
			CampaignID   string         `json:"campaignId"`
			Version      uint32         `json:"version"`
			Pages        jsontext.Value `json:"pages"`
			LandingURL   string         `json:"landingUrl"`
			ImpURL       string         `json:"impUrl"`
			ViewURL      string         `json:"viewUrl"`
			ClickURL     string         `json:"clickUrl"`
			CTAURL       string         `json:"ctaUrl"`
			FoldToken    string         `json:"foldToken"`
			PinExpiresAt int64          `json:"pinExpiresAt"`
		} `json:"winner"`
		Reason string `json:"reason"`
		Dogear *struct {
			Honored bool   `json:"honored"`
			Reason  string `json:"reason"`
		} `json:"dogear"`
	} `json:"seatbid"`
	StalePins      []string           `json:"stalePins"`
	ReclassifyInMs *int64             `json:"reclassifyInMs"`
	RetryInMs      *int64             `json:"retryInMs"`
	Explain        *serve.Explanation `json:"explain"`

	Error  string `json:"error"`
	Reason string `json:"reason"`
	Field  string `json:"field"`
}

// ask posts a batch and reads the answer, which has no member that we do not know.
func (w *world) ask(batch string, header ...string) (*answer, []byte) {
	w.Helper()
	rec := post(w.handler(), batch, header...)
	a := &answer{status: rec.Code, world: w}
	body := rec.Body.Bytes()
	if rec.Code == http.StatusNoContent {
		return a, body
	}
	if err := json.Unmarshal(body, a, json.RejectUnknownMembers(true)); err != nil {
		w.Fatalf("status %d: %v\n%s", rec.Code, err, body)
	}
	if got := rec.Header().Get("Access-Control-Allow-Origin"); got != "*" {
		w.Errorf("status %d: Access-Control-Allow-Origin is %q", rec.Code, got)
	}
	return a, body
}

// beacon opens the token of a beacon's URL.
func (a *answer) beacon(t testing.TB, e token.Event, address string) token.Beacon {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	b, err := a.world.verifier().Beacon(e, u.Query().Get("t"), a.world.at)
	if err != nil {
		t.Fatalf("%s: %v", e, err)
	}
	return b
}

// golden asks the world over HTTP and compares request and answer with the pair in
// testdata. Tokens, of which no two are the same, are opened.
func (w *world) golden(t *testing.T, n int, name, batch string) *answer {
	t.Helper()
	a, body := w.ask(strings.Replace(batch, "{debug}", ring.MintDebug(site, w.at), 1))
	got := txtar.Format(&txtar.Archive{
		Comment: []byte(name + "\n\n"),
		Files: []txtar.File{
			{Name: "request", Data: pretty(t, []byte(batch))},
			{Name: fmt.Sprintf("response %d", a.status), Data: pretty(t, a.opened(t, body))},
		},
	})
	file := filepath.Join("testdata", "contract", fmt.Sprintf("%02d.txtar", n))
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got; -update writes it anew):\n%s", file, diff)
	}
	return a
}

// opened is an answer's body with what its tokens say in their places.
func (a *answer) opened(t *testing.T, body []byte) []byte {
	t.Helper()
	for i := range a.Seatbid {
		winner := a.Seatbid[i].Winner
		if winner == nil {
			continue
		}
		for e, address := range map[token.Event]string{
			token.Imp: winner.ImpURL, token.View: winner.ViewURL, token.Click: winner.ClickURL, token.CTA: winner.CTAURL,
		} {
			b := a.beacon(t, e, address)
			base, text, _ := strings.Cut(address, "?t=")
			body = bytes.Replace(body, []byte(text), fmt.Appendf(nil, "{%s, %d micros by %v, request %s, dogeared %v, category %s}",
				place(&b.Slot), b.Price, b.Leases, b.RequestID, b.Dogeared, b.Category), 1)
			if base != "https://ads.yukiblog.jp/v1/"+string(e) {
				t.Errorf("%s goes to %s", e, base)
			}
		}
		if winner.FoldToken != "" {
			f, err := a.world.verifier().Fold(winner.FoldToken, site, a.Seatbid[i].ID, winner.CreativeID, a.world.at)
			if err != nil {
				t.Fatal(err)
			}
			body = bytes.Replace(body, []byte(winner.FoldToken), []byte("{"+place(&f.Slot)+"}"), 1)
		}
	}
	return body
}

func place(s *token.Slot) string {
	return fmt.Sprintf("%s %s %s: %s v%d of %s, %s", s.Site, s.URL, s.Slot, s.Creative, s.Version, s.Campaign, s.Advertiser)
}

func pretty(t *testing.T, data []byte) []byte {
	t.Helper()
	v := jsontext.Value(bytes.Clone(data))
	if err := v.Indent(jsontext.WithIndent("  ")); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return append(v, '\n')
}
