package store

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/semaphore"
)

// openEmbedded starts the engine on its folder.
func (s *Store) openEmbedded(ctx context.Context) (err error) {
	if s.folder, err = openFolder(s.config, s.how); err != nil {
		return err
	}
	s.found, err = streamFolders(s.folder.path)
	if err != nil {
		return fmt.Errorf("folder %s: %w", s.folder.path, err)
	}
	if !s.how.salvage {
		for _, name := range s.found {
			if err := examineBlocks(filepath.Join(streamsFolder(s.folder.path), name), name); err != nil {
				return fmt.Errorf("folder %s: stream %s: %w; %s", s.folder.path, name, err, damageRemedy)
			}
		}
	}
	if s.engine, err = startEngine(ctx, s.folder.path, s.log); err != nil {
		return fmt.Errorf("folder %s: %w", s.folder.path, err)
	}
	s.newCaller()
	s.conn, err = s.engine.connect(s.options()...)
	return err
}

// examineFound refuses a folder whose streams the engine could not read: it leaves
// them out, and would begin others of their names in the same place.
func (s *Store) examineFound(ctx context.Context) error {
	for _, name := range s.found {
		_, err := s.streamInfo(ctx, name)
		if errors.Is(err, ErrNotFound) {
			err = fmt.Errorf("stream %s: %w: %s; %s", name, ErrDamaged, s.engine.log.lastWords(), damageRemedy)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

const damageRemedy = "restore the folder from a backup, or move it away and take over what can be read with `deckle store import --salvage`"

// openExternal connects to an engine that somebody else runs.
func (s *Store) openExternal(ctx context.Context) error {
	c := s.config
	if len(c.URLs) == 0 {
		return errors.New(`store.mode = "external" needs store.external.urls`)
	}
	options := s.options()
	if c.CredentialsFile != "" {
		options = append(options, nats.UserCredentials(c.CredentialsFile))
	}
	if c.TLSCA != "" {
		options = append(options, nats.RootCAs(c.TLSCA))
	}
	s.newCaller()
	conn, err := nats.Connect(strings.Join(c.URLs, ","), options...)
	if err == nil {
		s.conn = conn
		return nil
	}
	where := redacted(c.URLs)
	_, badCertificate := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case badCertificate:
		return fmt.Errorf("connect to %s: %w; see store.external.tls_ca", where, err)
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked),
		errors.Is(err, nats.ErrSecureConnRequired), errors.Is(err, nats.ErrSecureConnWanted), errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("connect to %s: %w; see store.external", where, err)
	default:
		return fmt.Errorf("connect to %s: %w: %w", where, ErrUnavailable, err)
	}
}

// redacted are URLs without the passwords that they may have.
func redacted(urls []string) string {
	out := make([]string, len(urls))
	for i, text := range urls {
		if u, err := url.Parse(text); err == nil {
			out[i] = u.Redacted()
		} else {
			out[i] = "a URL that cannot be read"
		}
	}
	return strings.Join(out, ", ")
}

// options are those of every connection.
func (s *Store) options() []nats.Option {
	return []nats.Option{
		nats.Name("deckle"),
		nats.Timeout(s.config.CallTimeout),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(250 * time.Millisecond),
		nats.IgnoreAuthErrorAbort(), // credentials are renewed while we run
		nats.PingInterval(5 * time.Second),
		// What nobody waits for any more is not sent when the connection is back.
		nats.ReconnectBufSize(-1),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				s.log.Warn("store: connection lost", "err", err)
			}
			s.links.renew()
		}),
		nats.ReconnectHandler(func(*nats.Conn) { s.log.Info("store: connected again") }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			s.log.Warn("store: connection", "err", err)
		}),
	}
}

// links tells readers that a connection has broken: what was on its way is lost,
// and nothing else would say so.
type links struct {
	mu     sync.Mutex
	ctx    context.Context
	cancel context.CancelFunc
}

// current is done when the connection of now breaks.
func (l *links) current() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx == nil {
		l.ctx, l.cancel = context.WithCancel(context.Background())
	}
	return l.ctx
}

func (l *links) renew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cancel != nil {
		l.cancel()
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
}

// maxOutstanding is how many calls may wait for the engine at a time. The engine
// drops requests from 10,000 on.
const maxOutstanding = 1024

// A caller bounds calls: in number, in time, and by the end of the store.
type caller struct {
	timeout time.Duration
	slots   *semaphore.Weighted
	life    context.Context // done when the store closes
	end     context.CancelFunc
}

func (s *Store) newCaller() {
	life, end := context.WithCancel(context.Background())
	s.calls = &caller{
		timeout: s.config.CallTimeout,
		slots:   semaphore.NewWeighted(maxOutstanding),
		life:    life,
		end:     end,
	}
}

var (
	errClosed = errors.New("store is closed")
	errSlow   = errors.New("no answer in time")
)

// begin waits for its turn. The context it returns ends with ctx, or after the
// timeout; done must be called.
func (c *caller) begin(ctx context.Context) (_ context.Context, done func(), _ error) {
	return c.beginFor(ctx, c.timeout)
}

func (c *caller) beginFor(ctx context.Context, timeout time.Duration) (_ context.Context, done func(), _ error) {
	if c.life.Err() != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrUnavailable, errClosed)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errSlow)
	if !c.slots.TryAcquire(1) {
		unhook := context.AfterFunc(c.life, cancel)
		err := c.slots.Acquire(ctx, 1)
		unhook()
		if err != nil {
			cause := context.Cause(ctx)
			cancel()
			return nil, nil, fmt.Errorf("%w: wait for earlier calls: %w", ErrUnavailable, cause)
		}
	}
	return ctx, func() {
		cancel()
		c.slots.Release(1)
	}, nil
}

// stop lets no call begin, and waits for those that have; each ends in time.
func (c *caller) stop() {
	c.end()
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	if err := c.slots.Acquire(ctx, maxOutstanding); err == nil {
		c.slots.Release(maxOutstanding)
	}
}
