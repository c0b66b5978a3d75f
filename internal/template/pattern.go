package template

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of one pattern.
const (
	MaxPatternBytes = 256
	MaxAlternatives = 64 // counted as written, over all braces of a pattern: {a,{b,c}} has four
)

// maxNesting is how deep braces go: a brace, and one within it.
const maxNesting = 2

// A Pattern is one parsed URL pattern. It is immutable.
//
//	"*"             any run of characters within one segment, also none
//	"**"            any run of characters, "/" included, also none
//	"?"             one character other than "/"
//	"[abc]" "[a-z]" one character of the set, never "/"
//	"[!x]"          one character not of the set, never "/"
//	"{a,b}"         one of the alternatives; may be empty, may nest once
//	"\"             the next character as it is, in a set too
//
// A character is a code point. A byte that is not part of valid UTF-8 is a
// character of its own that only *, ** and ? match.
//
// In a set, "-" is itself when it stands first or last, and every other
// character but "]" and "\" is itself too. Three asterisks in a row are an error,
// and so are asterisks that meet across the edge of a brace ("*{*,a}"): whether
// those are * or ** would depend on whether one thinks of braces as text.
type Pattern struct {
	text  string
	elems []elem
	start string // the literal text before the first wildcard, set or brace
	rest  []elem // what follows
}

// A PatternError says what is wrong with a pattern, and where.
type PatternError struct {
	Pattern string
	Offset  int    // in bytes, from 0 to len(Pattern)
	Msg     string // "set is not closed"
	Remedy  string // "write ] after the last character of the set"
}

// Error gives pattern, offset, message and remedy in one line.
func (e *PatternError) Error() string {
	return fmt.Sprintf("pattern %q, byte %d: %s; %s", e.Pattern, e.Offset, e.Msg, e.Remedy)
}

// op is what an element of a pattern reads.
type op uint8

const (
	opChar  op = iota // one given character
	opSet             // one character of a set
	opOne             // ?
	opStar            // *
	opDeep            // **
	opBrace           // one of several sequences
)

// An elem is one element of a pattern. It is kept small: most are characters, and
// a large file has millions.
type elem struct {
	op     op
	at     uint16 // byte offset in the pattern
	char   rune   // opChar
	*group        // opSet, opBrace; else nil
}

// A group is what stands between brackets or braces.
type group struct {
	text string   // the source, which is its identity
	set  charSet  // opSet
	alts [][]elem // opBrace
}

// ParsePattern reads a pattern. Its error is a [*PatternError].
func ParsePattern(s string) (*Pattern, error) {
	p := &parser{text: s}
	if err := p.checkText(); err != nil {
		return nil, err
	}
	elems, err := p.sequence(0)
	if err != nil {
		return nil, err
	}
	if _, err := p.checkStars(elems, false); err != nil {
		return nil, err
	}
	start, rest := splitLiteral(elems)
	return &Pattern{text: s, elems: elems, start: start, rest: rest}, nil
}

// String is the pattern as it was written.
func (p *Pattern) String() string { return p.text }

// splitLiteral cuts the characters off that elems begin with.
func splitLiteral(elems []elem) (text string, rest []elem) {
	var b strings.Builder
	for i, e := range elems {
		if e.op != opChar {
			return b.String(), elems[i:]
		}
		b.WriteRune(e.char)
	}
	return b.String(), nil
}

// sample is some normalized path that p matches, with no wildcard empty; false:
// none was found, which does not mean that there is none.
func (p *Pattern) sample() (path string, ok bool) {
	var b strings.Builder
	if !writeSample(&b, p.elems) {
		return "", false
	}
	path = b.String()
	for i := range len(path) {
		if path[i] == '/' && isDots(path[i+1:]) {
			return "", false
		}
	}
	return path, true
}

func writeSample(b *strings.Builder, elems []elem) (ok bool) {
	for _, e := range elems {
		switch e.op {
		case opChar:
			b.WriteRune(e.char)
		case opSet:
			if len(e.set) == 0 {
				return false
			}
			b.WriteRune(e.set[0].lo)
		case opOne, opStar:
			b.WriteByte('x')
		case opDeep:
			b.WriteString("x/x")
		case opBrace:
			if !writeSample(b, e.alts[0]) {
				return false
			}
		}
	}
	return true
}

// A parser reads one pattern from left to right.
type parser struct {
	text string
	next int // byte offset of what is read next
	alts int // alternatives so far
}

func (p *parser) fail(at int, msg, remedy string) error {
	return &PatternError{Pattern: p.text, Offset: at, Msg: msg, Remedy: remedy}
}

// checkText refuses what is no pattern whatever its elements are.
func (p *parser) checkText() error {
	if len(p.text) > MaxPatternBytes {
		return p.fail(MaxPatternBytes, fmt.Sprintf("is %d bytes long, %d are allowed", len(p.text), MaxPatternBytes),
			"split it into several patterns")
	}
	if !strings.HasPrefix(p.text, "/") {
		return p.fail(0, "does not start with /", "start it with the path's first /")
	}
	for i, r := range p.text {
		if r == utf8.RuneError && !strings.HasPrefix(p.text[i:], "\uFFFD") {
			return p.fail(i, "is not valid UTF-8", "save the file as UTF-8, or write ? for the byte")
		}
	}
	return nil
}

// sequence reads elements up to the end of the pattern or, within braces, up to
// the comma or brace that ends an alternative.
func (p *parser) sequence(depth int) ([]elem, error) {
	var elems []elem
	for p.next < len(p.text) {
		if c := p.text[p.next]; depth > 0 && (c == ',' || c == '}') {
			break
		}
		e, err := p.element(depth)
		if err != nil {
			return nil, err
		}
		elems = append(elems, e)
	}
	return slices.Clone(elems), nil // as small as it can be
}

// element reads one element.
func (p *parser) element(depth int) (elem, error) {
	at := p.next
	switch c := p.text[at]; c {
	case '*':
		return p.stars()
	case '?':
		p.next++
		return elem{op: opOne, at: uint16(at)}, nil
	case '[':
		return p.charSet()
	case '{':
		return p.brace(depth + 1)
	case ']', '}':
		return elem{}, p.fail(at, fmt.Sprintf("%c closes nothing", c), fmt.Sprintf(`write \%c for the character`, c))
	}
	r, err := p.char()
	return elem{op: opChar, at: uint16(at), char: r}, err
}

// char reads one character, which may be escaped.
func (p *parser) char() (rune, error) {
	at := p.next
	if p.text[at] == '\\' {
		if p.next++; p.next == len(p.text) {
			return 0, p.fail(at, `ends with \`, `write \\ for the character, or remove it`)
		}
	}
	r, size := utf8.DecodeRuneInString(p.text[p.next:])
	p.next += size
	return r, nil
}

// stars reads * or **.
func (p *parser) stars() (elem, error) {
	at := p.next
	for p.next < len(p.text) && p.text[p.next] == '*' {
		p.next++
	}
	switch p.next - at {
	case 1:
		return elem{op: opStar, at: uint16(at)}, nil
	case 2:
		return elem{op: opDeep, at: uint16(at)}, nil
	}
	return elem{}, p.fail(at, "more than two asterisks in a row", "write * within one segment, ** for any depth")
}

// charSet reads [abc], [a-z] or [!x].
func (p *parser) charSet() (elem, error) {
	at := p.next
	p.next++
	negated := strings.HasPrefix(p.text[p.next:], "!")
	if negated {
		p.next++
	}
	var ranges []runeRange
	for p.next < len(p.text) && p.text[p.next] != ']' {
		r, err := p.charRange()
		if err != nil {
			return elem{}, err
		}
		ranges = append(ranges, r)
	}
	if p.next == len(p.text) {
		return elem{}, p.fail(at, "set is not closed", `write ] after its last character, or \[ for the character`)
	}
	p.next++
	if len(ranges) == 0 {
		return elem{}, p.fail(at, "set is empty", `write its characters between the brackets, \] for a ]`)
	}
	g := &group{text: p.text[at:p.next], set: newCharSet(ranges, negated)}
	return elem{op: opSet, at: uint16(at), group: g}, nil
}

// charRange reads one character of a set, or two with a "-" between them.
func (p *parser) charRange() (runeRange, error) {
	at := p.next
	lo, err := p.char()
	if err != nil {
		return runeRange{}, err
	}
	rest := p.text[p.next:]
	if len(rest) < 2 || rest[0] != '-' || rest[1] == ']' {
		return runeRange{lo, lo}, nil
	}
	p.next++
	hi, err := p.char()
	if err != nil {
		return runeRange{}, err
	}
	if hi < lo {
		return runeRange{}, p.fail(at, fmt.Sprintf("range %c-%c is reversed", lo, hi), fmt.Sprintf("write %c-%c", hi, lo))
	}
	return runeRange{lo, hi}, nil
}

// brace reads {a,b}; depth is its own depth.
func (p *parser) brace(depth int) (elem, error) {
	at := p.next
	if depth > maxNesting {
		return elem{}, p.fail(at, "braces nest more than once", "list the alternatives in the outer brace")
	}
	g := &group{}
	for {
		p.next++ // "{" or ","
		if p.alts++; p.alts > MaxAlternatives {
			return elem{}, p.fail(p.next, fmt.Sprintf("has more than %d alternatives", MaxAlternatives),
				"split it into several patterns")
		}
		alt, err := p.sequence(depth)
		if err != nil {
			return elem{}, err
		}
		g.alts = append(g.alts, alt)
		if p.next == len(p.text) {
			return elem{}, p.fail(at, "brace is not closed", `write } after the last alternative, or \{ for the character`)
		}
		if p.text[p.next] == '}' {
			p.next++
			g.text = p.text[at:p.next]
			return elem{op: opBrace, at: uint16(at), group: g}, nil
		}
	}
}

// checkStars refuses asterisks that meet across the edge of a brace. after says
// whether an asterisk may stand directly before elems; the result, whether one
// may be the last thing in them.
func (p *parser) checkStars(elems []elem, after bool) (bool, error) {
	for _, e := range elems {
		switch e.op {
		case opStar, opDeep:
			if after {
				return false, p.fail(int(e.at), "asterisks meet across the edge of a brace",
					"write the asterisks inside each alternative, or only outside the brace")
			}
			after = true
		case opBrace:
			var any bool
			for _, alt := range e.alts {
				last, err := p.checkStars(alt, after)
				if err != nil {
					return false, err
				}
				any = any || last
			}
			after = any
		default:
			after = false
		}
	}
	return after, nil
}

// A runeRange holds the code points from lo to hi, both included.
type runeRange struct{ lo, hi rune }

// A charSet is a set of characters, never with "/": ascending ranges that do not
// touch.
type charSet []runeRange

// newCharSet is the union of ranges, or what is not in it, as far as a set may
// have it.
func newCharSet(ranges []runeRange, negated bool) charSet {
	slices.SortFunc(ranges, func(a, b runeRange) int { return int(a.lo - b.lo) })
	if negated {
		ranges = complement(ranges)
	}
	var all, set charSet
	for _, r := range ranges {
		all = all.with(r)
	}
	allowed := [...]runeRange{{0, '/' - 1}, {'/' + 1, 0xD7FF}, {0xE000, utf8.MaxRune}} // surrogates are no characters
	for _, r := range all {
		for _, a := range allowed {
			set = set.with(runeRange{max(r.lo, a.lo), min(r.hi, a.hi)})
		}
	}
	return set
}

// complement is what lies between ranges, which are sorted by lo.
func complement(ranges []runeRange) []runeRange {
	var gaps []runeRange
	next := rune(0)
	for _, r := range ranges {
		gaps = append(gaps, runeRange{next, r.lo - 1}) // may be empty
		next = max(next, r.hi+1)
	}
	return append(gaps, runeRange{next, utf8.MaxRune})
}

// with adds a range that does not begin before the last one.
func (s charSet) with(r runeRange) charSet {
	if r.lo > r.hi {
		return s
	}
	if n := len(s); n > 0 && r.lo <= s[n-1].hi+1 {
		s[n-1].hi = max(s[n-1].hi, r.hi)
		return s
	}
	return append(s, r)
}

// has reports whether r is in the set; a negative r never is.
func (s charSet) has(r rune) bool {
	_, found := slices.BinarySearchFunc(s, r, func(x runeRange, r rune) int {
		switch {
		case x.hi < r:
			return -1
		case x.lo > r:
			return 1
		}
		return 0
	})
	return found
}
