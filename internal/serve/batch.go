package serve

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"deckle"
	"deckle/internal/publicapi"
)

// Limits of a batch.
const (
	maxBody   = 64 << 10 // bytes
	maxImps   = 40
	maxPins   = 200
	maxSeen   = 500
	maxRecent = 40     // as many as a page has slots
	maxURL    = 2048   // bytes, of an address as browsers write it: that is characters
	maxID     = 64     // characters
	maxSide   = 10_000 // CSS pixels
)

// A Batch is what a browser asks for a page. It never has more than what a reader's
// own browser keeps, and none of that names the reader.
type Batch struct {
	Pub    string          `json:"pub"` // id of the site
	URL    string          `json:"url"` // of the page
	Imps   []Imp           `json:"imp"`
	Pins   []Pin           `json:"pins"`   // all of the site, one a slot
	Seen   map[string]Seen `json:"seen"`   // by creative
	Recent []string        `json:"recent"` // campaigns that were rendered in the last 15 s
	Debug  string          `json:"debug"`  // a debug token: the answer explains itself
}

// An Imp is one slot of the page. No two have the same id: it is what bookmarks,
// tokens and reports know the slot by.
type Imp struct {
	ID string `json:"id"`
	W  int    `json:"w"` // CSS pixels
	H  int    `json:"h"`
}

// A Pin is a reader's bookmark: the creative that was folded in a slot.
type Pin struct {
	Slot     string `json:"slotId"`
	Creative string `json:"creativeId"`
}

// Seen is how often a browser saw a creative, bookmarks apart.
type Seen struct {
	Hour uint32 `json:"h"`
	Day  uint32 `json:"d"`
	Week uint32 `json:"w"`
}

func (i *Imp) size() deckle.Size { return deckle.Size{W: i.W, H: i.H} }

// validate reports the first field that is missing or wrong, as a
// [*publicapi.Error]. Whether there is such a site is for others to say.
func (b *Batch) validate() error {
	for _, check := range []func(*Batch) error{(*Batch).checkPage, (*Batch).checkImps, (*Batch).checkPins, (*Batch).checkSeen} {
		if err := check(b); err != nil {
			return err
		}
	}
	return nil
}

func (b *Batch) checkPage() error {
	if err := checkID("pub", b.Pub); err != nil {
		return err
	}
	switch {
	case b.URL == "":
		return publicapi.Missing("url")
	case len(b.URL) > maxURL:
		return publicapi.Wrong("url", "is longer than "+strconv.Itoa(maxURL)+" characters")
	}
	return nil
}

func (b *Batch) checkImps() error {
	switch {
	case len(b.Imps) == 0:
		return publicapi.Missing("imp")
	case len(b.Imps) > maxImps:
		return tooMany("imp", maxImps)
	}
	for i := range b.Imps {
		imp := &b.Imps[i]
		if err := checkID(item("imp", i, "id"), imp.ID); err != nil {
			return err
		}
		if err := checkSide(item("imp", i, "w"), imp.W); err != nil {
			return err
		}
		if err := checkSide(item("imp", i, "h"), imp.H); err != nil {
			return err
		}
		for j := range i {
			if b.Imps[j].ID == imp.ID {
				return publicapi.Wrong(item("imp", i, "id"), "is that of another imp: a slot is asked for once")
			}
		}
	}
	return nil
}

func (b *Batch) checkPins() error {
	if len(b.Pins) > maxPins {
		return tooMany("pins", maxPins)
	}
	for i := range b.Pins {
		pin := &b.Pins[i]
		if err := checkKept(item("pins", i, "slotId"), pin.Slot); err != nil {
			return err
		}
		if err := checkKept(item("pins", i, "creativeId"), pin.Creative); err != nil {
			return err
		}
		for j := range i {
			if b.Pins[j].Slot == pin.Slot {
				return publicapi.Wrong(item("pins", i, "slotId"), "is that of another pin: a slot has one bookmark")
			}
		}
	}
	return nil
}

func (b *Batch) checkSeen() error {
	if len(b.Seen) > maxSeen {
		return tooMany("seen", maxSeen)
	}
	for creative := range b.Seen {
		if err := checkKept("seen", creative); err != nil {
			return err
		}
	}
	if len(b.Recent) > maxRecent {
		return tooMany("recent", maxRecent)
	}
	for i, campaign := range b.Recent {
		if err := checkKept("recent["+strconv.Itoa(i)+"]", campaign); err != nil {
			return err
		}
	}
	return nil
}

// pin is the bookmark on a slot; "" for none.
func (b *Batch) pin(slot string) string {
	for i := range b.Pins {
		if b.Pins[i].Slot == slot {
			return b.Pins[i].Creative
		}
	}
	return ""
}

// asks reports whether a slot is in the batch.
func (b *Batch) asks(slot string) bool {
	for i := range b.Imps {
		if b.Imps[i].ID == slot {
			return true
		}
	}
	return false
}

// checkID is for what we give a name to: a site, a slot.
func checkID(field, id string) error {
	const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	switch {
	case id == "":
		return publicapi.Missing(field)
	case len(id) > maxID || strings.Trim(id, allowed) != "":
		return publicapi.Wrong(field, "must be 1 to 64 of A-Z a-z 0-9 _ -")
	}
	return nil
}

// checkKept is for what a browser has kept, maybe for long. It is only compared with
// what we know.
func checkKept(field, id string) error {
	switch {
	case id == "":
		return publicapi.Missing(field)
	case utf8.RuneCountInString(id) > maxID:
		return publicapi.Wrong(field, "is longer than 64 characters")
	}
	return nil
}

func checkSide(field string, px int) error {
	switch {
	case px == 0:
		return publicapi.Missing(field)
	case px < 0 || px > maxSide:
		return publicapi.Wrong(field, "must be 1 to "+strconv.Itoa(maxSide)+" CSS pixels")
	}
	return nil
}

func tooMany(field string, limit int) error {
	return publicapi.Wrong(field, "has more than "+strconv.Itoa(limit))
}

func item(list string, i int, field string) string {
	return list + "[" + strconv.Itoa(i) + "]." + field
}
