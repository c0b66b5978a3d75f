// Package token makes the signed tokens that a batch answer hands to a browser and
// believes none but those: fold tokens, beacon tokens, and the debug tokens that
// make a batch explain itself. It keeps no state; a token proves itself.
//
// # Format
//
//	<base64url(payload)>.<base64url(mac)>       RFC 4648 section 5, no padding, both parts
//
// A payload is fields joined by "|". In each field % is written %25 and | is written
// %7C, in that order; nothing else is escaped. The mac is HMAC-SHA256 over the
// payload with one more field, the literal of what the token is for, after the
// bucket. So a token for one thing is none for another.
//
//	fold    pub|url|slot|cid|ver|bucket|camp|adv|nonce
//	  mac   pub|url|slot|cid|ver|bucket|fold|camp|adv|nonce
//	beacon  pub|url|slot|cid|ver|bucket|camp|adv|nonce|price|request|leases|dogeared|category
//	  mac   pub|url|slot|cid|ver|bucket|imp|camp|adv|nonce|…       or view, click, cta
//	debug   pub|bucket|nonce
//	  mac   pub|bucket|debug|nonce
//
//	pub       id of the site
//	url       of the page, without query
//	slot      id of the slot
//	cid, ver  the creative's id and version
//	bucket    floor(unix seconds / 60) when it was made
//	camp, adv ids of campaign and advertiser
//	nonce     16 random bytes, base64url without padding: 22 characters; fresh for every token
//	price     of the impression, sealed: 11 characters, see below
//	request   the filled slot's request id: 16 lower-case hexadecimal digits
//	leases    ids of the leases that pay, joined by ","; in each id % is written %25 and
//	          , is written %2C, before the field is escaped as all are; empty: none
//	dogeared  1 where an honoured pin filled the slot, else 0
//	category  IAB content category for which the candidate was priced; may be empty
//
// Numbers are decimal without sign or leading zeros: ver up to 32 bits, bucket up to
// 63. Texts are UTF-8.
//
// The sealed price is 8 bytes, base64url without padding: the price in micros as a
// big-endian int64, XOR the first 8 bytes of HMAC-SHA256(key, "price|" + literal +
// "|" + nonce), nonce as it is written. It cannot be read without the key, since that
// HMAC is a pseudo-random function of a nonce that no other token has (a pad used
// once); nor guessed from its length, which is always the same; nor altered, since the
// mac is over the sealed text and is checked before it is opened. No text of a mac is
// ever that of a pad: the pad's has three fields, a mac's four, ten or fifteen, and no
// field holds a bare "|".
//
// # One text
//
// A token has one text only: what is received must be what encoding its fields again
// would give. Go's base64 skips line breaks and can ignore spare bits; both are
// refused here. So a fold counts once by the hash of its text.
package token

import "time"

// A Slot is what every token of a filled slot says. Its texts are UTF-8; a token made
// of others is never believed.
type Slot struct {
	Site                 string // the wire's pub
	URL                  string // of the page, without query
	Slot                 string
	Creative             string
	Version              uint32
	Campaign, Advertiser string
}

// A Reason says why a token is not believed, in the words of the wire.
type Reason string

// The reasons, in the order in which they are looked for. Where more than one
// applies, the first is given.
const (
	BadFormat        Reason = "bad_format"        // not two parts
	BadPayload       Reason = "bad_payload"       // not the one encoding of the fields that it must have
	SlotMismatch     Reason = "slot_mismatch"     // of another slot (folds)
	CreativeMismatch Reason = "creative_mismatch" // of another creative (folds)
	BadSignature     Reason = "bad_signature"     // not signed for this with a key of its site, or of another site
	Stale            Reason = "stale"             // too old, or too far ahead of this clock
)

// An Error is the refusal of a token. It holds nothing of the token.
type Error struct{ Reason Reason }

func (e *Error) Error() string { return "token: " + string(e.Reason) }

// Keys is the key ring of the publisher of a site; false where there is no such site.
// It is called with what a stranger sent, and makes nothing.
type Keys func(site string) (*Ring, bool)

// A Verifier believes tokens, or says why not: every error is an [*Error]. Its fields
// are not changed after the first call, and it is used by any number of goroutines.
// Durations count in whole minutes, as buckets do.
type Verifier struct {
	Keys Keys

	// FoldWindow is the age at which a fold token is still believed, and how far it
	// may be ahead.
	FoldWindow time.Duration

	// BeaconWindow (imp, view) and ClickWindow (click, cta) are the age at which a
	// beacon is still believed, on top of MaxSkew.
	BeaconWindow, ClickWindow time.Duration

	// MaxSkew is how far a beacon may be ahead: the most by which the clocks of two
	// nodes differ.
	MaxSkew time.Duration
}

// bucketAt is the bucket of a time.
func bucketAt(now time.Time) int64 { return now.Unix() / 60 }

// checkAge reports a bucket that is more than old behind now, or more than ahead
// before it, in whole minutes.
func checkAge(bucket int64, now time.Time, old, ahead time.Duration) error {
	age := bucketAt(now) - bucket
	if age > int64(old/time.Minute) || -age > int64(ahead/time.Minute) {
		return &Error{Stale}
	}
	return nil
}
