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

// storedTrust is what is stored under trust/SITE/CAMPAIGN: the registrable landing
// domains that a person has approved for the campaign.
type storedTrust struct {
	Domains map[string]trustAnchor `json:"domains"`

	// Refused are the contents that a person has rejected in any creative of the
	// campaign and not approved since.
	Refused refusals `json:"refused,omitempty"`

	revision uint64
}

type trustAnchor struct {
	By       string    `json:"by"`
	At       time.Time `json:"at"`
	Creative string    `json:"creative"` // whose approval made it
}

// refuses reports whether a person has rejected a content in the creative itself. a may
// be nil.
func (a *storedApprovals) refuses(content string) bool {
	return a != nil && slices.Contains(a.Refused, content)
}

// refuses reports whether a person has rejected a content in any creative of the
// campaign. t may be nil.
func (t *storedTrust) refuses(content string) bool {
	return t != nil && slices.Contains(t.Refused, content)
}

// refuses reports whether a person has rejected a content of a creative on a site.
func (s *Snapshot) refuses(site, creative, campaign, content string) bool {
	return s.approvals[site][creative].refuses(content) || s.trust[pair{site, campaign}].refuses(content)
}

// refusals are the SHA-256 of contents, the last rejected at the end. They outlive
// the decisions, of which only the last ones are kept.
type refusals []string

// maxRefusals keeps a value below 70 kB.
const maxRefusals = 1000

// judged is r after a decision by hand. r is not changed.
func (r refusals) judged(content string, s State) refusals {
	next := slices.DeleteFunc(slices.Clone(r), func(known string) bool { return known == content })
	if s == Rejected {
		next = append(next, content)
	}
	return next[max(0, len(next)-maxRefusals):]
}

func decodeTrust(value []byte, revision uint64) (*storedTrust, error) {
	t := &storedTrust{revision: revision}
	if err := json.Unmarshal(value, t); err != nil {
		return nil, fmt.Errorf("read trust anchors: %w", err)
	}
	return t, nil
}

// Anchors are the landing domains that are trusted for a campaign on a site, in
// order.
func (s *Snapshot) Anchors(site, campaign string) []string {
	var out []string
	if t := s.trust[pair{site, campaign}]; t != nil {
		for d := range t.Domains {
			out = append(out, d)
		}
	}
	slices.Sort(out)
	return out
}

// changeTrust edits the trust anchors of a campaign on a site, as often as somebody
// else is faster. An error of edit is its own, and nothing is written.
func (c *Catalog) changeTrust(ctx context.Context, site, campaign string, edit func(*storedTrust) error) error {
	for {
		t, err := c.readTrust(ctx, site, campaign)
		if err != nil {
			return err
		}
		before := string(mustEncode(t))
		if err := edit(t); err != nil {
			return err
		}
		after := mustEncode(t)
		if string(after) == before {
			return nil
		}
		_, err = c.kv.Put(ctx, trustKey(site, campaign), after, t.revision)
		if !errors.Is(err, store.ErrConflict) {
			if err != nil {
				return fmt.Errorf("write trust anchors of campaign %q on site %q: %w", campaign, site, err)
			}
			return nil
		}
	}
}

func (c *Catalog) readTrust(ctx context.Context, site, campaign string) (*storedTrust, error) {
	t := &storedTrust{Domains: map[string]trustAnchor{}}
	entry, err := c.kv.Get(ctx, trustKey(site, campaign))
	if errors.Is(err, store.ErrNotFound) {
		return t, nil
	}
	if err == nil {
		t, err = decodeTrust(entry.Value, entry.Revision)
	}
	if err != nil {
		return nil, fmt.Errorf("read trust anchors of campaign %q on site %q: %w", campaign, site, err)
	}
	if t.Domains == nil {
		t.Domains = map[string]trustAnchor{}
	}
	return t, nil
}
