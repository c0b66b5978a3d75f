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
	g.slot(&b.Slot, now)
	g.sealed(b.Price, e)
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
	s, bucket := o.slot()
	b := Beacon{
		Slot:      s,
		RequestID: o.request(fieldRequest),
		Leases:    o.leases(fieldLeases),
		Dogeared:  o.flag(fieldDogeared),
		Category:  o.text(fieldCategory),
	}
	var sealed [8]byte
	o.bytes(fieldPrice, sealed[:])
	if o.bad {
		return Beacon{}, &Error{BadPayload}
	}
	k := v.key(s.Site, &o, fieldBucket, string(e))
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

// sealed adds the price, sealed with the nonce that has just been added.
func (g *signer) sealed(price deckle.Money, e Event) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(price)^pad(g, e, g.payload[len(g.payload)-nonceText:]))
	g.payload = encoding.AppendEncode(append(g.payload, '|'), b[:])
}

func (k *key) unsealed(sealed [8]byte, e Event, nonce string) deckle.Money {
	g := k.signer()
	defer k.signers.Put(g)
	return deckle.Money(binary.BigEndian.Uint64(sealed[:]) ^ pad(g, e, nonce))
}

// pad is what a price is sealed with. It is used once: the nonce is the token's own.
func pad[T string | []byte](g *signer, e Event, nonce T) uint64 {
	g.text = append(append(g.text[:0], "price|"...), e...)
	g.text = append(append(g.text, '|'), nonce...)
	return binary.BigEndian.Uint64(g.hmac())
}

// leases adds the list, which is escaped within and then again as every field.
func (g *signer) leases(ids []string) {
	g.list = g.list[:0]
	for i, id := range ids {
		if i > 0 {
			g.list = append(g.list, ',')
		}
		g.list = appendEscaped(g.list, id, ',')
	}
	g.payload = appendEscaped(append(g.payload, '|'), g.list, '|')
}

func (o *opened) leases(i int) []string {
	list := o.text(i)
	if list == "" {
		return nil
	}
	ids := make([]string, 0, 1+strings.Count(list, ","))
	for raw := range strings.SplitSeq(list, ",") {
		id, ok := unescape(raw, ',')
		o.bad = o.bad || !ok || id == ""
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

func (o *opened) flag(i int) bool {
	raw := o.raw[i]
	o.bad = o.bad || raw != "0" && raw != "1"
	return raw == "1"
}

// request reads a request id.
func (o *opened) request(i int) string {
	raw := o.raw[i]
	o.bad = o.bad || len(raw) != 16 || strings.Trim(raw, "0123456789abcdef") != ""
	return raw
}
