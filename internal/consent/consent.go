// Package consent decides, once per request and from what the request itself
// carries, what we may do for its reader: a pure function of headers and
// configuration, and one value that everything else takes.
package consent

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
}

// Applies says whether a law applies to a request.
type Applies int8

const (
	Unknown Applies = iota
	No
	Yes
)
