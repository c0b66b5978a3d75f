package publicapi

import (
	"net/netip"
	"time"
)

// Hash is what the limiter knows an address by.
func Hash(l *Limiter, a netip.Addr, now time.Time) uint64 {
	return l.keyOf(now.Unix() / 86_400).hash(a)
}

// Remembered is how many addresses the limiter knows.
func Remembered(l *Limiter) int {
	n := 0
	for i := range l.shards {
		n += len(l.shards[i].young) + len(l.shards[i].old)
	}
	return n
}
