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

	"deckle/internal/catalog"
)

// casesPerPage is how many creatives the inbox shows at once, pages and all.
const casesPerPage = 20

// inboxPage is what waits for approval, the oldest first. The first Approve has
// the focus: a keyboard needs Enter for yes, Tab for the reason and Enter for no.
type inboxPage struct {
	frame
	Site  string   // alone; empty: all
	Sites []choice // of which something waits, or which is chosen
	Cases []approvalCase
	More  int // that are not shown
}

type choice struct {
	link
	Current bool
}

// An approvalCase is one version of a creative that waits on one site.
type approvalCase struct {
	catalog.Waiting
	Name         string
	CampaignName string
	Advertiser   string
	LandingURL   string
	Stages       []framing // what waits, and beside it what is shown meanwhile
	Leaves       []leaf
	Action       string
	First        bool
}

func (d *Dashboard) showInbox(v visit) error {
	s, err := d.snapshot()
	if err != nil {
		return err
	}
	all := s.Queue("", time.Now())
	p := inboxPage{frame: d.frame(v, "Approvals", "/inbox"), Site: v.r.URL.Query().Get("site")}
	p.Sites = sitesOf(all, p.Site)
	for _, w := range all {
		if p.Site != "" && w.Site != p.Site {
			continue
		}
		if len(p.Cases) == casesPerPage {
			p.More++
			continue
		}
		p.Cases = append(p.Cases, newCase(s, w, p.Site, len(p.Cases) == 0))
	}
	framed(v.w.Header())
	return render(v.w, http.StatusOK, "inbox", p)
}

// sitesOf are the ways to narrow the inbox, if there is more than one site.
func sitesOf(all []catalog.Waiting, chosen string) (choices []choice) {
	counts := map[string]int{}
	var order []string
	for _, w := range all {
		if counts[w.Site]++; counts[w.Site] == 1 {
			order = append(order, w.Site)
		}
	}
	if len(order) < 2 && chosen == "" {
		return nil
	}
	choices = append(choices, choice{link{"/inbox", "All " + strconv.Itoa(len(all))}, chosen == ""})
	for _, site := range order {
		choices = append(choices, choice{link{"/inbox?site=" + url.QueryEscape(site), site + " " + strconv.Itoa(counts[site])}, chosen == site})
	}
	return choices
}

func newCase(s *catalog.Snapshot, w catalog.Waiting, site string, first bool) approvalCase {
	c := approvalCase{Waiting: w, Name: w.Creative, CampaignName: w.Campaign, Advertiser: w.Advertiser, First: first}
	c.Action = "/inbox/" + w.Site + "/" + w.Creative + "?" + url.Values{"site": {site}}.Encode()
	if x, ok := s.Creative(w.Creative); ok {
		c.Name, c.Leaves, c.LandingURL = cmp.Or(x.Name, x.ID), leaves(x.Pages), x.LandingURL
		c.Stages = []framing{newFraming(x, w.Version, "", "")}
		if w.Serving > 0 {
			c.Stages[0].Label = fmt.Sprintf("Version %d, which waits", w.Version)
			c.Stages = append(c.Stages, newFraming(x, w.Serving, w.Site, fmt.Sprintf("Version %d, which is shown", w.Serving)))
		}
	}
	if x, ok := s.Campaign(w.Campaign); ok {
		c.CampaignName = cmp.Or(x.Name, x.ID)
	}
	if x, ok := s.Advertiser(w.Advertiser); ok {
		c.Advertiser = cmp.Or(x.Name, x.ID)
	}
	return c
}

// decide approves or rejects one version, and goes on to the next.
func (d *Dashboard) decide(v visit) error {
	form := v.r.PostForm
	version, errVersion := strconv.ParseUint(form.Get("version"), 10, 32)
	revision, errRevision := strconv.ParseUint(form.Get("revision"), 10, 64)
	if errVersion != nil || errRevision != nil {
		return badForm("It does not say which version it is about.")
	}
	change, done, why := d.catalog.Approve, "approved", ""
	switch form.Get("decision") {
	case "approve":
	case "reject":
		change, done = d.catalog.Reject, "rejected"
		if why = strings.Join(strings.Fields(form.Get("reason")), " "); why == "" {
			return badForm("A rejection needs a reason: the advertiser will ask.")
		}
	default:
		return badForm("It neither approves nor rejects.")
	}
	x, err := change(v.r.Context(), v.r.PathValue("site"), v.r.PathValue("creative"), uint32(version), catalog.Write{By: v.session.Name, Note: why, Revision: revision})
	if errors.Is(err, catalog.ErrConflict) { // the inbox has what is left
		err, done = nil, "decided"
	}
	if err != nil {
		return err
	}
	d.settle(v.r.Context(), x.Revision)
	return v.redirect("/inbox?" + url.Values{"done": {done}, "site": {v.r.URL.Query().Get("site")}}.Encode())
}
