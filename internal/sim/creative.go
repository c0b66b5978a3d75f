package sim

import (
	"fmt"
	"html"
	"net/http"
	"strconv"

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
	return fmt.Sprintf(`<a href="https://%[2]s.example/" target="_top">`+
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

// picture draws an ad of any size: a strip (mobile banner), a leaderboard or a
// block. The seat stands small in its corner, so that one sees who has bought it.
func picture(b brand, seat string, s deckle.Size) string {
	w, h := float64(s.W), float64(s.H)
	art, name, line := h*0.7, h*0.3, h*0.16 // height of the art, sizes of type
	artX, artY := h*0.16, h*0.15
	textX, textY := artX+art+h*0.22, h*0.48
	button := ""
	switch {
	case h <= 60: // strip: art and two lines
		name, line = 17, 12
		textY = h * 0.46
	case w/h >= 2.5: // leaderboard: a button to the right
		name, line = h*0.26, h*0.16
		if h > 120 {
			name, line = h*0.2, h*0.105
			textY = h * 0.46
		}
		size := min(h*0.15, 20)
		width := float64(len(b.call))*size*0.58 + size*2.2
		button = callButton(b, w-width-h*0.22, h/2-size*1.3, width, size)
	default: // block: everything below each other
		art = min(w, h) * 0.42
		artX, artY = w*0.08, h*0.1
		textX, textY = w*0.08, artY+art+w*0.13
		name, line = w*0.105, w*0.052
		size := w * 0.048
		button = callButton(b, w*0.08, h-size*3.5, float64(len(b.call))*size*0.58+size*2.2, size)
		if h > w*1.6 { // half page: the button keeps to the text
			button = callButton(b, w*0.08, textY+line*4, float64(len(b.call))*size*0.58+size*2.2, size)
		}
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d" viewBox="0 0 %[1]d %[2]d">
<defs><linearGradient id="g" x2="1" y2="1"><stop stop-color="%[3]s"/><stop offset="1" stop-color="%[4]s"/></linearGradient></defs>
<rect width="100%%" height="100%%" fill="url(#g)"/>
<path d="M%[5].0f %[2]dQ%[6].0f %[7].0f %[1]d %[8].0fV%[2]dz" fill="%[9]s" opacity=".08"/>
<svg x="%[10].1f" y="%[11].1f" width="%[12].1f" height="%[12].1f" viewBox="0 0 100 100">%[13]s</svg>
<g fill="%[9]s" font-family="Georgia,'Times New Roman',serif"><text x="%[14].1f" y="%[15].1f" font-size="%[16].1f" font-weight="700">%[17]s</text>
<text x="%[14].1f" y="%[18].1f" font-size="%[19].1f" opacity=".86">%[20]s</text></g>
%[21]s<text x="%[22]d" y="%[23]d" text-anchor="end" font-family="system-ui,sans-serif" font-size="9" fill="%[9]s" opacity=".6">%[24]s</text>
<rect x=".5" y=".5" width="%[25]d" height="%[26]d" fill="none" stroke="#000" stroke-opacity=".2"/></svg>`,
		s.W, s.H, b.sky, b.ground, w*0.3, w*0.6, h*0.1, h*0.45, b.ink,
		artX, artY, art, b.shape, textX, textY, name, html.EscapeString(b.name),
		textY+line*1.55, line, html.EscapeString(b.line),
		button, s.W-6, 12, html.EscapeString(seat), s.W-1, s.H-1)
}

// callButton draws the call to action with its type size.
func callButton(b brand, x, y, width, size float64) string {
	return fmt.Sprintf(`<g><rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="%.1f" fill="%s"/>`+
		`<text x="%.1f" y="%.1f" text-anchor="middle" font-family="system-ui,sans-serif" font-weight="600" font-size="%.1f" fill="%s">%s</text></g>`,
		x, y, width, size*2.6, size*1.3, b.ink, x+width/2, y+size*1.65, size, b.sky, html.EscapeString(b.call))
}
