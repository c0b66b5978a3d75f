package api

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"deckle/internal/catalog"
)

// A Waiting is a version of a creative that waits for approval on a site.
type Waiting struct {
	Site       string    `json:"site"`
	Creative   string    `json:"creative"`
	Version    uint32    `json:"version"`
	Campaign   string    `json:"campaign"`
	Advertiser string    `json:"advertiser"`
	Since      time.Time `json:"since"`
	Serving    uint32    `json:"serving,omitzero"` // the version that is shown meanwhile
	Revision   uint64    `json:"revision"`         // for If-Match; 0: nothing has been decided yet
}

// queue is what waits, the oldest first. A cursor is a place in that order: what is
// decided meanwhile moves nothing.
func (a *API) queue(c call) error {
	after, limit, err := page(c.r)
	if err != nil {
		return err
	}
	s, err := a.snapshot()
	if err != nil {
		return err
	}
	waiting := s.Queue(c.r.URL.Query().Get("site"), time.Now())
	first := slices.IndexFunc(waiting, func(w catalog.Waiting) bool { return placeOfWaiting(w) > after })
	if first < 0 {
		first = len(waiting)
	}
	waiting = waiting[first:]
	out := listing[Waiting]{Items: []Waiting{}}
	for _, w := range waiting[:min(limit, len(waiting))] {
		out.Items = append(out.Items, Waiting{
			Site: w.Site, Creative: w.Creative, Version: w.Version, Campaign: w.Campaign, Advertiser: w.Advertiser,
			Since: w.Since.UTC(), Serving: w.Serving, Revision: w.Revision,
		})
	}
	if len(waiting) > limit {
		out.Next = encodeCursor(placeOfWaiting(waiting[limit-1]))
	}
	writeJSON(c.w, http.StatusOK, "application/json", out)
	return nil
}

// placeOfWaiting sorts as the queue does.
func placeOfWaiting(w catalog.Waiting) string {
	return w.Since.UTC().Format("2006-01-02T15:04:05.000000000") + " " + w.Site + "/" + w.Creative
}

// decisions are those on one creative on one site.
func (a *API) decisions(c call) error {
	s, err := a.snapshot()
	if err != nil {
		return err
	}
	site, creative := c.r.PathValue("site"), c.r.PathValue("creative")
	_, haveSite := s.Site(site)
	_, haveCreative := s.Creative(creative)
	if !haveSite || !haveCreative {
		return catalog.ErrNotFound
	}
	c.approvals(s.Approvals(site, creative))
	return nil
}

func (c call) approvals(x catalog.Approvals) {
	if x.Decisions == nil {
		x.Decisions = []catalog.Approval{}
	}
	c.w.Header().Set("Etag", etag(x.Revision))
	writeJSON(c.w, http.StatusOK, "application/json", x)
}

// A Decision is what somebody decides about a version.
type Decision struct {
	Version uint32        `json:"version"`
	State   catalog.State `json:"state"`
	Note    string        `json:"note"` // why; may be empty
}

// decide approves or rejects a version of a creative on a site.
func (a *API) decide(c call) error {
	revision, err := ifMatch(c.r.Header.Get("If-Match"))
	if err != nil {
		return err
	}
	var d Decision
	if err := json.Unmarshal(c.body, &d, json.RejectUnknownMembers(true)); err != nil {
		return badJSON(err)
	}
	var errs []catalog.Problem
	if d.Version == 0 {
		errs = append(errs, catalog.Problem{Field: "version", Msg: "missing", Remedy: "the version that you have looked at, from 1"})
	}
	if d.State != catalog.Approved && d.State != catalog.Rejected {
		errs = append(errs, catalog.Problem{Field: "state", Msg: "not a decision", Remedy: `"approved" or "rejected"`})
	}
	if errs != nil {
		return invalid(errs...)
	}
	change := a.catalog.Approve
	if d.State == catalog.Rejected {
		change = a.catalog.Reject
	}
	x, err := change(c.r.Context(), c.r.PathValue("site"), c.r.PathValue("creative"), d.Version,
		catalog.Write{By: c.by, Note: d.Note, Revision: revision})
	if err != nil {
		return err
	}
	a.settle(c.r.Context(), x.Revision)
	c.approvals(x)
	return nil
}

// badJSON names the field in which a small body is not what it should be.
func badJSON(err error) error {
	p := catalog.Problem{Msg: "not JSON of the right form"}
	switch e := err.(type) {
	case *json.SemanticError:
		p.Field = field(e.JSONPointer)
		if e.Err != nil {
			p.Msg = e.Err.Error()
		} else if e.JSONKind != 0 {
			p.Msg = fmt.Sprintf("not a JSON %s", e.JSONKind)
		}
	case *jsontext.SyntacticError:
		p.Field, p.Msg = field(e.JSONPointer), e.Err.Error()
	}
	return invalid(p)
}

// field writes a JSON pointer as problems do: "/pages/0/title" as "pages[0].title".
func field(p jsontext.Pointer) string {
	var b strings.Builder
	for token := range p.Tokens() {
		if _, err := strconv.Atoi(token); err == nil {
			b.WriteString("[" + token + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(token)
	}
	return b.String()
}

// maxAudit is how far back the audit log is listed.
const maxAudit = 10_000

// An Event is an entry of the audit log.
type Event struct {
	Key string `json:"key"` // "campaign/spring", "approval/yuki-site/ryokan-magazine-001"
	catalog.Change
}

// audit is what was changed by whom, the newest first. A cursor is the place of an
// entry: newer ones do not move it.
func (a *API) audit(c call) error {
	after, limit, err := page(c.r)
	if err != nil {
		return err
	}
	s, err := a.snapshot()
	if err != nil {
		return err
	}
	events := s.Audit(maxAudit)
	if after != "" {
		i := 0
		for i < len(events) && place(events[i]) != after {
			i++
		}
		if i == len(events) {
			return invalid(catalog.Problem{Field: "cursor", Msg: "not one that this list answered with, or too old by now"})
		}
		events = events[i+1:]
	}
	out := listing[Event]{Items: []Event{}}
	for _, e := range events[:min(limit, len(events))] {
		e.At = e.At.UTC()
		out.Items = append(out.Items, Event{e.Key, e.Change})
	}
	if len(events) > limit {
		out.Next = encodeCursor(place(events[limit-1]))
	}
	writeJSON(c.w, http.StatusOK, "application/json", out)
	return nil
}

func place(e catalog.Event) string { return e.At.UTC().Format(time.RFC3339Nano) + " " + e.Key }
