package auction

import (
	"context"
	"crypto/x509"
	"net/http"
)

// FillMacros fills the macros of s for a bid of answer bidID in an auction of
// request, within limit bytes.
func FillMacros(s, request, bidID, currency string, o Offer, limit int) (string, bool) {
	m := macrosOf(request, bidID, currency, &o)
	return m.fill(s, limit)
}

// MacroSize is how many bytes FillMacros would make.
func MacroSize(s, request, bidID, currency string, o Offer) int {
	m := macrosOf(request, bidID, currency, &o)
	return m.size(s)
}

// Judged is what is left of an answer: how many of its offers could win, and the
// ids of those that are kept.
type Judged struct {
	Bids int
	Kept []string
}

// Judge judges an answer of the first provider.
func (h *House) Judge(ctx context.Context, r *Request, a Answer) (Judged, error) {
	v, err := h.judge(ctx, r, 0, &a)
	j := Judged{Bids: v.bids}
	for _, c := range v.best {
		j.Kept = append(j.Kept, c.offer.ID)
	}
	return j, err
}

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

// Through makes the notifier's client fire through rt.
func (n *Notifier) Through(rt http.RoundTripper) { n.client.Transport = rt }
