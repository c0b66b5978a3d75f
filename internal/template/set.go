package template

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// A set finds the slots of a path among all patterns of a template.
//
// The literal beginnings of the patterns are a trie, walked character by
// character. Where something that is not literal hangs on a node of the trie,
// the rest of the path is read by a deterministic automaton, whose states are
// made when they are first needed and kept in a cache of bounded size. The
// patterns that begin with a wildcard all hang on one node and share one run.
//
// So the time for a path is its length times the number of places along its own
// literal walk where automata begin (for common files one or two, never more
// than [MaxPatternBytes]), plus one for each slot that a matching pattern names.
// A step that nobody took before costs about a microsecond, more where very many
// patterns are still possible, and a lock. All work stays linear in the length of
// the path even when every character needs such a step.
type set struct {
	graph *graph
	chars classes
	cache atomic.Pointer[cache]
	hubs  uint32
	limit int // of each cache, in bytes
}

// cacheBytes bounds the states of a set. When they need more they are all
// forgotten, and made again as they are needed.
const cacheBytes = 16 << 20

func newSet(b *builder) *set {
	s := &set{chars: newClasses(b), graph: b.graph(), hubs: b.hubs, limit: cacheBytes}
	s.cache.Store(s.newCache(newStepper(s.graph)))
	return s
}

// find adds all refs whose pattern matches path to h.
func (s *set) find(path string, h *hits) {
	n := uint32(0)
	for {
		if hub := s.graph.nodes[n].hub; hub != 0 {
			h.add(s.run(hub, path).refs)
		}
		if path == "" {
			h.add(s.graph.refsOf(n))
			return
		}
		r, size := decodeChar(path)
		if n = s.graph.child(n, r); n == 0 {
			return
		}
		path = path[size:]
	}
}

// run reads rest from hub on and gives the state at its end.
func (s *set) run(hub uint32, rest string) *state {
	st := s.cache.Load().starts[s.graph.nodes[hub].arg].Load()
	if st == nil {
		st = s.start(hub)
	}
	for i := 0; i < len(rest) && !st.settled; {
		class, size := s.chars.of(rest[i:])
		i += size
		next := st.next[class].Load()
		if next == nil {
			next = s.step(st, class)
		}
		st = next
	}
	return st
}

// A state is a set of nodes. It is immutable but for next, which fills up.
type state struct {
	next    []atomic.Pointer[state] // by class
	nodes   []uint32
	refs    []uint32 // ascending, without duplicates
	settled bool     // nothing that is read can change it any more
}

// A cache holds the states made so far. States of a cache that has been dropped
// stay usable: what they lead to is then in the present one.
type cache struct {
	starts []atomic.Pointer[state] // by number of the hub

	mu     sync.Mutex // guards what follows, and the making of states
	states map[string]*state
	bytes  int
	work   *stepper
	key    []byte
}

// newCache is an empty cache that takes work over.
func (s *set) newCache(work *stepper) *cache {
	return &cache{
		starts: make([]atomic.Pointer[state], s.hubs),
		states: make(map[string]*state),
		work:   work,
	}
}

// start makes the state in which hub's patterns begin.
func (s *set) start(hub uint32) *state {
	c := s.lock()
	defer c.mu.Unlock()
	st := s.intern(c, c.work.from(hub))
	c.starts[s.graph.nodes[hub].arg].Store(st)
	return st
}

// step makes the state after st has read a character of class.
func (s *set) step(st *state, class uint32) *state {
	c := s.lock()
	defer c.mu.Unlock()
	next := s.intern(c, c.work.step(st.nodes, s.chars.some[class]))
	st.next[class].Store(next)
	return next
}

// lock gives the present cache, locked; a full one is replaced.
func (s *set) lock() *cache {
	for {
		c := s.cache.Load()
		c.mu.Lock()
		if s.cache.Load() != c {
			c.mu.Unlock()
			continue
		}
		if c.bytes <= s.limit {
			return c
		}
		next := s.newCache(c.work)
		next.mu.Lock()
		s.cache.Store(next)
		c.mu.Unlock()
		return next
	}
}

// intern gives the state of a set of nodes. The caller holds c.mu.
func (s *set) intern(c *cache, nodes []uint32) *state {
	c.key = c.key[:0]
	for _, n := range nodes {
		c.key = binary.LittleEndian.AppendUint32(c.key, n)
	}
	if st, found := c.states[string(c.key)]; found {
		return st
	}
	st := &state{nodes: slices.Clone(nodes)}
	st.settled = s.settled(c, st.nodes)
	for _, n := range st.nodes {
		st.refs = append(st.refs, s.graph.refsOf(n)...)
	}
	slices.Sort(st.refs)
	st.refs = slices.Clip(slices.Compact(st.refs))
	if !st.settled {
		st.next = make([]atomic.Pointer[state], len(s.chars.some))
	}
	c.states[string(c.key)] = st
	c.bytes += 128 + 8*len(st.next) + 2*len(c.key) + 4*len(st.refs) // 128: the state, its place in the map
	return st
}

// settled reports whether nodes stay the same set whatever is read: nothing but
// ** loops, and the nodes those reach. It overwrites the result of c.work.
func (s *set) settled(c *cache, nodes []uint32) bool {
	for _, n := range nodes {
		if op := s.graph.nodes[n].op; op == opStar || op == opHub || len(s.graph.edgesOf(n)) > 0 {
			return false // a hub is in a set only if it can read
		}
	}
	return len(c.work.step(nodes, noChar)) == len(nodes) // the step is within nodes
}

// classes sort characters by what the automata can tell apart.
type classes struct {
	ascii  [utf8.RuneSelf]uint32
	bounds []rune   // class of[i] reaches from bounds[i] to before bounds[i+1]
	class  []uint32 // parallel to bounds
	some   []rune   // by class: one of its characters
}

// anyOther is the class of all characters that neither a literal nor a set of a
// pattern names, and of bytes that are not UTF-8: only wildcards read those.
const anyOther = 0

func newClasses(b *builder) classes {
	c := classes{some: []rune{noChar}}
	b.chars['/'] = struct{}{}
	inSets := newCharSet(slices.Concat(b.sets...), false)
	for _, r := range boundaries(b.chars, b.sets) {
		class := uint32(anyOther)
		if _, literal := b.chars[r]; literal || inSets.has(r) {
			class = uint32(len(c.some))
			c.some = append(c.some, r)
		}
		c.bounds = append(c.bounds, r)
		c.class = append(c.class, class)
	}
	for r := range c.ascii {
		c.ascii[r] = c.search(rune(r))
	}
	return c
}

// boundaries are the code points at which membership in chars or sets may
// change, ascending; the first is 0.
func boundaries(chars map[rune]struct{}, sets []charSet) []rune {
	bounds := []rune{0}
	for r := range chars {
		bounds = append(bounds, r, r+1)
	}
	for _, s := range sets {
		for _, r := range s {
			bounds = append(bounds, r.lo, r.hi+1)
		}
	}
	slices.Sort(bounds)
	return slices.Compact(bounds)
}

// of is the class of the first character of s, and its length.
func (c *classes) of(s string) (class uint32, size int) {
	if s[0] < utf8.RuneSelf {
		return c.ascii[s[0]], 1
	}
	r, size := decodeChar(s)
	if r == noChar {
		return anyOther, size
	}
	return c.search(r), size
}

func (c *classes) search(r rune) uint32 {
	i, found := slices.BinarySearch(c.bounds, r)
	if !found {
		i--
	}
	return c.class[i]
}

// A ref names one list of patterns of a slot: twice the slot's index, plus one
// for its exclude patterns.
func ref(slot int, exclude bool) uint32 {
	if exclude {
		return uint32(2*slot + 1)
	}
	return uint32(2 * slot)
}

// hits are the refs found on a path.
type hits struct {
	include, exclude [(MaxSlots + 63) / 64]uint64
	touched          uint64 // bit i: include[i] is not zero
}

const _ uint = 64 - (MaxSlots+63)/64 // else touched has too few bits

func (h *hits) add(refs []uint32) {
	for _, ref := range refs {
		slot := ref / 2
		if ref%2 == 1 {
			h.exclude[slot/64] |= 1 << (slot % 64)
			continue
		}
		h.include[slot/64] |= 1 << (slot % 64)
		h.touched |= 1 << (slot / 64)
	}
}

// appendTo appends the slots that are included and not excluded, ascending.
func (h *hits) appendTo(dst []int) []int {
	for t := h.touched; t != 0; t &= t - 1 {
		i := bits.TrailingZeros64(t)
		for w := h.include[i] &^ h.exclude[i]; w != 0; w &= w - 1 {
			dst = append(dst, 64*i+bits.TrailingZeros64(w))
		}
	}
	return dst
}
