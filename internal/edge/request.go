package edge

import (
	"crypto/rand"
	"net/http"
	"net/netip"
	"strings"
)

// rawPath is the path of the request line, as it came.
func rawPath(r *http.Request) string {
	path, _, _ := strings.Cut(pathAndQuery(r.RequestURI), "?")
	return path
}

// hostname is a host without port and final dot, in lower case; "" if it is none.
func hostname(host string) string {
	name, port := host, ""
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		name, port = host[:i], host[i+1:]
	}
	if strings.Trim(port, "0123456789") != "" {
		return ""
	}
	if inner, ok := strings.CutPrefix(name, "["); ok {
		ip, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		if err != nil || !strings.HasSuffix(inner, "]") {
			return ""
		}
		return ip.String()
	}
	return strings.ToLower(strings.TrimSuffix(name, "."))
}

// trusted reports whether a is one of the configured proxies.
func (e *Edge) trusted(a netip.Addr) bool {
	for _, p := range e.config.TrustedProxies {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// peer is the address at the other end of the connection.
func peer(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap()
}

// clientAddr is the reader's address: the last one in X-Forwarded-For that none
// of the trusted proxies is, as told by trusted proxies only.
func (e *Edge) clientAddr(r *http.Request) netip.Addr {
	a := peer(r)
	hops := strings.Split(strings.Join(r.Header["X-Forwarded-For"], ","), ",")
	for i := len(hops) - 1; i >= 0 && e.trusted(a); i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		a = hop.Unmap()
	}
	return a
}

// forwardedFor is the X-Forwarded-For for the origin: what trusted proxies said,
// and our peer.
func (e *Edge) forwardedFor(r *http.Request) string {
	a := peer(r)
	if !e.trusted(a) || r.Header.Get("X-Forwarded-For") == "" {
		return a.String()
	}
	return strings.Join(r.Header["X-Forwarded-For"], ", ") + ", " + a.String()
}

// publicHost is the host that the reader asked for, with its port.
func (e *Edge) publicHost(r *http.Request) string {
	if h := r.Header.Get("X-Forwarded-Host"); h != "" && e.trusted(peer(r)) {
		return h
	}
	return r.Host
}

func (e *Edge) publicScheme(r *http.Request) string {
	if p := r.Header.Get("X-Forwarded-Proto"); (p == "http" || p == "https") && e.trusted(peer(r)) {
		return p
	}
	if r.TLS != nil {
		return "https"
	}
	return "http"
}

// withoutQuery cuts query and fragment off a URL: they may say who the reader is.
func withoutQuery(u string) string {
	if i := strings.IndexAny(u, "?#"); i >= 0 {
		u = u[:i]
	}
	return u
}

// primaryLanguage is the ISO 639 code of the first language of Accept-Language;
// empty if there is none.
func primaryLanguage(accept string) string {
	first, _, _ := strings.Cut(accept, ",")
	first, _, _ = strings.Cut(first, ";")
	code, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(first)), "-")
	if len(code) < 2 || len(code) > 3 || strings.Trim(code, "abcdefghijklmnopqrstuvwxyz") != "" {
		return ""
	}
	return code
}

// newID is an id that nobody can guess and nothing else has: 26 characters.
func newID() string { return rand.Text() }
