package config

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/big"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"deckle"
	"deckle/internal/auction"
)

// maxFileBytes bounds both kinds of file. 2,000 slots with 50 patterns of 256
// bytes each are less.
const maxFileBytes = 32 << 20

const (
	defaultTimeout = time.Second
	maxTimeout     = 10 * time.Second // of an auction: a page is not held for longer
)

// Load reads a deckle.toml. It reports everything that is wrong with the file at
// once, in the order of its lines; the configuration is nil if an error is among
// that.
func Load(path string) (*Config, Problems) {
	data, err := readFile(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	c, d := parse(path, data)
	if d.invalid {
		return nil, d.problems
	}
	return c, d.problems
}

// unreadable is the problem of a file of which nothing can be read.
func unreadable(path string, err error) Problems {
	return Problems{{Severity: Error, File: path, Msg: err.Error()}}
}

// readFile reads a regular file of bounded size. Its errors name the path.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // to open a pipe could block
		return nil, fmt.Errorf("%s is not a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("%s is larger than %d MiB", path, maxFileBytes>>20)
	}
	return data, nil
}

// parse reads the text of a deckle.toml that stands at path. With errors among
// the document's problems the configuration is what could be read beside them.
func parse(path string, data []byte) (*Config, *document) {
	c := &Config{File: path}
	d, complete := parseDocument(path, data)
	if d.hasSlots() && !d.hasSites() {
		d.mistaken("template file", "name the deckle.toml whose [[site]].templates names it")
		return c, d
	}
	if complete {
		l := loader{doc: d, folder: filepath.Dir(path), claimed: map[string]bool{}}
		l.read(c)
		l.refuseUnbuilt(c)
		l.cross(c)
	}
	d.problems.sort()
	return c, d
}

// A loader reads one deckle.toml into a Config.
type loader struct {
	doc    *document
	folder string // of the file; relative paths start there

	// claimed are the ids and hosts that have been given to a site.
	claimed map[string]bool
}

// unclaimed is the check that no two sites have the same id or host.
func (l loader) unclaimed(what string) check {
	return func(s string) (string, *fault) {
		if l.claimed[what+" "+s] {
			return "", faultf("give each site its own", "the %s %q is taken already, further up", what, s)
		}
		l.claimed[what+" "+s] = true
		return s, nil
	}
}

// read reads every table of the file, each in the order of its keys.
func (l loader) read(c *Config) {
	t := l.doc.table()
	c.Store = l.store(t.sub("store"))
	c.Server = l.server(t.sub("server"), filepath.Join(c.Store.DataDir, "acme"))
	c.Admin = l.admin(t.sub("admin"))
	if !t.has("site") {
		t.missing("site", "add a [[site]] with id, hosts and origin")
	}
	for _, s := range t.tables("site") {
		c.Sites = append(c.Sites, l.site(s))
	}
	c.Auction = l.auction(t.sub("auction"))
	i := t.sub("integrations")
	c.Integrations = Integrations{Prebid: l.prebid(i.sub("prebid")), APS: l.aps(i.sub("aps"))}
	i.close()
	c.Consent = l.consent(t.sub("consent"))
	c.Identity = l.identity(t.sub("identity"))
	c.Reader = l.reader(t.sub("reader"))
	t.close()
}

// file is the check of a file that has to be there, secret that of a secret one.
func (l loader) file(t *table, key string) string { return t.str(key, "", in(l.folder), isFile) }

func (l loader) secret(t *table, key string) string { return t.str(key, "", in(l.folder), isSecret) }

func (l loader) server(t *table, acmeCache string) Server {
	defer t.close()
	s := Server{
		Listen:        t.str("listen", ":8080", isListen),
		AdminListen:   t.str("admin_listen", "127.0.0.1:8081", isListen),
		TLSCert:       l.file(t, "tls_cert"),
		TLSKey:        l.secret(t, "tls_key"),
		ACMEHosts:     t.strs("acme_hosts", nil, isHost),
		ACMEDirectory: t.str("acme_directory", "https://acme-v02.api.letsencrypt.org/directory", isURL),
		ACMECache:     t.str("acme_cache", "", in(l.folder)),
		HTTP3:         t.boolean("http3", false),
		DrainTimeout:  t.duration("drain_timeout", 30*time.Second, 0, 10*time.Minute),
	}
	if s.ACMECache == "" {
		s.ACMECache = acmeCache
	}
	for _, p := range t.strs("trusted_proxies", nil, isCIDR) {
		s.TrustedProxies = append(s.TrustedProxies, netip.MustParsePrefix(p))
	}
	level := t.oneOf("log_level", "info", "debug", "warn", "error")
	if err := s.LogLevel.UnmarshalText([]byte(level)); err != nil {
		s.LogLevel = slog.LevelInfo // out of reach: oneOf names slog's own levels
	}
	return s
}

func (l loader) admin(t *table) Admin {
	defer t.close()
	return Admin{
		PasswordFile: l.secret(t, "password_file"),
		APIKeysFile:  l.secret(t, "api_keys_file"),
	}
}

func (l loader) site(t *table) Site {
	defer t.close()
	s := Site{
		ID:           t.required("id", `name the site, like "yuki-site"`, isID, l.unclaimed("id")),
		Hosts:        t.requiredStrs("hosts", `list what readers ask for, like ["www.example.com"]`, isHost, l.unclaimed("host")),
		Origin:       l.origin(t),
		HostHeader:   t.str("host_header", "", isHostPort),
		Currency:     t.str("currency", "USD", isCurrency),
		Templates:    t.str("templates", filepath.Join(l.folder, "creative-opportunities.toml"), notEmpty, in(l.folder)),
		Enabled:      t.boolean("enabled", true),
		Bids:         t.oneOf("bids", "inline", "fetch"),
		HTMLCache:    t.str("html_cache", "private, no-store", isPrivate),
		AdServer:     deckle.AdServer(t.oneOf("ad_server", string(deckle.GAM), string(deckle.NoAdServer))),
		GPT:          t.oneOf("gpt", "page", "load"),
		GPTURL:       t.str("gpt_url", "https://securepubads.g.doubleclick.net/tag/js/gpt.js", isScriptURL),
		Init:         t.oneOf("init", "early", "dom", "load"),
		ErrorPages:   t.boolean("error_pages", false),
		ServerTiming: t.boolean("server_timing", false),
		RUMSample:    t.share("rum_sample", 0),
		Preconnect:   t.strs("preconnect", nil, isOrigin),
		BAdv:         t.strs("badv", nil, isHost),
		BCat:         t.strs("bcat", nil, isPlain),
		DefaultFloor: t.cpm("default_floor"),
	}
	for _, n := range t.tables("schain") {
		s.SChain = append(s.SChain, auction.SChainNode{ASI: n.required("asi", "the domain of the seller's system", isHost), SID: n.required("sid", "the seller's id there", isPlain)})
		n.close()
	}
	return s
}

// origin reads a site's origin. An empty one means a tag-only site.
func (l loader) origin(t *table) *url.URL {
	if !t.has("origin") {
		t.missing("origin", `where the site itself answers, like "http://127.0.0.1:9000"`)
	}
	return read(t, "origin", &url.URL{}, "a string", stringKind, func(v *value) (*url.URL, *fault) {
		if v.text == "" {
			return &url.URL{}, nil
		}
		return originURL(v.text)
	})
}

func (l loader) auction(t *table) Auction {
	defer t.close()
	a := Auction{
		Enabled:       t.boolean("enabled", true),
		Timeout:       t.millis("timeout_ms", defaultTimeout, time.Millisecond, maxTimeout),
		Providers:     t.strs("providers", []string{"prebid"}, isProvider, once()),
		Endpoint:      t.boolean("endpoint", false),
		ClientParams:  t.boolean("client_params", false),
		ExportFile:    t.str("export_file", "", in(l.folder)),
		DeadlineSlack: t.millis("deadline_slack_ms", 0, 0, maxTimeout),
		BidAdjustment: rats(t.sub("bid_adjustment"), isPlain),
	}
	c := t.sub("currency")
	a.Currency = Currency{
		Base:  c.str("base", "USD", isCurrency),
		Date:  date(c, "date"),
		Rates: rats(c.sub("rates"), isCurrency),
	}
	if len(a.Currency.Rates) > 0 && !c.has("date") {
		c.missing("date", `the day the rates are of, like "2026-11-30"`)
	}
	c.close()
	return a
}

func isProvider(s string) (string, *fault) {
	if s != "prebid" && s != "aps" {
		return "", faultf("must be one of: prebid, aps", "%q is not known", s)
	}
	return s, nil
}

// rats reads a table of factors, whose keys have to pass a check.
func rats(t *table, key check) map[string]*big.Rat {
	out := map[string]*big.Rat{}
	t.free(func(name string, v *value) {
		path := join(t.path, name)
		if _, bad := key(name); bad != nil {
			t.doc.errorf(v.key, path, bad.remedy, "%s", bad.msg)
		}
		if r, ok := convertAt(t.doc, path, v, `a number, or a string like "1.08"`, exactKind, factor); ok {
			out[name] = r
		}
	})
	return out
}

// date reads a day.
func date(t *table, key string) time.Time {
	return read(t, key, time.Time{}, `a string like "2026-11-30"`, stringKind, func(v *value) (time.Time, *fault) {
		day, err := time.Parse(time.DateOnly, v.text)
		if err != nil {
			return day, faultf(`write it like "2026-11-30"`, "%q is not a date", v.text)
		}
		return day, nil
	})
}

func (l loader) prebid(t *table) Prebid {
	defer t.close()
	return Prebid{
		ServerURL:      t.str("server_url", "http://127.0.0.1:8000", isURL),
		AccountID:      t.str("account_id", "", isPlain),
		Timeout:        t.millis("timeout_ms", time.Second, time.Millisecond, maxTimeout),
		FireNURLAtEdge: t.boolean("fire_nurl_at_edge", true),
		BURLOn:         t.oneOf("burl_on", "creative", "render"),
		LURL:           t.boolean("lurl", false),
		Cache:          t.boolean("cache", false),
		ForwardCookies: t.strs("forward_cookies", nil, isToken),
		Bidders:        bidders(t.sub("bidders")),
	}
}

// Ids in the Global Vendor List: TCF strings have 16 bits for one.
const (
	maxGVL = 1<<16 - 1
	apsGVL = 793 // Amazon's
)

// bidders reads what consent needs to know of each bidder.
func bidders(t *table) map[string]PrebidBidder {
	out := map[string]PrebidBidder{}
	t.free(func(name string, _ *value) {
		b := t.sub(name)
		out[name] = PrebidBidder{GVL: b.integer("gvl", 0, 1, maxGVL), Sale: b.boolean("sale", false)}
		b.close()
	})
	return out
}

// apsEndpoint is where APS speaks OpenRTB.
const apsEndpoint = "https://web.ads.aps.amazon-adsystem.com/e/pb/bid"

func (l loader) aps(t *table) APS {
	defer t.close()
	return APS{
		Endpoint:        t.str("endpoint", apsEndpoint, isURL, isOpenRTB),
		AccountID:       t.str("account_id", "", isPlain),
		Timeout:         t.millis("timeout_ms", 800*time.Millisecond, time.Millisecond, maxTimeout),
		ScriptCreatives: t.boolean("script_creatives", false),
		GVL:             t.integer("gvl", apsGVL, 1, maxGVL),
	}
}

// isOpenRTB refuses the endpoint of APS whose prices nobody but Google reads.
func isOpenRTB(s string) (string, *fault) {
	if strings.HasSuffix(strings.TrimRight(s, "/"), "/e/dtb/bid") {
		return "", faultf("use "+apsEndpoint, "/e/dtb/bid answers with opaque price codes, which no auction can compare")
	}
	return s, nil
}

func (l loader) consent(t *table) Consent {
	defer t.close()
	c := Consent{
		TCFCookies:     t.strs("tcf_cookies", []string{"euconsent-v2"}, isToken),
		UnknownPlace:   t.oneOf("unknown_place", "gdpr", "other"),
		USOptOut:       t.oneOf("us_optout", "restrict", "stop"),
		GeoFile:        l.file(t, "geo_file"),
		GVLFile:        l.file(t, "gvl_file"),
		UnlistedBidder: t.oneOf("unlisted_bidder", "deny", "allow"),
		OtherAddress:   t.oneOf("other_address", "full", "truncated"),
	}
	g := t.sub("geo_headers")
	c.GeoHeaders = GeoHeaders{Country: g.str("country", "", isToken), Region: g.str("region", "", isToken)}
	g.close()
	return c
}

func (l loader) identity(t *table) Identity {
	defer t.close()
	i := Identity{
		Enabled:    t.boolean("enabled", false),
		KeyFile:    l.secret(t, "key_file"),
		EIDCookies: map[string]string{},
	}
	e := t.sub("eid_cookies")
	e.free(func(source string, _ *value) { i.EIDCookies[source] = e.str(source, "", isToken) })
	return i
}

func (l loader) reader(t *table) Reader {
	defer t.close()
	const most = 30 * time.Minute // of a beacon's window, by contract
	r := Reader{
		BeaconWindow:     t.duration("beacon_window", 3*time.Minute, time.Second, most),
		ClickWindow:      t.duration("click_window", 3*time.Minute, time.Second, most),
		FoldWindow:       t.duration("fold_window", 30*time.Minute, time.Second, 24*time.Hour),
		MaxSkew:          t.duration("max_skew", 2*time.Minute, time.Second, most),
		EngagementWindow: t.oneOf("engagement_window", "decay", "1h"),
		Classifier:       t.oneOf("classifier", "builtin", "openai"),
	}
	o := t.sub("openai")
	r.OpenAI = OpenAI{URL: o.str("url", "", isURL), Model: o.str("model", "", isPlain), KeyFile: l.secret(o, "key_file")}
	o.close()
	return r
}

// defaultCluster is the name of a cluster that has none.
const defaultCluster = "deckle"

func (l loader) store(t *table) Store {
	defer t.close()
	s := Store{
		Mode:              t.oneOf("mode", "embedded", "clustered", "external"),
		DataDir:           t.str("data_dir", filepath.Join(l.folder, "data"), notEmpty, in(l.folder)),
		Archive:           t.str("archive", ""),
		EncryptionKeyFile: l.secret(t, "encryption_key_file"),
	}
	c := t.sub("cluster")
	s.Cluster = Cluster{
		Name:       c.str("name", defaultCluster, isPlain),
		Node:       c.str("node", "", isPlain),
		Listen:     c.str("listen", "", isListen),
		Routes:     c.strs("routes", nil, isPlain),
		TLSCert:    l.file(c, "tls_cert"),
		TLSKey:     l.secret(c, "tls_key"),
		TLSCA:      l.file(c, "tls_ca"),
		SecretFile: l.secret(c, "secret_file"),
	}
	c.close()
	e := t.sub("external")
	s.External = External{
		URLs:            e.strs("urls", nil, isPlain),
		CredentialsFile: l.secret(e, "credentials_file"),
		TLSCA:           l.file(e, "tls_ca"),
	}
	e.close()
	return s
}

// errorAt reports an error about what has been read under a path.
func (l loader) errorAt(path, remedy, format string, args ...any) {
	l.doc.errorf(l.doc.at(path), path, remedy, format, args...)
}

// warnAt reports a warning about what has been read under a path.
func (l loader) warnAt(path, remedy, format string, args ...any) {
	l.doc.warnf(l.doc.at(path), path, remedy, format, args...)
}

// cross checks what no key can say alone.
func (l loader) cross(c *Config) {
	l.crossServer(&c.Server)
	for i := range c.Sites {
		l.crossGPT(fmt.Sprintf("site[%d].gpt_url", i), c.Sites[i].GPTURL)
	}
	l.crossCurrency(c)
	l.crossProviders(c)
	l.crossSlack(c)
	l.crossStore(&c.Store)
	if len(c.Consent.TCFCookies) == 0 && !l.doc.faulty("consent.tcf_cookies[0]") {
		l.errorAt("consent.tcf_cookies", `usually ["euconsent-v2"]`, "names no cookie: no TC string could ever be read")
	}
}

func (l loader) crossServer(s *Server) {
	if overlap(s.Listen, s.AdminListen) {
		l.errorAt("server.admin_listen", "give it a port of its own", "is the public listener, %s", s.Listen)
	}
	if !isLoopback(s.AdminListen) {
		l.warnAt("server.admin_listen", `bind it to 127.0.0.1, or see that only you reach it`, "%s can be reached from other machines", s.AdminListen)
	}
	if (s.TLSCert == "") != (s.TLSKey == "") && !l.doc.faulty("server.tls_cert") && !l.doc.faulty("server.tls_key") {
		l.errorAt("server.tls_cert", "give both or none", "tls_cert and tls_key belong together")
	}
	if s.TLSCert != "" && len(s.ACMEHosts) > 0 {
		l.errorAt("server.acme_hosts", "leave one of them out", "tls_cert is there already, and only one can be used")
	}
	if _, port, err := net.SplitHostPort(s.Listen); err == nil && len(s.ACMEHosts) > 0 && port != "443" {
		l.warnAt("server.acme_hosts", `listen on ":443", or forward that port`, "the certificate authority asks back at port 443, and the public listener is %s", s.Listen)
	}
	if s.HTTP3 && s.TLSCert == "" && len(s.ACMEHosts) == 0 && !l.doc.faulty("server.tls_cert") && !l.doc.faulty("server.acme_hosts") {
		l.errorAt("server.http3", "give tls_cert and tls_key, or acme_hosts", "HTTP/3 is TLS always, and there is no certificate")
	}
	for _, p := range s.TrustedProxies {
		if p.Bits() == 0 {
			l.warnAt("server.trusted_proxies", "name the proxies' own addresses", "%s believes the X-Forwarded headers of everybody", p)
		}
	}
}

// overlap reports whether two listeners would want the same socket.
func overlap(a, b string) bool {
	hostA, portA, _ := net.SplitHostPort(a)
	hostB, portB, _ := net.SplitHostPort(b)
	every := func(host string) bool { return host == "" || host == "0.0.0.0" || host == "::" }
	return portA == portB && portA != "0" && (hostA == hostB || every(hostA) || every(hostB))
}

// crossGPT refuses a gpt.js that anybody on the way could replace.
func (l loader) crossGPT(path, address string) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "https" {
		return
	}
	if isLoopbackHost(u.Hostname()) {
		l.warnAt(path, "", "%s is fit for trying out alone", address)
		return
	}
	l.errorAt(path, "use https", "%s is not https", address)
}

// crossStore holds the mode against what is said about an engine elsewhere.
func (l loader) crossStore(s *Store) {
	external := s.Mode == "external"
	if external && len(s.External.URLs) == 0 {
		l.errorAt("store.mode", `give external = { urls = ["nats://…"] }`, "is external, and no engine is named")
	}
	if !external && !s.External.isDefault() {
		l.warnAt("store.external", `set mode = "external"`, "has no effect while store.mode is %q", s.Mode)
	}
}

func (l loader) crossCurrency(c *Config) {
	cur := c.Auction.Currency
	if _, self := cur.Rates[cur.Base]; self {
		l.errorAt(join("auction.currency.rates", cur.Base), "remove it", "is the base itself")
	}
	for i, s := range c.Sites {
		if _, ok := cur.Rates[s.Currency]; ok || s.Currency == cur.Base {
			continue
		}
		path := fmt.Sprintf("site[%d].currency", i)
		if len(cur.Rates) > 0 {
			l.errorAt(path, "add it to [auction.currency].rates", "%s has no rate to %s", s.Currency, cur.Base)
			continue
		}
		l.warnAt(path, "give a table [auction.currency]", "bids in another currency than %s cannot be used without a rate", s.Currency)
	}
}

func (l loader) crossProviders(c *Config) {
	if !c.Auction.Enabled {
		return
	}
	if len(c.Auction.Providers) == 0 && !l.doc.faulty("auction.providers[0]") {
		l.errorAt("auction.providers", "name one, or set auction.enabled = false", "is empty: nobody would be asked for bids")
	}
	for _, p := range c.Auction.Providers {
		if _, ok := l.doc.where["integrations."+p]; !ok {
			l.errorAt("auction.providers", "add the table, or set auction.enabled = false", "%q needs a table [integrations.%s]", p, p)
			continue
		}
		if p == "aps" && c.Integrations.APS.AccountID == "" && !l.doc.faulty("integrations.aps.account_id") {
			l.errorAt("auction.providers", "set integrations.aps.account_id", "%q needs an account: APS bids for no other", p)
		}
	}
}

// crossSlack refuses what would leave providers no time. Half of a timeout is what
// the way to a provider may take at most; the other half is the provider's, and the
// slack is taken off that.
func (l loader) crossSlack(c *Config) {
	timeouts := map[string]time.Duration{"auction.timeout_ms": c.Auction.Timeout}
	for _, p := range c.Auction.Providers {
		switch p {
		case "prebid":
			timeouts["integrations.prebid.timeout_ms"] = c.Integrations.Prebid.Timeout
		case "aps":
			timeouts["integrations.aps.timeout_ms"] = c.Integrations.APS.Timeout
		}
	}
	for _, key := range slices.Sorted(maps.Keys(timeouts)) {
		if leavesNoTime(c.Auction.DeadlineSlack, timeouts[key]) {
			l.errorAt("auction.deadline_slack_ms", "less than half of that", "%d can leave no time of %s, %d",
				c.Auction.DeadlineSlack.Milliseconds(), key, timeouts[key].Milliseconds())
		}
	}
}

// leavesNoTime reports whether a slack may use up all that a timeout leaves.
func leavesNoTime(slack, timeout time.Duration) bool { return slack > 0 && slack >= timeout/2 }
