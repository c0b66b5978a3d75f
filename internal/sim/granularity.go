package sim

import (
	"math"
	"strconv"
)

// priceRange is a range of a Prebid price granularity, in units of currency.
type priceRange struct{ min, max, increment float64 }

// granularityRanges are Prebid Server's ranges of a named granularity; dense for a
// name it does not know.
func granularityRanges(name string) []priceRange {
	switch name {
	case "low":
		return []priceRange{{0, 5, 0.5}}
	case "med", "medium":
		return []priceRange{{0, 20, 0.1}}
	case "high":
		return []priceRange{{0, 20, 0.01}}
	case "auto":
		return []priceRange{{0, 5, 0.05}, {5, 10, 0.1}, {10, 20, 0.5}}
	}
	return []priceRange{{0, 3, 0.01}, {3, 8, 0.05}, {8, 20, 0.5}}
}

// floatBucket is hb_pb as Prebid Server computes it: in binary floating point,
// and therefore now and then one step too low, as 5.1 is "5.05" in the captures.
func floatBucket(ranges []priceRange, cpm float64) string {
	top := ranges[len(ranges)-1].max
	if cpm > top {
		return strconv.FormatFloat(top, 'f', 2, 64)
	}
	var in priceRange
	for _, r := range ranges {
		if cpm >= r.min && cpm <= r.max {
			in = r
		}
	}
	floored := math.Floor((cpm-in.min)/in.increment)*in.increment + in.min
	return strconv.FormatFloat(floored, 'f', 2, 64)
}
