package token_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"deckle"
	"deckle/internal/token"
)

var update = flag.Bool("update", false, "write testdata/beacon-token.json anew")

// beaconVectors is testdata/beacon-token.json: the oracle's tokens, so that another
// implementation can be held to them.
type beaconVectors struct {
	Note        string       `json:"note"`
	KeyHex      string       `json:"keyHex"`
	PreviousHex string       `json:"previousKeyHex"`
	Cases       []beaconCase `json:"cases"`
}

type beaconCase struct {
	Name    string      `json:"name"`
	Event   token.Event `json:"event"`
	NowUnix int64       `json:"nowUnix"`
	Token   string      `json:"token"`
	Expect  string      `json:"expect"`
	Says    *said       `json:"says,omitempty"`
}

// said is what a token says, in the names of the format.
type said struct {
	Pub       string   `json:"pub"`
	URL       string   `json:"url"`
	Slot      string   `json:"slot"`
	CID       string   `json:"cid"`
	Version   uint32   `json:"ver"`
	Campaign  string   `json:"camp"`
	Adv       string   `json:"adv"`
	Price     int64    `json:"price"`
	RequestID string   `json:"request"`
	Leases    []string `json:"leases"`
	Dogeared  bool     `json:"dogeared"`
	Category  string   `json:"category"`
}

func says(b token.Beacon) *said {
	return &said{
		b.Site, b.URL, b.Slot.Slot, b.Creative, b.Version, b.Campaign, b.Advertiser,
		int64(b.Price), b.RequestID, append([]string{}, b.Leases...), b.Dogeared, b.Category,
	}
}

const (
	vectorBucket = 29_000_000
	vectorNow    = vectorBucket * 60
	vectorNonce  = "AAECAwQFBgcICQoLDA0ODw"
)

// makeBeaconVectors are the cases, made by the oracle.
func makeBeaconVectors() beaconVectors {
	v := beaconVectors{
		Note:   "The package doc of internal/token. The keys are those of pub yuki-site. Beacons: window 3 minutes (imp, view) and 5 minutes (click, cta), skew 2 minutes.",
		KeyHex: hex.EncodeToString(testKey(0)), PreviousHex: hex.EncodeToString(testKey(1)),
	}
	add := func(name string, e token.Event, now int64, text, expect string, b *token.Beacon) {
		c := beaconCase{Name: name, Event: e, NowUnix: now, Token: text, Expect: expect}
		if b != nil {
			c.Says = says(*b)
		}
		v.Cases = append(v.Cases, c)
	}
	made := func(key byte, e token.Event, with func(b *token.Beacon)) (string, *token.Beacon) {
		b := beacon()
		if with != nil {
			with(&b)
		}
		return oracleBeacon(testKey(key), e, b, vectorBucket, vectorNonce), &b
	}
	for _, e := range events {
		text, b := made(0, e, nil)
		add(string(e), e, vectorNow, text, "ok", b)
	}
	for name, with := range contents {
		text, b := made(0, token.Imp, with)
		add(name, token.Imp, vectorNow, text, "ok", b)
	}
	text, b := made(1, token.Imp, nil)
	add("previous key", token.Imp, vectorNow, text, "ok", b)
	text, _ = made(2, token.Imp, nil)
	add("unknown key", token.Imp, vectorNow, text, "bad_signature", nil)
	text, _ = made(0, token.Imp, func(b *token.Beacon) { b.Site = "other-site" })
	add("unknown pub", token.Imp, vectorNow, text, "bad_signature", nil)
	text, _ = made(0, token.View, nil)
	add("event literal is signed", token.Imp, vectorNow, text, "bad_signature", nil)
	add("a fold token is no beacon", token.Imp, vectorNow, oracleFold(testKey(0), b.Slot, vectorBucket, vectorNonce), "bad_payload", nil)
	addClock(add, made)
	addWrong(add)
	slices.SortStableFunc(v.Cases, func(a, b beaconCase) int { return strings.Compare(a.Name, b.Name) })
	return v
}

var events = []token.Event{token.Imp, token.View, token.Click, token.CTA}

var contents = map[string]func(b *token.Beacon){
	"dog-eared":                 func(b *token.Beacon) { b.Price, b.Leases, b.Dogeared = 0, nil, true },
	"no category":               func(b *token.Beacon) { b.Category = "" },
	"the highest price":         func(b *token.Beacon) { b.Price = math.MaxInt64 },
	"one lease":                 func(b *token.Beacon) { b.Leases = []string{"n1-7"} },
	"odd lease ids":             func(b *token.Beacon) { b.Leases = []string{"a,b", "50%", "c|d", "%2C", "ü"} },
	"a pipe and a percent sign": func(b *token.Beacon) { b.URL, b.Campaign = "https://yukiblog.jp/a|b%25", "c|1" },
	"unicode in the URL":        func(b *token.Beacon) { b.URL = "https://yukiblog.jp/秋の山" },
	"the highest version, empty ids": func(b *token.Beacon) {
		*b = token.Beacon{Slot: token.Slot{Site: site, Version: math.MaxUint32}, RequestID: "0000000000000000"}
	},
}

func addClock(add func(string, token.Event, int64, string, string, *token.Beacon), made func(byte, token.Event, func(*token.Beacon)) (string, *token.Beacon)) {
	for _, c := range []struct {
		name   string
		e      token.Event
		after  int64 // seconds after the bucket began
		expect string
	}{
		{"imp at the end of window and skew", token.Imp, 5*60 + 59, "ok"},
		{"imp after window and skew", token.Imp, 6 * 60, "stale"},
		{"imp ahead by the skew", token.Imp, -2 * 60, "ok"},
		{"imp ahead by more than the skew", token.Imp, -2*60 - 1, "stale"},
		{"click at the end of window and skew", token.Click, 7*60 + 59, "ok"},
		{"click after window and skew", token.Click, 8 * 60, "stale"},
	} {
		text, b := made(0, c.e, nil)
		if c.expect != "ok" {
			b = nil
		}
		add(c.name, c.e, vectorNow+c.after, text, c.expect, b)
	}
	text, _ := made(2, token.Imp, nil)
	add("signature before freshness", token.Imp, vectorNow+86_400, text, "bad_signature", nil)
}

// addWrong adds payloads that are properly signed and that nothing of ours makes.
func addWrong(add func(string, token.Event, int64, string, string, *token.Beacon)) {
	text := oracleBeacon(testKey(0), token.Imp, beacon(), vectorBucket, vectorNonce)
	part, mac, _ := strings.Cut(text, ".")
	payload, _ := base64Decode(part)
	for name, other := range map[string]string{
		"no dot": part + mac, "three parts": text + ".x", "empty": "",
	} {
		add(name, token.Imp, vectorNow, other, "bad_format", nil)
	}
	for name, other := range map[string]string{
		"empty mac": part + ".", "spare bits in the mac": text[:len(text)-1] + next(text[len(text)-1]), "line break inside the mac": part + "." + mac[:9] + "\n" + mac[9:],
		"campaign swapped, old mac": b64([]byte(strings.Replace(payload, "camp-ryokan", "camp-evil", 1))) + "." + mac,
		"price swapped, old mac":    b64([]byte(strings.Replace(payload, strings.Split(payload, "|")[9], "AAAAAAAAAAA", 1))) + "." + mac,
	} {
		add(name, token.Imp, vectorNow, other, "bad_signature", nil)
	}
	add("line break inside the payload", token.Imp, vectorNow, part[:9]+"\n"+part[9:]+"."+mac, "bad_payload", nil)
	for name, edit := range wrongFields {
		fields := strings.Split(payload, "|")
		fields[edit.i] = edit.to
		add(name, token.Imp, vectorNow, resigned(testKey(0), "imp", 5, strings.Join(fields, "|")), "bad_payload", nil)
	}
	add("fifteen fields", token.Imp, vectorNow, resigned(testKey(0), "imp", 5, payload+"|x"), "bad_payload", nil)
	add("thirteen fields", token.Imp, vectorNow, resigned(testKey(0), "imp", 5, payload[:strings.LastIndexByte(payload, '|')]), "bad_payload", nil)
}

var wrongFields = map[string]struct {
	i  int
	to string
}{
	"not UTF-8":                         {1, "https://yukiblog.jp/\xff"},
	"lower-case escape":                 {1, "https://yukiblog.jp/a%7cb"},
	"needless escape":                   {1, "https://yukiblog.jp/%61"},
	"escape cut short":                  {1, "https://yukiblog.jp/%2"},
	"leading zeros in the version":      {4, "003"},
	"version beyond 32 bits":            {4, "4294967296"},
	"empty version":                     {4, ""},
	"signed bucket":                     {5, "-1"},
	"bucket beyond 63 bits":             {5, "9223372036854775808"},
	"nonce of 15 bytes":                 {8, "AAECAwQFBgcICQoLDA0O"},
	"spare bits in the nonce":           {8, "AAECAwQFBgcICQoLDA0ODx"},
	"price of 7 bytes":                  {9, "AAAAAAAAAA"},
	"price in plain":                    {9, "1460"},
	"spare bits in the price":           {9, "AAAAAAAAAAB"},
	"request id in upper case":          {10, "5F58F22DC9FFCBBD"},
	"request id too short":              {10, "5f58f22dc9ffcbb"},
	"no request id":                     {10, ""},
	"empty lease id":                    {11, "n1-7,,n1-12"},
	"comma at the end of the lease ids": {11, "n1-7,"},
	"lease id escaped once":             {11, "a%2Cb"},
	"dogeared 2":                        {12, "2"},
	"dogeared empty":                    {12, ""},
}

func TestBeaconVectors(t *testing.T) {
	made := new(bytes.Buffer)
	enc := json.NewEncoder(made)
	enc.SetIndent("", " ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(makeBeaconVectors()); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("testdata/beacon-token.json", made.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := os.ReadFile("testdata/beacon-token.json")
	if err != nil || !bytes.Equal(stored, made.Bytes()) {
		t.Errorf("testdata/beacon-token.json is not what the oracle makes, %v", err)
	}

	var v beaconVectors
	readJSON(t, "beacon-token.json", &v)
	verify := verifier(token.NewRing(testKey(0), testKey(1)))
	for _, c := range v.Cases {
		t.Run(c.Name, func(t *testing.T) {
			b, err := verify.Beacon(c.Event, c.Token, time.Unix(c.NowUnix, 0))
			if got := reason(t, err); got != c.Expect {
				t.Fatalf("got %s, want %s", got, c.Expect)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(c.Says, says(b)); diff != "" {
				t.Errorf("it says (-want +got):\n%s", diff)
			}
		})
	}
}

// What is minted is what the oracle makes with the same nonce, and it says what went
// in, whatever that is.
func TestBeaconRoundTrip(t *testing.T) {
	key := testKey(0)
	ring := token.NewRing(key, nil)
	rapid.Check(t, func(t *rapid.T) {
		b, e := anyBeacon(t), rapid.SampledFrom(events).Draw(t, "event")
		now := time.Unix(rapid.Int64Range(0, 1<<40).Draw(t, "now"), 0)
		text := ring.MintBeacon(e, b, now)
		payload, _ := base64Decode(strings.Split(text, ".")[0])
		nonce := strings.Split(payload, "|")[8]
		if want := oracleBeacon(key, e, b, now.Unix()/60, nonce); text != want {
			t.Fatalf("minted %s, want %s", text, want)
		}
		got, err := verifier(ring).Beacon(e, text, now)
		if diff := cmp.Diff(says(b), says(got)); err != nil || diff != "" {
			t.Fatalf("%v; (-in +out):\n%s", err, diff)
		}
		for _, other := range events {
			if _, err := verifier(ring).Beacon(other, text, now); other != e && err == nil {
				t.Fatalf("a token of %s is believed for %s", e, other)
			}
		}
	})
}

func TestFoldRoundTrip(t *testing.T) {
	key := testKey(0)
	ring := token.NewRing(key, nil)
	rapid.Check(t, func(t *rapid.T) {
		s := anyBeacon(t).Slot
		now := time.Unix(rapid.Int64Range(0, 1<<40).Draw(t, "now"), 0)
		text := ring.MintFold(s, now)
		payload, _ := base64Decode(strings.Split(text, ".")[0])
		if want := oracleFold(key, s, now.Unix()/60, strings.Split(payload, "|")[8]); text != want {
			t.Fatalf("minted %s, want %s", text, want)
		}
		if got, err := verifier(ring).Fold(text, s.Site, s.Slot, s.Creative, now); err != nil || got.Slot != s {
			t.Fatalf("got %+v, %v; want %+v", got, err, s)
		}
		if again := ring.MintFold(s, now); again == text {
			t.Fatal("two tokens are one")
		}
	})
}

func anyBeacon(t *rapid.T) token.Beacon {
	odd := rapid.OneOf(rapid.String(), rapid.StringOfN(rapid.SampledFrom([]rune("|%,.257Cé秋a")), 0, 20, -1))
	return token.Beacon{
		Slot: token.Slot{
			Site: site, URL: odd.Draw(t, "url"), Slot: odd.Draw(t, "slot"), Creative: odd.Draw(t, "creative"),
			Version: rapid.Uint32().Draw(t, "version"), Campaign: odd.Draw(t, "campaign"), Advertiser: odd.Draw(t, "advertiser"),
		},
		Price:     deckle.Money(rapid.Int64().Draw(t, "price")),
		RequestID: rapid.StringMatching(`[0-9a-f]{16}`).Draw(t, "request"),
		Leases:    rapid.SliceOfN(odd.Filter(func(s string) bool { return s != "" }), 0, 8).Draw(t, "leases"),
		Dogeared:  rapid.Bool().Draw(t, "dogeared"),
		Category:  odd.Draw(t, "category"),
	}
}

// A price shows neither in its bytes, nor in a second token, nor in a length.
func TestPriceIsSealed(t *testing.T) {
	ring, now := token.NewRing(testKey(0), nil), time.Unix(vectorNow, 0)
	seen, lengths := map[string]bool{}, map[int]bool{}
	for _, price := range []deckle.Money{0, 1, 1460, 1_000_000, math.MaxInt64} {
		b := beacon()
		b.Price = price
		for _, e := range append(events, token.Imp) {
			text := ring.MintBeacon(e, b, now)
			seen[rawFields(t, text)[9]] = true
			lengths[len(text)] = true
		}
	}
	if len(seen) != 25 || len(lengths) != 1 {
		t.Errorf("25 tokens have %d sealed prices and the lengths %v, want 25 and one", len(seen), lengths)
	}
	dogeared := beacon()
	dogeared.Price = 0
	if sealed, _ := base64Decode(rawFields(t, ring.MintBeacon(token.Imp, dogeared, now))[9]); sealed == strings.Repeat("\x00", 8) {
		t.Error("a price of zero shows")
	}
}

func TestDebug(t *testing.T) {
	ring, now := token.NewRing(testKey(0), nil), time.Unix(vectorNow, 0)
	text := ring.MintDebug(site, now)
	if want := oracleToken(testKey(0), "debug", 1, site, "29000000", rawFields(t, text)[2]); text != want {
		t.Errorf("minted %s, want %s", text, want)
	}
	s := beacon().Slot
	for _, c := range []struct {
		name, text, site string
		after            time.Duration
		want             string
	}{
		{"at once", text, site, 0, "ok"},
		{"at the end", text, site, 11*time.Minute - time.Second, "ok"},
		{"too late", text, site, 11 * time.Minute, "stale"},
		{"from a clock ahead", text, site, -10 * time.Minute, "ok"},
		{"from a clock too far ahead", text, site, -10*time.Minute - time.Second, "stale"},
		{"for another site", text, "other-site", 0, "bad_signature"},
		{"of another key", token.NewRing(testKey(1), nil).MintDebug(site, now), site, 0, "bad_signature"},
		{"of another site", ring.MintDebug("other-site", now), "other-site", 0, "bad_signature"},
		{"a fold", ring.MintFold(s, now), site, 0, "bad_payload"},
		{"two fields", resigned(testKey(0), "debug", 1, site+"|29000000"), site, 0, "bad_payload"},
		{"a bucket with a zero before it", resigned(testKey(0), "debug", 1, site+"|029000000|"+vectorNonce), site, 0, "bad_payload"},
		{"none", "", site, 0, "bad_format"},
	} {
		if got := reason(t, verifier(ring).Debug(c.text, c.site, now.Add(c.after))); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if _, err := verifier(ring).Fold(text, site, s.Slot, s.Creative, now); reason(t, err) != "bad_payload" {
		t.Errorf("a debug token as a fold: %v", err)
	}
}

// A batch mints five tokens for every slot that it fills.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("pools are emptied at random")
	}
	ring, now, b := token.NewRing(testKey(0), nil), time.Unix(vectorNow, 0), beacon()
	v := verifier(ring)
	fold, imp := ring.MintFold(b.Slot, now), ring.MintBeacon(token.Imp, b, now)
	for name, f := range map[string]func(){
		"mint fold":     func() { ring.MintFold(b.Slot, now) },
		"mint beacon":   func() { ring.MintBeacon(token.Imp, b, now) },
		"verify fold":   func() { v.Fold(fold, b.Site, b.Slot.Slot, b.Creative, now) },
		"verify beacon": func() { v.Beacon(token.Imp, imp, now) },
	} {
		if got := testing.AllocsPerRun(100, f); got > 2 {
			t.Errorf("%s: %v allocations, want 2", name, got)
		}
	}
}

// One ring serves every request of its publisher's sites at once.
func TestRingIsShared(t *testing.T) {
	ring, now := token.NewRing(testKey(0), testKey(1)), time.Unix(vectorNow, 0)
	v := verifier(ring)
	var g sync.WaitGroup
	for i := range 8 {
		g.Go(func() {
			for n := range 50 {
				b := beacon()
				b.Price = deckle.Money(100*i + n)
				if got, err := v.Beacon(token.Click, ring.MintBeacon(token.Click, b, now), now); err != nil || got.Price != b.Price {
					t.Errorf("price %d came back as %d, %v", b.Price, got.Price, err)
				}
			}
		})
	}
	g.Wait()
}
