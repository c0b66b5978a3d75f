package dashboard_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"deckle/internal/catalog"
	"deckle/internal/journal"
	"deckle/internal/journal/journaltest"
	"deckle/internal/projection"
	"deckle/internal/store/memory"
)

// generated is how many events the made-up days of report have.
const generated = 1400

// report puts made-up days into the reports of the world, from a day on, one slot every
// quarter of an hour, and their advertisers into the catalog: sites 1 and 2 are of a
// publisher who sells in dollars to three advertisers, site 3 of one who sells in yen
// to the fourth.
func (w *world) report(start time.Time) {
	w.t.Helper()
	g := journaltest.New(7, journaltest.Config{Start: start, Rate: 1.0 / 900, Lease: 500_000})
	var events []journal.Event
	for range generated {
		events = append(events, atHome(g.Next()))
	}
	w.parts.Tables = folded(w, events...)
	w.trade()
	w.open()
}

// atHome moves an event to a site on which its advertiser buys.
func atHome(e journal.Event) journal.Event {
	if e.Site == "" {
		return e
	}
	site := "site-1"
	switch {
	case strings.HasPrefix(e.Creative, "mag-4"):
		site = "site-3"
	case e.Site != "site-3":
		site = e.Site
	}
	e.URL = strings.ReplaceAll(e.URL, e.Site, site)
	e.Site = site
	return e
}

// folded are tables of events.
func folded(w *world, events ...journal.Event) *projection.Tables {
	w.t.Helper()
	ctx := context.Background()
	log, path := memory.NewLog(), filepath.Join(w.t.TempDir(), "report.db")
	for i := 0; i < len(events); i += 500 {
		data, err := journal.Encode(events[i:min(i+500, len(events))])
		if err != nil {
			w.t.Fatal(err)
		}
		if _, err := log.Append(ctx, fmt.Sprint(i), data); err != nil {
			w.t.Fatal(err)
		}
	}
	quiet := slog.New(slog.DiscardHandler)
	if len(events) > 0 {
		if _, err := projection.Rebuild(ctx, path, log, projection.Config{}, quiet, projection.Report{}); err != nil {
			w.t.Fatal(err)
		}
	}
	tables, err := projection.OpenTables(ctx, path, projection.Config{}, quiet, projection.Report{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = tables.Close() })
	return tables
}

// trade is the catalog of the made-up days.
func (w *world) trade() {
	content, product := catalog.ContentTaxonomy().Categories(), catalog.ProductTaxonomy().Categories()
	w.put(
		&catalog.Publisher{ID: "umi", Name: "Umi Press", Currency: "USD"},
		&catalog.Publisher{ID: "kaze", Name: "Kaze Shuppan", Currency: "JPY"},
		&catalog.Site{ID: "site-1", Publisher: "umi"},
		&catalog.Site{ID: "site-2", Publisher: "umi"},
		&catalog.Site{ID: "site-3", Publisher: "kaze"},
	)
	names := []string{"Ryokan Association", "Tea House Uji", "Kiln & Glaze", "Night Ferry"}
	for a, name := range names {
		publisher := "umi"
		if a == 3 {
			publisher = "kaze"
		}
		id := fmt.Sprint("adv-", a+1)
		w.put(&catalog.Advertiser{ID: id, Publisher: publisher, Name: name, DailyBudget: 40e6, TimeZone: "UTC"})
		for c, campaign := range []string{"=HYPERLINK(\"http://evil.example\",\"Spring\")", "Autumn leaves", "Winter nights"} {
			cid := fmt.Sprintf("camp-%d-%d", a+1, c+1)
			w.put(&catalog.Campaign{
				ID: cid, Advertiser: id, Name: campaign, Categories: content[:2], ProductCategory: product[0],
				MaxCPM: 20e6, DailyBudget: 3e6, LandingURL: "https://landing.example/",
			})
			for m := range 2 {
				w.put(&catalog.Creative{
					ID: fmt.Sprintf("mag-%d-%d-%d", a+1, c+1, m+1), Campaign: cid,
					Content: catalog.Content{Pages: []catalog.Page{{Headline: "A cover"}}, LandingURL: "https://landing.example/"},
				})
			}
		}
	}
}
