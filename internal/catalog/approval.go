package catalog

import (
	"context"
	"time"
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
	Manual        Via = "manual"       // by a person
	ByAnchor      Via = "anchor"       // a person has approved this campaign with this landing domain
	AutomaticSite Via = "auto-approve" // the site approves everything
)

// An Approval is the decision on one version of a creative on one site.
type Approval struct {
	Version uint32    `json:"version"`
	Content string    `json:"content"` // SHA-256 of what was decided on
	State   State     `json:"state"`   // approved or rejected
	By      string    `json:"by"`
	At      time.Time `json:"at"`
	Via     Via       `json:"via"`
	Anchor  string    `json:"anchor,omitempty"` // the landing domain, for ByAnchor
}

// Approvals are the decisions on one creative on one site, by rising version.
type Approvals struct {
	Site      string     `json:"site"`
	Creative  string     `json:"creative"`
	Revision  uint64     `json:"revision"`
	Decisions []Approval `json:"decisions"`
}

// A Waiting is a version that would be shown on a site and has not been decided.
type Waiting struct {
	Site, Creative       string
	Campaign, Advertiser string
	Version              uint32
	Since                time.Time // when the version was saved
	Serving              uint32    // the approved version that is shown meanwhile; 0: none
	Revision             uint64    // of the approvals of this pair; for Decide
}

// Approve approves a version of a creative for a site by hand, and trusts later
// versions of the campaign that lead to the same registrable domain. The version
// must be the creative's present one.
func (c *Catalog) Approve(ctx context.Context, site, creative string, version uint32, w Write) (Approvals, error) {
	return Approvals{}, nil
}

// Reject rejects a version, whether it waits or has been approved, and withdraws
// the trust in its campaign and landing domain on that site.
func (c *Catalog) Reject(ctx context.Context, site, creative string, version uint32, w Write) (Approvals, error) {
	return Approvals{}, nil
}
