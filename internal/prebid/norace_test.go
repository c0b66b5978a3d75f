//go:build !race

package prebid_test

const raceEnabled = false
