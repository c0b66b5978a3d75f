package config

import (
	"cmp"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// matches checks against a whole pattern, which want describes.
func matches(re *regexp.Regexp, want string) check {
	return func(s string) (string, *fault) {
		if !re.MatchString(s) {
			return "", faultf(want, "%.80q is not valid", s)
		}
		return s, nil
	}
}

var (
	idPattern       = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	currencyPattern = regexp.MustCompile(`^[A-Z]{3}$`)
	hostPattern     = regexp.MustCompile(`^([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$`)
	tokenPattern    = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$") // RFC 9110 section 5.6.2
	plainPattern    = regexp.MustCompile(`^[!-~]{1,256}$`)                      // visible ASCII
)

var (
	isID       = matches(idPattern, "1 to 64 of A–Z a–z 0–9 _ -")
	isCurrency = matches(currencyPattern, "three capital letters of ISO 4217, like USD")
	isToken    = matches(tokenPattern, "a name as HTTP allows it: no spaces, no separators")
	isPlain    = matches(plainPattern, "1 to 256 visible ASCII characters")
)

// notEmpty refuses "".
func notEmpty(s string) (string, *fault) {
	if s == "" {
		return "", faultf("give a value", "is empty")
	}
	return s, nil
}

// isHost checks a host name or address without a port, and gives it back in
// lower case: hosts are compared without regard to it (RFC 3986 section 3.2.2).
func isHost(s string) (string, *fault) {
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		return a.String(), nil
	}
	host := strings.ToLower(s)
	switch {
	case strings.Contains(s, "://"):
		return "", faultf("the host alone", "%.80q has a scheme", s)
	case strings.Contains(s, "*"):
		return "", faultf("name each host", "%.80q is a wildcard", s)
	case strings.Contains(s, ":"):
		return "", faultf("the host alone", "%.80q has a port", s)
	case strings.HasSuffix(s, "."):
		return "", faultf("leave the last dot out", "%.80q ends with a dot", s)
	case len(host) > 253 || !hostPattern.MatchString(host):
		return "", faultf("a DNS name in ASCII (punycode), like www.example.com", "%.80q is not a host", s)
	}
	return host, nil
}

// isHostPort checks what a Host header may hold: a host with or without a port.
func isHostPort(s string) (string, *fault) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return isHost(s)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", faultf("a port from 1 to 65535", "%.80q has no usable port", s)
	}
	host, bad := isHost(host)
	return net.JoinHostPort(host, port), bad
}

// isListen checks the address of a listener; port 0 lets the system choose.
func isListen(s string) (string, *fault) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return "", faultf(`write it like ":8080" or "127.0.0.1:8081"`, "%.80q is not an address to listen on", s)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", faultf("a port from 0 to 65535", "%.80q has no usable port", s)
	}
	if host != "" {
		if _, bad := isHost(host); bad != nil {
			return "", bad
		}
	}
	return s, nil
}

// isLoopback reports whether only this machine can reach a listener's address.
func isLoopback(listen string) bool {
	host, _, _ := net.SplitHostPort(listen)
	return isLoopbackHost(host)
}

func isLoopbackHost(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// httpURL parses an absolute http or https URL without user and fragment.
func httpURL(s string) (*url.URL, *fault) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https":
		return nil, faultf("write it like https://www.example.com", "%.120q is not an http or https URL", s)
	case u.User != nil:
		return nil, faultf("leave it out", "has a user or password in it")
	case u.Fragment != "" || strings.HasSuffix(s, "#"):
		return nil, faultf("leave it out", "has a fragment")
	}
	if _, bad := isHost(u.Hostname()); bad != nil {
		return nil, bad
	}
	if n, err := strconv.ParseUint(cmp.Or(u.Port(), "80"), 10, 16); err != nil || n == 0 {
		return nil, faultf("a port from 1 to 65535", "%.120q has no usable port", s)
	}
	u.Host = strings.ToLower(u.Host)
	return u, nil
}

// originURL parses scheme and host alone.
func originURL(s string) (*url.URL, *fault) {
	u, bad := httpURL(s)
	if bad != nil {
		return nil, bad
	}
	if u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.ForceQuery {
		return nil, faultf("write scheme and host alone", "%.120q has a path or a query", s)
	}
	u.Path, u.RawPath = "", ""
	return u, nil
}

// isOrigin checks scheme and host alone.
func isOrigin(s string) (string, *fault) {
	u, bad := originURL(s)
	if bad != nil {
		return "", bad
	}
	return u.String(), nil
}

// isURL checks an http or https URL to which paths are added, and gives it back
// without a slash at the end.
func isURL(s string) (string, *fault) {
	u, bad := httpURL(s)
	if bad != nil {
		return "", bad
	}
	if u.RawQuery != "" || u.ForceQuery {
		return "", faultf("leave it out", "%.120q has a query", s)
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// isScriptURL checks the address of a script, which may have a query.
func isScriptURL(s string) (string, *fault) {
	u, bad := httpURL(s)
	if bad != nil {
		return "", bad
	}
	return u.String(), nil
}

// isCIDR checks a block of addresses.
func isCIDR(s string) (string, *fault) {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		if a, err := netip.ParseAddr(s); err == nil {
			return "", faultf("write "+netip.PrefixFrom(a, a.BitLen()).String(), "%.80q is one address, not a block", s)
		}
		return "", faultf("write it like 10.0.0.0/8", "%.80q is not a block of addresses", s)
	}
	if p != p.Masked() {
		return "", faultf("write "+p.Masked().String(), "%.80q has bits set after its length", s)
	}
	return s, nil
}

// isPrivate checks a Cache-Control for pages that hold one reader's ads.
func isPrivate(s string) (string, *fault) {
	const remedy = `like "private, no-store" or "private, max-age=0"`
	var names []string
	again := false // may a browser show the page once more without asking?
	for d := range strings.SplitSeq(strings.ToLower(s), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(d), "=")
		if !tokenPattern.MatchString(name) {
			return "", faultf(remedy, "%.80q is not a Cache-Control header", s)
		}
		again = again || strings.HasPrefix(name, "stale-") || name == "immutable" || name == "max-age" && strings.Trim(value, `"`) != "0"
		names = append(names, name)
	}
	for _, r := range s {
		if r < ' ' || r > '~' {
			return "", faultf(remedy, "%.80q is not a Cache-Control header", s)
		}
	}
	private := slices.Contains(names, "private") || slices.Contains(names, "no-store")
	if !private || slices.Contains(names, "public") || slices.Contains(names, "s-maxage") {
		return "", faultf(remedy, "%.80q would let a shared cache give one reader's ads to another", s)
	}
	if again {
		return "", faultf(remedy, "%.80q would let a browser show the same bids again, and bill them", s)
	}
	return s, nil
}

// in makes a path relative to a folder usable.
func in(folder string) check {
	return func(s string) (string, *fault) {
		if s == "" || filepath.IsAbs(s) {
			return notEmpty(s)
		}
		return filepath.Join(folder, s), nil
	}
}

// isFile checks that a path is a file that can be read.
func isFile(path string) (string, *fault) {
	info, err := os.Stat(path)
	if err != nil {
		return "", faultf("", "%v", err)
	}
	if !info.Mode().IsRegular() { // to open a pipe could block
		return "", faultf("", "%s is not a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", faultf("", "%v", err)
	}
	f.Close()
	return path, nil
}

// isSecret checks that a path is a file that not every user of the machine can
// read.
func isSecret(path string) (string, *fault) {
	if _, bad := isFile(path); bad != nil {
		return "", bad
	}
	if runtime.GOOS == "windows" { // permissions are not in the mode there
		return path, nil
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o004 != 0 {
		return "", faultf("chmod 600 "+path, "everybody on this machine can read the secret in %s", path)
	}
	return path, nil
}
