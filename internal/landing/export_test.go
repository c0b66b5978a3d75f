package landing

import "net/url"

// Parse reads a page of an address.
func Parse(data []byte, at string) *Page {
	u, err := url.Parse(at)
	if err != nil {
		panic(err)
	}
	return parse(data, u)
}
