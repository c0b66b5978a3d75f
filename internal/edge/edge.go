// Package edge stands in front of a publisher's site: it passes every byte on as
// it came, and puts ad slots and the winning bids into the pages that have some,
// while the page is on its way.
//
// Its order is the promise that the page comes first: the auction starts before
// the origin is asked and never holds a byte beyond A_deadline; what is not
// understood is passed on unaltered; notices go out only after their bids did.
package edge

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"deckle"
	"deckle/internal/auction"
	"deckle/internal/consent"
	"deckle/internal/telemetry"
	"deckle/internal/template"
)

// A Site is a publisher's site behind some hosts. It is not changed once [New]
// has it.
type Site struct {
	ID         string
	Hosts      []string // lower case, without port
	Origin     *url.URL // scheme and host
	HostHeader string   // Host that the origin gets; empty: the public host
	Enabled    bool     // false: plain proxy
	Currency   string

	// Fetch makes pages the same for everybody, so that they may be cached: the client
	// asks for bids, by page-bids, and the gate is asked there.
	Fetch bool

	// Template gives the site's template as it is now. It may return nil, when the
	// site has no ads, and is never nil itself.
	Template func() *template.Template

	HTMLCache    string // Cache-Control of pages with slots; empty: private, no-store
	ErrorPages   bool   // inject into 4xx and 5xx answers too
	ServerTiming bool
	Preconnect   []string // origins for the Link header
	Client       ClientOptions

	SChain []auction.SChainNode
	BAdv   []string
	BCat   []string
}

// ClientOptions are what the browser client is told about a site.
type ClientOptions struct {
	GPT    string `json:"gpt"`     // page | load: who loads gpt.js
	GPTURL string `json:"gpt_url"` // where it is
	Init   string `json:"init"`    // early | dom | load
}

// Own are our own paths, compared exactly as they came, before anything is
// cleaned or decoded. A key that ends in "/" stands for everything that begins
// with it, where no longer key does. They are never proxied.
type Own map[string]http.Handler

// Config configures an [Edge].
type Config struct {
	Sites          []Site
	Consent        consent.Config
	TrustedProxies Peers
	AuctionEnabled bool // false: slots and client, no bids

	// Head is told what a page with slots says of itself, once per page that says
	// something, when its head has ended: see [HeadMeta]. The URL is the whole one,
	// with its query. It is called by the goroutine that the reader waits for, so it
	// must not block. It may be nil.
	Head func(site, url string, m HeadMeta)

	// Record is told what became of every page with slots, when it has ended. It must
	// not block. It may be nil.
	Record func(telemetry.Event)

	// Dial makes the connections to origins. Defaults to a dialer that takes at most
	// five seconds.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// BURLOn says, by provider, when the client fires burl: "creative" (default) or
	// "render".
	BURLOn map[string]string
}

// An Edge is the public listener's handler.
type Edge struct {
	config    Config
	sites     map[string]*siteProxy // by host
	own       Own
	house     *auction.House
	notices   *auction.Notifier
	transport *http.Transport // to all origins
	metrics   *Metrics
	log       *slog.Logger
}

// New returns the handler for the sites of c. The caller closes it when it serves
// no more.
func New(c Config, own Own, house *auction.House, notices *auction.Notifier, log *slog.Logger) *Edge {
	e := &Edge{
		config: c, own: own, house: house, notices: notices, log: log,
		sites:     make(map[string]*siteProxy),
		transport: newTransport(c.Dial),
		metrics:   newMetrics(),
	}
	for i := range c.Sites {
		p := newSiteProxy(&c.Sites[i], e)
		for _, host := range c.Sites[i].Hosts {
			e.sites[host] = p
		}
		e.metrics.of(p.ID)
	}
	return e
}

// Close closes the connections to origins that are idle.
func (e *Edge) Close() { e.transport.CloseIdleConnections() }

// Metrics are the edge's own figures, to be registered once.
func (e *Edge) Metrics() *Metrics { return e.metrics }

// ServeHTTP answers from one of our own paths, or from the site whose host it is.
func (e *Edge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	arrived := time.Now()
	if r.Method == http.MethodConnect || pathAndQuery(r.RequestURI) == "" {
		refuse(w, http.StatusBadRequest, "This is a web site, not a proxy.")
		return
	}
	if h := e.own.handler(rawPath(r)); h != nil {
		h.ServeHTTP(w, r)
		return
	}
	site, ok := e.sites[hostname(e.config.TrustedProxies.Host(r))]
	if !ok {
		e.metrics.misdirected.Inc()
		refuse(w, http.StatusMisdirectedRequest, "No site is configured for this host.")
		return
	}
	v := e.plan(r, site, arrived)
	v.share(r)
	e.metrics.pages.WithLabelValues(site.ID, string(v.outcome)).Inc()
	if v.hole1() {
		e.page(w, r, v)
		return
	}
	site.plain.ServeHTTP(newPlainWriter(w), withVisit(r, v))
}

// handler is who answers for a raw path: an exact key, else the longest prefix;
// nil: it is the site's.
func (o Own) handler(path string) http.Handler {
	if h, ok := o[path]; ok {
		return h
	}
	longest := ""
	for prefix := range o {
		if strings.HasSuffix(prefix, "/") && strings.HasPrefix(path, prefix) && len(prefix) > len(longest) {
			longest = prefix
		}
	}
	return o[longest] // nil for none: "" is no path
}

// page answers a navigation to a page with slots: flow A of the design, from the
// auction's start to the notices.
func (e *Edge) page(w http.ResponseWriter, r *http.Request, v *visit) {
	// A_deadline and the reader's leaving are facts of this one context. When it is
	// canceled nobody is asked any more, and nobody wins.
	ctx, cancel := context.WithDeadline(r.Context(), v.deadline())
	var p *page // nil: nothing of ours went to the reader
	defer func() { e.record(v, p) }()
	defer cancel()
	if v.outcome == outcomeRun {
		v.auction = e.house.Start(ctx, e.auctionRequest(r, v))
	}

	defer r.Body.Close() // so that nobody reads it once the request is over
	resp, err := v.site.fetch(w, r)
	v.originTook = time.Since(v.arrived)
	if err != nil {
		cancel()
		v.site.failed(w, r, err)
		return
	}
	defer resp.Body.Close()

	doc, why := v.site.injectable(resp, v.needs())
	if why != "" {
		cancel()
		e.metrics.untouched.WithLabelValues(v.site.ID, string(why)).Inc()
		v.site.passOn(w, resp)
		return
	}
	v.site.answer(w.Header(), resp, v, &doc.scripts)
	w.WriteHeader(resp.StatusCode)

	p = newPage(w, v, doc)
	if len(v.slots) > 0 {
		p.headEnds = e.tellHead(r, v.site.ID, resp.StatusCode, doc)
	}
	p.selected = e.notices.Selected // the winners, once their bids are with the reader
	p.giveUp = cancel
	err = p.stream(resp.Body)
	e.metrics.streamed(p)
	if err != nil {
		e.log.Debug("page was cut off", "site", v.site.ID, "err", err)
		panic(http.ErrAbortHandler) // the reader must see that it is not whole
	}
}

// auctionRequest is what the bidders are asked for a visit.
func (e *Edge) auctionRequest(r *http.Request, v *visit) *auction.Request {
	host := hostname(e.config.TrustedProxies.Host(r))
	return &auction.Request{
		ID:       newID(),
		Slots:    v.gptSlots(),
		Unlisted: v.unlisted,
		Section:  v.section,
		Site: auction.Site{
			ID:     v.site.ID,
			Domain: host,
			Page:   e.config.TrustedProxies.Scheme(r) + "://" + e.config.TrustedProxies.Host(r) + rawPath(r),
			Ref:    withoutQuery(r.Referer()),
			SChain: v.site.SChain, BAdv: v.site.BAdv, BCat: v.site.BCat,
		},
		Device: auction.Device{
			UA:       r.UserAgent(),
			Hints:    auction.ReadClientHints(r.Header),
			IP:       v.consent.Address(e.config.TrustedProxies.ClientAddr(r)),
			Language: primaryLanguage(r.Header.Get("Accept-Language")),
		},
		Consent:     v.consent,
		Currency:    cmp.Or(v.site.Currency, "USD"),
		Buckets:     v.template.Buckets,
		PreferDeals: v.template.PreferDeals,
	}
}

// A visit is one request to a site and what was decided about it. It is owned by
// the request's goroutine.
type visit struct {
	site       *siteProxy
	template   *template.Template // nil: no ads on the site
	arrived    time.Time          // T0
	matchTook  time.Duration
	originTook time.Duration
	path       string // as templates match it
	section    string
	slots      []deckle.Slot          // in file order, at most template.MaxSlotsPerPage
	unlisted   map[deckle.SlotID]bool // those of them that the template does not have
	outcome    outcome
	shared     bool // its page is the same for everybody
	consent    consent.Decision
	auction    *auction.Auction // nil: no bids will come
}

// deadline is A_deadline.
func (v *visit) deadline() time.Time { return v.arrived.Add(v.template.AuctionTimeout) }

// holdUntil is when the end of head stops waiting for bids.
func (v *visit) holdUntil() time.Time { return v.arrived.Add(v.template.HeadHold) }

// hasMagazine reports whether the reader plane has a slot to fill.
func (v *visit) hasMagazine() bool {
	return slices.ContainsFunc(v.slots, func(s deckle.Slot) bool { return s.Kind == deckle.Magazine })
}

func (v *visit) gptSlots() []deckle.Slot {
	var gpt []deckle.Slot
	for _, s := range v.slots {
		if s.Kind == deckle.GPT {
			gpt = append(gpt, s)
		}
	}
	return gpt
}
