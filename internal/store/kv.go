package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A bucket is a KV on a stream of the engine, as NATS's own tools read it: a
// message to a subject is a value of a key.
type bucket struct {
	store        *Store
	name, stream string
	handle       jetstream.Stream
}

func (s *Store) openBucket(ctx context.Context, name string) (*bucket, error) {
	handle, err := s.openStream(ctx, keyedStream(name))
	return &bucket{store: s, name: name, stream: keyedStream(name), handle: handle}, err
}

// operationHeader says that a message is a removal.
const operationHeader = "KV-Operation"

// CheckKey says what is wrong with a key.
func CheckKey(key string) error {
	if len(key) == 0 || len(key) > 512 {
		return fmt.Errorf("key of %d characters: it has 1 to 512", len(key))
	}
	for _, c := range []byte(key) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("_=./-", c) >= 0) {
			return fmt.Errorf("key %q: it is of A-Z a-z 0-9 _ = . / -", key)
		}
	}
	if strings.HasPrefix(key, ".") || strings.HasSuffix(key, ".") || strings.Contains(key, "..") {
		return fmt.Errorf("key %q: it has a dot at an end, or two in a row", key)
	}
	return nil
}

func (b *bucket) Get(ctx context.Context, key string) (Entry, error) {
	entry, deleted, err := b.newest(ctx, key)
	if err == nil && deleted {
		err = fmt.Errorf("get %s from %s: %w", key, b.name, ErrNotFound)
	}
	if err != nil {
		return Entry{}, err
	}
	return entry, nil
}

// newest asks the leader for the last message about a key, which may be its
// removal.
func (b *bucket) newest(ctx context.Context, key string) (_ Entry, deleted bool, _ error) {
	operation := "get " + key + " from " + b.name
	if err := CheckKey(key); err != nil {
		return Entry{}, false, fmt.Errorf("get from %s: %w", b.name, err)
	}
	ctx, done, err := b.store.calls.begin(ctx)
	if err != nil {
		return Entry{}, false, fmt.Errorf("%s: %w", operation, err)
	}
	defer done()
	msg, err := b.handle.GetLastMsgForSubject(ctx, keySubject(b.name, key))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return Entry{}, false, fmt.Errorf("%s: %w", operation, ErrNotFound)
	}
	if err != nil {
		return Entry{}, false, fault(ctx, operation, err)
	}
	return Entry{Key: key, Value: msg.Data, Revision: msg.Sequence, Time: msg.Time}, isRemoval(msg.Header), nil
}

// isRemoval reports whether a message says that a key has no value: by us, or by
// the tools of NATS, which know two ways.
func isRemoval(h nats.Header) bool {
	return h.Get(operationHeader) != "" || h.Get(jetstream.MarkerReasonHeader) != ""
}

func (b *bucket) Put(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	operation := "put " + key + " into " + b.name
	if err := CheckKey(key); err != nil {
		return 0, fmt.Errorf("put into %s: %w", b.name, err)
	}
	written, err := b.write(ctx, operation, &nats.Msg{Subject: keySubject(b.name, key), Data: value}, revision)
	if revision != 0 || !errors.Is(err, ErrConflict) {
		return written, err
	}
	// No value may be a removal, which has a revision.
	last, deleted, getErr := b.newest(ctx, key)
	switch {
	case getErr != nil:
		return 0, getErr
	case !deleted:
		return 0, err
	}
	return b.write(ctx, operation, &nats.Msg{Subject: keySubject(b.name, key), Data: value}, last.Revision)
}

func (b *bucket) Delete(ctx context.Context, key string, revision uint64) error {
	operation := "delete " + key + " from " + b.name
	_, deleted, err := b.newest(ctx, key)
	missing := deleted || errors.Is(err, ErrNotFound)
	switch {
	case err != nil && !missing:
		return err
	case missing && revision == 0:
		return nil
	case missing:
		return fmt.Errorf("%s: %w: it has no value", operation, ErrConflict)
	}
	msg := &nats.Msg{Subject: keySubject(b.name, key), Header: nats.Header{operationHeader: {"DEL"}}}
	_, err = b.write(ctx, operation, msg, revision)
	return err
}

// write adds a message if the last one about its subject is the one of revision.
func (b *bucket) write(ctx context.Context, operation string, msg *nats.Msg, revision uint64) (uint64, error) {
	ack, err := b.store.publish(ctx, operation, b.stream, msg, jetstream.WithExpectLastSequencePerSubject(revision))
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

func (b *bucket) Watch(ctx context.Context, yield func(Change) error) error {
	r := reader{store: b.store, stream: b.stream, newest: true}
	prefix := keySubject(b.name, "")
	return r.run(ctx, func(m *jetstream.MsgMetadata, msg jetstream.Msg) error {
		return yield(Change{
			Entry: Entry{
				Key:      strings.TrimPrefix(msg.Subject(), prefix),
				Value:    msg.Data(),
				Revision: m.Sequence.Stream,
				Time:     m.Timestamp,
			},
			Deleted: isRemoval(msg.Headers()),
		})
	}, func() error { return yield(Change{Complete: true}) })
}
