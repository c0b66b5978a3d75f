package projection

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"deckle"
	"deckle/internal/journal"
	"deckle/internal/obs"
	"deckle/internal/store"
)

// Hot is what decisions need to know of the journal, in memory: what has been spent,
// what leases have paid for, how readers took to a creative, how traffic falls on
// the hours. It is folded anew at every start, and until it is [Hot.Warm] it knows
// too little to decide with.
//
// All methods may be called concurrently. The fold holds the lock for one event at a
// time, well below a microsecond, so that a reader never waits for a backlog.
type Hot struct {
	log    *slog.Logger
	health health
	warm   chan struct{} // closed once the journal's end at the start has been folded
	notify func(*journal.Record)

	mu    sync.RWMutex
	seq   store.Seq // the last envelope that was folded, all of it
	end   store.Seq // the journal's at the start, once it is known
	state *state
}

// NewHot returns a fold that has seen nothing.
func NewHot(c Config, log *slog.Logger) *Hot {
	return &Hot{log: log, warm: make(chan struct{}), notify: func(*journal.Record) {}, state: newState(c)}
}

// Notify has f called for each impression that leases have paid for and each seal that
// has ended a lease, in the order of the journal, once [Hot.Lease] knows of it; also of
// those before the start. The fold waits for f, which should be quick and may ask the
// fold. Call it before [Hot.Run], once.
func (h *Hot) Notify(f func(*journal.Record)) { h.notify = f }

// Run folds what the journal has and what comes, until ctx is done. When that cannot
// be read any more, it stops and says so in [Hot.Check], and waits for ctx all the
// same: pages need none of this. A store out of reach is asked again.
func (h *Hot) Run(ctx context.Context, log store.Log) error {
	h.health.keepGoing(ctx, h.log.With("projection", "hot"), func() error { return h.fold(ctx, log) })
	<-ctx.Done()
	return nil
}

func (h *Hot) fold(ctx context.Context, log store.Log) error {
	state, err := log.State(ctx)
	if err != nil {
		return err
	}
	h.mu.Lock()
	h.end = max(h.end, state.Last)
	from := h.seq + 1
	if h.seq == 0 {
		from = max(state.First, 1) // what is in the archive is not known
	}
	h.mu.Unlock()
	h.health.reached()
	h.warmUp(from - 1)
	return journal.Read(ctx, log, from, func(envelope []journal.Record) error {
		for i := range envelope {
			h.mu.Lock()
			ofLease := h.state.apply(&envelope[i])
			h.mu.Unlock()
			if ofLease {
				h.notify(&envelope[i])
			}
		}
		h.warmUp(envelope[0].Seq)
		h.health.recovered()
		return nil
	})
}

// warmUp notes that all envelopes up to seq have been folded.
func (h *Hot) warmUp(seq store.Seq) {
	h.mu.Lock()
	h.seq = seq
	reached := seq >= h.end
	h.mu.Unlock()
	if reached && !h.Warm() {
		close(h.warm)
	}
}

// Warm reports whether everything has been folded that was in the journal at the
// start. Until then batches answer 503, and pages do not ask.
func (h *Hot) Warm() bool {
	select {
	case <-h.warm:
		return true
	default:
		return false
	}
}

// Wait returns when the fold is warm, or with the cause when ctx is done before.
func (h *Hot) Wait(ctx context.Context) error {
	select {
	case <-h.warm:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Check says, for readiness, how far the fold has come. A node whose fold is cold
// should get no traffic. One that has been warm serves from what it knows.
func (h *Hot) Check() obs.Check {
	h.mu.RLock()
	seq, end := h.seq, h.end
	h.mu.RUnlock()
	if h.Warm() {
		return h.health.check("projection hot", obs.Degraded, fmt.Sprintf("folded to envelope %d", seq))
	}
	c := h.health.check("projection hot", obs.NotReady, fmt.Sprintf("folded to envelope %d of %d", seq, end))
	c.State = obs.NotReady
	return c
}

// Seq is the last envelope that has been folded.
func (h *Hot) Seq() store.Seq {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.seq
}

// Folded reports whether an event of this id has been folded, and so need not be
// written again. It is forgotten when its tokens are long dead.
func (h *Hot) Folded(id journal.EventID) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.state.recent.has(id)
}

// Spend is what a campaign has spent on the UTC day that t is in, by the times of
// its impressions. It is known for the day of the journal's latest event and the two
// before it; for older ones it is 0, and the reports know.
func (h *Hot) Spend(campaign string, t time.Time) deckle.Money {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if d := h.state.days[dayNumber(t)]; d != nil {
		return d.campaigns[campaign]
	}
	return 0
}

// SpendAdvertiser is the same for all campaigns of an advertiser.
func (h *Hot) SpendAdvertiser(advertiser string, t time.Time) deckle.Money {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if d := h.state.days[dayNumber(t)]; d != nil {
		return d.advertisers[advertiser]
	}
	return 0
}

// SpendTotal is what a campaign has spent on all days.
func (h *Hot) SpendTotal(campaign string) deckle.Money {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.state.totals[campaign]
}

// Lease is what a lease has paid for, and whether it is known: for 48 hours of
// journal time after its seal, then the reports know.
func (h *Hot) Lease(id string) (Lease, bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if l := h.state.leases[id]; l != nil {
		return *l, true
	}
	return Lease{}, false
}

// Impressions counts the organic impressions that the fold has met, by what became
// of their price.
func (h *Hot) Impressions(b Billing) int64 {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.state.billed[b]
}

// Engagement is what readers did with a creative on a site, as it weighs now.
func (h *Hot) Engagement(site, creative string, now time.Time) Engagement {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if w := h.state.windows[place{site, creative}]; w != nil {
		return w.read(now.UnixMilli())
	}
	return Engagement{}
}

// Traffic is how the traffic of days like now's falls on their hours on a site.
// Traffic is impressions, dog-eared ones included: that is what the journal has.
func (h *Hot) Traffic(site string, now time.Time) Shape {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if t := h.state.traffic[site]; t != nil {
		return t.read(now)
	}
	return newTraffic().weekday
}
