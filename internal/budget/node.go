package budget

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"deckle/internal/journal"
	"deckle/internal/store"
)

// self is this incarnation: another one each time a process starts, and when others
// took it for gone.
type self struct {
	id       string
	taken    uint64 // leases so far
	revision uint64 // of its presence; 0: it has none
}

// A node is an incarnation as its presence tells of it.
type node struct {
	revision uint64
	beat     time.Time // the store's time of its last sign of life, or of the note of its end
	ended    int64     // Unix milliseconds; 0: it may be alive
}

// begin makes this a new incarnation. The book's lock is held, or nobody else has the
// book.
func (b *Book) begin() {
	var id [9]byte
	_, _ = rand.Read(id[:]) // never fails
	b.self = self{id: base64.RawURLEncoding.EncodeToString(id[:])}
}

// lease is the id of another lease.
func (s *self) lease() string {
	s.taken++
	return s.id + "." + strconv.FormatUint(s.taken, 36)
}

// took reports whether a lease is of this incarnation: it may have become another one
// while the lease was being written.
func (s *self) took(lease string) bool { return strings.HasPrefix(lease, s.id+".") }

// nodeEnd is since when an incarnation reserves nothing, 0 if it may, as far as is
// known: a lease may be told of before the presence of who took it. The book's lock is
// held.
func (b *Book) nodeEnd(id string) int64 {
	if id == b.self.id {
		return 0
	}
	return b.nodes[id].ended
}

// endOf is since when nobody reserves from a lease, as the store has it.
func (b *Book) endOf(g *grant) int64 {
	if g.Closed != 0 {
		return g.Closed
	}
	return b.nodeEnd(g.Node)
}

// sinceNoted is how long the end of a lease has been in the store: only since then can
// it have been sealed. The book's lock is held.
func (b *Book) sinceNoted(g *grant, now time.Time) time.Duration {
	noted := b.nodes[g.Node].beat
	if g.Closed != 0 {
		noted = time.UnixMilli(g.Closed)
	}
	if us := b.nodes[b.self.id].beat; us.After(now) {
		now = us // our clock is behind the store's
	}
	return now.Sub(noted)
}

// alive counts the incarnations that may reserve; this is one. The book's lock is held.
func (b *Book) alive() int {
	n := 1
	for id, other := range b.nodes {
		if id != b.self.id && other.ended == 0 {
			n++
		}
	}
	return n
}

// mayTake reports whether a lease of a line may be taken: the store knows that we live,
// our clocks agree on which day it is, and that is the line's; of a total, we know what
// has been spent. The book's lock is held.
func (b *Book) mayTake(l *line, now time.Time) bool {
	me, ok := b.nodes[b.self.id]
	if !ok || now.Sub(me.beat).Abs() > time.Hour || l.kind == CampaignTotal && !b.config.Fold.Warm() {
		return false
	}
	return l.terms.from.IsZero() || !now.Before(l.terms.from.Add(-ahead)) && now.Before(l.terms.to)
}

func (b *Book) toldNode(id string, c *store.Change) {
	if c.Revision <= b.nodes[id].revision {
		return
	}
	if c.Deleted {
		delete(b.nodes, id)
		return
	}
	p, err := decodePresence(c.Value)
	if err != nil {
		// Of a program that we do not know: it is taken for alive, so that its leases are
		// left to those who do.
		b.config.Log.Error("the presence of a node cannot be read", "err", err)
	}
	b.nodes[id] = node{revision: c.Revision, beat: c.Time, ended: p.Ended}
	if id == b.self.id && c.Revision > b.self.revision && p.Ended == 0 {
		b.self.revision = c.Revision
		b.nudge() // leases may be taken
	}
}

// live gives signs of life, and looks after those who give none any more.
func (b *Book) live(ctx context.Context) {
	for {
		next := b.config.Beat
		err := b.beat(ctx)
		if err == nil {
			err = b.bury(ctx)
		}
		if err != nil && ctx.Err() == nil {
			b.note(err)
			next = min(next, retry)
		}
		if !pause(ctx, next) {
			return
		}
	}
}

// beat writes the presence.
func (b *Book) beat(ctx context.Context) error {
	b.mu.Lock()
	id, revision := b.self.id, b.self.revision
	b.mu.Unlock()
	written, err := b.putPresence(ctx, id, presence{}, revision)
	if errors.Is(err, store.ErrConflict) {
		return b.relearn(ctx, id)
	}
	if err != nil {
		return fmt.Errorf("write presence: %w", err)
	}
	b.note(nil)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.self.revision = max(b.self.revision, written)
	return nil
}

func (b *Book) putPresence(ctx context.Context, id string, p presence, revision uint64) (uint64, error) {
	p.Version = formVersion
	value, err := json.Marshal(p)
	if err != nil {
		return 0, err
	}
	return b.config.KV.Put(ctx, nodePrefix+id, value, revision)
}

// relearn finds out who has written our presence: we, and the answer was lost; or
// somebody who has not heard of us for long, and then our leases are not ours any more.
func (b *Book) relearn(ctx context.Context, id string) error {
	e, err := b.config.KV.Get(ctx, nodePrefix+id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("read presence: %w", err)
	}
	p, formErr := decodePresence(e.Value)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil && formErr == nil && p.Ended == 0 {
		b.self.revision = e.Revision
		return nil
	}
	b.config.Log.Warn("others took this node for gone: it begins anew, without its leases")
	for _, l := range b.lines {
		for _, one := range l.held {
			one.close()
			b.leases.remove(one)
		}
		l.held, l.fresh = nil, nil
		l.reopen()
	}
	b.begin()
	return nil
}

// longAgo is when a node ended that has no presence any more.
const longAgo = 1

// bury notes the end of those who have given no sign of life for longer than their
// last token can be redeemed, by the store's clock alone; and forgets those who ended
// long ago and have no leases.
func (b *Book) bury(ctx context.Context) error {
	for _, id := range b.strangers() {
		if err := b.meet(ctx, id); err != nil {
			return err
		}
	}
	for id, n := range b.gone() {
		end := presence{Ended: n.beat.Add(b.config.Beat).UnixMilli()}
		_, err := b.putPresence(ctx, id, end, n.revision)
		if err != nil && !errors.Is(err, store.ErrConflict) {
			return fmt.Errorf("note the end of a node: %w", err)
		}
		b.config.Log.Info("a node is gone: its leases are sealed", "node", id, "last_heard", n.beat)
	}
	for id, n := range b.forgotten() {
		if err := b.config.KV.Delete(ctx, nodePrefix+id, n.revision); err != nil && !errors.Is(err, store.ErrConflict) {
			return fmt.Errorf("forget a node: %w", err)
		}
	}
	return nil
}

// strangers are those who have leases, and of whose presence nobody has told.
func (b *Book) strangers() (ids []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.lines {
		for i := range l.record.Leases {
			id := l.record.Leases[i].Node
			if _, known := b.nodes[id]; !known && id != b.self.id && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// meet asks the leader for the presence of a stranger.
func (b *Book) meet(ctx context.Context, id string) error {
	e, err := b.config.KV.Get(ctx, nodePrefix+id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("read presence of a node: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.toldNode(id, &store.Change{Entry: e})
	} else {
		b.nodes[id] = node{ended: longAgo}
	}
	return nil
}

// gone are the nodes whose end nobody has noted.
func (b *Book) gone() map[string]node {
	b.mu.Lock()
	defer b.mu.Unlock()
	me, ok := b.nodes[b.self.id]
	gone := map[string]node{}
	for id, n := range b.nodes {
		if ok && id != b.self.id && n.ended == 0 && me.beat.Sub(n.beat) > b.holds.lasts+2*b.config.Beat {
			gone[id] = n
		}
	}
	return gone
}

// forgotten are the nodes that nobody needs to know of any more.
func (b *Book) forgotten() map[string]node {
	b.mu.Lock()
	defer b.mu.Unlock()
	old := map[string]node{}
	for id, n := range b.nodes {
		if n.ended > longAgo && b.nodes[b.self.id].beat.Sub(time.UnixMilli(n.ended)) > keepLines {
			old[id] = n
		}
	}
	if len(old) == 0 {
		return nil
	}
	for _, l := range b.lines {
		for i := range l.record.Leases {
			delete(old, l.record.Leases[i].Node)
		}
	}
	return old
}

// end ends this incarnation: it reserves nothing more, says so, and seals at once what
// no token names. Without the store it is as after a crash.
func (b *Book) end(ctx context.Context) {
	b.mu.Lock()
	id, revision := b.self.id, b.self.revision
	for _, l := range b.lines {
		for _, one := range l.held {
			one.close()
		}
		l.reopen()
	}
	b.mu.Unlock()
	if revision == 0 {
		return // it has taken nothing
	}
	if _, err := b.putPresence(ctx, id, presence{Ended: time.Now().UnixMilli()}, revision); err != nil {
		b.config.Log.Warn("leases are kept until others find this node gone", "err", err)
		return
	}
	const together = 256
	for seals := b.idle(time.Now()); len(seals) > 0; seals = seals[min(together, len(seals)):] {
		if _, err := b.config.Journal.Append(ctx, seals[:min(together, len(seals))]...); err != nil {
			b.config.Log.Warn("leases are kept until their last token has ended", "leases", len(seals), "err", err)
			return
		}
	}
}

// idle are the seals of all leases of this incarnation that no token names.
func (b *Book) idle(now time.Time) (seals []journal.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.lines {
		for _, g := range l.record.Leases {
			if one := l.mine(g.ID); g.Node == b.self.id && (one == nil || one.idle()) {
				seals = append(seals, journal.Event{Kind: journal.Seal, At: now, Lease: g.ID, Line: l.name})
			}
		}
	}
	return seals
}
