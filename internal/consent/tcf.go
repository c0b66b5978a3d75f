package consent

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// MaxTCString is the longest TC string, in bytes, that is looked at.
const MaxTCString = 4 << 10

// ErrUnreadable is wrapped by every error of a string that must be read as
// refused.
var ErrUnreadable = errors.New("unreadable consent string")

// A TC is the part of a TCF v2 string that we decide by (IAB Tech Lab, "Consent
// string and vendor list formats v2", the core string).
type TC struct {
	created         uint64 // deciseconds since 1970
	purposes        uint64 // 24 bits, purpose 1 first
	specialFeatures uint64 // 12 bits, special feature 1 first
}

// Purpose reports consent to purpose n (1–24).
func (t TC) Purpose(n int) bool { return bitAt(t.purposes, 24, n) }

// SpecialFeature reports the opt-in to special feature n (1–12).
func (t TC) SpecialFeature(n int) bool { return bitAt(t.specialFeatures, 12, n) }

// and permits what both t and u permit.
func (t TC) and(u TC) TC {
	return TC{purposes: t.purposes & u.purposes, specialFeatures: t.specialFeatures & u.specialFeatures}
}

// permitsLike reports whether t and u permit the same.
func (t TC) permitsLike(u TC) bool {
	return t.purposes == u.purposes && t.specialFeatures == u.specialFeatures
}

func bitAt(field uint64, width, n int) bool {
	return n >= 1 && n <= width && field>>(width-n)&1 == 1
}

// disclosedFrom is 2026-03-01, from when on a TC string must have a
// DisclosedVendors segment, in deciseconds since 1970.
const disclosedFrom = 1772323200 * 10

// segmentDisclosedVendors is that segment's type, in its first three bits.
const segmentDisclosedVendors = 1

// ParseTC reads a TC string in time linear in its length, whatever it holds. All
// of the core string must be there, so that a truncated one is not believed. Its
// errors wrap [ErrUnreadable] and quote nothing of the string.
func ParseTC(text string) (TC, error) {
	if len(text) > MaxTCString {
		return TC{}, fmt.Errorf("tc string of %d bytes: %w", len(text), ErrUnreadable)
	}
	core, rest, _ := strings.Cut(text, ".")
	r, err := newBits(core)
	if err != nil {
		return TC{}, fmt.Errorf("tc string, core: %w", err)
	}
	t, err := r.core()
	if err != nil {
		return TC{}, err
	}
	disclosed := false
	for segment := range strings.SplitSeq(rest, ".") {
		if segment == "" {
			continue
		}
		s, err := newBits(segment)
		if err != nil {
			return TC{}, fmt.Errorf("tc string, segment: %w", err)
		}
		if s.take(3) == segmentDisclosedVendors {
			s.vendors()
			disclosed = !s.short
		}
	}
	if !disclosed && t.created >= disclosedFrom {
		return TC{}, fmt.Errorf("tc string without disclosed vendors: %w", ErrUnreadable)
	}
	return t, nil
}

// core reads the core string field by field, in the order of the specification.
func (r *bits) core() (TC, error) {
	if version := r.take(6); version != 2 {
		return TC{}, fmt.Errorf("tc string of version %d: %w", version, ErrUnreadable)
	}
	var t TC
	t.created = r.take(36)
	r.skip(36 + 12 + 12 + 6 + 12 + 12 + 6 + 1 + 1) // last updated … use of non-standard texts
	t.specialFeatures = r.take(12)
	t.purposes = r.take(24)
	r.skip(24 + 1 + 12) // legitimate interest, purpose one treatment, publisher's country
	r.vendors()         // consents
	r.vendors()         // legitimate interests
	for range r.take(12) {
		r.skip(6 + 2) // a publisher restriction: purpose, type
		r.ranges()
	}
	if r.short {
		return TC{}, fmt.Errorf("tc string is cut off: %w", ErrUnreadable)
	}
	return t, nil
}

// vendors passes over a vendor section: a bit field or ranges.
func (r *bits) vendors() {
	highest := r.take(16)
	if r.take(1) == 1 {
		r.ranges()
		return
	}
	r.skip(int(highest))
}

func (r *bits) ranges() {
	for range r.take(12) {
		if r.short {
			return
		}
		if r.take(1) == 1 {
			r.skip(16)
		}
		r.skip(16)
	}
}

// bits reads big-endian bit fields. Reading past the end gives zeros and sets
// short.
type bits struct {
	bytes []byte
	pos   int
	short bool
}

func newBits(segment string) (*bits, error) {
	// Go's base64 passes over line breaks; a cookie has none.
	if segment == "" || strings.ContainsAny(segment, "\r\n") {
		return nil, fmt.Errorf("not base64url: %w", ErrUnreadable)
	}
	b, err := base64.RawURLEncoding.DecodeString(segment)
	if err != nil {
		return nil, fmt.Errorf("not base64url: %w", ErrUnreadable)
	}
	return &bits{bytes: b}, nil
}

// take reads n ≤ 64 bits.
func (r *bits) take(n int) uint64 {
	if r.pos+n > len(r.bytes)*8 {
		r.skip(n)
		return 0
	}
	var v uint64
	for i := r.pos; i < r.pos+n; i++ {
		v = v<<1 | uint64(r.bytes[i/8]>>(7-i%8)&1)
	}
	r.pos += n
	return v
}

func (r *bits) skip(n int) {
	r.pos += n
	r.short = r.short || r.pos > len(r.bytes)*8
}
