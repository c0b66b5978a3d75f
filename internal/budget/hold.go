package budget

import (
	"slices"
	"sync"
	"time"

	"deckle"
)

const (
	holdShards  = 64
	maxHolds    = 1 << 21 // on this node: about 200 MB
	maxPerShard = maxHolds / holdShards
	maxLines    = 3 // that a price is paid from: total, day, advertiser's day
)

// A hold is a price that has been reserved and whose token may still be redeemed.
type hold struct {
	price  deckle.Money
	leases [maxLines]*lease // nil where there are fewer
	until  int64            // Unix milliseconds
}

// end ends a hold. What was not paid can be reserved again.
func (h *hold) end(paid bool) {
	for _, l := range h.leases {
		if l == nil {
			continue
		}
		if !paid {
			l.free.Add(int64(h.price))
		}
		l.holds.Add(-1)
	}
}

// on reports whether a lease is one of those that the hold is on.
func (h *hold) on(lease string) bool {
	for _, l := range h.leases {
		if l != nil && l.id == lease {
			return true
		}
	}
	return false
}

// holds are all holds of this node by request id, in shards, so that batches seldom
// wait for each other.
type holds struct {
	lasts  time.Duration
	shards [holdShards]holdShard
}

type holdShard struct {
	mu   sync.Mutex
	byID map[uint64]hold
	due  []due // in the order of their ends, from head on; those that have ended included
	head int
	_    [64]byte // shards do not share a cache line
}

type due struct {
	id    uint64
	until int64
}

func newHolds(lasts time.Duration) *holds {
	h := &holds{lasts: lasts}
	for i := range h.shards {
		h.shards[i].byID = map[uint64]hold{}
	}
	return h
}

func (h *holds) shard(id uint64) *holdShard { return &h.shards[id%holdShards] }

// add begins a hold; not where there is one of that id, or there are too many.
func (h *holds) add(id uint64, one hold, now time.Time) bool {
	one.until = now.Add(h.lasts).UnixMilli()
	s := h.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.byID[id]; taken || len(s.byID) >= maxPerShard {
		return false
	}
	s.byID[id] = one
	if len(s.due) == cap(s.due) {
		s.compact()
	}
	s.due = append(s.due, due{id, one.until})
	return true
}

// compact drops the ends of holds that have ended before: paid, given back. What is
// left takes at most half of the room.
func (s *holdShard) compact() {
	live := s.due[:0]
	for _, d := range s.due[s.head:] {
		if one, ok := s.byID[d.id]; ok && one.until == d.until {
			live = append(live, d)
		}
	}
	s.due, s.head = slices.Grow(live, len(live)+64), 0
}

// take removes a hold.
func (h *holds) take(id uint64) (hold, bool) {
	s := h.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.byID[id]
	if ok {
		delete(s.byID, id)
	}
	return one, ok
}

// expire ends the holds whose tokens nobody takes any more. Times of different batches
// may be out of order by as much as a batch takes: so late a hold may end.
func (h *holds) expire(now time.Time) {
	ms := now.UnixMilli()
	for i := range h.shards {
		h.shards[i].expire(ms)
	}
}

func (s *holdShard) expire(ms int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.head < len(s.due) && s.due[s.head].until <= ms {
		d := s.due[s.head]
		s.head++
		if one, ok := s.byID[d.id]; ok && one.until == d.until {
			delete(s.byID, d.id)
			one.end(false)
		}
	}
	if s.head > len(s.due)/2 {
		s.due = s.due[:copy(s.due, s.due[s.head:])]
		s.head = 0
	}
}

// count is how many there are.
func (h *holds) count() (n int) {
	for i := range h.shards {
		s := &h.shards[i]
		s.mu.Lock()
		n += len(s.byID)
		s.mu.Unlock()
	}
	return n
}
