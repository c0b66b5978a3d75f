package serve

import (
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"deckle/internal/catalog"
	"deckle/internal/token"
)

// retryIn is when a browser may ask once more for a page of which nothing is known:
// by then a proxied page's head has been read.
const retryIn = 2 * time.Second

// A writer writes the answer to one batch. It is written by hand because a creative's
// pages are JSON already, and most of it.
type writer struct {
	*Question
	ring *token.Ring
	base string // of beacons: scheme and host
	page string // URL without query

	out []byte
	err error // the first text that is not UTF-8
}

// answer writes the body; explained is nil where nobody asked why.
func (w *writer) answer(d *Decision, explained *Explanation) {
	w.out = make([]byte, 0, 4<<10)
	w.raw(`{"seatbid":[`)
	for i := range d.Outcomes {
		if i > 0 {
			w.raw(",")
		}
		w.outcome(&d.Outcomes[i])
	}
	w.raw("]")
	if len(d.StalePins) > 0 {
		w.raw(`,"stalePins":`)
		w.value(d.StalePins)
	}
	if w.Known {
		w.raw(`,"reclassifyInMs":`)
		w.number(d.Fresh.Milliseconds())
	} else {
		w.raw(`,"retryInMs":`)
		w.number(retryIn.Milliseconds())
	}
	if explained != nil {
		w.raw(`,"explain":`)
		w.value(explained)
	}
	w.raw("}\n")
}

func (w *writer) outcome(o *Outcome) {
	w.raw(`{"id":`)
	w.text(o.Imp.ID)
	if o.Winner != nil {
		w.raw(`,"winner":`)
		w.winner(o)
	} else {
		w.member("reason", o.Reason.String())
	}
	switch {
	case o.Honored:
		w.raw(`,"dogear":{"honored":true}`)
	case o.PinRemoved:
		w.raw(`,"dogear":{"honored":false,"reason":"creative_removed"}`)
	}
	w.raw("}")
}

func (w *writer) winner(o *Outcome) {
	c := o.Winner
	w.raw(`{"creativeId":`)
	w.text(c.Creative.ID)
	w.member("campaignId", c.Campaign.ID)
	w.raw(`,"version":`)
	w.number(int64(c.Version))
	w.raw(`,"pages":`)
	w.out = append(w.out, c.PagesJSON...)
	w.member("landingUrl", c.Content.LandingURL)
	w.tokens(o)
	if !c.End.IsZero() {
		w.raw(`,"pinExpiresAt":`)
		w.number(c.End.UnixMilli())
	}
	w.raw("}")
}

// tokens adds what lets the browser tell of the slot: four beacons and, where the
// campaign wants to be folded, the token for that.
func (w *writer) tokens(o *Outcome) {
	c := o.Winner
	b := token.Beacon{
		Slot: token.Slot{
			Site: w.Site.ID, URL: w.page, Slot: o.Imp.ID, Creative: c.Creative.ID, Version: c.Version,
			Campaign: c.Campaign.ID, Advertiser: c.Advertiser.ID,
		},
		Price: o.Price.Imp(), RequestID: o.RequestID, Leases: o.Leases, Dogeared: o.Honored, Category: o.Category,
	}
	for _, e := range [...]token.Event{token.Imp, token.View, token.Click, token.CTA} {
		w.member(string(e)+"Url", w.base+"/v1/"+string(e)+"?t="+w.ring.MintBeacon(e, b, w.Now))
	}
	if foldable(c) {
		w.member("foldToken", w.ring.MintFold(b.Slot, w.Now))
	}
}

// foldable reports whether readers may bookmark an ad.
func foldable(c *catalog.Candidate) bool { return c.Campaign.DogEar }

func (w *writer) raw(s string)   { w.out = append(w.out, s...) }
func (w *writer) number(n int64) { w.out = strconv.AppendInt(w.out, n, 10) }

// member adds a member to an object that has some already.
func (w *writer) member(name, text string) {
	w.raw(`,"` + name + `":`)
	w.text(text)
}

func (w *writer) text(s string) {
	out, err := jsontext.AppendQuote(w.out, s)
	if err != nil {
		w.fail(err)
		return
	}
	w.out = out
}

func (w *writer) value(v any) {
	data, err := json.Marshal(v)
	if err != nil {
		w.fail(err)
		return
	}
	w.out = append(w.out, data...)
}

func (w *writer) fail(err error) {
	if w.err == nil {
		w.err = fmt.Errorf("write the answer of a batch: %w", err)
	}
}
