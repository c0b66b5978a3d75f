package edge

import (
	"net/http"
	"strings"
)

// Some pages are the same for everybody who asks for them, readers, bots and frames
// alike, so that they keep the origin's caching: those of a site with bids = "fetch",
// and on a site with spa = true those without slots. The gate is not asked for them:
// what it would say belongs to one reader. The client asks page-bids, which asks it.

// share finds out whether the page that a visit is for is one of them, and whether
// this request gets it.
func (v *visit) share(r *http.Request) {
	if v.outcome == outcomeDisabled || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return
	}
	hasSlots := len(v.slots) > 0
	v.shared = hasSlots && v.site.Fetch || !hasSlots && v.template.SPA
	switch {
	case !v.shared || r.Method != http.MethodGet || upgrades(r):
	case mayBePage(r.Header):
		v.outcome = outcomeShared
	case hasSlots:
		v.outcome = outcomeNotNavigation
	}
}

// mayBePage reports whether a request may be for a document. Everything else of a
// site passes as it is, with its ranges and validators: pictures, films, what scripts
// ask for.
func mayBePage(h http.Header) bool {
	if h.Get("Range") != "" {
		return false
	}
	accept := strings.ToLower(strings.Join(h["Accept"], ","))
	switch h.Get("Sec-Fetch-Dest") {
	case "document", "iframe", "frame", "fencedframe", "embed", "object":
		return true
	case "": // an old browser, or a program; caches ask in its name
		return accept == "" || accept == "*/*" || strings.Contains(accept, "text/html")
	}
	return false
}

// makeShared makes the header true of a page with slots and client that is the same
// for everybody: it is not the bytes that the origin's validators name.
func makeShared(h http.Header) {
	h.Del("Etag")
	h.Del("Last-Modified")
}
