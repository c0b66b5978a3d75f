package dashboard_test

import (
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	"deckle/internal/catalog"
	"deckle/internal/dashboard/api"
)

// A catalog of 10,000 campaigns goes in by one document, and its pages are still
// pages.
func TestLargeCatalog(t *testing.T) {
	if os.Getenv("DECKLE_SLOW") == "" {
		t.Skip("DECKLE_SLOW is not set")
	}
	const campaigns = 10_000
	doc := catalog.Document{
		Publishers: []*catalog.Publisher{{ID: "yuki", Name: "Yuki", Currency: "USD"}},
		Sites:      []*catalog.Site{{ID: "yuki-site", Publisher: "yuki"}},
	}
	content, product := catalog.ContentTaxonomy().Categories(), catalog.ProductTaxonomy().Categories()
	for i := range campaigns {
		n := strconv.Itoa(i)
		if i%100 == 0 {
			doc.Advertisers = append(doc.Advertisers, &catalog.Advertiser{ID: "a" + n, Publisher: "yuki", Name: "A " + n, DailyBudget: 1e6, TimeZone: "UTC"})
		}
		doc.Campaigns = append(doc.Campaigns, &catalog.Campaign{
			ID: "c" + n, Advertiser: "a" + strconv.Itoa(i/100*100), Categories: content[:1], ProductCategory: product[0],
			MaxCPM: 1e6, DailyBudget: 1e6, LandingURL: "https://a" + n + ".example/",
		})
		doc.Creatives = append(doc.Creatives, &catalog.Creative{ID: "m" + n, Campaign: "c" + n, Content: catalog.Content{Pages: []catalog.Page{{Headline: "H"}}}})
	}
	body, err := json.Marshal(&doc)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, nil)
	took := func(what string, most time.Duration, do func() *answer) *answer {
		t.Helper()
		start := time.Now()
		a := do()
		if d := time.Since(start); d > most {
			t.Errorf("%s took %v, at most %v is bearable", what, d, most)
		} else {
			t.Logf("%s: %v, %d bytes", what, d, len(a.body))
		}
		if a.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %.400s", what, a.StatusCode, a.body)
		}
		return a
	}
	diff := took("diff", 20*time.Second, func() *answer { return w.api("POST", "/document/diff", string(body)) })
	applied := took("apply", time.Minute, func() *answer {
		return w.api("POST", "/document/apply", string(body), "If-Match", diff.Header.Get("Etag"))
	})
	if d := decode[api.Diff](t, applied); d.Done != len(d.Steps) || d.Done < 2*campaigns {
		t.Errorf("%d of %d steps", d.Done, len(d.Steps))
	}
	again := took("diff of the same", 20*time.Second, func() *answer { return w.api("POST", "/document/diff", string(body)) })
	if d := decode[api.Diff](t, again); len(d.Steps) != 0 {
		t.Errorf("%d steps are left", len(d.Steps))
	}
	p := w.logIn("ana")
	for _, path := range []string{"/", "/campaigns", "/campaigns?after=c5000", "/campaigns/c77", "/campaigns/new", "/inbox", "/audit"} {
		took(path, 2*time.Second, func() *answer { return p.get(path) })
	}
	for _, path := range []string{"/campaigns?limit=200", "/approvals?limit=200", "/audit", "/document"} {
		took("API "+path, 2*time.Second, func() *answer { return w.api("GET", path, "") })
	}
}
