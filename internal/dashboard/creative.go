package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"deckle/internal/catalog"
	"deckle/internal/dashboard/api"
	"deckle/internal/store"
)

// maxPages is how many pages a creative has at most.
const maxPages = 12

func creatives() editor {
	return editor{
		kind:  catalog.KindCreative,
		title: "Creatives",
		about: "A creative is one magazine. Whatever changes in it waits for approval; the version approved last is shown meanwhile.",
		empty: "A creative of a campaign queues for approval on every site that the campaign may run on.",
		cells: func(s *catalog.Snapshot, e catalog.Entity) []cell {
			x := e.(*catalog.Creative)
			name := ""
			if c, ok := s.Campaign(x.Campaign); ok {
				name = c.Name
			}
			return []cell{
				badge("Status", x.Status), parentCell(catalog.KindCampaign, x.Campaign, name),
				{Label: "Version", Text: strconv.FormatUint(uint64(x.Version), 10), Number: true},
				{Label: "Pages", Text: strconv.Itoa(len(x.Pages)), Number: true},
			}
		},
		form:   creativeForm,
		values: creativeValues,
		read:   readCreative,
		aside: func(d *Dashboard, v visit, r catalog.Record, p *editPage) error {
			f, err := d.draft(v.r.Context(), r.EntityID())
			if errors.Is(err, store.ErrNotFound) {
				return nil
			}
			if err == nil {
				p.Drafted = newDraftRow(f)
			}
			return err
		},
	}
}

// pageCount is how many pages a posted creative has, within bounds.
func pageCount(v url.Values) int {
	n, err := strconv.Atoi(v.Get("pageCount"))
	if err != nil {
		return 1
	}
	return min(max(n, 1), maxPages)
}

func creativeForm(s *catalog.Snapshot, _ *Dashboard, v url.Values) []group {
	id, status := idField(v, idHelp), statusField(catalog.Active, catalog.Paused)
	id.Width, status.Width = "", ""
	groups := []group{{Legend: "Creative", Fields: []field{
		id,
		{Name: "name", Label: "Name", Kind: "text", Optional: true},
		status,
		choose(s, catalog.KindCampaign, "Campaign", "None: it is on no site"),
		{Name: "landingUrl", Label: "Landing page", Kind: "text", Optional: true, Width: "full", Help: "The campaign's, when left empty."},
		{Name: "shapes", Label: "Shapes it may fill", Kind: "text", Optional: true, Width: "full", Help: "Like 300x250, 160x600; none: any, since it is fluid."},
	}}}
	n := pageCount(v)
	for i := range n {
		g := group{Legend: folio(i), Fields: pageFields(fmt.Sprintf("pages[%d].", i))}
		if n > 1 {
			if i > 0 {
				g.Buttons = append(g.Buttons, button{fmt.Sprintf("up %d", i), "Move up"})
			}
			if i < n-1 {
				g.Buttons = append(g.Buttons, button{fmt.Sprintf("down %d", i), "Move down"})
			}
			g.Buttons = append(g.Buttons, button{fmt.Sprintf("drop %d", i), "Remove this page"})
		}
		if i == n-1 && n < maxPages {
			g.Buttons = append(g.Buttons, button{"add", "Add a page"})
		}
		groups = append(groups, g)
	}
	return groups
}

func pageFields(p string) []field {
	layout := field{Name: p + "layout", Label: "Layout", Kind: "select", Width: "narrow", Minor: true, Options: []option{
		{Label: "as it fits"}, {Value: "full", Label: "full"}, {Value: "split", Label: "split"}, {Value: "text", Label: "text"},
	}}
	return []field{
		{Name: p + "headline", Label: "Headline", Kind: "text", Optional: true, Width: "full"},
		{Name: p + "sub", Label: "Below it", Kind: "text", Optional: true, Width: "full"},
		{Name: p + "body", Label: "Text", Kind: "area", Optional: true, Width: "full"},
		{Name: p + "image.file", Label: "New picture", Kind: "file", Optional: true, Help: "PNG, JPEG, GIF, WebP or SVG, 5 MB at most."},
		{Name: p + "image.alt", Label: "What it shows", Kind: "text", Optional: true, Help: "For readers who do not see it; needed with a picture."},
		{Name: p + "image.src", Label: "Picture", Kind: "picture", Optional: true, Help: "Filled in by an upload; empty: none.", Minor: true},
		{Name: p + "image.focus", Label: "Point that stays in view", Kind: "text", Optional: true, Help: "In per cent from left and top: 50 30", Minor: true},
		{Name: p + "caption", Label: "Caption", Kind: "text", Optional: true, Width: "narrow", Minor: true},
		{Name: p + "tag", Label: "Tag", Kind: "text", Optional: true, Width: "narrow", Minor: true},
		{Name: p + "ctaLabel", Label: "Call to action", Kind: "text", Optional: true, Width: "narrow", Minor: true},
		{Name: p + "background", Label: "Background", Kind: "colour", Optional: true, Width: "narrow", Help: "#rrggbb", Minor: true},
		{Name: p + "ink", Label: "Ink", Kind: "colour", Optional: true, Width: "narrow", Help: "#rrggbb", Minor: true},
		{Name: p + "accent", Label: "Accent", Kind: "colour", Optional: true, Width: "narrow", Help: "#rrggbb", Minor: true},
		layout,
	}
}

func creativeValues(e catalog.Entity) url.Values {
	x := e.(*catalog.Creative)
	v := url.Values{
		"id": {x.ID}, "campaign": {x.Campaign}, "name": {x.Name}, "status": {string(x.Status)},
		"landingUrl": {x.LandingURL}, "shapes": {formatShapes(x.Shapes)}, "pageCount": {strconv.Itoa(max(len(x.Pages), 1))},
	}
	for i, p := range x.Pages {
		at := fmt.Sprintf("pages[%d].", i)
		for name, text := range map[string]string{
			"headline": p.Headline, "sub": p.Sub, "body": p.Body, "caption": p.Caption, "tag": p.Tag,
			"background": p.Background, "ink": p.Ink, "accent": p.Accent, "ctaLabel": p.CTALabel, "layout": p.Layout,
		} {
			v.Set(at+name, text)
		}
		if p.Image != nil {
			v.Set(at+"image.src", p.Image.Src)
			v.Set(at+"image.alt", p.Image.Alt)
			if f := p.Image.Focus; f != nil {
				v.Set(at+"image.focus", fmt.Sprintf("%g %g", f.X*100, f.Y*100))
			}
		}
	}
	return v
}

func readCreative(r *reader) catalog.Entity {
	x := &catalog.Creative{
		ID: r.text("id"), Campaign: r.text("campaign"), Name: r.text("name"), Status: catalog.Status(r.text("status")),
		Content: catalog.Content{LandingURL: r.text("landingUrl"), Shapes: r.shapes("shapes")},
	}
	for i := range pageCount(r.values) {
		at := fmt.Sprintf("pages[%d].", i)
		p := catalog.Page{
			Headline: r.text(at + "headline"), Sub: r.text(at + "sub"), Caption: r.text(at + "caption"), Tag: r.text(at + "tag"),
			Body:       strings.TrimSpace(strings.ReplaceAll(r.values.Get(at+"body"), "\r\n", "\n")),
			Background: r.text(at + "background"), Ink: r.text(at + "ink"), Accent: r.text(at + "accent"),
			CTALabel: r.text(at + "ctaLabel"), Layout: r.text(at + "layout"),
		}
		if src := r.text(at + "image.src"); src != "" {
			p.Image = &catalog.Image{Src: src, Alt: r.text(at + "image.alt"), Focus: r.focus(at + "image.focus")}
		}
		x.Pages = append(x.Pages, p)
	}
	return x
}

// focus reads "50 30": per cent from the left and from the top.
func (r *reader) focus(name string) *catalog.Focus {
	text := r.text(name)
	if text == "" {
		return nil
	}
	parts := strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(" ,;%\t", c) })
	if len(parts) != 2 {
		r.bad(name, "%.40q is not two numbers: write 50 30", text)
		return nil
	}
	x, errX := strconv.ParseFloat(parts[0], 64)
	y, errY := strconv.ParseFloat(parts[1], 64)
	if errX != nil || errY != nil || !(x >= 0 && x <= 100 && y >= 0 && y <= 100) {
		r.bad(name, "%.40q is not two numbers from 0 to 100", text)
		return nil
	}
	return &catalog.Focus{X: x / 100, Y: y / 100}
}

// arrange does what a button beside a page asks for: "add", "drop 2", "up 2", "down 2". It
// reports whether there was one.
func arrange(v url.Values) bool {
	verb, rest, _ := strings.Cut(v.Get("action"), " ")
	n := pageCount(v)
	i, err := strconv.Atoi(rest)
	switch {
	case verb == "add":
		v.Set("pageCount", strconv.Itoa(min(n+1, maxPages)))
	case verb == "up" && err == nil && i > 0 && i < n:
		swapPages(v, i, i-1)
	case verb == "down" && err == nil && i >= 0 && i < n-1:
		swapPages(v, i, i+1)
	case verb == "drop" && err == nil && i >= 0 && i < n && n > 1:
		for ; i < n-1; i++ {
			swapPages(v, i, i+1)
		}
		for _, f := range pageFields(fmt.Sprintf("pages[%d].", n-1)) {
			v.Del(f.Name)
		}
		v.Set("pageCount", strconv.Itoa(n-1))
	default:
		return false
	}
	return true
}

func swapPages(v url.Values, i, j int) {
	a, b := pageFields(fmt.Sprintf("pages[%d].", i)), pageFields(fmt.Sprintf("pages[%d].", j))
	for k := range a {
		v[a[k].Name], v[b[k].Name] = v[b[k].Name], v[a[k].Name]
	}
}

// takePictures re-hosts the pictures that came with a form, and puts their paths
// where they belong.
func (d *Dashboard) takePictures(ctx context.Context, r *http.Request) (problems []catalog.Problem, err error) {
	if r.MultipartForm == nil {
		return nil, nil
	}
	for i := range pageCount(r.PostForm) {
		at := fmt.Sprintf("pages[%d].image", i)
		headers := r.MultipartForm.File[at+".file"]
		if len(headers) == 0 || headers[0].Size == 0 {
			continue
		}
		asset, err := d.rehost(ctx, headers[0])
		if bad, ok := errors.AsType[*catalog.InvalidError](err); ok {
			for _, p := range bad.Problems {
				p.Field = at + ".file"
				problems = append(problems, p)
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		r.PostForm.Set(at+".src", asset.Src)
	}
	return problems, nil
}

// maxPictures is how many posted pictures are worked on at once: one small file may
// take 64 MiB when it is decoded. Package api bounds its own.
const maxPictures = 2

// rehost reads a posted picture and keeps it, when it is its turn.
func (d *Dashboard) rehost(ctx context.Context, h *multipart.FileHeader) (catalog.Asset, error) {
	select {
	case d.pictures <- struct{}{}:
		defer func() { <-d.pictures }()
	case <-ctx.Done():
		return catalog.Asset{}, ctx.Err()
	}
	f, err := h.Open()
	if err != nil {
		return catalog.Asset{}, fmt.Errorf("read a picture: %w", err)
	}
	data, err := io.ReadAll(f)
	_ = f.Close() // only read
	if err != nil {
		return catalog.Asset{}, fmt.Errorf("read a picture: %w", err)
	}
	return catalog.Rehost(ctx, d.blobs, data)
}

// folio is what a page is called.
func folio(i int) string {
	if i == 0 {
		return "Cover"
	}
	return fmt.Sprintf("Page %d", i+1)
}

// A leaf is a page of a creative as data, for people who decide about it.
type leaf struct {
	Folio string // "Cover", "Page 2"
	catalog.Page
}

// Colours are background, ink and accent, as far as the page has them.
func (l leaf) Colours() (colours []string) {
	for _, c := range []string{l.Background, l.Ink, l.Accent} {
		if c != "" {
			colours = append(colours, c)
		}
	}
	return colours
}

func leaves(pages []catalog.Page) []leaf {
	out := make([]leaf, len(pages))
	for i, p := range pages {
		out[i] = leaf{Folio: folio(i), Page: p}
	}
	return out
}

// previewPage shows what is in a creative, and where it stands.
type previewPage struct {
	frame
	Creative *catalog.Creative
	Campaign link
	Stages   []framing
	Leaves   []leaf
	Standing []standing
}

// A standing is what a site has decided about a creative.
type standing struct {
	Site    string
	State   catalog.State
	Badge   string
	Version uint32
	By      string
	Note    string // why
	At      time.Time
}

func (d *Dashboard) showPreview(v visit) error {
	s, err := d.snapshot()
	if err != nil {
		return err
	}
	x, ok := s.Creative(v.r.PathValue("id"))
	if !ok {
		return catalog.ErrNotFound
	}
	p := previewPage{frame: d.frame(v, cmp.Or(x.Name, x.ID), "/creatives"), Creative: x, Leaves: leaves(x.Pages)}
	p.Crumb = link{"/creatives/" + x.ID, "Edit this creative"}
	p.Stages = []framing{newFraming(x, x.Version, "", "")}
	framed(v.w.Header())
	if c, ok := s.Campaign(x.Campaign); ok {
		p.Campaign = link{"/campaigns/" + c.ID, cmp.Or(c.Name, c.ID)}
	}
	for _, w := range s.Queue("", time.Now()) {
		if w.Creative == x.ID {
			p.Standing = append(p.Standing, standing{Site: w.Site, State: catalog.Pending, Badge: "wait", Version: w.Version, At: w.Since})
		}
	}
	for _, r := range s.List(catalog.KindSite, "", 1000) {
		for _, a := range s.Approvals(r.EntityID(), x.ID).Decisions {
			st := standing{Site: r.EntityID(), State: a.State, Badge: "bad", Version: a.Version, By: a.By, Note: a.Note, At: a.At}
			if a.State == catalog.Approved {
				st.Badge = "good"
			}
			p.Standing = append(p.Standing, st)
		}
	}
	return render(v.w, http.StatusOK, "preview", p)
}

func (d *Dashboard) showAsset(v visit) error {
	v.w.Header().Set("Cache-Control", api.Private)
	return api.ServeAsset(v.w, v.r, d.blobs, v.r.PathValue("id"))
}
