package auction

import (
	"strings"
	"sync"
)

// A noticeQueue holds the notices that wait, by the host that each goes to. Hosts
// take turns, none has more than its share of the workers, and where there is no
// room the host with the most notices gives way: one that hangs costs only itself.
type noticeQueue struct {
	mu     sync.Mutex
	ready  *sync.Cond // something may be popped, or closed has become true
	hosts  map[string]*noticeHost
	turns  []string // hosts with notices that wait, each once; the first is next
	size   int      // notices that wait
	room   int      // for so many
	share  int      // how many notices of one host may be under way
	closed bool
}

// A noticeHost is what one host has to do with the queue now.
type noticeHost struct {
	waiting  []notice
	underway int
}

func newNoticeQueue(room, share int) *noticeQueue {
	q := &noticeQueue{hosts: make(map[string]*noticeHost), room: room, share: share}
	q.ready = sync.NewCond(&q.mu)
	return q
}

// push puts o in line, and returns how many notices, o perhaps among them, were
// dropped for it: 0 or 1.
func (q *noticeQueue) push(o notice) (dropped int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return 1
	}
	name := o.host()
	if q.size >= q.room {
		dropped = 1
		if !q.makeRoom(name) {
			return dropped
		}
	}
	h := q.hosts[name]
	if h == nil {
		h = &noticeHost{}
		q.hosts[name] = h
	}
	if len(h.waiting) == 0 {
		q.turns = append(q.turns, name)
	}
	h.waiting = append(h.waiting, o)
	q.size++
	q.ready.Signal()
	return dropped
}

// makeRoom drops the last notice of the host with the most, unless that is name's
// own or has no more than name.
func (q *noticeQueue) makeRoom(name string) bool {
	own := 0
	if h := q.hosts[name]; h != nil {
		own = len(h.waiting)
	}
	var longest *noticeHost
	most := own + 1 // that of a host with one more would only be turned round
	for _, turn := range q.turns {
		if h := q.hosts[turn]; len(h.waiting) > most {
			longest, most = h, len(h.waiting)
		}
	}
	if longest == nil {
		return false
	}
	longest.waiting = longest.waiting[:most-1]
	q.size--
	return true
}

// pop waits for a notice that may be fired. It returns false when the queue is closed
// and empty. Whoever has popped a notice calls done with it.
func (q *noticeQueue) pop() (notice, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		for i, name := range q.turns {
			h := q.hosts[name]
			if h.underway >= q.share {
				continue
			}
			o := h.waiting[0]
			h.waiting = h.waiting[1:]
			h.underway++
			q.size--
			q.turns = append(q.turns[:i], q.turns[i+1:]...)
			if len(h.waiting) > 0 {
				q.turns = append(q.turns, name)
			}
			return o, true
		}
		if q.closed && q.size == 0 {
			return notice{}, false
		}
		q.ready.Wait()
	}
}

// done says that o is not under way any more.
func (q *noticeQueue) done(o notice) {
	q.mu.Lock()
	defer q.mu.Unlock()
	name := o.host()
	h := q.hosts[name]
	if h.underway--; h.underway == 0 && len(h.waiting) == 0 {
		delete(q.hosts, name)
	}
	q.ready.Broadcast() // its host may have a turn again, or this was the last
}

// close lets no notice in any more.
func (q *noticeQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.ready.Broadcast()
}

// host is where a notice goes, as far as its URL says before its macros are filled:
// good enough to share by, not to connect to.
func (o notice) host() string {
	raw := o.url
	if o.loss != nil {
		raw = o.loss.offer.LURL
	}
	_, rest, _ := strings.Cut(raw, "://")
	if i := strings.IndexAny(rest, "/?#\\"); i >= 0 {
		rest = rest[:i]
	}
	return strings.ToLower(rest[strings.LastIndexByte(rest, '@')+1:])
}
