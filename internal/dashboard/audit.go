package dashboard

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"deckle/internal/catalog"
	"deckle/internal/obs"
)

// auditPage is who changed what, the newest first.
type auditPage struct {
	frame
	About  string
	Events []event
	More   string
}

// An event is one entry of the audit log.
type event struct {
	At     time.Time
	By     string
	What   string
	About  link
	Note   string // why, in the words of who did it
	Fields []catalog.Edit
}

const (
	eventsPerPage = 50
	maxAudit      = 10_000 // how far back the log is shown
)

func newEvent(key string, c catalog.Change) event {
	kind, id, _ := strings.Cut(key, "/")
	about := link{"/" + kind + "s/" + id, kind + " " + id}
	if kind == "approval" {
		site, creative, _ := strings.Cut(id, "/")
		about = link{"/creatives/" + creative + "/preview", "creative " + creative + " on " + site}
	}
	return event{At: c.At, By: c.By, What: c.What, About: about, Note: c.Note, Fields: c.Fields}
}

func place(e catalog.Event) string { return e.At.UTC().Format(time.RFC3339Nano) + " " + e.Key }

func (d *Dashboard) showAudit(v visit) error {
	s, err := d.snapshot()
	if err != nil {
		return err
	}
	events := s.Audit(maxAudit)
	if after := v.r.URL.Query().Get("after"); after != "" {
		i := slices.IndexFunc(events, func(e catalog.Event) bool { return place(e) == after })
		if i < 0 {
			return notFound(v)
		}
		events = events[i+1:]
	}
	p := auditPage{frame: d.frame(v, "Audit log", "/audit"), About: "Who changed what in the catalog, the newest first."}
	for _, e := range events[:min(len(events), eventsPerPage)] {
		p.Events = append(p.Events, newEvent(e.Key, e.Change))
	}
	if len(events) > eventsPerPage {
		p.More = "/audit?" + url.Values{"after": {place(events[eventsPerPage-1])}}.Encode()
	}
	return render(v.w, http.StatusOK, "audit", p)
}

// showHistory is the audit log of one entity, also of one that is deleted.
func (d *Dashboard) showHistory(e editor) handler {
	return func(v visit) error {
		s, err := d.snapshot()
		if err != nil {
			return err
		}
		id := v.r.PathValue("id")
		r, ok := s.Record(e.kind, id)
		if !ok {
			return catalog.ErrNotFound
		}
		p := auditPage{frame: d.frame(v, "History of "+nameOf(r.Entity), "/"+plural(e.kind))}
		p.Crumb = link{"/" + plural(e.kind) + "/" + id, title(e.kind) + " " + id}
		if r.Deleted {
			p.Crumb, p.About = link{"/" + plural(e.kind), e.title}, "It has been deleted. A tombstone keeps its id."
		}
		history := r.History
		if ring, ok := s.KeyRing(id); ok && e.kind == catalog.KindPublisher {
			history = slices.Concat(history, ring.History)
		}
		for _, c := range history {
			p.Events = append(p.Events, newEvent(string(e.kind)+"/"+id, c))
		}
		slices.SortStableFunc(p.Events, func(a, b event) int { return b.At.Compare(a.At) })
		return render(v.w, http.StatusOK, "audit", p)
	}
}

// overviewPage is what somebody sees first: what waits, what there is, how we are,
// what was done.
type overviewPage struct {
	frame
	Tiles     []tile
	Reporting bool          // there are reports
	Days      int           // how many the groups are about
	Groups    []reportGroup // without rows
	Checks    []check
	Failures  []failed // of magazines in pages
	Hears     bool     // browsers tell of them
	Events    []event
}

type tile struct {
	link
	Count int
	Wait  bool
}

type check struct {
	Part, State, Note, Badge string
}

func (d *Dashboard) showOverview(v visit) error {
	s, err := d.snapshot()
	if err != nil {
		return err
	}
	p := overviewPage{frame: d.frame(v, "Overview", "/")}
	waiting := len(s.Queue("", time.Now()))
	p.Tiles = append(p.Tiles, tile{link{"/inbox", "to approve"}, waiting, waiting > 0})
	for _, e := range editors() {
		n := len(s.List(e.kind, "", 1<<30))
		name := string(e.kind)
		if n != 1 {
			name = plural(e.kind)
		}
		p.Tiles = append(p.Tiles, tile{link{"/" + plural(e.kind), name}, n, false})
	}
	p.Reporting, p.Days = d.parts.Tables != nil, glanceDays
	if p.Groups, err = d.lastDays(v.r.Context(), s, time.Now()); err != nil {
		return err
	}
	if d.config.Ready != nil {
		for _, c := range d.config.Ready() {
			badge := map[obs.State]string{obs.OK: "good", obs.Degraded: "wait", obs.NotReady: "bad"}[c.State]
			p.Checks = append(p.Checks, check{c.Part, string(c.State), c.Note, badge})
		}
	}
	if p.Hears = d.parts.Heartbeats != nil; p.Hears {
		p.Failures = failures(d.parts.Heartbeats.Day())
	}
	for _, e := range s.Audit(8) {
		p.Events = append(p.Events, newEvent(e.Key, e.Change))
	}
	return render(v.w, http.StatusOK, "overview", p)
}
