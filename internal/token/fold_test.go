package token_test

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"

	"deckle/internal/token"
)

// foldVectors is testdata/fold-token.json.
type foldVectors struct {
	Note            string
	KeyHex          string
	Worked, Worked2 struct {
		Fields struct {
			Pub, URL, Slot, CID, Camp, Adv, Nonce string
			Ver                                   uint32
			Bucket                                int64
		}
		Payload, Signed, Token string
	}
	Cases []struct {
		Name, Pub, SlotID, CreativeID, Token, Expect, RequestID string
		NowUnix                                                 int64
	}
}

func readFoldVectors(t testing.TB) (v foldVectors, key []byte) {
	t.Helper()
	readJSON(t, "fold-token.json", &v)
	key, err := hex.DecodeString(v.KeyHex)
	if err != nil || len(v.Cases) < 28 {
		t.Fatalf("read %d cases, %v", len(v.Cases), err)
	}
	return v, key
}

func TestFoldVectors(t *testing.T) {
	v, key := readFoldVectors(t)
	verify := verifier(token.NewRing(key, nil))
	for _, c := range v.Cases {
		t.Run(c.Name, func(t *testing.T) {
			fold, err := verify.Fold(c.Token, c.Pub, c.SlotID, c.CreativeID, time.Unix(c.NowUnix, 0))
			if got := reason(t, err); got != c.Expect || fold.RequestID != c.RequestID {
				t.Errorf("got %s and request id %q, want %s and %q", got, fold.RequestID, c.Expect, c.RequestID)
			}
		})
	}
}

// The worked examples say what the fields of a token are, and hold the oracle to it.
func TestFoldWorkedExamples(t *testing.T) {
	v, key := readFoldVectors(t)
	for _, w := range []struct {
		name  string
		token string
	}{{"worked", v.Worked.Token}, {"worked2", v.Worked2.Token}} {
		f := v.Worked.Fields
		if w.name == "worked2" {
			f = v.Worked2.Fields
		}
		want := token.Slot{
			Site: f.Pub, URL: f.URL, Slot: f.Slot, Creative: f.CID,
			Version: f.Ver, Campaign: f.Camp, Advertiser: f.Adv,
		}
		if got := oracleFold(key, want, f.Bucket, f.Nonce); got != w.token {
			t.Errorf("%s: the oracle makes %s, want %s", w.name, got, w.token)
		}
		fold, err := verifier(token.NewRing(key, nil)).Fold(w.token, f.Pub, f.Slot, f.CID, time.Unix(f.Bucket*60, 0))
		if err != nil || fold.Slot != want {
			t.Errorf("%s says %+v, %v; want %+v", w.name, fold.Slot, err, want)
		}
	}
}

func TestFoldClock(t *testing.T) {
	made := time.Unix(1_740_000_000+17, 0) // within the minute
	ring := token.NewRing(testKey(0), nil)
	s := beacon().Slot
	text := ring.MintFold(s, made)
	minute := made.Truncate(time.Minute)
	for _, c := range []struct {
		after time.Duration
		want  string
	}{
		{-30*time.Minute - time.Second, "stale"},
		{-30 * time.Minute, "ok"},
		{0, "ok"},
		{31*time.Minute - time.Nanosecond, "ok"},
		{31 * time.Minute, "stale"},
		{1_000_000 * time.Hour, "stale"},
		{-400_000 * time.Hour, "stale"}, // before 1970
	} {
		_, err := verifier(ring).Fold(text, s.Site, s.Slot, s.Creative, minute.Add(c.after))
		if got := reason(t, err); got != c.want {
			t.Errorf("%v after its minute: %s, want %s", c.after, got, c.want)
		}
	}
}

// A fold counts by its text, so there must be one text only. Each of these has the
// same fields and the same mac to a decoder that is less strict.
func TestOneTokenHasOneText(t *testing.T) {
	key := testKey(0)
	ring, now := token.NewRing(key, nil), time.Unix(1_740_000_000, 0)
	s := beacon().Slot
	s.URL, s.Creative = "https://yukiblog.jp/50%|off", "a|b"
	text := ring.MintFold(s, now)
	payload, mac, _ := strings.Cut(text, ".")
	written := map[string]bool{
		payload + "=." + mac: true, payload + "==." + mac: true, text + "=": true, text + "==": true, text + "A": true,
		text + "\n": true, text + " ": true, " " + text: true, text + ".": true, "." + text: true, text + "\x00": true,
		strings.ToUpper(text): true, strings.NewReplacer("-", "+", "_", "/").Replace(text): true,
	}
	for i := range len(text) + 1 {
		for _, skipped := range []string{"\n", "\r", "\r\n", "=", " ", "%"} {
			written[text[:i]+skipped+text[i:]] = true
		}
	}
	for _, end := range []int{len(payload), len(text)} { // spare bits
		for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" {
			written[text[:end-1]+string(c)+text[end:]] = true
		}
	}
	fields := rawFields(t, text)
	for i, f := range fields { // the same values, written otherwise, and signed by an honest key
		others := []string{
			strings.ReplaceAll(f, "%7C", "%7c"), strings.ReplaceAll(f, "%25", "%"), strings.ReplaceAll(f, "s", "%73"),
			f + "%", f + "%2", f + "%00",
		}
		if i == 4 || i == 5 || i == 8 { // numbers and the nonce
			others = append(others, "0"+f, "+"+f, " "+f, f+" ", f+"\n", f+"=")
		}
		for _, other := range others {
			again := slices.Clone(fields)
			again[i] = other
			written[resigned(key, "fold", 5, strings.Join(again, "|"))] = true
		}
	}
	delete(written, text)
	if len(written) < 1_000 {
		t.Fatalf("only %d ways", len(written))
	}
	for other := range written {
		if fold, err := verifier(ring).Fold(other, s.Site, s.Slot, s.Creative, now); err == nil {
			t.Errorf("%q is believed as well, and says %+v", other, fold)
		}
	}
}

func TestKeyRotation(t *testing.T) {
	now, s := time.Unix(1_740_000_000, 0), beacon().Slot
	made := token.NewRing(testKey(1), nil)
	text, seen := made.MintFold(s, now), made.MintBeacon(token.Imp, beacon(), now)
	for _, c := range []struct {
		name string
		ring *token.Ring
		want string
	}{
		{"current", token.NewRing(testKey(1), testKey(0)), "ok"},
		{"previous", token.NewRing(testKey(2), testKey(1)), "ok"},
		{"gone", token.NewRing(testKey(3), testKey(2)), "bad_signature"},
		{"no previous", token.NewRing(testKey(2), nil), "bad_signature"},
	} {
		_, err := verifier(c.ring).Fold(text, s.Site, s.Slot, s.Creative, now)
		if got := reason(t, err); got != c.want {
			t.Errorf("%s: fold is %s, want %s", c.name, got, c.want)
		}
		b, err := verifier(c.ring).Beacon(token.Imp, seen, now)
		if got := reason(t, err); got != c.want || err == nil && b.Price != beacon().Price {
			t.Errorf("%s: beacon is %s with price %d, want %s", c.name, got, b.Price, c.want)
		}
	}
}

// A short secret is a mistake of ours that would let everyone make tokens.
func TestShortSecretPanics(t *testing.T) {
	for _, secrets := range [][2][]byte{{nil, nil}, {testKey(0)[:31], nil}, {testKey(0), testKey(1)[:31]}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a ring was made of %d and %d bytes", len(secrets[0]), len(secrets[1]))
				}
			}()
			token.NewRing(secrets[0], secrets[1])
		}()
	}
}
