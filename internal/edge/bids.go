package edge

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"deckle"
	"deckle/internal/auction"
	"deckle/internal/publicapi"
	"deckle/internal/telemetry"
)

// BidsConfig configures the two ways to ask for bids without a page: [Edge.PageBids]
// and [Edge.AuctionEndpoint].
type BidsConfig struct {
	API     *publicapi.API
	Limiter *publicapi.Limiter // of both together, by address

	// Timeout is how long an auction of POST /auction may take ([auction].timeout_ms),
	// from when its body has been read.
	Timeout time.Duration

	// ClientParams lets the browser say, to POST /auction, with which parameters a
	// bidder is asked for a code that no template has.
	ClientParams bool

	// DefaultFloors are the floors of such codes, by site.
	DefaultFloors map[string]deckle.CPM

	// Record is told of every auction, and of what the gate has skipped. It must not
	// block. It may be nil.
	Record func(telemetry.Event)
}

// PageBidsPath and AuctionPath are where the two stand.
const (
	PageBidsPath = "/__ts/page-bids"
	AuctionPath  = "/auction"
)

// An asking is one request for bids without a page, from its first byte to the
// notices of its winners.
type asking struct {
	edge   *Edge
	config *BidsConfig
	from   telemetry.Source
	site   *siteProxy // that of the request's host
	visit  *visit
	result *auction.Result // nil: no auction was held
}

type askingKey struct{}

// A bidsEndpoint is one of the two ways to ask for bids without a page.
type bidsEndpoint struct {
	from   telemetry.Source
	method string
	may    func(*siteProxy, *http.Request) bool // ask: it comes from a page of that site
	answer func(*asking, *publicapi.Request) (publicapi.Answer, error)
}

// bidsHandler answers requests for bids. Its winners are selected once the answer is
// with the reader: nobody has won anything before. Whoever may not ask is refused
// before it counts: another site's page cannot use up its reader's share.
func (e *Edge) bidsHandler(c *BidsConfig, to bidsEndpoint) http.Handler {
	inner := c.API.Handler(string(to.from), func(r *publicapi.Request) (publicapi.Answer, error) {
		a := r.Context().Value(askingKey{}).(*asking)
		var err error
		if a.site, err = e.site(r.Request); err != nil {
			return publicapi.Answer{}, err
		}
		if !to.may(a.site, r.Request) {
			return publicapi.Answer{}, crossSite()
		}
		if after, ok := c.Limiter.Allow(e.config.TrustedProxies.ClientAddr(r.Request), time.Now()); !ok {
			return publicapi.Answer{}, publicapi.TooMany(after)
		}
		return to.answer(a, r)
	}, to.method)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &asking{edge: e, config: c, from: to.from}
		inner.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), askingKey{}, a)))
		if a.visit == nil {
			return // refused
		}
		delivered := http.NewResponseController(w).Flush() == nil && r.Context().Err() == nil
		if a.result != nil && delivered {
			e.notices.Selected(a.result)
		}
		a.record(delivered)
	})
}

// hold holds an auction for the request's reader, until deadline.
func (a *asking) hold(ctx context.Context, r *auction.Request, deadline time.Time) *auction.Result {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	a.result = a.edge.house.Start(ctx, r).Result()
	return a.result
}

func (a *asking) record(delivered bool) {
	if a.config.Record == nil {
		return
	}
	event := a.visit.event(a.from)
	if a.result != nil {
		event.Held(a.result, delivered)
	}
	a.config.Record(event)
}

// site is the site that a request's host belongs to.
func (e *Edge) site(r *http.Request) (*siteProxy, error) {
	s, ok := e.sites[hostname(e.config.TrustedProxies.Host(r))]
	if !ok {
		return nil, &publicapi.Error{Status: http.StatusNotFound, Reason: "unknown_host", Message: "no site is configured for this host"}
	}
	return s, nil
}

// asNavigation is the request for a page of which another request asks: by the same
// reader, with the same cookies, as a browser would ask for its document. path is
// the page's, as it came.
func asNavigation(r *http.Request, path string) *http.Request {
	page := *r
	page.Method, page.RequestURI = http.MethodGet, path
	page.Header = r.Header.Clone()
	page.Header.Set("Sec-Fetch-Dest", "document")
	page.Header.Del("Referer") // the page itself
	return &page
}

// crossSite is the answer to a page of another site that asks for what belongs to
// the readers of this one.
func crossSite() error {
	return publicapi.Forbidden("cross_site", "only pages of this site may ask")
}

// fromOwnPage reports whether a script of a page with the request's own origin has
// sent it: by Fetch Metadata, or, where the browser or a connection without TLS does
// not have that, by a header that another origin may not set without being asked.
func (*siteProxy) fromOwnPage(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin"
	}
	return r.Header.Get("X-Deckle") == "1"
}

// fromOwnSite reports whether a request says that it comes from a page on one of
// the site's hosts.
func (s *siteProxy) fromOwnSite(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return s.fromOwnPage(r)
	}
	u, err := url.Parse(origin)
	return err == nil && s.serves(u, r)
}

// serves reports whether the page at u is the site's own: on one of its hosts, at the
// port of the request, where something else may answer at another. Scripts of a page
// without TLS may be anybody's, so such a page is not that of a site with it. The
// reverse may be: TLS may end before a proxy that says nothing of it.
func (s *siteProxy) serves(u *url.URL, r *http.Request) bool {
	peers := s.edge.config.TrustedProxies
	switch {
	case s.edge.sites[hostname(u.Host)] != s:
		return false
	case u.Scheme != "https" && (u.Scheme != "http" || peers.Scheme(r) != "http"):
		return false
	}
	return portOf(u.Host) == portOf(peers.Host(r))
}

// pathOf is s as the raw path of a page, without query and fragment; false if it is
// none that a browser has: those are of visible ASCII.
func pathOf(s string) (string, bool) {
	s = withoutQuery(s)
	if !strings.HasPrefix(s, "/") || strings.HasPrefix(s, "//") || len(s) > maxPath {
		return "", false
	}
	return s, !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// maxPath is how long a page's path may be, in bytes: what net/http takes in a
// request line is larger, and no page's address is.
const maxPath = 8 << 10
