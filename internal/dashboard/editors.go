package dashboard

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"
	"time"

	"deckle"
	"deckle/internal/catalog"
)

// An editor is how one kind of entity is listed and edited.
type editor struct {
	kind  catalog.Kind
	title string // "Campaigns"
	about string // what they are, for the list
	empty string // what to do where there are none

	// cells are an entity's in a list, after its name.
	cells func(s *catalog.Snapshot, e catalog.Entity) []cell

	// form is the empty form, values fills it from an entity, and read makes an entity
	// of what was posted.
	form   func(s *catalog.Snapshot, d *Dashboard, v url.Values) []group
	values func(e catalog.Entity) url.Values
	read   func(r *reader) catalog.Entity

	// aside adds what stands beside the form of an entity that there is; nil: nothing.
	aside func(d *Dashboard, v visit, r catalog.Record, p *editPage) error
}

// editors are all of them, parents before children.
func editors() []editor {
	return []editor{publishers(), sites(), advertisers(), campaigns(), creatives()}
}

// plural is the name of a collection.
func plural(k catalog.Kind) string { return string(k) + "s" }

// A cell is one figure in a list.
type cell struct {
	Label  string
	Text   string
	Href   string
	ID     string // below the text, where that is a name
	Badge  string // good, wait, bad or quiet: shown as one
	Number bool
}

func badge(label string, s catalog.Status) cell {
	c := cell{Label: label, Text: string(s), Badge: "quiet"}
	switch s {
	case catalog.Active:
		c.Badge = "good"
	case catalog.Warmup, catalog.Paused:
		c.Badge = "wait"
	case catalog.Suspended:
		c.Badge = "bad"
	}
	return c
}

func parentCell(k catalog.Kind, id, name string) cell {
	if id == "" {
		return cell{Label: title(k), Text: "none"}
	}
	return cell{Label: title(k), Text: cmp.Or(name, id), Href: "/" + plural(k) + "/" + id}
}

// title is a kind as a heading writes it.
func title(k catalog.Kind) string { return strings.ToUpper(string(k)[:1]) + string(k)[1:] }

// idField is the id, which is chosen once.
func idField(v url.Values, help string) field {
	if v.Get("revision") != "" && v.Get("revision") != "0" {
		return field{Name: "id", Label: "Id", Kind: "fixed", Width: "narrow"}
	}
	return field{Name: "id", Label: "Id", Kind: "text", Help: help, Width: "narrow"}
}

// What amounts may be, for people.
const (
	budgetRange = "an amount above 0, at most 1,000,000,000"
	cpmRange    = "an amount from 0.001 to 1,000,000"
)

const idHelp = "Letters, digits, - and _; it cannot be changed later."

func statusField(states ...catalog.Status) field {
	f := field{Name: "status", Label: "Status", Kind: "select", Width: "narrow"}
	for _, s := range states {
		f.Options = append(f.Options, option{Value: string(s), Label: string(s)})
	}
	return f
}

// maxOptions is how many things a list in a form shows; beyond, ids are typed.
const maxOptions = 200

// choose is a field for the id of one entity of a kind.
func choose(s *catalog.Snapshot, k catalog.Kind, label, none string) field {
	f := field{Name: string(k), Label: label, Kind: "select"}
	records := s.List(k, "", maxOptions+1)
	if len(records) > maxOptions {
		f.Kind, f.Help = "text", "Its id."
		return f
	}
	f.Options = append(f.Options, option{Label: none})
	for _, r := range records {
		f.Options = append(f.Options, option{Value: r.EntityID(), Label: nameOf(r.Entity)})
	}
	return f
}

// chooseMany is a field for ids, with what they may be.
func chooseMany(name, label, help string, options []option) field {
	if len(options) > maxOptions {
		return field{Name: name, Label: label, Kind: "area", Help: help + " One id a line.", Width: "full"}
	}
	return field{Name: name, Label: label, Kind: "checks", Help: help, Options: options, Width: "full"}
}

// categoryOptions are the categories of a taxonomy, by name.
func categoryOptions(t *catalog.Taxonomy) (options []option) {
	for _, id := range t.Categories() {
		name, _ := t.CategoryName(id)
		options = append(options, option{Value: id, Label: name})
	}
	return options
}

// nameOf is how people call an entity.
func nameOf(e catalog.Entity) string {
	switch e := e.(type) {
	case *catalog.Publisher:
		return cmp.Or(e.Name, e.ID)
	case *catalog.Advertiser:
		return cmp.Or(e.Name, e.ID)
	case *catalog.Campaign:
		return cmp.Or(e.Name, e.ID)
	case *catalog.Creative:
		return cmp.Or(e.Name, e.ID)
	}
	return e.EntityID()
}

func publishers() editor {
	return editor{
		kind:  catalog.KindPublisher,
		title: "Publishers",
		about: "A publisher owns sites and sells their slots in one currency.",
		empty: "Begin here: sites and advertisers belong to a publisher.",
		cells: func(s *catalog.Snapshot, e catalog.Entity) []cell {
			p := e.(*catalog.Publisher)
			return []cell{
				{Label: "Currency", Text: p.Currency},
				{Label: "Sites", Text: strconv.Itoa(len(s.Children(catalog.KindSite, p.ID))), Number: true, Href: "/sites?of=" + p.ID},
				{Label: "Advertisers", Text: strconv.Itoa(len(s.Children(catalog.KindAdvertiser, p.ID))), Number: true, Href: "/advertisers?of=" + p.ID},
			}
		},
		form: func(_ *catalog.Snapshot, _ *Dashboard, v url.Values) []group {
			return []group{{Legend: "Publisher", Fields: []field{
				idField(v, idHelp),
				{Name: "name", Label: "Name", Kind: "text", Width: "narrow"},
				{Name: "currency", Label: "Currency", Kind: "text", Help: "ISO 4217, like USD; that of all its sites in deckle.toml.", Width: "narrow"},
			}}}
		},
		values: func(e catalog.Entity) url.Values {
			p := e.(*catalog.Publisher)
			return url.Values{"id": {p.ID}, "name": {p.Name}, "currency": {p.Currency}}
		},
		read: func(r *reader) catalog.Entity {
			return &catalog.Publisher{ID: r.text("id"), Name: r.text("name"), Currency: strings.ToUpper(r.text("currency"))}
		},
		aside: func(d *Dashboard, _ visit, r catalog.Record, p *editPage) error {
			p.Keys = newKeysPanel(d.catalog.Snapshot(), r.EntityID(), time.Now())
			return nil
		},
	}
}

func sites() editor {
	return editor{
		kind:  catalog.KindSite,
		title: "Sites",
		about: "The commercial side of the sites in deckle.toml: floors, blocks, and what its pages are about.",
		empty: "A site of deckle.toml sells nothing until it has its publisher here.",
		cells: func(s *catalog.Snapshot, e catalog.Entity) []cell {
			x := e.(*catalog.Site)
			p, ok := s.Publisher(x.Publisher)
			if !ok {
				p = &catalog.Publisher{}
			}
			floor := cell{Label: "Floor", Text: "none", Number: true}
			if x.Floors.Site > 0 {
				floor.Text = amount(int64(x.Floors.Site), p.Currency)
			}
			return []cell{badge("Status", x.Status), parentCell(catalog.KindPublisher, x.Publisher, p.Name), floor}
		},
		form:   siteForm,
		values: siteValues,
		read: func(r *reader) catalog.Entity {
			return &catalog.Site{
				ID: r.text("id"), Publisher: r.text("publisher"), Status: catalog.Status(r.text("status")),
				FreshnessHours: r.whole("freshnessHours"), BidWeight: r.decimal("bidWeight"),
				Floors: catalog.Floors{
					Site:       deckle.CPM(r.micros("floors.site")),
					Categories: r.pairs("floors.categories"),
					Slots:      r.pairs("floors.slots"),
				},
				BlockedDomains:    r.lines("blockedDomains"),
				BlockedCategories: r.lines("blockedCategories"),
				CategoryRules:     r.rules("categoryRules"),
				AutoApprove:       r.text("autoApprove") != "",
			}
		},
	}
}

func siteForm(s *catalog.Snapshot, d *Dashboard, v url.Values) []group {
	_, products := d.catalog.Taxonomies()
	id := idField(v, "That of the [[site]] in deckle.toml.")
	if id.Kind == "text" && len(d.config.Sites) > 0 {
		id.Kind, id.Help = "select", "The sites of deckle.toml."
		for _, site := range d.config.Sites {
			id.Options = append(id.Options, option{Value: site, Label: site})
		}
	}
	publisher := choose(s, catalog.KindPublisher, "Publisher", "Choose a publisher")
	publisher.Width = "narrow"
	return []group{
		{Legend: "Site", Fields: []field{
			id, publisher, statusField(catalog.Active, catalog.Warmup, catalog.Suspended),
			{
				Name: "autoApprove", Label: "Approve every creative by itself", Kind: "check", Width: "full",
				Help: "No person looks at what is shown here. Leave it off unless every advertiser is yours.",
			},
		}},
		{Legend: "Floors", Help: "Prices for a thousand impressions. The most particular one applies: slot, category, site.", Fields: []field{
			{Name: "floors.site", Label: "Site", Kind: "number", Range: cpmRange, Optional: true, Width: "narrow"},
			{Name: "floors.categories", Label: "Categories", Kind: "area", Optional: true, Width: "narrow", Help: "One a line: 596 = 2.50"},
			{Name: "floors.slots", Label: "Slots", Kind: "area", Optional: true, Width: "narrow", Help: "One a line: sidebar-1 = 1.20"},
		}},
		{Legend: "What its pages are about", Fields: []field{
			{Name: "categoryRules", Label: "Category rules", Kind: "area", Optional: true, Width: "full", Help: "Path pattern = up to three content categories, one rule a line: /travel/* = 653"},
			{Name: "freshnessHours", Label: "Freshness", Kind: "number", Unit: "hours", Optional: true, Help: "How old a classification may be: 1 to 720; 48 by default."},
			{Name: "bidWeight", Label: "Bid weight α", Kind: "number", Optional: true, Help: "How much the bid weighs against engagement: 0.1 to 1; 0.5 by default."},
		}},
		{Legend: "What is not shown here", Help: "A block takes creatives off this site at once, also out of bookmarks.", Fields: []field{
			{Name: "blockedDomains", Label: "Advertiser domains", Kind: "area", Optional: true, Width: "full", Help: "Of landing pages, with all below them; one a line."},
			chooseMany("blockedCategories", "Product categories", "With all below them.", categoryOptions(products)),
		}},
	}
}

func siteValues(e catalog.Entity) url.Values {
	x := e.(*catalog.Site)
	v := url.Values{
		"id": {x.ID}, "publisher": {x.Publisher}, "status": {string(x.Status)},
		"floors.site": {plainAmount(int64(x.Floors.Site))}, "floors.categories": {formatPairs(x.Floors.Categories)},
		"floors.slots":   {formatPairs(x.Floors.Slots)},
		"blockedDomains": {strings.Join(x.BlockedDomains, "\n")}, "blockedCategories": x.BlockedCategories,
		"categoryRules": {formatRules(x.CategoryRules)},
	}
	if x.FreshnessHours != 0 {
		v.Set("freshnessHours", strconv.Itoa(x.FreshnessHours))
	}
	if x.BidWeight != 0 {
		v.Set("bidWeight", strconv.FormatFloat(x.BidWeight, 'g', -1, 64))
	}
	if x.AutoApprove {
		v.Set("autoApprove", "yes")
	}
	return v
}

func advertisers() editor {
	return editor{
		kind:  catalog.KindAdvertiser,
		title: "Advertisers",
		about: "An advertiser buys on the sites of one publisher, and never spends more than its budget of a day.",
		empty: "An advertiser has campaigns, and campaigns have creatives.",
		cells: func(s *catalog.Snapshot, e catalog.Entity) []cell {
			x := e.(*catalog.Advertiser)
			name := ""
			if p, ok := s.Publisher(x.Publisher); ok {
				name = p.Name
			}
			return []cell{
				badge("Status", x.Status), parentCell(catalog.KindPublisher, x.Publisher, name),
				{Label: "A day", Text: amount(int64(x.DailyBudget), x.Currency), Number: true},
				{Label: "Campaigns", Text: strconv.Itoa(len(s.Children(catalog.KindCampaign, x.ID))), Number: true, Href: "/campaigns?of=" + x.ID},
			}
		},
		form: func(s *catalog.Snapshot, _ *Dashboard, v url.Values) []group {
			return []group{{Legend: "Advertiser", Fields: []field{
				idField(v, idHelp),
				{Name: "name", Label: "Name", Kind: "text", Width: "narrow"},
				statusField(catalog.Active, catalog.Suspended),
				choose(s, catalog.KindPublisher, "Publisher", "Choose a publisher"),
			}}, {Legend: "Budget", Fields: []field{
				{Name: "dailyBudget", Label: "Budget of a day", Kind: "number", Range: budgetRange, Unit: v.Get("currency")},
				{Name: "timeZone", Label: "Time zone", Kind: "text", Help: "Like Europe/Berlin: when its days begin and end. A change may begin another day at once, with its daily budgets whole again."},
			}}}
		},
		values: func(e catalog.Entity) url.Values {
			x := e.(*catalog.Advertiser)
			return url.Values{
				"id": {x.ID}, "publisher": {x.Publisher}, "name": {x.Name}, "status": {string(x.Status)},
				"dailyBudget": {plainAmount(int64(x.DailyBudget))}, "timeZone": {x.TimeZone}, "currency": {x.Currency},
			}
		},
		read: func(r *reader) catalog.Entity {
			return &catalog.Advertiser{
				ID: r.text("id"), Publisher: r.text("publisher"), Name: r.text("name"), Status: catalog.Status(r.text("status")),
				DailyBudget: deckle.Money(r.micros("dailyBudget")), TimeZone: r.text("timeZone"),
			}
		},
	}
}

func campaigns() editor {
	return editor{
		kind:  catalog.KindCampaign,
		title: "Campaigns",
		about: "What an advertiser wants shown, where, when and for how much.",
		empty: "A campaign needs an advertiser; its creatives queue for approval by themselves.",
		cells: func(s *catalog.Snapshot, e catalog.Entity) []cell {
			x := e.(*catalog.Campaign)
			a, ok := s.Advertiser(x.Advertiser)
			if !ok {
				a = &catalog.Advertiser{}
			}
			return []cell{
				badge("Status", x.Status), parentCell(catalog.KindAdvertiser, x.Advertiser, a.Name),
				{Label: "Max CPM", Text: amount(int64(x.MaxCPM), a.Currency), Number: true},
				{Label: "A day", Text: amount(int64(x.DailyBudget), a.Currency), Number: true},
				{Label: "Runs", Text: period(x.Start, x.End)},
			}
		},
		form:   campaignForm,
		values: campaignValues,
		read:   readCampaign,
		aside: func(d *Dashboard, v visit, r catalog.Record, p *editPage) (err error) {
			p.Spend, err = d.spendOf(v.r.Context(), r.Entity.(*catalog.Campaign), time.Now())
			return err
		},
	}
}

// period is when a campaign runs, in words.
func period(start, end catalog.Moment) string {
	switch {
	case start == "" && end == "":
		return "always"
	case end == "":
		return "from " + string(start)
	case start == "":
		return "until " + string(end)
	}
	return string(start) + " – " + string(end)
}

func campaignForm(s *catalog.Snapshot, d *Dashboard, v url.Values) []group {
	content, products := d.catalog.Taxonomies()
	currency := ""
	if a, ok := s.Advertiser(v.Get("advertiser")); ok {
		currency = a.Currency
	}
	product := field{Name: "productCategory", Label: "Product category", Kind: "select", Help: "What it advertises; sites can block it."}
	product.Options = append([]option{{Label: "Choose a category"}}, categoryOptions(products)...)
	per := field{Name: "frequencyCap.per", Label: "In each", Kind: "select", Width: "narrow", Optional: true}
	for _, p := range []catalog.Period{catalog.PerHour, catalog.PerDay, catalog.PerWeek} {
		per.Options = append(per.Options, option{Value: string(p), Label: string(p)})
	}
	var allSites []option
	for _, r := range s.List(catalog.KindSite, "", maxOptions+1) {
		allSites = append(allSites, option{Value: r.EntityID(), Label: r.EntityID()})
	}
	return []group{
		{Legend: "Campaign", Fields: []field{
			idField(v, idHelp),
			{Name: "name", Label: "Name", Kind: "text", Optional: true, Width: "narrow"},
			statusField(catalog.Active, catalog.Paused, catalog.Ended),
			choose(s, catalog.KindAdvertiser, "Advertiser", "Choose an advertiser"),
			{Name: "landingUrl", Label: "Landing page", Kind: "text", Help: "For creatives that have none of their own."},
			{Name: "dogEar", Label: "Readers may fold its corner", Kind: "check", Width: "full", Help: "They meet it again, free of charge. Pausing or ending the campaign ends their bookmarks."},
		}},
		{Legend: "Money", Fields: []field{
			{Name: "maxCpm", Label: "Most for a thousand impressions", Kind: "number", Range: cpmRange, Unit: currency, Width: "narrow"},
			{Name: "dailyBudget", Label: "Budget of a day", Kind: "number", Range: budgetRange, Unit: currency, Width: "narrow"},
			{Name: "totalBudget", Label: "Budget in total", Kind: "number", Range: budgetRange, Unit: currency, Optional: true, Width: "narrow"},
		}},
		{Legend: "When and how often", Fields: []field{
			{Name: "start", Label: "First day", Kind: "text", Optional: true, Help: "2026-12-01 in the advertiser's time zone, or RFC 3339."},
			{Name: "end", Label: "Last day", Kind: "text", Optional: true, Help: "2026-12-24, that day included."},
			{Name: "frequencyCap.count", Label: "At most so often", Kind: "number", Optional: true, Width: "narrow", Help: "In one browser."},
			per,
		}},
		{Legend: "Where", Fields: []field{
			chooseMany("categories", "Content categories", "The pages that it wants.", categoryOptions(content)),
			product,
			chooseMany("sites", "Sites", "None: every site of the publisher.", allSites),
		}},
	}
}

func campaignValues(e catalog.Entity) url.Values {
	x := e.(*catalog.Campaign)
	v := url.Values{
		"id": {x.ID}, "advertiser": {x.Advertiser}, "name": {x.Name}, "status": {string(x.Status)},
		"categories": x.Categories, "productCategory": {x.ProductCategory},
		"maxCpm": {plainAmount(int64(x.MaxCPM))}, "dailyBudget": {plainAmount(int64(x.DailyBudget))}, "totalBudget": {plainAmount(int64(x.TotalBudget))},
		"start": {string(x.Start)}, "end": {string(x.End)}, "sites": x.Sites, "landingUrl": {x.LandingURL},
	}
	if x.FrequencyCap != nil {
		v.Set("frequencyCap.count", strconv.Itoa(x.FrequencyCap.Count))
		v.Set("frequencyCap.per", string(x.FrequencyCap.Per))
	}
	if x.DogEar {
		v.Set("dogEar", "yes")
	}
	return v
}

func readCampaign(r *reader) catalog.Entity {
	x := &catalog.Campaign{
		ID: r.text("id"), Advertiser: r.text("advertiser"), Name: r.text("name"), Status: catalog.Status(r.text("status")),
		Categories: r.lines("categories"), ProductCategory: r.text("productCategory"),
		MaxCPM: deckle.CPM(r.micros("maxCpm")), DailyBudget: deckle.Money(r.micros("dailyBudget")), TotalBudget: deckle.Money(r.micros("totalBudget")),
		Start: catalog.Moment(r.text("start")), End: catalog.Moment(r.text("end")),
		Sites: r.lines("sites"), DogEar: r.text("dogEar") != "", LandingURL: r.text("landingUrl"),
	}
	if r.text("frequencyCap.count") != "" {
		x.FrequencyCap = &catalog.FrequencyCap{Count: r.whole("frequencyCap.count"), Per: catalog.Period(r.text("frequencyCap.per"))}
	}
	return x
}
