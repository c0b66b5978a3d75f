package template_test

import (
	"strings"

	"pgregory.net/rapid"

	"deckle/internal/template"
)

// Generators: an alphabet so small that patterns and paths meet often, and all
// the same has what is special: separators, dots, two-byte and four-byte
// characters, U+FFFD itself and a byte that is not UTF-8.

func genPath() *rapid.Generator[string] {
	part := rapid.SampledFrom([]string{"a", "b", "c", "/", "/", ".", "é", "😀", "\uFFFD", "\xff", "\xe2\x82", "*", "ab", "news", "20"})
	return rapid.Custom(func(t *rapid.T) string {
		return "/" + strings.Join(rapid.SliceOfN(part, 0, 8).Draw(t, "path"), "")
	})
}

// genPattern gives patterns that ParsePattern accepts.
func genPattern() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return "/" + genSequence(t, 0)
	}).Filter(func(s string) bool {
		_, err := template.ParsePattern(s)
		return err == nil
	})
}

func genSequence(t *rapid.T, depth int) string {
	parts := []string{
		"a", "b", "c", "/", "/", ".", "é", "😀", "\uFFFD", "ab", "news", "20", `\*`, `\{`, `\,`,
		"*", "*", "**", "**", "?", "[a-c]", "[!a-b]", "[!é]", "[.-0]", `[\]a-]`, "[a-😀]", "[*,}]", "{",
	}
	var b strings.Builder
	for range rapid.IntRange(0, 5).Draw(t, "length") {
		part := rapid.SampledFrom(parts).Draw(t, "part")
		if part != "{" {
			b.WriteString(part)
			continue
		}
		if depth == 2 {
			continue
		}
		alts := make([]string, rapid.IntRange(1, 3).Draw(t, "alternatives"))
		for i := range alts {
			alts[i] = genSequence(t, depth+1)
		}
		b.WriteString("{" + strings.Join(alts, ",") + "}")
	}
	return b.String()
}

func genPatterns() *rapid.Generator[[]template.Patterns] {
	// Slots take their patterns from one pool, as slots of one site do.
	return rapid.Custom(func(t *rapid.T) []template.Patterns {
		pool := rapid.SliceOfN(genPattern(), 1, 8).Draw(t, "pool")
		some := rapid.SampledFrom(pool)
		slot := rapid.Custom(func(t *rapid.T) template.Patterns {
			return template.Patterns{
				Include: rapid.SliceOfN(some, 0, 4).Draw(t, "include"),
				Exclude: rapid.SliceOfN(some, 0, 2).Draw(t, "exclude"),
			}
		})
		return rapid.SliceOfN(slot, 1, 70).Draw(t, "slots")
	})
}
