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
	st := s.standing(where, what, s.approvals[site][creative])
	why := st.why
	if why == "" && !st.end.IsZero() && !now.Before(st.end) {
		why = CampaignEnded
	}
	return why != "", why
}

// standing is how a creative stands on a site, whatever the time.
type standing struct {
	why Why // what took it off; "" for nothing that is known

	// Known as far as the way up to the advertiser is.
	site       *Site
	creative   *Creative
	campaign   *Campaign
	advertiser *Advertiser
	start, end time.Time // of the campaign; zero for none

	// inPlace says that nothing but an approved version may be wanting: everything up
	// to the advertiser is known, and the site takes what is advertised.
	inPlace bool

	approval *Approval // the last approved version, nil for none
	version  *version  // its content
}

// standing follows a creative up to its advertiser and stops at the first thing
// that takes it off the site, or that is not known.
func (s *Snapshot) standing(site, creative *Record, approvals *storedApprovals) (st standing) {
	st.site, st.creative = site.Entity.(*Site), creative.Entity.(*Creative)
	switch {
	case creative.Deleted:
		st.why = CreativeDeleted
		return st
	case st.creative.Campaign == "":
		st.why = CreativeUnassigned
		return st
	}
	campaign, known := s.records[KindCampaign][st.creative.Campaign]
	if !known {
		return st
	}
	st.campaign = campaign.Entity.(*Campaign)
	if st.why = campaignWhy(campaign.Deleted, st.campaign, st.site.ID); st.why != "" {
		return st
	}
	advertiser, known := s.records[KindAdvertiser][st.campaign.Advertiser]
	if !known {
		return st
	}
	st.advertiser = advertiser.Entity.(*Advertiser)
	switch {
	case advertiser.Deleted:
		st.why = AdvertiserDeleted
	case st.advertiser.Publisher != st.site.Publisher:
		st.why = CampaignOffSite
	default:
		st.schedule(s)
		st.judge(s, approvals)
	}
	return st
}

func campaignWhy(deleted bool, c *Campaign, site string) Why {
	switch {
	case deleted:
		return CampaignDeleted
	case c.Status == Paused:
		return CampaignPaused
	case c.Status == Ended:
		return CampaignEnded
	case !c.allows(site):
		return CampaignOffSite
	}
	return ""
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

// schedule takes the campaign's dates, in the advertiser's time zone.
func (st *standing) schedule(s *Snapshot) {
	at := s.zone(st.advertiser.TimeZone)
	st.start, _ = st.campaign.Start.start(at) // valid, or it would not have been stored
	st.end, _ = st.campaign.End.end(at)
}

// judge finds the version that may be shown, and what the site says of it.
func (st *standing) judge(s *Snapshot, approvals *storedApprovals) {
	if blocked(s.config.Products, st.site.BlockedCategories, st.campaign.ProductCategory) {
		st.why = CategoryBlocked
		return
	}
	st.inPlace = true
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
