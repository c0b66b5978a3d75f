package template_test

import (
	"slices"
	"strings"
	"unicode/utf8"

	"deckle/internal/template"
)

// The reference matcher: braces are expanded as text, and what remains is
// matched by plain recursion over code points, in exponential time. It shares
// nothing with the package, knows no automaton, and expects patterns that
// ParsePattern accepts.

// refMatch reports whether a pattern matches a normalized path.
func refMatch(pattern, path string) bool {
	chars := refChars(path)
	return slices.ContainsFunc(refExpand(pattern), func(p string) bool { return refWalk([]rune(p), chars) })
}

// refSet is the reference for Template.Match.
func refSet(patterns []template.Patterns, path string) []int {
	var slots []int
	matches := func(p string) bool { return refMatch(p, path) }
	for i, p := range patterns {
		if slices.ContainsFunc(p.Include, matches) && !slices.ContainsFunc(p.Exclude, matches) {
			slots = append(slots, i)
		}
	}
	return slots
}

// refChars are the characters of a path; -1 stands for a byte that is not UTF-8.
func refChars(path string) []rune {
	var chars []rune
	for len(path) > 0 {
		r, size := utf8.DecodeRuneInString(path)
		if r == utf8.RuneError && size == 1 {
			r = -1
		}
		chars = append(chars, r)
		path = path[size:]
	}
	return chars
}

// refExpand writes a pattern out as patterns without braces.
func refExpand(pattern string) []string {
	open, end, commas := refBrace(pattern)
	if open < 0 {
		return []string{pattern}
	}
	var all []string
	from := open + 1
	for _, to := range append(commas, end) {
		all = append(all, refExpand(pattern[:open]+pattern[from:to]+pattern[end+1:])...)
		from = to + 1
	}
	return all
}

// refBrace finds the first brace, its end, and the commas between its alternatives.
func refBrace(pattern string) (open, end int, commas []int) {
	open = -1
	depth, inSet := 0, false
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case inSet:
			inSet = c != ']'
		case c == '[':
			inSet = true
		case c == '{':
			if depth++; depth == 1 {
				open = i
			}
		case c == ',' && depth == 1:
			commas = append(commas, i)
		case c == '}':
			if depth--; depth == 0 {
				return open, i, commas
			}
		}
	}
	return -1, 0, nil
}

func refWalk(p, path []rune) bool {
	switch {
	case len(p) == 0:
		return len(path) == 0
	case len(p) > 1 && p[0] == '*' && p[1] == '*':
		return refWalk(p[2:], path) || len(path) > 0 && refWalk(p, path[1:])
	case p[0] == '*':
		return refWalk(p[1:], path) || len(path) > 0 && path[0] != '/' && refWalk(p, path[1:])
	case len(path) == 0:
		return false
	case p[0] == '?':
		return path[0] != '/' && refWalk(p[1:], path[1:])
	case p[0] == '[':
		in, rest := refInSet(p[1:], path[0])
		return in && refWalk(rest, path[1:])
	case p[0] == '\\':
		p = p[1:]
	}
	return p[0] == path[0] && refWalk(p[1:], path[1:])
}

// refInSet reports whether a set has r; p begins after its "[".
func refInSet(p []rune, r rune) (in bool, rest []rune) {
	negated := p[0] == '!'
	if negated {
		p = p[1:]
	}
	one := func() rune {
		if p[0] == '\\' {
			p = p[1:]
		}
		c := p[0]
		p = p[1:]
		return c
	}
	for p[0] != ']' {
		lo := one()
		hi := lo
		if p[0] == '-' && p[1] != ']' {
			p = p[1:]
			hi = one()
		}
		in = in || lo <= r && r <= hi
	}
	return r >= 0 && r != '/' && in != negated, p[1:]
}

// refNormalize is the reference for Normalize of an origin-form target: segments
// on a stack.
func refNormalize(target string) string {
	path, _, _ := strings.Cut(target, "?")
	path, _, _ = strings.Cut(path, "#")
	segments := strings.Split(refUnescape(path), "/")[1:]
	var stack []string
	for i, s := range segments {
		last := i == len(segments)-1
		if s == ".." && len(stack) > 0 {
			stack = stack[:len(stack)-1]
		}
		if s != "." && s != ".." {
			stack = append(stack, s)
		} else if last {
			stack = append(stack, "")
		}
	}
	return "/" + strings.Join(stack, "/")
}

func refUnescape(s string) string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	for len(s) > 0 {
		if len(s) > 2 && s[0] == '%' {
			hi, lo := strings.Index(hex, strings.ToLower(s[1:2])), strings.Index(hex, strings.ToLower(s[2:3]))
			if hi >= 0 && lo >= 0 {
				b.WriteByte(byte(16*hi + lo))
				s = s[3:]
				continue
			}
		}
		b.WriteByte(s[0])
		s = s[1:]
	}
	return b.String()
}
