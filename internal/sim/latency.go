package sim

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Latency is how long each part of a [World] takes to answer.
type Latency struct {
	Prebid time.Duration // from the bid request to the bid response
	Origin time.Duration // from a page's request to its last byte
	GPT    time.Duration // from an ad request to its response
}

// maxLatency keeps a typing error from looking like a hanging server.
const maxLatency = time.Minute

// UnmarshalText reads "prebid=80ms,origin=40ms,gpt=30ms"; parts may be missing
// and keep what l has. An error names the part it is about.
func (l *Latency) UnmarshalText(text []byte) error {
	parts := map[string]*time.Duration{"prebid": &l.Prebid, "origin": &l.Origin, "gpt": &l.GPT}
	for field := range strings.SplitSeq(string(text), ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(field), "=")
		part := parts[name]
		if !ok || part == nil {
			return fmt.Errorf("latency %q: want prebid=…, origin=… or gpt=…", field)
		}
		d, err := time.ParseDuration(value)
		if err != nil {
			return fmt.Errorf("latency of %s: %w", name, err)
		}
		if d < 0 || d > maxLatency {
			return fmt.Errorf("latency of %s: %v is not between 0 and %v", name, d, maxLatency)
		}
		*part = d
	}
	return nil
}

// wait returns after d, or false as soon as ctx is done.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
