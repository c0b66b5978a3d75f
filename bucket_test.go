package deckle_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"deckle"
)

var granularities = []string{"low", "medium", "high", "auto", "dense"}

// vectors is testdata/price-buckets.json: facts that Prebid publishes, and facts
// of decimal arithmetic.
type vectors struct {
	Granularities          map[string][]vectorRange
	Cases                  []map[string]string // cpm, and the bucket in each granularity
	Custom                 customVectors
	CustomUnalignedMinimum customVectors
	Texts                  struct {
		Cases []map[string]any // text, micros, and the bucket in each granularity
	}
}

type vectorRange struct{ Min, Max, Increment string }

type customVectors struct {
	Buckets []vectorRange
	Cases   []struct{ CPM, Bucket string }
}

func readVectors(t *testing.T) vectors {
	t.Helper()
	b, err := os.ReadFile("testdata/price-buckets.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Cases) < 40 || len(v.Custom.Cases) < 10 || len(v.CustomUnalignedMinimum.Cases) < 8 || len(v.Texts.Cases) < 14 {
		t.Fatalf("only %d, %d, %d and %d vectors were read", len(v.Cases), len(v.Custom.Cases), len(v.CustomUnalignedMinimum.Cases), len(v.Texts.Cases))
	}
	return v
}

func parse(t *testing.T, text string) deckle.CPM {
	t.Helper()
	p, err := deckle.ParseCPM(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func named(t *testing.T, name string) deckle.PriceBuckets {
	t.Helper()
	b, ok := deckle.Granularity(name)
	if !ok {
		t.Fatalf("no granularity %q", name)
	}
	return b
}

func TestGranularities(t *testing.T) {
	v := readVectors(t)
	for _, name := range granularities {
		got, want := named(t, name), v.Granularities[name]
		if len(got.Ranges) != len(want) || got.Precision != 2 {
			t.Fatalf("%s has %d ranges and precision %d, want %d and 2", name, len(got.Ranges), got.Precision, len(want))
		}
		for i, r := range got.Ranges {
			if r.Max != parse(t, want[i].Max) || r.Increment != parse(t, want[i].Increment) {
				t.Errorf("%s range %d is %v, want %v", name, i, r, want[i])
			}
		}
	}
	if _, ok := deckle.Granularity("custom"); ok {
		t.Error(`there is a granularity "custom"`)
	}
}

func TestBucketVectors(t *testing.T) {
	v := readVectors(t)
	for _, name := range granularities {
		b := named(t, name)
		for _, c := range v.Cases {
			if got := b.Bucket(parse(t, c["cpm"])); got != c[name] {
				t.Errorf("%s of %s = %s, want %s", name, c["cpm"], got, c[name])
			}
		}
	}
}

func TestBucketCustomVectors(t *testing.T) {
	v := readVectors(t)
	for name, custom := range map[string]customVectors{"custom": v.Custom, "unaligned minimum": v.CustomUnalignedMinimum} {
		b := deckle.PriceBuckets{Precision: 2}
		for _, r := range custom.Buckets {
			b.Ranges = append(b.Ranges, deckle.PriceRange{Max: parse(t, r.Max), Increment: parse(t, r.Increment)})
		}
		for _, c := range custom.Cases {
			if got := b.Bucket(parse(t, c.CPM)); got != c.Bucket {
				t.Errorf("%s: %s = %s, want %s", name, c.CPM, got, c.Bucket)
			}
		}
	}
}

func TestBucketTextVectors(t *testing.T) {
	for _, c := range readVectors(t).Texts.Cases {
		p := parse(t, c["text"].(string))
		if want := deckle.CPM(c["micros"].(float64)); p != want {
			t.Errorf("%s = %d micros, want %d", c["text"], p, want)
		}
		for _, name := range granularities {
			if got := named(t, name).Bucket(p); got != c[name] {
				t.Errorf("%s of %s = %s, want %s", name, c["text"], got, c[name])
			}
		}
	}
}

func TestBucketWithoutRanges(t *testing.T) {
	if got := (deckle.PriceBuckets{}).Bucket(7_000_000); got != "0" {
		t.Errorf("Bucket = %q, want 0", got)
	}
}

func TestBucketIsDecimalArithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawBuckets(t)
		p := deckle.CPM(rapid.OneOf(rapid.Int64Range(-5, 100_000_000), rapid.SampledFrom(edges(b))).Draw(t, "price"))
		if got, want := b.Bucket(p), reference(b, p); got != want {
			t.Fatalf("%v: Bucket(%s) = %s, want %s", b, p, got, want)
		}
	})
}

// drawBuckets draws a granularity of Prebid or a custom one, in whose ranges the
// increment need not divide anything.
func drawBuckets(t *rapid.T) deckle.PriceBuckets {
	if name := rapid.SampledFrom(append([]string{"custom", "custom"}, granularities...)).Draw(t, "granularity"); name != "custom" {
		b, _ := deckle.Granularity(name)
		return b
	}
	b := deckle.PriceBuckets{Precision: rapid.IntRange(0, 6).Draw(t, "precision")}
	lower := int64(0)
	for range rapid.IntRange(0, 5).Draw(t, "ranges") {
		upper := lower + rapid.Int64Range(1, 20_000_000).Draw(t, "width")
		b.Ranges = append(b.Ranges, deckle.PriceRange{
			Max:       deckle.CPM(upper),
			Increment: deckle.CPM(rapid.Int64Range(1, 3_000_000).Draw(t, "increment")),
		})
		lower = upper
	}
	return b
}

// edges are the prices at and beside the ends of ranges and steps.
func edges(b deckle.PriceBuckets) []int64 {
	out := []int64{0, 1}
	lower := int64(0)
	for _, r := range b.Ranges {
		step := lower + int64(r.Increment)
		out = append(out, step-1, step, step+1, int64(r.Max)-1, int64(r.Max), int64(r.Max)+1)
		lower = int64(r.Max)
	}
	return out
}

// reference is the rule in decimal fractions: the range that holds the price, the
// whole increments above its minimum, and the digits after the precision cut off.
func reference(b deckle.PriceBuckets, p deckle.CPM) string {
	units := func(c deckle.CPM) *big.Rat { return big.NewRat(int64(c), 1_000_000) }
	price, bucket, lower := units(p), new(big.Rat), new(big.Rat)
	for _, r := range b.Ranges {
		if price.Cmp(lower) <= 0 {
			break
		}
		if price.Cmp(units(r.Max)) >= 0 {
			bucket, lower = units(r.Max), units(r.Max)
			continue
		}
		steps := new(big.Rat).Quo(new(big.Rat).Sub(price, lower), units(r.Increment))
		whole := new(big.Int).Quo(steps.Num(), steps.Denom())
		bucket = new(big.Rat).Add(lower, new(big.Rat).Mul(new(big.Rat).SetInt(whole), units(r.Increment)))
		break
	}
	text := bucket.FloatString(12) // exact: micros have 6 decimals
	whole, decimals, _ := strings.Cut(text, ".")
	if b.Precision == 0 {
		return whole
	}
	return fmt.Sprintf("%s.%s", whole, decimals[:b.Precision])
}

func BenchmarkBucket(b *testing.B) {
	dense, _ := deckle.Granularity("dense")
	b.ReportAllocs()
	for b.Loop() {
		dense.Bucket(7_993_000)
	}
}
