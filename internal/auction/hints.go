package auction

import (
	"net/http"
	"strings"
)

// ClientHints are what a browser says of itself in User-Agent Client Hints: the
// ones that it sends by itself, and those that the site has asked it for.
type ClientHints struct {
	Browsers     []BrandVersion
	Platform     BrandVersion
	Mobile       *bool // nil: not said
	Architecture string
	Bitness      string
	Model        string
	HighEntropy  bool // some of it had to be asked for
}

// A BrandVersion is a name with the parts of its version; version may be empty.
type BrandVersion struct {
	Brand   string
	Version []string
}

// What a header may be at most. Readers are strangers.
const (
	maxHint   = 1024 // bytes of a header
	maxBrands = 16
)

// ReadClientHints reads the hints of a request's header; nil if there are none. A
// header that is not of its form (RFC 8941) is passed over.
func ReadClientHints(header http.Header) *ClientHints {
	var h ClientHints
	hint := func(name string) string { return structuredItem(header.Get("Sec-CH-UA" + name)) }
	h.Browsers = brandList(header.Get("Sec-CH-UA-Full-Version-List"))
	h.Platform = BrandVersion{Brand: hint("-Platform"), Version: versionParts(hint("-Platform-Version"))}
	h.Architecture, h.Bitness, h.Model = hint("-Arch"), hint("-Bitness"), hint("-Model")
	h.HighEntropy = h.Browsers != nil || h.Platform.Version != nil || h.Architecture+h.Bitness+h.Model != ""
	if h.Browsers == nil {
		h.Browsers = brandList(header.Get("Sec-CH-UA"))
	}
	switch header.Get("Sec-CH-UA-Mobile") {
	case "?1":
		h.Mobile = new(true)
	case "?0":
		h.Mobile = new(false)
	}
	if h.Browsers == nil && h.Platform.Brand == "" && h.Mobile == nil && !h.HighEntropy {
		return nil
	}
	return &h
}

// brandList reads `"Brand";v="1.2", …`, as Sec-CH-UA and its full version list are
// written; nil if it is not of that form.
func brandList(s string) (brands []BrandVersion) {
	if s == "" || len(s) > maxHint {
		return nil
	}
	for s != "" && len(brands) < maxBrands {
		brand, rest, ok := structuredString(strings.TrimLeft(s, " \t"))
		if !ok {
			return nil
		}
		version := ""
		if after, found := strings.CutPrefix(rest, ";v="); found {
			if version, rest, ok = structuredString(after); !ok {
				return nil
			}
		}
		brands = append(brands, BrandVersion{brand, versionParts(version)})
		rest = strings.TrimLeft(rest, " \t")
		if rest == "" {
			return brands
		}
		if s, ok = strings.CutPrefix(rest, ","); !ok {
			return nil
		}
	}
	return brands
}

// structuredItem reads a header that is one string, or a token; empty if it is
// neither.
func structuredItem(s string) string {
	s = strings.Trim(s, " \t")
	switch {
	case s == "" || len(s) > maxHint:
		return ""
	case s[0] != '"' && strings.ContainsAny(s, "\",; \\"):
		return ""
	case s[0] != '"':
		return s
	}
	value, rest, ok := structuredString(s)
	if !ok || rest != "" {
		return ""
	}
	return value
}

// structuredString reads the string that s begins with (RFC 8941 section 3.3.3):
// printable ASCII in quotes, in which a backslash may stand before a quote or
// another backslash.
func structuredString(s string) (value, rest string, ok bool) {
	if s == "" || s[0] != '"' {
		return "", "", false
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), s[i+1:], true
		case c == '\\':
			if i++; i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", "", false
			}
			b.WriteByte(s[i])
		case c < ' ' || c > '~':
			return "", "", false
		default:
			b.WriteByte(c)
		}
	}
	return "", "", false
}

// versionParts are the parts of "1.2.3"; nil of "".
func versionParts(version string) []string {
	if version == "" {
		return nil
	}
	return strings.Split(version, ".")
}
