// Package publicnet tells addresses of the public internet from all others, and lets
// connections go nowhere else, so that whoever chooses a URL that we fetch reaches
// nothing behind our own walls (server-side request forgery).
package publicnet

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
)

// ErrNotPublic says that an address is not one of the public internet.
var ErrNotPublic = errors.New("not a public address")

// Control is for [net.Dialer.Control]: it lets a connection go to public addresses
// and to those that are allowed, and has errors that wrap [ErrNotPublic] for all
// others. A dialer asks it when a name has been resolved, for every address and after
// every redirect: nothing can change the address in between.
func Control(allow []netip.Prefix) func(network, address string, c syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error { return Permit(address, allow) }
}

// Permit is an error unless a resolved "ip:port" is public or allowed.
func Permit(address string, allow []netip.Prefix) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%s: %w", address, ErrNotPublic)
	}
	if within(allow, ap.Addr().WithZone("").Unmap()) || IsPublic(ap.Addr()) {
		return nil
	}
	return fmt.Errorf("%s: %w", ap.Addr(), ErrNotPublic)
}

// IsPublic reports whether ip is an address of the public internet: what the IANA
// registries of special-purpose addresses call globally reachable, and no address
// that carries another one within it.
func IsPublic(ip netip.Addr) bool {
	if ip.Zone() != "" {
		return false
	}
	ip = ip.Unmap()
	if ip.Is4() {
		return !within(special4[:], ip)
	}
	return global6.Contains(ip) && !within(special6[:], ip)
}

func within(ps []netip.Prefix, ip netip.Addr) bool {
	for _, p := range ps {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}

// global6 is all that has been given out as unicast. Outside it are loopback,
// unique local, link-local, multicast and NAT64 addresses.
var global6 = netip.MustParsePrefix("2000::/3")

var special4 = [...]netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),       // this network; Linux connects 0.0.0.0 to itself
	netip.MustParsePrefix("10.0.0.0/8"),      // private
	netip.MustParsePrefix("100.64.0.0/10"),   // carrier-grade NAT
	netip.MustParsePrefix("127.0.0.0/8"),     // loopback
	netip.MustParsePrefix("169.254.0.0/16"),  // link-local, cloud metadata
	netip.MustParsePrefix("172.16.0.0/12"),   // private
	netip.MustParsePrefix("192.0.0.0/24"),    // IETF protocols
	netip.MustParsePrefix("192.0.2.0/24"),    // documentation
	netip.MustParsePrefix("192.88.99.0/24"),  // 6to4 relay
	netip.MustParsePrefix("192.168.0.0/16"),  // private
	netip.MustParsePrefix("198.18.0.0/15"),   // benchmarks
	netip.MustParsePrefix("198.51.100.0/24"), // documentation
	netip.MustParsePrefix("203.0.113.0/24"),  // documentation
	netip.MustParsePrefix("224.0.0.0/4"),     // multicast
	netip.MustParsePrefix("240.0.0.0/4"),     // reserved, broadcast
}

var special6 = [...]netip.Prefix{
	netip.MustParsePrefix("2001::/23"),     // IETF protocols, Teredo
	netip.MustParsePrefix("2001:db8::/32"), // documentation
	netip.MustParsePrefix("2002::/16"),     // 6to4: an IPv4 address within
	netip.MustParsePrefix("3fff::/20"),     // documentation
}
