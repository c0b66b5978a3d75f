package edge_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckle"
	"deckle/internal/auction"
	"deckle/internal/consent"
	"deckle/internal/edge"
	"deckle/internal/template"
)

// bidRequest is what a bidder reads of the OpenRTB request.
type bidRequest struct {
	ID  string
	Imp []struct {
		ID, TagID   string
		BidFloor    json.Number
		BidFloorCur string
	}
	Site   struct{ Domain, Page, Ref string }
	Device struct{ UA, IP, IPv6, Language string }
	User   struct{ Consent string }
	Regs   struct {
		GDPR json.Number
		Ext  struct{ GPC string }
	}
	TMax            int64
	Cur, BAdv, BCat []string
	Source          struct {
		SChain struct {
			Nodes []struct{ ASI, SID string }
		}
	}
}

// asking makes the edge ask its bidder for a page, and returns what the bidder
// got; nil: it was not asked.
func asking(t *testing.T, s setup, r *http.Request) (got *bidRequest) {
	t.Helper()
	bubble(t, func(t *testing.T) {
		w := newWorld(t, s, html(page), func(w http.ResponseWriter, r *http.Request) {
			got = new(bidRequest)
			if err := json.NewDecoder(r.Body).Decode(got); err != nil {
				t.Errorf("bid request: %v", err)
			}
			w.WriteHeader(http.StatusNoContent)
		})
		if a := w.get(t.Context(), r); withoutOurs(a.body()) != page {
			t.Errorf("page = %q", a.body())
		}
	})
	return got
}

const (
	// consentToAll and consentToTwo are TC strings with consent to all purposes and
	// special feature 1, and to purposes 1 and 2 alone.
	consentToAll = "CQdZmkAQdZmkAAfABAENCWEoAP_gAEPgAAYgHJwBQAaABMAYyA0oByYAmQAQAmAAAAAA.IAAA.YAAAAAAAAAAA"
	consentToTwo = "CQdZmkAQdZmkAAfABAENCWEgAMAAAAAAAAYgGlQAQGlAAAAA.IAAA.YAAAAAAAAAAA"
)

// What bidders learn of a reader, for every kind of consent.
func TestConsentInTheBidRequest(t *testing.T) {
	const (
		peer4, full4, cut4 = "198.51.100.77:5", "198.51.100.77", "198.51.100.0"
		peer6, full6, cut6 = "[2001:db8:1:2::7]:5", "2001:db8:1:2::7", "2001:db8:1::"
	)
	other := consent.Config{UnknownPlace: consent.PlaceOther}
	for name, c := range map[string]struct {
		config              consent.Config
		cookie, gpcHeader   string
		asked               bool
		gdpr, consent, gpc  string
		wholeAddressAllowed bool
	}{
		"no signal":               {other, "", "", true, "0", "", "", true},
		"addresses cut":           {consent.Config{UnknownPlace: consent.PlaceOther, TruncateOther: true}, "", "", true, "0", "", "", false},
		"GPC":                     {other, "", "1", true, "0", "", "1", false},
		"consent to all":          {other, consentToAll, "", true, "1", consentToAll, "", true},
		"consent to 1 and 2":      {other, consentToTwo, "", true, "1", consentToTwo, "", false},
		"consent to all and GPC":  {other, consentToAll, "1", true, "1", consentToAll, "1", false},
		"refused":                 {config: other, cookie: refused},
		"unreadable":              {config: other, cookie: "nonsense"},
		"place unknown, no CMP":   {config: consent.Config{}},
		"GPC, and it is to stop":  {config: consent.Config{UnknownPlace: consent.PlaceOther, StopOnGPC: true}, gpcHeader: "1"},
		"place unknown, consents": {consent.Config{}, consentToTwo, "", true, "1", consentToTwo, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, ip := range []struct{ peer, full, cut string }{{peer4, full4, cut4}, {peer6, full6, cut6}} {
				r := navigation("/x")
				r.RemoteAddr = ip.peer
				if c.cookie != "" {
					r.Header.Set("Cookie", "euconsent-v2="+c.cookie)
				}
				if c.gpcHeader != "" {
					r.Header.Set("Sec-GPC", c.gpcHeader)
				}
				got := asking(t, setup{config: func(e *edge.Config) { e.Consent = c.config }}, r)
				if (got != nil) != c.asked {
					t.Fatalf("asked: %v, want %v", got != nil, c.asked)
				}
				if got == nil {
					continue
				}
				if got.Regs.GDPR.String() != c.gdpr || got.User.Consent != c.consent || got.Regs.Ext.GPC != c.gpc {
					t.Errorf("gdpr %q, consent %q, gpc %q", got.Regs.GDPR, got.User.Consent, got.Regs.Ext.GPC)
				}
				want := ip.cut
				if c.wholeAddressAllowed {
					want = ip.full
				}
				if got := got.Device.IP + got.Device.IPv6; got != want {
					t.Errorf("address of %s is %q, want %q", ip.peer, got, want)
				}
			}
		})
	}
}

// Who the reader is and which page it is, as the public sees them: a proxy in
// front counts only where it is trusted, and no query leaves.
func TestReaderAndPageInTheBidRequest(t *testing.T) {
	const stranger, proxy = "203.0.113.5:9", "192.0.2.7:1234" // the second one is trusted
	type header = map[string]string
	for name, c := range map[string]struct {
		peer, path, host string
		header           header
		ip, pageURL, ref string
	}{
		"direct": {stranger, "/a/b?q=secret", "www.test", header{"Referer": "https://r.test/p?id=1#f"}, "203.0.113.5", "http://www.test/a/b", "https://r.test/p"},
		"a referrer with a fragment alone": {
			stranger, "/x", "www.test", header{"Referer": "https://r.test/p#f"}, "203.0.113.5", "http://www.test/x", "https://r.test/p",
		},
		"raw path, host with port": {stranger, "/a//b%2Fc?", "www.test:8080", nil, "203.0.113.5", "http://www.test:8080/a//b%2Fc", ""},
		"absolute form":            {stranger, "http://www.test/y?z", "www.test", nil, "203.0.113.5", "http://www.test/y", ""},
		"a stranger forwards": {
			stranger, "/x", "www.test",
			header{"X-Forwarded-For": "1.2.3.4", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "other.test"},
			"203.0.113.5", "http://www.test/x", "",
		},
		"a trusted proxy forwards": {
			proxy, "/x", "internal",
			header{"X-Forwarded-For": "1.2.3.4", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "www.test"},
			"1.2.3.4", "https://www.test/x", "",
		},
		"the reader behind it forwards, too":   {proxy, "/x", "www.test", header{"X-Forwarded-For": "9.9.9.9, 1.2.3.4"}, "1.2.3.4", "http://www.test/x", ""},
		"two trusted proxies":                  {proxy, "/x", "www.test", header{"X-Forwarded-For": "1.2.3.4 , 192.0.2.9"}, "1.2.3.4", "http://www.test/x", ""},
		"two lines":                            {proxy, "/x", "www.test", header{"X-Forwarded-For": "9.9.9.9|1.2.3.4"}, "1.2.3.4", "http://www.test/x", ""},
		"a trusted proxy in IPv6":              {"[::ffff:192.0.2.7]:9", "/x", "www.test", header{"X-Forwarded-For": "1.2.3.4, ::ffff:192.0.2.9"}, "1.2.3.4", "http://www.test/x", ""},
		"nobody but trusted proxies":           {proxy, "/x", "www.test", header{"X-Forwarded-For": "192.0.2.8,192.0.2.9"}, "192.0.2.8", "http://www.test/x", ""},
		"an address that is none":              {proxy, "/x", "www.test", header{"X-Forwarded-For": "1.2.3.4, unknown"}, "192.0.2.7", "http://www.test/x", ""},
		"a trusted proxy with an odd scheme":   {proxy, "/x", "www.test", header{"X-Forwarded-Proto": "javascript"}, "192.0.2.7", "http://www.test/x", ""},
		"an IPv4 address in an IPv6 one":       {"[::ffff:203.0.113.5]:9", "/x", "www.test", nil, "203.0.113.5", "http://www.test/x", ""},
		"forwarded, an IPv4 address in a IPv6": {proxy, "/x", "www.test", header{"X-Forwarded-For": "::ffff:1.2.3.4"}, "1.2.3.4", "http://www.test/x", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := navigation(strings.TrimPrefix(c.path, "http://www.test"))
			r.RequestURI = c.path
			r.RemoteAddr, r.Host = c.peer, c.host
			for k, v := range c.header {
				r.Header[k] = strings.Split(v, "|") // lines
			}
			got := asking(t, setup{config: func(e *edge.Config) {
				e.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
			}}, r)
			if got == nil {
				t.Fatal("nobody was asked")
			}
			if got.Device.IP != c.ip || got.Site.Page != c.pageURL || got.Site.Ref != c.ref || got.Site.Domain != "www.test" {
				t.Errorf("ip %q, page %q, ref %q, domain %q", got.Device.IP, got.Site.Page, got.Site.Ref, got.Site.Domain)
			}
			if got.Device.UA != r.UserAgent() {
				t.Errorf("ua %q", got.Device.UA)
			}
		})
	}
}

// Of the languages that a browser lists, the first one's primary subtag.
func TestLanguageInTheBidRequest(t *testing.T) {
	for accept, want := range map[string]string{
		"de-CH,de;q=0.9,en;q=0.8": "de", "EN": "en", "fil-PH": "fil", " fr ; q=0.5": "fr", "zh-Hant-TW": "zh",
		"": "", "*": "", "x": "", "deutsch": "", "d1": "", "d\xe9": "",
	} {
		r := navigation("/x")
		r.Header.Set("Accept-Language", accept)
		if got := asking(t, setup{}, r); got.Device.Language != want {
			t.Errorf("%q became %q, want %q", accept, got.Device.Language, want)
		}
	}
}

// A site's own settings reach its bidders: whom it blocks, where it stands in
// the supply chain, and what its floors are in.
func TestSiteInTheBidRequest(t *testing.T) {
	s := setup{
		site: func(s *edge.Site) {
			s.Currency = "EUR"
			s.BAdv, s.BCat = []string{"blocked.test"}, []string{"IAB7"}
			s.SChain = []auction.SChainNode{{ASI: "publisher.test", SID: "17"}}
		},
		slots: []deckle.Slot{slot("top"), {
			ID: "mag", Kind: deckle.Magazine, DivID: "m", Formats: []deckle.Size{{W: 300, H: 250}}, Prebid: deckle.PrebidParams{StoredRequest: "mag"},
		}, slot("side")},
	}
	s.slots[0].Floor = 1_250_000
	for range s.slots {
		s.patterns = append(s.patterns, template.Patterns{Include: []string{"/**"}})
	}
	got := asking(t, s, navigation("/news/x"))

	if d := cmp.Diff([][]string{{"EUR"}, {"blocked.test"}, {"IAB7"}}, [][]string{got.Cur, got.BAdv, got.BCat}); d != "" {
		t.Errorf("cur, badv, bcat: %s", d)
	}
	if nodes := got.Source.SChain.Nodes; len(nodes) != 1 || nodes[0].ASI != "publisher.test" || nodes[0].SID != "17" {
		t.Errorf("schain = %+v", nodes)
	}
	if len(got.Imp) != 2 || got.Imp[0].ID != "top" || got.Imp[1].ID != "side" {
		t.Fatalf("imps = %+v, want one for each GPT slot", got.Imp)
	}
	if i := got.Imp[0]; i.BidFloor != "1.25" || i.BidFloorCur != "EUR" || i.TagID != "/1/news/top" {
		t.Errorf("imp = %+v", i)
	}
	if len(got.ID) < 20 {
		t.Errorf("id = %q", got.ID)
	}
}

func TestCurrencyIsUSDByDefault(t *testing.T) {
	got := asking(t, setup{site: func(s *edge.Site) { s.Currency = "" }}, navigation("/x"))
	if !slices.Equal(got.Cur, []string{"USD"}) {
		t.Errorf("cur = %q", got.Cur)
	}
}

// No bidder is told more time than there is.
func TestTMax(t *testing.T) {
	for timeout, want := range map[time.Duration]int64{time.Second: 500, 500 * ms: 500, 200 * ms: 200} {
		got := asking(t, setup{provider: func(p *auction.Provider) { p.Timeout = timeout }}, navigation("/x"))
		if got.TMax != want {
			t.Errorf("tmax = %d for a provider's %v, want %d", got.TMax, timeout, want)
		}
	}
}

// What the template says about winners: deals first, and the steps of hb_pb.
func TestTemplateChoosesTheWinner(t *testing.T) {
	low, _ := deckle.Granularity("low")
	for name, c := range map[string]struct {
		settings func(*template.Settings)
		want     string
	}{
		"the highest bid": {nil, "3.70"},
		"deals first":     {func(s *template.Settings) { s.PreferDeals = true }, "2.30"},
		"low granularity": {func(s *template.Settings) { s.Buckets = low }, "3.50"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{settings: c.settings}, html(page), func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					fmt.Fprint(w, `{"id":"1","cur":"USD","seatbid":[{"seat":"s","bid":[`+
						`{"id":"a","impid":"top","price":2.3,"dealid":"d","adm":"<b>","w":300,"h":250},`+
						`{"id":"b","impid":"top","price":3.72,"adm":"<b>","w":300,"h":250}]}]}`)
				})
				var won bidsBlock
				w.get(t.Context(), navigation("/x")).block(t, "bids", &won)
				if got := won["top"]["hb_pb"]; got != c.want {
					t.Errorf("hb_pb = %v, want %s", got, c.want)
				}
			})
		})
	}
}
