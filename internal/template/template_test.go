package template_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"deckle"
	"deckle/internal/template"
)

// newTemplate makes a template with one slot for each of patterns.
func newTemplate(tb interface {
	Helper()
	Fatal(...any)
}, patterns ...template.Patterns,
) *template.Template {
	tb.Helper()
	t, err := template.New(template.Settings{}, slotsFor(patterns), patterns)
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

func slotsFor(patterns []template.Patterns) []deckle.Slot {
	slots := make([]deckle.Slot, len(patterns))
	for i := range slots {
		id := fmt.Sprintf("slot-%d", i)
		slots[i] = deckle.Slot{ID: deckle.SlotID(id), DivID: id}
	}
	return slots
}

func TestMatch(t *testing.T) {
	tmpl := newTemplate(t,
		template.Patterns{Include: []string{"/20**"}, Exclude: []string{"/2024/sponsored/**"}},
		template.Patterns{Include: []string{"/", "/index.html"}},
		template.Patterns{Include: []string{"/**"}, Exclude: []string{"/"}},
		template.Patterns{},
		template.Patterns{Include: []string{"/20*/sponsored{,/**}"}},
	)
	for _, c := range []struct {
		path string
		want []int
	}{
		{"/", []int{1}},
		{"/2024", []int{0, 2}},
		{"/2024/sponsored", []int{0, 2, 4}},
		{"/2024/sponsored/x", []int{2, 4}},
		{"/about", []int{2}},
		{"*", nil},
		{"", nil},
	} {
		if diff := cmp.Diff(c.want, tmpl.Match(c.path, nil)); diff != "" {
			t.Errorf("Match(%q): -want +got\n%s", c.path, diff)
		}
	}
	if got := tmpl.Match("/about", []int{7}); !slices.Equal(got, []int{7, 2}) {
		t.Errorf("Match appends to give %v, want [7 2]", got)
	}
	if got := new(template.Template).Match("/", nil); got != nil {
		t.Errorf("the zero template matches %v", got)
	}
}

// A node of many children, among them the first, the last and those around the
// middle of every half.
func TestMatchWide(t *testing.T) {
	const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	var patterns []template.Patterns
	for _, c := range letters {
		patterns = append(patterns, only("/"+string(c), "/x/*/"+string(c)))
	}
	tmpl := newTemplate(t, patterns...)
	for i, c := range letters {
		for _, path := range []string{"/" + string(c), "/x/y/" + string(c)} {
			if got := tmpl.Match(path, nil); !slices.Equal(got, []int{i}) {
				t.Errorf("Match(%q) = %v, want [%d]", path, got, i)
			}
		}
	}
	for _, path := range []string{"/-", "/:", "/[", "/~", "/x/y/:"} {
		if got := tmpl.Match(path, nil); got != nil {
			t.Errorf("Match(%q) = %v, want none", path, got)
		}
	}
}

func TestMatchAgainstReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		patterns := genPatterns().Draw(t, "patterns")
		tmpl := newTemplate(t, patterns...)
		if rapid.Bool().Draw(t, "small cache") {
			template.SetCacheLimit(tmpl, 2000) // is dropped every few states
		}
		for _, path := range rapid.SliceOfN(genPath(), 1, 10).Draw(t, "paths") {
			if diff := cmp.Diff(refSet(patterns, path), tmpl.Match(path, nil)); diff != "" {
				t.Fatalf("Match(%q): -want +got\n%s", path, diff)
			}
		}
	})
}

func TestNewErrors(t *testing.T) {
	many := slices.Repeat([]string{"/a"}, 26)
	patterns := []template.Patterns{
		{Include: []string{"/ok", "bad", "/[z-a]"}, Exclude: []string{"/{"}},
		{Include: many, Exclude: many},
		{Include: []string{"bad"}},
	}
	_, err := template.New(template.Settings{}, slotsFor(patterns), patterns)
	errs, ok := errors.AsType[template.Errors](err)
	if !ok {
		t.Fatalf("New gives %T, want Errors", err)
	}
	var got []string
	for _, e := range errs {
		_, isPattern := errors.AsType[*template.PatternError](e)
		got = append(got, fmt.Sprint(e.Place, " ", isPattern))
	}
	want := []string{
		"slot 0, page_patterns[1] true", "slot 0, page_patterns[2] true", "slot 0, exclude[0] true",
		"slot 1 false", "slot 2, page_patterns[0] true",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("places: -want +got\n%s", diff)
	}
	if _, ok := errors.AsType[*template.PatternError](err); !ok {
		t.Error("a PatternError is not found in Errors")
	}
	if n := strings.Count(err.Error(), "\n"); n != 4 {
		t.Errorf("Error has %d line ends, want 4:\n%v", n, err)
	}
	tooMany := make([]template.Patterns, template.MaxSlots+1)
	if _, err := template.New(template.Settings{}, slotsFor(tooMany), tooMany); err == nil {
		t.Error("New accepts too many slots")
	}
}

func TestCost(t *testing.T) {
	tmpl := newTemplate(t,
		template.Patterns{Include: []string{"/", "/news", `/a\*b`}, Exclude: []string{"/news"}},
		template.Patterns{Include: []string{"/20**", "/news/*", "/n[ae]"}},
		template.Patterns{Include: []string{"/*", "/{a,b}/c", "/**/x", "/{a,{,b}}?"}},
	)
	got := tmpl.Cost()
	if got.Literal != 3 || got.Prefixed != 4 || got.WildcardFirst != 3 {
		t.Errorf("Cost = %+v, want 3, 4 and 3 patterns", got)
	}
	if got.WildcardNodes < 5 || got.Nodes < got.WildcardNodes {
		t.Errorf("Cost = %+v has too few nodes", got)
	}
	if got := newTemplate(t, template.Patterns{Include: []string{"/a/**"}}).Cost(); got.WildcardNodes != 0 {
		t.Errorf("Cost = %+v, want no node for wildcards first", got)
	}
}

// No path, however it is made, may cost more than its length, and no number of
// them more memory than the limit.
func TestHostilePaths(t *testing.T) {
	tmpl := newTemplate(t,
		template.Patterns{Include: []string{"/**a????????????b**", "/*a*a*a*a*a*a*a*a*b"}},
		template.Patterns{Include: []string{"/**[ab]*[bc]?*a/**b?b**a**"}},
	)
	const limit = 200_000
	template.SetCacheLimit(tmpl, limit)
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		path := []byte("/")
		for range 5000 {
			path = append(path, "aab/c"[r.IntN(5)])
		}
		tmpl.Match(string(path), nil)
		if n := template.CacheBytes(tmpl); n > limit+10_000 { // one state more
			t.Fatalf("the cache holds %d bytes, want at most %d", n, limit)
		}
	}
}

func TestMatchConcurrently(t *testing.T) {
	patterns := []template.Patterns{
		{Include: []string{"/**/a*b", "/x/**"}, Exclude: []string{"/**c"}},
		{Include: []string{"/*/{a,b}**"}},
	}
	tmpl := newTemplate(t, patterns...)
	template.SetCacheLimit(tmpl, 4000)
	var wg sync.WaitGroup
	for seed := range uint64(4) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, 0))
			for range 500 {
				path := []byte("/")
				for range r.IntN(12) {
					path = append(path, "abcx/"[r.IntN(5)])
				}
				if got, want := tmpl.Match(string(path), nil), refSet(patterns, string(path)); !slices.Equal(got, want) {
					t.Errorf("Match(%q) = %v, want %v", path, got, want)
				}
			}
		})
	}
	wg.Wait()
}

func TestMatchAllocatesNothing(t *testing.T) {
	patterns, path := site(200)
	patterns[0].Include = append(patterns[0].Include, "/**/é?[a-z]*")
	tmpl := newTemplate(t, patterns...)
	dst := make([]int, 0, template.MaxSlotsPerPage)
	if n := testing.AllocsPerRun(100, func() { dst = tmpl.Match(path, dst[:0]) }); n != 0 {
		t.Errorf("Match allocates %v times, want 0", n)
	}
	if len(dst) != 3 {
		t.Errorf("Match(%q) = %v, want three slots", path, dst)
	}
}

func FuzzMatch(f *testing.F) {
	v := readVectors(f)
	for i, c := range v.Cases {
		other := v.Cases[(i+7)%len(v.Cases)]
		f.Add(c.Pattern, other.Pattern, c.Path, other.Path)
	}
	f.Fuzz(func(t *testing.T, a, b, path1, path2 string) {
		if strings.Count(a, "{") > 4 || strings.Count(b, "{") > 4 || strings.Count(a, "*") > 8 || strings.Count(b, "*") > 8 ||
			len(path1)+len(path2) > 60 {
			t.Skip("the reference would take too long")
		}
		patterns := []template.Patterns{
			{Include: []string{a}, Exclude: []string{b}},
			{Include: []string{b}},
			{Include: []string{a, b}},
		}
		tmpl, err := template.New(template.Settings{}, slotsFor(patterns), patterns)
		if err != nil {
			return
		}
		for _, path := range []string{path1, template.Normalize(path2)} {
			if got, want := tmpl.Match(path, nil), refSet(patterns, path); !slices.Equal(got, want) {
				t.Fatalf("Match(%q) of %q, %q = %v, want %v", path, a, b, got, want)
			}
		}
	})
}
