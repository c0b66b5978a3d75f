package token_test

import (
	"encoding/base64"
	"strconv"
	"strings"
	"testing"
	"time"

	"deckle/internal/token"
)

// Whatever comes, nothing panics, and what is believed is a token to the letter: the
// text that the oracle makes of what it says. The fuzzer cannot sign; so each text
// is tried as it came, and again with its payload signed by an honest key.
func FuzzVerify(f *testing.F) {
	key := testKey(0)
	ring := token.NewRing(key, nil)
	now := time.Unix(vectorNow, 0)
	b := beacon()
	f.Add(ring.MintFold(b.Slot, now))
	f.Add(ring.MintDebug(site, now))
	for _, e := range events {
		f.Add(ring.MintBeacon(e, b, now))
	}
	for _, c := range makeBeaconVectors().Cases {
		f.Add(c.Token)
	}
	folds, _ := readFoldVectors(f)
	for _, c := range folds.Cases {
		f.Add(c.Token)
	}
	f.Fuzz(func(t *testing.T, text string) {
		checkBelieved(t, key, text)
		part, _, _ := strings.Cut(text, ".")
		payload, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil {
			payload = []byte(text)
		}
		for _, e := range append(events, "fold") {
			checkBelieved(t, key, resigned(key, string(e), 5, string(payload)))
		}
		checkBelieved(t, key, resigned(key, "debug", 1, string(payload)))
	})
}

// checkBelieved offers a text as everything that it could be.
func checkBelieved(t *testing.T, key []byte, text string) {
	t.Helper()
	v := verifier(token.NewRing(key, nil))
	raw := []string{}
	if part, _, ok := strings.Cut(text, "."); ok {
		if payload, err := base64Decode(part); err == nil {
			raw = strings.Split(payload, "|")
		}
	}
	now := time.Unix(vectorNow, 0)
	if len(raw) > 5 { // so that its age is never the reason
		if bucket, err := strconv.ParseInt(raw[5], 10, 64); err == nil && bucket < 1<<50 {
			now = time.Unix(bucket*60, 0)
		}
	}
	for _, e := range events {
		if b, err := v.Beacon(e, text, now); err == nil {
			if want := oracleBeacon(key, e, b, now.Unix()/60, raw[8]); text != want {
				t.Errorf("%q is believed as a beacon, whose one text is %q", text, want)
			}
		}
	}
	if len(raw) == 9 {
		unescape := strings.NewReplacer("%7C", "|", "%25", "%")
		if fold, err := v.Fold(text, site, unescape.Replace(raw[2]), unescape.Replace(raw[3]), now); err == nil {
			if want := oracleFold(key, fold.Slot, now.Unix()/60, raw[8]); text != want {
				t.Errorf("%q is believed as a fold, whose one text is %q", text, want)
			}
		}
	}
	if err := v.Debug(text, site, time.Unix(vectorNow, 0)); err == nil {
		if want := oracleToken(key, "debug", 1, raw...); text != want {
			t.Errorf("%q is believed as a debug token, whose one text is %q", text, want)
		}
	}
}

// Mutations of a valid token that keep its shape: nothing of them is believed unless
// it is the token itself.
func FuzzMutated(f *testing.F) {
	now := time.Unix(vectorNow, 0)
	ring := token.NewRing(testKey(0), nil)
	f.Add(uint8(0), uint8(6), "camp-evil", uint16(3), uint8(1))
	f.Add(uint8(1), uint8(9), "AAAAAAAAAAA", uint16(0), uint8(0))
	f.Add(uint8(4), uint8(12), "1", uint16(300), uint8(128))
	f.Fuzz(func(t *testing.T, kind, field uint8, value string, at uint16, flip uint8) {
		b := beacon()
		literals := []string{"imp", "view", "click", "cta", "fold"}
		literal := literals[int(kind)%len(literals)]
		text := ring.MintFold(b.Slot, now)
		if literal != "fold" {
			text = ring.MintBeacon(token.Event(literal), b, now)
		}
		part, mac, _ := strings.Cut(text, ".")
		fields := rawFields(t, text)
		fields[int(field)%len(fields)] = value
		swapped := b64([]byte(strings.Join(fields, "|"))) + "." + mac
		flipped := []byte(text)
		flipped[int(at)%len(flipped)] ^= flip
		for _, other := range []string{swapped, string(flipped), part + "." + mac + value, value + text, text[:int(at)%len(text)]} {
			if other == text {
				continue
			}
			v := verifier(ring)
			for _, e := range events {
				if _, err := v.Beacon(e, other, now); err == nil {
					t.Errorf("%q is believed; only %q was made", other, text)
				}
			}
			if _, err := v.Fold(other, site, b.Slot.Slot, b.Creative, now); err == nil {
				t.Errorf("%q is believed; only %q was made", other, text)
			}
		}
	})
}
