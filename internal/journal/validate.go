package journal

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of an event's fields.
const (
	MaxID     = 64    // bytes of an id: of a site, slot, advertiser, campaign, creative, category, lease
	MaxURL    = 2_048 // bytes of a page's URL
	MaxLine   = 160   // bytes of a line's name
	MaxLeases = 8     // of one impression
)

// MaxAhead is how far an event's At may be ahead: of the clock of the node that
// appends it, and of the store's when it is read. Clocks that serve pages are within
// seconds of each other; and what is counted by day, or forgotten after a while, is so
// by the latest At so far, which one event must not carry off. It is the same on
// every node, since all of them have to read the same.
const MaxAhead = time.Hour

// checkAhead reports an At that a clock which says now cannot have told.
func (e *Event) checkAhead(now time.Time) error {
	if e.At.After(now.Add(MaxAhead)) {
		return e.wrong("At", fmt.Sprintf("is more than %v ahead of the clock", MaxAhead))
	}
	return nil
}

// A FieldError says which field of an event cannot be journaled, and why. It
// holds nothing of the field's content.
type FieldError struct {
	Kind    Kind
	Field   string // as the struct has it: "URL"
	Problem string
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("%s: %s %s", e.Kind, e.Field, e.Problem)
}

// Validate reports the first thing that is wrong with an event, as a
// [*FieldError]: a field that its kind needs and that is missing, one that its
// kind does not have, or one whose content is out of its limits.
//
//	all            At between 1970 and 9999
//	of readers     Site, Slot, Creative, RequestID; Advertiser, Campaign, Version and URL,
//	               without which only an unfold may be; Category, Dogeared, Suspect free
//	Impression     Price, Leases; a price is paid by at least one lease, and a
//	               dog-eared impression has neither
//	Fold           Page
//	Unfold         Verified
//	Lease, Seal    Lease, Line
//	Lease          Amount, above 0
func (e *Event) Validate() error {
	if !e.Kind.known() {
		return e.wrong("Kind", "is not known")
	}
	if ms := e.At.UnixMilli(); ms < 0 || ms > maxMilli {
		return e.wrong("At", "is not between 1970 and 9999")
	}
	if err := e.validateScope(); err != nil {
		return err
	}
	if e.Kind.ofReader() {
		return e.validateReader()
	}
	return e.validateLease()
}

// validateScope reports a field that is set and that the event's kind does not
// have.
func (e *Event) validateScope() error {
	reader := e.Kind.ofReader()
	for _, f := range []struct {
		name     string
		set, has bool
	}{
		{"Site", e.Site != "", reader},
		{"Slot", e.Slot != "", reader},
		{"Advertiser", e.Advertiser != "", reader},
		{"Campaign", e.Campaign != "", reader},
		{"Creative", e.Creative != "", reader},
		{"Version", e.Version != 0, reader},
		{"URL", e.URL != "", reader},
		{"Category", e.Category != "", reader},
		{"RequestID", e.RequestID != "", reader},
		{"Dogeared", e.Dogeared, reader},
		{"Suspect", e.Suspect != 0, reader},
		{"Price", e.Price != 0, e.Kind == Impression},
		{"Leases", len(e.Leases) > 0, e.Kind == Impression},
		{"Page", e.Page != 0, e.Kind == Fold},
		{"Verified", e.Verified, e.Kind == Unfold},
		{"Lease", e.Lease != "", !reader},
		{"Line", e.Line != "", !reader},
		{"Amount", e.Amount != 0, e.Kind == Lease},
	} {
		if f.set && !f.has {
			return e.wrong(f.name, "does not belong to this kind")
		}
	}
	return nil
}

func (e *Event) validateReader() error {
	optional := e.Kind == Unfold // its creative may have left the catalog long ago
	for _, f := range []struct {
		name, value string
		optional    bool
	}{
		{"Site", e.Site, false},
		{"Slot", e.Slot, false},
		{"Creative", e.Creative, false},
		{"Advertiser", e.Advertiser, optional},
		{"Campaign", e.Campaign, optional},
		{"Category", e.Category, true},
	} {
		if err := e.validateText(f.name, f.value, MaxID, f.optional); err != nil {
			return err
		}
	}
	if e.Version == 0 && !optional {
		return e.wrong("Version", "is missing")
	}
	if _, ok := ParseRequestID(e.RequestID); !ok {
		return e.wrong("RequestID", "is not 16 lower-case hexadecimal digits")
	}
	if e.Suspect&^(SuspectBot|SuspectDataCentre|SuspectRate) != 0 {
		return e.wrong("Suspect", "has a mark that is not known")
	}
	if err := e.validateURL(optional); err != nil {
		return err
	}
	return e.validatePrice()
}

// validateURL makes sure that there is nothing in the URL that could say who the
// reader is: a query, a fragment, credentials.
func (e *Event) validateURL(optional bool) error {
	if err := e.validateText("URL", e.URL, MaxURL, optional); err != nil || e.URL == "" {
		return err
	}
	rest, ok := strings.CutPrefix(e.URL, "https://")
	if !ok {
		rest, ok = strings.CutPrefix(e.URL, "http://")
	}
	host, _, _ := strings.Cut(rest, "/")
	switch {
	case strings.ContainsAny(e.URL, "?#"):
		return e.wrong("URL", "has a query or a fragment")
	case !ok || host == "":
		return e.wrong("URL", "is not an absolute http or https URL")
	case strings.Contains(host, "@"):
		return e.wrong("URL", "has credentials")
	}
	return nil
}

func (e *Event) validatePrice() error {
	switch {
	case e.Price < 0:
		return e.wrong("Price", "is negative")
	case len(e.Leases) > MaxLeases:
		return e.wrong("Leases", fmt.Sprintf("are more than %d", MaxLeases))
	case e.Dogeared && e.Price > 0:
		return e.wrong("Price", "is that of a dog-eared impression, which is free")
	case e.Dogeared && len(e.Leases) > 0:
		return e.wrong("Leases", "pay for a dog-eared impression, which is free")
	case e.Price > 0 && len(e.Leases) == 0:
		return e.wrong("Leases", "are missing: nothing pays the price")
	}
	for i, l := range e.Leases {
		if err := e.validateText("Leases", l, MaxID, false); err != nil {
			return err
		}
		if slices.Contains(e.Leases[:i], l) {
			return e.wrong("Leases", "name a lease twice")
		}
	}
	return nil
}

func (e *Event) validateLease() error {
	if err := e.validateText("Lease", e.Lease, MaxID, false); err != nil {
		return err
	}
	if err := e.validateText("Line", e.Line, MaxLine, false); err != nil {
		return err
	}
	if of, id, _ := strings.Cut(e.Line, "/"); of != "campaign" && of != "advertiser" || id == "" {
		return e.wrong("Line", "is of no campaign and no advertiser")
	}
	if e.Kind == Lease && e.Amount <= 0 {
		return e.wrong("Amount", "is not above zero")
	}
	return nil
}

// validateText is for every field with text. Control characters are in no id and
// in no URL.
func (e *Event) validateText(field, text string, limit int, optional bool) error {
	switch {
	case text == "" && !optional:
		return e.wrong(field, "is missing")
	case len(text) > limit:
		return e.wrong(field, fmt.Sprintf("is longer than %d bytes", limit))
	case !utf8.ValidString(text):
		return e.wrong(field, "is not UTF-8")
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }):
		return e.wrong(field, "has a control character")
	}
	return nil
}

func (e *Event) wrong(field, problem string) error {
	return &FieldError{Kind: e.Kind, Field: field, Problem: problem}
}

// ParseRequestID reads 16 lower-case hexadecimal digits.
func ParseRequestID(s string) (id uint64, ok bool) {
	if len(s) != 16 {
		return 0, false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			id = id<<4 | uint64(c-'0')
		case c >= 'a' && c <= 'f':
			id = id<<4 | uint64(c-'a'+10)
		default:
			return 0, false
		}
	}
	return id, true
}
