package classify_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"deckle/internal/classify"
)

func TestCanonical(t *testing.T) {
	for url, want := range map[string]string{
		"":                                       "",
		"https://a.test":                         "https://a.test",
		"https://a.test/x#y":                     "https://a.test/x",
		"https://a.test/x#?utm_source=y":         "https://a.test/x",
		"https://a.test/?":                       "https://a.test/?", // not ours to tidy
		"https://a.test/?&":                      "https://a.test/?&",
		"https://a.test/?utm_source=x":           "https://a.test/",
		"https://a.test/?utm_source":             "https://a.test/",
		"https://a.test/?utm_":                   "https://a.test/",
		"https://a.test/?UTM_Source=x&FBCLID=y":  "https://a.test/",
		"https://a.test/?a=1&utm_id=x&b=2&a=%31": "https://a.test/?a=1&b=2&a=%31",
		"https://a.test/?b=2&gclid=x&a=1":        "https://a.test/?b=2&a=1",
		"https://a.test/?gclid=x&&":              "https://a.test/?&",
		"https://a.test/?p=7":                    "https://a.test/?p=7",
		"https://a.test/?utmost=1":               "https://a.test/?utmost=1",
		"https://a.test/?q=utm_source=x":         "https://a.test/?q=utm_source=x",
		"https://a.test/?q=a?utm_source=x":       "https://a.test/?q=a?utm_source=x",
		"https://a.test/?id=1&ref=2&from=3":      "https://a.test/?id=1&ref=2&from=3", // these can choose a page
		"https://a.test/utm_source=x?mtm_kwd=x":  "https://a.test/utm_source=x",
		"HTTP://A.test:80/%7Ea/../b":             "HTTP://A.test:80/%7Ea/../b",
		"https://a.test/100%?50%&utm_id=%#%":     "https://a.test/100%?50%",
		"/x?_ga=1":                               "/x",
	} {
		if got := classify.Canonical(url); got != want {
			t.Errorf("Canonical(%q) = %q, want %q", url, got, want)
		}
	}
}

// Tracking parameters make no difference wherever they stand, others always do, and
// once is enough.
func TestCanonicalProperties(t *testing.T) {
	kept := rapid.SampledFrom([]string{"p=1", "q=", "id", "ref=a", "x=%26utm_source=1", "é=1"})
	tracking := rapid.SampledFrom([]string{"utm_source=a", "utm_x", "gclid=%26p=1", "Mc_Eid=", "_gl=1*2"})
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(kept, 0, 6).Draw(t, "kept")
		all := append([]string(nil), want...)
		for range rapid.IntRange(0, 4).Draw(t, "n") {
			at := rapid.IntRange(0, len(all)).Draw(t, "at")
			all = append(all[:at], append([]string{tracking.Draw(t, "tracking")}, all[at:]...)...)
		}
		query := func(parameters []string) string {
			if len(parameters) == 0 {
				return ""
			}
			return "?" + strings.Join(parameters, "&")
		}
		const path = "https://a.test/x"
		got := classify.Canonical(path + query(all) + rapid.SampledFrom([]string{"", "#", "#utm_source=x?y"}).Draw(t, "fragment"))
		if got != path+query(want) {
			t.Fatalf("%q, want %q", got, path+query(want))
		}
		if again := classify.Canonical(got); again != got {
			t.Fatalf("%q becomes %q", got, again)
		}
	})
}

// Whatever a page or a reader sends, nothing panics, and what comes out is bounded.
func FuzzStrangers(f *testing.F) {
	f.Add("https://a.test/?utm_source=x#y", "Food & Drink", "a,b;c")
	f.Add("?&#", "\xff > / |", "\x00,")
	f.Fuzz(func(t *testing.T, url, section, tag string) {
		c := classify.Canonical(url)
		if len(c) > len(url) || classify.Canonical(c) != c {
			t.Errorf("Canonical(%q) = %q", url, c)
		}
		cl := classify.New(nil, full(t), classify.Config{})
		cl.Head("s", url, classify.Meta{Sections: []string{section}, Tags: []string{tag}})
		p, ok := cl.Page(site("/** 1"), url, p0)
		if ok && (len(p.Categories) < 1 || len(p.Categories) > classify.MaxCategories) {
			t.Errorf("%v", p)
		}
	})
}
