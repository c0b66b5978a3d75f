package token

import (
	"encoding/binary"
	"encoding/hex"
	"time"

	"github.com/zeebo/xxh3"
)

// A Fold is what a believed fold token says.
type Fold struct {
	Slot

	// RequestID makes the fold count once: 16 lower-case hexadecimal digits, the
	// XXH3-64 of the token with seed 0.
	RequestID string
}

// The places of the fields of folds and beacons.
const (
	fieldSite = iota
	fieldURL
	fieldSlot
	fieldCreative
	fieldVersion
	fieldBucket
	fieldCampaign
	fieldAdvertiser
	fieldNonce
	foldFields

	fieldPrice = iota - 1
	fieldRequest
	fieldLeases
	fieldDogeared
	fieldCategory
	beaconFields
)

const foldLiteral = "fold"

// MintFold makes a fold token.
func (r *Ring) MintFold(s Slot, now time.Time) string {
	g := r.current.signer()
	defer r.current.signers.Put(g)
	g.slot(&s, now)
	return g.token(foldLiteral)
}

// slot adds the fields that folds and beacons share.
func (g *signer) slot(s *Slot, now time.Time) {
	g.first(s.Site)
	g.field(s.URL)
	g.field(s.Slot)
	g.field(s.Creative)
	g.number(uint64(s.Version))
	g.bucket(now)
	g.field(s.Campaign)
	g.field(s.Advertiser)
	g.fresh()
}

// slot reads the fields that folds and beacons share.
func (o *opened) slot() (s Slot, bucket int64) {
	s = Slot{
		Site:       o.text(fieldSite),
		URL:        o.text(fieldURL),
		Slot:       o.text(fieldSlot),
		Creative:   o.text(fieldCreative),
		Version:    uint32(o.number(fieldVersion, 32)),
		Campaign:   o.text(fieldCampaign),
		Advertiser: o.text(fieldAdvertiser),
	}
	o.nonce(fieldNonce)
	return s, int64(o.number(fieldBucket, 63))
}

// Fold believes a fold token that came for a creative in a slot of a site.
func (v *Verifier) Fold(text, site, slot, creative string, now time.Time) (Fold, error) {
	o, err := open(text, foldFields)
	if err != nil {
		return Fold{}, err
	}
	s, bucket := o.slot()
	switch {
	case o.bad:
		return Fold{}, &Error{BadPayload}
	case s.Slot != slot:
		return Fold{}, &Error{SlotMismatch}
	case s.Creative != creative:
		return Fold{}, &Error{CreativeMismatch}
	case s.Site != site || v.key(s.Site, &o, fieldBucket, foldLiteral) == nil:
		return Fold{}, &Error{BadSignature}
	}
	if err := checkAge(bucket, now, v.FoldWindow, v.FoldWindow); err != nil {
		return Fold{}, err
	}
	return Fold{s, requestID(text)}, nil
}

// requestID is that of the fold whose token it is.
func requestID(text string) string {
	var digits [16]byte
	return string(hex.AppendEncode(digits[:0], binary.BigEndian.AppendUint64(nil, xxh3.HashString(text))))
}

// key is the key of a site that signed a token whose bucket is field i, or nil.
func (v *Verifier) key(site string, o *opened, i int, literal string) *key {
	ring, ok := v.Keys(site)
	if !ok {
		return nil
	}
	return ring.signed(o, o.end(i), literal)
}
