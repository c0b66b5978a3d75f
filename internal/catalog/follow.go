package catalog

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/sync/errgroup"

	"deckle/internal/store"
)

// watchAgain is how long a watch that has failed rests.
const watchAgain = time.Second

// Run follows the catalog and keeps the snapshot current until ctx is done; then it
// returns nil. While the store cannot be reached it keeps what it has and tries
// again. Until it has read everything, the snapshot is empty and not loaded.
//
// It also records the approvals that are given without a person, so that what a
// crash has left undone is done by whichever node sees it.
func (c *Catalog) Run(ctx context.Context) error {
	s := newState()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return c.watch(ctx, "catalog", c.kv, s.follow) })
	g.Go(func() error { return c.watch(ctx, "keys", c.keys, s.followKeys) })
	g.Go(func() error { return c.build(ctx, s) })
	g.Go(func() error { return c.settle(ctx) })
	return g.Wait()
}

// watch tells follow of every change of a bucket until ctx is done.
func (c *Catalog) watch(ctx context.Context, bucket string, kv store.KV, follow func(store.Change) error) error {
	for ctx.Err() == nil {
		err := kv.Watch(ctx, func(change store.Change) error {
			if err := follow(change); err != nil {
				// Our own data, and we cannot read it. What was there before stays; a
				// restart would not help.
				c.metrics.unreadable.Inc()
				c.config.Log.ErrorContext(ctx, "catalog entry cannot be read", "key", change.Key, "err", err)
			}
			return nil
		})
		if err != nil && ctx.Err() == nil {
			c.config.Log.WarnContext(ctx, "catalog is not followed", "bucket", bucket, "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(watchAgain):
		}
	}
	return nil
}

// maxRest bounds how long the builder rests after it has built.
const maxRest = 100 * time.Millisecond

// build publishes a snapshot whenever something has changed. Then it rests for as
// long as that took: while thousands of changes come in, half a core at most is
// spent on them, and one change alone is never kept waiting.
func (c *Catalog) build(ctx context.Context, s *state) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
		}
		start := time.Now()
		next := s.snapshot(c.Snapshot(), &c.config)
		if next == nil {
			continue
		}
		c.publish(next)
		took := time.Since(start)
		c.metrics.rebuild.Observe(took.Seconds())
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(min(took, maxRest)):
		}
	}
}

// A pair is a creative on a site.
type pair struct{ site, creative string }

// A version is an immutable content with the pages as the wire has them.
type version struct {
	*Content
	pagesJSON []byte
	domain    string // registrable, of the landing URL
	host      string // of the landing URL
}

// state is what the watches have told, from which snapshots are built.
type state struct {
	wake chan struct{} // holds a token when something has changed

	// All below is guarded by mu.
	mu       sync.Mutex
	complete bool // the bucket has been read
	keyed    bool // the bucket of keys has been read
	revision uint64

	records   map[Kind]map[string]*Record
	contents  map[string]*version // by key
	approvals map[string]map[string]*storedApprovals
	trust     map[pair]*storedTrust // site and campaign
	rings     map[string]*KeyRing

	dirty dirty
}

// dirty says what has changed since the last snapshot.
type dirty struct {
	kinds map[Kind]bool

	all       bool            // every site's index has to be built anew
	whole     map[string]bool // these sites' indexes have to be built anew
	creatives map[string]bool // these have to be looked at again …
	sites     map[string]bool // … on these sites
	everySite bool            // … on every site

	approvals map[string]bool // sites whose map is not the last snapshot's any more
	trust     bool
	rings     bool
}

// paths reports whether anything has changed that is on the path of a creative.
func (d *dirty) paths() bool {
	return d.kinds[KindPublisher] || d.kinds[KindAdvertiser] || d.kinds[KindCampaign] || d.kinds[KindCreative]
}

func newState() *state {
	s := &state{
		wake: make(chan struct{}, 1), records: map[Kind]map[string]*Record{}, contents: map[string]*version{},
		approvals: map[string]map[string]*storedApprovals{}, trust: map[pair]*storedTrust{}, rings: map[string]*KeyRing{},
	}
	for _, k := range Kinds() {
		s.records[k] = map[string]*Record{}
	}
	s.dirty = everything()
	return s
}

func everything() dirty {
	d := clean()
	d.all, d.trust, d.rings = true, true, true
	for _, k := range Kinds() {
		d.kinds[k] = true
	}
	return d
}

func clean() dirty {
	return dirty{
		kinds: map[Kind]bool{}, whole: map[string]bool{}, creatives: map[string]bool{}, sites: map[string]bool{}, approvals: map[string]bool{},
	}
}

// follow takes a change of the catalog's bucket. Its error is about that one value.
func (s *state) follow(change store.Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.changed()
	if change.Complete {
		s.complete = true
		return nil
	}
	s.revision = max(s.revision, change.Revision)
	if change.Deleted {
		return nil // we never do
	}
	parts := splitKey(change.Key)
	switch {
	case len(parts) == 2:
		return s.followRecord(Kind(parts[0]), parts[1], change)
	case len(parts) == 3 && parts[0] == contentPrefix:
		return s.followContent(change)
	case len(parts) == 3 && parts[0] == approvalPrefix:
		return s.followApprovals(pair{parts[1], parts[2]}, change)
	case len(parts) == 3 && parts[0] == trustPrefix:
		return s.followTrust(pair{parts[1], parts[2]}, change)
	}
	return fmt.Errorf("key %q is none of ours", change.Key)
}

// changed wakes the builder once everything has been read.
func (s *state) changed() {
	if s.complete && s.keyed {
		select {
		case s.wake <- struct{}{}:
		default: // it is awake already
		}
	}
}

func (s *state) followRecord(k Kind, id string, change store.Change) error {
	if old := s.records[k][id]; old != nil && old.Revision >= change.Revision {
		return nil // told again
	}
	r, err := decodeRecord(k, change.Value, change.Revision)
	if err != nil {
		return err
	}
	if k == KindCreative {
		// Content is written before the creative that names it, so it is here.
		content, ok := s.contents[contentKey(id, r.content)]
		if !ok {
			return fmt.Errorf("creative %q has no content %.8s", id, r.content)
		}
		r = r.withContent(content.Content)
	}
	s.records[k][id] = r
	s.dirty.kinds[k] = true
	switch k {
	case KindSite:
		s.dirty.whole[id] = true
	case KindPublisher:
		s.dirty.all = true
	default:
		s.soil(r)
	}
	return nil
}

// maxPatched is how many creatives are looked at again one by one. With more, all
// are.
const maxPatched = 256

// soil marks what an advertiser, a campaign or a creative changes.
func (s *state) soil(r *Record) {
	if s.dirty.all {
		return
	}
	switch e := r.Entity.(type) {
	case *Advertiser:
		s.soilSites(e.ID, s.dirty.whole)
	case *Campaign:
		s.soilSites(e.Advertiser, s.dirty.sites)
		for id, creative := range s.records[KindCreative] {
			if creative.Entity.(*Creative).Campaign == e.ID {
				s.soilCreative(id)
			}
		}
	case *Creative:
		// It may have been moved between campaigns of several publishers.
		s.dirty.everySite = true
		s.soilCreative(e.ID)
	}
}

// soilSites marks the sites on which an advertiser may be.
func (s *state) soilSites(advertiser string, in map[string]bool) {
	owner, ok := s.records[KindAdvertiser][advertiser]
	if !ok {
		s.dirty.all = true
		return
	}
	for id, site := range s.records[KindSite] {
		if site.Entity.(*Site).Publisher == owner.Entity.(*Advertiser).Publisher {
			in[id] = true
		}
	}
}

func (s *state) soilCreative(id string) {
	s.dirty.creatives[id] = true
	if len(s.dirty.creatives) > maxPatched {
		s.dirty.all = true
	}
}

func (s *state) followContent(change store.Change) error {
	if s.contents[change.Key] != nil {
		return nil // it never changes
	}
	content, err := decodeContent(change.Value)
	if err != nil {
		return err
	}
	s.contents[change.Key] = &version{
		Content: content, pagesJSON: mustEncode(content.Pages),
		domain: landingDomain(content.LandingURL), host: landingHost(content.LandingURL),
	}
	return nil
}

func decodeContent(value []byte) (*Content, error) {
	content := &Content{}
	if err := json.Unmarshal(value, content); err != nil {
		return nil, fmt.Errorf("read content of a creative: %w", err)
	}
	return content, nil
}

func (s *state) followApprovals(p pair, change store.Change) error {
	if old := s.approvals[p.site][p.creative]; old != nil && old.revision >= change.Revision {
		return nil // told again
	}
	a, err := decodeApprovals(change.Value, change.Revision)
	if err != nil {
		return err
	}
	for _, d := range a.Decisions {
		content, ok := s.contents[contentKey(p.creative, d.Content)]
		if !ok {
			return fmt.Errorf("version %d has no content %.8s", d.Version, d.Content)
		}
		a.versions = append(a.versions, content)
	}
	if !s.dirty.approvals[p.site] {
		// The last snapshot has the map as it is.
		s.approvals[p.site] = maps.Clone(s.approvals[p.site])
		s.dirty.approvals[p.site] = true
	}
	if s.approvals[p.site] == nil {
		s.approvals[p.site] = map[string]*storedApprovals{}
	}
	s.approvals[p.site][p.creative] = a
	s.dirty.sites[p.site] = true
	s.soilCreative(p.creative)
	return nil
}

func (s *state) followTrust(p pair, change store.Change) error {
	if old := s.trust[p]; old != nil && old.revision >= change.Revision {
		return nil // told again
	}
	t, err := decodeTrust(change.Value, change.Revision)
	if err != nil {
		return err
	}
	s.trust[p] = t
	s.dirty.trust = true // what waits may be approved by it
	return nil
}

func (s *state) followKeys(change store.Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.changed()
	if change.Complete {
		s.keyed = true
		return nil
	}
	parts := splitKey(change.Key)
	if change.Deleted || len(parts) != 2 || Kind(parts[0]) != KindPublisher {
		return nil
	}
	ring, err := decodeRing(change.Value, change.Revision)
	if err != nil {
		return err
	}
	s.rings[parts[1]] = ring
	s.dirty.rings = true
	return nil
}
