package config

import (
	"testing"
	"time"
)

func TestSettling(t *testing.T) {
	file := func(size int64) sighting { return sighting{exists: true, size: size} }
	gone := sighting{}
	type moment struct {
		at      time.Duration
		seen    sighting
		touched bool
		do      act
		again   time.Duration
	}
	const ms, s = time.Millisecond, time.Second
	for name, moments := range map[string][]moment{
		"an old file counts at once": {
			{0, sighting{exists: true, modified: noon.Add(-s)}, false, actRead, 0},
			{1 * s, sighting{exists: true, modified: noon.Add(-s)}, false, actWait, 0},
		},
		"a young file counts when it has not changed for 500 ms": {
			{0, sighting{exists: true, modified: noon.Add(-200 * ms)}, false, actWait, 300 * ms},
			{300 * ms, sighting{exists: true, modified: noon.Add(-200 * ms)}, false, actRead, 0},
		},
		"a file of the future counts after 500 ms of ours": {
			{0, sighting{exists: true, modified: noon.Add(time.Hour)}, false, actWait, 500 * ms},
			{499 * ms, sighting{exists: true, modified: noon.Add(time.Hour)}, false, actWait, 1 * ms},
			{500 * ms, sighting{exists: true, modified: noon.Add(time.Hour)}, false, actRead, 0},
		},
		"every change begins the wait anew": {
			{0, file(1), false, actRead, 0},
			{1 * s, file(2), false, actWait, 500 * ms},
			{1*s + 499*ms, file(3), false, actWait, 500 * ms},
			{1*s + 998*ms, file(3), true, actWait, 500 * ms},
			{1*s + 1498*ms, file(3), false, actRead, 0},
			{9 * s, file(3), false, actWait, 0},
		},
		"a touch counts although nothing looks different": {
			{0, file(1), false, actRead, 0},
			{1 * s, file(1), true, actWait, 500 * ms},
			{1*s + 500*ms, file(1), false, actRead, 0},
		},
		"an absence counts after 5 s": {
			{0, file(1), false, actRead, 0},
			{1 * s, gone, true, actWait, 5 * s},
			{5999 * ms, gone, false, actWait, 1 * ms},
			{6 * s, gone, false, actDrop, 0},
			{7 * s, gone, false, actWait, 0},
			{8 * s, file(1), false, actWait, 500 * ms},
			{8*s + 500*ms, file(1), false, actRead, 0},
		},
		"an editor that deletes and writes anew is not an absence": {
			{0, file(1), false, actRead, 0},
			{1 * s, gone, true, actWait, 5 * s},
			{5 * s, file(2), true, actWait, 500 * ms},
			{6 * s, file(2), false, actRead, 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var settling settling
			for _, m := range moments {
				do, again := settling.see(noon.Add(m.at), m.seen, m.touched)
				if do != m.do || again != m.again {
					t.Errorf("after %v: act %d, again in %v; want %d, %v", m.at, do, again, m.do, m.again)
				}
			}
		})
	}
}

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
