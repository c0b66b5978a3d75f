// Package quality says what a magazine ad is worth to a slot and what its impression
// costs: engagement scores, and the quality-adjusted second price. It is arithmetic
// alone; who takes part in an auction is decided elsewhere.
//
// Winners are picked by sampled engagement (a creative of which little is known gets
// its chances), prices are set by mean engagement (the luck of a draw costs nobody
// anything).
package quality

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"

	"deckle"
)

// Stats are what readers did with a creative on a site.
type Stats struct {
	// Impressions, Clicks (expands) and Folds are n, c and f, decayed or of an hour.
	// None is negative.
	Impressions, Clicks, Folds float64

	// Shown is N: impressions since the first approval, without decay.
	Shown int64
}

const (
	learning   = 50    // impressions until the bonus of a newcomer is gone
	maxBonus   = 0.5   // that of a creative never shown
	foldWeight = 2     // a fold is worth two expands
	coldSpread = 0.15  // half the range of a sample around the affinity
	minCTR     = 0.001 // nothing is hopeless before it has been shown
	coldFold   = 0.25  // mean of Beta(1, 3)
	minCPM     = 0.001 // in units of the currency

	microsPerUnit = 1e6
)

// step is what a price per thousand impressions is a multiple of, so that one
// impression costs a whole number of micros.
const step = 1_000

// MeanEngagement is what is to be expected of a creative: the base of prices.
// Affinity, 0 to 1, is how well the page's categories match; it counts where nothing
// has been measured.
func MeanEngagement(s Stats, affinity float64) float64 {
	s, affinity = s.guarded(), guarded(affinity, 1)
	if s.Impressions == 0 {
		return max(affinity, minCTR) + foldWeight*coldFold + s.bonus()
	}
	return mean(s.Clicks, s.Impressions) + foldWeight*mean(s.Folds, s.Impressions) + s.bonus()
}

// SampleEngagement draws from what the engagement of a creative may be: the base of
// who wins. Affinity is as in [MeanEngagement]; src is not used by others meanwhile.
func SampleEngagement(src rand.Source, s Stats, affinity float64) float64 {
	s, affinity = s.guarded(), guarded(affinity, 1)
	if s.Impressions == 0 {
		ctr := affinity + coldSpread*(2*rand.New(src).Float64()-1)
		return max(ctr, minCTR) + foldWeight*beta(src, 1, 3) + s.bonus()
	}
	return sample(src, s.Clicks, s.Impressions) + foldWeight*sample(src, s.Folds, s.Impressions) + s.bonus()
}

// bonus lets a newcomer be seen often enough to be measured.
func (s Stats) bonus() float64 {
	if s.Shown >= learning {
		return 0
	}
	return maxBonus * (1 - float64(s.Shown)/learning)
}

// mean is that of the hits of n impressions, and at most 1 where there are more hits
// than impressions.
func mean(hits, n float64) float64 { return min((hits+1)/(n+2), 1) }

func sample(src rand.Source, hits, n float64) float64 {
	return beta(src, hits+1, max(n-hits, 0)+1)
}

func beta(src rand.Source, alpha, beta float64) float64 {
	return distuv.Beta{Alpha: alpha, Beta: beta, Src: src}.Rand()
}

// guarded are statistics that can be computed with: drawing from a distribution of a
// negative number panics, and of one that is none never ends.
func (s Stats) guarded() Stats {
	const most = 1e15
	return Stats{guarded(s.Impressions, most), guarded(s.Clicks, most), guarded(s.Folds, most), max(s.Shown, 0)}
}

// guarded is x between 0 and most; 0 where it is no number.
func guarded(x, most float64) float64 {
	if x > 0 {
		return min(x, most)
	}
	return 0
}

// Score is what candidates are ranked by. Alpha, 0.1 to 1, is the weight of the bid.
func Score(engagement float64, bid deckle.CPM, alpha float64) float64 {
	return engagement * math.Pow(max(float64(bid)/microsPerUnit, minCPM), alpha)
}

// Clear is the price of the winner: what it must have bid for its mean score to equal
// the runner-up's, at least the floor and at most the bid, both rounded (see
// [RoundFloor], [RoundBid]). Without a runner-up (score 0) it is the floor.
func Clear(runnerUpMeanScore, winnerMeanEngagement, alpha float64, floor, bid deckle.CPM) deckle.CPM {
	price := fromUnits(equalBid(runnerUpMeanScore, winnerMeanEngagement, alpha))
	return min(max(price, RoundFloor(floor)), RoundBid(bid))
}

// equalBid is the bid, in units of the currency, with which a mean engagement makes a
// mean score: [Score] inverted. It is 0 where there is none to equal.
func equalBid(score, engagement, alpha float64) float64 {
	if score > 0 && engagement > 0 && alpha > 0 {
		return math.Pow(score/engagement, 1/alpha)
	}
	return 0
}

// RoundBid is the most that a bid pays: down to a whole number of micros an impression.
func RoundBid(p deckle.CPM) deckle.CPM { return max(p, 0) / step * step }

// RoundFloor is the least that a floor takes: up to a whole number of micros an
// impression.
func RoundFloor(p deckle.CPM) deckle.CPM { return (max(p, 0) + step - 1) / step * step }

// fromUnits is the nearest micro, so that what a float cannot hold is no step up, and
// from there up to a whole number of micros an impression. It is at most
// [deckle.MaxCPM].
func fromUnits(p float64) deckle.CPM {
	return RoundFloor(deckle.CPM(math.Round(guarded(p*microsPerUnit, float64(deckle.MaxCPM)))))
}
