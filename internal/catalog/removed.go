package catalog

import "time"

// A Why says what took a creative off a site; empty for one that was not.
type Why string

// Removed reports whether the catalog proves that a creative has been taken off a
// site, which ends the bookmarks on it. Not knowing is not proof.
func Removed(s *Snapshot, site, creative string, now time.Time) (bool, Why) { return false, "" }
