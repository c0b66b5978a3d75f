package track_test

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"deckle/internal/track"
)

// write writes a file of networks.
func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDataCentres(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data-centres.txt")
	write(t, path, `# what hosters publish
192.0.2.0/24
192.0.2.128/25   # within the one before
198.51.100.7
	2001:db8::/32
2001:db8:1::/48

203.0.113.0/25
203.0.113.128/25`)
	d, err := track.OpenDataCentres(path)
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]bool{
		"192.0.1.255": false, "192.0.2.0": true, "192.0.2.127": true, "192.0.2.255": true, "192.0.3.0": false,
		"198.51.100.6": false, "198.51.100.7": true, "198.51.100.8": false,
		"203.0.113.0": true, "203.0.113.255": true, "203.0.114.0": false,
		"2001:db7:ffff::": false, "2001:db8::": true, "2001:db8:1::1": true, "2001:db8:ffff::1": true, "2001:db9::": false,
		"::ffff:192.0.2.1": true, "::": false, "0.0.0.0": false, "255.255.255.255": false,
	} {
		if got := d.Contains(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
	if d.Contains(netip.Addr{}) {
		t.Error("no address is in a data centre")
	}
}

// A file with an error is refused as a whole and every line named; what was known
// stays.
func TestDataCentresWithErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data-centres.txt")
	d, err := track.OpenDataCentres(path)
	if err != nil || d.Contains(netip.MustParseAddr("192.0.2.1")) {
		t.Fatal("without a file:", err)
	}
	write(t, path, "192.0.2.0/24\n")
	if err := d.Reload(); err != nil {
		t.Fatal(err)
	}
	write(t, path, strings.Join([]string{
		"198.51.100.0/24", "", "amazon", "192.0.2.0/33", "0.0.0.0/0", "::/0", "10.0.0.1/8", "::ffff:192.0.2.0/120", "::ffff:192.0.2.1",
		"fe80::1%eth0", "192.0.2.0/24 198.51.100.0/24", "192.0.2.0-192.0.2.255", strings.Repeat("x", 1_000),
	}, "\n"))
	err = d.Reload()
	want := `line 3: "amazon" is no network: want one like 192.0.2.0/24 or 2001:db8::/32
line 4: "192.0.2.0/33" is no network: want one like 192.0.2.0/24 or 2001:db8::/32
line 5: 0.0.0.0/0 is everybody
line 6: ::/0 is everybody
line 7: 10.0.0.1/8 has bits beyond its prefix: 10.0.0.0/8 would be its network
line 8: "::ffff:192.0.2.0/120" is no network: want one like 192.0.2.0/24 or 2001:db8::/32
line 9: "::ffff:192.0.2.1" is no network: want one like 192.0.2.0/24 or 2001:db8::/32
line 10: "fe80::1%eth0" is no network: want one like 192.0.2.0/24 or 2001:db8::/32
line 11: "192.0.2.0/24 198.51.100.0/24" is no network: want one like 192.0.2.0/24 or 2001:db8::/32
line 12: "192.0.2.0-192.0.2.255" is no network: want one like 192.0.2.0/24 or 2001:db8::/32
line 13: "` + strings.Repeat("x", 64) + `" is no network: want one like 192.0.2.0/24 or 2001:db8::/32`
	if err == nil || err.Error() != "read data centres: "+path+": "+want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if !d.Contains(netip.MustParseAddr("192.0.2.1")) || d.Contains(netip.MustParseAddr("198.51.100.1")) {
		t.Error("an error has changed what is known")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := d.Reload(); err != nil || d.Contains(netip.MustParseAddr("192.0.2.1")) {
		t.Errorf("after the file has gone: %v", err)
	}
	if _, err := track.OpenDataCentres(t.TempDir()); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder: %v", err)
	}
}

// The search finds what a look at every network finds.
func TestDataCentresLikeALinearSearch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data-centres.txt")
	address := rapid.Custom(func(t *rapid.T) netip.Addr {
		if rapid.Bool().Draw(t, "v6") {
			return netip.AddrFrom16([16]byte{0x20, 1, byte(rapid.IntRange(0, 3).Draw(t, "a")), byte(rapid.IntRange(0, 255).Draw(t, "b")), 15: byte(rapid.IntRange(0, 3).Draw(t, "c"))})
		}
		return netip.AddrFrom4([4]byte{192, byte(rapid.IntRange(0, 3).Draw(t, "a")), byte(rapid.IntRange(0, 255).Draw(t, "b")), byte(rapid.IntRange(0, 255).Draw(t, "c"))})
	})
	rapid.Check(t, func(t *rapid.T) {
		var all []netip.Prefix
		var text strings.Builder
		for range rapid.IntRange(0, 30).Draw(t, "networks") {
			a := address.Draw(t, "address")
			p := netip.PrefixFrom(a, rapid.IntRange(1, a.BitLen()).Draw(t, "bits")).Masked()
			all = append(all, p)
			text.WriteString(p.String() + "\n")
		}
		if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := track.OpenDataCentres(path)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			a, want := address.Draw(t, "asked"), false
			for _, p := range all {
				want = want || p.Contains(a)
			}
			if got := d.Contains(a); got != want {
				t.Fatalf("%s: %v, want %v", a, got, want)
			}
		}
	})
}
