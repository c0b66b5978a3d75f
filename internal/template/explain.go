package template

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// An Outcome says how a slot stands to a path.
type Outcome uint8

const (
	NoMatch  Outcome = iota // no include pattern matches
	NearMiss                // none matches, but one would if a little were different
	Excluded                // an include pattern matches, and an exclude pattern does
	Matches                 // the slot is on the page
)

// String gives the outcome in words.
func (o Outcome) String() string {
	return [...]string{"no match", "near miss", "excluded", "matches"}[o]
}

// An Explanation says why a slot is on a page or not.
type Explanation struct {
	Slot    int // index in Template.Slots
	Outcome Outcome
	Include int    // the first include pattern that matches, or nearly does; else -1
	Exclude int    // with Excluded: the first exclude pattern that matches; else -1
	Hint    string // with NearMiss: what is different, and what would match
}

// Explain says for every slot, in file order, why it is on the page at a path
// that [Normalize] has returned. It is for people, and slow: it tries one
// pattern after the other.
func (t *Template) Explain(path string) []Explanation {
	near := newNearMisses(path)
	explanations := make([]Explanation, len(t.Slots))
	for i, p := range t.patterns {
		explanations[i] = explain(i, p, path, near)
	}
	return explanations
}

func explain(slot int, p slotPatterns, path string, near *nearMisses) Explanation {
	matches := func(p *Pattern) bool { return p.Match(path) }
	e := Explanation{Slot: slot, Include: slices.IndexFunc(p.include, matches), Exclude: -1}
	if e.Include >= 0 {
		e.Outcome = Matches
		if e.Exclude = slices.IndexFunc(p.exclude, matches); e.Exclude >= 0 {
			e.Outcome = Excluded
		}
		return e
	}
	for i, include := range p.include {
		if hint := near.hint(include); hint != "" {
			e.Outcome, e.Include, e.Hint = NearMiss, i, hint
			return e
		}
	}
	return e
}

// Match reports whether p matches a path that [Normalize] has returned. It
// builds an automaton each time; [Template.Match] is the fast way.
func (p *Pattern) Match(path string) bool { return newMatcher(p).match(path) }

// A matcher tries one pattern on many paths, for one goroutine.
type matcher struct {
	work *stepper
	set  []uint32
}

func newMatcher(p *Pattern) *matcher {
	b := newBuilder()
	b.accept(b.add(p), 0)
	return &matcher{work: newStepper(b.graph())}
}

func (m *matcher) match(path string) bool {
	m.set = append(m.set[:0], m.work.from(0)...)
	for path != "" && len(m.set) > 0 {
		r, size := decodeChar(path)
		m.set = append(m.set[:0], m.work.step(m.set, r)...)
		path = path[size:]
	}
	return slices.ContainsFunc(m.set, func(n uint32) bool { return len(m.work.g.refsOf(n)) > 0 })
}

// nearMisses tries a path that a pattern does not match in other ways.
type nearMisses struct {
	slash    string // the path with its trailing slash taken away, or with one added
	fold     string // in one case
	hasSlash bool
	known    map[string]string // hints by pattern
	path     string
}

func newNearMisses(path string) *nearMisses {
	n := &nearMisses{path: path, fold: strings.Map(fold, path), known: make(map[string]string)}
	n.slash, n.hasSlash = strings.CutSuffix(path, "/")
	if !n.hasSlash {
		n.slash = path + "/"
	}
	return n
}

// hint says what would have to be different for p to match; "" = too much.
func (n *nearMisses) hint(p *Pattern) string {
	hint, found := n.known[p.text]
	if !found {
		hint = n.find(p)
		n.known[p.text] = hint
	}
	return hint
}

func (n *nearMisses) find(p *Pattern) string {
	deeper := &Pattern{elems: mapElems(p.elems, func(e elem) elem {
		if e.op == opStar {
			e.op = opDeep
		}
		return e
	})}
	folded := &Pattern{elems: mapElems(p.elems, func(e elem) elem {
		e.char = fold(e.char)
		return e
	})}
	switch {
	case n.slash != "" && p.Match(n.slash):
		return n.slashHint(p)
	case folded.Match(n.fold):
		return "only the case differs; patterns are case-sensitive"
	case deeper.Match(n.path):
		return "the path has more segments; * stays within one, ** does not"
	}
	return ""
}

// slashHint is for a path whose trailing slash is all that is wrong.
func (n *nearMisses) slashHint(p *Pattern) string {
	if n.hasSlash {
		return fmt.Sprintf("the path ends in /; %q does not", n.slash)
	}
	if better, ok := withFront(p); ok && better.Match(n.path) {
		return fmt.Sprintf("%s matches what is below; %s matches the page itself too", p, better)
	}
	return fmt.Sprintf("the path does not end in /; %q would match", n.slash)
}

// withFront turns a pattern that ends in "/**", such as "/news/**", into the one
// that matches what stands before that as well: "/news{,/**}".
func withFront(p *Pattern) (*Pattern, bool) {
	n := len(p.elems)
	if n < 3 || p.elems[n-1].op != opDeep || p.elems[n-2].op != opChar || p.elems[n-2].char != '/' {
		return nil, false
	}
	text := p.text[:p.elems[n-2].at] + "{,/**}"
	better, err := ParsePattern(text)
	return better, err == nil
}

// mapElems applies f to all elements, also to those within braces.
func mapElems(elems []elem, f func(elem) elem) []elem {
	mapped := make([]elem, len(elems))
	for i, e := range elems {
		e = f(e)
		if e.op == opBrace {
			g := &group{text: e.text}
			for _, alt := range e.alts {
				g.alts = append(g.alts, mapElems(alt, f))
			}
			e.group = g
		}
		mapped[i] = e
	}
	return mapped
}

// fold gives one character for all that differ only in case.
func fold(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }
