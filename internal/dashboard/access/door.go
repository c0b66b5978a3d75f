package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Errors of a log-in.
var (
	// ErrNoPassword says that there is no password file, or none that can be read.
	ErrNoPassword = errors.New("no password is set")

	// ErrWrong says that the name cannot be one, or the password is another.
	ErrWrong = errors.New("wrong name or password")
)

// TooMany says that a log-in was not even tried, and when it may be.
type TooMany struct{ RetryAfter time.Duration }

func (e *TooMany) Error() string {
	return fmt.Sprintf("too many tries, the next in %v", e.RetryAfter.Round(time.Second))
}

// How log-ins are limited. A try costs 64 MiB and a tenth of a second, so no more
// than hashers are made at once; and nobody guesses faster than this.
const (
	triesPerAddress = 5               // at once; then
	addressInterval = time.Minute     // one in each of these
	triesTotal      = 30              // from everywhere, at once; then
	totalInterval   = 5 * time.Second // one in each of these
	maxAddresses    = 4096            // that are remembered
	hashers         = 2
)

// How long a session lasts.
const (
	SessionAge  = 12 * time.Hour // at most
	SessionIdle = 2 * time.Hour  // without a request
	maxSessions = 64             // the one that was idle longest gives way
)

// A Session is somebody who has logged in.
type Session struct {
	Name    string // as given at the log-in, for the audit log
	Expires time.Time
}

// A Door lets people in who know the password. Sessions are in memory: a restart
// ends them, and so does another password. It may be used concurrently.
type Door struct {
	password *file[*phc]
	hashing  chan struct{} // a place for each try that is being hashed

	mu       sync.Mutex
	sessions map[[sha256.Size]byte]*session // by the hash of the token
	total    *rate.Limiter
	from     map[netip.Prefix]*rate.Limiter
}

type session struct {
	Session
	seen     time.Time
	password string // the hash that it was opened by
}

// OpenDoor reads a file with the PHC string of a password. With an empty path the
// door stays closed.
func OpenDoor(path string, log *slog.Logger) (*Door, error) {
	d := &Door{
		password: &file[*phc]{path: path, parse: parsePHC},
		hashing:  make(chan struct{}, hashers),
		sessions: map[[sha256.Size]byte]*session{},
		total:    rate.NewLimiter(rate.Every(totalInterval), triesTotal),
		from:     map[netip.Prefix]*rate.Limiter{},
	}
	if path == "" {
		return d, nil
	}
	if _, err := d.password.read(); err != nil {
		return nil, fmt.Errorf("read the password: %w", err)
	}
	d.password.changed = func(_ *phc, err error) {
		if err != nil {
			log.Error("read the password", "err", err)
			return
		}
		log.Info("password file read; sessions of another password have ended")
	}
	return d, nil
}

// Closed says why nobody can log in; nil if somebody can.
func (d *Door) Closed() error {
	if d.password.path == "" {
		return ErrNoPassword
	}
	if _, err := d.password.read(); err != nil {
		return fmt.Errorf("%w: %w", ErrNoPassword, err)
	}
	return nil
}

// Reload reads the password file again though it may look unchanged.
func (d *Door) Reload() { d.password.forget() }

// LogIn opens a session for somebody at an address who knows the password, and
// returns the token that stands for it. Its errors are [ErrNoPassword],
// [ErrWrong], a [*TooMany], or that of ctx.
func (d *Door) LogIn(ctx context.Context, from netip.Addr, name, password string) (token string, err error) {
	if err := d.Closed(); err != nil {
		return "", err
	}
	if err := d.allow(from, time.Now()); err != nil {
		return "", err
	}
	hash, err := d.password.read()
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoPassword, err)
	}
	select {
	case d.hashing <- struct{}{}:
		defer func() { <-d.hashing }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	// A name that cannot be one costs as much as a wrong password.
	if !hash.matches([]byte(password[:min(len(password), maxPassword)])) || len(password) > maxPassword || !isName(name) {
		return "", ErrWrong
	}
	return d.open(name, hash.String(), from), nil
}

// allow takes one try of an address's, and one of all.
func (d *Door) allow(from netip.Addr, now time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	own := d.limiter(network(from), now)
	if !own.AllowN(now, 1) { // first: one address does not use up what all have
		return &TooMany{wait(own, now)}
	}
	if !d.total.AllowN(now, 1) {
		return &TooMany{wait(d.total, now)}
	}
	return nil
}

// wait is how long it takes until l allows one more.
func wait(l *rate.Limiter, now time.Time) time.Duration {
	missing := 1 - l.TokensAt(now)
	return time.Duration(missing / float64(l.Limit()) * float64(time.Second)).Round(time.Millisecond)
}

// limiter is that of an address. Those that are full again are forgotten when there
// are too many; then, the fullest. d.mu is held.
func (d *Door) limiter(from netip.Prefix, now time.Time) *rate.Limiter {
	if l, ok := d.from[from]; ok {
		return l
	}
	if len(d.from) >= maxAddresses {
		fullest, most := from, -1.0
		for other, l := range d.from {
			tokens := l.TokensAt(now)
			if tokens >= triesPerAddress {
				delete(d.from, other)
			} else if tokens > most {
				fullest, most = other, tokens
			}
		}
		if len(d.from) >= maxAddresses {
			delete(d.from, fullest)
		}
	}
	l := rate.NewLimiter(rate.Every(addressInterval), triesPerAddress)
	d.from[from] = l
	return l
}

// network is what tries are counted by: an IPv4 address, or the /64 that one
// customer has in IPv6.
func network(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	if a.Is6() {
		p, _ := a.Prefix(64)
		return p
	}
	p, _ := a.Prefix(a.BitLen())
	return p
}

// open makes a session, and gives the address its tries back.
func (d *Door) open(name, password string, from netip.Addr) (token string) {
	now := time.Now()
	token = rand.Text()
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.from, network(from))
	for len(d.sessions) >= maxSessions {
		delete(d.sessions, d.idlest())
	}
	d.sessions[sha256.Sum256([]byte(token))] = &session{
		Session:  Session{Name: name, Expires: now.Add(SessionAge)},
		seen:     now,
		password: password,
	}
	return token
}

func (d *Door) idlest() (sum [sha256.Size]byte) {
	var seen time.Time
	for other, s := range d.sessions {
		if seen.IsZero() || s.seen.Before(seen) {
			sum, seen = other, s.seen
		}
	}
	return sum
}

// Session is whose token this is.
func (d *Door) Session(token string) (Session, bool) {
	if d.password.path == "" {
		return Session{}, false
	}
	hash, err := d.password.read()
	if err != nil {
		return Session{}, false
	}
	now, sum := time.Now(), sha256.Sum256([]byte(token))
	d.mu.Lock()
	defer d.mu.Unlock()
	s, ok := d.sessions[sum]
	if !ok {
		return Session{}, false
	}
	if !now.Before(s.Expires) || now.Sub(s.seen) >= SessionIdle || s.password != hash.String() {
		delete(d.sessions, sum)
		return Session{}, false
	}
	s.seen = now
	return s.Session, true
}

// LogOut ends a session.
func (d *Door) LogOut(token string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.sessions, sha256.Sum256([]byte(token)))
}
