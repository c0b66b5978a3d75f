package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"deckle/internal/catalog"
	"deckle/internal/store"
)

// snapshot is the catalog as this node knows it, once it does.
func (d *Dashboard) snapshot() (*catalog.Snapshot, error) {
	s := d.catalog.Snapshot()
	if !s.Loaded() {
		return nil, catalog.ErrNotLoaded
	}
	return s, nil
}

// listPage is a list of entities.
type listPage struct {
	frame
	About, Empty string
	Of           link // of which parent alone
	New          link
	Drafts       []*draftRow // of creatives
	Columns      []column
	Rows         []row
	More         string // the address of the next page
	Search       bool   // there is something to search in
	Query        string // what is searched for
}

type column struct {
	Label  string
	Number bool
}

type row struct {
	Href, Name, ID string
	Cells          []cell
}

// rowsPerPage is how long a list is.
const rowsPerPage = 50

// searchFrom is how many entities there are before a search is offered.
const searchFrom = 10

func (d *Dashboard) showList(e editor) handler {
	return func(v visit) error {
		s, err := d.snapshot()
		if err != nil {
			return err
		}
		asked, own := v.r.URL.Query(), "/"+plural(e.kind)
		p := listPage{frame: d.frame(v, e.title, own), About: e.about, Empty: e.empty, Query: strings.TrimSpace(asked.Get("q"))}
		p.New = link{own + "/new", "New " + string(e.kind)}
		of := asked.Get("of")
		if of != "" {
			p.Of = link{own, of}
			p.New.Href += "?" + url.Values{string(parentOf(e.kind)): {of}}.Encode()
		}
		records := find(s, e.kind, of, p.Query, asked.Get("after"), rowsPerPage+1)
		for _, r := range records[:min(len(records), rowsPerPage)] {
			id := r.EntityID()
			p.Rows = append(p.Rows, row{Href: own + "/" + id, Name: nameOf(r.Entity), ID: id, Cells: e.cells(s, r.Entity)})
		}
		if e.kind == catalog.KindCreative && of == "" && p.Query == "" && asked.Get("after") == "" {
			drafts, err := d.drafts(v.r.Context())
			if err != nil {
				return err
			}
			for _, f := range drafts {
				p.Drafts = append(p.Drafts, newDraftRow(f))
			}
		}
		p.Search = p.Query != "" || len(s.List(e.kind, "", searchFrom)) == searchFrom
		if len(p.Rows) > 0 {
			for _, c := range p.Rows[0].Cells {
				p.Columns = append(p.Columns, column{c.Label, c.Number})
			}
		}
		if len(records) > rowsPerPage {
			p.More = own + "?" + url.Values{"after": {p.Rows[rowsPerPage-1].ID}, "of": {of}, "q": {p.Query}}.Encode()
		}
		return render(v.w, http.StatusOK, "list", p)
	}
}

// find lists entities after an id: those of a parent, unless that is empty, and
// those in whose id or name the query stands.
func find(s *catalog.Snapshot, k catalog.Kind, of, query, after string, limit int) (found []catalog.Record) {
	most := limit
	if query != "" {
		most = math.MaxInt32
	}
	records := s.List(k, after, most)
	if of != "" {
		records = s.ListChildren(k, of, after, most)
	}
	query = strings.ToLower(query)
	for _, r := range records {
		if len(found) < limit && (strings.Contains(strings.ToLower(r.EntityID()), query) || strings.Contains(strings.ToLower(nameOf(r.Entity)), query)) {
			found = append(found, r)
		}
	}
	return found
}

func parentOf(k catalog.Kind) catalog.Kind {
	switch k {
	case catalog.KindCampaign:
		return catalog.KindAdvertiser
	case catalog.KindCreative:
		return catalog.KindCampaign
	}
	return catalog.KindPublisher
}

// editPage is the form of an entity.
type editPage struct {
	frame
	Action   string // where the form is posted
	Submit   string
	Revision uint64 // that the form was made of; 0: a new entity
	Pages    int    // of a creative
	Groups   []group
	Problems []catalog.Problem // that belong to no field
	Wrong    int               // fields that are wrong
	Lost     *lostRace
	Delete   string // where to post to delete it; empty: not possible
	Links    []link
	Facts    string // "Revision 7, saved 3 Dec 2026, 10:15 UTC by ana"

	Spend   *spendPanel // of a campaign
	Keys    *keysPanel  // of a publisher
	*studio             // of a creative
}

// A lostRace is what is shown to who has changed what somebody else has changed.
type lostRace struct {
	By      string
	At      time.Time
	Deleted bool
	Taken   bool // the id of a new entity belonged to a deleted one
	Reload  string
	Fields  []difference // where the two versions differ
}

type difference struct{ Field, Mine, Theirs string }

// newPage makes the form of what is entered.
func (d *Dashboard) newPage(v visit, e editor, values url.Values, problems []catalog.Problem) editPage {
	id := values.Get("id")
	revision, _ := strconv.ParseUint(values.Get("revision"), 10, 64)
	p := editPage{
		frame:    d.frame(v, "New "+string(e.kind), "/"+plural(e.kind)),
		Action:   "/" + plural(e.kind) + "/new",
		Submit:   "Create " + string(e.kind),
		Revision: revision,
		Groups:   e.form(d.catalog.Snapshot(), d, values),
		Pages:    pageCount(values),
	}
	p.Crumb = link{"/" + plural(e.kind), e.title}
	if revision != 0 {
		own := "/" + plural(e.kind) + "/" + id
		p.Title, p.Action, p.Submit, p.Delete = cmp.Or(values.Get("name"), id), own, "Save", own+"/delete"
		if e.kind == catalog.KindCreative {
			p.Links = append(p.Links, link{own + "/preview", "Where it stands"})
		}
		p.Links = append(p.Links, link{own + "/history", "History"})
	}
	if e.kind == catalog.KindCreative {
		d.furnish(&p, values)
	}
	p.Problems = fill(p.Groups, values, problems)
	for _, g := range p.Groups {
		for _, f := range g.Fields {
			if f.Error != "" {
				p.Wrong++
			}
		}
	}
	return p
}

func (d *Dashboard) showNew(e editor) handler {
	return func(v visit) error {
		if _, err := d.snapshot(); err != nil {
			return err
		}
		// A link from a parent has it filled in.
		values := v.r.URL.Query()
		for _, name := range []string{"revision", "draft", "draftRevision"} {
			values.Del(name)
		}
		return d.renderEdit(v, http.StatusOK, e, d.newPage(v, e, values, nil))
	}
}

func (d *Dashboard) showEdit(e editor) handler {
	return func(v visit) error {
		r, err := d.record(v, e)
		if err != nil {
			return err
		}
		values := e.values(r.Entity)
		values.Set("revision", strconv.FormatUint(r.Revision, 10))
		p := d.newPage(v, e, values, nil)
		p.Facts = facts(r)
		if e.aside != nil {
			if err := e.aside(d, v, r, &p); err != nil {
				return err
			}
		}
		return d.renderEdit(v, http.StatusOK, e, p)
	}
}

// renderEdit answers with the page of a form.
func (d *Dashboard) renderEdit(v visit, status int, e editor, p editPage) error {
	if e.kind != catalog.KindCreative {
		return render(v.w, status, "edit", p)
	}
	p.Nonce = scripted(v.w.Header())
	return render(v.w, status, "creative", p)
}

// facts says of when a record is, and by whom.
func facts(r catalog.Record) string {
	text := fmt.Sprintf("Revision %d, saved %s UTC", r.Revision, r.Updated.UTC().Format("2 Jan 2006, 15:04"))
	if last, ok := lastChange(r); ok {
		text += " by " + last.By
	}
	return text
}

func lastChange(r catalog.Record) (last catalog.Change, ok bool) {
	for _, c := range r.History {
		if !ok || c.At.After(last.At) {
			last, ok = c, true
		}
	}
	return last, ok
}

// record reads the entity of the path from the leader: a form made of an old
// revision could not be saved.
func (d *Dashboard) record(v visit, e editor) (catalog.Record, error) {
	r, err := d.catalog.Get(v.r.Context(), e.kind, v.r.PathValue("id"))
	if err == nil && r.Deleted {
		err = catalog.ErrNotFound
	}
	return r, err
}

func (d *Dashboard) create(e editor) handler {
	return func(v visit) error { return d.save(v, e, 0) }
}

func (d *Dashboard) update(e editor) handler {
	return func(v visit) error {
		revision, err := strconv.ParseUint(v.r.PostForm.Get("revision"), 10, 64)
		if err != nil || revision == 0 {
			return badForm("It does not say which revision it changes.")
		}
		v.r.PostForm.Set("id", v.r.PathValue("id"))
		return d.save(v, e, revision)
	}
}

// save writes what was posted; the form comes back with everything that is wrong
// with it, or with what somebody else has written meanwhile.
func (d *Dashboard) save(v visit, e editor, revision uint64) error {
	if _, err := d.snapshot(); err != nil {
		return err
	}
	ctx, form := v.r.Context(), v.r.PostForm
	problems, err := d.takePictures(ctx, v.r)
	if err != nil {
		return err
	}
	if e.kind == catalog.KindCreative {
		switch {
		case arrange(form):
			return d.renderEdit(v, http.StatusOK, e, d.newPage(v, e, form, problems))
		case form.Get("action") == "keep" && len(problems) == 0:
			return d.keepDraft(v, e)
		}
	}
	r := &reader{values: form, problems: problems}
	entity := e.read(r)
	if len(r.problems) > 0 { // say the rest as well, and write nothing
		return d.wrong(v, e, append(r.problems, d.judge(entity, r.problems)...))
	}
	saved, err := d.catalog.Put(ctx, entity, catalog.Write{By: v.session.Name, Revision: revision})
	if bad, ok := errors.AsType[*catalog.InvalidError](err); ok {
		return d.wrong(v, e, bad.Problems)
	}
	if lost, ok := errors.AsType[*catalog.ConflictError](err); ok {
		return d.lost(v, e, entity, revision, lost)
	}
	if err != nil {
		return err
	}
	d.settle(ctx, saved.Revision)
	done := "saved"
	if revision == 0 {
		done = "created"
	}
	if x, ok := entity.(*catalog.Creative); ok {
		d.published(ctx, form)
		if wereCorrected(x.Pages, saved.Entity.(*catalog.Creative).Pages) {
			done = "corrected"
		}
	}
	return v.redirect("/" + plural(e.kind) + "/" + entity.EntityID() + "?done=" + done)
}

// wrong shows a form again, with what is wrong at its fields.
func (d *Dashboard) wrong(v visit, e editor, problems []catalog.Problem) error {
	return d.renderEdit(v, http.StatusBadRequest, e, d.newPage(v, e, v.r.PostForm, problems))
}

// judge is what the catalog finds wrong with an entity, but for the fields that
// could not even be read.
func (d *Dashboard) judge(e catalog.Entity, unread []catalog.Problem) (problems []catalog.Problem) {
	doc := &catalog.Document{}
	switch e := e.(type) {
	case *catalog.Publisher:
		doc.Publishers = append(doc.Publishers, e)
	case *catalog.Site:
		doc.Sites = append(doc.Sites, e)
	case *catalog.Advertiser:
		doc.Advertisers = append(doc.Advertisers, e)
	case *catalog.Campaign:
		doc.Campaigns = append(doc.Campaigns, e)
	case *catalog.Creative:
		doc.Creatives = append(doc.Creatives, e)
	}
	_, err := d.catalog.Import(doc)
	bad, _ := errors.AsType[*catalog.InvalidError](err)
	if bad == nil {
		return nil
	}
	for _, p := range bad.Problems {
		p.Field = strings.TrimPrefix(strings.TrimPrefix(p.Field, plural(e.Kind())+"[0]"), ".")
		if !slices.ContainsFunc(unread, func(u catalog.Problem) bool { return within(p.Field, u.Field) }) {
			problems = append(problems, p)
		}
	}
	return problems
}

// lost shows both versions to who has lost a race. What they entered stays in the
// form, which can be saved over the other version: knowingly.
func (d *Dashboard) lost(v visit, e editor, mine catalog.Entity, revision uint64, lost *catalog.ConflictError) error {
	form := v.r.PostForm
	if revision == 0 && lost.Current != nil && !lost.Current.Deleted {
		return d.wrong(v, e, []catalog.Problem{{Field: "id", Msg: "is taken by another " + string(e.kind)}})
	}
	form.Set("revision", strconv.FormatUint(lost.Revision, 10))
	p := d.newPage(v, e, form, nil)
	race := &lostRace{Reload: "/" + plural(e.kind) + "/" + mine.EntityID(), Deleted: lost.Current == nil || lost.Current.Deleted, Taken: revision == 0}
	if c := lost.Current; c != nil {
		race.At = c.Updated
		if last, ok := lastChange(*c); ok {
			race.By = last.By
		}
		if !race.Deleted {
			race.Fields = differences(p.Groups, e.values(mine), e.values(c.Entity))
		}
	}
	p.Lost = race
	if race.Deleted {
		p.Delete = ""
	}
	p.Submit = "Save mine over it"
	return d.renderEdit(v, http.StatusConflict, e, p)
}

// differences are the fields in which two versions of an entity differ, by the
// labels of the form.
func differences(groups []group, mine, theirs url.Values) (out []difference) {
	labels := map[string]string{}
	for _, g := range groups {
		for _, f := range g.Fields {
			labels[f.Name] = f.Label
			if strings.HasPrefix(f.Name, "pages[") {
				labels[f.Name] = g.Legend + ": " + f.Label
			}
		}
	}
	names := map[string]bool{}
	for name := range mine {
		names[name] = true
	}
	for name := range theirs {
		names[name] = true
	}
	for name := range names {
		a, b := normal(mine[name]), normal(theirs[name])
		if label := cmp.Or(labels[name], name); !reflect.DeepEqual(a, b) && name != "currency" && name != "pageCount" {
			out = append(out, difference{label, strings.Join(a, ", "), strings.Join(b, ", ")})
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Field < out[j].Field })
	return out
}

// normal leaves out what is empty.
func normal(values []string) (out []string) {
	for _, v := range values {
		if v != "" {
			out = append(out, v)
		}
	}
	return out
}

func (d *Dashboard) remove(e editor) handler {
	return func(v visit) error {
		revision, err := strconv.ParseUint(v.r.PostForm.Get("revision"), 10, 64)
		if err != nil || revision == 0 {
			return badForm("It does not say which revision it deletes.")
		}
		r, err := d.catalog.Delete(v.r.Context(), e.kind, v.r.PathValue("id"), catalog.Write{By: v.session.Name, Revision: revision})
		if err != nil {
			return err
		}
		d.settle(v.r.Context(), r.Revision)
		return v.redirect("/" + plural(e.kind) + "?done=deleted")
	}
}

// settle waits, not for long, until this node's pages have what was written.
func (d *Dashboard) settle(ctx context.Context, revision uint64) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_ = d.catalog.WaitFor(ctx, revision) // it is durable; pages will show it
}

// unavailable reports whether the store could not answer.
func unavailable(err error) bool {
	return errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
