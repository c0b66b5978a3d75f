package deckle_test

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"deckle"
)

func TestParseCPM(t *testing.T) {
	tests := []struct {
		text string
		want deckle.CPM
	}{
		{"2.5", 2_500_000},
		{"0", 0},
		{"-0", 0},
		{"-1.5", -1_500_000},
		{"1e3", 1_000_000_000},
		{"15e-1", 1_500_000},
		{"1.5E+1", 15_000_000},
		{"0.0000004", 0},
		{"0.0000005", 1}, // halves away from zero
		{"-0.0000005", -1},
		{"1.4960000000000002", 1_496_000}, // a float product of Prebid Server
		{"1000000", deckle.MaxCPM},
		{"-1000000", -deckle.MaxCPM},
		{"1000000.0000004", deckle.MaxCPM},
		{"0." + strings.Repeat("0", 62), 0},
	}
	for _, tt := range tests {
		if got, err := deckle.ParseCPM(tt.text); err != nil || got != tt.want {
			t.Errorf("ParseCPM(%q) = %d, %v; want %d", tt.text, got, err, tt.want)
		}
	}
}

func TestParseCPMRefuses(t *testing.T) {
	for _, text := range []string{
		"", " ", "-", ".", ".5", "5.", "+1", "1 ", " 1", "1,5", "0x10", "1_000", "1/2", "Inf", "-Infinity", "NaN",
		"null", `"1"`, "1e", "1e+", "1ee1", "1e1.5", "1e999999999", "1e21", "1e-41", "1000000.0000005", "-1000001",
		"1e18446744073709551617", "١", "1\x00", strings.Repeat("1", 65), "0." + strings.Repeat("0", 63),
	} {
		if got, err := deckle.ParseCPM(text); !errors.Is(err, deckle.ErrPrice) {
			t.Errorf("ParseCPM(%q) = %d, %v; want an error that wraps ErrPrice", text, got, err)
		}
	}
}

// A rate and an adjustment are part of the one rounding, not roundings of their own.
func TestParseCPMRoundsOnce(t *testing.T) {
	third := big.NewRat(1, 3)
	if got, err := deckle.ParseCPM("0.000001", third, big.NewRat(3, 1)); err != nil || got != 1 {
		t.Errorf("0.000001 × 1/3 × 3 = %d, %v; want 1", got, err)
	}
	if third.Cmp(big.NewRat(1, 3)) != 0 {
		t.Errorf("a factor was changed to %v", third)
	}
}

func TestParseCPMIsTheNearestMicro(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := fmt.Sprintf("%se%d", rapid.StringMatching(`-?[0-9]{1,8}(\.[0-9]{1,12})?`).Draw(t, "mantissa"), rapid.IntRange(-12, 3).Draw(t, "exponent"))
		factor := big.NewRat(rapid.Int64Range(1, 1e6).Draw(t, "numerator"), rapid.Int64Range(1, 1e6).Draw(t, "denominator"))
		exact, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatalf("reference cannot read %q", text)
		}
		exact.Mul(exact, factor).Mul(exact, big.NewRat(1e6, 1))

		got, err := deckle.ParseCPM(text, factor)
		if err != nil {
			if new(big.Rat).Abs(exact).Cmp(big.NewRat(int64(deckle.MaxCPM), 1)) <= 0 {
				t.Fatalf("ParseCPM(%q, %v): %v, in range", text, factor, err)
			}
			return
		}
		rounded := new(big.Rat).SetInt64(int64(got))
		off := new(big.Rat).Sub(rounded, exact)
		switch off.Abs(off).Cmp(big.NewRat(1, 2)) {
		case 1:
			t.Fatalf("ParseCPM(%q, %v) = %d, exactly %v", text, factor, got, exact.FloatString(9))
		case 0:
			if rounded.Abs(rounded).Cmp(exact.Abs(exact)) < 0 {
				t.Fatalf("ParseCPM(%q, %v) = %d rounds a half towards zero", text, factor, got)
			}
		}
	})
}

func TestCPMString(t *testing.T) {
	for p, want := range map[deckle.CPM]string{
		0: "0", 2_500_000: "2.5", 1: "0.000001", -1_500_000: "-1.5", 3_000_000: "3", -1 << 63: "-9223372036854.775808",
	} {
		if got := p.String(); got != want {
			t.Errorf("CPM(%d) = %q, want %q", int64(p), got, want)
		}
	}
}

func TestCPMStringReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := deckle.CPM(rapid.Int64Range(-int64(deckle.MaxCPM), int64(deckle.MaxCPM)).Draw(t, "price"))
		if got, err := deckle.ParseCPM(p.String()); err != nil || got != p {
			t.Fatalf("%d is written %q and read %d, %v", int64(p), p, got, err)
		}
	})
}

func TestImpRoundsDown(t *testing.T) {
	if got := deckle.CPM(1_999).Imp(); got != 1 {
		t.Errorf("CPM(1999).Imp() = %d, want 1", got)
	}
}

func FuzzParseCPM(f *testing.F) {
	for _, s := range []string{"1", "-0", "1.5e-7", "1e20", "NaN", "0.5699999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := deckle.ParseCPM(text)
		if err != nil && !errors.Is(err, deckle.ErrPrice) {
			t.Errorf("ParseCPM(%q): %v does not wrap ErrPrice", text, err)
		}
		if p > deckle.MaxCPM || p < -deckle.MaxCPM {
			t.Errorf("ParseCPM(%q) = %d, out of range", text, p)
		}
	})
}
