package template

import (
	"fmt"
	"slices"
	"strings"
)

// A Warning is something that is allowed in a template and probably a mistake.
type Warning struct {
	Place
	Pattern string // empty where Place is a whole slot
	Msg     string
	Remedy  string
}

// String gives place, pattern, message and remedy in one line.
func (w Warning) String() string {
	if w.Pattern == "" {
		return fmt.Sprintf("%s: %s; %s", w.Place, w.Msg, w.Remedy)
	}
	return fmt.Sprintf("%s: %q %s; %s", w.Place, w.Pattern, w.Msg, w.Remedy)
}

// Warnings are, in file order and at most [MaxFindings]:
//
//   - slots that can never match, and patterns that can never match;
//   - patterns whose every path another pattern of the same list matches too,
//     and exclude patterns that exclude nothing;
//   - patterns like "/news/**" that probably should be "/news{,/**}", once for
//     each text: "/news" is neither matched nor excluded (or, of an exclude
//     pattern, it is on the page), and the file does not look as if the site's
//     pages ended in a slash;
//   - percent escapes, queries and "[^", which mean something else elsewhere.
//
// What is there is proved, but not all is found where patterns are so entangled
// that it would take longer than a load may.
func (t *Template) Warnings() []Warning {
	w := warner{
		left:      allWork,
		matchers:  make(map[*Pattern]*matcher),
		known:     make(map[string]answer),
		suggested: make(map[string]bool),
	}
	w.slashStyle = slices.ContainsFunc(t.patterns, func(p slotPatterns) bool {
		return slices.ContainsFunc(slices.Concat(p.include, p.exclude), namesDirectory)
	})
	for i, p := range t.patterns {
		w.slot(i, p)
		if len(w.all) >= MaxFindings {
			break
		}
	}
	slices.SortStableFunc(w.all, func(a, b Warning) int { return a.Place.compare(b.Place) })
	return w.all[:min(len(w.all), MaxFindings)]
}

// namesDirectory reports whether p is the literal path of one page that ends in
// a slash.
func namesDirectory(p *Pattern) bool {
	return len(p.rest) == 0 && len(p.start) > 1 && strings.HasSuffix(p.start, "/")
}

// A warner collects warnings.
type warner struct {
	all        []Warning
	left       work
	matchers   map[*Pattern]*matcher
	known      map[string]answer // of exists
	suggested  map[string]bool   // patterns that withFront has been suggested for
	slashStyle bool              // the pages of the site seem to end in a slash
}

func (w *warner) warn(at Place, p *Pattern, msg, remedy string) {
	warning := Warning{Place: at, Msg: msg, Remedy: remedy}
	if p != nil {
		warning.Pattern = p.text
	}
	w.all = append(w.all, warning)
}

func (w *warner) slot(slot int, p slotPatterns) {
	if len(p.include) == 0 {
		w.warn(Place{Slot: slot, Index: -1}, nil, "has no page_patterns and is on no page", "add one, or remove the slot")
		return
	}
	dead := make([]bool, len(p.include))
	for i, include := range p.include {
		dead[i] = w.exists(include, nil, p.exclude) == no
	}
	if !slices.Contains(dead, false) {
		w.warn(Place{Slot: slot, Index: -1}, nil, "can never match: all that it includes is excluded or no path of a page",
			"correct page_patterns or exclude, or remove the slot")
		return
	}
	w.includes(slot, p, dead)
	w.excludes(slot, p)
}

func (w *warner) includes(slot int, p slotPatterns, dead []bool) {
	for i, include := range p.include {
		at := Place{Slot: slot, Index: i}
		w.habits(at, include)
		if dead[i] {
			w.warn(at, include, "can never match: all of it is excluded or no path of a page", "remove it, or correct exclude")
			continue
		}
		w.front(at, include, p)
	}
	w.redundant(Place{Slot: slot}, p.include, dead)
}

func (w *warner) excludes(slot int, p slotPatterns) {
	idle := make([]bool, len(p.exclude))
	for i, exclude := range p.exclude {
		at := Place{Slot: slot, Exclude: true, Index: i}
		w.habits(at, exclude)
		if idle[i] = w.exists(exclude, p.include, nil) == no; idle[i] {
			w.warn(at, exclude, "excludes nothing that page_patterns match", "remove it, or correct it")
			continue
		}
		w.front(at, exclude, p)
	}
	w.redundant(Place{Slot: slot, Exclude: true}, p.exclude, idle)
}

// redundant warns of patterns that another one of their list makes superfluous;
// of two that are equal, of the later one. Those in gone have been warned of.
func (w *warner) redundant(at Place, list []*Pattern, gone []bool) {
	for i, p := range slices.Backward(list) {
		if gone[i] {
			continue
		}
		for j, other := range list {
			if i == j || gone[j] || w.exists(p, nil, []*Pattern{other}) != no {
				continue
			}
			gone[i] = true
			at.Index = i
			w.warn(at, p, fmt.Sprintf("adds nothing: %q matches all of it", other.text), "remove it")
			break
		}
	}
}

// habits warns of what means something else in other pattern languages.
func (w *warner) habits(at Place, p *Pattern) {
	if decoded := string(decode(nil, p.text)); decoded != p.text {
		w.warn(at, p, "has a percent escape, but is matched against the decoded path", fmt.Sprintf("write %q", decoded))
	}
	if _, query, ok := strings.Cut(p.text, "?"); ok && strings.Contains(query, "=") {
		w.warn(at, p, "seems to have a query, but is matched against the path alone", `end it before the "?", which stands for any character`)
	}
	if strings.Contains(p.text, "[^") {
		w.warn(at, p, "has a set that begins with ^, which is a character like others", "write [! for a set of what is not in it")
	}
}

// front suggests "/news{,/**}" for "/news/**" where "/news" is a page that the
// slot leaves out, or does not leave out.
func (w *warner) front(at Place, p *Pattern, slot slotPatterns) {
	better, ok := withFront(p)
	if !ok || w.slashStyle || w.suggested[p.text] {
		return
	}
	front, err := ParsePattern(strings.TrimSuffix(better.text, "{,/**}"))
	if err != nil {
		return // "/**" has no page above it
	}
	if at.Exclude {
		if w.exists(front, slot.include, slot.exclude) != yes {
			return
		}
	} else if len(front.rest) > 0 || w.exists(front, nil, slices.Concat(slot.include, slot.exclude)) != yes {
		return // below a wildcard there may well be no page
	}
	w.suggested[p.text] = true
	w.warn(at, p, fmt.Sprintf("matches what is below %s, not %s itself", front, front),
		fmt.Sprintf("write %q if both are meant", better.text))
}

// An answer to a question about all paths that can exist.
type answer uint8

const (
	unknown answer = iota // it would have taken too long
	no
	yes
)

// exists says whether some normalized path matches p, one of with (or with is
// nil), and none of without.
func (w *warner) exists(p *Pattern, with, without []*Pattern) answer {
	if w.left < 0 {
		return unknown
	}
	apart := func(q *Pattern) bool { return !mayMeet(p, q) }
	near := slices.DeleteFunc(slices.Clone(with), apart)
	without = slices.DeleteFunc(slices.Clone(without), apart)
	switch {
	case with != nil && len(near) == 0:
		return no
	case with == nil && len(without) == 0 && !strings.ContainsAny(p.text, ".["):
		return yes // without dot segments and sets (such as [/]) a pattern matches something
	case len(without) == 1 && with == nil && !mayCover(without[0], p):
		return yes
	}
	if s, ok := p.sample(); ok && !w.matches(without, s) && (with == nil || w.matches(near, s)) {
		return yes // mostly so; a search takes twenty times as long
	}
	key := question(p, near, without)
	a, known := w.known[key]
	if !known {
		a = w.find(p, near, with != nil, without)
		w.known[key] = a
	}
	return a
}

// matches reports whether one of patterns matches path.
func (w *warner) matches(patterns []*Pattern, path string) bool {
	return slices.ContainsFunc(patterns, func(p *Pattern) bool {
		m, known := w.matchers[p]
		if !known {
			m = newMatcher(p)
			w.matchers[p] = m
		}
		w.left -= work(len(path))
		return m.match(path)
	})
}

func (w *warner) find(p *Pattern, with []*Pattern, needWith bool, without []*Pattern) answer {
	const isWith, isWithout, isP = 0, 1, 2 // ascending, as refs are
	s := newSearch()
	s.add(p, isP, 1)
	for _, q := range with {
		s.add(q, isWith, 0)
	}
	for _, q := range without {
		s.add(q, isWithout, 0)
	}
	limit := min(pairWork, w.left)
	left := limit - s.cost()
	a := no
	complete := s.run(1, &left, func(f found) (stop bool) {
		if slices.Contains(f.refs, isP) && !slices.Contains(f.refs, isWithout) &&
			(!needWith || slices.Contains(f.refs, isWith)) {
			a = yes
		}
		return a == yes
	})
	w.left -= limit - left
	if !complete {
		return unknown
	}
	return a
}

// question is a key for what is asked of exists.
func question(p *Pattern, with, without []*Pattern) string {
	var b strings.Builder
	b.WriteString(p.text)
	for _, q := range with {
		b.WriteString("\n+" + q.text) // no pattern begins with + or -
	}
	for _, q := range without {
		b.WriteString("\n-" + q.text)
	}
	return b.String()
}

// mayMeet reports whether the literal beginnings of p and q allow a common path.
func mayMeet(p, q *Pattern) bool {
	return strings.HasPrefix(p.start, q.start) || strings.HasPrefix(q.start, p.start)
}

// mayCover reports whether the literal beginnings allow q to match all that p does.
func mayCover(q, p *Pattern) bool {
	if len(p.rest) > 0 && (p.rest[0].op == opBrace || p.rest[0].op == opSet) {
		return mayMeet(p, q) // {na,ne} and [n] begin alike, too
	}
	return strings.HasPrefix(p.start, q.start)
}
