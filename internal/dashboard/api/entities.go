package api

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"deckle/internal/catalog"
)

// A Record is an entity as the API gives it. A writer sends the value alone.
type Record struct {
	Kind     catalog.Kind   `json:"kind"`
	ID       string         `json:"id"`
	Revision uint64         `json:"revision"`
	Created  time.Time      `json:"created"`
	Updated  time.Time      `json:"updated"`
	Deleted  bool           `json:"deleted,omitzero"`
	Value    catalog.Entity `json:"value"`
}

func recordOf(r catalog.Record) Record {
	return Record{
		Kind: r.Entity.Kind(), ID: r.Entity.EntityID(), Revision: r.Revision,
		Created: r.Created.UTC(), Updated: r.Updated.UTC(), Deleted: r.Deleted, Value: r.Entity,
	}
}

// A listing is one page of a list.
type listing[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitzero"` // the cursor of the next page, if there is one
}

const (
	defaultLimit = 50
	maxLimit     = 200
)

// page is which part of a list a request wants.
func page(r *http.Request) (after string, limit int, err error) {
	limit = defaultLimit
	if text := r.URL.Query().Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > maxLimit {
			return "", 0, invalid(catalog.Problem{Field: "limit", Msg: "not a number from 1 to " + strconv.Itoa(maxLimit)})
		}
	}
	if cursor := r.URL.Query().Get("cursor"); cursor != "" {
		after, err = decodeCursor(cursor)
	}
	return after, limit, err
}

// snapshot is the catalog as this node knows it, once it does.
func (a *API) snapshot() (*catalog.Snapshot, error) {
	s := a.catalog.Snapshot()
	if !s.Loaded() {
		return nil, catalog.ErrNotLoaded
	}
	return s, nil
}

// parentOf is the kind that a kind belongs to; "" for publishers.
func parentOf(k catalog.Kind) catalog.Kind {
	switch k {
	case catalog.KindSite, catalog.KindAdvertiser:
		return catalog.KindPublisher
	case catalog.KindCampaign:
		return catalog.KindAdvertiser
	case catalog.KindCreative:
		return catalog.KindCampaign
	}
	return ""
}

func (a *API) list(k catalog.Kind) handler {
	return func(c call) error {
		after, limit, err := page(c.r)
		if err != nil {
			return err
		}
		s, err := a.snapshot()
		if err != nil {
			return err
		}
		var records []catalog.Record
		if parent := c.r.URL.Query().Get(string(parentOf(k))); parent != "" {
			records = s.ListChildren(k, parent, after, limit+1)
		} else {
			records = s.List(k, after, limit+1) // one more tells whether there is another page
		}
		out := listing[Record]{Items: []Record{}}
		for _, r := range records[:min(len(records), limit)] {
			out.Items = append(out.Items, recordOf(r))
		}
		if len(records) > limit {
			out.Next = encodeCursor(out.Items[limit-1].ID)
		}
		writeJSON(c.w, http.StatusOK, "application/json", out)
		return nil
	}
}

func (a *API) get(k catalog.Kind) handler {
	return func(c call) error {
		r, err := a.catalog.Get(c.r.Context(), k, c.r.PathValue("id"))
		if err != nil {
			return err
		}
		if r.Deleted {
			return catalog.ErrNotFound
		}
		if hasTag(c.r.Header.Get("If-None-Match"), r.Revision) {
			c.w.Header().Set("Etag", etag(r.Revision))
			c.w.WriteHeader(http.StatusNotModified)
			return nil
		}
		c.record(http.StatusOK, r)
		return nil
	}
}

// record answers with a record and its revision.
func (c call) record(status int, r catalog.Record) {
	c.w.Header().Set("Etag", etag(r.Revision))
	writeJSON(c.w, status, "application/json", recordOf(r))
}

func (a *API) create(k catalog.Kind) handler {
	return func(c call) error {
		e, err := catalog.Decode(k, c.body)
		if err != nil {
			return err
		}
		return a.write(c, e, 0, http.StatusCreated)
	}
}

func (a *API) replace(k catalog.Kind) handler {
	return func(c call) error {
		revision, fresh, err := a.revision(c, k)
		if err != nil {
			return err
		}
		e, err := catalog.Decode(k, c.body)
		if err != nil {
			return err
		}
		if id := c.r.PathValue("id"); e.EntityID() != id {
			return invalid(catalog.Problem{Field: "id", Msg: "not the id of the path", Remedy: "write " + strconv.Quote(id)})
		}
		if fresh {
			return a.write(c, e, 0, http.StatusCreated)
		}
		return a.write(c, e, revision, http.StatusOK)
	}
}

// write puts an entity, and answers when it is durable and this node knows it.
func (a *API) write(c call, e catalog.Entity, revision uint64, status int) error {
	r, err := a.catalog.Put(c.r.Context(), e, catalog.Write{By: c.by, Revision: revision})
	if err != nil {
		return err
	}
	a.settle(c.r.Context(), r.Revision)
	if status == http.StatusCreated {
		c.w.Header().Set("Location", Prefix+"/"+plural(e.Kind())+"/"+e.EntityID())
	}
	c.record(status, r)
	return nil
}

func (a *API) remove(k catalog.Kind) handler {
	return func(c call) error {
		revision, fresh, err := a.revision(c, k)
		if err != nil {
			return err
		}
		if fresh {
			return preconditionRequired()
		}
		r, err := a.catalog.Delete(c.r.Context(), k, c.r.PathValue("id"), catalog.Write{By: c.by, Revision: revision})
		if err != nil {
			return err
		}
		a.settle(c.r.Context(), r.Revision)
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
}

// settle waits, not for long, until this node's lists have what was written.
func (a *API) settle(ctx context.Context, revision uint64) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_ = a.catalog.WaitFor(ctx, revision) // it is durable; lists will show it
}

// revision is what a writer believes to be there: If-Match names it, If-None-Match
// says that there is nothing. A writer who says neither has not looked.
func (a *API) revision(c call, k catalog.Kind) (revision uint64, fresh bool, err error) {
	if c.r.Header.Get("If-None-Match") == "*" {
		return 0, true, nil
	}
	match := c.r.Header.Get("If-Match")
	if match == "*" { // whatever is there, but something
		r, err := a.catalog.Get(c.r.Context(), k, c.r.PathValue("id"))
		if err == nil && r.Deleted {
			err = catalog.ErrNotFound
		}
		return r.Revision, false, err
	}
	revision, err = ifMatch(match)
	return revision, false, err
}

func ifMatch(match string) (uint64, error) {
	if match == "" {
		return 0, preconditionRequired()
	}
	text, ok := strings.CutPrefix(match, `"`)
	text, ok2 := strings.CutSuffix(text, `"`)
	revision, err := strconv.ParseUint(text, 10, 64)
	if !ok || !ok2 || err != nil || etag(revision) != match {
		return 0, invalid(catalog.Problem{Field: "If-Match", Msg: "not one revision", Remedy: `send the ETag of what you have read, like "17" with its quotation marks`})
	}
	return revision, nil
}

func preconditionRequired() *Problem {
	return problem(http.StatusPreconditionRequired, "precondition_required",
		"send If-Match with the ETag of what you have read, so that nobody's change is lost")
}

func etag(revision uint64) string { return `"` + strconv.FormatUint(revision, 10) + `"` }

// hasTag reads If-None-Match, which compares weakly (RFC 9110 section 13.1.2).
func hasTag(field string, revision uint64) bool {
	for tag := range strings.SplitSeq(field, ",") {
		if tag = strings.TrimSpace(tag); tag == "*" || strings.TrimPrefix(tag, "W/") == etag(revision) {
			return true
		}
	}
	return false
}

// history is what was changed in one entity, the newest first.
func (a *API) history(k catalog.Kind) handler {
	return func(c call) error {
		s, err := a.snapshot()
		if err != nil {
			return err
		}
		r, ok := s.Record(k, c.r.PathValue("id"))
		if !ok {
			return catalog.ErrNotFound
		}
		out := listing[catalog.Change]{Items: []catalog.Change{}}
		out.Items = append(out.Items, r.History...)
		slices.SortStableFunc(out.Items, func(a, b catalog.Change) int { return b.At.Compare(a.At) })
		writeJSON(c.w, http.StatusOK, "application/json", out)
		return nil
	}
}

// plural is the name of a collection.
func plural(k catalog.Kind) string { return string(k) + "s" }
