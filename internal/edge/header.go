package edge

import (
	"cmp"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/html/charset"
)

// untouched says why an answer is passed on as it came. It is a metric's label.
type untouched string

const (
	untouchedStatus      untouched = "status"       // neither 200 nor 203
	untouchedType        untouched = "type"         // not text/html
	untouchedCharset     untouched = "charset"      // not a superset of ASCII
	untouchedCoding      untouched = "coding"       // a Content-Encoding that we cannot read
	untouchedNoTransform untouched = "no_transform" // Cache-Control: no-transform
	untouchedAttachment  untouched = "attachment"   // a download
	untouchedCSP         untouched = "csp"          // a policy under which our elements would not run
)

// A document is how the body of an injectable answer is written.
type document struct {
	coding       coding
	charset      string // the label in Content-Type
	charsetKnown bool   // it is one that browsers know
	scripts      admission
}

// injectable reports how the body of resp is written, or why nothing may go into
// it (page-plane.md section 4). What goes in needs n.
func (s *siteProxy) injectable(resp *http.Response, n needs) (document, untouched) {
	h := resp.Header
	mediaType, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	known, compatible := charsetOf(params["charset"])
	code := codings[strings.ToLower(strings.Join(h["Content-Encoding"], ","))]
	switch {
	case !s.injectableStatus(resp.StatusCode):
		return document{}, untouchedStatus
	case err != nil || mediaType != "text/html" || len(h["Content-Type"]) > 1:
		return document{}, untouchedType
	case !compatible:
		return document{}, untouchedCharset
	case hasToken(h["Cache-Control"], "no-transform"):
		return document{}, untouchedNoTransform
	case slices.ContainsFunc(h["Content-Disposition"], isAttachment):
		return document{}, untouchedAttachment
	case code == nil:
		return document{}, untouchedCoding
	}
	scripts, ok := admit(h, publicOrigin(resp.Request), n)
	if !ok {
		return document{}, untouchedCSP
	}
	return document{coding: code, charset: params["charset"], charsetKnown: known, scripts: scripts}, ""
}

// publicOrigin is the origin of the page that a request to the origin is for, in the
// reader's browser.
func publicOrigin(out *http.Request) string {
	return out.Header.Get("X-Forwarded-Proto") + "://" + out.Header.Get("X-Forwarded-Host")
}

func (s *siteProxy) injectableStatus(status int) bool {
	return status == http.StatusOK || status == http.StatusNonAuthoritativeInfo || s.ErrorPages && status >= 400 && status <= 599
}

// charsetOf reports whether a label names a charset to browsers (the labels of the
// WHATWG Encoding standard), and whether our ASCII bytes mean in it what we mean.
func charsetOf(label string) (known, compatible bool) {
	_, name := charset.Lookup(label)
	switch name {
	case "":
		return false, true // browsers look elsewhere for it
	case "utf-16le", "utf-16be", "iso-2022-jp", "replacement":
		return true, false
	}
	return true, true
}

// hasToken reports whether a comma-separated header names a directive, with or
// without a value.
func hasToken(lines []string, token string) bool {
	for _, line := range lines {
		for part := range strings.SplitSeq(line, ",") {
			name, _, _ := strings.Cut(part, "=")
			if strings.EqualFold(strings.TrimSpace(name), token) {
				return true
			}
		}
	}
	return false
}

func isAttachment(disposition string) bool {
	kind, _, _ := strings.Cut(disposition, ";")
	return strings.EqualFold(strings.TrimSpace(kind), "attachment")
}

// noLongerShared are the headers that keep or identify a page for several
// readers; noLongerTrue are those that describe the bytes of the origin.
var (
	noLongerShared = [...]string{
		"Etag", "Last-Modified", "Expires", "Age", "Surrogate-Control", "Surrogate-Key", "Cdn-Cache-Control",
		// These weigh more than Cache-Control to nginx, Akamai and LiteSpeed.
		"X-Accel-Expires", "Edge-Control", "X-Litespeed-Cache-Control",
	}
	noLongerTrue = [...]string{
		"Content-Length", "Accept-Ranges", "Content-Md5", "Digest", "Repr-Digest", "Content-Digest",
	}
)

// makePrivate keeps an answer from every shared cache, since it can hold what is
// for one reader.
func (s *siteProxy) makePrivate(h http.Header) {
	for _, name := range noLongerShared {
		h.Del(name)
	}
	for name := range h {
		if strings.HasSuffix(name, "-Cdn-Cache-Control") || strings.HasSuffix(name, "-Surrogate-Control") {
			h.Del(name)
		}
	}
	h.Set("Cache-Control", cmp.Or(s.HTMLCache, "private, no-store"))
}

func removeUntrue(h http.Header) {
	for _, name := range noLongerTrue {
		h.Del(name)
	}
}

// answer makes w's header true of the page that we are about to write
// (page-plane.md section 5).
func (s *siteProxy) answer(h http.Header, resp *http.Response, v *visit, scripts *admission) {
	s.toPublic(resp)
	removeHopByHop(resp.Header)
	for name, values := range resp.Header {
		h[name] = values
	}
	if v.shared {
		makeShared(h)
	} else {
		s.makePrivate(h)
	}
	removeUntrue(h)
	scripts.apply(h)
	if v.client() {
		for _, origin := range s.preconnects() {
			h.Add("Link", "<"+origin+">; rel=preconnect")
		}
	}
	if s.ServerTiming && !v.shared { // what is kept was not measured for who gets it
		h.Add("Server-Timing", serverTiming(v))
	}
}

// serverTiming is what is known before the first byte.
func serverTiming(v *visit) string {
	return fmt.Sprintf("deckle;desc=%q, match;dur=%s, origin;dur=%s", v.outcome, millis(v.matchTook), millis(v.originTook))
}

func millis(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/float64(time.Millisecond)) }

// preconnects are the origins that a page with slots will need at once.
func (s *siteProxy) preconnects() []string {
	origins := s.Preconnect
	if u, err := url.Parse(s.Client.GPTURL); err == nil && u.Host != "" {
		origins = append([]string{u.Scheme + "://" + u.Host}, origins...)
	}
	return origins
}

// toPublic turns what names the origin's host into the public one: redirects,
// and the domains of cookies. Only a whole host is replaced, never a part of one,
// and never one that is the site's own.
func (s *siteProxy) toPublic(resp *http.Response) {
	h := resp.Header
	h.Del("Alt-Svc") // of the origin's host, where its reader is not to go
	public := resp.Request.Header.Get("X-Forwarded-Host")
	if u, err := url.Parse(h.Get("Location")); err == nil && s.isOrigins(u.Host) {
		u.Scheme, u.Host = resp.Request.Header.Get("X-Forwarded-Proto"), public
		h.Set("Location", u.String())
	}
	for i, cookie := range h["Set-Cookie"] {
		h["Set-Cookie"][i] = s.publicCookie(cookie, hostname(public))
	}
}

// isOrigins reports whether a host is the origin's, with or without its port, and
// none of the site's own.
func (s *siteProxy) isOrigins(host string) bool {
	name := hostname(host)
	if name == "" || slices.Contains(s.Hosts, name) {
		return false
	}
	return strings.EqualFold(host, s.Origin.Host) || name == hostname(s.HostHeader)
}

// publicCookie gives a Set-Cookie line whose Domain is the origin's host the public
// one instead.
func (s *siteProxy) publicCookie(line, public string) string {
	parts := strings.Split(line, ";")
	for i, part := range parts[1:] {
		name, value, _ := strings.Cut(part, "=")
		domain := hostname(strings.TrimPrefix(strings.TrimSpace(value), "."))
		if strings.EqualFold(strings.TrimSpace(name), "Domain") && domain != "" && !slices.Contains(s.Hosts, domain) &&
			(domain == hostname(s.Origin.Host) || domain == hostname(s.HostHeader)) {
			parts[i+1] = " Domain=" + public
		}
	}
	return strings.Join(parts, ";")
}
