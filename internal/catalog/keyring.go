package catalog

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"deckle/internal/store"
)

// A KeyRing signs and verifies the tokens of a publisher's sites.
type KeyRing struct {
	Current  Key  `json:"current"`            // signs
	Previous *Key `json:"previous,omitempty"` // verifies as well

	History  []Change `json:"history,omitempty"` // who rotated them: the last 16, the oldest first
	Revision uint64   `json:"-"`                 // for [Catalog.RotateKeys]
}

// A Key is an HMAC-SHA256 key.
type Key struct {
	Secret  []byte    `json:"secret"` // 32 random bytes
	Created time.Time `json:"created"`
}

const secretBytes = 32

func (c *Catalog) newKey() Key {
	secret := make([]byte, secretBytes)
	rand.Read(secret) // never fails
	return Key{Secret: secret, Created: c.now()}
}

func decodeRing(value []byte, revision uint64) (*KeyRing, error) {
	ring := &KeyRing{Revision: revision}
	if err := json.Unmarshal(value, ring); err != nil {
		return nil, errors.New("key ring cannot be read") // without what is in it
	}
	if len(ring.Current.Secret) != secretBytes {
		return nil, fmt.Errorf("key ring has a key of %d bytes", len(ring.Current.Secret))
	}
	return ring, nil
}

// KeyRing is the key ring of a publisher. It is never made by looking for it.
func (s *Snapshot) KeyRing(publisher string) (KeyRing, bool) {
	ring := s.rings[publisher]
	if ring == nil {
		return KeyRing{}, false
	}
	return *ring, true
}

// makeRing gives a publisher a key ring, unless it has one.
func (c *Catalog) makeRing(ctx context.Context, publisher string) error {
	ring := mustEncode(KeyRing{Current: c.newKey()})
	_, err := c.keys.Put(ctx, key(KindPublisher, publisher), ring, 0)
	if err != nil && !errors.Is(err, store.ErrConflict) {
		return fmt.Errorf("make keys of publisher %q: %w", publisher, err)
	}
	return nil
}

// RotateKeys gives a publisher a new current key, and returns the ring. The present
// key becomes the previous one, and what the previous one has signed is worth nothing
// any more: two rotations within the life of a token make it invalid. w names the
// ring's revision; a ring that somebody else has rotated meanwhile is a
// [*ConflictError]. The audit log has it under the publisher.
func (c *Catalog) RotateKeys(ctx context.Context, publisher string, w Write) (KeyRing, error) {
	if err := w.check(); err != nil {
		return KeyRing{}, err
	}
	if !idPattern.MatchString(publisher) {
		return KeyRing{}, fmt.Errorf("keys of publisher %s: %w", quote(publisher), ErrNotFound)
	}
	entry, err := c.keys.Get(ctx, key(KindPublisher, publisher))
	if errors.Is(err, store.ErrNotFound) {
		return KeyRing{}, fmt.Errorf("keys of publisher %q: %w", publisher, ErrNotFound)
	}
	if err != nil {
		return KeyRing{}, fmt.Errorf("read keys of publisher %q: %w", publisher, err)
	}
	if entry.Revision != w.Revision {
		return KeyRing{}, &ConflictError{Kind: KindPublisher, ID: publisher, Revision: entry.Revision}
	}
	ring, err := decodeRing(entry.Value, entry.Revision)
	if err != nil {
		return KeyRing{}, fmt.Errorf("read keys of publisher %q: %w", publisher, err)
	}
	next := KeyRing{Current: c.newKey(), Previous: &ring.Current}
	next.History = note(ring.History, w.change(next.Current.Created, "rotated the keys of"))
	next.Revision, err = c.keys.Put(ctx, key(KindPublisher, publisher), mustEncode(next), entry.Revision)
	if errors.Is(err, store.ErrConflict) {
		return KeyRing{}, &ConflictError{Kind: KindPublisher, ID: publisher, Revision: entry.Revision}
	}
	if err != nil {
		return KeyRing{}, fmt.Errorf("rotate keys of publisher %q: %w", publisher, err)
	}
	return next, nil
}
