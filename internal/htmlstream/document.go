package htmlstream

// A phase is how far tree construction has come. "Initial", "before html" and
// "before head" are one: nothing that matters here tells them apart.
type phase uint8

const (
	phaseBeforeHead phase = iota
	phaseHead
	phaseAfterHead // between head and body
	phaseBody
)

// maxForeign is how deep elements may nest within svg or math, before we lose
// track and fill no more holes.
const maxForeign = 64

// maxForeignName is the longest name of an element within svg or math that we
// follow. The standards have none of this length.
const maxForeignName = 24

// A document is what the scanner knows of the tree: as much of section 13.2.6 of
// the HTML standard as decides where the points are.
type document struct {
	want         Point // points that may still come
	late         bool  // Body is to be filled
	charsetKnown bool
	label        [maxLabel]byte // of the charset that the document names itself
	nlabel       int

	points Point // that have been found, for next to return
	hole   int64 // and where they are

	phase     phase
	templates int  // open template elements
	selecting bool // a select is open, or may be
	columns   bool // a colgroup is open, or may be
	pre       bool // a newline may be swallowed if it comes next
	run       bool // a text that comes next may belong to a text before

	// frameless says that no <frameset> can replace the body any more. What
	// directly precedes, from an ampersand on, may be a character reference.
	frameless bool
	ampersand bool

	// foreign has the open elements from the outermost svg or math inwards, as
	// hashes of their names. No HTML element is open within: where the innermost
	// is an integration point, the content of which is HTML, we follow only text.
	foreign    [maxForeign]uint64
	nforeign   int
	integrates bool
}

// found says that points are at the place at, those of them that are wanted.
func (d *document) found(points Point, at int64) {
	if points &= d.want; points == 0 {
		return
	}
	d.points |= points
	d.hole = at
	d.want &^= points
}

// take returns those of points that are wanted, and they are wanted no more.
func (d *document) take(points Point) Point {
	points &= d.want
	d.want &^= points
	return points
}

// giveUp says that it is unclear where things are.
func (d *document) giveUp() { d.want = 0 }

// followsText reports whether text has no effect but to be text.
func (d *document) followsText() bool {
	return d.phase == phaseBody || d.templates > 0 || d.nforeign > 0
}

// safe reports whether an element that comes next in a document that has a body
// is executed, is in body, and changes nothing else.
func (d *document) safe() bool {
	return d.phase == phaseBody && d.frameless && !d.pre && d.neutral()
}

// neutral reports whether nothing is open that treats an element in a way of its
// own.
func (d *document) neutral() bool {
	return d.templates == 0 && d.nforeign == 0 && !d.selecting && !d.columns
}

// documentEnd returns the points at the end of a document that ends in text.
func (d *document) documentEnd() Point {
	if !d.neutral() {
		return 0
	}
	if d.phase <= phaseHead {
		return d.take(HeadStart | HeadEnd | End)
	}
	return d.take(End)
}

// textRun takes a text, or a part of one, that has no effect but to be text.
func (d *document) textRun(b []byte) {
	if len(b) == 0 {
		return
	}
	d.run = true
	for _, c := range b {
		if !d.pre && d.frameless {
			return
		}
		if c != '\n' && c != '\r' {
			d.pre = false
		}
		// White space and NUL leave it open whether a frameset may come. So may a
		// reference.
		d.ampersand = c == '&' || d.ampersand && (isLetter(c) || '0' <= c && c <= '9' || c == '#' || c == ';')
		if !d.ampersand && !isSpace(c) && c != 0 {
			d.frameless = d.frameless || d.phase == phaseBody
		}
	}
}

// textBegins takes a text at the place at that is not white space only.
func (d *document) textBegins(at int64) {
	d.run = true
	if d.followsText() {
		return
	}
	if d.phase <= phaseHead {
		d.found(HeadStart|HeadEnd, at)
	}
	d.bodyBegins()
}

func (d *document) bodyBegins() {
	d.phase = phaseBody
	d.want &^= HeadStart | HeadEnd
}

// headMayStart finds HeadStart at the place at, if that is in head, between two
// tokens. While the charset is not known it is only found where a browser does
// not look for that any more.
func (d *document) headMayStart(at int64) {
	if d.phase == phaseHead && d.templates == 0 && (d.charsetKnown || at >= prescanned) {
		d.found(HeadStart, at)
	}
}

// boundary takes the end of a tag or a comment; what follows starts at the place
// at.
func (d *document) boundary(at int64) {
	d.headMayStart(at)
	if d.late && !d.run && d.safe() {
		d.found(Body, at)
	}
}

// metaEnds takes a meta and the charset that it declares, if any.
func (d *document) metaEnds(charset []byte, at int64) {
	if len(charset) == 0 {
		return
	}
	if !asciiSafe(charset) {
		d.want = 0
		return
	}
	d.charsetKnown = true // the first one counts
	d.nlabel = copy(d.label[:], charset)
	d.headMayStart(at)
}

// startTagNamed takes the name of a start tag that starts at the place at.
func (d *document) startTagNamed(t tag, at int64) {
	if d.nforeign > 0 {
		if t&breaksForeign == 0 || d.integrates {
			return // see openForeign
		}
		d.nforeign = 0
	}
	if d.selecting && t&badInSelect != 0 || d.templates > 0 && t&tagColumns != 0 {
		d.giveUp()
		return
	}
	if d.templates == 0 {
		d.startTagPhase(t, at)
	}
	if t&mayBeIgnored == 0 {
		d.run, d.pre = false, false
	}
	if t&tagTemplate != 0 {
		d.templates++
		return
	}
	body := d.templates == 0 && d.phase == phaseBody
	d.frameless = d.frameless || body && !d.selecting && t&noFrameset != 0
	d.selecting = d.selecting != (t&tagSelect != 0) // a select within a select ends it
	if body {
		d.columns = t&tagColumns != 0 || d.columns && t&tagHTML != 0
		d.pre = d.pre || t&tagPre != 0
	}
}

// startTagPhase finds the points before a start tag outside of templates, and
// moves on to the phase that follows it.
func (d *document) startTagPhase(t tag, at int64) {
	if t&tagHTML != 0 {
		return
	}
	if d.phase == phaseBeforeHead {
		d.phase = phaseHead
		if t&tagHead != 0 {
			return // HeadStart is after it
		}
	}
	switch d.phase {
	case phaseHead:
		if t&(tagHead|keepsHead) != 0 {
			d.headMayStart(at)
			return
		}
		if t&tagFrameset != 0 {
			d.want &= HeadStart
		}
		d.found(HeadStart|HeadEnd, at)
		d.bodyOpens(t)
	case phaseAfterHead:
		if t&(tagHead|joinsHead) == 0 {
			d.bodyOpens(t)
		}
	default:
		if t&tagFrameset != 0 && !d.frameless {
			d.giveUp()
		}
	}
}

// bodyOpens takes the start tag that ends the time between head and body.
func (d *document) bodyOpens(t tag) {
	d.bodyBegins()
	d.frameless = t&tagBody != 0
	if t&tagFrameset != 0 {
		d.giveUp()
	}
}

// endTagNamed takes the name of an end tag that starts at the place at.
func (d *document) endTagNamed(t tag, name []byte, at int64) {
	if d.nforeign > 0 {
		d.closeForeign(name)
		return
	}
	if t&tagP != 0 && d.phase == phaseBody {
		d.run = false // it closes a p, or makes one
	}
	if t&tagTemplate != 0 {
		if d.templates > 0 {
			d.templates--
			d.selecting = false // one that was open was within
		}
		return
	}
	if d.templates == 0 {
		d.endTagPhase(t, at)
		if t&tagColumns == 0 {
			d.columns = false
		}
	}
	if t&tagSelect != 0 {
		d.selecting = false
	}
}

// endTagPhase finds the points before an end tag outside of templates, and moves
// on to the phase that follows it.
func (d *document) endTagPhase(t tag, at int64) {
	if t&(tagHead|tagBody|tagHTML|tagBr) == 0 {
		d.headMayStart(at)
		return
	}
	switch {
	case d.phase <= phaseHead:
		d.found(HeadStart|HeadEnd, at)
		d.phase = phaseAfterHead
		if t&tagHead == 0 {
			d.bodyBegins()
		}
	case d.phase == phaseAfterHead && t&tagHead == 0:
		d.bodyBegins()
	case t&tagBody != 0 && d.safe():
		d.found(BodyEnd, at)
	}
	if t&(tagBody|tagHTML) != 0 && d.phase == phaseBody {
		d.want &^= Body | BodyEnd // what follows is only in body if it is no comment
	}
}

// openForeign takes a start tag that is svg or math, or within one.
func (d *document) openForeign(t tag, name []byte, selfEnds bool) {
	if d.integrates || d.nforeign == maxForeign || d.nforeign > 0 && t&mayBreakForeign != 0 {
		d.giveUp()
		return
	}
	if selfEnds {
		return
	}
	d.foreign[d.nforeign] = hashOf(name)
	d.nforeign++
	d.integrates = t&integration != 0
}

// closeForeign takes an end tag within svg or math.
func (d *document) closeForeign(name []byte) {
	hash := hashOf(name)
	for n := d.nforeign; n > 0; n-- {
		if d.foreign[n-1] == hash {
			d.nforeign, d.integrates, d.run = n-1, false, false
			return
		}
	}
	d.giveUp() // it closes something around
}

// hashOf is the FNV-1a hash of a name.
func hashOf(name []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range name {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}
