package dashboard

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"deckle/internal/catalog"
	"deckle/internal/store"
)

// A draft is a creative as somebody has left it in the editor: the fields of its form,
// right or not, so that nothing that was entered is lost.
//
// Drafts have a bucket of their own, and nothing but these pages reads it: a draft is on
// no site and in no queue, and no rule that approves things by itself knows of it, which
// a paused creative in the catalog could not promise. A change of a creative that is
// being shown leaves what is shown as it is until it is published.
//
// There is one draft of a creative, called as it is; drafts of creatives that there are
// not yet have names with a dot, which no creative has.
type draft struct {
	Format int        `json:"format"`
	By     string     `json:"by"` // who has kept it last
	Values url.Values `json:"values"`

	id       string
	revision uint64
	at       time.Time
}

const draftFormat = 1

// creative is the id of the creative that a draft changes; "" for one that there is not
// yet.
func (f *draft) creative() string {
	if strings.Contains(f.id, ".") {
		return ""
	}
	return f.id
}

// name is how people call what is drafted.
func (f *draft) name() string {
	return cmp.Or(f.Values.Get("name"), f.Values.Get("id"), f.creative(), strings.TrimSpace(f.Values.Get("pages[0].headline")), "Without a name")
}

// draftID is what drafts are called.
var draftID = regexp.MustCompile(`^([A-Za-z0-9_-]{1,64}|new\.[0-9a-f]{16})$`)

func newDraftID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return "new." + hex.EncodeToString(b[:])
}

// drafting reports whether drafts can be kept on this node.
func (d *Dashboard) drafting() bool { return d.parts.Drafts != nil }

// draft reads a draft. One that there is not is store.ErrNotFound.
func (d *Dashboard) draft(ctx context.Context, id string) (*draft, error) {
	if !d.drafting() || !draftID.MatchString(id) {
		return nil, fmt.Errorf("draft %.80q: %w", id, store.ErrNotFound)
	}
	entry, err := d.parts.Drafts.Get(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("read draft %s: %w", id, err)
	}
	return decodeDraft(entry)
}

func decodeDraft(entry store.Entry) (*draft, error) {
	f := &draft{id: entry.Key, revision: entry.Revision, at: entry.Time}
	if err := json.Unmarshal(entry.Value, f); err != nil {
		return nil, fmt.Errorf("read draft %s: %w", entry.Key, err)
	}
	if f.Format != draftFormat {
		return nil, fmt.Errorf("read draft %s: format %d is not known", entry.Key, f.Format)
	}
	return f, nil
}

// maxDrafts is how many drafts a list shows.
const maxDrafts = 100

// errSeen ends the reading of drafts at what there is now.
var errSeen = errors.New("all drafts have been read")

// drafts are all drafts, the newest first.
func (d *Dashboard) drafts(ctx context.Context) (all []*draft, err error) {
	if !d.drafting() {
		return nil, nil
	}
	byID := map[string]*draft{}
	err = d.parts.Drafts.Watch(ctx, func(c store.Change) error {
		switch {
		case c.Complete:
			return errSeen
		case c.Deleted:
			delete(byID, c.Key)
			return nil
		}
		f, err := decodeDraft(c.Entry)
		if err != nil {
			d.log.WarnContext(ctx, "dashboard", "err", err) // the others are sound
			return nil
		}
		byID[c.Key] = f
		return nil
	})
	if err == nil {
		err = ctx.Err() // a watch that ends so says nothing
	}
	if err != nil && !errors.Is(err, errSeen) {
		return nil, fmt.Errorf("list drafts: %w", err)
	}
	for _, f := range byID {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b *draft) int { return cmp.Or(b.at.Compare(a.at), strings.Compare(a.id, b.id)) })
	return all[:min(len(all), maxDrafts)], nil
}

// draftedFields are the fields of a creative's form as they are kept: none that is not
// of it, and no more of one than a form has.
func draftedFields(form url.Values) url.Values {
	kept := url.Values{"pageCount": {strconv.Itoa(pageCount(form))}}
	names := []string{"id", "name", "status", "campaign", "landingUrl", "shapes", "revision"}
	for i := range pageCount(form) {
		for _, f := range pageFields(fmt.Sprintf("pages[%d].", i)) {
			if f.Kind != "file" {
				names = append(names, f.Name)
			}
		}
	}
	for _, name := range names {
		if value := form.Get(name); value != "" {
			kept.Set(name, value)
		}
	}
	return kept
}

// keepDraft keeps what stands in a form, and goes on with it as a draft. Who has lost a
// race is shown both drafts.
func (d *Dashboard) keepDraft(v visit, e editor) error {
	form := v.r.PostForm
	f := &draft{Format: draftFormat, By: v.session.Name, Values: draftedFields(form), id: form.Get("draft")}
	f.revision, _ = strconv.ParseUint(form.Get("draftRevision"), 10, 64)
	if f.id == "" {
		f.id = newDraftID()
		if form.Get("revision") != "" && form.Get("revision") != "0" {
			f.id = form.Get("id")
		}
	}
	err := d.putDraft(v.r.Context(), f)
	switch {
	case errors.Is(err, store.ErrConflict):
		return d.lostDraft(v, e, f)
	case errors.Is(err, store.ErrTooLarge):
		return failure{http.StatusRequestEntityTooLarge, "That is too large", "A draft takes 250 kB of text."}
	case err != nil:
		return err
	}
	return v.redirect("/drafts/" + f.id + "?done=kept")
}

func (d *Dashboard) putDraft(ctx context.Context, f *draft) error {
	if !d.drafting() || !draftID.MatchString(f.id) {
		return nothingHere()
	}
	value, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("write draft: %w", err)
	}
	if f.revision, err = d.parts.Drafts.Put(ctx, f.id, value, f.revision); err != nil {
		return fmt.Errorf("write draft %s: %w", f.id, err)
	}
	return nil
}

// lostDraft shows both drafts to who has lost a race. Theirs may be gone, by being
// published or thrown away.
func (d *Dashboard) lostDraft(v visit, e editor, mine *draft) error {
	form := v.r.PostForm
	form.Set("draft", mine.id)
	theirs, err := d.draft(v.r.Context(), mine.id)
	race := &lostRace{Reload: "/drafts/" + mine.id}
	switch {
	case errors.Is(err, store.ErrNotFound):
		race.Deleted, race.At = true, time.Now()
		form.Del("draftRevision")
	case err != nil:
		return err
	default:
		race.By, race.At = theirs.By, theirs.at
		form.Set("draftRevision", strconv.FormatUint(theirs.revision, 10))
	}
	p := d.newPage(v, e, form, nil)
	if theirs != nil {
		race.Fields = differences(p.Groups, mine.Values, theirs.Values)
	}
	p.Lost = race
	return d.renderEdit(v, http.StatusConflict, e, p)
}

func (d *Dashboard) showDraft(v visit) error {
	if _, err := d.snapshot(); err != nil {
		return err
	}
	f, err := d.draft(v.r.Context(), v.r.PathValue("id"))
	if err != nil {
		return err
	}
	values := f.Values
	values.Set("draft", f.id)
	values.Set("draftRevision", strconv.FormatUint(f.revision, 10))
	if id := f.creative(); id != "" {
		values.Set("id", id)
	}
	p := d.newPage(v, creatives(), values, nil)
	p.Facts = fmt.Sprintf("Draft, kept %s UTC by %s", f.at.UTC().Format("2 Jan 2006, 15:04"), f.By)
	return d.renderEdit(v, http.StatusOK, creatives(), p)
}

// updateDraft keeps a draft again, or publishes it.
func (d *Dashboard) updateDraft(v visit) error {
	form, id := v.r.PostForm, v.r.PathValue("id")
	if !draftID.MatchString(id) {
		return nothingHere()
	}
	form.Set("draft", id)
	f := draft{id: id}
	var revision uint64
	if f.creative() != "" {
		var err error
		form.Set("id", f.creative())
		if revision, err = strconv.ParseUint(form.Get("revision"), 10, 64); err != nil || revision == 0 {
			return badForm("It does not say which revision it changes.")
		}
	} else {
		// An id that somebody had deleted was offered to be brought back.
		revision, _ = strconv.ParseUint(form.Get("revision"), 10, 64)
	}
	if form.Get("action") == "" {
		form.Set("action", "keep") // Enter publishes nothing
	}
	return d.save(v, creatives(), revision)
}

// dropDraft throws a draft away.
func (d *Dashboard) dropDraft(v visit) error {
	id := v.r.PathValue("id")
	revision, err := strconv.ParseUint(v.r.PostForm.Get("draftRevision"), 10, 64)
	if err != nil || !d.drafting() || !draftID.MatchString(id) {
		return badForm("It does not say which draft is meant.")
	}
	err = d.parts.Drafts.Delete(v.r.Context(), id, revision)
	switch {
	case errors.Is(err, store.ErrConflict):
		return failure{http.StatusConflict, "Somebody was faster", "The draft has been changed meanwhile. Go back, reload, and decide again."}
	case err != nil:
		return fmt.Errorf("delete draft %s: %w", id, err)
	}
	return v.redirect("/creatives?done=dropped")
}

// published removes the draft of what has just been published. One that somebody has
// kept meanwhile stays: it says something else.
func (d *Dashboard) published(ctx context.Context, form url.Values) {
	id := form.Get("draft")
	revision, err := strconv.ParseUint(form.Get("draftRevision"), 10, 64)
	if id == "" || err != nil || !d.drafting() || !draftID.MatchString(id) {
		return
	}
	if err := d.parts.Drafts.Delete(ctx, id, revision); err != nil && !errors.Is(err, store.ErrConflict) {
		d.log.WarnContext(ctx, "dashboard", "err", fmt.Errorf("delete draft %s, which has been published: %w", id, err))
	}
}

// stageDrafted is the stage of a draft.
func (d *Dashboard) stageDrafted(v visit) error {
	f, err := d.draft(v.r.Context(), v.r.PathValue("id"))
	if err != nil {
		return err
	}
	x := readCreative(&reader{values: f.Values}).(*catalog.Creative)
	return d.renderStage(v, f.name(), &x.Content, false)
}
