package dashboard

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"deckle"
	"deckle/internal/catalog"
	"deckle/internal/dashboard/api"
	"deckle/internal/dashboard/report"
	"deckle/internal/publicapi"
	"deckle/internal/serve"
	"deckle/internal/template"
)

// whyPage answers why a page got the ads that it gets: what it is about, who wanted
// it, and what became of each, in words, with the numbers behind them.
type whyPage struct {
	frame
	Closed  bool
	URL     string
	Slots   field // as they are entered
	Pins    field
	Problem string
	From    string // where the slots are from
	Answer  *whyAnswer
	Sites   []option // for a debug token
}

// A whyAnswer is an explanation in words.
type whyAnswer struct {
	Site       string
	At         time.Time
	Categories []whyCategory
	About      string // whence and how fresh, or why there are none
	Stale      bool
	Slots      []whySlot
	Steps      []whyStep
	Candidates []whyCandidate
	More       int // candidates that are not shown
	Weight     string
	Gone       []string // bookmarks elsewhere that would be dropped
}

type whyCategory struct{ Name, ID, Source, Confidence string }

// A whyStep is how many candidates a step let pass.
type whyStep struct {
	Name, Text string
	In, Out    int
	Meter      meter
}

type whySlot struct {
	ID, Size   string
	Verdict    string
	Winner     link   // empty where there is none
	Of         string // whose it is
	Because    []string
	Scale      *priceScale
	Contenders []whyContender // in the order of their turns
	Others     []whyOthers    // that had no turn
	More       int
}

// whyOthers are candidates that something kept from a slot.
type whyOthers struct {
	Fate, Badge string
	Creatives   []link
}

// A priceScale shows floor, price and bid of a winner on one line.
type priceScale struct {
	About             string
	Floor, Price, Bid string // places on a line of 100
	Labels            []figure
}

type whyContender struct {
	About  link
	Of     string
	Fate   string
	Badge  string
	Texts  []string // in the order of contenderHead
	Winner bool
}

var contenderHead = []string{"Score", "Bid", "Floor", "Price"}

type whyCandidate struct {
	About  link
	Of     string
	Fate   string
	Badge  string
	Wanted string   // the category, and how far it is from the page's
	Texts  []string // bid, engagement, drawn, score, what readers did
}

func (d *Dashboard) showWhy(v visit) error {
	s, err := d.snapshot()
	if err != nil {
		return err
	}
	asked := v.r.URL.Query()
	p := whyPage{frame: d.frame(v, "Why this ad", "/why"), Closed: d.parts.Explain == nil, URL: strings.TrimSpace(asked.Get("url"))}
	p.Slots = field{Name: "slots", Label: "Slots", Kind: "area", Value: asked.Get("slots"), Optional: true, Help: "One a line, as sidebar-1 300x250. None: those that the site’s template has there."}
	p.Pins = field{Name: "pins", Label: "Bookmarks of the reader", Kind: "area", Value: asked.Get("pins"), Optional: true, Help: "One a line, as sidebar-1 = ryokan-magazine-001."}
	for _, r := range s.List(catalog.KindSite, "", maxOptions) {
		p.Sites = append(p.Sites, option{Value: r.EntityID(), Label: r.EntityID()})
	}
	if p.Closed || p.URL == "" {
		return render(v.w, http.StatusOK, "why", p)
	}
	e, err := d.explain(&p)
	if err != nil {
		return err
	}
	if e == nil {
		return render(v.w, http.StatusBadRequest, "why", p)
	}
	p.Answer = newWhyAnswer(&words{s, d.content(), report.CurrencyOfSite(s, e.Site)}, e)
	return render(v.w, http.StatusOK, "why", p)
}

// content is the taxonomy by whose ids pages are described.
func (d *Dashboard) content() *catalog.Taxonomy {
	content, _ := d.catalog.Taxonomies()
	return content
}

// explain asks the pipeline. There is neither an explanation nor an error when what was
// entered cannot be explained: the page's Problem says why.
func (d *Dashboard) explain(p *whyPage) (*serve.Explanation, error) {
	var b *serve.Batch
	if b, p.Problem = d.batch(p); p.Problem != "" {
		return nil, nil
	}
	e, err := d.parts.Explain(b)
	if bad, ok := errors.AsType[*publicapi.Error](err); ok {
		if bad.Status == http.StatusServiceUnavailable {
			return nil, failure{bad.Status, "One moment", "This node does not sell yet: it is still reading what has happened. The overview says how its parts are."}
		}
		p.Problem = complaint(bad)
		return nil, nil
	}
	return e, err
}

// complaint is what is wrong with a batch, in the words of the form.
func complaint(e *publicapi.Error) string {
	switch {
	case e.Field == "url":
		return "The address " + e.Message + "."
	case e.Field == "pub" || e.Status == http.StatusNotFound:
		return "This is a page of a site that the catalog does not have yet. Give the site its publisher first."
	}
	return e.Error()
}

// batch is what a browser would ask, with the slots that were entered or that the
// template has; or what is wrong with what was entered.
func (d *Dashboard) batch(p *whyPage) (b *serve.Batch, problem string) {
	b = &serve.Batch{URL: p.URL}
	r := &reader{values: url.Values{"slots": {p.Slots.Value}, "pins": {p.Pins.Value}}}
	b.Imps = r.slots("slots")
	b.Pins = r.pins("pins")
	if len(r.problems) > 0 {
		return nil, r.problems[0].Msg
	}
	if d.parts.SlotsOf != nil {
		site, slots := d.parts.SlotsOf(p.URL)
		if site == "" {
			return nil, "The address is of no site of deckle.toml. Paste it with https:// and the host as readers see it."
		}
		b.Pub = site
		if len(b.Imps) == 0 {
			b.Imps, p.From = impsOf(slots), "the template of "+site
		}
	}
	if len(b.Imps) == 0 {
		return nil, "The page has no magazine slots by its site’s template. Write the slots that you mean below the address."
	}
	return b, ""
}

// impsOf are slots in the first of their sizes, as many as a page may have.
func impsOf(slots []deckle.Slot) (imps []serve.Imp) {
	for _, s := range slots[:min(len(slots), template.MaxSlotsPerPage)] {
		imps = append(imps, serve.Imp{ID: string(s.ID), W: s.Formats[0].W, H: s.Formats[0].H})
	}
	return imps
}

// slots reads lines of "sidebar-1 300x250".
func (r *reader) slots(name string) (imps []serve.Imp) {
	for line := range strings.Lines(r.values.Get(name)) {
		parts := strings.Fields(line)
		if len(parts) == 0 {
			continue
		}
		w, h, sized := strings.Cut(strings.ReplaceAll(strings.ToLower(parts[len(parts)-1]), "×", "x"), "x")
		width, errW := strconv.Atoi(w)
		height, errH := strconv.Atoi(h)
		if len(parts) != 2 || !sized || errW != nil || errH != nil {
			r.bad(name, "%.60q is not a slot: write its id and its size, as sidebar-1 300x250.", strings.TrimSpace(line))
			continue
		}
		imps = append(imps, serve.Imp{ID: parts[0], W: width, H: height})
	}
	return imps
}

// pins reads lines of "sidebar-1 = creative".
func (r *reader) pins(name string) (pins []serve.Pin) {
	for line := range strings.Lines(r.values.Get(name)) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		slot, creative, found := strings.Cut(line, "=")
		if slot, creative = strings.TrimSpace(slot), strings.TrimSpace(creative); !found || slot == "" || creative == "" {
			r.bad(name, "%.60q is not a bookmark: write sidebar-1 = the id of a creative.", line)
			continue
		}
		pins = append(pins, serve.Pin{Slot: slot, Creative: creative})
	}
	return pins
}

// debugPage shows a debug token, this once.
type debugPage struct {
	frame
	api.DebugToken
	Example string
}

// makeDebugToken answers a post without a redirect: a token has no place in a URL.
func (d *Dashboard) makeDebugToken(v visit) error {
	s, err := d.snapshot()
	if err != nil {
		return err
	}
	t, err := api.MintDebug(s, v.r.PostForm.Get("site"), time.Now())
	if err != nil {
		return err
	}
	p := debugPage{frame: d.frame(v, "Debug token", "/why"), DebugToken: t}
	p.Crumb = link{"/why", "Why this ad"}
	p.Example = fmt.Sprintf(`curl -s https://%s/v1/serve/batch -H 'Content-Type: application/json' -d '{
  "pub": %q,
  "url": "https://%[1]s/the/page",
  "imp": [{"id": "sidebar-1", "w": 300, "h": 250}],
  "debug": %[3]q
}'`, "www.your-site.example", t.Site, t.Token)
	return render(v.w, http.StatusOK, "debug", p)
}

// words turns an explanation into words: names for ids, sentences for reasons.
type words struct {
	s        *catalog.Snapshot
	content  *catalog.Taxonomy
	currency string
}

func (w *words) creative(id string) link {
	l := link{"/creatives/" + id + "/preview", id}
	if c, ok := report.Find[*catalog.Creative](w.s, catalog.KindCreative, id); ok {
		l.Text = cmp.Or(c.Name, id)
	}
	return l
}

// of is whose a creative is: "Ryokan Association, Autumn leaves".
func (w *words) of(campaign, advertiser string) string {
	text := advertiser
	if a, ok := report.Find[*catalog.Advertiser](w.s, catalog.KindAdvertiser, advertiser); ok {
		text = cmp.Or(a.Name, advertiser)
	}
	name := campaign
	if c, ok := report.Find[*catalog.Campaign](w.s, catalog.KindCampaign, campaign); ok {
		name = cmp.Or(c.Name, campaign)
	}
	return text + ", " + name
}

func (w *words) category(id string) string {
	if name, ok := w.content.CategoryName(id); ok {
		return name
	}
	return id
}

// cpm writes a price as precisely as it was decided: to the thousandth of a unit.
func (w *words) cpm(p deckle.CPM) string { return amount(int64(p), w.currency) }

// sources say who has told what a page is about.
var sources = map[string]string{
	"rule":    "a category rule of the site",
	"section": "the page’s own article:section",
	"tag":     "the page’s own article:tag",
}

// A saying is a fate in words, and how it is marked.
type saying struct{ text, badge string }

var sayings = map[string]saying{
	"":              {"took part", "quiet"},
	"filled":        {"won a slot", "good"},
	"honored":       {"shown, as bookmarked", "good"},
	"outbid":        {"another had the better score", "quiet"},
	"warmup":        {"the site is in warm-up", "wait"},
	"no_candidates": {"nobody wants this page", "wait"},
	"not_running":   {"not in its campaign’s time", "wait"},
	"stale":         {"the page is not known well enough", "wait"},
	"wrong_shape":   {"not for a slot of this size", "wait"},
	"capped":        {"this browser has seen it often enough", "wait"},
	"paced":         {"sits out, so that its budget lasts", "wait"},
	"excluded":      {"its advertiser is bookmarked elsewhere", "wait"},
	"used":          {"its advertiser has another slot", "wait"},
	"below_floor":   {"bids less than the floor", "bad"},
	"budget":        {"its budget has not enough left", "bad"},
}

func sayingOf(fate string) saying {
	if s, ok := sayings[fate]; ok {
		return s
	}
	return saying{strings.ReplaceAll(fate, "_", " "), "quiet"}
}

// emptiness says why a slot is empty, in a sentence.
var emptiness = map[string]string{
	"no_candidates": "No creative that is approved on this site is of a running campaign that wants a page like this, in a slot of this size.",
	"stale":         "What the page is about is not known, or was found out too long ago. It is looked at again with the next reader.",
	"warmup":        "The site is in warm-up: its traffic is learned, and only bookmarks are shown.",
	"capped":        "This browser has seen all that is left as often as their campaigns allow.",
	"paced":         "All that is left sat this page out, so that their budgets last the day. The next page may have one.",
	"excluded":      "The reader has bookmarked the advertisers of all that is left elsewhere on this page, and they are not shown twice.",
	"used":          "All that is left already has another slot of this page: a creative, a campaign and an advertiser are shown once a page.",
	"below_floor":   "The best bid is below what this slot costs at least.",
	"budget":        "Who would pay enough has not enough left of a budget.",
}

// stepWords are the steps of the pipeline, as questions.
var stepWords = map[string]string{
	"index":       "approved here, in time, and for a page like this",
	"recency":     "if what is known of the page is fresh",
	"frequency":   "not seen too often by this browser",
	"pacing":      "not sitting out for their budgets’ sake",
	"exclusion":   "not bookmarked elsewhere on the page",
	"pin":         "left after bookmarks were honoured",
	"auction":     "above the floor, and not on the page yet",
	"reservation": "with the money for it",
}
