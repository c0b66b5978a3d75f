package sim

import (
	"fmt"
	"html"
	"net/http"
	"strconv"
	"strings"

	"deckle"
)

// A brand is what a seat advertises. The brands are made up.
type brand struct {
	name, line, call string
	sky, ground, ink string // CSS colours
	shape            string // SVG, in a box of 100 × 100
}

// brandOf is the brand that a seat advertises.
func brandOf(seat string) brand {
	switch seat {
	case automatad:
		return brand{
			name: "Fjell & Fern", line: "Wool that has seen weather", call: "See the blankets",
			sky: "#0f3d3e", ground: "#14585a", ink: "#f4ead5",
			shape: `<path d="M0 78 26 34l16 24 14-20 44 40z" fill="#e9a23b"/><path d="M26 34l7 11-7 4-6-5z" fill="#f4ead5"/><circle cx="78" cy="24" r="10" fill="#f4ead5"/>`,
		}
	case optidigital:
		return brand{
			name: "Tidewater", line: "Night ferries with real beds", call: "Find a cabin",
			sky: "#14213d", ground: "#1d3461", ink: "#fdf0d5",
			shape: `<path d="M12 58h76l-12 18H26z" fill="#fca311"/><path d="M30 58V40h34v18z" fill="#fdf0d5"/><path d="M48 40V24h8v16z" fill="#e5e5e5"/><path d="M4 84q12-8 24 0t24 0 24 0 24 0" fill="none" stroke="#fdf0d5" stroke-width="3"/>`,
		}
	case pwbid:
		return brand{
			name: "Oak & Lantern", line: "Rooms above the old post road", call: "Stay two nights",
			sky: "#5b2333", ground: "#74303f", ink: "#fff4e4",
			shape: `<path d="M50 12 84 40v46H16V40z" fill="#f7c59f"/><path d="M42 86V58h16v28z" fill="#5b2333"/><circle cx="50" cy="42" r="8" fill="#5b2333"/>`,
		}
	}
	return brand{
		name: "Slow Lines", line: "Four issues a year, on paper", call: "Read the next one",
		sky: "#26312b", ground: "#34433a", ink: "#f6f1e6",
		shape: `<path d="M14 20h34v62H14zM52 20h34v62H52z" fill="#f6f1e6"/><path d="M22 34h18M22 44h18M22 54h12M60 34h18M60 44h18M60 54h12" stroke="#34433a" stroke-width="3"/>`,
	}
}

// creative is the markup of a seat's ad: a linked picture of the seat's brand and
// the pixel that counts the impression. base is the server's "//host:port": an
// address without a scheme is secure wherever the page is.
func creative(base, seat, bidID string, size deckle.Size) string {
	return fmt.Sprintf(`<style>body{margin:0}</style><a href="https://%[2]s.example/" target="_top">`+
		`<img src="%[1]s/img?s=%[2]s&w=%[4]d&h=%[5]d" width="%[4]d" height="%[5]d" alt="%[6]s" style="display:block;border:0"></a>`+
		`<img src="%[1]s/ev/imp?b=%[3]s&p=${AUCTION_PRICE}" width="1" height="1" alt="" style="position:absolute">`,
		base, seat, bidID, size.W, size.H, html.EscapeString(brandOf(seat).name+": "+brandOf(seat).line))
}

// image serves /img?s=seat&w=&h=.
func image(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	size := deckle.Size{W: within(q.Get("w"), 300), H: within(q.Get("h"), 250)}
	w.Header().Set("Content-Type", "image/svg+xml")
	w.Header().Set("Cache-Control", "public, max-age=3600")
	fmt.Fprint(w, picture(brandOf(q.Get("s")), q.Get("s"), size))
}

// within reads a length in pixels, or gives the default.
func within(s string, length int) int {
	if n, err := strconv.Atoi(s); err == nil && n > 0 && n <= 4000 {
		return n
	}
	return length
}

// A layout says where the parts of an ad's picture are: for a strip (mobile
// banner), a leaderboard or a block.
type layout struct {
	art, artX, artY   float64 // side and place of the square drawing
	textX, textY      float64 // where the name stands
	name, line        float64 // sizes of type
	button            float64 // size of the button's type; 0 = none
	buttonX, buttonY  float64
	buttonFromTheEdge bool // buttonX counts from the right edge to the button's right
}

// layoutFor fits a picture into any size.
func layoutFor(w, h float64) layout {
	l := layout{art: h * 0.7, artX: h * 0.16, artY: h * 0.15, textX: h * 1.08, textY: h * 0.48}
	switch {
	case h <= 60: // strip
		l.name, l.line, l.textY = 17, 12, h*0.46
	case w/h >= 2.5: // leaderboard: the button to the right
		l.name, l.line = h*0.26, h*0.16
		if h > 120 {
			l.name, l.line, l.textY = h*0.2, h*0.105, h*0.46
		}
		l.button = min(h*0.15, 20)
		l.buttonX, l.buttonY, l.buttonFromTheEdge = h*0.22, h/2-l.button*1.3, true
	default: // block: everything below each other
		l = layout{art: min(w, h) * 0.42, artX: w * 0.08, artY: h * 0.07, textX: w * 0.08, name: w * 0.105, line: w * 0.052}
		l.textY = l.artY + l.art + w*0.13
		l.button, l.buttonX = w*0.048, w*0.08
		l.buttonY = h - l.button*3.5
		if h > w*1.5 { // half page: bigger, and with air
			l.art, l.artY, l.textY, l.buttonY = w*0.64, h*0.12, h*0.58, h*0.75
		}
	}
	return l
}

// picture draws an ad. The seat stands small in its corner, so that one sees who
// has bought it.
func picture(b brand, seat string, s deckle.Size) string {
	w, h := float64(s.W), float64(s.H)
	l := layoutFor(w, h)
	var svg strings.Builder
	draw := func(format string, args ...any) { fmt.Fprintf(&svg, format, args...) }
	draw(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d">`, s.W, s.H, s.W, s.H)
	draw(`<defs><linearGradient id="g" x2="1" y2="1"><stop stop-color="%s"/><stop offset="1" stop-color="%s"/></linearGradient></defs>`, b.sky, b.ground)
	draw(`<rect width="100%%" height="100%%" fill="url(#g)"/>`)
	draw(`<path d="M%.0f %.0fQ%.0f %.0f %.0f %.0fV%.0fz" fill="%s" opacity=".08"/>`, w*0.3, h, w*0.6, h*0.1, w, h*0.45, h, b.ink)
	draw(`<svg x="%.1f" y="%.1f" width="%.1f" height="%.1f" viewBox="0 0 100 100">%s</svg>`, l.artX, l.artY, l.art, l.art, b.shape)
	draw(`<g fill="%s" font-family="Georgia,'DejaVu Serif',serif">`, b.ink)
	draw(`<text x="%.1f" y="%.1f" font-size="%.1f" font-weight="700">%s</text>`, l.textX, l.textY, l.name, html.EscapeString(b.name))
	draw(`<text x="%.1f" y="%.1f" font-size="%.1f" opacity=".86">%s</text></g>`, l.textX, l.textY+l.line*1.6, l.line, html.EscapeString(b.line))
	if l.button > 0 {
		width := float64(len(b.call))*l.button*0.58 + l.button*2.2
		x := l.buttonX
		if l.buttonFromTheEdge {
			x = w - l.buttonX - width
		}
		draw(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="%.1f" fill="%s"/>`, x, l.buttonY, width, l.button*2.6, l.button*1.3, b.ink)
		draw(`<text x="%.1f" y="%.1f" text-anchor="middle" font-family="system-ui,sans-serif" font-weight="600" font-size="%.1f" fill="%s">%s</text>`,
			x+width/2, l.buttonY+l.button*1.65, l.button, b.sky, html.EscapeString(b.call))
	}
	draw(`<text x="%.0f" y="12" text-anchor="end" font-family="system-ui,sans-serif" font-size="9" fill="%s" opacity=".6">%s</text>`, w-6, b.ink, html.EscapeString(seat))
	draw(`<rect x=".5" y=".5" width="%d" height="%d" fill="none" stroke="#000" stroke-opacity=".2"/></svg>`, s.W-1, s.H-1)
	return svg.String()
}
