package template

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// MaxFindings bounds what [Template.Conflicts] and [Template.Warnings] return.
const MaxFindings = 1000

// Bounds of searches. A visit takes some tens of nanoseconds, so that both
// functions are done within about a second whatever the patterns are.
const (
	allWork   work = 8_000_000 // of one call
	groupWork work = 4_000_000 // of all slots with one DivID together
	pairWork  work = 200_000   // of one pair of slots, or of patterns
)

// A Conflict is a pair of slots that can be on one page and name one element.
type Conflict struct {
	A, B      int // indices in Template.Slots, A < B
	DivID     string
	Path      string // a path on which both are; empty if Undecided
	Undecided bool   // the patterns are too entangled to say, within the time a load may take
}

// String says what is wrong and what helps.
func (c Conflict) String() string {
	if c.Undecided {
		return fmt.Sprintf("slots %d and %d have the div_id %q, and their patterns are too entangled to prove that they never meet; "+
			"give one another div_id, or write simpler patterns", c.A, c.B, c.DivID)
	}
	return fmt.Sprintf("slots %d and %d have the div_id %q and meet on %q; "+
		"give one another div_id, or exclude from one what the other includes", c.A, c.B, c.DivID, c.Path)
}

// Conflicts are the pairs of slots that have one DivID and can meet: some
// normalized path matches an Include of both and an Exclude of neither. The
// answer is exact, up to a bound in work: pairs not decided by then are listed
// as such. There are at most [MaxFindings], ordered by A and B. Slots without a
// DivID are left out.
func (t *Template) Conflicts() []Conflict {
	byDiv := make(map[string][]int)
	for i := range t.Slots {
		if div := t.Slots[i].DivID; div != "" {
			byDiv[div] = append(byDiv[div], i)
		}
	}
	m := meetings{t: t, found: make(map[[2]int]Conflict), left: allWork}
	for _, div := range slices.Sorted(maps.Keys(byDiv)) {
		if slots := byDiv[div]; len(slots) > 1 && len(m.found) < MaxFindings {
			m.among(div, slots)
		}
	}
	return slices.SortedFunc(maps.Values(m.found), func(a, b Conflict) int {
		return cmp.Or(a.A-b.A, a.B-b.B)
	})
}

// meetings collects conflicts.
type meetings struct {
	t     *Template
	found map[[2]int]Conflict // by A and B
	left  work
}

// among finds the conflicts among slots, which have one div. One search for all
// of them is linear in their patterns where those are told apart by literals, as
// they mostly are; where it meets too many states, each pair is searched by
// itself, which has fewer.
func (m *meetings) among(div string, slots []int) {
	if m.search(div, slots, groupWork) {
		return
	}
	for i, a := range slots {
		for _, b := range slots[i+1:] {
			if len(m.found) >= MaxFindings {
				return
			}
			pair := [2]int{a, b}
			if _, known := m.found[pair]; !known && !m.search(div, pair[:], pairWork) {
				m.found[pair] = Conflict{A: a, B: b, DivID: div, Undecided: true}
			}
		}
	}
}

// search finds the conflicts among slots, none of which is known, with at most
// limit of the work that is left. It reports whether that was enough.
func (m *meetings) search(div string, slots []int, limit work) (complete bool) {
	limit = min(limit, m.left)
	if limit <= 0 {
		return false
	}
	left := limit
	defer func() { m.left -= limit - left }()
	s := newSearch()
	for _, i := range slots {
		for _, p := range m.t.patterns[i].include {
			s.add(p, ref(i, false), uint32(i)+1)
		}
		for _, p := range m.t.patterns[i].exclude {
			s.add(p, ref(i, true), 0)
		}
	}
	if len(slots) == 2 {
		m.left -= s.cost() // together it is bounded by the file; pairs are many
	}
	unknown := len(slots) * (len(slots) - 1) / 2
	return s.run(2, &left, func(f found) (stop bool) {
		on := survivors(f.refs)
		left -= work(len(on) * len(on))
		for i, a := range on {
			for _, b := range on[i+1:] {
				pair := [2]int{a, b}
				if _, known := m.found[pair]; known {
					continue
				}
				m.found[pair] = Conflict{A: a, B: b, DivID: div, Path: f.path()}
				if unknown--; unknown == 0 || len(m.found) >= MaxFindings {
					return true
				}
			}
		}
		return false
	})
}

// survivors are the slots whose Include is among refs and whose Exclude is not.
func survivors(refs []uint32) []int {
	var slots []int
	for i, r := range refs {
		if excluded := i+1 < len(refs) && refs[i+1] == r+1; r%2 == 0 && !excluded {
			slots = append(slots, int(r/2))
		}
	}
	return slots
}
