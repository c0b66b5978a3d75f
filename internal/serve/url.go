package serve

import "strings"

// withoutQuery cuts query and fragment off a URL: they may say who the reader is.
func withoutQuery(url string) string {
	if i := strings.IndexAny(url, "?#"); i >= 0 {
		return url[:i]
	}
	return url
}
