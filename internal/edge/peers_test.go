package edge_test

import (
	"crypto/tls"
	"net/http"
	"net/netip"
	"testing"

	"deckle/internal/edge"
)

func TestPeers(t *testing.T) {
	forwarded := http.Header{
		"X-Forwarded-For":   {"203.0.113.1, 198.51.100.9", "10.0.0.2"},
		"X-Forwarded-Host":  {"blog.test:8443"},
		"X-Forwarded-Proto": {"https"},
	}
	proxies := edge.Peers{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for name, c := range map[string]struct {
		peers              edge.Peers
		remote             string
		header             http.Header
		tls                bool
		addr, host, scheme string
	}{
		"nobody is trusted":         {nil, "10.0.0.1:5", forwarded, false, "10.0.0.1", "www.test", "http"},
		"a stranger":                {proxies, "192.0.2.7:5", forwarded, true, "192.0.2.7", "www.test", "https"},
		"a proxy":                   {proxies, "10.0.0.1:5", forwarded, false, "198.51.100.9", "blog.test:8443", "https"},
		"a proxy that says nothing": {proxies, "[fd00::1]:5", nil, false, "fd00::1", "www.test", "http"},
		"mapped addresses":          {proxies, "[::ffff:10.0.0.1]:5", http.Header{"X-Forwarded-For": {"::ffff:192.0.2.1"}}, false, "192.0.2.1", "www.test", "http"},
		"no address":                {proxies, "10.0.0.1:5", http.Header{"X-Forwarded-For": {"192.0.2.1, unknown"}}, false, "10.0.0.1", "www.test", "http"},
		"no scheme":                 {proxies, "10.0.0.1:5", http.Header{"X-Forwarded-Proto": {"javascript"}}, true, "10.0.0.1", "www.test", "https"},
		"no connection":             {proxies, "", nil, false, "invalid IP", "www.test", "http"},
	} {
		r := &http.Request{Host: "www.test", RemoteAddr: c.remote, Header: c.header}
		if c.tls {
			r.TLS = &tls.ConnectionState{}
		}
		if addr, host, scheme := c.peers.ClientAddr(r).String(), c.peers.Host(r), c.peers.Scheme(r); addr != c.addr || host != c.host || scheme != c.scheme {
			t.Errorf("%s: %s %s %s, want %s %s %s", name, addr, host, scheme, c.addr, c.host, c.scheme)
		}
	}
}
