package token_test

import (
	"testing"
	"time"

	"deckle/internal/token"
)

func BenchmarkMint(b *testing.B) {
	ring, now := token.NewRing(testKey(0), nil), time.Unix(1_740_000_000, 0)
	b.Run("fold", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ring.MintFold(beacon().Slot, now)
		}
	})
	b.Run("beacon", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ring.MintBeacon(token.Imp, beacon(), now)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	ring, now := token.NewRing(testKey(0), testKey(1)), time.Unix(1_740_000_000, 0)
	v := verifier(ring)
	b.Run("fold", func(b *testing.B) {
		s := beacon().Slot
		text := ring.MintFold(s, now)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := v.Fold(text, s.Site, s.Slot, s.Creative, now); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("beacon", func(b *testing.B) {
		text := ring.MintBeacon(token.Imp, beacon(), now)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := v.Beacon(token.Imp, text, now); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("forged", func(b *testing.B) {
		text := token.NewRing(testKey(2), nil).MintBeacon(token.Imp, beacon(), now)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := v.Beacon(token.Imp, text, now); err == nil {
				b.Fatal("believed")
			}
		}
	})
}
