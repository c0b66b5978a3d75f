package config

import (
	"fmt"
	"slices"
	"strings"

	"deckle/internal/template"
)

// An unbuilt row refuses a setting whose effect does not exist yet. A setting
// that did nothing would be worse than none: somebody relies on it.
type unbuilt struct {
	key  string
	what string // what would be switched on
	on   func(c *Config) bool
}

// unbuiltSettings shrinks: whoever builds a thing deletes its row.
var unbuiltSettings = []unbuilt{
	{"integrations.prebid.cache", "Prebid Server's cache", func(c *Config) bool { return c.Integrations.Prebid.Cache }},
	{"integrations.prebid.forward_cookies", "forwarding cookies", func(c *Config) bool { return len(c.Integrations.Prebid.ForwardCookies) > 0 }},
	{"integrations.prebid.bidders", "consent for each bidder", func(c *Config) bool {
		for _, b := range c.Integrations.Prebid.Bidders {
			if b != (PrebidBidder{}) {
				return true
			}
		}
		return false
	}},
	{"integrations.aps.gvl", "consent for each bidder", func(c *Config) bool { return c.Integrations.APS.GVL != apsGVL }},
	{"consent.geo_file", "finding a reader's place", func(c *Config) bool { return c.Consent.GeoFile != "" }},
	{"consent.geo_headers", "finding a reader's place", func(c *Config) bool { return c.Consent.GeoHeaders != GeoHeaders{} }},
	{"consent.gvl_file", "consent for each bidder", func(c *Config) bool { return c.Consent.GVLFile != "" }},
	{"consent.unlisted_bidder", "consent for each bidder", func(c *Config) bool { return c.Consent.UnlistedBidder != "deny" }},
	{"identity.enabled", "the ts-ec cookie", func(c *Config) bool { return c.Identity.Enabled }},
	{"identity.key_file", "the ts-ec cookie", func(c *Config) bool { return c.Identity.KeyFile != "" }},
	{"identity.eid_cookies", "EIDs", func(c *Config) bool { return len(c.Identity.EIDCookies) > 0 }},
	{"reader.classifier", "the classifier openai", func(c *Config) bool { return c.Reader.Classifier != "builtin" }},
	{"reader.openai", "the classifier openai", func(c *Config) bool { return c.Reader.OpenAI != OpenAI{} }},
	{"store.mode", "a store of more than one node", func(c *Config) bool { return c.Store.Mode == "clustered" }},
	{"store.archive", "the archive of the journal", func(c *Config) bool { return c.Store.Archive != "" }},
	{"store.cluster", "a store of more than one node", func(c *Config) bool { return !c.Store.Cluster.isDefault() }},
}

// unbuiltOfSite are the same for one [[site]]; their keys stand below it.
var unbuiltOfSite = []struct {
	key  string
	what string
	on   func(s *Site) bool
}{
	{"origin", "a site without an origin", func(s *Site) bool { return s.Origin.Host == "" }},
	{"rum_sample", "measuring page views", func(s *Site) bool { return s.RUMSample > 0 }},
}

// unbuiltOfTemplate are the same for [creative_opportunities] of a template file.
var unbuiltOfTemplate = []struct {
	key  string
	what string
	on   func(s *template.Settings) bool
}{
	{"targeting_keys", "Prebid Server's cache", func(s *template.Settings) bool {
		return slices.ContainsFunc(s.TargetingKeys, func(key string) bool { return strings.HasPrefix(key, "hb_cache_") })
	}},
}

// isDefault reports whether the file says nothing about a cluster.
func (c *Cluster) isDefault() bool {
	return c.Name == defaultCluster && c.Node+c.Listen+c.TLSCert+c.TLSKey+c.TLSCA+c.SecretFile == "" && len(c.Routes) == 0
}

// isDefault reports whether the file says nothing about an engine elsewhere.
func (e *External) isDefault() bool {
	return e.CredentialsFile+e.TLSCA == "" && len(e.URLs) == 0
}

// refuse reports a setting that switches on what does not exist yet, if the file
// gives it. A value that could not be read has been reported, and is not judged
// again by its default.
func (d *document) refuse(path, what string) {
	if d.given(path) {
		d.errorf(d.at(path), path, "leave it out", "not built yet: %s", what)
	}
}

// refuseUnbuilt reports every setting of a deckle.toml that switches on what does
// not exist yet.
func (l loader) refuseUnbuilt(c *Config) {
	for _, u := range unbuiltSettings {
		if u.on(c) {
			l.doc.refuse(u.key, u.what)
		}
	}
	for i := range c.Sites {
		for _, u := range unbuiltOfSite {
			if u.on(&c.Sites[i]) {
				l.doc.refuse(fmt.Sprintf("site[%d].%s", i, u.key), u.what)
			}
		}
	}
}
