// Package classify knows what a page is about: by the rules of its site, else by
// what the page says of itself. It answers at once, from memory, and never keeps a
// page's URL.
//
// Rules are asked anew each time and have no age. What a page says ([Classifier.Head])
// is remembered under a digest of the site and the canonical URL, here at once, and
// written to the bucket pages in the background; other nodes, and this one after a
// restart, have it from there ([Classifier.Run]). What cannot be written is dropped
// and counted: the page will say it again.
package classify

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"deckle/internal/catalog"
	"deckle/internal/store"
)

// MaxCategories is how many categories a page has at most.
const MaxCategories = 3

// A Source is who says what a page is about. It is a word of the bucket pages.
type Source string

// The sources, best first.
const (
	Rule    Source = "rule"    // the site, by the page's path
	Section Source = "section" // the page, by article:section
	Tag     Source = "tag"     // the page, by article:tag
)

// confidence is how far a source is believed. A publisher's own rule is the word of
// whoever sells the page. A section is the one drawer that its editors put the page
// into; a tag is one of many things that it mentions.
func (s Source) confidence() float64 {
	switch s {
	case Rule:
		return 1
	case Section:
		return 0.9
	case Tag:
		return 0.6
	}
	return 0
}

// A Category is one thing that a page is about.
type Category struct {
	ID         string  // of the IAB Content Taxonomy 3.0
	Confidence float64 // above 0, at most 1
	Source     Source
}

// A Page is what a page is about, the most certain first, each category once. The
// list is shared and must not be changed.
type Page struct {
	Categories []Category // 1 to MaxCategories
	At         time.Time  // when that was found out
}

// Meta is what a page says of itself in its head.
type Meta struct {
	Sections []string // of article:section
	Tags     []string // of article:tag
}

// Config configures a [Classifier]. The zero value is ready to use.
type Config struct {
	// Remember is how many pages are kept in memory; those that were not asked for
	// the longest go first. A page takes about 450 bytes. Defaults to 100,000.
	Remember int

	// WritesPerSecond bounds what is written, so that somebody who asks for pages
	// without end does not keep the disk from the journal. Defaults to 50.
	WritesPerSecond int

	Log *slog.Logger // defaults to silence
}

func (c Config) withDefaults() Config {
	if c.Remember == 0 {
		c.Remember = 100_000
	}
	if c.WritesPerSecond == 0 {
		c.WritesPerSecond = 50
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// A Classifier knows what pages are about. All methods may be called concurrently.
type Classifier struct {
	kv      store.KV
	names   names
	rules   rulebook
	memory  *memory
	queue   chan pageKey // of pages that are to be written
	limit   *rate.Limiter
	log     *slog.Logger
	metrics *Metrics
}

// queued is how many pages may wait to be written.
const queued = 1024

// New makes a classifier that remembers pages in a bucket, and knows categories by
// their names in content. It has read nothing until [Classifier.Run].
func New(kv store.KV, content *catalog.Taxonomy, c Config) *Classifier {
	c = c.withDefaults()
	cl := &Classifier{
		kv: kv, names: namesOf(content), memory: newMemory(c.Remember), queue: make(chan pageKey, queued),
		limit: rate.NewLimiter(rate.Limit(c.WritesPerSecond), c.WritesPerSecond), log: c.Log,
	}
	cl.rules.log = c.Log
	cl.metrics = newMetrics(cl)
	return cl
}

// Page says what the page at a URL of a site is about; false: nobody has said. Where
// a rule of the site speaks, it alone does, as of now. Whether something else is too
// old is for the caller to say.
//
// It asks nobody and takes about a microsecond. The site is one of a snapshot of
// the catalog.
func (c *Classifier) Page(site *catalog.Site, url string, now time.Time) (Page, bool) {
	if categories := c.rules.categories(site, url); len(categories) > 0 {
		return Page{Categories: categories, At: now}, true
	}
	return c.memory.page(keyOf(site.ID, url))
}

// Head takes what the page at a URL of a site says of itself. It does not block.
// What names no category of the taxonomy says nothing: what was known before stays
// until it is too old.
func (c *Classifier) Head(site, url string, m Meta) {
	categories := c.names.categories(m)
	if len(categories) == 0 {
		return
	}
	key := keyOf(site, url)
	if !c.memory.learn(key, Page{Categories: categories, At: time.Now()}) {
		return
	}
	select {
	case c.queue <- key:
	default:
		c.memory.notWritten(key)
		c.metrics.writes.WithLabelValues(writeDropped).Inc()
	}
}

// Run follows what other nodes have learned and writes what this one has, until ctx
// is done; then it returns nil.
func (c *Classifier) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return c.follow(ctx) })
	g.Go(func() error { return c.write(ctx) })
	return g.Wait()
}

// Metrics are the classifier's own figures, to be registered once.
func (c *Classifier) Metrics() *Metrics { return c.metrics }

// withoutScheme is a URL from its host on: a proxy in front of us may speak http to
// us and https to the reader, for one and the same page.
func withoutScheme(url string) string {
	if _, rest, ok := strings.Cut(url, "://"); ok {
		return rest
	}
	return url
}
