package htmlstream

import "bytes"

// A state is a state of the tokenizer, by and large those of section 13.2.5 of
// the HTML standard. Where several differ only in what they report, they are one.
type state uint8

const (
	inText       state = iota // data state, the only one in which something may go in
	inReference               // after &, where it matters whether it is white space
	inTagOpen                 // after <
	inEndTagOpen              // after </
	inTagName
	inLongTagName // a name that is none we know, decided already
	inBeforeAttr
	inAttrName
	inAfterAttrName
	inBeforeValue // after =
	inQuotedValue
	inUnquotedValue
	inAfterValue  // after the closing quote
	inSelfClosing // after / in a tag
	inMarkup      // after <!
	inCommentOpen // after <!-
	inComment
	inBogus     // bogus comment, processing instruction, doctype: to the next >
	inCDATAOpen // after <![ in svg or math
	inCDATA
	inRaw             // raw text, RCDATA, script data
	inRawLess         // after < therein
	inRawEndName      // after </ therein
	inEscapeStart     // after <! in script data
	inEscapeStartDash // after <!- in script data
	inEscaped         // script data escaped: after <!--
	inEscapedLess     // after < therein
	inEscapeName      // in what may be <script of a double escape
	inDoubleEscaped   // script data double escaped: after <!-- … <script
	inDoubleLess      // after < therein
	inDoubleEndName   // in what may be </script of its end
)

// A scanner finds the points of a document. It is a state machine over bytes
// that remembers nothing of what it has passed but what the fields say.
type scanner struct {
	document

	state state
	base  int64 // offset in the document of the first byte given to next
	mark  int64 // offset of the tag or reference that is not decided yet; -1: none
	ref   reference

	// Of the tag that is being read.
	name     [maxForeignName]byte // in lower case
	nname    int
	long     bool // its name goes on, and is none we know
	endTag   bool
	tag      tag
	quote    byte
	selfEnds bool // it ends with />
	wantMeta bool // its attributes go to meta
	meta     metaTag

	properties []string // of the metas that are wanted
	metas      []Meta   // that have been found

	wantsPolicies bool
	policies      [][]byte // that have been found

	// Of the comment, CDATA section or script that is being read.
	dashes  int  // - or ] directly before this, up to 2
	dropped bool // it may be a doctype, of which the tree shows nothing
	started bool // comment: something else than dashes has come
	bang    bool // comment: --! directly before this

	raw     [16]byte // the name that ends raw text
	nraw    int
	matched int   // how much of that name, or of "script", has been read
	back    state // where to go on when it is not that name
}

func newScanner(o Options) scanner {
	return scanner{mark: -1, properties: o.Metas, wantsPolicies: o.Policies, document: document{want: o.Points, charsetKnown: o.CharsetKnown}}
}

// next scans p up to a place where something may go in, or until nothing is
// wanted. It returns how many bytes it has scanned, the place, as an offset in p,
// and the points there. A negative place is before what was undecided when p
// came.
func (s *scanner) next(p []byte) (n, hole int, points Point) {
	for n < len(p) && s.points == 0 && s.want != 0 {
		n = s.step(p, n)
	}
	hole, points = int(s.hole-s.base), s.points
	s.points = 0
	s.base += int64(n)
	return n, hole, points
}

// undecided is how many of the bytes scanned belong to something that a hole may
// have to go before.
func (s *scanner) undecided() int {
	if s.mark < 0 || s.want == 0 {
		return 0
	}
	return int(s.base - s.mark)
}

// endReference ends the document. It returns the points before what is
// undecided, if that is a character reference that the end makes a text.
func (s *scanner) endReference() Point {
	if s.state != inReference {
		return 0
	}
	s.endRef(s.base)
	points := s.points
	s.points = 0
	return points
}

// end returns the points at the end of the document.
func (s *scanner) end() Point {
	if s.state != inText {
		return 0
	}
	return s.documentEnd()
}

// safeNow reports whether Body may be filled right here.
func (s *scanner) safeNow() bool {
	return s.state == inText && s.want&Body != 0 && !s.run && s.safe()
}

// step scans some of p from i on, and returns where it got to. It may stay where
// it is when it changes the state.
func (s *scanner) step(p []byte, i int) int {
	switch s.state {
	case inText:
		return s.text(p, i)
	case inTagName:
		return s.tagName(p, i)
	case inBeforeAttr, inAttrName, inAfterAttrName, inAfterValue, inSelfClosing:
		return s.attribute(p, i)
	case inBeforeValue:
		return s.beforeValue(p, i)
	case inQuotedValue, inUnquotedValue:
		return s.value(p, i)
	case inRaw:
		return s.rawText(p, i)
	case inRawEndName:
		return s.rawEndName(p, i)
	case inComment:
		return s.comment(p, i)
	case inBogus:
		return s.bogus(p, i)
	case inEscaped, inDoubleEscaped:
		return s.escaped(p, i)
	case inCDATA:
		return s.cdata(p, i)
	}
	return s.stepByte(p[i], i)
}

// stepByte scans one byte of a construct that is only a few bytes long.
func (s *scanner) stepByte(c byte, i int) int {
	switch s.state {
	case inReference:
		return s.reference(c, i)
	case inTagOpen:
		return s.tagOpen(c, i)
	case inEndTagOpen:
		return s.endTagOpen(c, i)
	case inLongTagName:
		return s.longTagName(c, i)
	case inMarkup, inCommentOpen, inCDATAOpen:
		return s.markup(c, i)
	case inRawLess:
		return s.rawLess(c, i)
	}
	return s.scriptEscape(c, i)
}

// text scans the data state.
func (s *scanner) text(p []byte, i int) int {
	if s.followsText() {
		end := bytes.IndexByte(p[i:], '<')
		if end < 0 {
			s.textRun(p[i:])
			return len(p)
		}
		s.textRun(p[i : i+end])
		i += end
	} else {
		for i < len(p) && isSpace(p[i]) {
			i++
		}
		if i == len(p) {
			return i
		}
		if p[i] == '&' {
			s.mark, s.state, s.ref = s.base+int64(i), inReference, reference{}
			return i + 1
		}
		if p[i] == 0 {
			// A text by the standard, but nothing to Chromium.
			s.giveUp()
			return i
		}
		if p[i] != '<' {
			s.textBegins(s.base + int64(i))
			return i
		}
	}
	s.mark, s.state, s.ampersand = s.base+int64(i), inTagOpen, false
	i++
	if i < len(p) && isLetter(p[i]) { // as in tagOpen, but most tags come in one piece
		s.startName(false)
		return s.tagName(p, i)
	}
	return i
}

// reference scans a character reference before the body, which may be white space.
func (s *scanner) reference(c byte, i int) int {
	used, done := s.ref.next(c)
	if used {
		i++
	}
	if done {
		s.endRef(s.base + int64(i))
	} else if s.mark >= 0 && s.base+int64(i)-s.mark >= int64(MaxHeld) {
		// Leading zeros without end. Whatever it is, nothing goes in before it.
		s.mark = -1
		s.want &^= HeadStart | HeadEnd
	}
	return i
}

func (s *scanner) endRef(end int64) {
	at := s.mark
	s.mark, s.state = -1, inText
	if s.ref.isSpace() {
		return
	}
	if at < 0 {
		at = end
	}
	s.textBegins(at)
}

func (s *scanner) tagOpen(c byte, i int) int {
	switch {
	case isLetter(c):
		s.startName(false)
		return i
	case c == '/':
		s.state = inEndTagOpen
		return i + 1
	case c == '!':
		s.decideMarkup()
		s.state = inMarkup
		return i + 1
	case c == '?':
		s.decideMarkup()
		s.state, s.dropped = inBogus, false
		return i + 1
	}
	// The < is a character, and what follows may be anything.
	at := s.mark
	s.mark, s.state = -1, inText
	s.textBegins(at)
	return i
}

func (s *scanner) endTagOpen(c byte, i int) int {
	if isLetter(c) {
		s.startName(true)
		return i
	}
	s.decideMarkup()
	if c == '>' { // </> is nothing at all
		s.state = inText
		return i + 1
	}
	s.state, s.dropped = inBogus, false
	return i
}

// decideMarkup says that what is open is no tag.
func (s *scanner) decideMarkup() {
	s.headMayStart(s.mark)
	s.mark = -1
}

// markup scans what follows <!.
func (s *scanner) markup(c byte, i int) int {
	const cdata = "CDATA["
	switch {
	case s.state == inMarkup && c == '-':
		s.state = inCommentOpen
	case s.state == inMarkup && c == '[' && s.nforeign > 0:
		s.state, s.matched = inCDATAOpen, 0
	case s.state == inCommentOpen && c == '-':
		s.state, s.dropped, s.dashes, s.started, s.bang = inComment, false, 0, false, false
	case s.state == inCDATAOpen && c == cdata[s.matched]:
		s.matched++
		if s.matched == len(cdata) {
			s.state, s.dashes = inCDATA, 0
		}
	default: // a doctype too ends at the first >, and leaves nothing in the tree
		s.dropped = s.state == inMarkup && lower(c) == 'd'
		s.state = inBogus
		return i
	}
	return i + 1
}

// comment scans a comment after <!--. It ends with --> or --!>, or with > or ->
// at its very start.
func (s *scanner) comment(p []byte, i int) int {
	for i < len(p) {
		if s.started && s.dashes == 0 && !s.bang {
			n := bytes.IndexByte(p[i:], '-')
			if n < 0 {
				return len(p)
			}
			i += n
		}
		c := p[i]
		i++
		switch {
		case c == '>' && (s.dashes == 2 || s.bang || !s.started):
			s.markupEnds(i)
			return i
		case c == '-' && s.bang:
			s.dashes, s.bang = 1, false
		case c == '-':
			s.dashes = min(s.dashes+1, 2)
		case c == '!' && s.dashes == 2:
			s.dashes, s.bang, s.started = 0, true, true
		default:
			s.dashes, s.bang, s.started = 0, false, true
		}
	}
	return i
}

// bogus scans what ends at the next >.
func (s *scanner) bogus(p []byte, i int) int {
	n := bytes.IndexByte(p[i:], '>')
	if n < 0 {
		return len(p)
	}
	i += n + 1
	s.markupEnds(i)
	return i
}

// markupEnds takes the end of a comment or the like; what follows starts at p[i].
func (s *scanner) markupEnds(i int) {
	s.state = inText
	if !s.dropped {
		s.run, s.pre = false, false
	}
	s.boundary(s.base + int64(i))
}

// cdata scans a CDATA section, which ends with ]]>.
func (s *scanner) cdata(p []byte, i int) int {
	for ; i < len(p); i++ {
		switch c := p[i]; {
		case c == '>' && s.dashes == 2:
			s.state = inText
			return i + 1
		case c == ']':
			s.dashes = min(s.dashes+1, 2)
		default:
			s.dashes = 0
		}
	}
	return i
}
