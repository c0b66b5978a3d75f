package catalog

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
)

//go:embed creative.schema.json
var creativeSchema string

// CreativeSchema is the JSON Schema (2020-12) of a creative as it is sent. What a
// schema cannot say (that the campaign exists, contrast) is judged when the
// creative is put.
func CreativeSchema() []byte { return []byte(creativeSchema) }

// AssetPath is below what path our own assets are served.
const AssetPath = "/_deckle/asset/"

// Limits of a creative, in characters where it is text.
const (
	maxPages    = 12
	maxHeadline = 120
	maxSub      = 200
	maxBody     = 2000
	maxCaption  = 200
	maxTag      = 40
	maxAlt      = 300
	maxCTALabel = 40
	maxShapes   = 50
	maxSide     = 10_000 // CSS pixels
)

var (
	assetPattern = regexp.MustCompile(`^/_deckle/asset/[0-9a-f]{64}$`)
	colorPattern = regexp.MustCompile(`^#[0-9a-fA-F]{6}$`)
	layouts      = []string{"full", "split", "text"}
)

func (e *Creative) normalize(w world) {
	if e.Status == "" {
		e.Status = Active
	}
	if campaign := e.campaign(w); campaign != nil && e.LandingURL == "" {
		// Kept with the version: a later edit of the campaign must not change what a
		// publisher has approved.
		e.LandingURL = campaign.LandingURL
	}
	e.Pages = slices.Clone(e.Pages)
	for i := range e.Pages {
		e.Pages[i].CorrectColors()
	}
}

// campaign is that of a creative, nil where there is none.
func (e *Creative) campaign(w world) *Campaign {
	old, ok := w.old.(*Creative)
	return find[Campaign](w, KindCampaign, e.Campaign, ok && old.Campaign == e.Campaign)
}

func (e *Creative) validate(p *problems, w world) {
	e.validateForm(p)
	p.landing("landingUrl", e.LandingURL)
	campaign := e.campaign(w)
	switch {
	case e.Campaign == "" && e.LandingURL == "":
		p.add("landingUrl", "", "is missing, and there is no campaign to take it from")
	case e.Campaign == "":
	case campaign == nil:
		p.reference("campaign", KindCampaign, e.Campaign, false)
	case w.owner != "" && w.owner != campaign.Advertiser:
		p.add("campaign", "make a new creative", "%q is a campaign of %q: what is approved of the creative is approved for %q",
			e.Campaign, campaign.Advertiser, w.owner)
	}
}

// validateForm checks what creative.schema.json says, and nothing else.
func (e *Creative) validateForm(p *problems) {
	p.id("id", e.ID)
	if e.Campaign != "" {
		p.id("campaign", e.Campaign)
	}
	p.text("name", e.Name, 0, maxName)
	if e.Status != "" {
		p.status(e.Status, Active, Paused, Deleted)
	}
	if n := len(e.Pages); n < 1 || n > maxPages {
		p.add("pages", "1 to 12 pages, of which the first is the cover", "has %d", n)
	}
	for i := range min(len(e.Pages), maxPages) {
		e.Pages[i].validate(p.below(fmt.Sprintf("pages[%d]", i)))
	}
	p.atMost("shapes", len(e.Shapes), maxShapes)
	for i, s := range e.Shapes {
		if s.W < 1 || s.H < 1 || s.W > maxSide || s.H > maxSide {
			p.add(fmt.Sprintf("shapes[%d]", i), `{"w": 300, "h": 250}, in CSS pixels, 1 to 10000`, "%d×%d is out of range", s.W, s.H)
		}
	}
	if e.LandingURL != "" {
		p.url("landingUrl", e.LandingURL)
	}
}

func (page *Page) validate(p *problems) {
	p.text("headline", page.Headline, 0, maxHeadline)
	p.text("sub", page.Sub, 0, maxSub)
	p.paragraphs("body", page.Body, maxBody)
	p.text("caption", page.Caption, 0, maxCaption)
	p.text("tag", page.Tag, 0, maxTag)
	p.text("ctaLabel", page.CTALabel, 0, maxCTALabel)
	if page.Image != nil {
		page.Image.validate(p.below("image"))
	}
	p.color("background", page.Background)
	p.color("ink", page.Ink)
	p.color("accent", page.Accent)
	if page.Layout != "" && !slices.Contains(layouts, page.Layout) {
		p.add("layout", "full, split or text; leave it out for the one that fits", "%s is not a layout", quote(page.Layout))
	}
	if page.Headline == "" && page.Body == "" && page.Image == nil {
		p.add("", "a headline, a body or an image", "is empty")
	}
}

func (i *Image) validate(p *problems) {
	if !assetPattern.MatchString(i.Src) {
		p.add("src", "upload the image; its path is "+AssetPath+" and its SHA-256", "%s is not one of our own assets", quote(i.Src))
	}
	p.text("alt", i.Alt, 1, maxAlt)
	if f := i.Focus; f != nil && !(f.X >= 0 && f.X <= 1 && f.Y >= 0 && f.Y <= 1) {
		p.add("focus", "fractions of width and height, 0 to 1", "%v, %v is out of range", f.X, f.Y)
	}
}

func (p *problems) color(field, s string) {
	if s != "" && !colorPattern.MatchString(s) {
		p.add(field, "#rrggbb", "%s is not a colour", quote(s))
	}
}

// The contrast that WCAG 2.2 asks for at level AA: of text (1.4.3), and of what
// else has to be seen (1.4.11).
const (
	TextContrast   = 4.5
	AccentContrast = 3.0
)

// CorrectColors replaces colours that could not be read on the page's background
// by black or white, whichever is seen better. A creative is put like that.
func (page *Page) CorrectColors() {
	background, ok := luminance(page.Background)
	if !ok {
		return
	}
	for _, c := range []struct {
		color *string
		least float64
	}{{&page.Ink, TextContrast}, {&page.Accent, AccentContrast}} {
		if l, ok := luminance(*c.color); ok && contrast(l, background) < c.least {
			*c.color = "#000000"
			if contrast(1, background) > contrast(0, background) {
				*c.color = "#ffffff"
			}
		}
	}
}

// luminance is WCAG's relative luminance of #rrggbb, 0 to 1.
func luminance(color string) (float64, bool) {
	if !colorPattern.MatchString(color) {
		return 0, false
	}
	rgb, _ := strconv.ParseUint(color[1:], 16, 32) // the pattern has six digits
	linear := func(shift int) float64 {
		c := float64(rgb>>shift&0xff) / 255
		if c <= 0.04045 {
			return c / 12.92
		}
		return math.Pow((c+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(16) + 0.7152*linear(8) + 0.0722*linear(0), true
}

// Contrast is WCAG's contrast of two colours, 1 to 21; false where one of them is not
// written as #rrggbb.
func Contrast(a, b string) (float64, bool) {
	la, okA := luminance(a)
	lb, okB := luminance(b)
	return contrast(la, lb), okA && okB
}

func contrast(a, b float64) float64 { return (max(a, b) + 0.05) / (min(a, b) + 0.05) }

// hash names content: the SHA-256 of its JSON.
func (c *Content) hash() string {
	sum := sha256.Sum256(c.encode())
	return hex.EncodeToString(sum[:])
}

func (c *Content) encode() []byte { return mustEncode(c) }

// mustEncode writes one of our own types as JSON, the same every time.
func mustEncode(v any) []byte {
	data, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic(err) // types of texts and numbers that have been validated
	}
	return data
}
