package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"deckle/internal/store"
)

// A State is where a version of a creative stands on a site.
type State string

const (
	Pending  State = "pending"
	Approved State = "approved"
	Rejected State = "rejected"
)

// A Via says how a decision came about.
type Via string

const (
	ByHand   Via = "manual"       // by a person
	ByAnchor Via = "anchor"       // a person has approved the campaign with that landing domain
	BySite   Via = "auto-approve" // the site approves everything
)

// An Approval is the decision on one version of a creative on one site.
type Approval struct {
	Version uint32    `json:"version"`
	Content string    `json:"content"` // SHA-256 of what was decided on
	State   State     `json:"state"`   // approved or rejected
	By      string    `json:"by"`
	Note    string    `json:"note,omitempty"` // why, in the words of whoever decided
	At      time.Time `json:"at"`
	Via     Via       `json:"via"`
	Anchor  string    `json:"anchor,omitempty"` // the landing domain, for ByAnchor
}

// Approvals are the decisions on one creative on one site, by rising version. The
// last 20 are kept, and always the one that is shown.
type Approvals struct {
	Site      string     `json:"site"`
	Creative  string     `json:"creative"`
	Revision  uint64     `json:"revision"` // 0: there is none
	Decisions []Approval `json:"decisions"`
}

// Serving is the version that is shown: the last approved one; 0 for none.
func (a Approvals) Serving() uint32 {
	if i := lastApproved(a.Decisions); i >= 0 {
		return a.Decisions[i].Version
	}
	return 0
}

// State is where a version stands.
func (a Approvals) State(version uint32) State {
	for _, d := range a.Decisions {
		if d.Version == version {
			return d.State
		}
	}
	return Pending
}

func lastApproved(decisions []Approval) int {
	for i, d := range slices.Backward(decisions) {
		if d.State == Approved {
			return i
		}
	}
	return -1
}

const maxDecisions = 20

// storedApprovals is what is stored under approval/SITE/CREATIVE.
type storedApprovals struct {
	Format    int        `json:"format"`
	Decisions []Approval `json:"decisions"`
	History   []Change   `json:"history"`

	// Refused are the contents that a person has rejected and not approved since.
	Refused refusals `json:"refused,omitempty"`

	revision uint64
	versions []*version // of the decisions, in a snapshot
}

const approvalsFormat = 1

func decodeApprovals(value []byte, revision uint64) (*storedApprovals, error) {
	a := &storedApprovals{revision: revision}
	if err := json.Unmarshal(value, a); err != nil {
		return nil, fmt.Errorf("read approvals: %w", err)
	}
	if a.Format != approvalsFormat {
		return nil, fmt.Errorf("read approvals: format %d is not known", a.Format)
	}
	return a, nil
}

// serving is the last approved version in a snapshot, nil for none.
func (a *storedApprovals) serving() (*Approval, *version) {
	if a == nil {
		return nil, nil
	}
	i := lastApproved(a.Decisions)
	if i < 0 {
		return nil, nil
	}
	return &a.Decisions[i], a.versions[i]
}

// decided reports whether anything was ever decided about a creative on a site.
func (a *storedApprovals) decided() bool { return a != nil && len(a.Decisions) > 0 }

func (a *storedApprovals) decision(version uint32) *Approval {
	if a != nil {
		for i := range a.Decisions {
			if a.Decisions[i].Version == version {
				return &a.Decisions[i]
			}
		}
	}
	return nil
}

// decide is a with a decision about one version.
func (a *storedApprovals) decide(d Approval) *storedApprovals {
	next := &storedApprovals{Format: approvalsFormat, Refused: a.Refused, revision: a.revision}
	if d.Via == ByHand {
		next.Refused = a.Refused.judged(d.Content, d.State)
	}
	for _, old := range a.Decisions {
		if old.Version != d.Version {
			next.Decisions = append(next.Decisions, old)
		}
	}
	next.Decisions = append(next.Decisions, d)
	slices.SortFunc(next.Decisions, func(a, b Approval) int { return int(int64(a.Version) - int64(b.Version)) })
	for len(next.Decisions) > maxDecisions {
		drop := 0
		if lastApproved(next.Decisions) == 0 {
			drop = 1
		}
		next.Decisions = slices.Delete(next.Decisions, drop, drop+1)
	}
	what := fmt.Sprintf("%s version %d", d.State, d.Version)
	if d.Via != ByHand {
		what += " (" + string(d.Via) + ")"
	}
	next.History = note(a.History, Change{At: d.At, By: d.By, What: what, Note: d.Note})
	return next
}

// left is a with a content that is not approved by itself.
func (a *storedApprovals) left(content string, c Change) *storedApprovals {
	next := *a
	next.Format, next.Refused, next.History = approvalsFormat, a.Refused.judged(content, Rejected), note(a.History, c)
	return &next
}

// without is a without an automatic approval that should not have been given.
func (a *storedApprovals) without(taken Approval, at time.Time) *storedApprovals {
	next := &storedApprovals{Format: approvalsFormat, Refused: a.Refused, revision: a.revision}
	next.Decisions = slices.DeleteFunc(slices.Clone(a.Decisions), func(d Approval) bool { return d.Version == taken.Version })
	what := fmt.Sprintf("took back the approval of version %d (%s)", taken.Version, taken.Via)
	next.History = note(a.History, Change{At: at, By: "deckle", What: what})
	return next
}

func (a *storedApprovals) public(p pair) Approvals {
	out := Approvals{Site: p.site, Creative: p.creative}
	if a != nil {
		out.Revision, out.Decisions = a.revision, a.Decisions
	}
	return out
}

// Approvals are the decisions on a creative on a site, with revision 0 where there
// is none.
func (s *Snapshot) Approvals(site, creative string) Approvals {
	return s.approvals[site][creative].public(pair{site, creative})
}

// Shown is what a site shows of a creative if anything: the content of the version
// that was approved last; false where none ever was. It is shared.
func (s *Snapshot) Shown(site, creative string) (version uint32, content *Content, ok bool) {
	approval, of := s.approvals[site][creative].serving()
	if approval == nil || of == nil {
		return 0, nil, false
	}
	return approval.Version, of.Content, true
}

// Approve approves a version of a creative on a site by hand, and trusts later
// versions of the campaign's creatives that lead to the same registrable domain.
// The version must be the present one: nobody approves what they have not seen. And
// the creative must have been in a campaign: what is approved is approved for its
// advertiser.
func (c *Catalog) Approve(ctx context.Context, site, creative string, version uint32, w Write) (Approvals, error) {
	d, approvals, err := c.approvePresent(ctx, site, creative, version, w)
	if err != nil || d.creative.Campaign == "" {
		return approvals, err
	}
	anchor := &trustAnchor{By: w.By, At: c.now(), Creative: creative}
	if err := c.trustApproved(ctx, d, anchor); err != nil {
		// Approved it is. The next version asks a person again.
		c.config.Log.WarnContext(ctx, "trust anchor was not kept", "site", site, "campaign", d.creative.Campaign, "err", err)
	}
	return approvals, nil
}

// approve is Approve without trust in what is to come.
func (c *Catalog) approve(ctx context.Context, site, creative string, version uint32, w Write) (Approvals, error) {
	d, approvals, err := c.approvePresent(ctx, site, creative, version, w)
	if err != nil || d.creative.Campaign == "" {
		return approvals, err
	}
	return approvals, c.trustApproved(ctx, d, nil)
}

// trustApproved ends what the campaign has against a content that has been approved,
// which may have been rejected in another creative of it, and trusts its domain with
// anchor; nil: it makes none. Where somebody rejects the version meanwhile, it leaves
// no trust. Together with [Catalog.Reject] it makes sure of that: each writes first and
// looks then for what the other has written.
func (c *Catalog) trustApproved(ctx context.Context, d deciding, anchor *trustAnchor) error {
	site, campaign, domain := d.site, d.creative.Campaign, landingDomain(d.creative.LandingURL)
	wrote := false
	err := c.changeTrust(ctx, site, campaign, func(t *storedTrust) error {
		mints := anchor != nil && t.Domains[domain].By == ""
		if wrote = mints || t.refuses(d.content); !wrote {
			return nil
		}
		if state, err := c.stateOf(ctx, d); err != nil || state != Approved {
			wrote = false
			return err
		}
		if mints {
			t.Domains[domain] = *anchor
		}
		t.Refused = t.Refused.judged(d.content, Approved)
		return nil
	})
	if err != nil || !wrote {
		return err
	}
	if state, err := c.stateOf(ctx, d); err != nil || state != Rejected {
		return err
	}
	return c.distrust(ctx, site, campaign, domain, d.content)
}

// stateOf is where the leader has the present version of what is decided on.
func (c *Catalog) stateOf(ctx context.Context, d deciding) (State, error) {
	now, err := c.readApprovals(ctx, d.pair)
	if err != nil {
		return "", err
	}
	return now.public(d.pair).State(d.creative.Version), nil
}

// distrust withdraws the trust in a landing domain of a campaign on a site, and refuses
// a content in all creatives of the campaign.
func (c *Catalog) distrust(ctx context.Context, site, campaign, domain, content string) error {
	return c.changeTrust(ctx, site, campaign, func(t *storedTrust) error {
		delete(t.Domains, domain)
		t.Refused = t.Refused.judged(content, Rejected)
		return nil
	})
}

// approvePresent approves a version if it is the present one.
func (c *Catalog) approvePresent(ctx context.Context, site, creative string, version uint32, w Write) (deciding, Approvals, error) {
	d, err := c.begin(ctx, site, creative, w)
	if err != nil {
		return d, Approvals{}, err
	}
	if version != d.creative.Version {
		return d, Approvals{}, &InvalidError{Problems: []Problem{{
			Field: "version", Msg: fmt.Sprintf("%d is not the present one, %d", version, d.creative.Version), Remedy: "look at that one",
		}}}
	}
	if d.owner == "" {
		return d, Approvals{}, &InvalidError{Problems: []Problem{unowned("creative", creative)}}
	}
	approvals, err := c.decide(ctx, d, Approval{Version: version, Content: d.content, State: Approved, Via: ByHand}, w)
	return d, approvals, err
}

// Reject rejects a version of a creative on a site, whether it waits or has been
// approved, and withdraws the trust in its campaign and landing domain there.
// Where an older version is approved still, that one is shown. The same content is
// not approved without a person again, in any creative of that campaign.
func (c *Catalog) Reject(ctx context.Context, site, creative string, version uint32, w Write) (Approvals, error) {
	d, err := c.begin(ctx, site, creative, w)
	if err != nil {
		return Approvals{}, err
	}
	hash, content := d.content, &d.creative.Content
	if version != d.creative.Version {
		old := d.approvals.decision(version)
		if old == nil {
			return Approvals{}, &InvalidError{Problems: []Problem{{Field: "version", Msg: fmt.Sprintf("there is no version %d to reject", version)}}}
		}
		hash = old.Content
		if content, err = c.readContent(ctx, creative, hash); err != nil {
			return Approvals{}, err
		}
	}
	if d.creative.Campaign == "" {
		return c.decide(ctx, d, Approval{Version: version, Content: hash, State: Rejected, Via: ByHand}, w)
	}
	domain := landingDomain(content.LandingURL)
	if err := c.distrust(ctx, site, d.creative.Campaign, domain, hash); err != nil {
		return Approvals{}, err
	}
	approvals, err := c.decide(ctx, d, Approval{Version: version, Content: hash, State: Rejected, Via: ByHand}, w)
	if err != nil {
		return Approvals{}, err
	}
	// An approval of the version may have been about to make an anchor.
	return approvals, c.distrust(ctx, site, d.creative.Campaign, domain, hash)
}

// leave leaves the present version of a creative on a site to a person: it is not
// approved by itself.
func (c *Catalog) leave(ctx context.Context, site, creative string, version uint32, w Write) (Approvals, error) {
	d, err := c.begin(ctx, site, creative, w)
	if err != nil {
		return Approvals{}, err
	}
	if d.approvals.decision(version) != nil || d.approvals.refuses(d.content) {
		return d.approvals.public(d.pair), nil
	}
	next := d.approvals.left(d.content, w.change(c.now(), fmt.Sprintf("left version %d to a person", version)))
	return c.writeApprovals(ctx, d, next, w)
}

// A deciding is what a decision is based on, as the leader has it.
type deciding struct {
	pair
	creative  *Creative
	content   string
	owner     string // the advertiser, "" where the creative has never been in a campaign
	approvals *storedApprovals
}

// unowned is the problem of approving a creative that is nobody's yet: whoever took it
// over would have somebody else's approval.
func unowned(field, creative string) Problem {
	return Problem{Field: field, Msg: fmt.Sprintf("%s belongs to no advertiser yet", quote(creative)), Remedy: "put it into a campaign first"}
}

// begin reads what a decision is based on.
func (c *Catalog) begin(ctx context.Context, site, creative string, w Write) (deciding, error) {
	d := deciding{pair: pair{site, creative}}
	if err := w.check(); err != nil {
		return d, err
	}
	where, err := c.Get(ctx, KindSite, site)
	if err != nil {
		return d, err
	}
	what, err := c.Get(ctx, KindCreative, creative)
	if err != nil {
		return d, err
	}
	if where.Deleted || what.Deleted {
		return d, fmt.Errorf("creative %q on site %q: %w", creative, site, ErrNotFound)
	}
	d.creative, d.content, d.owner = what.Entity.(*Creative), what.content, what.owner
	d.approvals, err = c.readApprovals(ctx, d.pair)
	return d, err
}

func (c *Catalog) readApprovals(ctx context.Context, p pair) (*storedApprovals, error) {
	entry, err := c.kv.Get(ctx, approvalKey(p.site, p.creative))
	if errors.Is(err, store.ErrNotFound) {
		return &storedApprovals{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read approvals of creative %q on site %q: %w", p.creative, p.site, err)
	}
	return decodeApprovals(entry.Value, entry.Revision)
}

// decide writes a decision. One that has been taken already is left as it is.
func (c *Catalog) decide(ctx context.Context, d deciding, a Approval, w Write) (Approvals, error) {
	old := d.approvals.decision(a.Version)
	known := a.Via != ByHand || d.approvals.refuses(a.Content) == (a.State == Rejected)
	if old != nil && old.State == a.State && known {
		return d.approvals.public(d.pair), nil
	}
	a.By, a.Note, a.At = w.By, w.Note, c.now()
	return c.writeApprovals(ctx, d, d.approvals.decide(a), w)
}

// writeApprovals stores next in the place of what was there when the decision began.
func (c *Catalog) writeApprovals(ctx context.Context, d deciding, next *storedApprovals, w Write) (Approvals, error) {
	lost := &ConflictError{Kind: approvalPrefix, ID: d.site + "/" + d.pair.creative, Revision: d.approvals.revision}
	if w.Revision != d.approvals.revision {
		return Approvals{}, lost
	}
	revision, err := c.kv.Put(ctx, approvalKey(d.site, d.pair.creative), mustEncode(next), next.revision)
	if errors.Is(err, store.ErrConflict) {
		newest, err := c.readApprovals(ctx, d.pair)
		if err != nil {
			return Approvals{}, err
		}
		lost.Revision = newest.revision
		return Approvals{}, lost
	}
	if err != nil {
		return Approvals{}, fmt.Errorf("write approvals of creative %q on site %q: %w", d.pair.creative, d.site, err)
	}
	next.revision = revision
	return next.public(d.pair), nil
}
