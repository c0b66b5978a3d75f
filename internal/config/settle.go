package config

import (
	"os"
	"time"
)

// A change of a template file counts when size and time have stood still for
// settleTime (editors truncate first, and many beginnings of a valid file are
// valid themselves), and its absence after goneTime.
const (
	settleTime = 500 * time.Millisecond
	goneTime   = 5 * time.Second
)

// A sighting is what can be seen of a file without reading it. The zero value is
// a file that is not there.
type sighting struct {
	exists   bool
	size     int64
	modified time.Time
}

// look sees the file at a path, through symbolic links.
func look(path string) sighting {
	info, err := os.Stat(path)
	if err != nil {
		return sighting{}
	}
	return sighting{exists: true, size: info.Size(), modified: info.ModTime()}
}

// An act is what is to be done about a file.
type act int

const (
	actWait act = iota // nothing, or nothing yet
	actRead            // it is whole: read it
	actDrop            // it is gone
)

// A settling decides when what is seen of one file counts. It has no clock of its
// own; the zero value has seen nothing.
type settling struct {
	seen  bool // anything at all
	last  sighting
	since time.Time // since when last has been true, as far as we know
	acted bool      // on last
}

// see is told what a file looks like at a moment, and whether anything has
// touched it since the last call, which its looks need not show. It returns what
// to do, and for actWait after what time to look again at the latest; 0 means that
// nothing is pending.
func (s *settling) see(now time.Time, f sighting, touched bool) (do act, again time.Duration) {
	switch {
	case !s.seen:
		*s = settling{seen: true, last: f, since: now}
		if f.exists && f.modified.Before(now) {
			s.since = f.modified // it has looked like this ever since
		}
	case touched || f != s.last:
		*s = settling{seen: true, last: f, since: now}
	}
	if s.acted {
		return actWait, 0
	}
	need := settleTime
	if !f.exists {
		need = goneTime
	}
	if left := s.since.Add(need).Sub(now); left > 0 {
		return actWait, left
	}
	s.acted = true
	if !f.exists {
		return actDrop, 0
	}
	return actRead, 0
}
