package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A Mode is where the engine runs.
type Mode string

const (
	Embedded  Mode = "embedded"  // in this process, alone
	Clustered Mode = "clustered" // in this process, with others
	External  Mode = "external"  // elsewhere; somebody else runs it
)

// DefaultReserve is how many bytes of its disk an embedded store leaves free.
const DefaultReserve = 64 << 20

// Config says where facts are kept. The zero value is an embedded store in
// ./data.
type Config struct {
	// Mode defaults to Embedded.
	Mode Mode

	// DataDir is the folder that has a folder of each mode. Defaults to "./data".
	DataDir string

	// EncryptionKeyFile holds the key that values of the bucket keys are sealed with:
	// 32 bytes, as 64 hexadecimal digits or in base64. Without it they are on disk as
	// they are, and whoever reads the disk can sign as a publisher.
	EncryptionKeyFile string

	// URLs, CredentialsFile and TLSCA are how an external engine is reached. It must
	// be run with sync_interval "always": with any other, a power cut loses what was
	// acknowledged, and no client can see the setting.
	URLs            []string // nats://host:port or tls://host:port
	CredentialsFile string   // of NATS: a JWT and its seed; "" for none
	TLSCA           string   // PEM; "" for those of the system

	// Reserve is how many bytes of an embedded store's disk stay free: below it
	// writes are ErrFull. The engine, which stops for good when a write finds no
	// space, never gets there. Defaults to 64 MiB.
	Reserve int64

	// CallTimeout bounds a call whose context has no earlier end. Defaults to 2s.
	CallTimeout time.Duration
}

func (c Config) withDefaults() Config {
	if c.Mode == "" {
		c.Mode = Embedded
	}
	if c.DataDir == "" {
		c.DataDir = "./data"
	}
	if c.Reserve == 0 {
		c.Reserve = DefaultReserve
	}
	if c.CallTimeout == 0 {
		c.CallTimeout = 2 * time.Second
	}
	return c
}

// A Store is an open engine with its logs, buckets and blobs. They end with it.
type Store struct {
	config Config
	how    opening
	log    *slog.Logger

	// All are set by Open, and never changed.
	folder *folder  // nil if the engine is elsewhere
	engine *engine  // nil if the engine is elsewhere
	found  []string // streams that were in the folder before the engine
	conn   *nats.Conn
	js     jetstream.JetStream
	calls  *caller
	links  links

	journal, auctions              *streamLog
	catalog, pages, leases, drafts *bucket
	keys                           *sealedBucket
	plainKeys                      int // values of the bucket keys that were not sealed at Open, though there is a key
	assets                         *assets

	opened  bool // nothing was found wrong with it
	closing sync.Once
	closed  error // of the first Close
}

// Open opens the store of c, and makes what is missing of it. It refuses, and
// changes nothing on disk, where it would harm what is there: a folder of
// another mode, of something else, of a later version, in use, or damaged.
//
// An error that wraps ErrUnavailable may pass by itself: an external engine does
// not answer, or the process that has the folder is ending.
func Open(ctx context.Context, c Config, log *slog.Logger) (*Store, error) {
	return open(ctx, c.withDefaults(), log, opening{})
}

// opening is what an import and an inspection do otherwise than a server.
type opening struct {
	fresh   bool   // an empty store beside another mode's is what is wanted
	asIs    bool   // nothing is made and nothing is changed: an inspection, a source
	salvage bool   // what can be read of a damaged folder is wanted
	folder  string // instead of the mode's, below DataDir
}

func open(ctx context.Context, c Config, log *slog.Logger, how opening) (_ *Store, err error) {
	key, err := loadKey(c.EncryptionKeyFile)
	if err != nil {
		return nil, err
	}
	s := &Store{config: c, how: how, log: log}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	switch c.Mode {
	case Embedded:
		err = s.openEmbedded(ctx)
	case External:
		err = s.openExternal(ctx)
	case Clustered:
		err = errors.New(`store.mode = "clustered" is not built yet: use "embedded" for one node, or "external" for several`)
	default:
		err = fmt.Errorf("store.mode = %q is none of embedded, clustered, external", c.Mode)
	}
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if s.js, err = jetstream.New(s.conn, jetstream.WithDefaultTimeout(s.config.CallTimeout)); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if err := s.openStreams(ctx); err != nil {
		return nil, fmt.Errorf("open store%s: %w", s.where(), err)
	}
	if err := s.openKeys(ctx, key); err != nil {
		return nil, fmt.Errorf("open store%s: %w", s.where(), err)
	}
	if err := s.setOpen(); err != nil {
		return nil, err
	}
	return s, nil
}

// setOpen notes that what is in the folder changes from here on.
func (s *Store) setOpen() error {
	s.opened = true
	if s.folder == nil || s.how.asIs {
		return nil
	}
	s.folder.marker.Closed = false
	return s.folder.writeMarker()
}

// where names the folder, if there is one, in errors.
func (s *Store) where() string {
	if s.folder == nil {
		return ""
	}
	return " in " + s.folder.path
}

// Journal is the log of events that count.
func (s *Store) Journal() Log { return s.journal }

// Auctions is the log of what the page plane did. It keeps the newest GiB.
func (s *Store) Auctions() Log { return s.auctions }

// Catalog is the bucket of what there is to serve, with the last ten values of
// each key.
func (s *Store) Catalog() KV { return s.catalog }

// Pages is the bucket of page classifications. A value is gone after 30 days, or when
// it is the oldest and there is no room for another, of which watchers are not told.
func (s *Store) Pages() KV { return s.pages }

// Leases is the bucket of budget leases.
func (s *Store) Leases() KV { return s.leases }

// Drafts is the bucket of creatives that nobody has published yet.
func (s *Store) Drafts() KV { return s.drafts }

// Keys is the bucket of publishers' key rings, sealed where there is an
// encryption key.
func (s *Store) Keys() KV { return s.keys }

// Assets are the images and fonts of creatives.
func (s *Store) Assets() Blobs { return s.assets }

// Close ends every call, each with its answer or with ErrUnavailable, and
// releases the folder. Later calls do nothing and return the same.
func (s *Store) Close() error {
	s.closing.Do(func() { s.closed = s.close() })
	return s.closed
}

func (s *Store) close() error {
	var errs []error
	if s.conn != nil {
		if s.calls != nil {
			s.calls.stop()
		}
		errs = append(errs, s.rememberExtents())
		s.conn.Close()
	}
	if s.engine != nil {
		s.engine.close()
	}
	if s.folder != nil {
		errs = append(errs, s.folder.close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close store%s: %w", s.where(), err)
	}
	return nil
}
