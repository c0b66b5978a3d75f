package edge

import (
	"net/http"
	"net/netip"
	"strings"
)

// Peers are the networks of the proxies in front of us. What they say about a
// request in X-Forwarded-* is believed, what anybody else says there is not. The
// zero value believes nobody.
//
// It is safe for concurrent use as long as nobody changes it.
type Peers []netip.Prefix

// ClientAddr is the reader's address: the last one in X-Forwarded-For that none of
// the trusted proxies is, as told by trusted proxies only. It is invalid where the
// connection has none.
func (p Peers) ClientAddr(r *http.Request) netip.Addr {
	a := peer(r)
	hops := strings.Split(strings.Join(r.Header["X-Forwarded-For"], ","), ",")
	for i := len(hops) - 1; i >= 0 && p.trust(a); i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		a = hop.Unmap()
	}
	return a
}

// Host is the host that the reader asked for, with its port, as it was written.
func (p Peers) Host(r *http.Request) string {
	if h := r.Header.Get("X-Forwarded-Host"); h != "" && p.trust(peer(r)) {
		return h
	}
	return r.Host
}

// Scheme is how the reader asked: "http" or "https".
func (p Peers) Scheme(r *http.Request) string {
	if s := r.Header.Get("X-Forwarded-Proto"); (s == "http" || s == "https") && p.trust(peer(r)) {
		return s
	}
	if r.TLS != nil {
		return "https"
	}
	return "http"
}

// forwardedFor is the X-Forwarded-For for the origin: what trusted proxies said,
// and our peer.
func (p Peers) forwardedFor(r *http.Request) string {
	a := peer(r)
	if !p.trust(a) || r.Header.Get("X-Forwarded-For") == "" {
		return a.String()
	}
	return strings.Join(r.Header["X-Forwarded-For"], ", ") + ", " + a.String()
}

// trust reports whether a is one of the trusted proxies.
func (p Peers) trust(a netip.Addr) bool {
	for _, network := range p {
		if network.Contains(a) {
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
