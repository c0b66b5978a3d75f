package track

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"deckle/internal/catalog"
	"deckle/internal/journal"
	"deckle/internal/publicapi"
)

// maxDogearBody is how long the body of a dog-ear event may be, in bytes.
const maxDogearBody = 16 << 10

// A dogear is the body of /v1/dogear-event.
type dogear struct {
	Pub       string `json:"pub"`
	URL       string `json:"url"` // not compared with anything, and not kept: the token has one
	Creative  string `json:"creativeId"`
	Slot      string `json:"slotId"`
	Event     string `json:"event"`
	FoldToken string `json:"foldToken"`
	Page      uint16 `json:"page"` // of a fold; 0 is the cover
}

// The events of a dog-ear.
const (
	fold   = "fold"
	unfold = "unfold"
)

// slotCharacters are those of a slot's name, as in a batch: no other slot was filled.
const slotCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

// check reports the first field that is missing or wrong.
func (d *dogear) check() error {
	for _, f := range []struct {
		name, value string
		limit       int // characters
	}{
		{"pub", d.Pub, journal.MaxID},
		{"url", d.URL, journal.MaxURL},
		{"creativeId", d.Creative, journal.MaxID},
		{"slotId", d.Slot, journal.MaxID},
		{"event", d.Event, journal.MaxID},
	} {
		switch {
		case f.value == "":
			return publicapi.Missing(f.name)
		case utf8.RuneCountInString(f.value) > f.limit:
			return publicapi.Wrong(f.name, fmt.Sprintf("must have at most %d characters", f.limit))
		}
	}
	switch {
	case strings.Trim(d.Slot, slotCharacters) != "":
		return publicapi.Wrong("slotId", "must be 1 to 64 of A-Z a-z 0-9 _ -")
	case d.Event != fold && d.Event != unfold:
		return publicapi.Wrong("event", `must be "fold" or "unfold"`)
	case d.Event == fold && d.FoldToken == "":
		return publicapi.Missing("foldToken")
	}
	return nil
}

// dogear takes a fold or an unfold.
func (t *Tracker) dogear(r *publicapi.Request) error {
	now := time.Now()
	marks, err := t.hygiene.admit(journal.Fold, r.Request, now)
	if err != nil {
		return err
	}
	var d dogear
	if err := r.ReadJSON(maxDogearBody, &d); err != nil {
		return err
	}
	if err := d.check(); err != nil {
		return err
	}
	known := t.config.Catalog()
	if _, ok := known.Site(d.Pub); !ok {
		return publicapi.UnknownPub()
	}
	if d.Event == unfold {
		return t.unfold(r, &d, known, marks&journal.SuspectRate, now)
	}
	f, err := t.config.Tokens.Fold(d.FoldToken, d.Pub, d.Slot, d.Creative, now)
	if err != nil {
		return t.refuse(fold, err)
	}
	e := journal.Event{Kind: journal.Fold, At: now, RequestID: f.RequestID, Page: d.Page, Suspect: marks}
	place(&e, &f.Slot)
	return t.record(r.Context(), fold, &e)
}

// unfold takes the removal of a bookmark, which a reader may always do: the creative
// may be long gone, and its token too. A token that is valid says that the bookmark
// was one.
//
// Without it there is only the word of a stranger. It is taken for creatives that
// are in the catalog or have been; one that never was has no retention to count in,
// and its id comes into no journal and no report. Nor does anything while there is
// too much of it: an address, or a node, has a limit.
func (t *Tracker) unfold(r *publicapi.Request, d *dogear, known *catalog.Snapshot, marks journal.Suspect, now time.Time) error {
	e := journal.Event{Kind: journal.Unfold, At: now, Suspect: marks}
	if f, err := t.config.Tokens.Fold(d.FoldToken, d.Pub, d.Slot, d.Creative, now); err == nil {
		e.Verified, e.RequestID = true, f.RequestID
		place(&e, &f.Slot)
		return t.record(r.Context(), unfold, &e)
	}
	var ok bool
	if e.Advertiser, e.Campaign, ok = ownerOf(known, d.Pub, d.Creative); !ok {
		t.metrics.events.WithLabelValues(unfold, outcomeUnknown).Inc()
		return nil
	}
	if !t.hygiene.mayGoUnproven(marks, now) {
		t.metrics.events.WithLabelValues(unfold, outcomeDropped).Inc()
		return nil
	}
	e.Site, e.Slot, e.Creative, e.RequestID = d.Pub, d.Slot, d.Creative, freshRequestID()
	return t.record(r.Context(), unfold, &e)
}

// ownerOf is whose creative it is or was, as far as that is still known, if it is or
// was one of the publisher that has the site.
func ownerOf(known *catalog.Snapshot, site, creative string) (advertiser, campaign string, ok bool) {
	of, ok := known.Record(catalog.KindCreative, creative)
	if !ok {
		return "", "", false
	}
	c, ok := known.Record(catalog.KindCampaign, of.Entity.(*catalog.Creative).Campaign)
	if !ok {
		return "", "", true
	}
	a, ok := known.Record(catalog.KindAdvertiser, c.Entity.(*catalog.Campaign).Advertiser)
	if !ok {
		return "", c.EntityID(), true
	}
	s, ok := known.Site(site)
	if !ok || s.Publisher != a.Entity.(*catalog.Advertiser).Publisher {
		return "", "", false
	}
	return a.EntityID(), c.EntityID(), true
}

// freshRequestID is one that nothing else has.
func freshRequestID() string {
	var id [8]byte
	rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}
