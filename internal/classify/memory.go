package classify

import (
	"container/list"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// refresh is how old what is known of a page may become before the same is written
// again: half the shortest window of a site, so that no node finds it stale while
// readers come.
const refresh = 30 * time.Minute

// A pageKey stands for a page, here and in the bucket, without telling its URL.
type pageKey struct {
	site   string
	digest [16]byte
}

// keyOf is the key of a page: the beginning of the SHA-256 of its site and canonical
// URL. URLs can hold what is personal; of a digest nobody can read it, and nothing
// here needs to.
func keyOf(site, url string) pageKey {
	k := pageKey{site: site}
	sum := sha256.Sum256([]byte(site + "\x00" + withoutScheme(Canonical(url))))
	copy(k.digest[:], sum[:])
	return k
}

// String is the key in the bucket: "yuki-site/4rT0…", 22 characters after the slash.
func (k pageKey) String() string {
	return k.site + "/" + base64.RawURLEncoding.EncodeToString(k.digest[:])
}

func parseKey(s string) (pageKey, error) {
	site, digest, _ := strings.Cut(s, "/")
	k := pageKey{site: site}
	b, err := base64.RawURLEncoding.DecodeString(digest)
	if err != nil || len(b) != len(k.digest) || site == "" {
		return pageKey{}, fmt.Errorf("key %q is none of a page", s)
	}
	copy(k.digest[:], b)
	return k, nil
}

// A memory has the pages that were learned or asked for last.
type memory struct {
	size int

	mu    sync.Mutex // guards all below, for well under a microsecond
	pages map[pageKey]*list.Element
	order *list.List // of *remembered; the one that was used last is in front
}

// remembered is a page in memory.
type remembered struct {
	key      pageKey
	page     Page
	written  Page   // as the bucket has it; zero: as far as we know, not at all
	revision uint64 // of that
	queued   bool   // to be written
}

func newMemory(size int) *memory {
	return &memory{size: size, pages: map[pageKey]*list.Element{}, order: list.New()}
}

func (m *memory) page(k pageKey) (Page, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.pages[k]
	if e == nil {
		return Page{}, false
	}
	m.order.MoveToFront(e)
	return e.Value.(*remembered).page, true
}

// use returns what is remembered of a page, after making room for it. The caller
// holds m.mu.
func (m *memory) use(k pageKey) *remembered {
	if e := m.pages[k]; e != nil {
		m.order.MoveToFront(e)
		return e.Value.(*remembered)
	}
	if len(m.pages) >= m.size {
		last := m.order.Back()
		delete(m.pages, m.order.Remove(last).(*remembered).key)
	}
	r := &remembered{key: k}
	m.pages[k] = m.order.PushFront(r)
	return r
}

// learn remembers what a page is about, and reports whether that has to be put on
// the queue: the bucket says something else, or has said it for long.
func (m *memory) learn(k pageKey, p Page) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.use(k)
	if slices.Equal(r.page.Categories, p.Categories) {
		p.Categories = r.page.Categories // one list is enough
	}
	r.page = p
	if r.queued || r.isWritten() {
		return false
	}
	r.queued = true
	return true
}

// isWritten reports whether the bucket says what we know, and has not said it for
// long.
func (r *remembered) isWritten() bool {
	return slices.Equal(r.written.Categories, r.page.Categories) && r.page.At.Sub(r.written.At) < refresh
}

// notWritten says that a page did not get onto the queue, or could not be written.
func (m *memory) notWritten(k pageKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.pages[k]; e != nil {
		e.Value.(*remembered).queued = false
	}
}

// toWrite is what is to be written of a page that comes from the queue, over which
// revision. Otherwise skip says why it is not to be.
func (m *memory) toWrite(k pageKey) (p Page, revision uint64, skip string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.pages[k]
	if e == nil {
		return Page{}, 0, writeDropped
	}
	r := e.Value.(*remembered)
	r.queued = false
	if r.isWritten() {
		return Page{}, 0, writeElsewhere
	}
	return r.page, r.revision, ""
}

// told takes what the bucket says of a page. The newer of both counts.
func (m *memory) told(k pageKey, p Page, revision uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.use(k)
	if revision < r.revision {
		return
	}
	r.written, r.revision = p, revision
	if r.page.At.Before(p.At) {
		r.page = p
	}
}

func (m *memory) len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.pages)
}
