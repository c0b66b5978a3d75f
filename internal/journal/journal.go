// Package journal is what happened: an append-only record of events that count,
// durable before anybody is told so, and read in one order by everybody.
package journal

import (
	"time"

	"deckle"
	"deckle/internal/store"
)

// A Kind says what happened.
type Kind uint8

// The kinds of events. Their numbers are on disk and never change.
const (
	Impression Kind = 1 // the cover was painted in a visible document
	View       Kind = 2 // half of it was in view for a second (MRC); unbilled
	Click      Kind = 3 // the magazine was expanded
	CTA        Kind = 4 // the landing page was opened
	Fold       Kind = 5 // the corner was folded: a bookmark
	Unfold     Kind = 6 // the bookmark was removed
	Lease      Kind = 7 // a node took a part of a line's budget
	Seal       Kind = 8 // that part pays for nothing any more
)

// An EventID makes an event count once: 16 bytes that are the same however often
// and through whichever node it is told.
type EventID [16]byte

// An Event is one thing that happened. There is nothing in it that says to whom:
// no address, no agent, no cookie, no identifier.
type Event struct {
	Kind Kind
	ID   EventID
	At   time.Time // of the node that took it; to the millisecond

	// What was shown, and where. Empty for Lease and Seal.
	Site, Slot, Advertiser, Campaign, Creative string
	Version                                    uint32 // of the creative
	URL                                        string // of the page, without query
	Category                                   string // IAB content category that priced it; may be empty

	RequestID string       // 16 hexadecimal digits: the filled slot it belongs to
	Price     deckle.Money // of this impression; 0 for a dog-eared one and for other kinds
	Leases    []string     // those that pay for it, by id
	Dogeared  bool         // a re-encounter by an honoured pin
	Suspect   Suspect      // marks of hygiene; such an event counts for nothing
	Page      uint16       // of a Fold: which page's corner, the cover is 0
	Verified  bool         // of an Unfold: it came with a valid fold token

	// Of Lease and Seal: the lease, its line ("campaign/ID", "campaign/ID/DATE",
	// "advertiser/ID/DATE"), and how much of its budget it is (Lease).
	Lease, Line string
	Amount      deckle.Money
}

// Suspect are marks of hygiene, as bits.
type Suspect uint8

const (
	SuspectBot        Suspect = 1 << iota // a program by its User-Agent
	SuspectDataCentre                     // an address of a data centre
	SuspectRate                           // more than a reader does
)

// A Record is an event at its place in the journal. Several events share the
// sequence of their envelope and are ordered by Index.
type Record struct {
	Seq   store.Seq
	Index int // within the envelope
	Event
}
