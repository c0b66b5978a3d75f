package template_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"deckle/internal/template"
)

// sharing makes a template in which all slots have one DivID.
func sharing(tb interface {
	Helper()
	Fatal(...any)
}, patterns ...template.Patterns,
) *template.Template {
	tb.Helper()
	slots := slotsFor(patterns)
	for i := range slots {
		slots[i].DivID = "div"
	}
	t, err := template.New(template.Settings{}, slots, patterns)
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

func only(include ...string) template.Patterns { return template.Patterns{Include: include} }

func TestConflicts(t *testing.T) {
	for _, c := range []struct {
		name     string
		patterns []template.Patterns
		want     []string // "0 1 path"
	}{
		{"apart", []template.Patterns{only("/a/**"), only("/b/**")}, nil},
		{"shortest path", []template.Patterns{only("/a/**"), only("/*/b")}, []string{`0 1 "/a/b"`}},
		{"excluded by one", []template.Patterns{{Include: []string{"/**"}, Exclude: []string{"/a{,/**}"}}, only("/a", "/a/**")}, nil},
		{"excluded, but not all", []template.Patterns{{Include: []string{"/**"}, Exclude: []string{"/a/**"}}, only("/a**")}, []string{`0 1 "/a"`}},
		{"excluded by both together", []template.Patterns{
			{Include: []string{"/a*"}, Exclude: []string{"/*[!b]"}},
			{Include: []string{"/*b"}, Exclude: []string{"/*b"}},
		}, nil},
		{"only on a dot segment", []template.Patterns{only("/a/[.-0]"), only("/?/[!0]")}, nil},
		{"only on a path with a dot", []template.Patterns{only("/.?"), only("/?[!.]")}, []string{`0 1 "/.0"`}},
		{"only on a byte that is not UTF-8", []template.Patterns{
			{Include: []string{"/?"}, Exclude: []string{"/[!é]", "/é"}}, only("/*"),
		}, []string{`0 1 "/\xff"`}},
		{"not on a dot segment, but beside it", []template.Patterns{only("/[.-0]"), only("/[.-0]")}, []string{`0 1 "/0"`}},
		{"only within a set", []template.Patterns{only("/[m-p]"), only("/?")}, []string{`0 1 "/m"`}},
		{"only after a literal in a set", []template.Patterns{{Include: []string{"/[m-p]"}, Exclude: []string{"/m"}}, only("/?")}, []string{`0 1 "/n"`}},
		{"a brace in common", []template.Patterns{only("/{aa,bb}/x*"), only("/{aa,bb}/*y")}, []string{`0 1 "/aa/xy"`}},
		{"three", []template.Patterns{only("/a", "/b"), only("/b", "/c"), only("/c", "/a")}, []string{`0 1 "/b"`, `0 2 "/a"`, `1 2 "/c"`}},
	} {
		var got []string
		for _, c := range sharing(t, c.patterns...).Conflicts() {
			if c.Undecided || c.DivID != "div" {
				t.Errorf("%+v: want a path and the div", c)
			}
			got = append(got, fmt.Sprintf("%d %d %q", c.A, c.B, c.Path))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.name, diff)
		}
	}
	slots, patterns := slotsFor(make([]template.Patterns, 4*template.MaxFindings/3)), []template.Patterns{}
	for i := range slots {
		slots[i].DivID = fmt.Sprint(i / 2)
		patterns = append(patterns, only("/a"))
	}
	many, err := template.New(template.Settings{}, slots, patterns)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(many.Conflicts()), len(slots)/2; got != want {
		t.Errorf("%d pairs conflict, want %d", got, want)
	}
	if got := len(sharing(t, slices.Repeat([]template.Patterns{only("/a")}, 100)...).Conflicts()); got != template.MaxFindings {
		t.Errorf("%d conflicts, want %d", got, template.MaxFindings)
	}
	if got := newTemplate(t, only("/a"), only("/a")).Conflicts(); got != nil {
		t.Errorf("slots with a DivID of their own conflict: %v", got)
	}
}

// shortPaths are all normalized paths of up to n characters of a small alphabet.
func shortPaths(n int) []string {
	paths := []string{"/"}
	for from := 0; n > 0; n-- {
		upTo := len(paths)
		for _, p := range paths[from:upTo] {
			for _, c := range []string{"a", "b", "n", "/", ".", "é", "\xff"} {
				paths = append(paths, p+c)
			}
		}
		from = upTo
	}
	return slices.DeleteFunc(paths, func(p string) bool { return refNormalize(p) != p })
}

func TestConflictsAgainstReference(t *testing.T) {
	paths := shortPaths(4)
	rapid.Check(t, func(t *rapid.T) {
		patterns := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) template.Patterns {
			return template.Patterns{
				Include: rapid.SliceOfN(genPattern(), 1, 2).Draw(t, "include"),
				Exclude: rapid.SliceOfN(genPattern(), 0, 2).Draw(t, "exclude"),
			}
		}), 2, 4).Draw(t, "patterns")
		tmpl := sharing(t, patterns...)
		shortest := make(map[[2]int]int)
		for _, c := range tmpl.Conflicts() {
			if c.Undecided {
				t.Fatalf("%v is undecided", c)
			}
			if on := refSet(patterns, c.Path); !slices.Contains(on, c.A) || !slices.Contains(on, c.B) {
				t.Fatalf("%v, but only %v are there", c, on)
			}
			if refNormalize(c.Path) != c.Path && !strings.ContainsAny(c.Path, "%?#") {
				t.Fatalf("%v: the path is not a normal one", c)
			}
			shortest[[2]int{c.A, c.B}] = len([]rune(c.Path))
		}
		for _, path := range paths {
			on := tmpl.Match(path, nil) // as tested elsewhere
			for i, a := range on {
				for _, b := range on[i+1:] {
					if n, found := shortest[[2]int{a, b}]; !found || n > len([]rune(path)) {
						t.Fatalf("slots %d and %d meet on %q; found: %v, length %d", a, b, path, found, n)
					}
				}
			}
		}
	})
}

func TestConflictsUndecided(t *testing.T) {
	hard := func(a, b string) template.Patterns {
		return template.Patterns{
			Include: []string{"/**" + a + strings.Repeat("?", 30) + b + "**"},
			Exclude: []string{"/**" + b + strings.Repeat("?", 29) + a + "**", "/**" + a + "**" + b + "**c**"},
		}
	}
	begin := time.Now()
	found := sharing(t, hard("a", "b"), hard("b", "a"), only("/x")).Conflicts()
	t.Log(time.Since(begin), found)
	for _, c := range found {
		if c.B == 2 {
			t.Errorf("%v: decidable at a glance", c)
		}
	}
}

func TestWarnings(t *testing.T) {
	for _, c := range []struct {
		name     string
		patterns []template.Patterns
		want     []string
	}{
		{"nothing to say", []template.Patterns{{Include: []string{"/20**", "/", "/a.html"}, Exclude: []string{"/20*/x"}}, only("/20**")}, nil},
		{"no patterns", []template.Patterns{{}}, []string{"slot 0: has no page_patterns"}},
		{"all excluded", []template.Patterns{{Include: []string{"/a/*", "/b"}, Exclude: []string{"/a/**", "/[a-c]"}}}, []string{"slot 0: can never match"}},
		{"dot segments", []template.Patterns{only("/a/../b")}, []string{"slot 0: can never match"}},
		{
			"dot segments at the end",
			[]template.Patterns{only("/.."), only("/."), only("/a/{.,..}"), only("/./a"), only("/a/../b")},
			[]string{"slot 0: can never match", "slot 1: can never match", "slot 2: can never match", "slot 3: can never match", "slot 4: can never match"},
		},
		{"surrogates", []template.Patterns{only("/[!\x00-\ud7ff\ue000-\U0010FFFF]")}, []string{"slot 0: can never match"}},
		{"only the slash", []template.Patterns{only("/a[/]b")}, []string{"slot 0: can never match"}},
		{
			"one of two excluded",
			[]template.Patterns{{Include: []string{"/a/*", "/b"}, Exclude: []string{"/a/?*", "/*/"}}},
			[]string{`slot 0, page_patterns[0]: "/a/*" can never match`},
		},
		{
			"covered",
			[]template.Patterns{only("/{na,ne}", "/n*", "/n[a]")},
			[]string{`slot 0, page_patterns[0]: "/{na,ne}" adds nothing: "/n*"`, `slot 0, page_patterns[2]: "/n[a]" adds nothing`},
		},
		{"the later of two equal ones", []template.Patterns{only("/a", "/a")}, []string{`slot 0, page_patterns[1]: "/a" adds nothing`}},
		{
			"excludes",
			[]template.Patterns{{Include: []string{"/a*"}, Exclude: []string{"/b", "/a/x", "/ab", "/?b"}}},
			[]string{
				`slot 0, exclude[0]: "/b" excludes nothing`, `slot 0, exclude[1]: "/a/x" excludes nothing`,
				`slot 0, exclude[2]: "/ab" adds nothing: "/?b"`,
			},
		},
		{
			"front",
			[]template.Patterns{only("/news/**"), only("/news/**")},
			[]string{`slot 0, page_patterns[0]: "/news/**" matches what is below /news, not /news itself; write "/news{,/**}"`},
		},
		{"front is there", []template.Patterns{only("/news/**", "/news"), only("/n{,/**}"), only("/**")}, nil},
		{"front excluded", []template.Patterns{{Include: []string{"/news/**"}, Exclude: []string{"/news{,/ads}"}}}, nil},
		{"front, where pages end in a slash", []template.Patterns{only("/news/**"), only("/about/")}, nil},
		{
			"front of an exclude",
			[]template.Patterns{{Include: []string{"/n**"}, Exclude: []string{"/n/ads/**"}}},
			[]string{`slot 0, exclude[0]: "/n/ads/**" matches what is below`},
		},
		{"front of an exclude, not included", []template.Patterns{{Include: []string{"/n/*/*"}, Exclude: []string{"/n/ads/**"}}}, nil},
		{"front below a wildcard", []template.Patterns{only("/*/news/**")}, nil},
		{"habits", []template.Patterns{{Include: []string{"/caf%C3%A9", "/s?q=*", "/*"}, Exclude: []string{"/[^a]", "/100%"}}}, []string{
			`slot 0, page_patterns[0]: "/caf%C3%A9" has a percent escape, but is matched against the decoded path; write "/café"`,
			`slot 0, page_patterns[0]: "/caf%C3%A9" adds nothing`,
			`slot 0, page_patterns[1]: "/s?q=*" seems to have a query`,
			`slot 0, page_patterns[1]: "/s?q=*" adds nothing`,
			`slot 0, exclude[0]: "/[^a]" has a set that begins with ^`,
		}},
	} {
		got := newTemplate(t, c.patterns...).Warnings()
		same := slices.EqualFunc(c.want, got, func(want string, w template.Warning) bool {
			return strings.HasPrefix(w.String(), want) && w.Remedy != ""
		})
		if !same {
			t.Errorf("%s: got %v, want %q", c.name, got, c.want)
		}
	}
}

// What a warning calls superfluous can be removed, and nothing changes.
func TestWarningsAreTrue(t *testing.T) {
	paths := shortPaths(3)
	rapid.Check(t, func(t *rapid.T) {
		p := template.Patterns{
			Include: rapid.SliceOfN(genPattern(), 1, 4).Draw(t, "include"),
			Exclude: rapid.SliceOfN(genPattern(), 0, 3).Draw(t, "exclude"),
		}
		before := newTemplate(t, p)
		less := template.Patterns{Include: slices.Clone(p.Include), Exclude: slices.Clone(p.Exclude)}
		for _, w := range slices.Backward(before.Warnings()) {
			switch {
			case w.Index < 0:
				less.Include = nil
			case !strings.Contains(w.Msg, "nothing") && !strings.Contains(w.Msg, "never"):
			case w.Exclude:
				less.Exclude = slices.Delete(less.Exclude, w.Index, w.Index+1)
			default:
				less.Include = slices.Delete(less.Include, w.Index, w.Index+1)
			}
		}
		after := newTemplate(t, less)
		for _, path := range paths {
			if got, want := after.Match(path, nil), before.Match(path, nil); !slices.Equal(got, want) {
				t.Fatalf("%+v became %+v, and %q matches %v instead of %v", p, less, path, got, want)
			}
		}
	})
}

func TestExplain(t *testing.T) {
	tmpl := newTemplate(t,
		template.Patterns{Include: []string{"/x", "/news*"}, Exclude: []string{"/y", "/news"}},
		only("/a", "/news/**"), only("/News"), only("/news/"), only("/new?"), only("/{a,N}ews"), only("/news/*/x"),
	)
	type e = template.Explanation
	want := []e{
		{Slot: 0, Outcome: template.Excluded, Include: 1, Exclude: 1},
		{Slot: 1, Outcome: template.NearMiss, Include: 1, Exclude: -1, Hint: "/news/** matches what is below; /news{,/**} matches the page itself too"},
		{Slot: 2, Outcome: template.NearMiss, Include: 0, Exclude: -1, Hint: "only the case differs; patterns are case-sensitive"},
		{Slot: 3, Outcome: template.NearMiss, Include: 0, Exclude: -1, Hint: `the path does not end in /; "/news/" would match`},
		{Slot: 4, Outcome: template.Matches, Include: 0, Exclude: -1},
		{Slot: 5, Outcome: template.NearMiss, Include: 0, Exclude: -1, Hint: "only the case differs; patterns are case-sensitive"},
		{Slot: 6, Outcome: template.NoMatch, Include: -1, Exclude: -1},
	}
	if diff := cmp.Diff(want, tmpl.Explain("/news")); diff != "" {
		t.Errorf("Explain: -want +got\n%s", diff)
	}
	hints := map[string]string{"/news/a/b/x": "segments", "/NEWS/": "", "/x/": "ends in /"}
	for path, want := range hints {
		got := ""
		for _, e := range tmpl.Explain(path) {
			got += e.Hint
		}
		if !strings.Contains(got, want) {
			t.Errorf("Explain(%q) hints %q, want %q", path, got, want)
		}
	}
}

func TestExplainAgreesWithMatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tmpl := newTemplate(t, genPatterns().Draw(t, "patterns")...)
		path := genPath().Draw(t, "path")
		var got []int
		for i, e := range tmpl.Explain(path) {
			if e.Slot != i || (e.Outcome == template.NearMiss) != (e.Hint != "") || (e.Outcome == template.Excluded) != (e.Exclude >= 0) {
				t.Fatalf("Explain(%q) holds %+v", path, e)
			}
			if e.Outcome == template.Matches {
				got = append(got, i)
			}
		}
		if want := tmpl.Match(path, nil); !slices.Equal(got, want) {
			t.Fatalf("Explain(%q) has %v, Match %v", path, got, want)
		}
	})
}

// Every shape of file is checked within about a second.
func BenchmarkFindings(b *testing.B) {
	for _, c := range findingsSites() {
		slots := slotsFor(c.patterns)
		if c.oneDiv {
			for i := range slots {
				slots[i].DivID = "div"
			}
		}
		tmpl, err := template.New(template.Settings{}, slots, c.patterns)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name+"/conflicts", func(b *testing.B) {
			n := 0
			for b.Loop() {
				n = len(tmpl.Conflicts())
			}
			b.ReportMetric(float64(n), "conflicts")
		})
		b.Run(c.name+"/warnings", func(b *testing.B) {
			n := 0
			for b.Loop() {
				n = len(tmpl.Warnings())
			}
			b.ReportMetric(float64(n), "warnings")
		})
	}
}

type findingsSite struct {
	name     string
	oneDiv   bool
	patterns []template.Patterns
}

// findingsSites are files of the largest size that is allowed.
func findingsSites() []findingsSite {
	large := func(pattern func(slot, i int) string, excludes int) []template.Patterns {
		all := make([]template.Patterns, template.MaxSlots)
		for s := range all {
			for i := range template.MaxPatterns {
				if i < excludes {
					all[s].Exclude = append(all[s].Exclude, pattern(s, i)+"/x*")
				} else {
					all[s].Include = append(all[s].Include, pattern(s, i))
				}
			}
		}
		return all
	}
	apart := func(s, i int) string { return fmt.Sprintf("/section-%d/part-%d/**", s, i) }
	mixed := func(s, i int) string { return fmt.Sprintf("/%d/*/topic-%d/**", i%3, s*50+i) }
	wild := func(s, i int) string { return fmt.Sprintf("/**/topic-%d/**", s*50+i) }
	usual, _ := site(template.MaxSlots)
	return []findingsSite{
		{"usual", false, usual},
		{"usual-one-div", true, usual},
		{"apart", true, large(apart, 10)},
		{"mixed", true, large(mixed, 10)},
		{"wild", true, large(wild, 10)},
		{"wild-own-divs", false, large(wild, 25)},
		{"equal", true, slices.Repeat(large(mixed, 20)[:1], template.MaxSlots)},
	}
}
