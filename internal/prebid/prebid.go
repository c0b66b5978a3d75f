// Package prebid speaks Prebid Server's dialect of OpenRTB 2.6: one request for
// all slots of a page out, one bid response in. It is pure; it knows no clock and
// no network.
package prebid

import (
	"net/http"
	"strings"
)

// Config configures a [Dialect].
type Config struct {
	// ServerURL is where Prebid Server is, without its path: http://127.0.0.1:8000.
	ServerURL string

	// AccountID is the publisher's account there, sent as site.publisher.id. May be
	// empty.
	AccountID string
}

// A Dialect is an [auction.Dialect] for one Prebid Server.
type Dialect struct {
	url     string
	account string
	header  http.Header // of every call; never changed
}

// New makes the dialect of the server that c names.
func New(c Config) *Dialect {
	return &Dialect{
		url:     strings.TrimRight(c.ServerURL, "/") + "/openrtb2/auction",
		account: c.AccountID,
		header: http.Header{
			"Content-Type":      {"application/json"},
			"Accept":            {"application/json"},
			"User-Agent":        {"deckle"},
			"X-Openrtb-Version": {"2.6"},
		},
	}
}
