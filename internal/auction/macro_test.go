package auction_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"deckle/internal/auction"
)

func fill(s string) string {
	out, ok := auction.FillMacros(s, "req 1", "b/1", "USD",
		auction.Offer{ImpID: "top", Seat: "a&b", AdID: "ad", Price: "1.5"}, 1<<20)
	if !ok {
		return "too large"
	}
	return out
}

func TestFillMacros(t *testing.T) {
	for in, want := range map[string]string{
		"":                                 "",
		"nothing here":                     "nothing here",
		"p=${AUCTION_PRICE}&x":             "p=1.5&x",
		"${AUCTION_ID}":                    "req%201",
		"${AUCTION_BID_ID}":                "b%2F1",
		"${AUCTION_IMP_ID}":                "top",
		"${AUCTION_SEAT_ID}":               "a%26b",
		"${AUCTION_AD_ID}":                 "ad",
		"${AUCTION_CURRENCY}":              "USD",
		"${AUCTION_MBR}":                   "1",
		"${AUCTION_LOSS}":                  "0",
		"[${AUCTION_MIN_TO_WIN}]":          "[]",
		"${AUCTION_PRICE}${AUCTION_PRICE}": "1.51.5",

		// Percent-encoded, wholly or in part, in any case.
		"%24%7BAUCTION_PRICE%7D": "1.5",
		"%24%7bAUCTION_PRICE%7d": "1.5",
		"$%7BAUCTION_PRICE%7D":   "1.5",
		"%24{AUCTION_PRICE}":     "1.5",
		"${AUCTION_PRICE%7D":     "1.5",
		// In a parameter of another URL the value has to survive one more decoding.
		"r=%24%7BAUCTION_SEAT_ID%7D": "r=a%2526b",

		// What is not a macro stays.
		"${AUCTION_PRICE:B64}":             "${AUCTION_PRICE:B64}",
		"${AUCTION_FOO}":                   "${AUCTION_FOO}",
		"${AUCTION_}":                      "${AUCTION_}",
		"${AUCTION_PRICE":                  "${AUCTION_PRICE",
		"{AUCTION_PRICE}":                  "{AUCTION_PRICE}",
		"$AUCTION_PRICE}":                  "$AUCTION_PRICE}",
		"${auction_price}":                 "${auction_price}",
		"$ {AUCTION_PRICE}":                "$ {AUCTION_PRICE}",
		"%2524%257BAUCTION_PRICE%257D":     "%2524%257BAUCTION_PRICE%257D",
		"AUCTION_AUCTION_${AUCTION_PRICE}": "AUCTION_AUCTION_1.5",
		"${${AUCTION_PRICE}}":              "${1.5}",
		"${AUCTION_${AUCTION_PRICE}":       "${AUCTION_1.5",
		"${AUCTION_AUCTION_PRICE}":         "${AUCTION_AUCTION_PRICE}",
	} {
		if got := fill(in); got != want {
			t.Errorf("fill(%q) = %q, want %q", in, got, want)
		}
	}
}

// A value is data: it is not looked through for macros, and cannot leave its place.
func TestMacroValuesAreInert(t *testing.T) {
	o := auction.Offer{Seat: `"><script>${AUCTION_PRICE}</script>`, Price: "1.5"}
	got, _ := auction.FillMacros(`<a href="https://a.example/?s=${AUCTION_SEAT_ID}">`, "r", "", "USD", o, 1<<20)
	if want := `<a href="https://a.example/?s=%22%3E%3Cscript%3E%24%7BAUCTION_PRICE%7D%3C%2Fscript%3E">`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	u, err := url.Parse(strings.Trim(strings.TrimPrefix(got, `<a href=`), `">`))
	if err != nil || u.Query().Get("s") != o.Seat {
		t.Errorf("decoded %q, %v; want the seat itself", u, err)
	}
}

func TestMacroBomb(t *testing.T) {
	o := auction.Offer{AdID: strings.Repeat("\n", 500)}
	if got, ok := auction.FillMacros(strings.Repeat("${AUCTION_AD_ID}", 4000), "r", "", "USD", o, 64<<10); ok || got != "" {
		t.Errorf("%d bytes, %v; want none", len(got), ok)
	}
	if _, ok := auction.FillMacros("123${AUCTION_MBR}5", "r", "", "USD", o, 5); !ok {
		t.Error("five bytes do not fit into five")
	}
	if _, ok := auction.FillMacros("123456", "r", "", "USD", o, 5); ok {
		t.Error("six bytes fit into five")
	}
}

var macro = regexp.MustCompile(`(\$|%24)(\{|%7[bB])AUCTION_(PRICE|SEAT_ID|MIN_TO_WIN)(\}|%7[dD])`)

// FuzzFillMacros compares with a regular expression, for three macros.
func FuzzFillMacros(f *testing.F) {
	f.Add("https://n.example/?p=${AUCTION_PRICE}&s=%24%7BAUCTION_SEAT_ID%7d", "seat")
	f.Add("${AUCTION_${AUCTION_PRICE}%7D%24{", "${AUCTION_PRICE}")
	f.Add("%24{AUCTION_SEAT_ID%7D", "<\x00&\u2028")
	f.Fuzz(func(t *testing.T, s, seat string) {
		// The others are made unknown ones.
		s = regexp.MustCompile(`AUCTION_(ID|BID_ID|IMP_ID|AD_ID|CURRENCY|MBR|LOSS)`).ReplaceAllString(s, "AUCTION_X")
		quote := func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
		want := macro.ReplaceAllStringFunc(s, func(m string) string {
			value := map[string]string{"PRICE": "1.5", "SEAT_ID": quote(seat), "MIN_TO_WIN": ""}[macro.FindStringSubmatch(m)[3]]
			if strings.Contains(m, "%") {
				value = quote(value)
			}
			return value
		})
		const limit = 1 << 12
		got, ok := auction.FillMacros(s, "req", "bid", "USD", auction.Offer{Seat: seat, Price: "1.5"}, limit)
		if size := auction.MacroSize(s, "req", "bid", "USD", auction.Offer{Seat: seat, Price: "1.5"}); size != len(want) {
			t.Errorf("size of %q = %d, want %d", s, size, len(want))
		}
		if fits := len(want) <= limit; ok != fits || ok && got != want {
			t.Errorf("fill(%q) = %q, %v; want %q", s, got, ok, want)
		}
	})
}
