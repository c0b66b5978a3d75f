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
//   - a creative: its content first, under its hash and never changed; then the
//     creative. Content that no creative names is unused.
//   - an approval by hand: the approval first, then the trust anchor. Without the
//     anchor the next version asks a person again.
//   - a rejection: the anchor is withdrawn first, then the version rejected. In
//     between nothing is approved by that anchor any more.
//
// That something waits for approval is not written at all: it follows from the
// catalog. So is what a paused campaign or a removed advertiser means for its
// creatives: nothing is cascaded that a crash could cut in two.
package catalog

import (
	"context"
	"log/slog"
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

// A Catalog writes entities and follows what is written. All methods may be called
// concurrently.
type Catalog struct {
	kv   store.KV
	keys store.KV
	c    Config
}

// New makes a catalog on two buckets: kv for the entities, keys for the key rings
// (which its owner seals). It reads nothing until [Catalog.Run].
func New(kv, keys store.KV, c Config) *Catalog { return nil }

// Run follows the catalog and keeps the snapshot current, until ctx is done (then
// it returns nil) or the store fails. Until it has read everything, the snapshot
// is empty and not loaded. It also records the approvals that are given without a
// person, so that what a crash has left undone is done by the next node.
func (c *Catalog) Run(ctx context.Context) error { return nil }

// Snapshot is the catalog as this node knows it. It never waits and is never nil.
func (c *Catalog) Snapshot() *Snapshot { return nil }

// Loaded is closed when the catalog has been read for the first time.
func (c *Catalog) Loaded() <-chan struct{} { return nil }

// WaitFor returns when the snapshot holds everything up to a revision of the
// catalog, so that a page shows what its reader has just written; or ctx's error.
func (c *Catalog) WaitFor(ctx context.Context, revision uint64) error { return nil }

// A Write says who changes an entity, and of which revision they have thought.
type Write struct {
	By       string // for the audit log: 1–120 characters
	Revision uint64 // of the entity that is replaced; 0: there is none yet, or a tombstone
}

// A Record is an entity with what the catalog knows about it.
type Record struct {
	Entity
	Revision uint64
	Created  time.Time
	Updated  time.Time
	Deleted  bool // a tombstone
	History  []Change
}

// A Change is one entry of the audit log.
type Change struct {
	At     time.Time `json:"at"`
	By     string    `json:"by"`
	What   string    `json:"what"` // created, updated, deleted, restored
	Fields []Edit    `json:"fields,omitempty"`
}

// An Edit is one field that changed.
type Edit struct {
	Field string `json:"field"`
	From  string `json:"from,omitempty"` // JSON, cut to 80 characters
	To    string `json:"to,omitempty"`
}

// Decode reads an entity as JSON: unknown fields, duplicate names and wrong types
// are problems, all of them named. Its error is an [*InvalidError].
func Decode(k Kind, data []byte) (Entity, error) { return nil, nil }

// Get reads an entity from the leader of the store. A tombstone is a record; what
// the catalog has never held is [ErrNotFound].
func (c *Catalog) Get(ctx context.Context, k Kind, id string) (Record, error) { return Record{}, nil }

// Put validates and writes an entity, and returns it as written once that is
// durable. What is the same as before is not written again. Errors: [*InvalidError],
// [*ConflictError], those of the store.
func (c *Catalog) Put(ctx context.Context, e Entity, w Write) (Record, error) { return Record{}, nil }

// Delete leaves a tombstone in the place of an entity. A publisher with sites or
// advertisers is refused.
func (c *Catalog) Delete(ctx context.Context, k Kind, id string, w Write) (Record, error) {
	return Record{}, nil
}
