package catalog

import "deckle"

// A Kind names one kind of entity, as keys, paths and documents write it.
type Kind string

// The kinds of entities, parents before their children: the order in which a
// document is applied.
const (
	KindPublisher  Kind = "publisher"
	KindSite       Kind = "site"
	KindAdvertiser Kind = "advertiser"
	KindCampaign   Kind = "campaign"
	KindCreative   Kind = "creative"
)

// Kinds are all kinds, parents before their children.
func Kinds() []Kind {
	return []Kind{KindPublisher, KindSite, KindAdvertiser, KindCampaign, KindCreative}
}

// A Status says what an entity does at present. Which ones it can have depends on
// its kind.
type Status string

const (
	Active    Status = "active"
	Warmup    Status = "warmup"    // of a site: traffic is learned, only bookmarks are shown
	Suspended Status = "suspended" // of a site or an advertiser
	Paused    Status = "paused"    // of a campaign (ends bookmarks) or a creative (does not)
	Ended     Status = "ended"     // of a campaign
	Deleted   Status = "deleted"   // of a creative, which stays as a tombstone
)

// An Entity is one of *[Publisher], *[Site], *[Advertiser], *[Campaign] and
// *[Creative]. What a [Snapshot] or a [Record] gives out is shared and must not be
// changed.
type Entity interface {
	Kind() Kind
	EntityID() string // [A-Za-z0-9_-]{1,64}, unique in its kind

	normalize(w world)
	validate(p *problems, w world)
	clone() Entity
}

// A Publisher owns sites and sells their slots in one currency.
type Publisher struct {
	ID       string `json:"id"`
	Name     string `json:"name"`     // 1–120 characters
	Currency string `json:"currency"` // ISO 4217; that of all its sites in deckle.toml
}

// A Site is the commercial side of a [[site]] of deckle.toml with the same id.
type Site struct {
	ID        string `json:"id"`
	Publisher string `json:"publisher"`
	Status    Status `json:"status,omitempty"` // active (default), warmup, suspended

	FreshnessHours int     `json:"freshnessHours,omitempty"` // how old a page's classification may be: 1–720, default 48
	BidWeight      float64 `json:"bidWeight,omitempty"`      // α of money.md, 0.1–1, default 0.5

	Floors            Floors         `json:"floors,omitzero"`
	BlockedDomains    []string       `json:"blockedDomains,omitempty"`    // of landing pages, with all below them
	BlockedCategories []string       `json:"blockedCategories,omitempty"` // IAB Ad Product ids, with all below them
	CategoryRules     []CategoryRule `json:"categoryRules,omitempty"`
	AutoApprove       bool           `json:"autoApprove,omitempty"` // every creative that would serve is approved by itself
}

// Floors are a site's hard floors: micros for a thousand impressions, rounded up
// to a multiple of 1,000. The most particular one applies: slot, category, site.
type Floors struct {
	Site       deckle.CPM            `json:"site,omitempty"`
	Categories map[string]deckle.CPM `json:"categories,omitempty"` // by IAB content category id
	Slots      map[string]deckle.CPM `json:"slots,omitempty"`      // by slot id
}

// A CategoryRule says what pages are about whose path matches a pattern.
type CategoryRule struct {
	Path       string   `json:"path"`       // a pattern as in templates
	Categories []string `json:"categories"` // 1–3 IAB content category ids
}

// An Advertiser buys on the sites of one publisher.
type Advertiser struct {
	ID          string       `json:"id"`
	Publisher   string       `json:"publisher"`
	Name        string       `json:"name"`
	Status      Status       `json:"status,omitempty"`   // active (default), suspended
	DailyBudget deckle.Money `json:"dailyBudget"`        // micros
	TimeZone    string       `json:"timeZone"`           // IANA name; its days are the days of its budgets
	Currency    string       `json:"currency,omitempty"` // its publisher's, filled in when it is left out
}

// A Campaign is what an advertiser wants shown, where, when and for how much.
type Campaign struct {
	ID         string `json:"id"`
	Advertiser string `json:"advertiser"`
	Name       string `json:"name,omitempty"`
	Status     Status `json:"status,omitempty"` // active (default), paused, ended

	Categories      []string `json:"categories"`      // 1–50 IAB Content Taxonomy 3.0 ids: pages it wants
	ProductCategory string   `json:"productCategory"` // IAB Ad Product Taxonomy 2.0 id: what it advertises

	MaxCPM      deckle.CPM   `json:"maxCpm"`                // micros, rounded down to a multiple of 1,000
	DailyBudget deckle.Money `json:"dailyBudget"`           // micros
	TotalBudget deckle.Money `json:"totalBudget,omitempty"` // micros; 0 = none; one below DailyBudget is spent within a day

	Start Moment `json:"start,omitempty"` // empty: at once
	End   Moment `json:"end,omitempty"`   // empty: open-ended

	Sites        []string      `json:"sites,omitempty"` // allowlist; empty: every site of the publisher
	FrequencyCap *FrequencyCap `json:"frequencyCap,omitempty"`
	DogEar       bool          `json:"dogEar,omitempty"` // may be folded
	LandingURL   string        `json:"landingUrl"`       // for creatives that are saved without one
}

// A Moment is an instant (RFC 3339) or a date ("2026-12-24") in the advertiser's
// time zone. A date as the start is its first instant, as the end its last.
type Moment string

// A FrequencyCap bounds how often one browser sees a campaign.
type FrequencyCap struct {
	Count int    `json:"count"` // 1–1000
	Per   Period `json:"per"`
}

// A Period is what a frequency cap counts in.
type Period string

const (
	PerHour Period = "hour"
	PerDay  Period = "day"
	PerWeek Period = "week"
)

// A Creative is one magazine. What a publisher approves of it (pages, landing URL,
// shapes) has a version, which grows whenever any of it changes.
type Creative struct {
	ID       string `json:"id"`
	Campaign string `json:"campaign,omitempty"` // all of one advertiser; empty: unassigned, which takes it off every site
	Name     string `json:"name,omitempty"`
	Status   Status `json:"status,omitempty"` // active (default), paused, deleted

	// Version is given by the catalog, from 1. What a writer sends is ignored.
	Version uint32 `json:"version,omitempty"`

	Content
}

// Content is what a publisher approves of a creative.
type Content struct {
	Pages      []Page  `json:"pages"`                // 1–12; the first is the cover
	Shapes     []Shape `json:"shapes,omitempty"`     // it may fill; none: any
	LandingURL string  `json:"landingUrl,omitempty"` // http(s); the campaign's at the time when left out
}

// A Shape is a slot's rectangle in CSS pixels.
type Shape struct {
	W int `json:"w"`
	H int `json:"h"`
}

// A Page is one page of a magazine: plain text, one image, colours.
type Page struct {
	Headline   string `json:"headline,omitempty"`
	Sub        string `json:"sub,omitempty"`
	Body       string `json:"body,omitempty"`
	Caption    string `json:"caption,omitempty"`
	Tag        string `json:"tag,omitempty"`
	Image      *Image `json:"image,omitempty"`
	Background string `json:"background,omitempty"` // #rrggbb, as ink and accent
	Ink        string `json:"ink,omitempty"`
	Accent     string `json:"accent,omitempty"`
	CTALabel   string `json:"ctaLabel,omitempty"`
	Layout     string `json:"layout,omitempty"` // full, split, text; empty: the element chooses
}

// An Image is one of our own assets.
type Image struct {
	Src   string `json:"src"` // path of an asset: /_deckle/asset/<SHA-256>
	Alt   string `json:"alt"` // what a reader hears who does not see it
	Focus *Focus `json:"focus,omitempty"`
}

// A Focus is the point of an image that stays in view when it is cropped, in
// fractions of its width and height.
type Focus struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

func (*Publisher) Kind() Kind  { return KindPublisher }
func (*Site) Kind() Kind       { return KindSite }
func (*Advertiser) Kind() Kind { return KindAdvertiser }
func (*Campaign) Kind() Kind   { return KindCampaign }
func (*Creative) Kind() Kind   { return KindCreative }

func (e *Publisher) EntityID() string  { return e.ID }
func (e *Site) EntityID() string       { return e.ID }
func (e *Advertiser) EntityID() string { return e.ID }
func (e *Campaign) EntityID() string   { return e.ID }
func (e *Creative) EntityID() string   { return e.ID }

func (e *Publisher) clone() Entity  { return new(*e) }
func (e *Site) clone() Entity       { return new(*e) }
func (e *Advertiser) clone() Entity { return new(*e) }
func (e *Campaign) clone() Entity   { return new(*e) }
func (e *Creative) clone() Entity   { return new(*e) }

// newEntity is an empty entity of a kind, nil for a kind that there is not.
func newEntity(k Kind) Entity {
	switch k {
	case KindPublisher:
		return &Publisher{}
	case KindSite:
		return &Site{}
	case KindAdvertiser:
		return &Advertiser{}
	case KindCampaign:
		return &Campaign{}
	case KindCreative:
		return &Creative{}
	}
	return nil
}
