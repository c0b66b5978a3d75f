package template

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

// A graph is a nondeterministic automaton over the characters of a path, in
// which patterns share their common beginnings. A node stands for "the path so
// far matches the beginning of some pattern up to here". It is immutable.
//
// What a node can read next is of two sorts, kept apart so that the literal
// beginnings of all patterns form a trie that is walked without any automaton:
// literal characters are edges of the node itself, all else hangs on its hub.
// The alternatives of a brace are ordinary paths from the node before it, and
// each of their ends leads, without reading anything, to the join after it.
type graph struct {
	nodes []node // nodes[0] is the root, before the first slash; the last one only ends the spans
	edges []edge
	wilds []uint32 // what hangs on hubs
	refs  []uint32 // what callers gave to [builder.add]
	sets  []charSet
}

// A node's spans end where those of the next node begin.
type node struct {
	op    op
	keep  bool   // whether a set of nodes has to hold it: it reads, loops or accepts
	arg   uint32 // opSet: index in sets; opHub: its number among the hubs
	hub   uint32 // 0 = none
	edges uint32
	wilds uint32
	refs  uint32
}

// An edge reads one literal character. The edges of a node ascend.
type edge struct {
	char rune
	to   uint32
}

// Two more sorts of nodes, beside those of elements.
const (
	opHub  op = opBrace + 1 + iota // the non-literal continuations of a node
	opJoin                         // the place after a brace
)

// noChar is a character that no literal and no set has: a byte that is not UTF-8.
const noChar rune = -1

// decodeChar gives the first character of s, which is not empty.
func decodeChar(s string) (r rune, size int) {
	if c := s[0]; c < utf8.RuneSelf {
		return rune(c), 1
	}
	r, size = utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && size == 1 {
		return noChar, 1
	}
	return r, size
}

// child follows the literal edge of node n that reads r; 0 = there is none.
func (g *graph) child(n uint32, r rune) uint32 {
	edges := g.edges[g.nodes[n].edges:g.nodes[n+1].edges]
	for len(edges) > 8 {
		half := len(edges) / 2
		if edges[half].char <= r {
			edges = edges[half:]
		} else {
			edges = edges[:half]
		}
	}
	for _, e := range edges {
		if e.char == r {
			return e.to
		}
	}
	return 0
}

func (g *graph) edgesOf(n uint32) []edge   { return g.edges[g.nodes[n].edges:g.nodes[n+1].edges] }
func (g *graph) wildsOf(n uint32) []uint32 { return g.wilds[g.nodes[n].wilds:g.nodes[n+1].wilds] }
func (g *graph) refsOf(n uint32) []uint32  { return g.refs[g.nodes[n].refs:g.nodes[n+1].refs] }

// A stepper computes sets of nodes. It is scratch space, for one goroutine.
type stepper struct {
	g    *graph
	seen []uint32 // by node: the round in which it was visited
	now  uint32   // the round
	set  []uint32
}

func newStepper(g *graph) *stepper {
	return &stepper{g: g, seen: make([]uint32, len(g.nodes))}
}

// from is the set of what can be reached from n without reading. Like every set
// it ascends, and is valid until the next call.
func (s *stepper) from(n uint32) []uint32 {
	s.begin()
	s.visit(n)
	slices.Sort(s.set)
	return s.set
}

// step is the set after set has read r.
func (s *stepper) step(set []uint32, r rune) []uint32 {
	s.begin()
	for _, n := range set {
		if op := s.g.nodes[n].op; op == opDeep || op == opStar && r != '/' {
			s.visit(n)
		}
		if k := s.g.child(n, r); k != 0 {
			s.visit(k)
		}
		for _, k := range s.g.wildsOf(n) {
			if s.g.reads(k, r) {
				s.visit(k)
			}
		}
	}
	slices.Sort(s.set)
	return s.set
}

// reads reports whether r leads from a hub to its node k.
func (g *graph) reads(k uint32, r rune) bool {
	switch n := g.nodes[k]; n.op {
	case opOne:
		return r != '/'
	case opSet:
		return g.sets[n.arg].has(r)
	}
	return false // *, ** and joins are entered without reading
}

func (s *stepper) begin() {
	s.set = s.set[:0]
	if s.now++; s.now == 0 { // 2³² rounds: all marks are stale
		clear(s.seen)
		s.now = 1
	}
}

// visit adds n and what can be reached from it without reading.
func (s *stepper) visit(n uint32) {
	if s.seen[n] == s.now {
		return
	}
	s.seen[n] = s.now
	node := s.g.nodes[n]
	if node.keep {
		s.set = append(s.set, n)
	}
	if node.hub != 0 {
		s.visit(node.hub)
	}
	for _, k := range s.g.wildsOf(n) {
		switch s.g.nodes[k].op {
		case opStar, opDeep, opJoin:
			s.visit(k)
		}
	}
}

// A builder makes a graph.
type builder struct {
	nodes []node
	kids  map[kid]uint32
	ids   map[string]uint32 // sets and braces by their text
	sets  []charSet
	hubs  uint32
	edges []link
	wilds []link
	refs  []link

	// chars are the literal characters that stand behind a wildcard, set or brace
	// in any pattern: those that an automaton has to tell apart.
	chars map[rune]struct{}
	tail  bool // whether what is being added stands there

	// visit, if not nil, is told every node that a pattern being added leads through.
	visit func(node uint32)
}

// A kid is how a node hangs on another.
type kid struct {
	from uint32
	op   op
	arg  uint32 // the character, or the id of a set or a brace
}

// A link goes from a node to another, or to a ref.
type link struct {
	from, to uint32
	char     rune
}

func newBuilder() *builder {
	return &builder{
		nodes: make([]node, 1),
		kids:  make(map[kid]uint32),
		ids:   make(map[string]uint32),
		chars: make(map[rune]struct{}),
	}
}

// add adds a pattern and gives its last node, for [builder.accept].
func (b *builder) add(p *Pattern) uint32 {
	b.tail = false
	b.touch(0)
	return b.sequence(0, p.elems)
}

// accept lets node n accept ref.
func (b *builder) accept(n, ref uint32) { b.refs = append(b.refs, link{from: n, to: ref}) }

func (b *builder) sequence(from uint32, elems []elem) uint32 {
	for _, e := range elems {
		switch e.op {
		case opChar:
			from = b.char(from, e.char)
		case opBrace:
			from = b.brace(from, e)
			b.tail = true
		default:
			from = b.wild(from, e)
			b.tail = true
		}
		b.touch(from)
	}
	return from
}

func (b *builder) touch(n uint32) {
	if b.visit != nil {
		b.visit(n)
	}
}

func (b *builder) char(from uint32, r rune) uint32 {
	if b.tail {
		b.chars[r] = struct{}{}
	}
	to, found := b.node(kid{from, opChar, uint32(r)})
	if !found {
		b.edges = append(b.edges, link{from, to, r})
	}
	return to
}

func (b *builder) wild(from uint32, e elem) uint32 {
	hub := b.hub(from)
	b.touch(hub)
	k := kid{from: hub, op: e.op}
	if e.op == opSet {
		k.arg = b.id(e)
	}
	to, found := b.node(k)
	if !found {
		b.nodes[to].arg = k.arg
		b.wilds = append(b.wilds, link{from: hub, to: to})
	}
	return to
}

// brace adds the alternatives and what joins them. The ends of alternatives may
// be shared with other patterns: the join is reached only when one has matched.
func (b *builder) brace(from uint32, e elem) uint32 {
	join, found := b.node(kid{from, opJoin, b.id(e)})
	if found && b.visit == nil {
		return join
	}
	tail := b.tail
	for _, alt := range e.alts {
		b.tail = tail
		end := b.sequence(from, alt)
		if !found {
			b.wilds = append(b.wilds, link{from: b.hub(end), to: join})
		}
	}
	return join
}

func (b *builder) hub(n uint32) uint32 {
	if b.nodes[n].hub == 0 {
		hub, _ := b.node(kid{from: n, op: opHub})
		b.nodes[n].hub = hub
		b.nodes[hub].arg = b.hubs
		b.hubs++
	}
	return b.nodes[n].hub
}

// id numbers sets and braces; their texts cannot be equal, for they begin differently.
func (b *builder) id(e elem) uint32 {
	id, found := b.ids[e.text]
	if !found {
		id = uint32(len(b.sets))
		b.ids[e.text] = id
		b.sets = append(b.sets, e.set) // nil for a brace
	}
	return id
}

func (b *builder) node(k kid) (n uint32, found bool) {
	if n, found = b.kids[k]; !found {
		n = uint32(len(b.nodes))
		b.kids[k] = n
		b.nodes = append(b.nodes, node{op: k.op})
	}
	return n, found
}

// graph is what has been added. The builder must not be used any more.
func (b *builder) graph() *graph {
	g := &graph{sets: b.sets, nodes: append(b.nodes, node{})}
	edges := spread(b.edges, g.nodes, func(n *node) *uint32 { return &n.edges })
	for _, l := range edges {
		g.edges = append(g.edges, edge{l.char, l.to})
	}
	for _, l := range spread(b.wilds, g.nodes, func(n *node) *uint32 { return &n.wilds }) {
		g.wilds = append(g.wilds, l.to)
	}
	for _, l := range spread(b.refs, g.nodes, func(n *node) *uint32 { return &n.refs }) {
		g.refs = append(g.refs, l.to)
	}
	for n := range uint32(len(b.nodes)) {
		slices.SortFunc(g.edgesOf(n), func(a, b edge) int { return cmp.Compare(a.char, b.char) })
		node := &g.nodes[n]
		node.keep = node.op == opStar || node.op == opDeep || len(g.edgesOf(n)) > 0 || len(g.refsOf(n)) > 0 ||
			slices.ContainsFunc(g.wildsOf(n), func(k uint32) bool { return g.nodes[k].op == opOne || g.nodes[k].op == opSet })
	}
	return g
}

// spread orders links by the node they come from, in linear time and otherwise
// as they were, and sets the begin of every node's span.
func spread(links []link, nodes []node, begin func(*node) *uint32) []link {
	for _, l := range links {
		*begin(&nodes[l.from+1])++ // a link never comes from the last node
	}
	for i := 1; i < len(nodes); i++ {
		*begin(&nodes[i]) += *begin(&nodes[i-1])
	}
	next := make([]uint32, len(nodes))
	for i := range nodes {
		next[i] = *begin(&nodes[i])
	}
	sorted := make([]link, len(links))
	for _, l := range links {
		sorted[next[l.from]] = l
		next[l.from]++
	}
	return sorted
}

// below counts n and all nodes that can be reached from it.
func (g *graph) below(n uint32) int {
	seen := map[uint32]bool{n: true}
	todo := []uint32{n}
	reach := func(k uint32) {
		if k != 0 && !seen[k] {
			seen[k] = true
			todo = append(todo, k)
		}
	}
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		reach(g.nodes[n].hub)
		for _, k := range g.wildsOf(n) {
			reach(k)
		}
		for _, e := range g.edgesOf(n) {
			reach(e.to)
		}
	}
	return len(seen)
}
