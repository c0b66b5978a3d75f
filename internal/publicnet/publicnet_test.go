package publicnet_test

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"deckle/internal/publicnet"
)

// private are addresses that nobody outside may make us ask.
var private = []string{
	"127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
	"169.254.169.254", "100.64.0.1", "192.0.0.8", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1",
	"224.0.0.1", "240.0.0.1", "255.255.255.255",
	"::", "::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.0.0.1", "::127.0.0.1", "fe80::1", "fc00::1", "fd12::1",
	"ff02::1", "64:ff9b::7f00:1", "64:ff9b:1::7f00:1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "3fff::1", "4000::1",
}

func TestIsPublic(t *testing.T) {
	for _, ip := range private {
		if publicnet.IsPublic(netip.MustParseAddr(ip)) {
			t.Errorf("%s is called public", ip)
		}
	}
	for _, ip := range []string{"1.1.1.1", "172.32.0.1", "100.128.0.1", "192.0.1.1", "198.20.0.1", "223.255.255.255", "::ffff:8.8.8.8", "2606:4700::1111", "2a00::1"} {
		if !publicnet.IsPublic(netip.MustParseAddr(ip)) {
			t.Errorf("%s is not called public", ip)
		}
	}
	if publicnet.IsPublic(netip.MustParseAddr("2606:4700::1%eth0")) || publicnet.IsPublic(netip.Addr{}) {
		t.Error("an address with a zone, or none at all, is called public")
	}
}

// Every spelling of a private address is refused where a socket is about to be
// connected, unless it is allowed.
func TestPermit(t *testing.T) {
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	for _, ip := range private {
		if err := publicnet.Permit(net.JoinHostPort(ip, "80"), nil); !errors.Is(err, publicnet.ErrNotPublic) {
			t.Errorf("%s: %v", ip, err)
		}
	}
	for address, allow := range map[string][]netip.Prefix{
		"1.1.1.1:443":             nil,
		"[2606:4700::1111]:443":   nil,
		"127.0.0.1:80":            loopback,
		"[::ffff:127.0.0.1]:80":   loopback,
		"[::ffff:127.0.0.1%x]:80": loopback,
	} {
		if err := publicnet.Permit(address, allow); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{"", "127.0.0.1", "localhost:80", "[::1]:80", "10.0.0.1:80", "/run/socket"} {
		if err := publicnet.Control(loopback)("tcp", address, nil); !errors.Is(err, publicnet.ErrNotPublic) {
			t.Errorf("%q: %v", address, err)
		}
	}
}
