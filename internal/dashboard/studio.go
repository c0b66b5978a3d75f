package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"deckle/internal/catalog"
	"deckle/internal/landing"
)

// A studio is what the form of a creative has around it: the creative as readers would
// see it, drafts, and a way to begin with a landing page.
//
// It works without script: Preview posts the form into the frame. Our script asks for
// the same while somebody types; it is the only one that the dashboard has.
type studio struct {
	Nonce         string // of our script
	Stage         framing
	Drafting      bool   // drafts can be kept
	Draft         string // the id of the draft that this is; empty: none
	DraftRevision uint64
	Drafted       *draftRow    // there is one of this creative, which this is not
	Landing       *landingForm // nil: not here
}

// A draftRow is a draft in a list.
type draftRow struct {
	Href, Name, By string
	At             time.Time
}

func newDraftRow(f *draft) *draftRow {
	return &draftRow{Href: "/drafts/" + f.id, Name: f.name(), By: f.By, At: f.at}
}

// A landingForm asks for a landing page.
type landingForm struct {
	Address, Campaign string
	Error             string
}

// furnish makes the page of a creative, or of a draft of one, out of that of a form.
func (d *Dashboard) furnish(p *editPage, values url.Values) {
	st := &studio{Drafting: d.drafting(), Draft: values.Get("draft")}
	p.studio, p.Submit = st, "Publish"
	st.DraftRevision, _ = strconv.ParseUint(values.Get("draftRevision"), 10, 64)
	st.Stage = framing{Title: "New creative, as readers see it", Src: "/stage/new"}
	if x, ok := d.catalog.Snapshot().Creative(values.Get("id")); ok && p.Revision != 0 {
		st.Stage = newFraming(x, x.Version, "", "")
	}
	switch {
	case st.Draft != "":
		p.Title = (&draft{id: st.Draft, Values: values}).name()
		p.Action, p.Delete = "/drafts/"+st.Draft, ""
		if st.DraftRevision != 0 {
			p.Delete = "/drafts/" + st.Draft + "/delete"
			st.Stage = framing{Title: p.Title + ", the draft, as readers would see it", Src: "/stage/drafts/" + st.Draft}
		}
	case p.Revision == 0 && d.parts.Landing != nil:
		st.Landing = &landingForm{Campaign: values.Get("campaign")}
	}
	notes := colourNotes(readCreative(&reader{values: values}).(*catalog.Creative).Pages)
	for g := range p.Groups {
		for i := range p.Groups[g].Fields {
			f := &p.Groups[g].Fields[i]
			f.Note = notes[f.Name]
		}
	}
}

// maxTaken is how many pictures of a landing page are taken.
const maxTaken = 5

// readLanding makes a draft of what a landing page says of itself.
func (d *Dashboard) readLanding(v visit) error {
	form, e := v.r.PostForm, creatives()
	if _, err := d.snapshot(); err != nil {
		return err
	}
	if d.parts.Landing == nil {
		return nothingHere()
	}
	address := strings.TrimSpace(form.Get("address"))
	page, err := d.parts.Landing.Read(v.r.Context(), address)
	if problem, ok := errors.AsType[landing.Problem](err); ok {
		p := d.newPage(v, e, url.Values{"campaign": {form.Get("campaign")}}, nil)
		p.Landing.Address, p.Landing.Error = address, problem.Error()
		return d.renderEdit(v, http.StatusBadRequest, e, p)
	}
	if err != nil {
		return fmt.Errorf("read a landing page: %w", err)
	}
	pictures, err := d.takeLanding(v.r.Context(), page)
	if err != nil {
		return err
	}
	x := creativeOfLanding(page, pictures)
	x.Campaign = form.Get("campaign")
	values := creativeValues(x)
	if !d.drafting() {
		return d.renderEdit(v, http.StatusOK, e, d.newPage(v, e, values, nil))
	}
	f := &draft{Format: draftFormat, By: v.session.Name, Values: draftedFields(values), id: newDraftID()}
	if err := d.putDraft(v.r.Context(), f); err != nil {
		return err
	}
	return v.redirect("/drafts/" + f.id + "?done=read")
}

// picturesTime is how long the pictures of a landing page may take, all together.
const picturesTime = 4 * time.Second

// takeLanding fetches the pictures of a page and keeps those that are pictures, under
// their addresses. One that cannot be had is left out.
func (d *Dashboard) takeLanding(ctx context.Context, page *landing.Page) (map[string]*catalog.Image, error) {
	wanted := page.Pictures[:min(len(page.Pictures), maxTaken)]
	taken := make([]*catalog.Image, len(wanted))
	fetch, cancel := context.WithTimeout(ctx, picturesTime)
	defer cancel()
	var g errgroup.Group
	for i, picture := range wanted {
		g.Go(func() error {
			data, err := d.parts.Landing.Picture(fetch, picture.URL)
			if err != nil {
				return nil // left out
			}
			taken[i], err = d.takePicture(ctx, data, picture.Alt)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	images := map[string]*catalog.Image{}
	for i, picture := range wanted {
		if taken[i] != nil {
			images[picture.URL] = taken[i]
		}
	}
	return images, nil
}

// minSide is how wide and high a picture has to be to fill a page, in pixels.
const minSide = 200

// takePicture keeps a picture of a page as one of ours; nil where it is none that fills
// a page.
func (d *Dashboard) takePicture(ctx context.Context, data []byte, alt string) (*catalog.Image, error) {
	asset, err := catalog.Rehost(ctx, d.blobs, data)
	if _, ok := errors.AsType[*catalog.InvalidError](err); ok {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if asset.W < minSide || asset.H < minSide {
		return nil, nil
	}
	return &catalog.Image{Src: asset.Src, Alt: landing.Clip(alt, 300)}, nil
}

// creativeOfLanding sets a page as a magazine: its title on the cover, a page for each
// section, and pictures that stand nowhere on pages of their own.
func creativeOfLanding(page *landing.Page, pictures map[string]*catalog.Image) *catalog.Creative {
	used := map[string]bool{}
	use := func(p *landing.Picture) *catalog.Image {
		if p == nil || used[p.URL] {
			return nil
		}
		used[p.URL] = true
		return pictures[p.URL]
	}
	cover := catalog.Page{
		Headline: landing.Clip(page.Title, 120), Sub: landing.Clip(page.Description, 200), Tag: landing.Clip(page.Site, 40),
		Accent: page.Accent,
	}
	for i := range page.Pictures {
		if cover.Image = use(&page.Pictures[i]); cover.Image != nil {
			break
		}
	}
	x := &catalog.Creative{Name: landing.Clip(page.Title, 120), Status: catalog.Active, Content: catalog.Content{LandingURL: page.URL, Pages: []catalog.Page{cover}}}
	add := func(p catalog.Page) {
		if p.Image == nil && p.Headline != "" {
			p.Background = page.Theme
		}
		p.Accent = page.Accent
		x.Pages = append(x.Pages, p)
	}
	for _, s := range page.Sections[:min(len(page.Sections), 4)] {
		add(catalog.Page{Headline: landing.Clip(s.Heading, 120), Body: landing.Clip(s.Text, 600), Image: use(s.Picture)})
	}
	for i := range page.Pictures {
		if image := use(&page.Pictures[i]); image != nil && len(x.Pages) < 7 {
			add(catalog.Page{Image: image, Caption: landing.Clip(image.Alt, 200)})
		}
	}
	return x
}
