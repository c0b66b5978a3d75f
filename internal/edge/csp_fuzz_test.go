package edge_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"deckle/internal/edge"
)

// Whatever a policy says: what it had stays, in its order; what lets us in is enough
// when it is asked again; and a nonce can do no harm in an attribute.
func FuzzPolicies(f *testing.F) {
	for _, c := range policyCases() {
		f.Add(c.policy, c.report)
	}
	f.Add("script-src 'none' 'NONE'; connect-src", ";;,default-src\x00 'nonce-\"'")
	f.Fuzz(func(t *testing.T, enforced, reported string) {
		h := http.Header{"Content-Security-Policy": {enforced}, "Content-Security-Policy-Report-Only": {reported}}
		out, nonce, ok := edge.Admit(h, "https://www.test")
		if !ok {
			return
		}
		if strings.ContainsAny(nonce, "\"'<> \t\n") {
			t.Errorf("nonce %q", nonce)
		}
		for name := range h {
			if !within(words(h.Get(name)), words(out.Get(name))) {
				t.Errorf("%q becomes %q", h.Get(name), out.Get(name))
			}
		}
		again, _, ok := edge.Admit(out, "https://www.test")
		if !ok || again.Get("Content-Security-Policy") != out.Get("Content-Security-Policy") ||
			again.Get("Content-Security-Policy-Report-Only") != out.Get("Content-Security-Policy-Report-Only") {
			t.Errorf("%q becomes %q, and again %q, %v", h, out, again, ok)
		}
	})
}

// words are what is between the white space and signs of a policy, but for the names
// of directives, whose case is nothing, and 'none', which is nothing beside others.
func words(line string) (out []string) {
	for p := range strings.SplitSeq(line, ",") {
		for d := range strings.SplitSeq(p, ";") {
			fields := strings.FieldsFunc(d, func(r rune) bool { return strings.ContainsRune(" \t\n\f\r", r) })
			for i, w := range fields {
				if i > 0 && !strings.EqualFold(w, "'none'") {
					out = append(out, w)
				}
			}
		}
	}
	return out
}

// within reports whether all of part is in whole, in that order.
func within(part, whole []string) bool {
	for _, w := range part {
		i := slices.Index(whole, w)
		if i < 0 {
			return false
		}
		whole = whole[i+1:]
	}
	return true
}
