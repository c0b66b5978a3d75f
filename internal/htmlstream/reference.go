package htmlstream

// A reference is a character reference that is being read, after its &. Before
// the body only one thing matters: whether it stands for white space.
type reference struct {
	kind  refKind
	names [2]bool // of spaceNames: no longer possible
	n     int     // bytes or digits read
	value int     // of a numeric one, at most beyondSpace
	named bool    // one of spaceNames has been read
}

type refKind uint8

const (
	refOpen refKind = iota // after &
	refName
	refNumber // after &#
	refDecimal
	refHexOpen // after &#x
	refHex
	refNone // it is no reference that counts
)

// beyondSpace is larger than every white space character.
const beyondSpace = ' ' + 1

// spaceNames are the named references that are white space. Neither is known
// without its semicolon.
func spaceNames() [2]string { return [2]string{"Tab;", "NewLine;"} }

// next takes the next byte. It reports whether that belongs to the reference, and
// whether the reference ends with it, or before it.
func (r *reference) next(c byte) (used, done bool) {
	switch r.kind {
	case refOpen:
		if c == '#' {
			r.kind = refNumber
			return true, false
		}
		r.kind = refName
		return r.nextName(c)
	case refName:
		return r.nextName(c)
	case refNumber:
		if c == 'x' || c == 'X' {
			r.kind = refHexOpen
			return true, false
		}
		return r.nextDigit(c, refDecimal, 10)
	case refDecimal:
		return r.nextDigit(c, refDecimal, 10)
	}
	return r.nextDigit(c, refHex, 16)
}

func (r *reference) nextName(c byte) (used, done bool) {
	possible := false
	for i, name := range spaceNames() {
		if r.names[i] {
			continue
		}
		if name[r.n] != c {
			r.names[i] = true
			continue
		}
		possible = true
		if r.n+1 == len(name) {
			r.named = true
			return true, true
		}
	}
	r.n++
	return possible, !possible
}

func (r *reference) nextDigit(c byte, kind refKind, radix int) (used, done bool) {
	d := digit(c)
	if d < radix {
		r.kind = kind
		r.value = min(r.value*radix+d, beyondSpace)
		return true, false
	}
	if r.kind != kind {
		r.kind = refNone // no digit at all: &# is a text
		return false, true
	}
	return c == ';', true
}

// isSpace reports whether what has been read is a reference to white space.
func (r *reference) isSpace() bool {
	if r.kind == refDecimal || r.kind == refHex {
		return isSpace(byte(r.value))
	}
	return r.named
}

// digit is the value of a hexadecimal digit, or 16.
func digit(c byte) int {
	switch lc := lower(c); {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= lc && lc <= 'f':
		return int(lc-'a') + 10
	}
	return 16
}
