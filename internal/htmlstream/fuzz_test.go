package htmlstream_test

import (
	"strings"
	"testing"

	"deckle/internal/htmlstream"
)

// FuzzOracle looks for a document in which something goes in where it is not
// executed, or where it changes the tree.
func FuzzOracle(f *testing.F) {
	for i, doc := range documents(f) {
		f.Add(doc, uint8(everywhere), uint16(i%(len(doc)+1)), i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, doc string, fill uint8, late uint16, charsetKnown bool) {
		if len(doc) > 4<<10 || strings.Contains(doc, "data-hole") || deviates(doc) {
			return
		}
		s := scene{doc: doc, fill: htmlstream.Point(fill), late: int(late)%(len(doc)+2) - 1}
		s.opts.CharsetKnown = charsetKnown
		out, _ := judge(t, s)
		judgeChunks(t, s, out, []int{1, 5}, uint64(late))
	})
}

// FuzzChunks looks for a document whose output depends on how it is cut, also
// where there is no oracle for it.
func FuzzChunks(f *testing.F) {
	for i, doc := range documents(f) {
		f.Add(doc, uint64(i), i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, doc string, seed uint64, charsetKnown bool) {
		if len(doc) > 4<<10 {
			return
		}
		s := scene{doc: doc, fill: everywhere, late: int(seed%uint64(len(doc)+2)) - 1}
		s.opts.CharsetKnown = charsetKnown
		out, _ := play(t, s, nil)
		judgeChunks(t, s, out, []int{1 + int(seed%7), 8 + int(seed%64)}, seed)
	})
}
