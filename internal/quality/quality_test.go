package quality_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"deckle"
	"deckle/internal/quality"
)

// vectors is testdata/clearing.json.
type vectors struct {
	Engagement []struct {
		Impressions, Clicks, Folds, Affinity, MeanEngagement float64
	}
	Clearing []struct {
		Name                                           string
		RunnerUpMeanScore, WinnerMeanEngagement, Alpha float64
		FloorCPM, BidCPM, ClearingCPM                  float64
		ClearingMicros                                 deckle.CPM
	}
}

func readVectors(t *testing.T) (v vectors) {
	t.Helper()
	b, err := os.ReadFile("testdata/clearing.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &v); err != nil || len(v.Engagement) < 9 || len(v.Clearing) < 11 {
		t.Fatalf("read %d and %d vectors, %v", len(v.Engagement), len(v.Clearing), err)
	}
	return v
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9 }

func micros(units float64) deckle.CPM { return deckle.CPM(math.Round(units * 1e6)) }

func TestMeanEngagementVectors(t *testing.T) {
	for _, v := range readVectors(t).Engagement {
		s := quality.Stats{Impressions: v.Impressions, Clicks: v.Clicks, Folds: v.Folds, Shown: int64(v.Impressions)}
		if got := quality.MeanEngagement(s, v.Affinity); !near(got, v.MeanEngagement) {
			t.Errorf("%+v with affinity %v = %.12f, want %.12f", s, v.Affinity, got, v.MeanEngagement)
		}
	}
}

func TestClearVectors(t *testing.T) {
	for _, v := range readVectors(t).Clearing {
		floor, bid := micros(v.FloorCPM), micros(v.BidCPM)
		if got := quality.Clear(v.RunnerUpMeanScore, v.WinnerMeanEngagement, v.Alpha, floor, bid); got != v.ClearingMicros {
			t.Errorf("%s: %d micros, want %d", v.Name, got, v.ClearingMicros)
		}
		exact := quality.EqualBid(v.RunnerUpMeanScore, v.WinnerMeanEngagement, v.Alpha)
		exact = min(max(exact, v.FloorCPM), float64(quality.RoundBid(bid))/1e6)
		if !near(exact, v.ClearingCPM) {
			t.Errorf("%s: %.12f before rounding, want %.12f", v.Name, exact, v.ClearingCPM)
		}
	}
}

func TestRounding(t *testing.T) {
	for _, c := range []struct{ p, bid, floor deckle.CPM }{
		{0, 0, 0},
		{1, 0, 1_000},
		{999, 0, 1_000},
		{1_000, 1_000, 1_000},
		{1_001, 1_000, 2_000},
		{2_000_500, 2_000_000, 2_001_000},
		{deckle.MaxCPM, deckle.MaxCPM, deckle.MaxCPM},
		{-1_500, 0, 0},
	} {
		if bid, floor := quality.RoundBid(c.p), quality.RoundFloor(c.p); bid != c.bid || floor != c.floor {
			t.Errorf("%d is as a bid %d and as a floor %d, want %d and %d", c.p, bid, floor, c.bid, c.floor)
		}
	}
}

// The rules of prices between the rounding: a price is nearest micro first, so that
// 2.0000000000000004 is 2; what is a whole micro above is a step above.
func TestClearRoundsOnce(t *testing.T) {
	for _, c := range []struct {
		ratio float64
		want  deckle.CPM
	}{
		{2.0000000000000004, 2_000_000},
		{2.0000004, 2_000_000},
		{2.0000006, 2_001_000},
		{1.9999996, 2_000_000},
		{1.9990004, 1_999_000},
		{0.0000004, 0},
		{0.0000006, 1_000},
	} {
		if got := quality.Clear(c.ratio, 1, 1, 0, 5_000_000); got != c.want {
			t.Errorf("%v costs %d, want %d", c.ratio, got, c.want)
		}
	}
}

func price(t *rapid.T, name string) deckle.CPM {
	return deckle.CPM(rapid.OneOf(rapid.Int64Range(0, 20_000_000), rapid.Int64Range(0, int64(deckle.MaxCPM))).Draw(t, name))
}

func TestClearProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		runnerUp := rapid.Float64Range(0, 100).Draw(t, "runner-up")
		engagement := rapid.Float64Range(0.0001, 4).Draw(t, "engagement")
		alpha := rapid.Float64Range(0.1, 1).Draw(t, "alpha")
		floor, bid := price(t, "floor"), price(t, "bid")
		got := quality.Clear(runnerUp, engagement, alpha, floor, bid)
		switch {
		case got%1_000 != 0:
			t.Errorf("%d is no whole number of micros an impression", got)
		case got > quality.RoundBid(bid) || got > bid:
			t.Errorf("%d is above the bid %d", got, bid)
		case quality.RoundFloor(floor) <= quality.RoundBid(bid) && got < floor:
			t.Errorf("%d is below the floor %d", got, floor)
		}
		if more := runnerUp + rapid.Float64Range(0, 10).Draw(t, "more"); quality.Clear(more, engagement, alpha, floor, bid) < got {
			t.Errorf("a runner-up of %v instead of %v lowers the price from %d", more, runnerUp, got)
		}
		if got >= 1_000 && got < quality.RoundBid(bid) && got < deckle.MaxCPM {
			if score := quality.Score(engagement, got, alpha); score < runnerUp*(1-1e-6) {
				t.Errorf("at its price of %d the winner scores %v, and has not beaten %v", got, score, runnerUp)
			}
		}
	})
}

// Nothing that is no number comes out, nor an endless draw, whatever goes in.
func TestGuards(t *testing.T) {
	odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, -1e-300, 0, 1e-300, 1, 1e18, math.MaxFloat64}
	src := rand.NewPCG(1, 2)
	for _, a := range odd {
		for _, b := range odd {
			for _, s := range []quality.Stats{
				{Impressions: a, Clicks: b, Folds: b, Shown: 7}, {Impressions: b, Clicks: a, Folds: b, Shown: -7}, {Impressions: 9, Clicks: b, Folds: a, Shown: math.MaxInt64},
			} {
				for _, e := range []float64{quality.MeanEngagement(s, a), quality.SampleEngagement(src, s, a)} {
					if !(e > 0 && e <= 4) {
						t.Errorf("%+v with affinity %v has the engagement %v", s, a, e)
					}
				}
			}
			for _, alpha := range odd {
				if got := quality.Clear(a, b, alpha, 500_000, 2_000_000); got < 500_000 || got > 2_000_000 {
					t.Errorf("Clear(%v, %v, %v) = %d", a, b, alpha, got)
				}
			}
		}
	}
	if got := quality.Clear(1, 1, 1, -5, -5); got != 0 {
		t.Errorf("a price of %d for a bid below zero", got)
	}
	if got := quality.Score(1, 0, 0.5); got <= 0 {
		t.Errorf("a bid of zero scores %v", got)
	}
}

// Samples have the mean and the spread of what they are drawn from.
func TestSampleEngagement(t *testing.T) {
	for _, c := range []struct {
		name           string
		stats          quality.Stats
		affinity       float64
		mean, variance float64
	}{
		{"warm", quality.Stats{Impressions: 1_000, Clicks: 100, Folds: 20, Shown: 1_000}, 0.5, 101./1_002 + 2*21./1_002, betaVariance(101, 901) + 4*betaVariance(21, 981)},
		{"in decay", quality.Stats{Impressions: 61.5, Clicks: 3.25, Folds: 0.125, Shown: 900}, 0.5, 4.25/63.5 + 2*1.125/63.5, betaVariance(4.25, 59.25) + 4*betaVariance(1.125, 62.375)},
		{"newcomer", quality.Stats{Impressions: 10, Clicks: 1, Folds: 0, Shown: 10}, 0.5, 2./12 + 2*1./12 + 0.4, betaVariance(2, 10) + 4*betaVariance(1, 11)},
		{"more clicks than impressions", quality.Stats{Impressions: 2, Clicks: 5, Folds: 4, Shown: 50}, 0.5, 6./7 + 2*5./6, betaVariance(6, 1) + 4*betaVariance(5, 1)},
		{"cold", quality.Stats{}, 0.5, 0.5 + 0.5 + 0.5, 0.3*0.3/12 + 4*betaVariance(1, 3)},
		{"a silent hour", quality.Stats{Shown: 1_000}, 0.7, 0.7 + 0.5, 0.3*0.3/12 + 4*betaVariance(1, 3)},
	} {
		const n = 40_000
		src := rand.NewPCG(7, 11)
		samples := make([]float64, n)
		for i := range samples {
			samples[i] = quality.SampleEngagement(src, c.stats, c.affinity)
		}
		mean, variance := stat.MeanVariance(samples, nil)
		if off := math.Abs(mean - c.mean); off > 5*math.Sqrt(c.variance/n) {
			t.Errorf("%s: mean %v, want %v", c.name, mean, c.mean)
		}
		if math.Abs(variance/c.variance-1) > 0.05 {
			t.Errorf("%s: variance %v, want %v", c.name, variance, c.variance)
		}
	}
}

func betaVariance(alpha, beta float64) float64 {
	return distuv.Beta{Alpha: alpha, Beta: beta}.Variance()
}

// A newcomer's sampled rate stays around the affinity and above nothing.
func TestColdSampleBounds(t *testing.T) {
	src := rand.NewPCG(3, 5)
	for _, affinity := range []float64{0, 0.1, 0.5, 1} {
		low, high := math.Inf(1), 0.0
		for range 20_000 {
			e := quality.SampleEngagement(src, quality.Stats{Shown: 50}, affinity)
			low, high = min(low, e), max(high, e)
		}
		if least := max(affinity-0.15, 0.001); low < least || high > affinity+0.15+2 {
			t.Errorf("affinity %v gives %v to %v", affinity, low, high)
		}
	}
}

func TestSampleDoesNotAllocate(t *testing.T) {
	src := rand.New(rand.NewPCG(1, 2)) // a Rand is a Source too
	s := quality.Stats{Impressions: 812.5, Clicks: 31.25, Folds: 0, Shown: 2_000}
	if got := testing.AllocsPerRun(1_000, func() {
		quality.SampleEngagement(src, s, 0.5)
		quality.SampleEngagement(src, quality.Stats{}, 0.5)
	}); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

func BenchmarkSampleEngagement(b *testing.B) {
	src := rand.NewPCG(1, 2)
	s := quality.Stats{Impressions: 812.5, Clicks: 31.25, Folds: 4.5, Shown: 2_000}
	b.ReportAllocs()
	for b.Loop() {
		quality.SampleEngagement(src, s, 0.5)
	}
}
