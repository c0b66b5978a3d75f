package publicapi

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// Bounds of a [Limiter]'s memory: 64 shards of two generations of 512 addresses,
// some 100 bytes each, 7 MB in all.
const (
	shards     = 64
	generation = 512
)

// A Limit is how many requests an address has: PerMinute, and Burst at once.
type Limit struct {
	PerMinute int // above 0
	Burst     int // above 0
}

// A Limiter holds addresses to a limit, each by itself. It knows them by a hash
// under a key of one UTC day, which it forgets at the day's end together with what
// it has counted; IPv6 addresses of one /64 are one. It remembers the addresses that
// asked last, at least 32,768 where they spread evenly: one that asks without pause
// is not forgotten, however many others do. All methods may be called concurrently.
type Limiter struct {
	limit  Limit
	key    atomic.Pointer[dayKey]
	shards [shards]shard
}

// A dayKey is what addresses are hashed with during one day.
type dayKey struct {
	day    int64 // of Unix time
	secret [32]byte
}

// A shard has some of the addresses. What is asked for moves to young; when that is
// full, old is forgotten and young becomes old.
type shard struct {
	mu         sync.Mutex
	young, old map[uint64]*rate.Limiter
}

// NewLimiter makes a limiter that has counted nothing.
func NewLimiter(l Limit) *Limiter { return &Limiter{limit: l} }

// Allow takes one request of what an address has at now. When there is none left,
// ok is false and after is when there will be.
func (l *Limiter) Allow(a netip.Addr, now time.Time) (after time.Duration, ok bool) {
	key := l.keyOf(now.Unix() / 86_400)
	hash := key.hash(a)
	bucket := l.shards[hash%shards].bucket(hash, l.limit)
	if bucket.AllowN(now, 1) {
		return 0, true
	}
	missing := 1 - bucket.TokensAt(now)
	return time.Duration(missing / float64(bucket.Limit()) * float64(time.Second)), false
}

// keyOf is the key of a day.
func (l *Limiter) keyOf(day int64) *dayKey {
	for {
		key := l.key.Load()
		if key != nil && key.day == day {
			return key
		}
		next := &dayKey{day: day}
		rand.Read(next.secret[:]) // never fails
		if l.key.CompareAndSwap(key, next) {
			return next
		}
	}
}

// hash is 64 bits of SHA-256 over the key and an address. Both have a fixed length,
// so that there is nothing to extend.
func (k *dayKey) hash(a netip.Addr) uint64 {
	a = a.Unmap()
	var data [32 + 16]byte
	copy(data[:], k.secret[:])
	bytes := a.As16()
	if a.Is6() {
		clear(bytes[8:]) // a household, or one machine, has a /64
	}
	copy(data[32:], bytes[:])
	sum := sha256.Sum256(data[:])
	return binary.BigEndian.Uint64(sum[:])
}

// bucket is the limiter of one address.
func (s *shard) bucket(hash uint64, limit Limit) *rate.Limiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.young == nil {
		s.young = map[uint64]*rate.Limiter{}
	}
	if b := s.young[hash]; b != nil {
		return b
	}
	b := s.old[hash]
	if b == nil {
		b = rate.NewLimiter(rate.Limit(float64(limit.PerMinute)/60), limit.Burst)
	}
	if len(s.young) >= generation {
		s.young, s.old = map[uint64]*rate.Limiter{}, s.young
	}
	s.young[hash] = b
	return b
}
