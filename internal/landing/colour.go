package landing

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var hexColour = regexp.MustCompile(`#(?:[0-9a-fA-F]{6}|[0-9a-fA-F]{3})\b`)

// maxColours is how many different ones are counted.
const maxColours = 512

// countColours counts what a style sheet paints in. Of shades of grey there are too
// many on every page for them to say anything.
func (p *parser) countColours(style string) {
	for _, c := range hexColour.FindAllString(style, -1) {
		c = hex(c)
		if _, known := p.colours[c]; c != "" && isVivid(c) && (known || len(p.colours) < maxColours) {
			p.colours[c]++
		}
	}
}

// accent is the most frequent colour; of several the first by its digits, so that a
// page is read the same each time.
func (p *parser) accent() string {
	colours := slices.SortedFunc(maps.Keys(p.colours), func(a, b string) int {
		return cmp.Or(cmp.Compare(p.colours[b], p.colours[a]), strings.Compare(a, b))
	})
	if len(colours) == 0 {
		return ""
	}
	return colours[0]
}

// hex is a colour as #rrggbb in lower case; "" for what is not written in hexadecimal.
func hex(c string) string {
	c = strings.ToLower(c)
	if hexColour.FindString(c) != c || c == "" {
		return ""
	}
	if len(c) == 4 {
		return string([]byte{'#', c[1], c[1], c[2], c[2], c[3], c[3]})
	}
	return c
}

// isVivid reports whether a colour is neither near white or black nor grey.
func isVivid(c string) bool {
	rgb, err := strconv.ParseUint(c[1:], 16, 32)
	if err != nil {
		return false
	}
	r, g, b := int(rgb>>16&0xff), int(rgb>>8&0xff), int(rgb&0xff)
	most, least := max(r, g, b), min(r, g, b)
	return most-least >= 60 && most >= 70 && least <= 200
}
