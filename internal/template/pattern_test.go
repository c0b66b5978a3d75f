package template_test

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
	"pgregory.net/rapid"

	"deckle/internal/template"
)

// vectors are the published cases of the pattern language.
type vectors struct {
	Cases []struct {
		Pattern, Path string
		Match         bool
	}
	Invalid []string
}

func readVectors(tb testing.TB) vectors {
	tb.Helper()
	data, err := os.ReadFile("testdata/globs.json")
	if err != nil {
		tb.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(data, &v); err != nil {
		tb.Fatal(err)
	}
	if len(v.Cases) == 0 || len(v.Invalid) == 0 {
		tb.Fatal("globs.json has no cases")
	}
	return v
}

func parse(tb testing.TB, s string) *template.Pattern {
	tb.Helper()
	p, err := template.ParsePattern(s)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func TestVectors(t *testing.T) {
	v := readVectors(t)
	for _, c := range v.Cases {
		path := template.Normalize(c.Path)
		if got := parse(t, c.Pattern).Match(path); got != c.Match {
			t.Errorf("%s against %s = %v, want %v", c.Pattern, c.Path, got, c.Match)
		}
		set := newTemplate(t, template.Patterns{Include: []string{c.Pattern}})
		if got := len(set.Match(path, nil)) == 1; got != c.Match {
			t.Errorf("%s against %s in a template = %v, want %v", c.Pattern, c.Path, got, c.Match)
		}
		if got := refMatch(c.Pattern, path); got != c.Match {
			t.Errorf("%s against %s by the reference = %v, want %v", c.Pattern, c.Path, got, c.Match)
		}
	}
	for _, s := range v.Invalid {
		if _, err := template.ParsePattern(s); err == nil {
			t.Errorf("ParsePattern(%q) accepts what is invalid", s)
		}
	}
}

func TestParsePatternErrors(t *testing.T) {
	for _, c := range []struct {
		pattern string
		offset  int
		msg     string
	}{
		{"", 0, "does not start with /"},
		{"news/*", 0, "does not start with /"},
		{`\/news`, 0, "does not start with /"},
		{"{/a,/b}", 0, "does not start with /"},
		{"/" + strings.Repeat("é", 128), 256, "is 257 bytes long, 256 are allowed"},
		{"/a\xffb", 2, "is not valid UTF-8"},
		{"/[a\xff]", 3, "is not valid UTF-8"},
		{"/a***", 2, "more than two asterisks in a row"},
		{"/[ab", 1, "set is not closed"},
		{`/[ab\]`, 1, "set is not closed"},
		{"/x[]", 2, "set is empty"},
		{"/x[!]", 2, "set is empty"},
		{"/[bz-a]", 3, "range z-a is reversed"},
		{`/[a\`, 3, `ends with \`},
		{`/a\`, 2, `ends with \`},
		{"/a]", 2, "] closes nothing"},
		{"/a}b", 2, "} closes nothing"},
		{"/{a}}", 4, "} closes nothing"},
		{"/{a,b", 1, "brace is not closed"},
		{"/{a,{b}", 1, "brace is not closed"},
		{"/{a,{b,{c}}}", 7, "braces nest more than once"},
		{"/{" + strings.Repeat(",", 64) + "}", 66, "has more than 64 alternatives"},
		{"/{" + strings.Repeat(",", 40) + "}{" + strings.Repeat(",", 30) + "}", 67, "has more than 64 alternatives"},
		{"/a*{*,b}", 4, "asterisks meet across the edge of a brace"},
		{"/{a,b*}**", 7, "asterisks meet across the edge of a brace"},
		{"/*{,a}*", 6, "asterisks meet across the edge of a brace"},
		{"/{a,{b,*}}*", 10, "asterisks meet across the edge of a brace"},
		{"/{*,b}{c,**}", 9, "asterisks meet across the edge of a brace"},
	} {
		_, err := template.ParsePattern(c.pattern)
		got, ok := errors.AsType[*template.PatternError](err)
		if !ok {
			t.Errorf("ParsePattern(%q) gives %v, want a PatternError", c.pattern, err)
			continue
		}
		if got.Pattern != c.pattern || got.Offset != c.offset || got.Msg != c.msg || got.Remedy == "" {
			t.Errorf("ParsePattern(%q) gives %+v, want offset %d, %q and a remedy", c.pattern, *got, c.offset, c.msg)
		}
	}
}

func TestParsePatternAccepts(t *testing.T) {
	for _, s := range []string{
		"/", "/{}", "/{a}", "/{,}", "/a,b", "/a-b", `/\]\}`, "/[*][?]", "/[{]", "/[a-]", "/[-a]", "/[^a]", "/[/]", "/**{a,b}**",
		"/" + strings.Repeat("a", 255),
		"/{" + strings.Repeat(",", 63) + "}",
		"/\uFFFD",
	} {
		if _, err := template.ParsePattern(s); err != nil {
			t.Errorf("ParsePattern(%q): %v", s, err)
		}
	}
}

func TestPatternMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		// Sets never have the slash, however they are written.
		{"/a[/]b", "/a/b", false},
		{`/a[\/x]b`, "/a/b", false},
		{`/a[\/x]b`, "/axb", true},
		{"/a[.-0]b", "/a/b", false},
		{"/a[.-0]b", "/a.b", true},
		{"/a[.-0]b", "/a0b", true},
		{"/a[!x]b", "/a/b", false},
		{"/a[!.-0]b", "/a/b", false},
		{"/a[!\x00-.0-😀]b", "/a/b", false},
		// Overlapping ranges.
		{"/[a-fc-d]", "/f", true},
		{"/[!a-fc-d]", "/e", false},
		{"/[!a-fc-d]", "/g", true},
		// What is special elsewhere is not in a set, and "-" at its ends.
		{"/[*]", "/*", true},
		{"/[*]", "/a", false},
		{"/[a-]", "/-", true},
		{"/[-a]", "/-", true},
		{"/[a-c-e]", "/d", false},
		{"/[a-c-e]", "/-", true},
		{`/[\]]`, "/]", true},
		{`/[\!a]`, "/!", true},
		{"/[^a]", "/^", true},
		{"/[^a]", "/b", false},
		// A byte that is not UTF-8 is one character, which only wildcards match.
		{"/?", "/\xff", true},
		{"/?", "/\xe2\x82", false},
		{"/??", "/\xe2\x82", true},
		{"/*", "/\xe2\x82", true},
		{"/**", "/\xff", true},
		{"/[!a]", "/\xff", false},
		{"/[\x01-\U0010FFFF]", "/\xff", false},
		{"/\uFFFD", "/\xff", false},
		{"/[\uFFFD]", "/\xff", false},
		{"/\uFFFD", "/\uFFFD", true},
		{"/?\uFFFD", "/a\xff", false},
		{"/?[\uFFFD]", "/a\xff", false},
		{"/?\uFFFD", "/a\uFFFD", true},
		// Surrogates and overlong forms are not UTF-8 either.
		{"/?", "/\xed\xa0\x80", false},
		{"/???", "/\xed\xa0\x80", true},
		{"/a", "/\xc1\xa1", false},
		// Braces.
		{"/{}", "/", true},
		{"/{a,}b", "/b", true},
		{"/{a,{b,c}d}e", "/cde", true},
		{"/{a,{b,c}d}e", "/ade", false},
		{"/{a/b,c}/d", "/a/b/d", true},
		{`/{a\,b,c}`, "/a,b", true},
		{"/{[,],c}", "/,", true},
		{"/a,b", "/a,b", true},
		{"/{*,**}", "/a/b", true},
		{"/{a*,b}c*", "/axyc", true},
		// Case, and case only.
		{"/É", "/é", false},
	} {
		if got := parse(t, c.pattern).Match(c.path); got != c.want {
			t.Errorf("%q against %q = %v, want %v", c.pattern, c.path, got, c.want)
		}
		if got := newTemplate(t, only(c.pattern)).Match(c.path, nil); (got != nil) != c.want {
			t.Errorf("template: %q against %q = %v, want %v", c.pattern, c.path, got, c.want)
		}
		if got := refMatch(c.pattern, c.path); got != c.want {
			t.Errorf("reference: %q against %q = %v, want %v", c.pattern, c.path, got, c.want)
		}
	}
}

func TestPatternAgainstReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern, path := genPattern().Draw(t, "pattern"), genPath().Draw(t, "path")
		p, err := template.ParsePattern(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := p.Match(path), refMatch(pattern, path); got != want {
			t.Fatalf("%q against %q = %v, want %v", pattern, path, got, want)
		}
	})
}

// doublestar is somebody else's reading of the same language where the two
// agree. There, ** is something else, a set may match a slash, and an empty
// alternative at the end may match nothing ("/*{}" does not match "/").
func TestPatternAgainstDoublestar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		agree := func(s string) bool {
			differs := func(part string) bool { return strings.Contains(s, part) }
			return utf8.ValidString(s) && !slices.ContainsFunc([]string{"**", "[!", "[.-0]", "{}", "{,", ",,", ",}"}, differs)
		}
		pattern := genPattern().Filter(agree).Draw(t, "pattern")
		path := genPath().Filter(agree).Draw(t, "path")
		want, err := doublestar.Match(pattern, path)
		if err != nil {
			t.Skip("doublestar does not accept it")
		}
		p, err := template.ParsePattern(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Match(path); got != want {
			t.Fatalf("%q against %q = %v, doublestar says %v", pattern, path, got, want)
		}
	})
}

func FuzzParsePattern(f *testing.F) {
	v := readVectors(f)
	for _, c := range v.Cases {
		f.Add(c.Pattern)
	}
	for _, s := range v.Invalid {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := template.ParsePattern(s)
		if err == nil {
			if p.String() != s {
				t.Fatalf("%q became %q", s, p)
			}
			return
		}
		got, ok := errors.AsType[*template.PatternError](err)
		if !ok || got.Pattern != s || got.Offset < 0 || got.Offset > len(s) || got.Msg == "" || got.Remedy == "" {
			t.Fatalf("ParsePattern(%q) gives %#v", s, err)
		}
	})
}
