package catalog

import (
	"iter"
	"time"

	"deckle"
)

// A Snapshot is the whole catalog at one moment. It is immutable and is read
// without a lock.
type Snapshot struct{}

// Loaded reports whether the catalog has been read. An empty snapshot that is not
// loaded proves nothing about anything.
func (s *Snapshot) Loaded() bool { return false }

// Revision is the store revision up to which everything is in the snapshot.
func (s *Snapshot) Revision() uint64 { return 0 }

func (s *Snapshot) Publisher(id string) (*Publisher, bool)   { return nil, false }
func (s *Snapshot) Site(id string) (*Site, bool)             { return nil, false }
func (s *Snapshot) Advertiser(id string) (*Advertiser, bool) { return nil, false }
func (s *Snapshot) Campaign(id string) (*Campaign, bool)     { return nil, false }
func (s *Snapshot) Creative(id string) (*Creative, bool)     { return nil, false }

// Record is an entity, also a tombstone.
func (s *Snapshot) Record(k Kind, id string) (Record, bool) { return Record{}, false }

// List gives up to limit entities of a kind whose ids come after a given one, in
// the order of their ids, without tombstones.
func (s *Snapshot) List(k Kind, after string, limit int) []Record { return nil }

// Children are the ids of the entities of a kind that name a parent: sites and
// advertisers of a publisher, campaigns of an advertiser, creatives of a campaign.
func (s *Snapshot) Children(k Kind, parent string) []string { return nil }

// Approvals are the decisions on a creative on a site, with revision 0 where there
// is none.
func (s *Snapshot) Approvals(site, creative string) Approvals { return Approvals{} }

// Queue is what waits for approval, the oldest first: on one site, or on all for
// "".
func (s *Snapshot) Queue(site string, now time.Time) []Waiting { return nil }

// Audit is the newest of what was changed by whom, the newest first.
func (s *Snapshot) Audit(limit int) []Event { return nil }

// An Event is an entry of the audit log with the key that it is about:
// "campaign/spring", "approval/yuki-site/ryokan-magazine-001".
type Event struct {
	Key string
	Change
}

// A Candidate is a creative that may be shown on a site.
type Candidate struct {
	Site       *Site
	Creative   *Creative // of the present version; what is shown is Content
	Campaign   *Campaign
	Advertiser *Advertiser
	Version    uint32   // the approved one
	Content    *Content // of that version
	PagesJSON  []byte   // Content.Pages as the wire has them
	MaxCPM     deckle.CPM
	Start, End time.Time // zero: none
}

// InSchedule reports whether the campaign runs at a moment.
func (c *Candidate) InSchedule(now time.Time) bool { return false }

// Fits reports whether the creative may fill a slot of that size.
func (c *Candidate) Fits(size deckle.Size) bool { return false }

// A Pool is what a page of one category may have on a site.
type Pool struct{}

// Len is how many candidates there are.
func (p Pool) Len() int { return 0 }

// All gives each candidate once, in the order of the creatives' ids, with its
// affinity factor: 1 where the campaign wants this very category, 0.7 for each
// step up to the one it wants.
func (p Pool) All() iter.Seq2[*Candidate, float64] { return nil }

// Lookup finds the candidates of a category on a site. It takes no lock and
// allocates nothing.
func (s *Snapshot) Lookup(site, category string) Pool { return Pool{} }

// KeyRing is the key ring of a publisher. It is never made by a look-up.
func (s *Snapshot) KeyRing(publisher string) (KeyRing, bool) { return KeyRing{}, false }
