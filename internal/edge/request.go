package edge

import (
	"crypto/rand"
	"net/http"
	"net/netip"
	"net/url"
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

// portOf is the port of a host that is one; "" for those that HTTP and HTTPS have
// without being asked.
func portOf(host string) string {
	port := (&url.URL{Host: host}).Port()
	if port == "80" || port == "443" {
		return ""
	}
	return port
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
