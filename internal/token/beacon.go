package token

import (
	"encoding/binary"
	"strings"
	"time"

	"deckle"
)

// An Event is what a beacon tells; it is the literal in its mac.
type Event string

// The events that have beacons.
const (
	Imp   Event = "imp"   // the cover was painted in a visible document
	View  Event = "view"  // half of it was in view for a second
	Click Event = "click" // the magazine was expanded
	CTA   Event = "cta"   // the landing page was opened
)

// A Beacon is what a beacon token says: the filled slot, and what its impression costs.
type Beacon struct {
	Slot
	Price     deckle.Money // of the impression, in all four tokens of the slot
	RequestID string       // 16 lower-case hexadecimal digits; fresh for each filled slot
	Leases    []string     // those that pay, by id, none of them empty
	Dogeared  bool         // an honoured pin filled the slot
	Category  string       // IAB content category that priced it; may be empty
}

// MintBeacon makes the token of one of a filled slot's four beacons.
func (r *Ring) MintBeacon(e Event, b Beacon, now time.Time) string {
	g := r.current.signer()
	defer r.current.signers.Put(g)
	nonce := string(g.slot(&b.Slot, now))
	g.sealed(b.Price, e, nonce)
	g.field(b.RequestID)
	g.leases(b.Leases)
	g.flag(b.Dogeared)
	g.field(b.Category)
	return g.token(string(e))
}

// Beacon believes the token of a beacon that came for an event.
func (v *Verifier) Beacon(e Event, text string, now time.Time) (Beacon, error) {
	o, err := open(text, beaconFields)
	if err != nil {
		return Beacon{}, err
	}
	r := reader{o: o}
	s, bucket := r.slot()
	b := Beacon{
		Slot:      s,
		RequestID: r.request(fieldRequest),
		Leases:    r.leases(fieldLeases),
		Dogeared:  r.flag(fieldDogeared),
		Category:  r.text(fieldCategory),
	}
	var sealed [8]byte
	r.bytes(fieldPrice, sealed[:])
	if r.bad {
		return Beacon{}, &Error{BadPayload}
	}
	k := v.key(s.Site, o, fieldBucket, string(e))
	if k == nil {
		return Beacon{}, &Error{BadSignature}
	}
	if err := checkAge(bucket, now, v.window(e)+v.MaxSkew, v.MaxSkew); err != nil {
		return Beacon{}, err
	}
	b.Price = k.unsealed(sealed, e, o.raw[fieldNonce])
	return b, nil
}

func (v *Verifier) window(e Event) time.Duration {
	if e == Click || e == CTA {
		return v.ClickWindow
	}
	return v.BeaconWindow
}

// sealed adds the price, sealed.
func (g *signer) sealed(price deckle.Money, e Event, nonce string) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(price)^g.pad(e, nonce))
	g.payload = encoding.AppendEncode(append(g.payload, '|'), b[:])
}

func (k *key) unsealed(sealed [8]byte, e Event, nonce string) deckle.Money {
	g := k.signer()
	defer k.signers.Put(g)
	return deckle.Money(binary.BigEndian.Uint64(sealed[:]) ^ g.pad(e, nonce))
}

// pad is what a price is sealed with. It is used once: the nonce is the token's own.
func (g *signer) pad(e Event, nonce string) uint64 {
	g.text = append(append(g.text[:0], "price|"...), e...)
	g.text = append(append(g.text, '|'), nonce...)
	return binary.BigEndian.Uint64(g.hmac())
}

func (g *signer) leases(ids []string) {
	var list []byte
	for i, id := range ids {
		if i > 0 {
			list = append(list, ',')
		}
		list = appendEscaped(list, id, ',')
	}
	g.field(string(list))
}

func (r *reader) leases(i int) []string {
	list := r.text(i)
	if list == "" {
		return nil
	}
	ids := make([]string, 0, 1+strings.Count(list, ","))
	for raw := range strings.SplitSeq(list, ",") {
		id, ok := unescape(raw, ',')
		r.bad = r.bad || !ok || id == ""
		ids = append(ids, id)
	}
	return ids
}

func (g *signer) flag(set bool) {
	if set {
		g.field("1")
	} else {
		g.field("0")
	}
}

func (r *reader) flag(i int) bool {
	raw := r.o.raw[i]
	r.bad = r.bad || raw != "0" && raw != "1"
	return raw == "1"
}

// request reads a request id.
func (r *reader) request(i int) string {
	raw := r.o.raw[i]
	r.bad = r.bad || len(raw) != 16 || strings.Trim(raw, "0123456789abcdef") != ""
	return raw
}
