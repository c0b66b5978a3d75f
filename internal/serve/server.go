package serve

import (
	"math/rand/v2"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"deckle"
	"deckle/internal/catalog"
	"deckle/internal/classify"
	"deckle/internal/publicapi"
	"deckle/internal/token"
)

// BatchPath is where browsers ask for the ads of a page.
const BatchPath = "/v1/serve/batch"

// Config is what a [Server] works with. Functions are called concurrently and must
// not block.
type Config struct {
	Market

	// Catalog is the catalog as this node knows it.
	Catalog func() *catalog.Snapshot

	// Page says what the page at a URL is about; false: nobody knows.
	Page func(site *catalog.Site, url string, now time.Time) (classify.Page, bool)

	// Tokens believes debug tokens; its key rings mint all others.
	Tokens *token.Verifier

	// Hosts are the hosts of each site's pages, by its id: lower case, without a port.
	Hosts map[string][]string

	// Base is how the reader's browser has reached us: "https://yukiblog.jp". The page
	// may be of another origin, so beacons begin with it.
	Base func(*http.Request) string

	// Address is where a request comes from, behind trusted proxies.
	Address func(*http.Request) netip.Addr

	// Ready reports whether this node may sell: its fold of the journal is warm, its
	// clock is right. Nil: always. It may not as long as the catalog has not been read.
	Ready func() bool

	// Afford reports what Reserve would and holds nothing: for [Server.Explain]. Nil:
	// everybody can pay.
	Afford func(campaign *catalog.Campaign, advertiser *catalog.Advertiser, price deckle.Money, now time.Time) bool

	// Limit is how many batches an address has. Defaults to 600 a minute, 120 at once:
	// offices and mobile networks share addresses.
	Limit publicapi.Limit

	Random func() rand.Source // for one batch; defaults to the runtime's
	Now    func() time.Time   // defaults to time.Now
}

func (c Config) withDefaults() Config {
	if c.Ready == nil {
		c.Ready = func() bool { return true }
	}
	if c.Limit == (publicapi.Limit{}) {
		c.Limit = publicapi.Limit{PerMinute: 600, Burst: 120}
	}
	if c.Random == nil {
		c.Random = func() rand.Source { return runtimeSource{} }
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// runtimeSource is the runtime's randomness, which nobody can predict.
type runtimeSource struct{}

func (runtimeSource) Uint64() uint64 { return rand.Uint64() }

// A Server answers batches. Its methods may be called concurrently.
type Server struct {
	config    Config
	limiter   *publicapi.Limiter
	pipelines sync.Pool // of *Pipeline
	metrics   *Metrics
}

// New makes a server.
func New(c Config, m *Metrics) *Server {
	c = c.withDefaults()
	return &Server{
		config: c, limiter: publicapi.NewLimiter(c.Limit), metrics: m,
		pipelines: sync.Pool{New: func() any { return NewPipeline(c.Market) }},
	}
}

// Endpoint is the handler of [BatchPath]. open gives the server, and nil while the
// store is not open: then everything but OPTIONS gets 503, and the browser keeps every
// bookmark.
func Endpoint(api *publicapi.API, open func() *Server) http.Handler {
	return api.Handler("batch", func(r *publicapi.Request) (publicapi.Answer, error) {
		s := open()
		if s == nil || !s.ready() {
			return publicapi.Answer{}, publicapi.Unavailable(retryNotReady)
		}
		return s.answer(r)
	}, http.MethodPost)
}

// retryNotReady is when to ask a node again that does not know everything yet.
const retryNotReady = 5 * time.Second

func (s *Server) ready() bool { return s.config.Catalog().Loaded() && s.config.Ready() }

// answer is flow B: a batch in, an outcome for each of its slots out.
func (s *Server) answer(r *publicapi.Request) (publicapi.Answer, error) {
	now := s.config.Now()
	if after, ok := s.limiter.Allow(s.config.Address(r.Request), now); !ok {
		return publicapi.Answer{}, publicapi.TooMany(after)
	}
	b := &Batch{}
	if err := r.ReadJSON(maxBody, b); err != nil {
		return publicapi.Answer{}, err
	}
	if err := b.validate(); err != nil {
		return publicapi.Answer{}, err
	}
	q, err := s.question(b, now)
	if err != nil {
		return publicapi.Answer{}, err
	}
	if err := s.admit(&q, r.Header.Get("Origin")); err != nil {
		return publicapi.Answer{}, err
	}
	if q.Site.Status == catalog.Suspended {
		return publicapi.Answer{}, nil
	}
	ring, ok := s.config.Tokens.Keys(q.Site.ID)
	if !ok { // its publisher has been deleted in this moment
		return publicapi.Answer{}, publicapi.UnknownPub()
	}
	if err := r.Context().Err(); err != nil { // nothing is reserved for a reader who has gone
		return publicapi.Answer{}, err
	}
	w := writer{Question: &q, ring: ring, base: s.config.Base(r.Request), page: withoutQuery(b.URL)}
	p := s.pipelines.Get().(*Pipeline)
	if b.Debug == "" {
		w.answer(p.Decide(q), nil)
	} else {
		w.answer(p.Explain(q))
	}
	s.metrics.decided(q.Site.ID, &p.decision)
	p.forget()
	s.pipelines.Put(p)
	return publicapi.Answer{Status: http.StatusOK, Body: w.out}, w.err
}

// question is what a batch asks of a site that there is.
func (s *Server) question(b *Batch, now time.Time) (Question, error) {
	q := Question{Batch: b, Catalog: s.config.Catalog(), Now: now, Random: s.config.Random()}
	var ok bool
	if q.Site, ok = q.Catalog.Site(b.Pub); !ok || s.config.Hosts[b.Pub] == nil {
		return q, publicapi.UnknownPub()
	}
	q.Page, q.Known = s.config.Page(q.Site, b.URL, now)
	return q, nil
}

// admit refuses batches that do not come from a page of the site, and debug tokens
// that we did not make.
func (s *Server) admit(q *Question, origin string) error {
	hosts := s.config.Hosts[q.Site.ID]
	switch host, err := hostOf(q.URL); {
	case err != nil:
		return err
	case !slices.Contains(hosts, host):
		return publicapi.Forbidden("page_host", "the page is not of this site")
	}
	// Browsers send it with every POST; programs need not.
	if origin != "" {
		if host, err := hostOf(origin); err != nil || !slices.Contains(hosts, host) {
			return publicapi.Forbidden("origin", "the request does not come from a page of this site")
		}
	}
	if q.Debug != "" {
		if err := s.config.Tokens.Debug(q.Debug, q.Site.ID, q.Now); err != nil {
			return publicapi.Forbidden("debug_token", "the debug token is not valid, or not any more")
		}
	}
	return nil
}

// hostOf is the host of an absolute URL as a browser writes it, without its port.
// Only the origin is looked at: browsers show pages whose paths are no escaped text,
// "/100%" for one.
func hostOf(address string) (string, error) {
	wrong := publicapi.Wrong("url", "must be an absolute http or https URL without credentials")
	scheme, rest, _ := strings.Cut(address, "://")
	if scheme != "https" && scheme != "http" || strings.ContainsFunc(address, unicode.IsControl) {
		return "", wrong
	}
	authority := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority = rest[:i]
	}
	// A backslash, which browsers take for a slash, is in no host.
	u, err := url.Parse(scheme + "://" + authority)
	if err != nil || u.Hostname() == "" || u.User != nil {
		return "", wrong
	}
	return strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")), nil
}

// withoutQuery cuts query and fragment off a URL: they may say who the reader is.
func withoutQuery(address string) string {
	if i := strings.IndexAny(address, "?#"); i >= 0 {
		return address[:i]
	}
	return address
}

// Explain says what a batch would be answered at this moment, and why. Nothing is
// reserved, minted or counted, and no host is compared: it is for the site's own
// people. A batch without a pub is of the site whose host its URL has. What is wrong
// with the batch is a [*publicapi.Error]; so is 503 while this node is not ready.
func (s *Server) Explain(b *Batch) (*Explanation, error) {
	if !s.ready() {
		return nil, publicapi.Unavailable(retryNotReady)
	}
	host, err := hostOf(b.URL)
	if err != nil {
		return nil, err
	}
	if b.Pub == "" {
		of := *b
		b, of.Pub = &of, s.siteOf(host)
		if of.Pub == "" {
			return nil, publicapi.Wrong("url", "is of no site")
		}
	}
	if err := b.validate(); err != nil {
		return nil, err
	}
	q, err := s.question(b, s.config.Now())
	if err != nil {
		return nil, err
	}
	m := s.config.Market
	m.Reserve = s.afford
	_, explained := NewPipeline(m).Explain(q)
	return explained, nil
}

func (s *Server) siteOf(host string) string {
	for site, hosts := range s.config.Hosts {
		if slices.Contains(hosts, host) {
			return site
		}
	}
	return ""
}

// afford is a [Market.Reserve] that holds nothing.
func (s *Server) afford(campaign *catalog.Campaign, advertiser *catalog.Advertiser, price deckle.Money, _ string, now time.Time) ([]string, bool) {
	return nil, s.config.Afford == nil || s.config.Afford(campaign, advertiser, price, now)
}
