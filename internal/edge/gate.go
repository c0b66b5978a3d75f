package edge

import (
	_ "embed"
	"net/http"
	"strings"
	"sync"
	"time"

	"deckle"
	"deckle/internal/consent"
	"deckle/internal/template"
)

// An outcome is what the gate decided (page-plane.md section 2). It is a
// metric's label; those that a client is told are also data-skip.
type outcome string

const (
	outcomeRun           outcome = "run"
	outcomeNoSlot        outcome = "no_slot"        // an ordinary page
	outcomeNoAuction     outcome = "no_auction"     // slots, but none for an auction, or it is switched off
	outcomeDisabled      outcome = "disabled"       // by file or site
	outcomeMethod        outcome = "method"         // not GET
	outcomeNotNavigation outcome = "not_navigation" // a sub-resource, an iframe
	outcomePrefetch      outcome = "prefetch"       // nobody sees the page yet
	outcomeBot           outcome = "bot"
	outcomeNoConsent     outcome = "no_consent"
	outcomeShared        outcome = "shared" // the gate was not asked: see share.go
)

// hole1 reports whether slot definitions go into the page.
func (v *visit) hole1() bool {
	switch v.outcome {
	case outcomeRun, outcomeNoAuction, outcomeNoConsent, outcomePrefetch, outcomeBot, outcomeShared:
		return true
	}
	return false
}

// private reports whether an answer, if it is a page, can be one of several that
// readers of this URL get: then it is private, whatever goes into it.
func (v *visit) private() bool {
	return len(v.slots) > 0 && v.outcome != outcomeDisabled && !v.shared
}

// client reports whether the browser client goes in with them.
func (v *visit) client() bool { return v.outcome != outcomeBot }

// skip is the reason that the client is told, if the gate skipped.
func (v *visit) skip() string {
	switch v.outcome {
	case outcomeNoConsent, outcomePrefetch:
		return string(v.outcome)
	}
	return ""
}

// plan decides what happens to a request before anything is asked of anybody.
func (e *Edge) plan(r *http.Request, s *siteProxy, arrived time.Time) *visit {
	v := &visit{site: s, arrived: arrived, template: s.Template()}
	v.outcome = e.gate(r, v)
	v.matchTook = time.Since(arrived)
	return v
}

// gate asks its questions in the order of page-plane.md section 2. The first
// that fails is the outcome.
func (e *Edge) gate(r *http.Request, v *visit) outcome {
	switch {
	case !v.site.Enabled || v.template == nil || !v.template.Enabled:
		return outcomeDisabled
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return outcomeMethod
	}
	e.match(r, v)
	switch {
	case len(v.slots) == 0:
		return outcomeNoSlot
	case r.Method != http.MethodGet || upgrades(r):
		return outcomeMethod
	case !isNavigation(r.Header):
		return outcomeNotNavigation
	case isSpeculative(r.Header):
		return outcomePrefetch
	case IsBot(r.UserAgent()):
		return outcomeBot
	}
	v.consent = consent.Read(r.Header, e.config.Consent)
	switch {
	case !e.config.AuctionEnabled || len(v.gptSlots()) == 0:
		return outcomeNoAuction
	case !v.consent.Auction:
		return outcomeNoConsent
	}
	return outcomeRun
}

// match finds the page's slots. HEAD is matched like GET, since its header must
// be that of the page.
func (e *Edge) match(r *http.Request, v *visit) {
	v.path = template.Normalize(rawPath(r))
	v.section = deckle.Section(v.path)
	matched := v.template.Match(v.path, make([]int, 0, template.MaxSlotsPerPage))
	if len(matched) > template.MaxSlotsPerPage {
		e.metrics.overLimit.WithLabelValues(v.site.ID).Inc()
		matched = matched[:template.MaxSlotsPerPage]
	}
	for _, i := range matched {
		v.slots = append(v.slots, v.template.Slots[i])
	}
}

// isNavigation reports whether a document is asked for, by Fetch Metadata where
// the browser sends it.
func isNavigation(h http.Header) bool {
	if dest := h.Get("Sec-Fetch-Dest"); dest != "" {
		return dest == "document"
	}
	return strings.Contains(strings.ToLower(strings.Join(h["Accept"], ",")), "text/html")
}

// isSpeculative reports whether a browser asks before its reader does. The
// headers differ by browser and year; each may hold a structured list
// ("prefetch;prerender").
func isSpeculative(h http.Header) bool {
	for _, name := range []string{"Sec-Purpose", "Purpose", "X-Purpose", "X-Moz"} {
		for _, value := range h[http.CanonicalHeaderKey(name)] {
			value = strings.ToLower(value)
			for _, purpose := range []string{"prefetch", "prerender", "preview"} {
				if strings.Contains(value, purpose) {
					return true
				}
			}
		}
	}
	return false
}

//go:embed bots.txt
var botsText string

// bots are the lower-case parts of a User-Agent that name a program.
var bots = sync.OnceValue(func() []string {
	var parts []string
	for line := range strings.Lines(botsText) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			parts = append(parts, line)
		}
	}
	return parts
})

// IsBot reports whether a User-Agent is empty or names a program of a list that
// comes with this package. It is a list: a program that calls itself a browser is
// none.
func IsBot(agent string) bool {
	if strings.TrimSpace(agent) == "" {
		return true
	}
	agent = strings.ToLower(agent)
	agent = strings.ReplaceAll(agent, "cubot", "") // a brand of telephones
	for _, part := range bots() {
		if strings.Contains(agent, part) {
			return true
		}
	}
	return false
}

// upgrades reports whether a request asks for another protocol (RFC 9110 section
// 7.8): a WebSocket is no page.
func upgrades(r *http.Request) bool { return r.Header.Get("Upgrade") != "" }
