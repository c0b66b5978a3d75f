package consent_test

import (
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"deckle/internal/consent"
)

// A field is one of a TC string's core: its value and its width in bits.
type field struct {
	value uint64
	bits  int
}

// encode writes fields as a segment of a TC string.
func encode(fields ...field) string {
	var b []byte
	n := 0
	for _, f := range fields {
		for i := f.bits - 1; i >= 0; i-- {
			if n%8 == 0 {
				b = append(b, 0)
			}
			b[n/8] |= byte(f.value>>i&1) << (7 - n%8)
			n++
		}
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// coreWith is a core string with these purposes (purpose 1 is the highest of 24
// bits) and special features (likewise of 12), created before 2026-03-01; rest is
// what follows purpose one treatment and country: vendors and restrictions.
func coreWith(purposes, special uint64, rest ...field) string {
	fields := []field{
		{2, 6},
		{17000000000, 36},
		{17000000000, 36}, // created, last updated: 2023
		{1, 12},
		{1, 12},
		{0, 6},
		{0x0d2, 12},
		{1, 12},
		{4, 6},
		{1, 1},
		{0, 1},
		{special, 12},
		{purposes, 24},
		{0, 24},
		{0, 1},
		{0, 12},
	}
	return encode(append(fields, rest...)...)
}

// noVendors are two empty vendor sections and no restriction.
var noVendors = []field{{0, 16}, {0, 1}, {0, 16}, {0, 1}, {0, 12}}

const (
	purpose1 = 1 << 23
	purpose2 = 1 << 22
)

// All of the core must be there and is read in its order, whatever it holds: bit
// fields, ranges of vendors, restrictions.
func TestCoreIsReadToItsEnd(t *testing.T) {
	one, pair := []field{{0, 1}, {7, 16}}, []field{{1, 1}, {7, 16}, {9, 16}}
	for name, rest := range map[string][]field{
		"no vendors":          noVendors,
		"bit fields":          {{13, 16}, {0, 1}, {0x1fff, 13}, {5, 16}, {0, 1}, {0x1f, 5}, {0, 12}},
		"all 33 bytes in use": {{5, 16}, {0, 1}, {0x1f, 5}, {0, 16}, {0, 1}, {0, 12}},
		"one vendor":          slices.Concat([]field{{9, 16}, {1, 1}, {1, 12}}, one, noVendors[2:]),
		"a range of vendors":  slices.Concat([]field{{9, 16}, {1, 1}, {1, 12}}, pair, noVendors[2:]),
		"several":             slices.Concat([]field{{9, 16}, {1, 1}, {3, 12}}, pair, one, pair, []field{{9, 16}, {1, 1}, {2, 12}}, one, pair, []field{{0, 12}}),
		"no range at all":     slices.Concat([]field{{9, 16}, {1, 1}, {0, 12}}, noVendors[2:]),
		"a restriction":       slices.Concat(noVendors[:4], []field{{1, 12}, {2, 6}, {1, 2}, {1, 12}}, one),
		"restrictions": slices.Concat(noVendors[:4], []field{{2, 12}, {2, 6}, {1, 2}, {2, 12}}, one, pair,
			[]field{{7, 6}, {0, 2}, {1, 12}}, pair),
		"a restriction without vendors": slices.Concat(noVendors[:4], []field{{1, 12}, {2, 6}, {0, 2}, {0, 12}}),
	} {
		core := coreWith(purpose1|purpose2, 1<<11, rest...)
		tc, err := consent.ParseTC(core)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !tc.Purpose(1) || !tc.Purpose(2) || tc.Purpose(3) || !tc.SpecialFeature(1) || tc.SpecialFeature(2) {
			t.Errorf("%s: read as %+v", name, tc)
		}
		for n := range len(core) - 1 { // the last character may hold padding alone
			if _, err := consent.ParseTC(core[:n]); !errors.Is(err, consent.ErrUnreadable) {
				t.Errorf("%s: %d of %d characters were read", name, n, len(core))
			}
		}
	}
}

// What a string says of its own size costs no time that it does not have.
func TestHostileSizesEnd(t *testing.T) {
	many := field{0xfff, 12}
	for name, rest := range map[string][]field{
		"vendors":      {{0xffff, 16}, {0, 1}},
		"ranges":       {{0xffff, 16}, {1, 1}, many},
		"restrictions": slices.Concat(noVendors[:4], []field{many, {0, 6}, {0, 2}, many}),
	} {
		if _, err := consent.ParseTC(coreWith(purpose1|purpose2, 0, rest...)); !errors.Is(err, consent.ErrUnreadable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOnlyVersion2(t *testing.T) {
	good := coreWith(purpose1|purpose2, 0, noVendors...)
	for first, readable := range map[string]bool{"A": false, "B": false, "C": true, "D": false} { // 6 bits each
		if _, err := consent.ParseTC(first + good[1:]); (err == nil) != readable {
			t.Errorf("version %s: %v", first, err)
		}
	}
}

func TestEachPurposeIsItsBit(t *testing.T) {
	for n := 1; n <= 24; n++ {
		tc, err := consent.ParseTC(coreWith(1<<(24-n), 0, noVendors...))
		for m := 0; m <= 25; m++ {
			if err != nil || tc.Purpose(m) != (m == n) {
				t.Errorf("purpose %d: purpose %d = %v, %v", n, m, tc.Purpose(m), err)
			}
		}
	}
	for n := 1; n <= 12; n++ {
		tc, err := consent.ParseTC(coreWith(0, 1<<(12-n), noVendors...))
		for m := 0; m <= 13; m++ {
			if err != nil || tc.SpecialFeature(m) != (m == n) {
				t.Errorf("feature %d: feature %d = %v, %v", n, m, tc.SpecialFeature(m), err)
			}
		}
	}
}

// The longest string is read, the next is not looked at.
func TestLongestString(t *testing.T) {
	core := coreWith(purpose1|purpose2, 0, noVendors...)
	long := core + strings.Repeat(".", consent.MaxTCString-len(core))
	if _, err := consent.ParseTC(long); err != nil {
		t.Errorf("%d bytes: %v", len(long), err)
	}
	if _, err := consent.ParseTC(long + "."); !errors.Is(err, consent.ErrUnreadable) {
		t.Errorf("%d bytes: %v", len(long)+1, err)
	}
}

// Line breaks and padding are no base64url of a cookie, in no segment.
func TestOnlyBase64URL(t *testing.T) {
	core := coreWith(purpose1|purpose2, 0, noVendors...)
	for _, odd := range []string{"\n", "\r", "=", " ", "+", "/", "%", "\x00"} {
		for _, text := range []string{odd + core, core + odd, core[:9] + odd + core[9:], core + ".IA" + odd + "AA"} {
			if _, err := consent.ParseTC(text); !errors.Is(err, consent.ErrUnreadable) {
				t.Errorf("%q: %v", text, err)
			}
		}
	}
}

// Cookies are read however they are written: quoted, spaced, in several lines.
func TestCookieForms(t *testing.T) {
	for line, want := range map[string]string{
		"euconsent-v2=" + oneAndTwo:                                  oneAndTwo,
		`euconsent-v2="` + oneAndTwo + `"`:                           oneAndTwo,
		`a="b"; euconsent-v2 = "` + oneAndTwo + `" ; c="d`:           oneAndTwo,
		"a=b;euconsent-v2=" + oneAndTwo + ";":                        oneAndTwo,
		"a=b;\teuconsent-v2=\t" + oneAndTwo + "\t":                   oneAndTwo,
		"euconsent-v2=" + oneAndTwo + "=":                            "", // a value with "=" is another value
		`euconsent-v2=""`:                                            "",
		"euconsent-v2":                                               "",
		"EUCONSENT-V2=" + noPurposes + "; euconsent-v2=" + oneAndTwo: oneAndTwo, // names are case-sensitive
	} {
		d := consent.Read(http.Header{"Cookie": {line}}, consent.Config{UnknownPlace: consent.PlaceOther})
		if d.TCString != want || d.GDPR != consent.Yes || d.Auction != (want != "") {
			t.Errorf("%q: %+v", line, d)
		}
	}
}

// Several strings, in whatever order they come, permit what all of them permit, and
// bidders see one that says just that. Where there is none they see nothing.
func TestSeveralStringsAreAsStrictAsTheStrictest(t *testing.T) {
	known := []string{
		allPurposes, noPurposes, twoAndSeven, oneAndTwo, noDisclosure, "nonsense", "",
		coreWith(purpose1|purpose2, 1<<11, noVendors...),
		coreWith(purpose1|purpose2|1<<20, 1<<11, noVendors...),
		coreWith(purpose1|purpose2|1<<19, 1<<11, noVendors...),
		coreWith(purpose2, 1<<11, noVendors...),
	}
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfNDistinct(rapid.SampledFrom(known), 1, 4, rapid.ID).Draw(t, "strings")
		config := consent.Config{UnknownPlace: rapid.SampledFrom([]consent.Place{consent.PlaceGDPR, consent.PlaceOther}).Draw(t, "place")}
		h, gpc := http.Header{}, rapid.Bool().Draw(t, "gpc")
		for _, text := range texts {
			h.Add("Cookie", "euconsent-v2="+text)
		}
		if gpc {
			h.Set("Sec-GPC", "1")
		}
		got := consent.Read(h, config)

		want := consent.Decision{GDPR: consent.Yes, GPC: gpc, TCString: got.TCString}
		common, spoken := permissions(texts)
		if spoken {
			want.Auction, want.FullAddress = common[1] && common[2], common[25] && !gpc
			if of, _ := permissions([]string{got.TCString}); of != common || !slices.Contains(texts, got.TCString) {
				t.Fatalf("bidders see %q", got.TCString)
			}
		} else {
			want.TCString = ""
		}
		if got != want {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	})
}

// permissions are the purposes (1–24) and special features (25–36) that all of
// these strings permit; false if one is unreadable, or none says just that.
func permissions(texts []string) (common [37]bool, spoken bool) {
	var each [][37]bool
	for _, text := range texts {
		tc, err := consent.ParseTC(text)
		if err != nil {
			return common, false
		}
		var p [37]bool
		for n := 1; n <= 36; n++ {
			p[n] = tc.Purpose(n) || tc.SpecialFeature(n-24)
		}
		each = append(each, p)
	}
	for n := range common {
		common[n] = !slices.ContainsFunc(each, func(p [37]bool) bool { return !p[n] })
	}
	return common, slices.Contains(each, common)
}

// FuzzRead: no header takes a permission from nowhere. An auction where the GDPR
// applies has a string with purposes 1 and 2, and bidders see only readable ones.
func FuzzRead(f *testing.F) {
	v := load(f)
	for _, c := range v.TCF {
		f.Add("euconsent-v2="+c.String, "", false)
		f.Add(`a=b; euconsent-v2="`+c.String+`"`, "euconsent-v2="+oneAndTwo, true)
	}
	for _, s := range v.Errors.TCF {
		f.Add("euconsent-v2="+s, "euconsent-v2="+allPurposes, false)
	}
	f.Add("euconsent-v2="+coreWith(purpose1|purpose2, 1<<11, noVendors...), "euconsent-v2=\x00", false)
	f.Add("euconsent-v2", ";;=;", true)
	f.Fuzz(func(t *testing.T, first, second string, gpc bool) {
		h := http.Header{"Cookie": {first, second}}
		if gpc {
			h.Set("Sec-GPC", "1")
		}
		d := consent.Read(h, consent.Config{})
		if d.GDPR != consent.Yes || d.GPC != gpc || d.FullAddress && gpc {
			t.Errorf("%+v", d)
		}
		tc, err := consent.ParseTC(d.TCString)
		if d.TCString != "" && err != nil {
			t.Errorf("bidders see %q", d.TCString)
		}
		if d.Auction && (!tc.Purpose(1) || !tc.Purpose(2)) || d.FullAddress && !tc.SpecialFeature(1) {
			t.Errorf("%+v of %q", d, d.TCString)
		}
		if d.Auction && !strings.Contains(first+second, "euconsent-v2") {
			t.Errorf("%+v without a cookie", d)
		}
	})
}
