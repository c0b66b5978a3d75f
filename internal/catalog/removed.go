package catalog

import (
	"strings"
	"time"
)

// A Why says what took a creative off a site; empty for one that was not.
type Why string

// What takes a creative off a site: this list is complete.
const (
	CreativeDeleted    Why = "creative deleted"
	CreativeUnassigned Why = "creative unassigned"
	CampaignDeleted    Why = "campaign deleted"
	CampaignPaused     Why = "campaign paused"
	CampaignEnded      Why = "campaign ended"
	CampaignOffSite    Why = "campaign not on this site"
	AdvertiserDeleted  Why = "advertiser removed"
	NotApproved        Why = "no approved version left"
	DomainBlocked      Why = "domain blocked by the site"
	CategoryBlocked    Why = "category blocked by the site"
)

// Removed reports whether a snapshot proves that a creative has been taken off a
// site, which ends the bookmarks on it, and what did it. Not knowing is not proof:
// a catalog that is not loaded, a site or a creative that it has never held, and
// whatever is not in the list above, take nothing off.
func Removed(s *Snapshot, site, creative string, now time.Time) (bool, Why) {
	if !s.Loaded() {
		return false, ""
	}
	where, known := s.records[KindSite][site]
	if !known || where.Deleted {
		return false, "" // the site is gone, not the creative
	}
	what, known := s.records[KindCreative][creative]
	if !known {
		return false, ""
	}
	way := s.path(what)
	st := s.standing(where.Entity.(*Site), &way, s.approvals[site][creative])
	why := st.why
	if why == "" && !way.end.IsZero() && !now.Before(way.end) {
		why = CampaignEnded
	}
	return why != "", why
}

// A path leads from a creative to its advertiser, as far as it is known. It is the
// same for every site.
type path struct {
	record     *Record // of the creative
	creative   *Creative
	campaign   *Campaign   // nil: unassigned, or never held
	advertiser *Advertiser // nil: never held

	campaignDeleted, advertiserDeleted bool

	// buys says that the advertiser's money is in its publisher's currency; a crash may
	// have left another.
	buys bool

	start, end time.Time // of the campaign; zero for none
}

// path follows a creative up to its advertiser.
func (s *Snapshot) path(creative *Record) path {
	p := path{record: creative, creative: creative.Entity.(*Creative)}
	campaign, known := s.records[KindCampaign][p.creative.Campaign]
	if !known {
		return p
	}
	p.campaign, p.campaignDeleted = campaign.Entity.(*Campaign), campaign.Deleted
	advertiser, known := s.records[KindAdvertiser][p.campaign.Advertiser]
	if !known {
		return p
	}
	p.advertiser, p.advertiserDeleted = advertiser.Entity.(*Advertiser), advertiser.Deleted
	if publisher, ok := s.Publisher(p.advertiser.Publisher); ok {
		p.buys = p.advertiser.Currency == publisher.Currency
	}
	at := s.zone(p.advertiser.TimeZone)
	p.start, _ = p.campaign.Start.start(at) // valid, or it would not have been stored
	p.end, _ = p.campaign.End.end(at)
	return p
}

// standing is how a creative stands on a site, whatever the time.
type standing struct {
	site *Site
	*path

	why Why // what took it off; "" for nothing that is known

	// inPlace says that nothing but an approved version may be wanting: everything up
	// to the advertiser is known, and the site takes what is advertised.
	inPlace bool

	approval *Approval // the last approved version, nil for none
	version  *version  // its content
}

// standing goes up the path of a creative and stops at the first thing that takes
// it off the site, or that is not known.
func (s *Snapshot) standing(site *Site, p *path, approvals *storedApprovals) standing {
	st := standing{site: site, path: p}
	switch {
	case p.record.Deleted:
		st.why = CreativeDeleted
	case p.creative.Campaign == "":
		st.why = CreativeUnassigned
	case p.campaign == nil: // never held: no proof
	case p.campaignDeleted:
		st.why = CampaignDeleted
	case p.campaign.Status == Paused:
		st.why = CampaignPaused
	case p.campaign.Status == Ended:
		st.why = CampaignEnded
	case !p.campaign.allows(site.ID):
		st.why = CampaignOffSite
	case p.advertiser == nil: // never held: no proof
	case p.advertiserDeleted:
		st.why = AdvertiserDeleted
	case p.advertiser.Publisher != site.Publisher:
		st.why = CampaignOffSite
	case blocked(s.config.Products, site.BlockedCategories, p.campaign.ProductCategory):
		st.why = CategoryBlocked
	default:
		st.inPlace = true
		st.judge(approvals)
	}
	return st
}

// allows reports whether a site is on the campaign's allowlist.
func (c *Campaign) allows(site string) bool {
	for _, id := range c.Sites {
		if id == site {
			return true
		}
	}
	return len(c.Sites) == 0
}

// judge finds the version that may be shown, and what the site says of it.
func (st *standing) judge(approvals *storedApprovals) {
	st.approval, st.version = approvals.serving()
	switch {
	case st.approval == nil && approvals.decided():
		st.why = NotApproved
	case st.version != nil && blockedHost(st.site.BlockedDomains, st.version.host):
		st.why = DomainBlocked
	}
}

func blocked(t *Taxonomy, blocked []string, category string) bool {
	for _, b := range blocked {
		if t.within(category, b) {
			return true
		}
	}
	return false
}

// blockedHost reports whether a host is one of some domains or below it.
func blockedHost(domains []string, host string) bool {
	for _, d := range domains {
		if host == d || len(host) > len(d) && strings.HasSuffix(host, d) && host[len(host)-len(d)-1] == '.' {
			return true
		}
	}
	return false
}
