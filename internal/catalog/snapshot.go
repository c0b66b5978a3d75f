package catalog

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
)

// A Snapshot is the whole catalog at one moment. It is immutable, and reading it
// takes no lock. What it gives out is shared and must not be changed.
type Snapshot struct {
	config   *Config
	loaded   bool
	revision uint64

	records   map[Kind]map[string]*Record
	approvals map[string]map[string]*storedApprovals // by site and creative
	trust     map[pair]*storedTrust                  // by site and campaign
	rings     map[string]*KeyRing                    // by publisher
	zones     map[string]*time.Location
	sites     map[string]*siteIndex

	// paths are those of all creatives, in the order of their ids, if an index has been
	// built of them since anything on them changed; else nil. They are half of the work
	// of an index, and a change of a site leaves them as they are.
	paths []path

	// For lists, made when first asked for.
	ids      map[Kind]func() []string
	children func() map[string][]string // by kind and parent
}

// snapshot makes the next snapshot from what has changed since the last; nil if
// nothing has, or not everything has been read.
func (s *state) snapshot(last *Snapshot, config *Config) *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.complete || !s.keyed {
		return nil
	}
	next := &Snapshot{
		config: config, loaded: true, revision: s.revision,
		records: map[Kind]map[string]*Record{}, approvals: maps.Clone(s.approvals),
		trust: last.trust, rings: last.rings, zones: last.zones, sites: map[string]*siteIndex{}, ids: map[Kind]func() []string{},
	}
	for _, k := range Kinds() {
		next.records[k], next.ids[k] = last.records[k], last.ids[k]
		if s.dirty.kinds[k] {
			records := maps.Clone(s.records[k])
			next.records[k] = records
			next.ids[k] = sync.OnceValue(func() []string { return slices.Sorted(maps.Keys(records)) })
		}
	}
	if s.dirty.trust {
		next.trust = maps.Clone(s.trust)
	}
	if s.dirty.rings {
		next.rings = maps.Clone(s.rings)
	}
	if s.dirty.kinds[KindAdvertiser] {
		next.zones = next.loadZones()
	}
	if !s.dirty.paths() {
		next.paths = last.paths
	}
	next.children = sync.OnceValue(next.listChildren)
	next.index(last, s.dirty)
	s.dirty = clean()
	return next
}

// loadZones finds the time zones of all advertisers, each once.
func (s *Snapshot) loadZones() map[string]*time.Location {
	zones := map[string]*time.Location{}
	for _, r := range s.records[KindAdvertiser] {
		name := r.Entity.(*Advertiser).TimeZone
		if zones[name] == nil {
			if z, err := zone(name); err == nil {
				zones[name] = z
			}
		}
	}
	return zones
}

func (s *Snapshot) zone(name string) *time.Location {
	if z := s.zones[name]; z != nil {
		return z
	}
	return time.UTC
}

// Loaded reports whether the catalog has been read. A snapshot that is not loaded
// is empty and proves nothing about anything.
func (s *Snapshot) Loaded() bool { return s.loaded }

// Revision is the store's revision up to which everything is in the snapshot.
func (s *Snapshot) Revision() uint64 { return s.revision }

// Publisher, and its like below, find what is in the catalog; not tombstones.
func (s *Snapshot) Publisher(id string) (*Publisher, bool) {
	return living[*Publisher](s, KindPublisher, id)
}

func (s *Snapshot) Site(id string) (*Site, bool) { return living[*Site](s, KindSite, id) }

func (s *Snapshot) Advertiser(id string) (*Advertiser, bool) {
	return living[*Advertiser](s, KindAdvertiser, id)
}

func (s *Snapshot) Campaign(id string) (*Campaign, bool) {
	return living[*Campaign](s, KindCampaign, id)
}

func (s *Snapshot) Creative(id string) (*Creative, bool) {
	return living[*Creative](s, KindCreative, id)
}

func living[E Entity](s *Snapshot, k Kind, id string) (e E, ok bool) {
	r, ok := s.records[k][id]
	if !ok || r.Deleted {
		return e, false
	}
	e, ok = r.Entity.(E)
	return e, ok
}

// Schedule is when a campaign begins and ends, in the advertiser's time zone; zero
// for no such end.
func (s *Snapshot) Schedule(c *Campaign) (start, end time.Time) {
	at := time.UTC
	if advertiser, ok := s.records[KindAdvertiser][c.Advertiser]; ok {
		at = s.zone(advertiser.Entity.(*Advertiser).TimeZone)
	}
	start, _ = c.Start.start(at)
	end, _ = c.End.end(at)
	return start, end
}

// Record is an entity with what is known about it, also a tombstone.
func (s *Snapshot) Record(k Kind, id string) (Record, bool) {
	r, ok := s.records[k][id]
	if !ok {
		return Record{}, false
	}
	return *r, true
}

// List gives up to limit entities of a kind whose ids come after a given one, in
// the order of their ids, without tombstones.
func (s *Snapshot) List(k Kind, after string, limit int) []Record {
	if s.ids[k] == nil {
		return nil
	}
	return s.list(k, s.ids[k](), after, limit)
}

// ListChildren is List for the entities that name a parent: sites and advertisers
// of a publisher, campaigns of an advertiser, creatives of a campaign.
func (s *Snapshot) ListChildren(k Kind, parent, after string, limit int) []Record {
	return s.list(k, s.Children(k, parent), after, limit)
}

func (s *Snapshot) list(k Kind, ids []string, after string, limit int) []Record {
	first := sort.Search(len(ids), func(i int) bool { return ids[i] > after })
	var out []Record
	for _, id := range ids[first:] {
		if len(out) >= limit {
			break
		}
		if r := s.records[k][id]; !r.Deleted {
			out = append(out, *r)
		}
	}
	return out
}

// Children are the ids of the entities of a kind that name a parent, in order,
// without tombstones. The list is shared.
func (s *Snapshot) Children(k Kind, parent string) []string {
	if s.children == nil {
		return nil
	}
	return s.children()[key(k, parent)]
}

func (s *Snapshot) listChildren() map[string][]string {
	children := map[string][]string{}
	for _, k := range Kinds() {
		for _, id := range s.ids[k]() {
			if r := s.records[k][id]; !r.Deleted {
				at := key(k, parentOf(r.Entity))
				children[at] = append(children[at], id)
			}
		}
	}
	return children
}

// parentOf is the id of what an entity belongs to; "" for a publisher.
func parentOf(e Entity) string {
	switch e := e.(type) {
	case *Site:
		return e.Publisher
	case *Advertiser:
		return e.Publisher
	case *Campaign:
		return e.Advertiser
	case *Creative:
		return e.Campaign
	}
	return ""
}

func (s *Snapshot) hasChildren(publisher string) bool {
	return len(s.Children(KindSite, publisher))+len(s.Children(KindAdvertiser, publisher)) > 0
}

// Removed is the function [Removed].
func (s *Snapshot) Removed(site, creative string, now time.Time) (bool, Why) {
	return Removed(s, site, creative, now)
}

// An Event is an entry of the audit log with the key that it is about:
// "campaign/spring", "approval/yuki-site/ryokan-magazine-001".
type Event struct {
	Key string
	Change
}

// Audit is the newest of what was changed by whom, the newest first. For each
// entity the last 16 changes are kept.
func (s *Snapshot) Audit(limit int) []Event {
	var all []Event
	for k, records := range s.records {
		for id, r := range records {
			for _, c := range r.History {
				all = append(all, Event{key(k, id), c})
			}
		}
	}
	for publisher, ring := range s.rings {
		for _, c := range ring.History {
			all = append(all, Event{key(KindPublisher, publisher), c})
		}
	}
	for site, approvals := range s.approvals {
		for creative, a := range approvals {
			for _, c := range a.History {
				all = append(all, Event{approvalKey(site, creative), c})
			}
		}
	}
	slices.SortFunc(all, func(a, b Event) int {
		return cmp.Or(b.At.Compare(a.At), strings.Compare(a.Key, b.Key))
	})
	return all[:min(len(all), max(limit, 0))]
}
