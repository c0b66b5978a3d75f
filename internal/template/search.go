package template

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf8"
)

// A search looks through all paths that can exist, at once: it walks the
// deterministic automaton of a few patterns together with that of normalized
// paths (no "." and ".." segments), breadth first, so that what it finds is a
// shortest path. Parts in which too few owners' patterns can still match are
// left out.
type search struct {
	b      *builder
	owner  uint32      // of the pattern being added
	owners [][2]uint32 // by node: up to two owners of patterns that lead through it; 0 = none
}

// work is what searches may still do, in visits of a node: a bound in time that
// is the same on every machine.
type work int

// A found is a state in which some pattern matches.
type found struct {
	refs []uint32 // of all patterns that match, ascending
	path func() string
}

func newSearch() *search {
	s := &search{b: newBuilder()}
	s.b.visit = func(n uint32) {
		for int(n) >= len(s.owners) {
			s.owners = append(s.owners, [2]uint32{})
		}
		switch o := &s.owners[n]; {
		case s.owner == 0 || o[0] == s.owner || o[1] == s.owner:
		case o[0] == 0:
			o[0] = s.owner
		case o[1] == 0:
			o[1] = s.owner
		}
	}
	return s
}

// add adds a pattern that gives ref. Patterns with owner 0 never keep a part of
// the search alive.
func (s *search) add(p *Pattern, ref, owner uint32) {
	s.owner = owner
	s.b.accept(s.b.add(p), ref)
}

// cost is what it takes to build the automaton of what has been added.
func (s *search) cost() work { return 200 + 4*work(len(s.b.nodes)) }

// run calls visit for every state in which a pattern matches and, somewhere
// before or there, alive different owners could, until visit says stop. It
// reports false if w ran out before all was seen. s must not be used after.
func (s *search) run(alive int, w *work, visit func(found) (stop bool)) (complete bool) {
	g := s.b.graph()
	r := &running{graph: g, owners: s.owners, alive: alive, work: newStepper(g), seen: make(map[string]bool)}
	r.alphabet = newAlphabet(g)
	r.reach(r.work.from(0), spot{dots: inSegment, from: -1})
	for i := 0; i < len(r.spots); i++ {
		if *w < 0 {
			return false
		}
		at := r.spots[i]
		if refs := r.accepts(at); len(refs) > 0 {
			if visit(found{refs: refs, path: func() string { return r.path(i) }}) {
				return true
			}
		}
		for _, c := range r.alphabet.of(at.nodes) {
			*w -= work(len(at.nodes)) + 1
			if dots, ok := at.dots.after(c); ok {
				r.reach(r.work.step(at.nodes, c), spot{dots: dots, from: i, char: c})
			}
		}
		r.spots[i].nodes = nil
	}
	return true
}

// running is a search under way.
type running struct {
	graph    *graph
	owners   [][2]uint32
	alive    int
	work     *stepper
	alphabet alphabet
	spots    []spot // in the order in which they were reached
	seen     map[string]bool
	key      []byte
}

// A spot is a state of the product, and how it was first reached.
type spot struct {
	nodes []uint32
	dots  dots
	from  int // index of the spot before; -1: the first
	char  rune
}

// reach notes a spot with these nodes, if it leads anywhere and nowhere known.
func (r *running) reach(nodes []uint32, at spot) {
	if !r.isAlive(nodes) {
		return
	}
	r.key = append(r.key[:0], byte(at.dots))
	for _, n := range nodes {
		r.key = binary.LittleEndian.AppendUint32(r.key, n)
	}
	if r.seen[string(r.key)] {
		return
	}
	r.seen[string(r.key)] = true
	at.nodes = slices.Clone(nodes)
	r.spots = append(r.spots, at)
}

// isAlive reports whether enough different owners have a node among nodes.
func (r *running) isAlive(nodes []uint32) bool {
	var one uint32
	n := 0
	for _, node := range nodes {
		if int(node) >= len(r.owners) {
			continue
		}
		for _, o := range r.owners[node] {
			if o != 0 && o != one {
				one = o
				if n++; n >= r.alive {
					return true
				}
			}
		}
	}
	return false
}

// accepts are the refs of a spot, if a path may end there.
func (r *running) accepts(at spot) []uint32 {
	if at.dots == oneDot || at.dots == twoDots {
		return nil
	}
	var refs []uint32
	for _, n := range at.nodes {
		refs = append(refs, r.graph.refsOf(n)...)
	}
	slices.Sort(refs)
	return slices.Compact(refs)
}

// path is the path that led to spot i.
func (r *running) path(i int) string {
	var chars []string
	for ; r.spots[i].from >= 0; i = r.spots[i].from {
		if c := r.spots[i].char; c == noChar {
			chars = append(chars, r.alphabet.plain)
		} else {
			chars = append(chars, string(c))
		}
	}
	slices.Reverse(chars)
	return strings.Join(chars, "")
}

// An alphabet picks the few characters that a search has to try.
type alphabet struct {
	graph  *graph
	bounds []rune // where a set of the graph begins or ends
	plain  string // what stands for all that no literal and no set has
}

func newAlphabet(g *graph) alphabet {
	a := alphabet{graph: g}
	if len(g.sets) > 0 {
		a.bounds = boundaries(nil, g.sets)
	}
	literals := make(map[rune]bool)
	for _, e := range g.edges {
		literals[e.char] = true
	}
	inSets := newCharSet(slices.Concat(g.sets...), false)
	a.plain = "\xff" // is in no set
	for _, c := range "xyzabcdefghijklmnopqrstuvw0123456789_-XYZ" {
		if !literals[c] && !inSets.has(c) {
			a.plain = string(c)
			break
		}
	}
	return a
}

// of are characters such that every other one leads from nodes where one of
// them leads. That they may have no "." does no harm: whatever reads it without
// naming it reads noChar as well, and that is never a dot segment.
func (a alphabet) of(nodes []uint32) []rune {
	var chars []rune
	any, sets := false, false
	for _, n := range nodes {
		for _, e := range a.graph.edgesOf(n) {
			chars = append(chars, e.char)
		}
		op := a.graph.nodes[n].op
		any = any || op == opStar || op == opDeep
		for _, k := range a.graph.wildsOf(n) {
			any = any || a.graph.nodes[k].op == opOne
			sets = sets || a.graph.nodes[k].op == opSet
		}
	}
	if any || sets {
		chars = append(chars, '/', noChar)
	}
	if sets {
		for _, c := range slices.Clone(chars) {
			chars = append(chars, c+1) // where the part of a set after a literal begins
		}
		chars = append(chars, a.bounds...)
	}
	// A boundary may lie behind the last character, or where there are none.
	chars = slices.DeleteFunc(chars, func(c rune) bool { return c != noChar && !utf8.ValidRune(c) })
	slices.SortFunc(chars, func(a, b rune) int { return cmp.Compare(rank(a), rank(b)) })
	return slices.Compact(chars)
}

// rank lets a search try readable characters first.
func rank(c rune) rune {
	if c == noChar {
		return 0
	}
	if c < '!' {
		return c + utf8.MaxRune
	}
	return c
}

// dots is how a path stands to dot segments, which no normalized path has.
type dots uint8

const (
	atSegment dots = iota // directly after a slash
	oneDot                // the segment is "." so far
	twoDots               // the segment is ".." so far
	inSegment             // anything else
)

// after is the state after c; false: no normalized path continues so.
func (d dots) after(c rune) (dots, bool) {
	switch {
	case c == '/':
		return atSegment, d != oneDot && d != twoDots
	case c == '.' && d < twoDots:
		return d + 1, true
	}
	return inSegment, true
}
