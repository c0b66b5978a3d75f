package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
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

// kindNames are the kinds by their numbers, as metrics and reports have them.
var kindNames = [...]string{
	Impression: "impression", View: "view", Click: "click", CTA: "cta",
	Fold: "fold", Unfold: "unfold", Lease: "lease", Seal: "seal",
}

// String is the kind's name, as metrics and reports have it: "impression".
func (k Kind) String() string {
	if !k.known() {
		return "kind " + strconv.Itoa(int(k))
	}
	return kindNames[k]
}

func (k Kind) known() bool { return k >= Impression && k <= Seal }

// ofReader reports whether it is something that a reader did, and so belongs to a
// filled slot; the others belong to a lease.
func (k Kind) ofReader() bool { return k >= Impression && k <= Unfold }

// An EventID makes an event count once: it is the same however often and through
// whichever node the event is told.
type EventID [16]byte

// String is the id in hexadecimal.
func (id EventID) String() string { return hex.EncodeToString(id[:]) }

// ID is the id of the event of this kind about subject: a request id (16
// hexadecimal digits) for what readers do, the id of the lease for Lease and
// Seal. A slot that was filled once so has one impression, one view, one click and
// one CTA; a fold token one fold, however often it is replayed; and a lease is
// taken once and sealed once.
//
// The first byte is the kind, the rest the first 15 bytes of the SHA-256 of
// subject.
func (k Kind) ID(subject string) EventID {
	sum := sha256.Sum256([]byte(subject))
	id := EventID{byte(k)}
	copy(id[1:], sum[:])
	return id
}

// An Event is one thing that happened. There is nothing in it that says to whom:
// no address, no agent, no cookie, no identifier. Which fields are set is a
// matter of its kind; see [Event.Validate].
type Event struct {
	Kind Kind
	At   time.Time // by the clock of the node that took it; to the millisecond, UTC; see [MaxAhead]

	// What was shown, and where. Empty for Lease and Seal.
	Site, Slot, Advertiser, Campaign, Creative string
	Version                                    uint32 // of the creative, from 1
	URL                                        string // of the page, without query
	Category                                   string // IAB content category that priced it; may be empty

	// RequestID is the filled slot that it belongs to: 16 lower-case hexadecimal
	// digits. A fold, and an unfold with a fold token, has that of the token; an
	// unfold without one has a fresh one.
	RequestID string

	Price    deckle.Money // of this impression; 0 for a dog-eared one and for other kinds
	Leases   []string     // those that pay for it, by id
	Dogeared bool         // a re-encounter by an honoured pin
	Suspect  Suspect      // marks of hygiene; such an event counts for nothing
	Page     uint16       // of a Fold: which page's corner, the cover is 0
	Verified bool         // of an Unfold: it came with a valid fold token

	// Of Lease and Seal: the lease, its line ("campaign/ID", "campaign/ID/DATE",
	// "advertiser/ID/DATE"), and how much of its budget it is (Lease).
	Lease, Line string
	Amount      deckle.Money
}

// ID is what makes the event count once. See [Kind.ID].
func (e *Event) ID() EventID {
	if e.Kind.ofReader() {
		return e.Kind.ID(e.RequestID)
	}
	return e.Kind.ID(e.Lease)
}

// Suspect are marks of hygiene, as bits.
type Suspect uint8

const (
	SuspectBot        Suspect = 1 << iota // a program by its User-Agent
	SuspectDataCentre                     // an address of a data centre
	SuspectRate                           // more than a reader does
)

// A Record is an event at its place in the journal. The events of one envelope
// share its sequence and are ordered by Index, from 0.
type Record struct {
	Seq   store.Seq
	Index int
	Event
}
