package edge_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"deckle/internal/auction"
	"deckle/internal/edge"
	"deckle/internal/sim/browser"
	"deckle/internal/template"
	"deckle/web"
)

// A policyCase is a page with a policy in a real browser.
type policyCase struct {
	policy  string // Content-Security-Policy
	report  string // Content-Security-Policy-Report-Only
	head    string // of the page, with a script of the site's own; it sets window.site
	noAds   bool   // the policy leaves no way for us
	noBytes bool   // nothing of ours is in the page
	slow    bool   // only with DECKLE_SLOW
}

const (
	inline   = `<script>window.site = 1</script>`
	nonced   = `<script nonce=abc>window.site = 1</script>`
	external = `<script src=/plain/site.js></script>`
	charset  = `<meta charset=utf-8>` // hole 1 comes after it
)

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func policyCases() map[string]policyCase {
	own := hashOf("window.site = 1")
	none := policyCase{policy: "script-src 'none'", noAds: true, noBytes: true}
	return map[string]policyCase{
		"no policy":                         {head: inline, slow: true},
		"'unsafe-inline' alone":             {policy: "script-src 'self' 'unsafe-inline'", head: inline, slow: true},
		"'unsafe-inline' without our URL":   {policy: "script-src 'unsafe-inline'", head: inline, slow: true},
		"'unsafe-inline' with a nonce":      {policy: "script-src 'self' 'unsafe-inline' 'nonce-abc'", head: nonced},
		"'unsafe-inline' with a hash":       {policy: "script-src 'self' 'unsafe-inline' " + own, head: inline, slow: true},
		"a nonce alone":                     {policy: "script-src 'nonce-abc'", head: nonced, slow: true},
		"a hash alone":                      {policy: "script-src " + own, head: inline, slow: true},
		"a nonce and 'strict-dynamic'":      {policy: "script-src 'nonce-abc' 'strict-dynamic' https: 'unsafe-inline'", head: nonced},
		"a hash and 'strict-dynamic'":       {policy: "script-src " + own + " 'strict-dynamic'", head: inline, slow: true},
		"'self' alone":                      {policy: "script-src 'self'", head: external, slow: true},
		"default-src alone":                 {policy: "default-src 'self'", head: external},
		"default-src with inline":           {policy: "default-src 'self' 'unsafe-inline'", head: inline, slow: true},
		"default-src of another host":       {policy: "default-src https://cdn.example 'nonce-abc'", head: nonced, slow: true},
		"script-src-elem beside script-src": {policy: "script-src 'none'; script-src-elem 'self'", head: external, slow: true},
		"'none'":                            none,
		"default-src 'none'":                {policy: "default-src 'none'", noAds: true, noBytes: true, slow: true},
		"two policies, one nonce":           {policy: "script-src 'self' 'nonce-abc', script-src 'nonce-abc'", head: nonced, slow: true},
		"two policies, two nonces":          {policy: "script-src 'self' 'nonce-abc', script-src 'self' 'nonce-xyz'", head: external},
		"two policies, one of them free":    {policy: "script-src 'self' 'unsafe-inline', script-src 'nonce-abc'", head: nonced, slow: true},
		"reported, with a nonce":            {report: "script-src 'nonce-abc'", head: nonced, slow: true},
		"reported, 'self'":                  {report: "default-src 'self'", head: external},
		"reported, beside an enforced one":  {policy: "script-src 'self'", report: "script-src 'self' 'nonce-abc'", head: `<script nonce=abc src=/plain/site.js></script>`, slow: true},
		"reported, 'none'":                  {report: "script-src 'none'", noAds: true, noBytes: true, slow: true},
		"connect-src 'none'":                {policy: "connect-src 'none'", head: inline, slow: true},
		"Trusted Types":                     {policy: "require-trusted-types-for 'script'", head: inline, slow: true},
		"Trusted Types with names":          {policy: "require-trusted-types-for 'script'; trusted-types site; script-src 'nonce-abc'", head: nonced},
		"Trusted Types without any":         {policy: "require-trusted-types-for 'script'; trusted-types 'none'", head: inline, noAds: true, noBytes: true, slow: true},
		"sandbox":                           {policy: "sandbox allow-scripts", head: inline, noAds: true, noBytes: true, slow: true},
		"sandbox with the page's origin":    {policy: "sandbox allow-scripts allow-same-origin", head: inline, slow: true},
		"meta before us, a nonce":           {head: metaPolicy("script-src 'nonce-abc'") + charset + nonced, slow: true},
		"meta before us, 'self'":            {head: metaPolicy("script-src 'self'") + charset + external, noAds: true, noBytes: true, slow: true},
		"meta after us, a nonce":            {head: charset + metaPolicy("script-src 'nonce-abc'") + nonced, slow: true},
		"meta after us, 'self'":             {head: charset + metaPolicy("script-src 'self'") + external},
		"meta after us, 'none'":             {head: charset + inline + metaPolicy("script-src 'none'"), slow: true},
		"meta after us, Trusted Types":      {head: charset + metaPolicy("require-trusted-types-for 'script'; trusted-types site") + inline, slow: true},
		"meta and header, one nonce":        {policy: "script-src 'nonce-abc'", head: charset + metaPolicy("script-src 'nonce-abc' 'self'") + nonced, slow: true},
		"meta and header, two nonces":       {policy: "script-src 'self' 'nonce-abc'", head: charset + metaPolicy("script-src 'self' 'nonce-xyz'") + external, slow: true},
	}
}

func metaPolicy(policy string) string {
	return fmt.Sprintf(`<meta http-equiv="Content-Security-Policy" content="%s">`, policy)
}

// A policyWorld is a site whose pages are the cases, by path, and what browsers have
// reported about each.
type policyWorld struct {
	url   string
	cases map[string]policyCase // by path

	mu      sync.Mutex
	reports map[string][]string // violated directive and blocked URL, by path
	arrived chan struct{}       // has a token when there is one more
}

func newPolicyWorld(t *testing.T) *policyWorld {
	t.Helper()
	p := &policyWorld{cases: map[string]policyCase{}, reports: map[string][]string{}, arrived: make(chan struct{}, 1)}
	s := setup{
		sockets: true, client: web.Client(),
		site: func(s *edge.Site) { s.Hosts = []string{"127.0.0.1"} },
		// The machine may be busy: it is about policies here, not about time.
		settings: func(s *template.Settings) { s.AuctionTimeout, s.HeadHold = 10*time.Second, 10*time.Second },
		provider: func(p *auction.Provider) { p.Timeout = 10 * time.Second },
	}
	w := newWorld(t, s, p.origin, bids(0, "1"))
	public := httptest.NewServer(w.edge)
	t.Cleanup(public.Close)
	p.url = public.URL
	return p
}

func (p *policyWorld) origin(w http.ResponseWriter, r *http.Request) {
	if path, ok := strings.CutPrefix(r.URL.Path, "/plain/report"); ok {
		p.report(path, r)
		return
	}
	if r.URL.Path == "/plain/site.js" {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = io.WriteString(w, "window.site = 1")
		return
	}
	c, ok := p.cases[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	// media-src is how the test knows that reports arrive: see mustReportNothing.
	for name, policy := range map[string]string{"Content-Security-Policy": c.policy, "Content-Security-Policy-Report-Only": c.report} {
		if policy != "" {
			also := "; media-src 'none'; report-uri /plain/report" + r.URL.Path
			w.Header().Set(name, strings.ReplaceAll(policy, ",", also+",")+also)
		}
	}
	w.Header().Set("Content-Type", "text/html")
	if !strings.Contains(c.head, charset) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
	}
	fmt.Fprintf(w, `<!doctype html><html><head>%s</head><body><div id="div-top"></div></body></html>`, c.head)
}

func (p *policyWorld) report(path string, r *http.Request) {
	var body struct {
		Report struct {
			Directive string `json:"effective-directive"`
			Blocked   string `json:"blocked-uri"`
		} `json:"csp-report"`
	}
	if json.NewDecoder(r.Body).Decode(&body) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reports[path] = append(p.reports[path], body.Report.Directive+" "+body.Report.Blocked)
	select {
	case p.arrived <- struct{}{}:
	default:
	}
}

// TestPoliciesInABrowser opens a page of every kind of policy in Chromium: the site's
// own scripts run, ads are shown wherever the policy can allow it, and nobody gets a
// report because of us.
func TestPoliciesInABrowser(t *testing.T) {
	t.Parallel()
	p := newPolicyWorld(t)
	cases := policyCases()
	n := 0
	paths := map[string]string{}
	for name, c := range cases {
		n++
		paths[name] = fmt.Sprintf("/case-%d", n)
		p.cases[paths[name]] = c
	}
	b := browser.Start(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.slow && os.Getenv("DECKLE_SLOW") == "" {
				t.Skip("DECKLE_SLOW is not set")
			}
			path := paths[name]
			page := b.Open(t, p.url+path, browser.Desktop())
			if c.head != "" {
				page.WaitFor(`window.site === 1`)
			}
			if !c.noAds {
				page.WaitFor(`Array.isArray(window.__ts_ad_slots) && window.__ts_bids?.top?.hb_pb === '1.00' &&
					window.deckle && !Array.isArray(window.deckle.cmd) && !document.querySelector('[data-deckle]')`)
				if !browser.Eval[bool](page, `fetch(location.origin + '/plain/site.js').then(({ok}) => ok, () => false)`) {
					t.Error("the page may not ask its own host")
				}
			}
			if c.noBytes {
				ours := browser.Eval[bool](page, `document.documentElement.outerHTML.includes('deckle')`)
				if ours {
					t.Error("something of ours is in the page")
				}
			}
			p.mustReportNothing(t, page, c, path)
			for _, m := range page.Console() {
				if m.IsException() {
					t.Errorf("the page saw an error: %s", m)
				}
			}
		})
	}
}

// mustReportNothing makes the page violate its policy in a way of its own, waits for
// the report of that, and looks what had come before.
func (p *policyWorld) mustReportNothing(t *testing.T, page *browser.Page, c policyCase, path string) {
	t.Helper()
	if c.policy+c.report == "" || strings.Contains(c.policy, "sandbox") && c.noAds {
		return
	}
	browser.Eval[bool](page, `(new Audio('/plain/x.mp3').load(), true)`)
	patience := time.After(browser.Patience)
	for {
		p.mu.Lock()
		reports := append([]string(nil), p.reports[path]...)
		p.mu.Unlock()
		arrived := false
		for _, r := range reports {
			arrived = arrived || strings.HasPrefix(r, "media-src")
		}
		if arrived {
			for _, r := range reports {
				if !strings.HasPrefix(r, "media-src") && !strings.HasPrefix(r, "img-src") { // the browser asks for an icon
					t.Errorf("a violation was reported: %s", r)
				}
			}
			return
		}
		select {
		case <-p.arrived:
		case <-patience:
			t.Fatal("no report has arrived")
		}
	}
}
