package main

import (
	"context"
	"fmt"

	"deckle"
	"deckle/internal/aps"
	"deckle/internal/auction"
	"deckle/internal/catalog"
	"deckle/internal/config"
	"deckle/internal/consent"
	"deckle/internal/dashboard"
	"deckle/internal/edge"
	"deckle/internal/obs"
	"deckle/internal/prebid"
	"deckle/internal/publicapi"
	"deckle/internal/store"
	"deckle/internal/telemetry"
	"deckle/internal/template"
)

// Here the words of deckle.toml become those of the packages.

func auctionConfig(cfg *config.Config) auction.Config {
	var providers []auction.Provider
	for _, name := range cfg.Auction.Providers {
		switch name {
		case "prebid":
			p := cfg.Integrations.Prebid
			providers = append(providers, auction.Provider{
				Name:     name,
				Dialect:  prebid.New(prebid.Config{ServerURL: p.ServerURL, AccountID: p.AccountID}),
				Timeout:  p.Timeout,
				FireNURL: p.FireNURLAtEdge,
				FireLURL: p.LURL,
			})
		case "aps":
			p := cfg.Integrations.APS
			providers = append(providers, auction.Provider{
				Name:    name,
				Dialect: aps.New(aps.Config{Endpoint: p.Endpoint, AccountID: p.AccountID, ScriptCreatives: p.ScriptCreatives}),
				Timeout: p.Timeout,
			})
		}
	}
	return auction.Config{
		Providers:     providers,
		Adjustments:   cfg.Auction.BidAdjustment,
		Currency:      auction.Rates{Base: cfg.Auction.Currency.Base, Units: cfg.Auction.Currency.Rates},
		DeadlineSlack: cfg.Auction.DeadlineSlack,
	}
}

func edgeConfig(cfg *config.Config, templates *config.Templates, head func(site, url string, m edge.HeadMeta), record func(telemetry.Event)) edge.Config {
	sites := make([]edge.Site, len(cfg.Sites))
	for i, s := range cfg.Sites {
		sites[i] = edge.Site{
			ID:           s.ID,
			Hosts:        s.Hosts,
			Origin:       s.Origin,
			HostHeader:   s.HostHeader,
			Enabled:      s.Enabled,
			Fetch:        s.Bids == "fetch",
			Currency:     s.Currency,
			Template:     func() *template.Template { return templates.For(s.ID) },
			HTMLCache:    s.HTMLCache,
			ErrorPages:   s.ErrorPages,
			ServerTiming: s.ServerTiming,
			Preconnect:   s.Preconnect,
			Client:       clientOptions(&s),
			SChain:       s.SChain,
			BAdv:         s.BAdv,
			BCat:         s.BCat,
		}
	}
	return edge.Config{
		Sites: sites,
		Consent: consent.Config{
			TCFCookies:    cfg.Consent.TCFCookies,
			UnknownPlace:  consent.Place(cfg.Consent.UnknownPlace),
			StopOnGPC:     cfg.Consent.USOptOut == "stop",
			TruncateOther: cfg.Consent.OtherAddress == "truncated",
		},
		TrustedProxies: cfg.Server.TrustedProxies,
		AuctionEnabled: cfg.Auction.Enabled,
		Head:           head,
		Record:         record,
		BURLOn:         map[string]string{"prebid": cfg.Integrations.Prebid.BURLOn},
	}
}

// clientOptions are what a site's browser client is told. Where no slot has an ad
// server nobody loads its library.
func clientOptions(s *config.Site) edge.ClientOptions {
	o := edge.ClientOptions{GPT: s.GPT, GPTURL: s.GPTURL, Init: s.Init}
	if s.AdServer == deckle.NoAdServer {
		o.GPT = "page"
	}
	return o
}

// How often one address may ask for bids without a page. A page asks once, and again
// for each path that it goes to and each refresh; an address can be that of a whole
// company or of a mobile network's readers.
const (
	bidsPerMinute = 600
	bidsAtOnce    = 120
)

func bidsConfig(cfg *config.Config, api *publicapi.API, record func(telemetry.Event)) edge.BidsConfig {
	floors := make(map[string]deckle.CPM, len(cfg.Sites))
	for _, s := range cfg.Sites {
		floors[s.ID] = s.DefaultFloor
	}
	return edge.BidsConfig{
		API:           api,
		Limiter:       publicapi.NewLimiter(publicapi.Limit{PerMinute: bidsPerMinute, Burst: bidsAtOnce}),
		Timeout:       cfg.Auction.Timeout,
		ClientParams:  cfg.Auction.ClientParams,
		DefaultFloors: floors,
		Record:        record,
	}
}

// askForBids adds the paths on which browsers ask for bids without a page. POST
// /auction is the site's own unless the operator takes it.
func askForBids(own edge.Own, pages *edge.Edge, cfg *config.Config, c edge.BidsConfig) {
	own[edge.PageBidsPath] = pages.PageBids(c)
	if cfg.Auction.Endpoint {
		own[edge.AuctionPath] = pages.AuctionEndpoint(c)
	}
}

func storeConfig(cfg *config.Config) store.Config {
	s := cfg.Store
	return store.Config{
		Mode: store.Mode(s.Mode), DataDir: s.DataDir, EncryptionKeyFile: s.EncryptionKeyFile,
		URLs: s.External.URLs, CredentialsFile: s.External.CredentialsFile, TLSCA: s.External.TLSCA,
	}
}

func siteFacts(cfg *config.Config) []catalog.SiteFacts {
	sites := make([]catalog.SiteFacts, len(cfg.Sites))
	for i, s := range cfg.Sites {
		sites[i] = catalog.SiteFacts{ID: s.ID, Currency: s.Currency}
	}
	return sites
}

func dashboardConfig(cfg *config.Config, ready func() []obs.Check) dashboard.Config {
	ids := make([]string, len(cfg.Sites))
	for i, s := range cfg.Sites {
		ids[i] = s.ID
	}
	return dashboard.Config{
		PasswordFile: cfg.Admin.PasswordFile, APIKeysFile: cfg.Admin.APIKeysFile,
		TrustedProxies: cfg.Server.TrustedProxies, Sites: ids, Ready: ready,
	}
}

// readiness says, for the admin listener, whether traffic should come here,
// whether every site has the template that its file asks for, and what keeps ads
// from readers.
func readiness(ctx context.Context, cfg *config.Config, templates *config.Templates) []obs.Check {
	checks := []obs.Check{{Part: "server", State: obs.OK}, consentCheck(cfg)}
	if ctx.Err() != nil {
		checks[0] = obs.Check{Part: "server", State: obs.NotReady, Note: "draining"}
	}
	for _, s := range templates.States() {
		checks = append(checks, templateCheck(s))
	}
	return checks
}

// templateCheck: a bad file never takes pages out of service.
func templateCheck(s config.TemplateState) obs.Check {
	c := obs.Check{Part: "template " + s.Site, State: obs.OK}
	if !s.Status.Healthy() {
		c.State = obs.Degraded
	}
	c.Note = fmt.Sprintf("%s, %d slots", templateWords[s.Status], s.Slots)
	if errs := s.Problems.Errors(); len(errs) > 0 {
		c.Note += ": " + errs[0].String()
		if len(errs) > 1 {
			c.Note += fmt.Sprintf("; and %d more", len(errs)-1)
		}
	}
	return c
}

var templateWords = map[config.TemplateStatus]string{
	config.TemplateOK:       "in use",
	config.TemplateLastGood: "the file is not valid, the last good version is in use",
	config.TemplateDisabled: "switched off by the file",
	config.TemplateMissing:  "the file is missing, no ads",
	config.TemplateInvalid:  "the file is not valid and there is no last good version, no ads",
}

func consentCheck(cfg *config.Config) obs.Check {
	c := obs.Check{Part: "consent", State: obs.OK}
	if cfg.Consent.UnknownPlace == "gdpr" && !cfg.Consent.PlaceKnown() {
		c.Note = "no place can be known, and unknown_place is gdpr: only readers with a TC string get exchange ads"
	}
	return c
}
