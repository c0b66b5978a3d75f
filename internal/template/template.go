// Package template answers which ad slots the page at a URL has, from the URL
// alone, in a time that does not grow with the number of slots.
//
// [Normalize] turns a request target into a path, [ParsePattern] says what may
// be written in a file, [New] compiles a file's patterns, and [Template.Match]
// asks them. A Template never changes: [Template.Match] may be called from any
// number of goroutines, and takes a lock only where a path goes where none went
// before. The rest is for people, at load and in "deckle check" and "deckle
// match", and takes its time: [Template.Conflicts], [Template.Warnings],
// [Template.Cost], [Template.Explain].
package template

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"deckle"
)

// Limits of one template.
const (
	MaxSlots        = 2000
	MaxPatterns     = 50 // of one slot, Include and Exclude together
	MaxSlotsPerPage = 40 // what a page uses of [Template.Match], which is not cut to it
)

// A Template is one site's creative-opportunities.toml, validated and compiled.
// It is immutable; a reload makes another one.
type Template struct {
	Settings

	// Slots are all slots, in file order; [Template.Match] gives indices into it.
	Slots []deckle.Slot

	patterns []slotPatterns // parallel to Slots
	byID     map[deckle.SlotID]int
	set      *set
	cost     Cost
}

// Settings are what a template file says for its whole site.
type Settings struct {
	Enabled        bool          // the kill switch of the file
	SPA            bool          // the client goes into every HTML page of the site
	AuctionTimeout time.Duration // from the request's arrival to A_deadline
	HeadHold       time.Duration // how long the end of head may wait for bids; 0 = never; ≤ AuctionTimeout
	Buckets        deckle.PriceBuckets
	TargetingKeys  []string // of hb_pb hb_bidder hb_adid hb_size hb_deal hb_format hb_source hb_cache_*
	PreferDeals    bool
}

// Patterns are the URL patterns of one slot.
type Patterns struct {
	Include []string // page_patterns
	Exclude []string // wins over Include
}

// slotPatterns are the same, parsed.
type slotPatterns struct {
	include, exclude []*Pattern
}

// A Place says which part of a template's patterns is meant.
type Place struct {
	Slot    int  // index in Template.Slots
	Exclude bool // the slot's Exclude, not its Include
	Index   int  // in that list; -1: the slot as a whole
}

// String names the place by the keys of the file: "slot 3, exclude[0]".
func (p Place) String() string {
	key := "page_patterns"
	if p.Exclude {
		key = "exclude"
	}
	if p.Index < 0 {
		return fmt.Sprintf("slot %d", p.Slot)
	}
	return fmt.Sprintf("slot %d, %s[%d]", p.Slot, key, p.Index)
}

// compare orders places as in a file, a slot as a whole first.
func (p Place) compare(q Place) int {
	list := func(p Place) int {
		if p.Exclude {
			return MaxPatterns
		}
		return 0
	}
	return cmp.Or(p.Slot-q.Slot, list(p)-list(q), p.Index-q.Index)
}

// A PlaceError is an error with its place. Err is a [*PatternError] where one
// pattern is wrong.
type PlaceError struct {
	Place
	Err error
}

func (e *PlaceError) Error() string { return e.Place.String() + ": " + e.Err.Error() }
func (e *PlaceError) Unwrap() error { return e.Err }

// Errors are all errors of a template's patterns, in file order.
type Errors []*PlaceError

// Error gives one line for each.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, err := range e {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives each, for [errors.Is] and [errors.As].
func (e Errors) Unwrap() []error {
	errs := make([]error, len(e))
	for i, err := range e {
		errs[i] = err
	}
	return errs
}

// New compiles a template: patterns[i] are those of slots[i]. It checks the
// patterns and the limits above, nothing else of the slots; its error is of type
// [Errors]. It keeps slots, which must not be changed after. New panics if
// slots and patterns differ in length.
func New(s Settings, slots []deckle.Slot, patterns []Patterns) (*Template, error) {
	if len(slots) != len(patterns) {
		panic("template: slots and patterns differ in length")
	}
	if len(slots) > MaxSlots {
		err := fmt.Errorf("has %d slots, %d are allowed; split the site, or join slots that differ only in their paths", len(slots), MaxSlots)
		return nil, Errors{{Place: Place{Slot: MaxSlots, Index: -1}, Err: err}}
	}
	c := compiler{b: newBuilder(), known: make(map[string]compiled)}
	for i, p := range patterns {
		c.slot(i, p)
	}
	if c.errs != nil {
		return nil, c.errs
	}
	t := &Template{Settings: s, Slots: slots, patterns: c.slots, byID: make(map[deckle.SlotID]int, len(slots)), set: newSet(c.b)}
	for i := range slots {
		t.byID[slots[i].ID] = i
	}
	t.cost = c.cost(t.set)
	return t, nil
}

// Slot is the slot with an id. It is shared and must not be changed.
func (t *Template) Slot(id deckle.SlotID) (*deckle.Slot, bool) {
	i, ok := t.byID[id]
	if !ok {
		return nil, false
	}
	return &t.Slots[i], true
}

// Match appends to dst the indices of all slots of a path that [Normalize] has
// returned, in file order. A slot whose Exclude matches is left out. Match does
// not allocate where dst has room and the path goes where others went before.
func (t *Template) Match(path string, dst []int) []int {
	if t.set == nil {
		return dst
	}
	var h hits
	t.set.find(path, &h)
	return h.appendTo(dst)
}

// A compiler collects the patterns of all slots.
type compiler struct {
	b     *builder
	known map[string]compiled // by text: slots share many of their patterns
	slots []slotPatterns
	errs  Errors
}

type compiled struct {
	pattern *Pattern
	end     uint32 // its last node
}

func (c *compiler) slot(slot int, p Patterns) {
	if n := len(p.Include) + len(p.Exclude); n > MaxPatterns {
		err := fmt.Errorf("has %d patterns, %d are allowed; join them with {a,b} or **", n, MaxPatterns)
		c.errs = append(c.errs, &PlaceError{Place{Slot: slot, Index: -1}, err})
		return
	}
	c.slots = append(c.slots, slotPatterns{
		include: c.list(Place{Slot: slot}, p.Include),
		exclude: c.list(Place{Slot: slot, Exclude: true}, p.Exclude),
	})
}

// list adds the patterns of one list, whose place is at.
func (c *compiler) list(at Place, texts []string) []*Pattern {
	patterns := make([]*Pattern, 0, len(texts))
	for i, text := range texts {
		k, found := c.known[text]
		if !found {
			p, err := ParsePattern(text)
			if err != nil {
				at.Index = i
				c.errs = append(c.errs, &PlaceError{at, err})
				continue
			}
			k = compiled{p, c.b.add(p)}
			c.known[text] = k
		}
		c.b.accept(k.end, ref(at.Slot, at.Exclude))
		patterns = append(patterns, k.pattern)
	}
	return slices.Clip(patterns)
}

// Cost says what a template's patterns cost. Patterns with one text count once.
type Cost struct {
	Literal       int // without wildcard, set or brace: found by the walk through the literals alone
	Prefixed      int // with a literal beginning, or several in a brace: cost something only on paths that begin so
	WildcardFirst int // "/*…", "/**…", "/?…", "/[…": read along with every path, all in one run

	// WildcardNodes is the size of the automaton for WildcardFirst. Every path of
	// the site takes one step in it for each of its characters; the larger it is,
	// the more distinct paths it takes until all its steps are known.
	WildcardNodes int

	Nodes int // of all automata and the literals, about 30 bytes each
}

// Cost says what the patterns cost.
func (t *Template) Cost() Cost { return t.cost }

func (c *compiler) cost(s *set) Cost {
	cost := Cost{Nodes: len(s.graph.nodes) - 1}
	for _, k := range c.known {
		switch {
		case len(k.pattern.rest) == 0:
			cost.Literal++
		case beginsWild(k.pattern.elems[1:]):
			cost.WildcardFirst++
		default:
			cost.Prefixed++
		}
	}
	if first := s.graph.child(0, '/'); first != 0 {
		if hub := s.graph.nodes[first].hub; hub != 0 {
			cost.WildcardNodes = s.graph.below(hub)
		}
	}
	return cost
}

// beginsWild reports whether what elems match may begin with something that is
// not literal.
func beginsWild(elems []elem) bool {
	if len(elems) == 0 || elems[0].op == opChar {
		return false
	}
	if elems[0].op != opBrace {
		return true
	}
	return slices.ContainsFunc(elems[0].alts, func(alt []elem) bool {
		return beginsWild(slices.Concat(alt, elems[1:]))
	})
}
