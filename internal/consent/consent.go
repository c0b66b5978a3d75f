// Package consent decides, once per request and from what the request itself
// carries, what we may do for its reader: a pure function of headers and
// configuration, and one value that everything else takes.
//
// The rule is the simple one: a readable TC string decides by its consent to
// purposes 1 and 2; without one the operator's setting for an unknown place
// decides; Global Privacy Control is a no or is passed on. Places, GPP, US
// Privacy and permission by vendor are not read.
package consent

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Applies says whether a law applies to a request.
type Applies int8

const (
	Unknown Applies = iota
	No
	Yes
)

// A Place says how a reader is treated whose place is not known.
type Place string

const (
	PlaceGDPR  Place = "gdpr"
	PlaceOther Place = "other"
)

// Config is what an operator decides about consent. The zero value is the
// strictest: an unknown place is under the GDPR, and GPC is passed on.
type Config struct {
	TCFCookies   []string // cookies that may hold a TC string; default euconsent-v2
	UnknownPlace Place    // default gdpr
	StopOnGPC    bool     // us_optout = "stop": Sec-GPC: 1 is a no, instead of being passed on

	// TruncateOther cuts addresses for bidders also where no law asks for it
	// (other_address = "truncated").
	TruncateOther bool
}

// A Decision is what we may do for one request, and the strings that bidders get
// to see. The zero value permits nothing.
type Decision struct {
	// Auction says whether the exchange auction may run at all.
	Auction bool

	// GDPR is regs.gdpr of OpenRTB 2.6.
	GDPR Applies

	// TCString is user.consent: the TC string as it came, only when we could read it.
	TCString string

	// GPC says that the reader sent Sec-GPC: 1.
	GPC bool

	// FullAddress says that bidders may get the whole IP address.
	FullAddress bool
}

// Read decides for a request with header h. An unreadable TC string is read as
// refused, never as absent; several of them permit only what all of them permit
// (privacy.md section 1).
func Read(h http.Header, c Config) Decision {
	d := Decision{GPC: slices.Contains(h["Sec-Gpc"], "1")}
	strings := tcStrings(h, c.TCFCookies)
	if len(strings) == 0 {
		d.byPlace(c)
	} else {
		d.byTCStrings(strings)
	}
	if d.GPC && c.StopOnGPC {
		d.Auction = false
	}
	return d
}

func (d *Decision) byPlace(c Config) {
	if c.UnknownPlace != PlaceOther {
		d.GDPR = Yes
		return
	}
	d.GDPR, d.Auction = No, true
	d.FullAddress = !c.TruncateOther && !d.GPC
}

// byTCStrings: a TC string makes the GDPR apply anywhere. Bidders get the one that
// permits what all of them permit; where none says just that, none is passed on
// and nobody is asked.
func (d *Decision) byTCStrings(texts []string) {
	d.GDPR = Yes
	tcs := make([]TC, len(texts))
	for i, text := range texts {
		tc, err := ParseTC(text)
		if err != nil {
			return
		}
		tcs[i] = tc
	}
	common := tcs[0]
	for _, tc := range tcs {
		common = common.and(tc)
	}
	strictest := slices.IndexFunc(tcs, common.permitsLike)
	if strictest < 0 {
		return
	}
	d.TCString = texts[strictest]
	d.Auction = common.Purpose(1) && common.Purpose(2)
	d.FullAddress = common.SpecialFeature(1) && !d.GPC // of two signals the stricter
}

// Address is what bidders may know of a reader's address: all of it, or its /24
// or /48. It is the zero Addr when there is none.
func (d Decision) Address(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if !a.IsValid() || d.FullAddress {
		return a
	}
	bits := 24
	if a.Is6() {
		bits = 48
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return netip.Addr{}
	}
	return p.Addr()
}

// tcStrings returns the values of all cookies with one of names, each once, in
// the order in which they came. It reads the header itself: net/http drops
// cookies with odd bytes, and what is unreadable must not become absent.
func tcStrings(h http.Header, names []string) []string {
	if len(names) == 0 {
		names = []string{"euconsent-v2"}
	}
	var values []string
	for _, line := range h["Cookie"] {
		for pair := range strings.SplitSeq(line, ";") {
			name, value, _ := strings.Cut(pair, "=")
			value = strings.Trim(value, " \t\"")
			if slices.Contains(names, strings.TrimSpace(name)) && !slices.Contains(values, value) {
				values = append(values, value)
			}
		}
	}
	return values
}
