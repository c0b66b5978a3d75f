package openrtb

import "deckle/internal/auction"

type device struct {
	UA       string     `json:"ua,omitzero"`
	SUA      *userAgent `json:"sua,omitzero"`
	IP       string     `json:"ip,omitzero"`
	IPv6     string     `json:"ipv6,omitzero"`
	Geo      geo        `json:"geo,omitzero"`
	Language string     `json:"language,omitzero"`
}

// geo is what may be known of a reader's place: a country.
type geo struct {
	Country string `json:"country"` // ISO 3166-1 alpha-3
}

func deviceOf(d *auction.Device) device {
	out := device{UA: d.UA, SUA: userAgentOf(d.Hints), Geo: geo{d.Country}, Language: d.Language}
	switch ip := d.IP.Unmap().WithZone(""); {
	case ip.Is4():
		out.IP = ip.String()
	case ip.Is6():
		out.IPv6 = ip.String()
	}
	return out
}

// userAgent is OpenRTB 2.6 section 3.2.29, from User-Agent Client Hints.
type userAgent struct {
	Browsers     []brandVersion `json:"browsers,omitempty"`
	Platform     *brandVersion  `json:"platform,omitzero"`
	Mobile       *int           `json:"mobile,omitzero"`
	Architecture string         `json:"architecture,omitzero"`
	Bitness      string         `json:"bitness,omitzero"`
	Model        string         `json:"model,omitzero"`
	Source       int            `json:"source"`
}

type brandVersion struct {
	Brand   string   `json:"brand"`
	Version []string `json:"version,omitempty"`
}

func userAgentOf(h *auction.ClientHints) *userAgent {
	if h == nil {
		return nil
	}
	u := &userAgent{Architecture: h.Architecture, Bitness: h.Bitness, Model: h.Model, Source: sourceLowEntropy}
	if h.HighEntropy {
		u.Source = sourceHighEntropy
	}
	for _, b := range h.Browsers {
		u.Browsers = append(u.Browsers, brandVersion(b))
	}
	if h.Platform.Brand != "" {
		u.Platform = new(brandVersion(h.Platform))
	}
	switch {
	case h.Mobile == nil:
	case *h.Mobile:
		u.Mobile = new(1)
	default:
		u.Mobile = new(0)
	}
	return u
}

// List: User-Agent Source, of AdCOM 1.0.
const (
	sourceLowEntropy  = 1
	sourceHighEntropy = 2
)
