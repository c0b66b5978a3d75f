package deckle

import "strconv"

// A PriceRange is one range of a price granularity: prices from the maximum of
// the range before it (0 for the first) up to Max fall into steps of Increment,
// counted from that minimum. Both are above zero.
type PriceRange struct {
	Max, Increment CPM
}

// PriceBuckets is a Prebid price granularity: ascending ranges and the number of
// decimals of hb_pb (0–6). The zero value puts every price into "0".
type PriceBuckets struct {
	Ranges    []PriceRange
	Precision int
}

// Granularity returns Prebid's price granularity of that name (low, medium,
// high, auto, dense), as docs.prebid.org publishes them.
func Granularity(name string) (PriceBuckets, bool) {
	const cent = 10_000
	var ranges []PriceRange
	switch name {
	case "low":
		ranges = []PriceRange{{500 * cent, 50 * cent}}
	case "medium":
		ranges = []PriceRange{{2000 * cent, 10 * cent}}
	case "high":
		ranges = []PriceRange{{2000 * cent, cent}}
	case "auto":
		ranges = []PriceRange{{500 * cent, 5 * cent}, {1000 * cent, 10 * cent}, {2000 * cent, 50 * cent}}
	case "dense":
		ranges = []PriceRange{{300 * cent, cent}, {800 * cent, 5 * cent}, {2000 * cent, 50 * cent}}
	default:
		return PriceBuckets{}, false
	}
	return PriceBuckets{Ranges: ranges, Precision: 2}, true
}

// Bucket is the hb_pb of a price: floored to the increment of its range, exactly;
// at or above the last maximum that maximum; 0 for what is not above zero.
func (b PriceBuckets) Bucket(p CPM) string {
	var floored, lower CPM
	for _, r := range b.Ranges {
		if p < r.Max {
			if p > lower {
				floored = lower + (p-lower)/r.Increment*r.Increment
			}
			return b.format(floored)
		}
		lower, floored = r.Max, r.Max
	}
	return b.format(floored)
}

// format writes p with Precision decimals, what is finer cut off.
func (b PriceBuckets) format(p CPM) string {
	unit := CPM(1)
	for range 6 - b.Precision {
		unit *= 10
	}
	s := strconv.FormatInt(int64(p/unit), 10)
	if b.Precision == 0 {
		return s
	}
	for len(s) <= b.Precision {
		s = "0" + s
	}
	return s[:len(s)-b.Precision] + "." + s[len(s)-b.Precision:]
}
