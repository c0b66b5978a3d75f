// Package store keeps facts: ordered logs and keyed values that are on disk
// before they are acknowledged, on one engine (NATS JetStream), embedded in the
// process or run elsewhere.
//
// Everything above it uses three small interfaces, [Log], [KV] and [Blobs]. The
// engine implements them ([Open]), and so does the twin in memory (package
// store/memory) that lives in a synctest bubble; one contract suite (package
// store/storetest) runs against each.
//
// The engine promises less than it seems to, so this package adds what is
// missing: one folder for each mode, since the engine deletes what another mode
// has written; a lock, since two processes on one folder destroy it; a look at
// what was written last before the engine reads it, since the engine cuts a
// damaged block off; a reserve of disk space, since the engine stops for good
// when there is none; an end to every call.
package store

import (
	"context"
	"errors"
	"time"
)

// Errors that a caller decides on. Every error of this package that is caused by
// the engine being slow, full, stopped or out of reach wraps ErrUnavailable as
// well: the write may or may not have happened.
var (
	// ErrUnavailable says that the store cannot answer now. Ask again later.
	ErrUnavailable = errors.New("store is unavailable")

	// ErrFull says that a limit of bytes or messages is reached and nothing was
	// written. It wraps ErrUnavailable.
	ErrFull error = &sentinel{"store is full", ErrUnavailable}

	// ErrConflict says that a key has another revision than the writer believed, and
	// that nothing was written.
	ErrConflict = errors.New("another revision")

	// ErrNotFound says that a key has no value.
	ErrNotFound = errors.New("not found")

	// ErrDamaged says that the store has lost what it had acknowledged: a hole in a
	// log, a log that ends before a place that a reader has been at, a value that
	// cannot be opened. Asking again does not help.
	ErrDamaged = errors.New("store is damaged")

	// ErrInUse says that another process has the folder: one that is ending, at a
	// restart. It wraps ErrUnavailable.
	ErrInUse error = &sentinel{"in use", ErrUnavailable}

	// ErrTooLarge says that a message or value is larger than its log or bucket
	// takes, and that nothing was written.
	ErrTooLarge = errors.New("too large")
)

type sentinel struct {
	text string
	is   error
}

func (s *sentinel) Error() string { return s.text }
func (s *sentinel) Unwrap() error { return s.is }

// A Seq is the place of a message in its log: 1 is the first; 0 is before it.
type Seq uint64

// A Log is an ordered, durable, append-only sequence of messages. All methods may
// be called concurrently, by any number of nodes.
type Log interface {
	// Append adds a message and returns its place when it is durable: on disk, and
	// with a quorum where there are several nodes.
	//
	// id makes a retry harmless: a message whose id the log has taken within the
	// deduplication window (2 minutes) is not added again, and the place of the first
	// one is returned. The window is a filter, not a promise: readers count by the
	// ids within the messages.
	//
	// data is not kept; more than MaxMessage is ErrTooLarge. If ctx ends first, or the error wraps ErrUnavailable, the
	// message may have been added all the same.
	Append(ctx context.Context, id string, data []byte) (Seq, error)

	// Read calls yield for every message from the place from on, in order, as they
	// come, until ctx is done (then it returns nil), yield returns an error (then
	// it returns that), or the store is closed or broken (ErrUnavailable). It survives
	// reconnections without a gap or a repetition. A message is yielded only once it
	// is durable.
	//
	// What was purged is passed over: the first message may be a later one than from.
	// A hole between messages is ErrDamaged, and so is a place beyond the end of the
	// log, since somebody must have been there.
	Read(ctx context.Context, from Seq, yield func(Message) error) error

	// State says what the log holds.
	State(ctx context.Context) (LogState, error)
}

// MaxMessage is the most bytes of data that a message of a log has, and a value of
// the catalog; those of other buckets have fewer.
const MaxMessage = 896 << 10

// A Message is one entry of a log. Data is valid until yield returns.
type Message struct {
	Seq  Seq
	Time time.Time // the store's, when it was added
	Data []byte
}

// LogState is what a log holds. First is Last+1 when it is empty.
type LogState struct {
	First, Last Seq
	Bytes       uint64
}

// A KV is a bucket of values that are written by compare-and-set. All methods may
// be called concurrently, by any number of nodes.
//
// Keys are of [A-Za-z0-9_=./-]{1,512}, without two dots in a row or a dot at
// either end.
type KV interface {
	// Get returns the newest value, as the leader of the bucket has it; a deleted or
	// missing key is ErrNotFound.
	Get(ctx context.Context, key string) (Entry, error)

	// Put writes value if the key's revision is still what the writer believes it to
	// be; 0 means that it has no value. It returns the new revision when that is
	// durable. Another revision is ErrConflict.
	Put(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)

	// Delete removes the value by the same rule. It removes nothing, without an error,
	// where there is no value and revision is 0.
	Delete(ctx context.Context, key string, revision uint64) error

	// Watch calls yield for every value that there is, then once with Change.Complete
	// set, then for every change as it comes, in the order of the revisions, until
	// ctx is done (nil), yield returns an error (that), or the store is closed or broken
	// (ErrUnavailable). After a reconnection no change is missing; a value may be told
	// again. Removals are told before Complete as well, of keys never told of too.
	Watch(ctx context.Context, yield func(Change) error) error
}

// An Entry is a key's value. Value belongs to the caller.
type Entry struct {
	Key      string
	Value    []byte
	Revision uint64 // grows with every write to the bucket
	Time     time.Time
}

// A Change is a new value of a key, its removal, or the mark after which what
// follows are changes.
type Change struct {
	Entry
	Deleted  bool
	Complete bool
}

// Blobs are larger, unchanging pieces of data, named by what they contain. All
// methods may be called concurrently, by any number of nodes.
type Blobs interface {
	// Put keeps data and returns its id, the lower-case hexadecimal SHA-256 of data,
	// when it is durable. The same data again is the same blob, and keeps the content
	// type that it had first. More than MaxBlob is ErrTooLarge.
	Put(ctx context.Context, data []byte, contentType string) (id string, err error)

	// Get returns a blob, which is then the caller's. What does not have its id's
	// digest any more is ErrDamaged; a missing one is ErrNotFound.
	Get(ctx context.Context, id string) (Blob, error)
}

// MaxBlob is the most bytes that a blob has.
const MaxBlob = 8 << 20

// A Blob is a piece of data and what it is, like "image/webp".
type Blob struct {
	Data        []byte
	ContentType string
}
