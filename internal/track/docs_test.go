package track_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"deckle/internal/publicapi"
	"deckle/internal/token"
	"deckle/internal/track"
)

// What browsers get and how much they may tell is in docs/reader-api.md.
func TestDocumented(t *testing.T) {
	data, err := os.ReadFile("../../docs/reader-api.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(data)
	l := track.DefaultLimits()
	want := []string{
		limitRow("`imp` and `view`", l.Sights), limitRow("`click` and `cta`", l.Clicks),
		limitRow("folds and unfolds", l.Bookmarks), limitRow("all events together", l.Refuse),
		fmt.Sprintf("%d a minute, %d at once", l.Unverified.PerMinute, l.Unverified.Burst),
	}
	for _, reason := range []any{
		publicapi.ReasonBadJSON, publicapi.ReasonMissing, publicapi.ReasonWrong, publicapi.ReasonUnknownPub, publicapi.ReasonMethod,
		publicapi.ReasonTimeout, publicapi.ReasonTooLarge, publicapi.ReasonMediaType, publicapi.ReasonRate, publicapi.ReasonInternal,
		publicapi.ReasonUnavailable, token.BadFormat, token.BadPayload, token.SlotMismatch, token.CreativeMismatch, token.BadSignature, token.Stale,
	} {
		want = append(want, fmt.Sprintf("`%s`", reason))
	}
	for _, text := range want {
		if !strings.Contains(doc, text) {
			t.Errorf("docs/reader-api.md does not have %s", text)
		}
	}
}

// limitRow is how a limit stands in the table.
func limitRow(what string, l publicapi.Limit) string {
	thousands := func(n int) string {
		if n >= 1_000 {
			return fmt.Sprintf("%d,%03d", n/1_000, n%1_000)
		}
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("| %s | %s | %s |", what, thousands(l.PerMinute), thousands(l.Burst))
}
