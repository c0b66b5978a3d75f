package dashboard

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"deckle/internal/catalog"
	"deckle/internal/dashboard/api"
	"deckle/web"
)

// A stage is a document in which a creative is drawn as readers get it, by the same
// element, in the shapes of slots. It stands in a frame of pages that themselves have no
// script.
//
// What it shows comes from strangers, and it runs a script, so it is trusted with
// nothing: the frame and its own policy both say sandbox without allow-same-origin. It
// has an origin that nobody else has, also when somebody opens it alone: it reads no
// cookie, no storage and no page of ours, loads nothing but the element and pictures of
// assets, and goes nowhere.
//
// For the same reason a browser sends no cookie with the pictures of a stage: to
// SameSite a document without an origin is a stranger everywhere. Their addresses are
// signed instead, for some minutes; see signedAsset. Pictures could stand in the
// document as data: instead, but the element takes addresses of http and https only,
// as it must in the pages of readers, and twelve of them may have 60 MB.
type stage struct {
	Title    string
	Nonce    string
	Magazine string // where the element is
	Open     bool   // shown as a reader sees it who has opened it; else in the shapes of slots
	Shapes   []stageShape
	Creative shown
	Script   template.JS
}

// A stageShape is a slot that a creative is tried in.
type stageShape struct {
	Name string
	W, H int // CSS pixels
}

// stageShapes are slots of the kinds that there are: flat, square and upright.
var stageShapes = []stageShape{{"Leaderboard", 728, 90}, {"Rectangle", 300, 250}, {"Half-page", 300, 600}}

// shown is a creative as the element takes it.
type shown struct {
	Pages      []catalog.Page `json:"pages"`
	LandingURL string         `json:"landingUrl"`
}

// show is content as a stage can show it: with pictures that it can load. What is not
// an asset is left out, so that no text in a form makes a stage load anything.
func (d *Dashboard) show(c *catalog.Content, now time.Time) shown {
	out := shown{Pages: make([]catalog.Page, len(c.Pages)), LandingURL: c.LandingURL}
	for i, p := range c.Pages {
		if p.Image != nil {
			image := *p.Image
			image.Src = d.signedAsset(image.Src, now)
			p.Image = &image
			if image.Src == "" {
				p.Image = nil
			}
		}
		p.CorrectColors()
		out.Pages[i] = p
	}
	return out
}

// How long a signed address is good: for the rest of one such span and the whole next
// one, so that the frames of a page have the same addresses, and a browser what it has.
const assetSpan = 5 * time.Minute

// signedAsset is the address of an asset for a document without cookies; "" for what is
// none. It is good on this node, as sessions are.
func (d *Dashboard) signedAsset(src string, now time.Time) string {
	id, ok := strings.CutPrefix(src, catalog.AssetPath)
	if !ok || len(id) != 2*sha256.Size || strings.Trim(id, "0123456789abcdef") != "" {
		return ""
	}
	until := now.Truncate(assetSpan).Add(2 * assetSpan).Unix()
	return fmt.Sprintf("/stage/asset/%s/%d/%s", id, until, d.signAsset(id, until))
}

func (d *Dashboard) signAsset(id string, until int64) string {
	mac := hmac.New(sha256.New, d.stageKey[:])
	_ = binary.Write(mac, binary.BigEndian, until) // a hash takes everything
	mac.Write([]byte(id))
	return hex.EncodeToString(mac.Sum(nil))
}

// showSignedAsset is an asset for who has been shown its address. Any document may load
// it: a stage has no origin that could be named.
func (d *Dashboard) showSignedAsset(v visit) error {
	id := v.r.PathValue("id")
	until, err := strconv.ParseInt(v.r.PathValue("until"), 10, 64)
	if err != nil || !hmac.Equal([]byte(v.r.PathValue("mac")), []byte(d.signAsset(id, until))) || time.Now().Unix() > until {
		return nothingHere()
	}
	v.w.Header().Set("Cross-Origin-Resource-Policy", "cross-origin")
	v.w.Header().Set("Cache-Control", "private, max-age=600")
	return api.ServeAsset(v.w, v.r, d.blobs, id)
}

// showStage is the stage of a version of a creative: the present one, or the one that a
// site shows.
func (d *Dashboard) showStage(v visit) error {
	s, err := d.snapshot()
	if err != nil {
		return err
	}
	x, ok := s.Creative(v.r.PathValue("id"))
	if !ok {
		return catalog.ErrNotFound
	}
	asked := v.r.URL.Query()
	version, err := strconv.ParseUint(asked.Get("version"), 10, 32)
	if err != nil {
		return nothingHere()
	}
	content := &x.Content
	if uint32(version) != x.Version {
		last, old, ok := s.Shown(asked.Get("site"), x.ID)
		if !ok || uint32(version) != last {
			return nothingHere()
		}
		content = old
	}
	return d.renderStage(v, nameOf(x), content, asked.Get("view") == "open")
}

// showNoStage is a stage with nothing on it yet.
func (d *Dashboard) showNoStage(v visit) error {
	return d.renderStage(v, "New creative", &catalog.Content{Pages: make([]catalog.Page, 1)}, false)
}

// stageForm is the stage of what stands in a form, saved or not: what "Preview" shows
// without a script.
func (d *Dashboard) stageForm(v visit) error {
	x, _, err := d.creativeOf(v)
	if err != nil {
		return err
	}
	return d.renderStage(v, nameOf(x), &x.Content, false)
}

// A drafted is what a script learns of a form that is being filled in.
type drafted struct {
	Creative shown             `json:"creative"`
	Set      map[string]string `json:"set"`   // fields that have got another value
	Notes    map[string]string `json:"notes"` // what is worth knowing of a field
	Errors   map[string]string `json:"errors"`
}

// stageDraft is stageForm for the script of the editor, which keeps its frame. Reading
// forms and correcting colours stays in one place, here.
func (d *Dashboard) stageDraft(v visit) error {
	before := url.Values{}
	for name := range v.r.PostForm {
		before.Set(name, v.r.PostForm.Get(name))
	}
	x, problems, err := d.creativeOf(v)
	if err != nil {
		return err
	}
	out := drafted{Creative: d.show(&x.Content, time.Now()), Set: map[string]string{}, Notes: colourNotes(x.Pages), Errors: map[string]string{}}
	for name := range v.r.PostForm {
		if now := v.r.PostForm.Get(name); now != before.Get(name) {
			out.Set[name] = now
		}
	}
	for _, p := range problems {
		out.Errors[p.Field] = p.Msg
	}
	data, err := json.Marshal(out)
	if err != nil {
		return fmt.Errorf("write a draft: %w", err)
	}
	h := v.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(data)))
	_, _ = v.w.Write(data) // an error says that the browser has gone
	return nil
}

// creativeOf reads the creative in a form, and keeps the pictures that came with it.
// Nothing of it needs to be right yet.
func (d *Dashboard) creativeOf(v visit) (*catalog.Creative, []catalog.Problem, error) {
	problems, err := d.takePictures(v.r.Context(), v.r)
	if err != nil {
		return nil, nil, err
	}
	r := &reader{values: v.r.PostForm, problems: problems}
	return readCreative(r).(*catalog.Creative), r.problems, nil
}

// renderStage answers with a stage and its policy. A nonce lets our two scripts run,
// and nothing that anybody else writes.
func (d *Dashboard) renderStage(v visit, title string, c *catalog.Content, open bool) error {
	p := stage{
		Title: title, Nonce: newNonce(), Magazine: web.MagazinePath(), Open: open, Shapes: stageShapes,
		Creative: d.show(c, time.Now()), Script: template.JS(mustRead("static/stage.js")), //nolint:gosec // a file of ours
	}
	var b bytes.Buffer
	if err := templates()["stage"].ExecuteTemplate(&b, "stage", p); err != nil {
		return fmt.Errorf("render stage: %w", err)
	}
	h := v.w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'nonce-"+p.Nonce+"'; style-src 'nonce-"+p.Nonce+
		"'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox allow-scripts")
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	_, _ = v.w.Write(b.Bytes()) // an error says that the browser has gone
	return nil
}

// newNonce is a CSP nonce that nobody can guess (CSP3 section 7.1).
func newNonce() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.StdEncoding.EncodeToString(b[:])
}

// framed lets a page show stages.
func framed(h http.Header) {
	h.Set("Content-Security-Policy", h.Get("Content-Security-Policy")+"; frame-src 'self'")
}

// scripted lets a page show stages and run our script for them.
func scripted(h http.Header) (nonce string) {
	nonce = newNonce()
	framed(h)
	h.Set("Content-Security-Policy", h.Get("Content-Security-Policy")+"; script-src 'nonce-"+nonce+"'; connect-src 'self'")
	return nonce
}

// A framing is a stage in a page.
type framing struct {
	Label string // above it; empty: none
	Title string // of the frame, for who does not see it
	Src   string
	Open  string // of it opened; empty: not offered
}

// newFraming is the stage of a version of a creative, of a site's where that matters.
func newFraming(x *catalog.Creative, version uint32, site, label string) framing {
	q := url.Values{"version": {strconv.FormatUint(uint64(version), 10)}}
	if site != "" {
		q.Set("site", site)
	}
	at := "/stage/creatives/" + x.ID + "?"
	f := framing{Label: label, Title: fmt.Sprintf("%s, version %d, as readers see it", nameOf(x), version), Src: at + q.Encode()}
	q.Set("view", "open")
	f.Open = at + q.Encode()
	return f
}

// mustRead is one of our own files.
func mustRead(name string) string {
	data, err := files.ReadFile(name)
	if err != nil {
		panic(fmt.Sprintf("dashboard: %v", err))
	}
	return string(data)
}
