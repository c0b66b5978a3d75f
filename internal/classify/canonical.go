package classify

import (
	_ "embed"
	"strings"
	"sync"
)

//go:embed tracking.txt
var trackingText string

// tracking are the parameters that say where a reader came from, never which page
// is meant: whole names, and beginnings of names.
type tracking struct {
	names    map[string]bool
	prefixes []string
}

var trackingParameters = sync.OnceValue(func() tracking {
	t := tracking{names: map[string]bool{}}
	for line := range strings.Lines(trackingText) {
		line = strings.TrimSpace(line)
		prefix, isPrefix := strings.CutSuffix(line, "*")
		switch {
		case line == "" || line[0] == '#':
		case isPrefix:
			t.prefixes = append(t.prefixes, prefix)
		default:
			t.names[line] = true
		}
	}
	return t
})

// has reports whether a parameter, as it stands in a query, is one of them. Case
// does not count: mail programs change it.
func (t *tracking) has(parameter string) bool {
	name, _, _ := strings.Cut(parameter, "=")
	name = strings.ToLower(name)
	if t.names[name] {
		return true
	}
	for _, p := range t.prefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// Canonical is a page's URL without its fragment, which no server sees, and without
// the parameters of tracking.txt. Nothing else is changed: not the order of the other
// parameters, not how they are escaped. Canonical(Canonical(u)) is Canonical(u).
//
// What is left can still say who a reader is, if a site puts that into its URLs.
// Nothing keeps it: see the package.
func Canonical(url string) string {
	url, _, _ = strings.Cut(url, "#")
	path, query, ok := strings.Cut(url, "?")
	if !ok || query == "" {
		return url
	}
	t := trackingParameters()
	var kept []string
	removed := false
	for p := range strings.SplitSeq(query, "&") {
		if t.has(p) {
			removed = true
			continue
		}
		kept = append(kept, p)
	}
	switch {
	case !removed:
		return url
	case len(kept) == 0:
		return path
	}
	return path + "?" + strings.Join(kept, "&")
}
