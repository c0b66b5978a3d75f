package catalog

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// A Waiting is a version that would be shown on a site and that nobody has decided
// about.
type Waiting struct {
	Site, Creative       string
	Campaign, Advertiser string
	Version              uint32
	Since                time.Time // when the creative was saved last
	Serving              uint32    // the approved version that is shown meanwhile; 0: none
	Revision             uint64    // of the approvals, for [Catalog.Approve]

	end time.Time // of the campaign
}

// waits reports whether the present version would be shown if it were approved.
func (st *standing) waits(a *storedApprovals) bool {
	return st.site.Status != Suspended && a.decision(st.creative.Version) == nil &&
		!blockedHost(st.site.BlockedDomains, landingHost(st.creative.LandingURL))
}

func (st *standing) waiting(a *storedApprovals) Waiting {
	w := Waiting{
		Site: st.site.ID, Creative: st.creative.ID, Campaign: st.campaign.ID, Advertiser: st.advertiser.ID,
		Version: st.creative.Version, Since: st.record.Updated, end: st.end,
	}
	if a != nil {
		w.Revision = a.revision
	}
	if st.approval != nil && st.why == "" {
		w.Serving = st.approval.Version
	}
	return w
}

// Queue is what waits for approval, the oldest first: on one site, or on all for
// "". A campaign that would serve is in it by itself, also before its start.
func (s *Snapshot) Queue(site string, now time.Time) []Waiting {
	var out []Waiting
	for id, index := range s.sites {
		if site != "" && id != site {
			continue
		}
		for _, w := range index.waiting {
			if w.end.IsZero() || now.Before(w.end) {
				out = append(out, w)
			}
		}
	}
	slices.SortFunc(out, func(a, b Waiting) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Site, b.Site), strings.Compare(a.Creative, b.Creative))
	})
	return out
}

// settleAgain is how long an automatic approval that could not be written waits.
const settleAgain = 5 * time.Second

// settle records the approvals that are given without a person, as snapshots show
// them to be due. Every node does; whoever is first has written them.
func (c *Catalog) settle(ctx context.Context) error {
	for ctx.Err() == nil {
		c.mu.Lock()
		changed, s := c.changed, c.Snapshot()
		c.mu.Unlock()
		retry := c.settleOnce(ctx, s)
		var again <-chan time.Time
		if retry {
			again = time.After(settleAgain)
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-again:
		}
	}
	return nil
}

// settleOnce approves what a snapshot shows to be due, and reports whether
// something has to be tried again.
func (c *Catalog) settleOnce(ctx context.Context, s *Snapshot) (retry bool) {
	var g errgroup.Group
	g.SetLimit(writers)
	for _, index := range s.sites {
		for _, w := range index.waiting {
			if !s.approvesItself(w) {
				continue
			}
			g.Go(func() error { return c.approveItself(ctx, w) })
		}
	}
	err := g.Wait()
	if err != nil && ctx.Err() == nil {
		c.config.Log.WarnContext(ctx, "automatic approval was not written", "err", err)
	}
	return err != nil
}

// approvesItself reports whether a version needs no person, as a snapshot has it.
func (s *Snapshot) approvesItself(w Waiting) bool {
	site, ok := s.Site(w.Site)
	creative, known := s.Creative(w.Creative)
	if !ok || !known {
		return false
	}
	trust := s.trust[pair{w.Site, w.Campaign}]
	if s.refuses(w.Site, w.Creative, w.Campaign, s.records[KindCreative][w.Creative].content) {
		return false
	}
	if site.AutoApprove || trust == nil {
		return site.AutoApprove
	}
	_, ok = trust.Domains[landingDomain(creative.LandingURL)]
	return ok
}

// approveItself asks the leader whether a version still needs no person, and
// approves it. A person may reject the content between the two, or the site or the
// anchor may go: so it asks once more when the approval is written, and takes it back
// if it should not be there. What a person rejects later finds it written.
func (c *Catalog) approveItself(ctx context.Context, w Waiting) error {
	by := Write{By: "deckle"}
	d, err := c.begin(ctx, w.Site, w.Creative, by)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if d.creative.Version != w.Version || d.creative.Campaign != w.Campaign || d.approvals.decision(w.Version) != nil {
		return nil // the next snapshot knows
	}
	a, ok, err := c.automatic(ctx, d)
	if err != nil || !ok || d.approvals.refuses(d.content) {
		return err
	}
	by.By, by.Revision = a.By, d.approvals.revision
	if _, err = c.decide(ctx, d, a, by); errors.Is(err, ErrConflict) {
		return nil // somebody else was faster
	}
	if err != nil {
		return err
	}
	return persist(ctx, func(bool) error {
		if _, ok, err := c.automatic(ctx, d); err != nil || ok {
			return err
		}
		return c.takeBack(ctx, d)
	})
}

// automatic is the approval of a version that needs no person, as the leader has its
// site and the trust in its campaign now; false where a person is needed.
func (c *Catalog) automatic(ctx context.Context, d deciding) (Approval, bool, error) {
	a := Approval{Version: d.creative.Version, Content: d.content, State: Approved, By: "deckle", Via: BySite}
	site, err := c.Get(ctx, KindSite, d.site)
	if err != nil {
		return a, false, err
	}
	trust, err := c.readTrust(ctx, d.site, d.creative.Campaign)
	if err != nil || trust.refuses(d.content) {
		return a, false, err
	}
	if site.Entity.(*Site).AutoApprove {
		return a, true, nil
	}
	a.Via, a.Anchor = ByAnchor, landingDomain(d.creative.LandingURL)
	anchor, ok := trust.Domains[a.Anchor]
	a.By = anchor.By
	return a, ok, nil
}

// takeBack withdraws an automatic approval, unless a person has decided since.
func (c *Catalog) takeBack(ctx context.Context, d deciding) error {
	for {
		now, err := c.readApprovals(ctx, d.pair)
		if err != nil {
			return err
		}
		made := now.decision(d.creative.Version)
		if made == nil || made.Via == ByHand || made.Content != d.content {
			return nil
		}
		d.approvals = now
		_, err = c.writeApprovals(ctx, d, now.without(*made, c.now()), Write{Revision: now.revision})
		if !errors.Is(err, ErrConflict) {
			return err
		}
	}
}
