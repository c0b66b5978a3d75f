package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Keys of the bucket:
//
//	publisher/ID site/ID advertiser/ID campaign/ID creative/ID   an envelope
//	content/CREATIVE/SHA-256                                     a Content
//	approval/SITE/CREATIVE                                       stored approvals
//	trust/SITE/CAMPAIGN                                          trust anchors
//
// and, in the bucket of keys, publisher/ID with a key ring.
const (
	contentPrefix  = "content"
	approvalPrefix = "approval"
	trustPrefix    = "trust"
)

func key(k Kind, id string) string            { return string(k) + "/" + id }
func contentKey(creative, hash string) string { return contentPrefix + "/" + creative + "/" + hash }

func approvalKey(site, creative string) string { return approvalPrefix + "/" + site + "/" + creative }
func trustKey(site, campaign string) string    { return trustPrefix + "/" + site + "/" + campaign }

// A Record is an entity with what the catalog knows about it. It is shared and must
// not be changed.
type Record struct {
	Entity
	Revision uint64
	Created  time.Time
	Updated  time.Time
	Deleted  bool     // a tombstone
	History  []Change // the last 16, the oldest first

	content string // hash of a creative's content
	owner   string // the advertiser of a creative's campaign, also when it is in none any more
}

// A Change is one entry of the audit log.
type Change struct {
	At     time.Time `json:"at"`
	By     string    `json:"by"`
	What   string    `json:"what"`           // created, updated, deleted, restored; of approvals: "approved version 3"
	Note   string    `json:"note,omitempty"` // why, in the words of whoever did it
	Fields []Edit    `json:"fields,omitempty"`
}

// An Edit is one field that changed.
type Edit struct {
	Field string `json:"field"`
	From  string `json:"from,omitempty"` // JSON, cut to 80 characters
	To    string `json:"to,omitempty"`
}

// Bounds of what is kept of an entity's past.
const (
	maxHistory   = 16
	maxEdits     = 16
	maxEditShown = 80
)

// envelope is how an entity is stored. A creative's content is under its own key.
type envelope struct {
	Format  int            `json:"format"`
	Deleted bool           `json:"deleted,omitempty"`
	Created time.Time      `json:"created"`
	Updated time.Time      `json:"updated"`
	History []Change       `json:"history"`
	Content string         `json:"content,omitempty"`
	Owner   string         `json:"owner,omitempty"`
	Entity  jsontext.Value `json:"entity"`
}

const envelopeFormat = 1

func (r *Record) encode() []byte {
	e := r.Entity
	if creative, ok := e.(*Creative); ok {
		bare := *creative
		bare.Content = Content{}
		e = &bare
	}
	return mustEncode(envelope{
		Format: envelopeFormat, Deleted: r.Deleted, Created: r.Created, Updated: r.Updated,
		History: r.History, Content: r.content, Owner: r.owner, Entity: mustEncode(e),
	})
}

// decodeRecord reads what encode has written; a creative without its content.
func decodeRecord(k Kind, value []byte, revision uint64) (*Record, error) {
	var env envelope
	if err := json.Unmarshal(value, &env); err != nil {
		return nil, err
	}
	if env.Format != envelopeFormat {
		return nil, fmt.Errorf("format %d is not known", env.Format)
	}
	e := newEntity(k)
	if e == nil {
		return nil, fmt.Errorf("kind %q is not known", k)
	}
	if err := json.Unmarshal(env.Entity, e); err != nil {
		return nil, err
	}
	return &Record{
		Entity: e, Revision: revision, Created: env.Created, Updated: env.Updated,
		Deleted: env.Deleted, History: env.History, content: env.Content, owner: env.Owner,
	}, nil
}

// withContent is the record of a creative together with its content.
func (r *Record) withContent(c *Content) *Record {
	creative := *r.Entity.(*Creative)
	creative.Content = *c
	whole := *r
	whole.Entity = &creative
	return &whole
}

// edits compares two entities of a kind field by field, as JSON. from may be nil.
func edits(from, to Entity) []Edit {
	before, after := map[string]jsontext.Value{}, fieldsAsJSON(to)
	if from != nil {
		before = fieldsAsJSON(from)
	}
	names := slices.Collect(maps.Keys(after))
	for name := range before {
		if _, ok := after[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var out []Edit
	for _, name := range names {
		if a, b := string(before[name]), string(after[name]); a != b && len(out) < maxEdits {
			out = append(out, Edit{Field: name, From: shorten(a), To: shorten(b)})
		}
	}
	return out
}

func fieldsAsJSON(e Entity) map[string]jsontext.Value {
	fields := map[string]jsontext.Value{}
	if err := json.Unmarshal(mustEncode(e), &fields); err != nil {
		panic(err) // we have just written it
	}
	return fields
}

func shorten(s string) string {
	if r := []rune(s); len(r) > maxEditShown {
		return string(r[:maxEditShown-1]) + "…"
	}
	return s
}

// same reports whether two entities mean the same: their JSON is equal.
func same(a, b Entity) bool {
	return a != nil && b != nil && string(mustEncode(a)) == string(mustEncode(b))
}

// note adds a change to a history, which stays bounded.
func note(history []Change, c Change) []Change {
	history = append(slices.Clone(history), c)
	return history[max(0, len(history)-maxHistory):]
}

// splitKey cuts a key into its parts.
func splitKey(key string) []string { return strings.Split(key, "/") }
