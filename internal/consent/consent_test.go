package consent_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"

	"deckle/internal/consent"
)

type vectors struct {
	TCF []struct {
		String          string
		Purposes        any
		SpecialFeatures []int
	}
	Errors struct{ TCF []string }
}

func load(tb testing.TB) vectors {
	tb.Helper()
	b, err := os.ReadFile("testdata/consent.json")
	if err != nil {
		tb.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(b, &v); err != nil {
		tb.Fatal(err)
	}
	return v
}

const (
	allPurposes = "CQdZmkAQdZmkAAfABAENCWEoAP_gAEPgAAYgHJwBQAaABMAYyA0oByYAmQAQAmAAAAAA.IAAA.YAAAAAAAAAAA"
	noPurposes  = "CQdZmkAQdZmkAAfABAENCWEgAAAAAAAAAAYgAAAAAAAA.IAAA.YAAAAAAAAAAA"
	twoAndSeven = "CQdZmkAQdZmkAAfABAENCWEgAEIAAAAAAAYgHJwBAAaAMZAaUA5MAAAAAAAA.IAAA.YAAAAAAAAAAA"
	oneAndTwo   = "CQdZmkAQdZmkAAfABAENCWEgAMAAAAAAAAYgGlQAQGlAAAAA.IAAA.YAAAAAAAAAAA"
	// noDisclosure is oneAndTwo as of 2026-11-30, without its other segments.
	noDisclosure = "CQuhGCEQdZmkAAfABAENCWEgAMAAAAAAAAYgGlQAQGlAAAAA"
)

func TestTCVectors(t *testing.T) {
	v := load(t)
	if len(v.TCF) == 0 || len(v.Errors.TCF) == 0 {
		t.Fatal("no vectors")
	}
	for _, c := range v.TCF {
		tc, err := consent.ParseTC(c.String)
		if err != nil {
			t.Errorf("%s: %v", c.String, err)
			continue
		}
		want := map[int]bool{}
		if c.Purposes == "all" {
			for n := 1; n <= 11; n++ {
				want[n] = true
			}
		} else {
			for _, n := range c.Purposes.([]any) {
				want[int(n.(float64))] = true
			}
		}
		for n := 0; n <= 25; n++ {
			if got := tc.Purpose(n); got != want[n] {
				t.Errorf("%s: purpose %d = %v, want %v", c.String, n, got, want[n])
			}
		}
		if got, want := tc.SpecialFeature(1), len(c.SpecialFeatures) > 0; got != want {
			t.Errorf("%s: special feature 1 = %v, want %v", c.String, got, want)
		}
	}
	for _, s := range append(v.Errors.TCF, noDisclosure, "", strings.Repeat("C", 5000)) {
		if _, err := consent.ParseTC(s); !errors.Is(err, consent.ErrUnreadable) {
			t.Errorf("%q: got %v, want unreadable", s, err)
		}
	}
}

// A string that was cut anywhere in its core is not believed, whatever purposes
// it still shows.
func TestTruncatedCoreIsUnreadable(t *testing.T) {
	core, rest, _ := strings.Cut(allPurposes, ".")
	for n := range len(core) - 3 { // the last characters hold padding alone
		if _, err := consent.ParseTC(core[:n] + "." + rest); err == nil {
			t.Errorf("%d of %d characters: read as %q", n, len(core), core[:n])
		}
	}
}

func TestDecision(t *testing.T) {
	gdpr := consent.Config{}
	other := consent.Config{UnknownPlace: consent.PlaceOther}
	stop := consent.Config{UnknownPlace: consent.PlaceOther, StopOnGPC: true}
	for name, c := range map[string]struct {
		cookies []string
		gpc     string
		config  consent.Config
		want    consent.Decision
	}{
		"nothing known":                {nil, "", gdpr, consent.Decision{GDPR: consent.Yes}},
		"nothing known, other":         {nil, "", other, consent.Decision{Auction: true, GDPR: consent.No, FullAddress: true}},
		"other, addresses cut":         {nil, "", consent.Config{UnknownPlace: consent.PlaceOther, TruncateOther: true}, consent.Decision{Auction: true, GDPR: consent.No}},
		"GPC is passed on":             {nil, "1", other, consent.Decision{Auction: true, GDPR: consent.No, GPC: true}},
		"GPC stops":                    {nil, "1", stop, consent.Decision{GDPR: consent.No, GPC: true}},
		"GPC stops in spite of TCF":    {[]string{"euconsent-v2=" + allPurposes}, "1", stop, consent.Decision{GDPR: consent.Yes, GPC: true, TCString: allPurposes}},
		"GPC other than 1 is nothing":  {nil, "0", stop, consent.Decision{Auction: true, GDPR: consent.No, FullAddress: true}},
		"consent to all":               {[]string{"a=b; euconsent-v2=" + allPurposes + "; c=d"}, "", gdpr, consent.Decision{Auction: true, GDPR: consent.Yes, TCString: allPurposes, FullAddress: true}},
		"consent to 1 and 2":           {[]string{"euconsent-v2=" + oneAndTwo}, "", gdpr, consent.Decision{Auction: true, GDPR: consent.Yes, TCString: oneAndTwo}},
		"no storage":                   {[]string{"euconsent-v2=" + twoAndSeven}, "", other, consent.Decision{GDPR: consent.Yes, TCString: twoAndSeven}},
		"refused, also where other":    {[]string{"euconsent-v2=" + noPurposes}, "", other, consent.Decision{GDPR: consent.Yes, TCString: noPurposes}},
		"unreadable is not absent":     {[]string{"euconsent-v2=nonsense"}, "", other, consent.Decision{GDPR: consent.Yes}},
		"empty is not absent":          {[]string{"euconsent-v2="}, "", other, consent.Decision{GDPR: consent.Yes}},
		"odd bytes are not absent":     {[]string{"euconsent-v2=\x00\xff"}, "", other, consent.Decision{GDPR: consent.Yes}},
		"two strings: the stricter":    {[]string{"euconsent-v2=" + allPurposes, "euconsent-v2=" + noPurposes}, "", other, consent.Decision{GDPR: consent.Yes, TCString: noPurposes}},
		"one readable, one not":        {[]string{"euconsent-v2=" + allPurposes + "; euconsent-v2=x"}, "", other, consent.Decision{GDPR: consent.Yes}},
		"two strings, the other way":   {[]string{"euconsent-v2=" + noPurposes + "; euconsent-v2=" + allPurposes}, "", other, consent.Decision{GDPR: consent.Yes, TCString: noPurposes}},
		"two strings, neither above":   {[]string{"euconsent-v2=" + oneAndTwo + "; euconsent-v2=" + twoAndSeven}, "", other, consent.Decision{GDPR: consent.Yes}},
		"two strings, one address":     {[]string{"euconsent-v2=" + oneAndTwo + "; euconsent-v2=" + allPurposes}, "", other, consent.Decision{Auction: true, GDPR: consent.Yes, TCString: oneAndTwo}},
		"a quoted value":               {[]string{`euconsent-v2="` + oneAndTwo + `"`}, "", other, consent.Decision{Auction: true, GDPR: consent.Yes, TCString: oneAndTwo}},
		"GPC cuts the address":         {[]string{"euconsent-v2=" + allPurposes}, "1", other, consent.Decision{Auction: true, GDPR: consent.Yes, GPC: true, TCString: allPurposes}},
		"a second name":                {[]string{"b=" + noPurposes}, "", consent.Config{TCFCookies: []string{"a", "b"}, UnknownPlace: consent.PlaceOther}, consent.Decision{GDPR: consent.Yes, TCString: noPurposes}},
		"another cookie's name":        {[]string{"tcf=" + oneAndTwo}, "", consent.Config{TCFCookies: []string{"tcf"}}, consent.Decision{Auction: true, GDPR: consent.Yes, TCString: oneAndTwo}},
		"only the names that are read": {[]string{"xeuconsent-v2=" + noPurposes}, "", other, consent.Decision{Auction: true, GDPR: consent.No, FullAddress: true}},
	} {
		t.Run(name, func(t *testing.T) {
			h := http.Header{"Cookie": c.cookies}
			if c.gpc != "" {
				h.Set("Sec-GPC", c.gpc)
			}
			if got := consent.Read(h, c.config); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// GPC counts wherever it stands.
func TestGPCInASecondHeader(t *testing.T) {
	if d := consent.Read(http.Header{"Sec-Gpc": {"0", "1"}}, consent.Config{}); !d.GPC {
		t.Error("not read")
	}
}

// From 2026-03-01 on a string needs a whole DisclosedVendors segment; the day
// before it needs none.
func TestDisclosedVendors(t *testing.T) {
	const (
		before = "CQgYw7_QdZmkAAfABAENCWEgAMAAAAAAAAYgGlQAQGlAAAAA" // 2026-02-28T23:59:59.9Z
		after  = "CQgYw8AQdZmkAAfABAENCWEgAMAAAAAAAAYgGlQAQGlAAAAA" // 2026-03-01T00:00:00Z
	)
	for s, readable := range map[string]bool{
		before: true, after: false, after + ".IAAA": true, after + ".YAAA.IAAA": true,
		after + ".YAAA": false, after + ".IA": false, after + ".I": false, after + ".QAAA": false,
	} {
		if _, err := consent.ParseTC(s); (err == nil) != readable {
			t.Errorf("%s: %v", s, err)
		}
	}
	long := oneAndTwo + strings.Repeat(".YAAA", (consent.MaxTCString-len(oneAndTwo))/5)
	if _, err := consent.ParseTC(long); err != nil {
		t.Errorf("%d bytes: %v", len(long), err)
	}
	if _, err := consent.ParseTC(long + ".YAAA"); err == nil {
		t.Error("longer than the bound, and read")
	}
}

func TestAddress(t *testing.T) {
	for _, c := range []struct{ in, full, cut string }{
		{"203.0.113.77", "203.0.113.77", "203.0.113.0"},
		{"::ffff:203.0.113.77", "203.0.113.77", "203.0.113.0"},
		{"2001:db8:1:f2:3:4:5:6", "2001:db8:1:f2:3:4:5:6", "2001:db8:1::"},
		{"2001:db8:1f2f:ffff::6", "2001:db8:1f2f:ffff::6", "2001:db8:1f2f::"},
		{"203.0.255.77", "203.0.255.77", "203.0.255.0"},
		{"fe80::1%eth0", "fe80::1", "fe80::"},
	} {
		a := netip.MustParseAddr(c.in)
		if got := (consent.Decision{FullAddress: true}).Address(a).String(); got != c.full {
			t.Errorf("full %s = %s, want %s", c.in, got, c.full)
		}
		if got := (consent.Decision{}).Address(a).String(); got != c.cut {
			t.Errorf("cut %s = %s, want %s", c.in, got, c.cut)
		}
	}
	if got := (consent.Decision{}).Address(netip.Addr{}); got.IsValid() {
		t.Errorf("no address became %v", got)
	}
}

func FuzzParseTC(f *testing.F) {
	v := load(f)
	for _, c := range v.TCF {
		f.Add(c.String)
	}
	for _, s := range v.Errors.TCF {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if _, err := consent.ParseTC(s); err != nil && !errors.Is(err, consent.ErrUnreadable) {
			t.Errorf("%q: %v is of another kind", s, err)
		}
	})
}
