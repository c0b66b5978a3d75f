// Package config reads what an engineer (deckle.toml) and ad operations
// (creative-opportunities.toml) wrote, and says everything that is wrong with it
// at once, with the place and the remedy; nothing that it returns can surprise
// the packages below it.
//
// A deckle.toml with an error refuses the start. A template file never does:
// [Templates] watches it and keeps the last good version.
package config

import (
	"log/slog"
	"math/big"
	"net/netip"
	"net/url"
	"time"

	"deckle"
	"deckle/internal/auction"
)

// A Config is a valid deckle.toml. Paths in it are as usable as they stand:
// relative ones have been joined to the folder of the file. It is not changed
// after [Load] and may be shared.
type Config struct {
	File string // the deckle.toml itself

	Server       Server
	Admin        Admin
	Sites        []Site // at least one; ids and hosts are unique
	Auction      Auction
	Integrations Integrations
	Consent      Consent
	Identity     Identity
	Reader       Reader
	Store        Store
}

// Server is [server]: the listeners, and how they start and end.
type Server struct {
	Listen         string         // public: pages, client, batches, events; ":8080"
	AdminListen    string         // dashboard, management, metrics, health; "127.0.0.1:8081"
	TLSCert        string         // PEM file; "" = none
	TLSKey         string         // PEM file, a secret; "" = none
	ACMEHosts      []string       // hosts to get certificates for
	ACMEDirectory  string         // URL of the certificate authority
	ACMECache      string         // folder; data_dir/acme
	HTTP3          bool           // false
	TrustedProxies []netip.Prefix // peers whose X-Forwarded-* headers are believed; none
	DrainTimeout   time.Duration  // how long requests may take to end at shutdown; 30s
	LogLevel       slog.Level     // info
}

// Admin is [admin]: who may use the admin listener.
type Admin struct {
	PasswordFile string // argon2id hash; "" = no log-ins
	APIKeysFile  string // one "name:sha256" a line; "" = no keys
}

// A Site is one [[site]]: a publisher's site behind some hosts.
type Site struct {
	ID           string   // [A-Za-z0-9_-]{1,64}
	Hosts        []string // lower case, without a port; at least one
	Origin       *url.URL // scheme and host alone; never nil
	HostHeader   string   // the Host that the origin gets; "" = the public host
	Currency     string   // ISO 4217, of floors and price buckets; "USD"
	Templates    string   // path of the site's creative-opportunities.toml
	Enabled      bool     // the kill switch: false = plain proxy; true
	Bids         string   // "inline" or "fetch"; "inline"
	HTMLCache    string   // Cache-Control of pages with slots, always private; "private, no-store"
	AdServer     deckle.AdServer
	GPT          string   // who loads gpt.js: "page" or "load"; "page"
	GPTURL       string   // the address of gpt.js
	Init         string   // when __tsAdInit runs: "early", "dom" or "load"; "early"
	ErrorPages   bool     // inject into 4xx and 5xx as well; false
	ServerTiming bool     // send Server-Timing; false
	RUMSample    float64  // share of page views that are measured, 0–1; 0
	Preconnect   []string // further origins for the Link header, "https://host[:port]"
	SChain       []auction.SChainNode
	BAdv         []string   // blocked advertiser domains, lower case
	BCat         []string   // blocked IAB content categories
	DefaultFloor deckle.CPM // for /auction codes without a template; 0
}

// Auction is [auction].
type Auction struct {
	Enabled       bool          // false: no bids; magazine slots go on; true
	Timeout       time.Duration // timeout_ms: default of a template's auction_timeout_ms; 1s
	Providers     []string      // "prebid" and "aps"; their order breaks ties; ["prebid"]
	Endpoint      bool          // POST /auction; false
	ClientParams  bool          // bidder parameters from the browser; false
	ExportFile    string        // NDJSON, one line an auction; "" = off
	DeadlineSlack time.Duration // deadline_slack_ms: subtracted from tmax; below half of every timeout; 0

	// BidAdjustment multiplies the prices of a seat before anything looks at them.
	BidAdjustment map[string]*big.Rat

	Currency Currency
}

// Currency is [auction.currency]: a dated table of conversion rates.
type Currency struct {
	Base  string              // ISO 4217; "USD"
	Date  time.Time           // of the rates, midnight UTC; zero without rates
	Rates map[string]*big.Rat // one unit of the key = so many of Base; never zero or below
}

// Integrations is [integrations]: the providers that an auction asks.
type Integrations struct {
	Prebid Prebid
	APS    APS
}

// Prebid is [integrations.prebid]: a Prebid Server.
type Prebid struct {
	ServerURL      string // without a slash at the end; "" only if prebid is no provider
	AccountID      string // site.publisher.id; "" = none
	Timeout        time.Duration
	FireNURLAtEdge bool   // false: the client fires nurl with burl; true
	BURLOn         string // "creative" or "render"; "creative"
	LURL           bool   // false
	Cache          bool   // false
	ForwardCookies []string
	Bidders        map[string]PrebidBidder
}

// A PrebidBidder is what consent needs to know of one bidder.
type PrebidBidder struct {
	GVL  int  // IAB Global Vendor List id; 0 = not listed
	Sale bool // asking it is a sale or sharing in the sense of US state laws
}

// APS is [integrations.aps]: Amazon Publisher Services.
type APS struct {
	Endpoint        string
	AccountID       string
	Timeout         time.Duration // 800ms
	ScriptCreatives bool          // false
	GVL             int           // 793
}

// Consent is [consent].
type Consent struct {
	TCFCookies     []string // names of the cookies that may hold a TC string; ["euconsent-v2"]
	UnknownPlace   string   // how a reader without a known place is treated: "gdpr" or "other"; "gdpr"
	USOptOut       string   // what an opt-out from sale does: "restrict" or "stop"; "restrict"
	GeoFile        string   // MaxMind format; "" = none
	GeoHeaders     GeoHeaders
	GVLFile        string // Global Vendor List; "" = the embedded one
	UnlistedBidder string // a bidder without a GVL id under GDPR: "deny" or "allow"; "deny"
	OtherAddress   string // what bidders get where no law asks for less: "full" or "truncated"; "full"
}

// GeoHeaders names the headers in which a trusted proxy says where a reader is.
type GeoHeaders struct {
	Country, Region string // "" = none
}

// PlaceKnown reports whether the place of a reader can be known at all. Where it
// cannot and UnknownPlace is "gdpr", a reader without a TC string never gets an
// exchange ad.
func (c *Consent) PlaceKnown() bool {
	return c.GeoFile != "" || c.GeoHeaders != GeoHeaders{}
}

// Identity is [identity]: the ts-ec cookie and EIDs.
type Identity struct {
	Enabled    bool              // false
	KeyFile    string            // a secret
	EIDCookies map[string]string // EID source → name of a first-party cookie
}

// Reader is [reader]: the reader plane.
type Reader struct {
	BeaconWindow     time.Duration // 3m, at most 30m
	ClickWindow      time.Duration // 3m, at most 30m
	FoldWindow       time.Duration // 30m
	MaxSkew          time.Duration // 2m
	EngagementWindow string        // "decay" or "1h"; "decay"
	Classifier       string        // "builtin" or "openai"; "builtin"
	OpenAI           OpenAI
}

// OpenAI is where the classifier of that name is reached.
type OpenAI struct {
	URL, Model, KeyFile string
}

// Store is [store]: where facts are kept.
type Store struct {
	Mode              string // "embedded", "clustered" or "external"; "embedded"
	DataDir           string // "./data"
	Archive           string // folder or s3://…; "" = none
	EncryptionKeyFile string // a secret; "" = not encrypted
	Cluster           Cluster
	External          External
}

// Cluster is [store].cluster: this node among others.
type Cluster struct {
	Name, Node, Listen     string
	Routes                 []string
	TLSCert, TLSKey, TLSCA string
	SecretFile             string
}

// External is [store].external: an engine that somebody else runs.
type External struct {
	URLs                   []string
	CredentialsFile, TLSCA string
}
