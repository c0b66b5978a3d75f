package token_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"deckle/internal/token"
)

const site = "yuki-site"

// testKey is a secret of 32 bytes that count up from n.
func testKey(n byte) []byte {
	secret := make([]byte, 32)
	for i := range secret {
		secret[i] = n + byte(i)
	}
	return secret
}

// verifier knows one site's ring.
func verifier(ring *token.Ring) *token.Verifier {
	return &token.Verifier{
		Keys:         func(of string) (*token.Ring, bool) { return ring, of == site },
		FoldWindow:   30 * time.Minute,
		BeaconWindow: 3 * time.Minute,
		ClickWindow:  5 * time.Minute,
		MaxSkew:      2 * time.Minute,
	}
}

func beacon() token.Beacon {
	return token.Beacon{
		Slot: token.Slot{
			Site: site, URL: "https://yukiblog.jp/autumn-hikes", Slot: "sidebar-1",
			Creative: "ryokan-magazine-001", Version: 3, Campaign: "camp-ryokan", Advertiser: "adv-onsen",
		},
		Price:     1460,
		RequestID: "5f58f22dc9ffcbbd",
		Leases:    []string{"n1-7", "n1-12"},
		Category:  "653",
	}
}

// reason is why a token was refused, or "ok".
func reason(t testing.TB, err error) string {
	t.Helper()
	if err == nil {
		return "ok"
	}
	refused, ok := errors.AsType[*token.Error](err)
	if !ok {
		t.Fatalf("got the error %v, want a *token.Error", err)
	}
	return string(refused.Reason)
}

// readJSON reads a file of testdata, strictly.
func readJSON(t testing.TB, name string, into any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}
