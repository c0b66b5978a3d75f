package track

import (
	"net/http"
	"net/netip"
	"time"

	"golang.org/x/time/rate"

	"deckle/internal/journal"
	"deckle/internal/publicapi"
)

// Limits are how much one address may tell. Behind one there may be an office, or a
// part of a telephone network, so they are far above what one reader does.
type Limits struct {
	// Above these, what an address tells is journaled as suspect.
	Sights    publicapi.Limit // imp and view
	Clicks    publicapi.Limit // click and cta
	Bookmarks publicapi.Limit // fold and unfold

	// Above this it is refused (429), whatever it is.
	Refuse publicapi.Limit

	// Unverified is what all addresses together may tell without any proof: unfolds.
	// What is above it is not journaled.
	Unverified publicapi.Limit
}

// DefaultLimits are the limits of every node, each by itself.
//
// A page with two magazines makes four sights, so that 600 are 150 pages a minute,
// two and a half every second. Of a hundred readers one expands a magazine; 120
// clicks are generous for the same crowd, and so are 60 corners. A hundred requests
// every second are a program's, or a proxy's that nobody has listed.
//
// A fold token proves an unfold for half an hour. Without one, ten every second are
// more than the readers of one node do, for whose bookmarks of yesterday that is; a
// stranger with a thousand addresses fills journals with no more than that, and the
// memory of folds, which keep each id for hours.
func DefaultLimits() Limits {
	return Limits{
		Sights:    publicapi.Limit{PerMinute: 600, Burst: 600},
		Clicks:    publicapi.Limit{PerMinute: 120, Burst: 120},
		Bookmarks: publicapi.Limit{PerMinute: 60, Burst: 60},
		Refuse:    publicapi.Limit{PerMinute: 6_000, Burst: 6_000},

		Unverified: publicapi.Limit{PerMinute: 600, Burst: 600},
	}
}

// hygiene says what does not look like a reader.
type hygiene struct {
	address    func(*http.Request) netip.Addr
	bot        func(agent string) bool
	dataCentre func(netip.Addr) bool

	sights, clicks, bookmarks, refuse *publicapi.Limiter

	unverified *rate.Limiter // of all addresses together
}

func newHygiene(c Config) *hygiene {
	l := c.Limits
	if l == (Limits{}) {
		l = DefaultLimits()
	}
	return &hygiene{
		address: c.Address, bot: c.Bot, dataCentre: c.DataCentre,
		sights:    publicapi.NewLimiter(l.Sights),
		clicks:    publicapi.NewLimiter(l.Clicks),
		bookmarks: publicapi.NewLimiter(l.Bookmarks),
		refuse:    publicapi.NewLimiter(l.Refuse),

		unverified: rate.NewLimiter(rate.Limit(float64(l.Unverified.PerMinute)/60), l.Unverified.Burst),
	}
}

// admit gives the marks of a request that tells an event of this kind, or the error
// of one too many.
func (h *hygiene) admit(kind journal.Kind, r *http.Request, now time.Time) (marks journal.Suspect, err error) {
	address := h.address(r)
	if after, ok := h.refuse.Allow(address, now); !ok {
		return 0, publicapi.TooMany(after)
	}
	if _, ok := h.limiter(kind).Allow(address, now); !ok && public(address) {
		marks |= journal.SuspectRate
	}
	if h.bot != nil && h.bot(r.UserAgent()) {
		marks |= journal.SuspectBot
	}
	if h.dataCentre != nil && h.dataCentre(address) {
		marks |= journal.SuspectDataCentre
	}
	return marks, nil
}

// mayGoUnproven reports whether an event that nothing proves is journaled. One with
// a mark counts for nothing, so that it would only take room.
func (h *hygiene) mayGoUnproven(marks journal.Suspect, now time.Time) bool {
	return marks == 0 && h.unverified.AllowN(now, 1)
}

func (h *hygiene) limiter(kind journal.Kind) *publicapi.Limiter {
	switch kind {
	case journal.Impression, journal.View:
		return h.sights
	case journal.Click, journal.CTA:
		return h.clicks
	}
	return h.bookmarks
}

// sharedSpace is between a telephone network and its subscribers (RFC 6598).
var sharedSpace = netip.MustParsePrefix("100.64.0.0/10")

// public reports whether an address can be one of a reader on the internet. Others
// are our own, or of a proxy that is missing in trusted_proxies: behind it is
// everybody, and nobody should lose all impressions without a word.
func public(a netip.Addr) bool {
	return a.IsGlobalUnicast() && !a.IsPrivate() && !sharedSpace.Contains(a)
}
