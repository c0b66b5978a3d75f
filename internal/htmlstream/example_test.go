package htmlstream_test

import (
	"fmt"
	"os"

	"deckle/internal/htmlstream"
)

// The slots go in at the start of head, the bids at its end: what follows waits
// until the filler returns.
func Example() {
	w := htmlstream.NewWriter(os.Stdout, htmlstream.Options{
		CharsetKnown: true,
		Points:       htmlstream.HeadStart | htmlstream.HeadEnd,
	}, func(pt htmlstream.Point) []byte {
		if pt == htmlstream.HeadStart {
			return []byte("<script>/* slots */</script>")
		}
		return []byte("<script>/* bids */</script>")
	})
	for _, part := range []string{"<!doctype html><he", "ad><title></head></ti", "tle></hea", "d><body>Hello"} {
		if _, err := w.Write([]byte(part)); err != nil {
			fmt.Println(err)
		}
	}
	if err := w.Close(); err != nil {
		fmt.Println(err)
	}
	// Output: <!doctype html><head><script>/* slots */</script><title></head></title><script>/* bids */</script></head><body>Hello
}
