// Package heartbeat hears from browsers how far the reader plane came in a page where
// something failed: a site, a stage and a reason, and nothing about a reader.
//
// It counts in memory, for a day: a node that starts anew has heard nothing. What
// browsers say is a stranger's word, so it is bounded in every way and decides
// nothing.
package heartbeat

import (
	"cmp"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"deckle/internal/publicapi"
)

// Path is where browsers tell.
const Path = "/v1/heartbeat"

const (
	maxBody    = 1 << 10
	hours      = 24
	maxReasons = 32 // of a site and stage in an hour; the rest is [Other]
)

// Other stands for reasons beyond those that are kept apart.
const Other = "other"

// A Stage is how far a page came.
type Stage string

// The stages, in the order in which a page meets them.
const (
	Script Stage = "script" // our script runs
	Slot   Stage = "slot"   // the page has a place for the ad
	Serve  Stage = "serve"  // the batch is answered
	Render Stage = "render" // the ad is painted
)

func (s Stage) known() bool { return s == Script || s == Slot || s == Serve || s == Render }

// Config is what an Ear works with.
type Config struct {
	// Sites reports whether there is a site of that id. Nothing is kept of others.
	Sites func(id string) bool

	// Address is where a request comes from, behind trusted proxies.
	Address func(*http.Request) netip.Addr

	Limit publicapi.Limit  // for each address; defaults to 60 a minute, 20 at once
	Now   func() time.Time // defaults to time.Now
}

// An Ear hears. Its methods may be called concurrently.
type Ear struct {
	config  Config
	limiter *publicapi.Limiter
	heard   *prometheus.CounterVec

	mu    sync.Mutex
	hours [hours]hour
}

// An hour is what was heard in one hour of the clock.
type hour struct {
	begin  time.Time
	counts map[key]int64
}

type key struct {
	site   string
	stage  Stage
	reason string
}

// New makes an ear that has heard nothing.
func New(c Config) *Ear {
	if c.Limit == (publicapi.Limit{}) {
		c.Limit = publicapi.Limit{PerMinute: 60, Burst: 20}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Ear{config: c, limiter: publicapi.NewLimiter(c.Limit), heard: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "deckle_heartbeats_total",
		Help: "Pages in which the reader plane failed, as browsers tell, by the stage they came to.",
	}, []string{"site", "stage"})}
}

// Register makes the ear's figures known to r.
func (e *Ear) Register(r prometheus.Registerer) error { return r.Register(e.heard) }

// Endpoint is the handler of [Path].
func (e *Ear) Endpoint(api *publicapi.API) http.Handler {
	return api.Handler("heartbeat", e.answer, http.MethodPost)
}

// answer takes {"pub", "stage", "reason"}: 204; 400, 404, 413, 415, 429 as everywhere.
func (e *Ear) answer(r *publicapi.Request) (publicapi.Answer, error) {
	now := e.config.Now()
	if after, ok := e.limiter.Allow(e.config.Address(r.Request), now); !ok {
		return publicapi.Answer{}, publicapi.TooMany(after)
	}
	var told struct {
		Pub    string `json:"pub"`
		Stage  Stage  `json:"stage"`
		Reason string `json:"reason"`
	}
	if err := r.ReadJSON(maxBody, &told); err != nil {
		return publicapi.Answer{}, err
	}
	switch {
	case told.Pub == "":
		return publicapi.Answer{}, publicapi.Missing("pub")
	case !told.Stage.known():
		return publicapi.Answer{}, publicapi.Wrong("stage", "must be script, slot, serve or render")
	case !isReason(told.Reason):
		return publicapi.Answer{}, publicapi.Wrong("reason", "must be 1 to 32 of a-z, 0-9 and _")
	case !e.config.Sites(told.Pub):
		return publicapi.Answer{}, publicapi.UnknownPub()
	}
	e.count(key{told.Pub, told.Stage, told.Reason}, now)
	e.heard.WithLabelValues(told.Pub, string(told.Stage)).Inc()
	return publicapi.Answer{}, nil
}

func isReason(s string) bool {
	return len(s) >= 1 && len(s) <= 32 && !slices.ContainsFunc([]byte(s), func(c byte) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_'
	})
}

func (e *Ear) count(k key, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	h := e.hour(now)
	if _, known := h.counts[k]; !known && h.reasons(k) >= maxReasons {
		k.reason = Other
	}
	h.counts[k]++
}

// hour is the one that now is in, emptied if it was last used a day ago.
func (e *Ear) hour(now time.Time) *hour {
	begin := now.Truncate(time.Hour)
	h := &e.hours[int(begin.Unix()/3600)%hours]
	if !h.begin.Equal(begin) {
		*h = hour{begin, map[key]int64{}}
	}
	return h
}

// reasons is how many there are of a site and stage.
func (h *hour) reasons(of key) (n int) {
	for k := range h.counts {
		if k.site == of.site && k.stage == of.stage {
			n++
		}
	}
	return n
}

// A Count is how often a stage failed for a reason on a site.
type Count struct {
	Site   string
	Stage  Stage
	Reason string
	Pages  int64
}

// Day is what this node has heard in the last 24 hours, the most frequent first.
func (e *Ear) Day() []Count {
	now := e.config.Now()
	sums := map[key]int64{}
	e.mu.Lock()
	for i := range e.hours {
		if now.Sub(e.hours[i].begin) < hours*time.Hour {
			for k, n := range e.hours[i].counts {
				sums[k] += n
			}
		}
	}
	e.mu.Unlock()
	counts := make([]Count, 0, len(sums))
	for k, n := range sums {
		counts = append(counts, Count{k.site, k.stage, k.reason, n})
	}
	slices.SortFunc(counts, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Pages, a.Pages), cmp.Compare(a.Site, b.Site), cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.Reason, b.Reason))
	})
	return counts
}
