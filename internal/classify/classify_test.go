package classify_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"deckle/internal/catalog"
	"deckle/internal/classify"
	"deckle/internal/store/memory"
)

const page = "https://yukiblog.jp/autumn-hikes"

// site is the example site with rules, written as "pattern category…".
func site(rules ...string) *catalog.Site {
	s := &catalog.Site{ID: "yuki-site"}
	for _, r := range rules {
		words := strings.Fields(r)
		s.CategoryRules = append(s.CategoryRules, catalog.CategoryRule{Path: words[0], Categories: words[1:]})
	}
	return s
}

// full is a taxonomy of several tiers.
func full(t testing.TB) *catalog.Taxonomy {
	t.Helper()
	content, err := catalog.LoadTaxonomy("content", strings.NewReader("Unique ID\tParent\tName\n"+
		"1\t\tBooks and Literature\n2\t1\tComedy\n3\t\tTelevision\n4\t3\tComedy\n5\t4\tTravel\n6\t\tTravel\n7\t\tFood & Drink\n8\t\tReisen für Ältere\n9\t\t24/7\n"))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// short is how expectations name categories: "210 0.9 section".
func short(p classify.Page) (s []string) {
	for _, c := range p.Categories {
		s = append(s, fmt.Sprintf("%s %v %s", c.ID, c.Confidence, c.Source))
	}
	return s
}

func TestWhatAPageSaysOfItself(t *testing.T) {
	sections := func(s ...string) classify.Meta { return classify.Meta{Sections: s} }
	tags := func(s ...string) classify.Meta { return classify.Meta{Tags: s} }
	for name, c := range map[string]struct {
		meta classify.Meta
		want []string
	}{
		"a section":                      {sections("Television"), []string{"3 0.9 section"}},
		"a tag":                          {tags("Television"), []string{"3 0.6 tag"}},
		"sections come first":            {classify.Meta{Sections: []string{"Travel"}, Tags: []string{"Television"}}, []string{"6 0.9 section", "3 0.6 tag"}},
		"each once, as the better":       {classify.Meta{Sections: []string{"Travel"}, Tags: []string{"travel"}}, []string{"6 0.9 section"}},
		"three at most":                  {tags("Travel", "Television", "Comedy", "24/7"), []string{"6 0.6 tag", "3 0.6 tag", "2 0.6 tag"}},
		"any case and signs":             {sections(" FOOD-and drink! "), []string{"7 0.9 section"}},
		"and is &":                       {sections("Books & Literature"), []string{"1 0.9 section"}},
		"beyond ASCII":                   {sections("REISEN FÜR ÄLTERE"), []string{"8 0.9 section"}},
		"the name nearest to the top":    {sections("Travel"), []string{"6 0.9 section"}},
		"of those the first":             {sections("Comedy"), []string{"2 0.9 section"}},
		"a whole name with a separator":  {sections("24/7"), []string{"9 0.9 section"}},
		"the innermost part of a path":   {sections("Television > Travel > Alps"), []string{"6 0.9 section"}},
		"a list of tags":                 {tags("alps, travel; food & drink"), []string{"6 0.6 tag", "7 0.6 tag"}},
		"part of a name is none":         {sections("Travels", "Food", "Televisio"), nil},
		"nothing":                        {classify.Meta{}, nil},
		"no name":                        {classify.Meta{Sections: []string{"", " ", ">", "&"}, Tags: []string{",;", "\xff"}}, nil},
		"a text too long for a section":  {sections(strings.Repeat(" ", 600) + "Travel"), nil},
		"more texts than are looked at":  {tags(append(make([]string, 64), "Travel")...), nil},
		"not so many that it is lost":    {tags(append(make([]string, 63), "Travel")...), []string{"6 0.6 tag"}},
		"a section is not taken for two": {sections("Travel / Television"), []string{"3 0.9 section"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cl := classify.New(memory.NewKV(), full(t), classify.Config{})
				cl.Head("yuki-site", page, c.meta)
				got, ok := cl.Page(site(), page, time.Now())
				if diff := cmp.Diff(c.want, short(got)); diff != "" || ok != (c.want != nil) {
					t.Errorf("ok %v: %s", ok, diff)
				}
				if ok && !got.At.Equal(time.Now()) {
					t.Errorf("classified at %v, want now", got.At)
				}
			})
		})
	}
}

// Names are found in the table that every installation has.
func TestBuiltInNames(t *testing.T) {
	content := catalog.ContentTaxonomy()
	cl := classify.New(memory.NewKV(), content, classify.Config{})
	for _, id := range content.Categories() {
		name, _ := content.CategoryName(id)
		url := page + id
		cl.Head("yuki-site", url, classify.Meta{Sections: []string{strings.ToUpper(name)}})
		if got, _ := cl.Page(site(), url, time.Now()); len(got.Categories) != 1 || got.Categories[0].ID != id {
			t.Errorf("%q is %v, want %s", name, got.Categories, id)
		}
	}
}

func TestRules(t *testing.T) {
	cl := classify.New(memory.NewKV(), full(t), classify.Config{})
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, path := range []string{"/food/sushi", "/other"} {
		cl.Head("yuki-site", "https://yukiblog.jp"+path, classify.Meta{Sections: []string{"Television"}})
	}
	rules := site("/food/** 7", "/{food,drink}/** 7 6", "/food/*/deep 5 4", "/%41 1")
	for url, want := range map[string][]string{
		"https://yukiblog.jp/food/sushi":         {"7 1 rule", "6 1 rule"}, // what the page says adds nothing
		"https://yukiblog.jp/food/x/deep":        {"7 1 rule", "6 1 rule", "5 1 rule"},
		"https://yukiblog.jp/drink/?a=/food/":    {"7 1 rule", "6 1 rule"},
		"https://yukiblog.jp/x/../f%6fod/a#/b":   {"7 1 rule", "6 1 rule"},
		"/food/sushi":                            {"7 1 rule", "6 1 rule"},
		"https://yukiblog.jp/food":               nil,
		"https://yukiblog.jp/other":              {"3 0.9 section"},
		"https://yukiblog.jp":                    nil,
		"":                                       nil,
		"https://yukiblog.jp/other?utm_source=x": {"3 0.9 section"},
	} {
		got, ok := cl.Page(rules, url, now)
		if diff := cmp.Diff(want, short(got)); diff != "" || ok != (want != nil) {
			t.Errorf("%s: ok %v: %s", url, ok, diff)
		}
		if ok && got.Categories[0].Source == classify.Rule && !got.At.Equal(now) {
			t.Errorf("%s: classified at %v, want now", url, got.At)
		}
	}
	// Another site has other rules.
	if got, ok := cl.Page(&catalog.Site{ID: "other"}, "https://yukiblog.jp/food/sushi", now); ok {
		t.Errorf("on another site: %v", got)
	}
}

// Until the rules of an edit are compiled, nobody waits: the ones before go on. Who still
// has the snapshot before goes by its rules, and both stay compiled.
func TestRulesAreEdited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := classify.New(memory.NewKV(), full(t), classify.Config{})
		is := func(s *catalog.Site, want string) {
			t.Helper()
			if got, _ := cl.Page(s, "https://yukiblog.jp/food/sushi", time.Now()); len(got.Categories) != 1 || short(got)[0] != want+" 1 rule" {
				t.Errorf("categories %v, want %s", short(got), want)
			}
		}
		before, after := site("/x/** 3", "/food/** 7"), site("/food/** 1")
		is(before, "7")
		is(after, "7") // whoever asks first cannot have had them compiled
		synctest.Wait()
		is(after, "1")
		is(before, "7")
		synctest.Wait()
		is(after, "1")
		third := site("/food/** 6")
		is(third, "1")
		synctest.Wait()
		is(third, "6")
		if got, ok := cl.Page(site(), "https://yukiblog.jp/food/sushi", time.Now()); ok {
			t.Errorf("rules that were taken away: %v", short(got))
		}
	})
}

// How long the first page after an edit waits, and the first of all.
func BenchmarkEditedRules(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		revision := func(i int) *catalog.Site {
			s := site()
			for j := range n {
				s.CategoryRules = append(s.CategoryRules, catalog.CategoryRule{Path: fmt.Sprintf("/section-%d/*/topic-%d/**", j, i), Categories: []string{"7"}})
			}
			return s
		}
		b.Run(fmt.Sprint(n, " rules"), func(b *testing.B) {
			cl := classify.New(memory.NewKV(), full(b), classify.Config{})
			start := time.Now()
			cl.Page(revision(0), page, start)
			first := time.Since(start)
			for i := 1; b.Loop(); i++ {
				b.StopTimer()
				next := revision(i)
				b.StartTimer()
				cl.Page(next, page, start)
			}
			b.ReportMetric(float64(first.Microseconds()), "µs/first")
		})
	}
}

// A page is the same page whatever brought its reader there, and however a proxy in
// front of us speaks to us; another host, path, parameter or site is another page.
func TestOnePage(t *testing.T) {
	cl := classify.New(memory.NewKV(), full(t), classify.Config{})
	cl.Head("yuki-site", "http://yukiblog.jp/?p=7&utm_source=x", classify.Meta{Sections: []string{"Travel"}})
	for url, want := range map[string]bool{
		"https://yukiblog.jp/?p=7":                     true,
		"https://yukiblog.jp/?fbclid=1&p=7#top":        true,
		"https://yukiblog.jp/?p=8":                     false,
		"https://yukiblog.jp/":                         false,
		"https://www.yukiblog.jp/?p=7":                 false,
		"https://yukiblog.jp/?p=7&q=https://a.test/?b": false,
	} {
		if _, ok := cl.Page(site(), url, time.Now()); ok != want {
			t.Errorf("%s is known: %v, want %v", url, ok, want)
		}
	}
	if _, ok := cl.Page(&catalog.Site{ID: "other"}, "https://yukiblog.jp/?p=7", time.Now()); ok {
		t.Error("another site knows the page")
	}
}

// Memory is bounded: what nobody asked for the longest goes.
func TestMemoryIsBounded(t *testing.T) {
	cl := classify.New(memory.NewKV(), full(t), classify.Config{Remember: 3})
	url := func(i int) string { return fmt.Sprintf("%s/%d", page, i) }
	for i := range 3 {
		cl.Head("yuki-site", url(i), classify.Meta{Sections: []string{"Travel"}})
	}
	cl.Page(site(), url(0), time.Now())
	cl.Head("yuki-site", url(3), classify.Meta{Sections: []string{"Travel"}})
	for i, want := range []bool{true, false, true, true} {
		if _, ok := cl.Page(site(), url(i), time.Now()); ok != want {
			t.Errorf("page %d is known: %v, want %v", i, ok, want)
		}
	}
	if n := gauge(t, cl, "deckle_classify_pages", ""); n != 3 {
		t.Errorf("%v pages are counted, want 3", n)
	}
}

// gauge reads a figure of a classifier; outcome chooses one of several.
func gauge(t *testing.T, cl *classify.Classifier, name, outcome string) float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	if err := cl.Metrics().Register(registry); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			if f.GetName() == name && (outcome == "" || m.Label[0].GetValue() == outcome) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("no figure %s %s", name, outcome)
	return 0
}

func TestPagesAllocateLittle(t *testing.T) {
	cl := classify.New(memory.NewKV(), full(t), classify.Config{})
	s := site("/never/** 1")
	cl.Head("yuki-site", page, classify.Meta{Sections: []string{"Travel"}})
	now := time.Now()
	if n := testing.AllocsPerRun(100, func() { cl.Page(s, page, now) }); n > 2 {
		t.Errorf("%v allocations for a page, want at most 2", n)
	}
}

func BenchmarkPage(b *testing.B) {
	cl := classify.New(memory.NewKV(), full(b), classify.Config{})
	cl.Head("yuki-site", page, classify.Meta{Sections: []string{"Travel"}})
	for name, s := range map[string]*catalog.Site{"remembered": site(), "rule": site("/autumn-* 6"), "rule missed": site("/never/** 6")} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			now := time.Now()
			for b.Loop() {
				cl.Page(s, page, now)
			}
		})
	}
}

func BenchmarkHead(b *testing.B) {
	cl := classify.New(memory.NewKV(), full(b), classify.Config{})
	m := classify.Meta{Sections: []string{"Travel"}, Tags: []string{"alps", "hiking", "Food & Drink"}}
	b.ReportAllocs()
	for b.Loop() {
		cl.Head("yuki-site", page, m)
	}
}
