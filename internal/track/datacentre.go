package track

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"
)

// Bounds of the file of data centres.
const (
	maxNetworks     = 16 << 20 // bytes; what the large clouds publish is 2 MB together
	maxNetworkFault = 20       // lines that an error names
)

// DataCentres are the networks of an operator's file: one a line, in CIDR notation,
// an address alone being a network of one; # begins a comment. No list comes with
// Deckle: what hosters publish changes by the week.
type DataCentres struct {
	path     string
	networks atomic.Pointer[networks]
}

// OpenDataCentres reads the file at path. There need not be one.
func OpenDataCentres(path string) (*DataCentres, error) {
	d := &DataCentres{path: path}
	return d, d.Reload()
}

// Reload reads the file again. One with an error changes nothing; the error names its
// lines.
func (d *DataCentres) Reload() error {
	f, err := os.Open(d.path)
	if errors.Is(err, fs.ErrNotExist) {
		d.networks.Store(nil)
		return nil
	}
	if err != nil {
		return fmt.Errorf("read data centres: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxNetworks+1))
	if err != nil {
		return fmt.Errorf("read data centres: %w", err)
	}
	n, err := parseNetworks(data)
	if err != nil {
		return fmt.Errorf("read data centres: %s: %w", d.path, err)
	}
	d.networks.Store(&n)
	return nil
}

// Contains reports whether an address is in one of the networks.
func (d *DataCentres) Contains(a netip.Addr) bool {
	n := d.networks.Load()
	return n != nil && n.contains(a.Unmap())
}

// networks are sorted, and none is within another.
type networks []netip.Prefix

func parseNetworks(data []byte) (networks, error) {
	if len(data) > maxNetworks {
		return nil, fmt.Errorf("has more than %d bytes", maxNetworks)
	}
	var n networks
	var faults []error
	line := 0
	for raw := range bytes.Lines(data) {
		line++
		text, _, _ := strings.Cut(string(raw), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		p, err := parseNetwork(text)
		if err != nil {
			faults = append(faults, fmt.Errorf("line %d: %w", line, err))
			if len(faults) == maxNetworkFault {
				break
			}
			continue
		}
		n = append(n, p)
	}
	slices.SortFunc(n, func(a, b netip.Prefix) int {
		if c := a.Addr().Compare(b.Addr()); c != 0 {
			return c
		}
		return a.Bits() - b.Bits()
	})
	return n.withoutInner(), errors.Join(faults...)
}

// parseNetwork reads one network. One that means another than it seems to, or
// everybody, is more likely a mistake than meant.
func parseNetwork(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" && !a.Is4In6() {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	switch {
	case err != nil || p.Addr().Is4In6():
		return p, fmt.Errorf("%.64q is no network: want one like 192.0.2.0/24 or 2001:db8::/32", text)
	case p.Bits() == 0:
		return p, fmt.Errorf("%s is everybody", p)
	case p != p.Masked():
		return p, fmt.Errorf("%s has bits beyond its prefix: %s would be its network", p, p.Masked())
	}
	return p, nil
}

// withoutInner takes away, from sorted networks, what is within another: networks
// are within one another or apart.
func (n networks) withoutInner() networks {
	outer := n[:0]
	for _, p := range n {
		if len(outer) == 0 || !outer[len(outer)-1].Contains(p.Addr()) {
			outer = append(outer, p)
		}
	}
	return outer
}

func (n networks) contains(a netip.Addr) bool {
	i, found := slices.BinarySearchFunc(n, a, func(p netip.Prefix, a netip.Addr) int { return p.Addr().Compare(a) })
	return found || i > 0 && n[i-1].Contains(a)
}
