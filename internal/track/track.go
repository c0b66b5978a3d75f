// Package track takes what readers' browsers tell (flow C): a token is verified, the
// event is in the journal, and only then the browser gets its 204.
//
// # What a 204 promises
//
// The event, or one of the same kind and request id before it, is durable. So a
// repeat gets 204 as well and is not written again: where this node has folded it
// from the journal, or has written it lately. While the first is on its way, repeats
// wait for it and share its fate. A 503 promises nothing: the event may be in the
// journal, and telling it again is harmless, because the fold counts an id once.
//
// # What counts
//
// What the token says, never what comes beside it: price, leases, campaign and
// whether it was a bookmark are signed. What looks like a program, a data centre or
// more than a reader does is journaled with marks of hygiene, and answered like
// everything else; it counts for nothing.
//
// Nothing of a reader gets any further than this package: an address decides about
// marks and limits, in memory, and a User-Agent about a mark.
package track

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"deckle/internal/catalog"
	"deckle/internal/journal"
	"deckle/internal/publicapi"
	"deckle/internal/store"
	"deckle/internal/token"
)

// A Journal makes events durable. [*journal.Journal] is one; of its contract it is
// essential here that Append returns nil only for what is durable, and that it does
// not wait for longer than some seconds.
type Journal interface {
	Append(ctx context.Context, events ...journal.Event) (store.Seq, error)
}

// Config is what a [Tracker] works with. Functions are called concurrently.
type Config struct {
	Tokens  *token.Verifier
	Journal Journal
	Catalog func() *catalog.Snapshot

	// Address is where a request comes from, behind trusted proxies.
	Address func(*http.Request) netip.Addr

	// Bot reports whether a User-Agent is that of a program. Nil: none is.
	Bot func(agent string) bool

	// DataCentre reports whether an address is one of a data centre. Nil: none is.
	DataCentre func(netip.Addr) bool

	// Folded reports whether this node has folded an event from the journal, which
	// then need not be written again. Nil: that is not known.
	Folded func(journal.EventID) bool

	// Ready reports whether this node may take events: its clock is right, say. Nil:
	// always. It may not as long as the catalog has not been read.
	Ready func() bool

	Limits Limits // zero: [DefaultLimits]
}

// A Tracker takes events.
type Tracker struct {
	config  Config
	hygiene *hygiene
	once    *once
	metrics *Metrics
}

// New makes a tracker.
func New(c Config, m *Metrics) *Tracker {
	return &Tracker{config: c, hygiene: newHygiene(c), once: newOnce(remembered), metrics: m}
}

// beaconKinds are the kinds of events that beacons tell.
var beaconKinds = map[token.Event]journal.Kind{
	token.Imp:   journal.Impression,
	token.View:  journal.View,
	token.Click: journal.Click,
	token.CTA:   journal.CTA,
}

// DogearPath is where folds and unfolds are told.
const DogearPath = "/v1/dogear-event"

// Endpoints are the paths of flow C with their handlers. open gives the tracker, and
// nil while the store is not open: then every request but OPTIONS gets 503.
//
// A beacon is a GET. It may also be a POST, whose body means nothing: that is all
// that navigator.sendBeacon can send. It may not be a HEAD, which must change nothing
// (RFC 9110 section 9.2.1).
func Endpoints(api *publicapi.API, open func() *Tracker) map[string]http.Handler {
	with := func(take func(*Tracker, *publicapi.Request) error) publicapi.Func {
		return func(r *publicapi.Request) (publicapi.Answer, error) {
			t := open()
			if t == nil || !t.ready() {
				return publicapi.Answer{}, publicapi.Unavailable(retryNotReady)
			}
			return publicapi.Answer{}, take(t, r)
		}
	}
	handlers := map[string]http.Handler{
		DogearPath: api.Handler("dogear-event", with((*Tracker).dogear), http.MethodPost),
	}
	for event, kind := range beaconKinds {
		handlers["/v1/"+string(event)] = api.Handler(string(event), with(func(t *Tracker, r *publicapi.Request) error {
			return t.beacon(event, kind, r)
		}), http.MethodGet, http.MethodPost)
	}
	return handlers
}

// When to ask again, by why there was no answer.
const (
	retryNotReady = 5 * time.Second
	retryBusy     = time.Second // the journal has a queue, which moves
	retryStore    = 5 * time.Second
	retryFull     = time.Minute // somebody has to make room
)

func (t *Tracker) ready() bool {
	return t.config.Catalog().Loaded() && (t.config.Ready == nil || t.config.Ready())
}

// beacon takes one of the events of a filled slot.
func (t *Tracker) beacon(event token.Event, kind journal.Kind, r *publicapi.Request) error {
	now := time.Now()
	marks, err := t.hygiene.admit(kind, r.Request, now)
	if err != nil {
		return err
	}
	b, err := t.config.Tokens.Beacon(event, tokenOf(r.URL.RawQuery), now)
	if err != nil {
		return t.refuse(string(event), err)
	}
	e := journal.Event{
		Kind: kind, At: now,
		Category: b.Category, RequestID: b.RequestID,
		Dogeared: b.Dogeared, Suspect: marks,
	}
	place(&e, &b.Slot)
	if kind == journal.Impression && !b.Dogeared { // an honoured pin is free, whatever it says
		e.Price, e.Leases = b.Price, b.Leases
	}
	return t.record(r.Context(), string(event), &e)
}

// place says what was shown, and where.
func place(e *journal.Event, s *token.Slot) {
	e.Site, e.Slot, e.URL = s.Site, s.Slot, s.URL
	e.Advertiser, e.Campaign, e.Creative, e.Version = s.Advertiser, s.Campaign, s.Creative, s.Version
}

// tokenOf is the parameter t of a query; empty, which is no token, if there is none.
func tokenOf(query string) string {
	for pair := range strings.SplitSeq(query, "&") {
		if value, ok := strings.CutPrefix(pair, "t="); ok {
			text, err := url.QueryUnescape(value)
			if err != nil {
				return ""
			}
			return text
		}
	}
	return ""
}

// refuse is 403 with the reason why a token is not believed.
func (t *Tracker) refuse(event string, err error) error {
	e, ok := errors.AsType[*token.Error](err)
	if !ok {
		return err
	}
	t.metrics.events.WithLabelValues(event, string(e.Reason)).Inc()
	return publicapi.Forbidden(string(e.Reason), "this token is not valid here and now")
}

// record makes an event durable, once. event is its name in metrics.
func (t *Tracker) record(ctx context.Context, event string, e *journal.Event) error {
	id := e.ID()
	if t.config.Folded != nil && t.config.Folded(id) {
		t.metrics.events.WithLabelValues(event, outcomeRepeat).Inc()
		return nil
	}
	outcome := outcomeRepeat // unless it is written here
	err := t.once.do(ctx, id, func() error {
		outcome = outcomeCounted
		if e.Suspect != 0 {
			outcome = outcomeSuspect
		}
		// It has happened, even if the reader hangs up: those who wait for this one too
		// must not lose it. The journal bounds the wait.
		_, err := t.config.Journal.Append(context.WithoutCancel(ctx), *e)
		return err
	})
	switch {
	case err == nil:
	case errors.Is(err, store.ErrUnavailable):
		outcome = outcomeUnavailable
	default:
		outcome = outcomeFailed
	}
	t.metrics.events.WithLabelValues(event, outcome).Inc()
	if outcome == outcomeSuspect {
		t.metrics.suspected(e.Suspect)
	}
	return answerFor(err)
}

// answerFor is what a browser is told when an event could not be written.
func answerFor(err error) error {
	switch {
	case errors.Is(err, journal.ErrBusy):
		return publicapi.Unavailable(retryBusy)
	case errors.Is(err, store.ErrFull):
		return publicapi.Unavailable(retryFull)
	case errors.Is(err, store.ErrUnavailable):
		return publicapi.Unavailable(retryStore)
	}
	return err
}
