// Package desk is the sales desk of the demo's magazine: what it sells, to whom, and
// which of it waits for approval, as the catalog documents that somebody would
// import.
package desk

import (
	"context"
	"fmt"

	"deckle"
	"deckle/internal/catalog"
)

// Site is the [[site]] of deckle.toml that the desk sells on.
const Site = "slow-lines"

// unit is one unit of the publisher's currency.
const unit deckle.Money = 1e6

// Document is the whole desk: one publisher, its site, six advertisers, their
// campaigns and magazines, and the decisions on them. The pictures are put into
// blobs first, since a magazine names them by what they contain.
func Document(ctx context.Context, blobs catalog.Blobs) (*catalog.Document, error) {
	d := &catalog.Document{
		Publishers: []*catalog.Publisher{{ID: "slow-lines", Name: "Slow Lines", Currency: "USD"}},
		Sites: []*catalog.Site{{
			ID: Site, Publisher: "slow-lines",
			Floors: catalog.Floors{Site: 2e6, Slots: map[string]deckle.CPM{"article_magazine": 3e6}},
			CategoryRules: []catalog.CategoryRule{
				{Path: "/", Categories: []string{travel}},
				{Path: "/{rail,water,foot,town}/", Categories: []string{travel}},
				{Path: "/20**", Categories: []string{travel, hobbies}},
			},
		}},
		Advertisers: advertisers(),
		Campaigns:   campaigns(),
	}
	for _, m := range magazines() {
		creative, err := m.creative(ctx, blobs)
		if err != nil {
			return nil, fmt.Errorf("make magazine %s: %w", m.id, err)
		}
		d.Creatives = append(d.Creatives, creative)
		if !m.waits {
			d.Approvals = append(d.Approvals, catalog.DocumentApproval{Site: Site, Creative: m.id, State: catalog.Approved})
		}
	}
	return d, nil
}

// Ids of the IAB Content Taxonomy 3.0: what pages are about.
const (
	travel  = "653"
	hobbies = "239"
)

func advertisers() []*catalog.Advertiser {
	of := func(id, name, zone string, daily deckle.Money) *catalog.Advertiser {
		return &catalog.Advertiser{ID: id, Publisher: "slow-lines", Name: name, DailyBudget: daily * unit, TimeZone: zone}
	}
	return []*catalog.Advertiser{
		of("hoshimi", "Hoshimi Ryokan", "Asia/Tokyo", 400),
		of("kestrel", "Kestrel Sleepers", "Europe/Zurich", 300),
		of("pell-moor", "Pell & Moor", "Europe/London", 200),
		of("margin", "Margin Books", "Europe/Dublin", 120),
		of("saltline", "Saltline Ferries", "Europe/Athens", 250),
		of("teasel", "Teasel Tea", "America/New_York", 90),
	}
}

// campaigns are one for each advertiser. Product categories are ids of the IAB Ad
// Product Taxonomy 2.0.
func campaigns() []*catalog.Campaign {
	of := func(advertiser, name, product string, cpm deckle.CPM, daily deckle.Money, categories ...string) *catalog.Campaign {
		return &catalog.Campaign{
			ID: advertiser + "-2026", Advertiser: advertiser, Name: name, ProductCategory: product,
			Categories: categories, MaxCPM: cpm * 1e6, DailyBudget: daily * unit, DogEar: true,
			LandingURL: "https://www." + advertiser + ".example/",
		}
	}
	kestrel := of("kestrel", "The night line, 2027 timetable", "1529", 11, 220, travel)
	kestrel.FrequencyCap = &catalog.FrequencyCap{Count: 6, Per: catalog.PerDay}
	margin := of("margin", "The pocket library", "1419", 7, 80, travel, hobbies)
	margin.TotalBudget = 2000 * unit
	return []*catalog.Campaign{
		of("hoshimi", "Four seasons", "1529", 14, 300, travel),
		kestrel,
		of("pell-moor", "Resoled, not replaced", "1058", 9, 150, travel, hobbies),
		margin,
		of("saltline", "Nine islands", "1529", 12, 200, travel),
		of("teasel", "A flask for the train", "1123", 6, 60, hobbies),
	}
}

// A magazine is a creative before its pictures are anywhere.
type magazine struct {
	id, advertiser, name string
	landing              string // "" is the campaign's
	waits                bool   // for approval; one that leads to where an approved one of its campaign does would not
	pages                []page
}

type page struct {
	catalog.Page
	picture string // SVG; "" for none
	alt     string
	focus   *catalog.Focus
}

// creative puts the magazine's pictures into blobs.
func (m *magazine) creative(ctx context.Context, blobs catalog.Blobs) (*catalog.Creative, error) {
	c := &catalog.Creative{ID: m.id, Campaign: m.advertiser + "-2026", Name: m.name}
	c.LandingURL = m.landing
	for i, p := range m.pages {
		if p.picture != "" {
			asset, err := catalog.Rehost(ctx, blobs, []byte(p.picture))
			if err != nil {
				return nil, fmt.Errorf("page %d: %w", i, err)
			}
			p.Image = &catalog.Image{Src: asset.Src, Alt: p.alt, Focus: p.focus}
		}
		c.Pages = append(c.Pages, p.Page)
	}
	return c, nil
}
