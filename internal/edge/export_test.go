package edge

import "net/http"

// Admit is admit for a client that goes in: the header that goes out, and the nonce.
func Admit(h http.Header, origin string) (out http.Header, nonce string, ok bool) {
	a, ok := admit(h, origin, true)
	out = h.Clone()
	a.apply(out)
	return out, a.nonce, ok
}
