package template_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"deckle/internal/template"
)

func TestNormalize(t *testing.T) {
	for _, c := range []struct{ target, want string }{
		{"/", "/"},
		{"/a/b", "/a/b"},
		{"/a?b/../c", "/a"},
		{"/a#b", "/a"},
		{"/a%3Fb%23c", "/a?b#c"},
		{"/?", "/"},
		{"//", "//"},
		{"//a//b", "//a//b"},
		{"/.", "/"},
		{"/..", "/"},
		{"/../..", "/"},
		{"/a/.", "/a/"},
		{"/a/..", "/"},
		{"/a/b/..", "/a/"},
		{"/a/b/../", "/a/"},
		{"/a/./b", "/a/b"},
		{"/../a", "/a"},
		{"/a//../b", "/a/b"},
		{"//../a", "/a"},
		{"/a/..b/.c/...", "/a/..b/.c/..."},
		{"/.well-known/x", "/.well-known/x"},
		{"/a/%2e%2E/b", "/b"},
		{"/a/.%2e/b", "/b"},
		{"/a/%2e/b", "/a/b"},
		{"/a%2F..%2fb", "/b"},
		{"/a/..%2Fb", "/b"},
		{"/a/%252e%252e/b", "/a/%2e%2e/b"},
		{"/a/..?x", "/"},
		{"/caf%C3%A9", "/café"},
		{"/%FF", "/\xff"},
		{"/%00", "/\x00"},
		// Malformed escapes are text.
		{"/100%", "/100%"},
		{"/%2", "/%2"},
		{"/%zz%41", "/%zzA"},
		{"/%%41", "/%A"},
		{"/%4%31", "/%41"},
		// Other forms of a request target.
		{"http://host/a/../b?c", "/b"},
		{"HTTPS://host", "/"},
		{"http://host?a=/b", "/"},
		{"*", "*"},
		{"host:443", "host:443"},
		{"ftp://host/a", "ftp://host/a"},
		{"", ""},
	} {
		if got := template.Normalize(c.target); got != c.want {
			t.Errorf("Normalize(%q) = %q, want %q", c.target, got, c.want)
		}
	}
}

func genTarget() *rapid.Generator[string] {
	part := rapid.SampledFrom([]string{"/", "/", "/", ".", "..", "%2e", "%2E%2e", "%2f", "%2F", "%25", "%", "%4", "a", "e", "2", "%C3%A9", "%ff", "?", "#", "é"})
	return rapid.Custom(func(t *rapid.T) string {
		return "/" + strings.Join(rapid.SliceOfN(part, 0, 10).Draw(t, "target"), "")
	})
}

func TestNormalizeProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		target := genTarget().Draw(t, "target")
		got := template.Normalize(target)
		if want := refNormalize(target); got != want {
			t.Fatalf("Normalize(%q) = %q, want %q", target, got, want)
		}
		for s := range strings.SplitSeq(got, "/") {
			if s == "." || s == ".." {
				t.Fatalf("Normalize(%q) = %q has a dot segment", target, got)
			}
		}
		if !strings.HasPrefix(got, "/") {
			t.Fatalf("Normalize(%q) = %q does not start with /", target, got)
		}
		// What has been decoded and resolved stays as it is once it is escaped again.
		again := strings.NewReplacer("%", "%25", "?", "%3F", "#", "%23").Replace(got)
		if twice := template.Normalize(again); twice != got {
			t.Fatalf("Normalize(%q) = %q, and again %q", target, got, twice)
		}
	})
}

func TestNormalizeAllocatesNothing(t *testing.T) {
	for _, target := range []string{"/2024/01/my-article/?utm_source=x%20y", "/.well-known/..a", "/100%/%zz", "http://host/a"} {
		if n := testing.AllocsPerRun(100, func() { template.Normalize(target) }); n != 0 {
			t.Errorf("Normalize(%q) allocates %v times, want 0", target, n)
		}
	}
}

func FuzzNormalize(f *testing.F) {
	for _, c := range readVectors(f).Cases {
		f.Add(c.Path)
	}
	f.Fuzz(func(t *testing.T, target string) {
		got := template.Normalize(target)
		if !strings.HasPrefix(target, "/") {
			return
		}
		if want := refNormalize(target); got != want {
			t.Fatalf("Normalize(%q) = %q, want %q", target, got, want)
		}
	})
}
