package catalog_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"deckle"
	"deckle/internal/catalog"
)

type members = map[string]any

// invalid are entities with one thing wrong each; want is the problem that names
// it.
var invalid = []struct {
	name string
	base catalog.Entity
	with members
	want string
}{
	{"publisher id", examplePublisher(), members{"id": "a b"}, `id: "a b" is not an id (1 to 64 of A-Z a-z 0-9 _ -)`},
	{"publisher id too long", examplePublisher(), members{"id": strings.Repeat("x", 65)}, `is not an id`},
	{"publisher name missing", examplePublisher(), members{"name": nil}, `name: has 0 characters (1 to 120 characters)`},
	{"publisher name too long", examplePublisher(), members{"name": strings.Repeat("é", 121)}, `name: has 121 characters`},
	{"name with control", examplePublisher(), members{"name": "a\x07b"}, `name: has control characters (plain text)`},
	{"currency", examplePublisher(), members{"currency": "usd"}, `currency: "usd" is not a currency`},
	{"currency change", examplePublisher(), members{"currency": "EUR"}, `currency: cannot change from USD (delete its sites and advertisers first`},
	{"unknown field", examplePublisher(), members{"naem": "x"}, `naem: unknown field (known are currency, id, name)`},
	{"wrong type", examplePublisher(), members{"name": 7}, `name: must be a text, not 7`},
	{"null", examplePublisher(), members{"name": any(nilValue{})}, `name: must not be null (leave it out)`},

	{"no such publisher", exampleSite("blog"), members{"publisher": "nobody"}, `publisher: there is no publisher "nobody"`},
	{"site not in deckle.toml", exampleSite("blog"), members{"id": "elsewhere"}, `id: no [[site]] of deckle.toml has the id "elsewhere" (there are blog, shop, euro)`},
	{"site of another currency", exampleSite("euro"), nil, `publisher: "yuki" sells in USD, the site's currency in deckle.toml is EUR`},
	{"site status", exampleSite("blog"), members{"status": "paused"}, `status: "paused" is not a status (one of [active warmup suspended])`},
	{"freshness", exampleSite("blog"), members{"freshnessHours": 721}, `freshnessHours: 721 is out of range (1 to 720 hours)`},
	{"freshness negative", exampleSite("blog"), members{"freshnessHours": -1}, `freshnessHours: -1 is out of range`},
	{"bid weight", exampleSite("blog"), members{"bidWeight": 0.09}, `bidWeight: 0.09 is out of range (0.1 to 1)`},
	{"bid weight type", exampleSite("blog"), members{"bidWeight": "0.5"}, `bidWeight: must be a number, not "0.5"`},
	{"floor negative", exampleSite("blog"), members{"floors": members{"site": -1}}, `floors.site: -1 is out of range`},
	{"floor absurd", exampleSite("blog"), members{"floors": members{"site": 1_000_000_000_001}}, `floors.site: 1000000000001 is out of range`},
	{"floor fraction", exampleSite("blog"), members{"floors": members{"site": 0.5}}, `floors.site: must be a whole number of micros (2.50 is 2500000), not 0.5`},
	{"floor category", exampleSite("blog"), members{"floors": members{"categories": members{"IAB20": 1000}}}, `floors.categories: "IAB20" is not an id of IAB Content Taxonomy 3.0 (only its first tier is built in`},
	{"floor of a slot", exampleSite("blog"), members{"floors": members{"slots": members{"a/b": 1000}}}, `floors.slots: "a/b" is not an id`},
	{"blocked domain", exampleSite("blog"), members{"blockedDomains": []string{"https://bad.example"}}, `blockedDomains[0]: "https://bad.example" is not a domain`},
	{"blocked suffix", exampleSite("blog"), members{"blockedDomains": []string{"co.jp"}}, `blockedDomains[0]: "co.jp" is a whole public suffix`},
	{"blocked twice", exampleSite("blog"), members{"blockedDomains": []string{"a.example", "a.example"}}, `blockedDomains[1]: "a.example" is there twice`},
	{"blocked category", exampleSite("blog"), members{"blockedCategories": []string{travel}}, `blockedCategories[0]: "653" is not an id of IAB Ad Product Taxonomy 2.0`},
	{"rule pattern", exampleSite("blog"), members{"categoryRules": []members{{"path": "/[a", "categories": []string{travel}}}}, `categoryRules[0].path: pattern "/[a"`},
	{"rule without categories", exampleSite("blog"), members{"categoryRules": []members{{"path": "/a"}}}, `categoryRules[0].categories: has 0 (1 to 3 categories)`},
	{"rule category", exampleSite("blog"), members{"categoryRules": []members{{"path": "/a", "categories": []string{"9"}}}}, `categoryRules[0].categories[0]: "9" is not an id`},
	{"field of a rule", exampleSite("blog"), members{"categoryRules": []members{{"pattern": "/a"}}}, `categoryRules[0].pattern: unknown field`},

	{"advertiser's publisher changes", exampleAdvertiser(), members{"publisher": "other"}, `publisher: cannot change from "yuki"`},
	{"advertiser currency", exampleAdvertiser(), members{"currency": "EUR"}, `currency: "EUR" is not the publisher's, USD (leave it out)`},
	{"advertiser zone", exampleAdvertiser(), members{"timeZone": "Tokyo"}, `timeZone: "Tokyo" is not a time zone`},
	{"advertiser local zone", exampleAdvertiser(), members{"timeZone": "Local"}, `timeZone: "Local" is not a time zone`},
	{"advertiser budget", exampleAdvertiser(), members{"dailyBudget": 0}, `dailyBudget: 0 is out of range (micros: 1 to 1000000000000000 (a billion))`},
	{"advertiser budget absurd", exampleAdvertiser(), members{"dailyBudget": 1_000_000_000_000_001}, `dailyBudget: 1000000000000001 is out of range`},
	{"budget beyond int64", exampleAdvertiser(), members{"dailyBudget": 1e30}, `dailyBudget: must be a whole number of micros`},
	{"advertiser status", exampleAdvertiser(), members{"status": "paused"}, `status: "paused" is not a status`},

	{"campaign's advertiser", exampleCampaign(), members{"advertiser": "nobody"}, `advertiser: there is no advertiser "nobody"`},
	{"campaign's advertiser changes", exampleCampaign(), members{"advertiser": "farm"}, `advertiser: cannot change from "inn"`},
	{"no categories", exampleCampaign(), members{"categories": nil}, `categories: has 0 (1 to 50 ids of IAB Content Taxonomy 3.0)`},
	{"category twice", exampleCampaign(), members{"categories": []string{travel, travel}}, `categories[1]: "653" is there twice`},
	{"product category", exampleCampaign(), members{"productCategory": "IAB8"}, `productCategory: "IAB8" is not an id of IAB Ad Product Taxonomy 2.0`},
	{"max cpm", exampleCampaign(), members{"maxCpm": 999}, `maxCpm: 0 is out of range (micros for a thousand impressions`},
	{"max cpm negative", exampleCampaign(), members{"maxCpm": -5000}, `maxCpm: -5000 is out of range`},
	{"max cpm absurd", exampleCampaign(), members{"maxCpm": 2_000_000_000_000}, `maxCpm: 2000000000000 is out of range`},
	{"total budget", exampleCampaign(), members{"totalBudget": -1}, `totalBudget: -1 is out of range`},
	{"start", exampleCampaign(), members{"start": "01.12.2026"}, `start: "01.12.2026" is not a date or time`},
	{"end before start", exampleCampaign(), members{"start": "2026-12-02", "end": "2026-12-01"}, `end: "2026-12-01" is not after the start`},
	{"end without zone", exampleCampaign(), members{"end": "2026-12-01T00:00:00"}, `end: "2026-12-01T00:00:00" is not a date or time`},
	{"no such day", exampleCampaign(), members{"end": "2026-02-30"}, `end: "2026-02-30" is not a date or time`},
	{"year", exampleCampaign(), members{"start": "0001-01-01"}, `start: "0001-01-01" is not a date or time`},
	{"no such site", exampleCampaign(), members{"sites": []string{"blog", "nowhere"}}, `sites[1]: there is no site "nowhere"`},
	{"somebody else's site", exampleCampaign(), members{"sites": []string{"euro"}}, `sites[0]: "euro" is a site of "other", the advertiser buys from "yuki"`},
	{"frequency count", exampleCampaign(), members{"frequencyCap": members{"count": 0, "per": "day"}}, `frequencyCap.count: 0 is out of range (1 to 1000)`},
	{"frequency period", exampleCampaign(), members{"frequencyCap": members{"count": 1, "per": "month"}}, `frequencyCap.per: "month" is not a period (hour, day or week)`},
	{"landing missing", exampleCampaign(), members{"landingUrl": nil}, `landingUrl: "" is not a URL`},
	{"landing script", exampleCampaign(), members{"landingUrl": "javascript:alert(1)"}, `landingUrl: "javascript:alert(1)" is not a URL`},
	{"landing user", exampleCampaign(), members{"landingUrl": "https://u:p@inn.example/"}, `landingUrl: "https://u:p@inn.example/" is not a URL`},
	{"landing space", exampleCampaign(), members{"landingUrl": "https://inn.example/a b"}, `is not a URL`},
	{"landing long", exampleCampaign(), members{"landingUrl": "https://inn.example/" + strings.Repeat("a", 2048)}, `is not a URL`},

	{"creative's campaign", exampleCreative(), members{"campaign": "nope"}, `campaign: there is no campaign "nope"`},
	{"no landing at all", exampleCreative(), members{"campaign": nil}, `landingUrl: is missing, and there is no campaign to take it from`},
	{"no pages", exampleCreative(), members{"pages": []any{}}, `pages: has 0 (1 to 12 pages, of which the first is the cover)`},
	{"creative status", exampleCreative(), members{"status": "ended"}, `status: "ended" is not a status (one of [active paused deleted])`},
	{"shape", exampleCreative(), members{"shapes": []members{{"w": 300, "h": 0}}}, `shapes[0]: 300×0 is out of range`},
	{"empty page", exampleCreative(), members{"pages": []members{{"headline": "a"}, {"sub": "b"}}}, `pages[1]: is empty (a headline, a body or an image)`},
	{"image from elsewhere", exampleCreative(), members{"pages": []members{{"image": members{"src": "https://cdn.example/a.png", "alt": "a"}}}}, `pages[0].image.src: "https://cdn.example/a.png" is not one of our own assets`},
	{"image without alt", exampleCreative(), members{"pages": []members{{"image": members{"src": asset, "alt": ""}}}}, `pages[0].image.alt: has 0 characters (1 to 300 characters)`},
	{"focus", exampleCreative(), members{"pages": []members{{"image": members{"src": asset, "alt": "a", "focus": members{"x": 1.1, "y": 0}}}}}, `pages[0].image.focus: 1.1, 0 is out of range`},
	{"hidden address", exampleCreative(), members{"landingUrl": "https://2130706433/"}, `landingUrl: the host "2130706433" is an address that is not written as one`},
	{"hidden address of a campaign", exampleCampaign(), members{"landingUrl": "http://127.1/"}, `landingUrl: the host "127.1" is an address`},
	{"octal address", exampleCreative(), members{"landingUrl": "http://0177.0.0.1/"}, `landingUrl: the host "0177.0.0.1" is an address`},
	{"hexadecimal address", exampleCreative(), members{"landingUrl": "http://0x7F.1/"}, `landingUrl: the host "0x7f.1" is an address`},
	{"address out of range", exampleCreative(), members{"landingUrl": "http://300.1.1.1/"}, `landingUrl: the host "300.1.1.1" is an address`},
	{"line separator in a URL", exampleCreative(), members{"landingUrl": "https://a.example/\u2028"}, `landingUrl: "https://a.example/\u2028" is not a URL that readers can be sent to`},
	{"right-to-left override in a URL", exampleCampaign(), members{"landingUrl": "https://a.example/\u202emoc"}, `is not a URL that readers can be sent to`},
	{"colour", exampleCreative(), members{"pages": []members{{"headline": "a", "ink": "red"}}}, `pages[0].ink: "red" is not a colour (#rrggbb)`},
	{"layout", exampleCreative(), members{"pages": []members{{"headline": "a", "layout": "grid"}}}, `pages[0].layout: "grid" is not a layout`},
	{"body with control", exampleCreative(), members{"pages": []members{{"body": "a\r\nb"}}}, `pages[0].body: has control characters`},
	{"right-to-left override", exampleCreative(), members{"pages": []members{{"headline": "a", "ctaLabel": "\u202emoc.live"}}}, `pages[0].ctaLabel: has control characters`},
	{"isolate", exampleCreative(), members{"pages": []members{{"headline": "\u2067a"}}}, `pages[0].headline: has control characters`},
	{"zero width space", exampleCreative(), members{"pages": []members{{"headline": "a\u200bb"}}}, `pages[0].headline: has control characters`},
	{"line separator", exampleCreative(), members{"pages": []members{{"body": "a\u2028b"}}}, `pages[0].body: has control characters`},
	{"field of a page", exampleCreative(), members{"pages": []members{{"headline": "a", "html": "<b>"}}}, `pages[0].html: unknown field`},
}

const asset = "/_deckle/asset/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// nilValue is JSON null where nil means to take the member away.
type nilValue struct{}

func (nilValue) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

func facts() catalog.Config {
	return catalog.Config{Sites: []catalog.SiteFacts{{ID: "blog", Currency: "USD"}, {ID: "shop", Currency: "USD"}, {ID: "euro", Currency: "EUR"}}}
}

// withOthers is the example with a second publisher that sells in another currency.
func (w *world) withOthers() {
	w.Helper()
	w.example()
	w.put(&catalog.Publisher{ID: "other", Name: "Other", Currency: "EUR"})
	w.put(&catalog.Site{ID: "euro", Publisher: "other"})
	farm := exampleAdvertiser()
	farm.ID = "farm"
	w.put(farm)
	w.settled()
}

func TestEverythingWrongIsNamed(t *testing.T) {
	inWorld(t, facts(), func(w *world) {
		w.withOthers()
		before := w.settled().Revision()
		for _, test := range invalid {
			err := w.tryJSON(test.base.Kind(), edit(w, test.base, test.with))
			if !errors.Is(err, catalog.ErrInvalid) || !strings.Contains(err.Error(), test.want) {
				w.Errorf("%s: got %v, want a problem %s", test.name, err, test.want)
			}
		}
		if after := w.settled().Revision(); after != before {
			w.Errorf("something was written: revision %d, then %d", before, after)
		}
	})
}

// tryJSON does what the API does with a body.
func (w *world) tryJSON(k catalog.Kind, data []byte) error {
	e, err := catalog.Decode(k, data)
	if err != nil {
		return err
	}
	_, err = w.tryPut(e)
	return err
}

func TestAllProblemsAtOnce(t *testing.T) {
	inWorld(t, facts(), func(w *world) {
		w.withOthers()
		err := w.tryJSON(catalog.KindCampaign, []byte(`{
			"id": "x y", "advertiser": "nobody", "status": "on", "categories": [], "productCategory": "",
			"maxCpm": 0, "dailyBudget": -1, "start": "soon", "sites": ["nowhere"], "landingUrl": "ftp://a"}`))
		checkFields(t, err, "id", "advertiser", "status", "categories", "productCategory", "maxCpm", "dailyBudget", "start", "sites[0]", "landingUrl")

		// What cannot be read is all named as well.
		err = w.tryJSON(catalog.KindCreative, []byte(`{"id": 1, "pages": [{"headline": true}, 7], "shapes": {}, "x": 1}`))
		checkFields(t, err, "id", "pages[0].headline", "pages[1]", "shapes", "x")
	})
}

func checkFields(t *testing.T, err error, want ...string) {
	t.Helper()
	invalid, ok := errors.AsType[*catalog.InvalidError](err)
	if !ok {
		t.Fatalf("got %v, want an InvalidError", err)
	}
	var got []string
	for _, p := range invalid.Problems {
		got = append(got, p.Field)
	}
	if !slices.Equal(got, want) {
		t.Errorf("problems of %q, want %q\n%v", got, want, err)
	}
}

func TestNotJSON(t *testing.T) {
	for _, test := range []struct{ data, want string }{
		{``, `not JSON`},
		{`{"id": "a"`, `not JSON at byte`},
		{`{"id": "a", "id": "b"}`, `id: not JSON at byte`},
		{`{"id": "a"} {}`, `has something after its end`},
		{`[]`, `must be an object`},
		{"{\"name\": \"\xff\"}", `not JSON at byte`},
		{`{"name": "` + strings.Repeat("x", catalog.MaxEntityBytes) + `"}`, `is too large`},
	} {
		_, err := catalog.Decode(catalog.KindPublisher, []byte(test.data))
		if !errors.Is(err, catalog.ErrInvalid) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("Decode(%.40q) = %v, want a problem %s", test.data, err, test.want)
		}
	}
}

func TestProblemsAreBounded(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.example()
		site := exampleSite("blog")
		for i := range 5000 {
			site.BlockedCategories = append(site.BlockedCategories, fmt.Sprint("no", i))
		}
		_, err := w.tryPut(site)
		invalid, ok := errors.AsType[*catalog.InvalidError](err)
		if !ok || len(invalid.Problems) != 100 || invalid.More != 4900 || !strings.HasSuffix(err.Error(), "and 4900 more") {
			t.Errorf("got %.200v", err)
		}
	})
}

func TestNormalForm(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.example()
		site := exampleSite("blog")
		site.Floors = catalog.Floors{Site: 1_000_001, Slots: map[string]deckle.CPM{"top": 1}}
		site.BlockedDomains = []string{"Bad.Example."}
		floors := maps.Clone(site.Floors.Slots)
		got := w.put(site).Entity.(*catalog.Site)
		if got.Floors.Site != 1_001_000 || got.Floors.Slots["top"] != 1000 {
			t.Errorf("floors are %+v, want them rounded up to multiples of 1,000", got.Floors)
		}
		if !maps.Equal(site.Floors.Slots, floors) {
			t.Error("what was put has been changed")
		}
		if got.Status != catalog.Active || got.FreshnessHours != 48 || got.BidWeight != 0.5 || got.BlockedDomains[0] != "bad.example" {
			t.Errorf("defaults are %+v", got)
		}

		campaign := exampleCampaign()
		campaign.MaxCPM = 2_500_999
		if got := w.put(campaign).Entity.(*catalog.Campaign); got.MaxCPM != 2_500_000 {
			t.Errorf("max CPM is %d, want it rounded down to 2500000", got.MaxCPM)
		}
		if got := w.put(exampleAdvertiser()).Entity.(*catalog.Advertiser); got.Currency != "USD" {
			t.Errorf("currency is %q, want the publisher's", got.Currency)
		}
	})
}

func TestColorsAreCorrected(t *testing.T) {
	for _, test := range []struct{ background, ink, want string }{
		{"#ffffff", "#000000", "#000000"},
		{"#ffffff", "#767676", "#767676"}, // 4.54 : 1
		{"#ffffff", "#777777", "#000000"}, // 4.48 : 1
		{"#000000", "#333333", "#ffffff"},
		{"#1a1a2e", "#222222", "#ffffff"},
		{"", "#777777", "#777777"}, // the element's background is not known here
	} {
		inWorld(t, catalog.Config{}, func(w *world) {
			w.example()
			creative := exampleCreative()
			creative.Pages = []catalog.Page{{Headline: "a", Background: test.background, Ink: test.ink}}
			got := w.put(creative).Entity.(*catalog.Creative).Pages[0].Ink
			if got != test.want {
				t.Errorf("ink %s on %s became %s, want %s", test.ink, test.background, got, test.want)
			}
			if creative.Pages[0].Ink != test.ink {
				t.Error("what was put has been changed")
			}
		})
	}
}

func TestDatesAreTheAdvertisers(t *testing.T) {
	inWorld(t, catalog.Config{}, func(w *world) {
		w.example()
		for _, test := range []struct{ zone, start, end, wantStart, wantEnd string }{
			{"Asia/Tokyo", "2026-12-01", "2026-12-01", "2026-11-30T15:00:00Z", "2026-12-01T15:00:00Z"},
			{"Europe/Berlin", "2027-03-28", "2027-03-28", "2027-03-27T23:00:00Z", "2027-03-28T22:00:00Z"}, // 23 hours
			{"Europe/Berlin", "2027-10-31", "2027-10-31", "2027-10-30T22:00:00Z", "2027-10-31T23:00:00Z"}, // 25 hours
			{"Europe/Berlin", "2027-01-01T00:00:00+09:00", "2027-01-02T00:00:00Z", "2026-12-31T15:00:00Z", "2027-01-02T00:00:00Z"},
		} {
			advertiser := exampleAdvertiser()
			advertiser.TimeZone = test.zone
			w.put(advertiser)
			campaign := exampleCampaign()
			campaign.Start, campaign.End = catalog.Moment(test.start), catalog.Moment(test.end)
			w.put(campaign)
			start, end := w.settled().Schedule(campaign)
			const rfc3339 = "2006-01-02T15:04:05Z07:00"
			if got := start.UTC().Format(rfc3339); got != test.wantStart {
				t.Errorf("%s in %s begins at %s, want %s", test.start, test.zone, got, test.wantStart)
			}
			if got := end.UTC().Format(rfc3339); got != test.wantEnd {
				t.Errorf("%s in %s ends at %s, want %s", test.end, test.zone, got, test.wantEnd)
			}
		}
	})
}
