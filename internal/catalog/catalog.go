// Package catalog is what a publisher sells and what may be shown where:
// publishers, sites, advertisers, campaigns, creatives and approvals, written by
// compare-and-set, followed by every node, and held in memory as one immutable
// snapshot that says at once which creatives a page may have.
//
// # What is written, and what a crash means
//
// Every entity is one value under "kind/id"; a write is one compare-and-set. What
// takes several keys is ordered so that every prefix of the writes is a catalog
// that means the same as before or the same as after:
//
//   - a publisher: its key ring first. A ring without a publisher is unused.
//   - a publisher deleted, a site or advertiser created: first the write, then a look
//     whether the other has happened, and if so the write is taken back. In between
//     there may be a site without its publisher, which sells nothing. A crash leaves
//     it; deleting the publisher again takes that back.
//   - a publisher given another currency, which only one without sites and advertisers
//     can be: it is deleted first, as above, and then put back with the other one. A
//     site or an advertiser that was judged by the first currency finds that it is
//     not its publisher's, and is taken back. A crash in between leaves a tombstone.
//   - a creative: its content first, under its hash and never changed; then the
//     creative. Content that no creative names is unused.
//   - an approval by hand: the approval first, then the trust anchor, then a look
//     whether it has been rejected meanwhile, and if so the anchor is withdrawn.
//     Without the anchor the next version asks a person again.
//   - a rejection: the anchor is withdrawn first, then the version rejected. In
//     between nothing more is approved by that anchor. At last a look whether an
//     approval has made it once more.
//   - an approval without a person: first the approval, then a look whether it is still
//     due, and if not it is taken back. In between, what somebody rejects at that moment
//     may be shown; a crash leaves it so.
//   - a document: first a note in the approvals of each creative that it rejects or
//     leaves to a person, which no automatic approval passes; then parents before children, decisions
//     (refusals before approvals), and last what is deleted. Every prefix is a valid
//     catalog, and applying it again does the rest.
//
// That something waits for approval is not written at all: it follows from the
// catalog. So does what a paused campaign or a removed advertiser means for its
// creatives: nothing is cascaded that a crash could cut in two.
package catalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"deckle/internal/store"
)

// Config configures a [Catalog]. The zero value is ready to use.
type Config struct {
	// Sites are the sites of deckle.toml. A site of the catalog must be one of them,
	// in its publisher's currency. Nil: that is not checked.
	Sites []SiteFacts

	// Content and Products are the taxonomies whose ids are known. Default to the
	// built-in tables, which have the first tier only.
	Content, Products *Taxonomy

	// Now is the clock of what is written. Defaults to time.Now.
	Now func() time.Time

	Log *slog.Logger // defaults to silence
}

// SiteFacts are what the catalog has to know of a [[site]].
type SiteFacts struct {
	ID       string
	Currency string
}

func (c Config) withDefaults() Config {
	if c.Content == nil {
		c.Content = ContentTaxonomy()
	}
	if c.Products == nil {
		c.Products = ProductTaxonomy()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// A Catalog writes entities and follows what is written. All methods may be called
// concurrently.
type Catalog struct {
	kv      store.KV
	keys    store.KV
	config  Config
	metrics *Metrics

	// current is what every request reads. It is replaced as a whole and never
	// changed.
	current atomic.Pointer[Snapshot]
	loaded  chan struct{} // closed with the first loaded snapshot

	mu      sync.Mutex
	changed chan struct{} // closed and replaced with every snapshot
}

// New makes a catalog on two buckets: kv for the entities, keys for the key rings
// (which the bucket seals). It reads nothing until [Catalog.Run].
func New(kv, keys store.KV, c Config) *Catalog {
	cat := &Catalog{
		kv: kv, keys: keys, config: c.withDefaults(),
		loaded: make(chan struct{}), changed: make(chan struct{}),
	}
	cat.metrics = newMetrics(cat)
	cat.current.Store(&Snapshot{config: &cat.config})
	return cat
}

// Snapshot is the catalog as this node knows it. It never waits and is never nil.
func (c *Catalog) Snapshot() *Snapshot { return c.current.Load() }

// Loaded is closed when the catalog has been read for the first time.
func (c *Catalog) Loaded() <-chan struct{} { return c.loaded }

// Taxonomies are those whose ids the catalog knows.
func (c *Catalog) Taxonomies() (content, products *Taxonomy) {
	return c.config.Content, c.config.Products
}

// WaitFor returns when the snapshot holds everything up to a revision of the
// catalog, so that a page shows what its reader has just written; or ctx's error.
func (c *Catalog) WaitFor(ctx context.Context, revision uint64) error {
	if err := c.wait(ctx, func(s *Snapshot) bool { return s.Revision() >= revision }); err != nil {
		return fmt.Errorf("wait for revision %d of the catalog: %w", revision, err)
	}
	return nil
}

// WaitForKeys is WaitFor for the key ring of a publisher.
func (c *Catalog) WaitForKeys(ctx context.Context, publisher string, revision uint64) error {
	err := c.wait(ctx, func(s *Snapshot) bool {
		ring, ok := s.KeyRing(publisher)
		return ok && ring.Revision >= revision
	})
	if err != nil {
		return fmt.Errorf("wait for keys of publisher %q: %w", publisher, err)
	}
	return nil
}

// wait returns when a snapshot is as it is waited for, or ctx's error.
func (c *Catalog) wait(ctx context.Context, until func(*Snapshot) bool) error {
	for {
		c.mu.Lock()
		changed := c.changed
		c.mu.Unlock()
		if s := c.Snapshot(); s.Loaded() && until(s) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// publish makes a snapshot the current one and wakes who waits for it.
func (c *Catalog) publish(s *Snapshot) {
	first := s.Loaded() && !c.Snapshot().Loaded()
	c.mu.Lock() // whoever has this snapshot has the channel for the next
	c.current.Store(s)
	if first {
		close(c.loaded)
	}
	close(c.changed)
	c.changed = make(chan struct{})
	c.mu.Unlock()
}

// A Write says who changes an entity, and of which revision they have thought.
type Write struct {
	By       string // for the audit log: 1–120 characters
	Note     string // why, for the audit log and with a decision: at most 300 characters, may be empty
	Revision uint64 // of what is replaced, also of a tombstone; 0: there is none
}

func (w Write) check() error {
	var p problems
	p.text("by", w.By, 1, maxName)
	p.text("note", w.Note, 0, maxNote)
	return p.err()
}

// change is the entry of the audit log about a write.
func (w Write) change(at time.Time, what string) Change {
	return Change{At: at, By: w.By, What: what, Note: w.Note}
}

// now is the time of a write, as precise as it is stored.
func (c *Catalog) now() time.Time { return c.config.Now().UTC().Truncate(time.Millisecond) }

// Get reads an entity from the leader of the store. A tombstone is a record; what
// the catalog has never held is [ErrNotFound].
func (c *Catalog) Get(ctx context.Context, k Kind, id string) (Record, error) {
	if newEntity(k) == nil || !idPattern.MatchString(id) {
		return Record{}, fmt.Errorf("%s %s: %w", k, quote(id), ErrNotFound)
	}
	entry, err := c.kv.Get(ctx, key(k, id))
	if errors.Is(err, store.ErrNotFound) {
		return Record{}, fmt.Errorf("%s %q: %w", k, id, ErrNotFound)
	}
	if err != nil {
		return Record{}, fmt.Errorf("read %s %q: %w", k, id, err)
	}
	r, err := decodeRecord(k, entry.Value, entry.Revision)
	if err != nil {
		return Record{}, fmt.Errorf("read %s %q: %w", k, id, err)
	}
	if k == KindCreative {
		content, err := c.readContent(ctx, id, r.content)
		if err != nil {
			return Record{}, err
		}
		r = r.withContent(content)
	}
	return *r, nil
}

func (c *Catalog) readContent(ctx context.Context, creative, hash string) (*Content, error) {
	entry, err := c.kv.Get(ctx, contentKey(creative, hash))
	if err != nil {
		return nil, fmt.Errorf("read content of creative %q: %w", creative, err)
	}
	return decodeContent(entry.Value)
}

// Put validates and writes an entity, and returns it as written once that is
// durable. What is the same as before is not written again. Errors: [*ConflictError],
// [*InvalidError], those of the store.
//
// After an error of the store it may have been written all the same: the next try is
// a conflict whose Current is what was put.
//
// A creative of status deleted is [Catalog.Delete]. Putting what is a tombstone
// brings it back; a creative's approvals have stayed, and so has what cannot change.
func (c *Catalog) Put(ctx context.Context, e Entity, w Write) (Record, error) {
	return c.put(ctx, e, w, graves{})
}

func (c *Catalog) put(ctx context.Context, e Entity, w Write, g graves) (Record, error) {
	if err := w.check(); err != nil {
		return Record{}, err
	}
	current, err := c.Get(ctx, e.Kind(), e.EntityID())
	if err != nil && !errors.Is(err, ErrNotFound) {
		return Record{}, err
	}
	if w.Revision != current.Revision {
		// Also where it is the same: two writers who raise a budget from 5 to 6 have not
		// raised it to 7.
		return Record{}, conflict(e.Kind(), e.EntityID(), current)
	}
	j := judge{ctx: ctx, c: c}
	next, err := c.prepare(e, current, j.world(current, g), w)
	switch {
	case j.err != nil:
		return Record{}, j.err
	case err != nil:
		return Record{}, err
	case next == nil:
		return current, nil
	}
	return c.replace(ctx, current, next, w)
}

// replace writes next in the place of current, and makes sure that it goes together
// with what others have written meanwhile.
func (c *Catalog) replace(ctx context.Context, current Record, next *Record, by Write) (Record, error) {
	comesToBe := !next.Deleted && (current.Entity == nil || current.Deleted)
	switch e := next.Entity.(type) {
	case *Site, *Advertiser:
		written, err := c.write(ctx, next)
		if err == nil && comesToBe {
			err = c.confirmPublisher(ctx, written, by)
		}
		if err != nil {
			return Record{}, err
		}
		return written, nil
	case *Publisher:
		if old, ok := current.Entity.(*Publisher); ok && old.Currency != e.Currency && !current.Deleted {
			gone, err := c.remove(ctx, current, by)
			if err != nil {
				return Record{}, err
			}
			next.Revision = gone.Revision
		}
	}
	return c.write(ctx, next)
}

// confirmPublisher takes back what has just come to be below a publisher that somebody
// else has deleted meanwhile, or that has another currency since. Its error says so.
// With [Catalog.confirmChildless] it makes sure that of the two at most one succeeds:
// each writes first and looks then.
func (c *Catalog) confirmPublisher(ctx context.Context, r Record, by Write) error {
	j := judge{ctx: ctx, c: c}
	w := j.world(r, graves{})
	var p problems
	r.validate(&p, w)
	if j.err != nil {
		return j.err
	}
	err := p.err()
	if err == nil {
		return nil
	}
	if _, err := c.write(ctx, c.entomb(r, by)); err != nil {
		return err
	}
	return err
}

// Delete leaves a tombstone in the place of an entity, of whatever revision if it is one
// already. A publisher with sites or advertisers is refused.
func (c *Catalog) Delete(ctx context.Context, k Kind, id string, w Write) (Record, error) {
	if err := w.check(); err != nil {
		return Record{}, err
	}
	current, err := c.Get(ctx, k, id)
	if err == nil && current.Deleted && k == KindPublisher {
		// Whoever deleted it may not have had an answer, and not have looked.
		err = c.confirmChildless(ctx, current, current, w)
	}
	if err != nil || current.Deleted {
		return current, err
	}
	if k == KindPublisher {
		if err := c.checkChildless(ctx, id); err != nil {
			return Record{}, err
		}
	}
	if w.Revision != current.Revision {
		return Record{}, conflict(k, id, current)
	}
	return c.remove(ctx, current, w)
}

// remove leaves a tombstone in the place of current.
func (c *Catalog) remove(ctx context.Context, current Record, by Write) (Record, error) {
	tombstone, err := c.write(ctx, c.entomb(current, by))
	if err == nil && current.Kind() == KindPublisher {
		err = c.confirmChildless(ctx, current, tombstone, by)
	}
	if err != nil {
		return Record{}, err
	}
	return tombstone, nil
}

// confirmChildless puts a publisher back that has just been deleted, if somebody
// else has put something below it meanwhile. Its error says so.
func (c *Catalog) confirmChildless(ctx context.Context, before, tombstone Record, by Write) error {
	if err := c.WaitFor(ctx, tombstone.Revision); err != nil {
		return err
	}
	err := c.checkChildless(ctx, before.EntityID())
	if !errors.Is(err, ErrInvalid) {
		return err
	}
	back := before
	back.Deleted, back.Revision, back.Updated = false, tombstone.Revision, c.now()
	back.History = note(tombstone.History, by.change(back.Updated, "restored"))
	if _, err := c.write(ctx, &back); err != nil {
		return err
	}
	return err
}

// checkChildless asks the leader for the sites and advertisers of a publisher that
// the snapshot knows. Its error says that there are some.
func (c *Catalog) checkChildless(ctx context.Context, publisher string) error {
	s := c.Snapshot()
	if !s.Loaded() {
		return fmt.Errorf("look for what is below publisher %q: %w", publisher, ErrNotLoaded)
	}
	for _, k := range []Kind{KindSite, KindAdvertiser} {
		for _, id := range s.Children(k, publisher) {
			r, err := c.Get(ctx, k, id)
			if err != nil {
				return err
			}
			if !r.Deleted {
				return &InvalidError{Problems: []Problem{{Msg: fmt.Sprintf("has the %s %q", k, id), Remedy: "delete its sites and advertisers first"}}}
			}
		}
	}
	return nil
}

// entomb is the tombstone of an entity.
func (c *Catalog) entomb(current Record, w Write) *Record {
	next := current
	next.Deleted, next.Updated = true, c.now()
	if creative, ok := current.Entity.(*Creative); ok {
		e := *creative
		e.Status = Deleted
		next.Entity = &e
	}
	next.History = note(current.History, w.change(next.Updated, "deleted"))
	return &next
}

// prepare judges an entity and gives what is to be stored in the place of current;
// nil if that is the same. It writes nothing and does not change e.
func (c *Catalog) prepare(e Entity, current Record, w world, by Write) (*Record, error) {
	e = e.clone()
	w.owner = current.owner
	e.normalize(w)
	var p problems
	e.validate(&p, w)
	if err := p.err(); err != nil {
		return nil, err
	}
	next := current
	next.Entity, next.Deleted, next.Updated = e, w.buried, c.now()
	if creative, ok := e.(*Creative); ok {
		next.Deleted = creative.Status == Deleted
		next.content = creative.hash()
		if campaign := creative.campaign(w); campaign != nil {
			next.owner = campaign.Advertiser
		}
		creative.Version = nextVersion(current, next.content)
	}
	if current.Entity != nil && current.Deleted == next.Deleted && same(current.Entity, e) {
		return nil, nil
	}
	if n := len(mustEncode(e)); n > MaxEntityBytes {
		p.add("", fmt.Sprintf("at most %d bytes", MaxEntityBytes), "is too large: %d bytes", n)
		return nil, p.err()
	}
	change := by.change(next.Updated, "updated")
	change.Fields = edits(current.Entity, e)
	switch {
	case current.Entity == nil && w.buried:
		change.What, next.Created = "deleted", next.Updated
	case current.Entity == nil:
		change.What, next.Created = "created", next.Updated
	case next.Deleted:
		change.What = "deleted"
	case current.Deleted:
		change.What = "restored"
	}
	next.History = note(current.History, change)
	return &next, nil
}

// nextVersion is the version of a creative that has some content in the place of
// what it had.
func nextVersion(current Record, content string) uint32 {
	old, ok := current.Entity.(*Creative)
	switch {
	case !ok:
		return 1
	case content == current.content:
		return old.Version
	}
	return old.Version + 1
}

// write stores a record in the place of its revision: what it needs first, itself
// last.
func (c *Catalog) write(ctx context.Context, r *Record) (Record, error) {
	k, id := r.Kind(), r.EntityID()
	switch e := r.Entity.(type) {
	case *Publisher:
		if err := c.makeRing(ctx, id); err != nil {
			return Record{}, err
		}
	case *Creative:
		_, err := c.kv.Put(ctx, contentKey(id, r.content), e.Content.encode(), 0)
		if err != nil && !errors.Is(err, store.ErrConflict) { // it is there already
			return Record{}, fmt.Errorf("write content of creative %q: %w", id, err)
		}
	}
	revision, err := c.kv.Put(ctx, key(k, id), r.encode(), r.Revision)
	if errors.Is(err, store.ErrConflict) {
		current, err := c.Get(ctx, k, id)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return Record{}, err
		}
		return Record{}, conflict(k, id, current)
	}
	if err != nil {
		return Record{}, fmt.Errorf("write %s %q: %w", k, id, err)
	}
	written := *r
	written.Revision = revision
	return written, nil
}

func conflict(k Kind, id string, current Record) *ConflictError {
	e := &ConflictError{Kind: k, ID: id, Revision: current.Revision}
	if current.Entity != nil {
		e.Current = &current
	}
	return e
}

// A judge reads what an entity refers to from the leader, each once. err is the
// first that was not an answer.
type judge struct {
	ctx  context.Context
	c    *Catalog
	seen map[string]Record
	err  error
}

func (j *judge) world(old Record, g graves) world {
	j.seen = map[string]Record{}
	return world{Config: &j.c.config, find: j.find, hasChildren: j.hasChildren, old: old.Entity, restores: old.Deleted, graves: g}
}

func (j *judge) hasChildren(publisher string) bool {
	s := j.c.Snapshot()
	if !s.Loaded() && j.err == nil {
		j.err = fmt.Errorf("look for the sites of publisher %q: %w", publisher, ErrNotLoaded)
	}
	return s.hasChildren(publisher)
}

func (j *judge) find(k Kind, id string) (e Entity, living bool) {
	if r, ok := j.seen[key(k, id)]; ok || j.err != nil {
		return r.Entity, !r.Deleted
	}
	r, err := j.c.Get(j.ctx, k, id)
	if err != nil && !errors.Is(err, ErrNotFound) {
		j.err = err
	}
	j.seen[key(k, id)] = r
	return r.Entity, !r.Deleted
}
