package auction

import (
	"crypto/x509"
	"net/http"
	"net/netip"
)

// FillMacros fills the macros of s for a bid of answer bidID in an auction of
// request, within limit bytes.
func FillMacros(s, request, bidID, currency string, o Offer, limit int) (string, bool) {
	m := macros{request: request, bidID: bidID, currency: currency, offer: &o}
	return m.fill(s, limit)
}

func IsPublic(ip netip.Addr) bool { return isPublic(ip) }

// NewCappedMetrics are metrics with at most so many series of winners.
func NewCappedMetrics(series int) *Metrics {
	m := NewMetrics()
	m.series.max = series
	return m
}

// Trust makes the house's client trust the certificates of pool.
func (h *House) Trust(pool *x509.CertPool) {
	h.client.Transport.(*http.Transport).TLSClientConfig.RootCAs = pool
}
