package store

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// A sealed value is sealedMark, four bytes that tell keys apart, a nonce, and
// what AES-256-GCM makes of the value; bucket and key are authenticated with it,
// so that a value is of no use under another key.
const (
	sealedMark = "\x00dk1"
	keyIDLen   = 4
	nonceLen   = 12
)

// A sealKey seals values of a bucket.
type sealKey struct {
	aead cipher.AEAD
	id   []byte // tells keys apart; says nothing about the key
}

// loadKey reads the key of encryption_key_file; nil if there is none.
func loadKey(path string) (*sealKey, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("store.encryption_key_file: %w", err)
	}
	key := decodeKey(strings.TrimSpace(string(text)))
	if key == nil {
		return nil, fmt.Errorf("store.encryption_key_file: %s does not hold 32 bytes, as 64 hexadecimal digits or in base64; `openssl rand -hex 32` makes such a key", path)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("store.encryption_key_file: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("store.encryption_key_file: %w", err)
	}
	id := sha256.Sum256(append([]byte("deckle key id\n"), key...))
	return &sealKey{aead: aead, id: id[:keyIDLen]}, nil
}

// decodeKey returns 32 bytes or nil.
func decodeKey(text string) []byte {
	for _, decode := range []func(string) ([]byte, error){
		hex.DecodeString, base64.StdEncoding.DecodeString, base64.RawStdEncoding.DecodeString, base64.RawURLEncoding.DecodeString,
	} {
		if key, err := decode(text); err == nil && len(key) == 32 {
			return key
		}
	}
	return nil
}

func isSealed(value []byte) bool { return bytes.HasPrefix(value, []byte(sealedMark)) }

func (k *sealKey) seal(where string, value []byte) []byte {
	out := make([]byte, 0, len(sealedMark)+keyIDLen+nonceLen+len(value)+k.aead.Overhead())
	out = append(append(out, sealedMark...), k.id...)
	nonce := out[len(out) : len(out)+nonceLen]
	rand.Read(nonce)
	return k.aead.Seal(out[:len(out)+nonceLen], nonce, value, []byte(where))
}

// open returns what seal was given. A value that is not sealed is returned as it
// is.
func (k *sealKey) open(where string, value []byte) ([]byte, error) {
	switch {
	case !isSealed(value):
		return value, nil
	case k == nil:
		return nil, fmt.Errorf("%s is sealed: %w", where, errNoKey)
	}
	rest := value[len(sealedMark):]
	if len(rest) < keyIDLen+nonceLen {
		return nil, fmt.Errorf("%s: %w: it is cut off", where, ErrDamaged)
	}
	id, nonce, sealed := rest[:keyIDLen], rest[keyIDLen:keyIDLen+nonceLen], rest[keyIDLen+nonceLen:]
	if !bytes.Equal(id, k.id) {
		return nil, fmt.Errorf("%s is sealed with another key: %w", where, errOtherKey)
	}
	plain, err := k.aead.Open(nil, nonce, sealed, []byte(where))
	if err != nil {
		return nil, fmt.Errorf("%s: %w: it was changed after it was sealed", where, ErrDamaged)
	}
	return plain, nil
}

var (
	errNoKey    = errors.New("give store.encryption_key_file the key that it was sealed with")
	errOtherKey = errors.New("store.encryption_key_file has the wrong key; the store was not changed")
)

// A sealedBucket is a KV whose values are sealed on their way to another.
type sealedBucket struct {
	*bucket
	key *sealKey // nil: values are written as they are
}

func (b *sealedBucket) where(key string) string { return b.name + "/" + key }

func (b *sealedBucket) Get(ctx context.Context, key string) (Entry, error) {
	e, err := b.bucket.Get(ctx, key)
	if err != nil {
		return Entry{}, err
	}
	e.Value, err = b.key.open(b.where(key), e.Value)
	if err != nil {
		return Entry{}, fmt.Errorf("get from %s: %w", b.name, err)
	}
	return e, nil
}

func (b *sealedBucket) Put(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if b.key != nil {
		value = b.key.seal(b.where(key), value)
	}
	return b.bucket.Put(ctx, key, value, revision)
}

func (b *sealedBucket) Watch(ctx context.Context, yield func(Change) error) error {
	return b.bucket.Watch(ctx, func(c Change) error {
		if !c.Complete && !c.Deleted {
			var err error
			if c.Value, err = b.key.open(b.where(c.Key), c.Value); err != nil {
				return fmt.Errorf("watch %s: %w", b.name, err)
			}
		}
		return yield(c)
	})
}

// errSeen ends the reading of a bucket at what there is now.
var errSeen = errors.New("seen")

// openKeys opens the bucket keys. It refuses when there is a value that the key
// does not open, and says how many are not sealed though there is a key.
func (s *Store) openKeys(ctx context.Context, key *sealKey) error {
	raw, err := s.openBucket(ctx, "keys")
	if errors.Is(err, ErrNotFound) && s.how.asIs {
		return nil
	}
	if err != nil {
		return err
	}
	s.keys = &sealedBucket{bucket: raw, key: key}
	if s.how.asIs {
		return nil
	}
	s.plainKeys, err = s.examineKeys(ctx, key)
	if err != nil {
		return err
	}
	if s.plainKeys > 0 {
		s.log.Warn("store: key rings were written before there was an encryption key, and are on disk unsealed until they are written again", "rings", s.plainKeys)
	}
	return nil
}

// examineKeys opens every value of the bucket keys, and returns how many are not
// sealed though there is a key.
func (s *Store) examineKeys(ctx context.Context, key *sealKey) (plain int, err error) {
	err = s.eachKey(ctx, func(e Entry) error {
		if key != nil && !isSealed(e.Value) {
			plain++
			return nil
		}
		_, err := key.open(s.keys.where(e.Key), e.Value)
		return err
	})
	return plain, err
}

// eachKey calls f for every value that there is, as it is stored.
func (s *Store) eachKey(ctx context.Context, f func(Entry) error) error {
	if s.keys == nil {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 10*time.Second, errSlow)
	defer cancel()
	err := s.keys.bucket.Watch(ctx, func(c Change) error {
		switch {
		case c.Complete:
			return errSeen
		case c.Deleted:
			return nil
		default:
			return f(c.Entry)
		}
	})
	switch {
	case errors.Is(err, errSeen):
		return nil
	case err == nil:
		return fault(ctx, "read keys", errSlow)
	default:
		return err
	}
}
