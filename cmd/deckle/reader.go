package main

import (
	"bytes"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"deckle"
	"deckle/internal/catalog"
	"deckle/internal/classify"
	"deckle/internal/config"
	"deckle/internal/edge"
	"deckle/internal/heartbeat"
	"deckle/internal/quality"
	"deckle/internal/serve"
	"deckle/internal/template"
	"deckle/internal/token"
	"deckle/internal/track"
)

// Here the reader plane, batches and events, gets what it works with.

// hygieneFile lists the networks of data centres, if the operator has such a list.
func hygieneFile(cfg *config.Config) string {
	return filepath.Join(cfg.Store.DataDir, "hygiene", "data-centres.txt")
}

func verifier(cfg *config.Config, keys token.Keys) *token.Verifier {
	r := cfg.Reader
	return &token.Verifier{
		Keys: keys, FoldWindow: r.FoldWindow,
		BeaconWindow: r.BeaconWindow, ClickWindow: r.ClickWindow, MaxSkew: r.MaxSkew,
	}
}

// newServer answers batches from the facts.
func (o *openFacts) newServer(f *facts, content *catalog.Taxonomy, tokens *token.Verifier) *serve.Server {
	peers := edge.Peers(f.cfg.Server.TrustedProxies)
	hosts := make(map[string][]string, len(f.cfg.Sites))
	for _, s := range f.cfg.Sites {
		hosts[s.ID] = s.Hosts
	}
	return serve.New(serve.Config{
		Market: serve.Market{
			Stats: func(site, creative string, now time.Time) quality.Stats {
				return quality.Stats(o.hot.Engagement(site, creative, now))
			},
			Reserve:   o.book.Reserve,
			SlotFloor: f.slotFloor,
			Parent:    content.Parent,
		},
		Catalog: o.catalog.Snapshot,
		Page:    o.pages.Page,
		Tokens:  tokens,
		Hosts:   hosts,
		Base:    func(r *http.Request) string { return peers.Scheme(r) + "://" + peers.Host(r) },
		Address: peers.ClientAddr,
		Afford:  o.book.Afford,
		Ready:   func() bool { ok, _ := o.clock.Ready(); return ok && o.hot.Warm() },
	}, f.served)
}

// newTracker takes events into the journal.
func (o *openFacts) newTracker(f *facts, tokens *token.Verifier) *track.Tracker {
	return track.New(track.Config{
		Tokens:     tokens,
		Journal:    o.journal,
		Catalog:    o.catalog.Snapshot,
		Address:    edge.Peers(f.cfg.Server.TrustedProxies).ClientAddr,
		Bot:        edge.IsBot,
		DataCentre: o.centres.Contains,
		Folded:     o.hot.Folded,
		Ready:      func() bool { ok, _ := o.clock.Ready(); return ok },
	}, f.tracked)
}

// slotFloor is the floor that a slot has in its site's template.
func (f *facts) slotFloor(site, slot string) deckle.CPM {
	if t := f.template(site); t != nil {
		if s, ok := t.Slot(deckle.SlotID(slot)); ok {
			return s.Floor
		}
	}
	return 0
}

// magazineSlots are the site that the page at a URL is of, "" for none, and the
// magazine slots that the page has by the site's template.
func (f *facts) magazineSlots(page string) (site string, slots []deckle.Slot) {
	u, err := url.Parse(page)
	if err != nil {
		return "", nil
	}
	i := slices.IndexFunc(f.cfg.Sites, func(s config.Site) bool { return slices.Contains(s.Hosts, strings.ToLower(u.Hostname())) })
	if i < 0 {
		return "", nil
	}
	site = f.cfg.Sites[i].ID
	t := f.template(site)
	if t == nil {
		return site, nil
	}
	for _, i := range t.Match(template.Normalize(u.EscapedPath()), nil) {
		if t.Slots[i].Kind == deckle.Magazine {
			slots = append(slots, t.Slots[i])
		}
	}
	return site, slots
}

// newEar hears what browsers tell of pages in which the reader plane failed.
func newEar(cfg *config.Config) *heartbeat.Ear {
	return heartbeat.New(heartbeat.Config{
		Sites: func(id string) bool {
			return slices.ContainsFunc(cfg.Sites, func(s config.Site) bool { return s.ID == id })
		},
		Address: edge.Peers(cfg.Server.TrustedProxies).ClientAddr,
	})
}

// head keeps what a page has said of itself while it passed.
func (f *facts) head(site, url string, m edge.HeadMeta) {
	if o := f.open.Load(); o != nil {
		o.pages.Head(site, url, classify.Meta(m))
	}
}

// own are the paths of the reader plane on the public listener. While the store is
// not open they are 503, and readers keep their bookmarks.
func (f *facts) own(own edge.Own) edge.Own {
	own[serve.BatchPath] = serve.Endpoint(f.api, func() *serve.Server {
		if o := f.open.Load(); o != nil {
			return o.batches
		}
		return nil
	})
	endpoints := track.Endpoints(f.api, func() *track.Tracker {
		if o := f.open.Load(); o != nil {
			return o.events
		}
		return nil
	})
	for path, h := range endpoints {
		own[path] = h
	}
	own[heartbeat.Path] = f.ear.Endpoint(f.api)
	return own
}

// rings are the key rings of publishers, ready to sign. They follow the catalog:
// a ring is made anew when its keys are.
type rings struct {
	snapshot func() *catalog.Snapshot

	mu   sync.RWMutex
	made map[string]madeRing // by publisher, of which there are few
}

type madeRing struct {
	current, previous []byte
	ring              *token.Ring
}

func newRings(snapshot func() *catalog.Snapshot) *rings {
	return &rings{snapshot: snapshot, made: map[string]madeRing{}}
}

// of is the ring of the publisher of a site; false where there is no such site. It
// makes no keys.
func (r *rings) of(site string) (*token.Ring, bool) {
	s := r.snapshot()
	entity, ok := s.Site(site)
	if !ok {
		return nil, false
	}
	keys, ok := s.KeyRing(entity.Publisher)
	if !ok {
		return nil, false
	}
	var previous []byte
	if keys.Previous != nil {
		previous = keys.Previous.Secret
	}
	r.mu.RLock()
	made, ok := r.made[entity.Publisher]
	r.mu.RUnlock()
	if ok && bytes.Equal(made.current, keys.Current.Secret) && bytes.Equal(made.previous, previous) {
		return made.ring, true
	}
	made = madeRing{keys.Current.Secret, previous, token.NewRing(keys.Current.Secret, previous)}
	r.mu.Lock()
	r.made[entity.Publisher] = made
	r.mu.Unlock()
	return made.ring, true
}
