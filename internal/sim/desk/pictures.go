package desk

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

// Pictures are upright, as a page is, and always the same.
const width, height = 900, 1200

// A drawing is an SVG in the making.
type drawing struct {
	strings.Builder
	rand *rand.Rand
}

// draw begins a drawing whose sky goes from one colour to another.
func draw(seed uint64, top, bottom string) *drawing {
	d := &drawing{rand: rand.New(rand.NewPCG(seed, 11))}
	d.put(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" preserveAspectRatio="xMidYMid slice">`, width, height, width, height)
	d.put(`<defs><linearGradient id="sky" x2="0" y2="1"><stop stop-color="%s"/><stop offset=".78" stop-color="%s"/></linearGradient></defs><rect width="%d" height="%d" fill="url(#sky)"/>`, top, bottom, width, height)
	return d
}

func (d *drawing) put(format string, args ...any) { fmt.Fprintf(d, format, args...) }

func (d *drawing) done() string {
	d.WriteString(`</svg>`)
	return d.String()
}

// disc is a sun or a moon with its haze.
func (d *drawing) disc(x, y, r float64, colour string) {
	d.put(`<circle cx="%.0f" cy="%.0f" r="%.0f" fill="%s" opacity=".18"/><circle cx="%.0f" cy="%.0f" r="%.0f" fill="%s"/>`, x, y, r*2.1, colour, x, y, r, colour)
}

// ridge is a line of hills about y, as a sum of sines.
func (d *drawing) ridge(y, lift, waves float64, colour string) {
	a, b, c := d.rand.Float64()*6, d.rand.Float64()*6, d.rand.Float64()*6
	d.put(`<path fill="%s" d="M0 %d`, colour, height)
	for x := 0; x <= width; x += 12 {
		t := waves * float64(x) / width * 2 * math.Pi
		d.put("L%d %.1f", x, y-lift*(0.6*math.Sin(t+a)+0.28*math.Sin(2.3*t+b)+0.12*math.Sin(7*t+c)))
	}
	d.put(`L%d %dz"/>`, width, height)
}

// trees are firs along y.
func (d *drawing) trees(n int, y, spread float64, colour string) {
	for range n {
		x, s := d.rand.Float64()*width, 0.5+d.rand.Float64()
		d.put(`<path transform="translate(%.0f %.0f) scale(%.2f)" fill="%s" d="M0 0-24 0-8-34-18-34-5-64-12-64 0-96 12-64 5-64 18-34 8-34 24 0z"/>`, x, y+d.rand.Float64()*spread, s, colour)
	}
}

// A season is the light of a valley.
type season struct {
	seed                 uint64
	top, bottom, disc    string
	far, middle, near    string
	tree, wall, roof     string
	snow                 bool
	discX, discY, radius float64
}

func autumn() season {
	return season{3, "#2b1b33", "#e3885a", "#ffe6bd", "#8c3f45", "#6a2b3a", "#401d2a", "#2a1420", "#1c0f17", "#120a10", false, 640, 300, 92}
}

func winter() season {
	return season{5, "#5d7f95", "#e9eff1", "#fdfdf8", "#b7cad3", "#8faab8", "#dfe8ec", "#3d5664", "#26343d", "#f2f6f7", true, 250, 260, 70}
}

// valley is an inn among hills, its windows lit.
func valley(s season) string {
	d := draw(s.seed, s.top, s.bottom)
	d.disc(s.discX, s.discY, s.radius, s.disc)
	d.ridge(560, 130, 1.1, s.far)
	d.ridge(700, 110, 1.6, s.middle)
	d.trees(26, 760, 60, s.tree)
	for i := range 3 { // steam of the spring
		d.put(`<path d="M%d 820c-40-60 40-110 0-170s30-90 6-150" fill="none" stroke="#fff" stroke-opacity=".3" stroke-width="%d" stroke-linecap="round"/>`, 560+i*36, 16-i*4)
	}
	d.ridge(880, 40, 0.8, s.near)
	d.put(`<g transform="translate(250 770)"><path fill="%s" d="M20 70h360v130H20z"/><path fill="%s" d="M-30 80 70 0h260l100 80-22 8H-8z"/>`, s.wall, s.roof)
	for i := range 7 {
		d.put(`<rect x="%d" y="104" width="34" height="52" rx="2" fill="#ffcf87"/><path d="M%d 104v52" stroke="%s" stroke-width="2"/>`, 38+i*48, 55+i*48, s.wall)
	}
	d.put(`</g><path fill="%s" d="M0 %d V985 C260 925 620 955 900 1000 V%d z"/>`, s.near, height, height)
	if s.snow {
		for range 150 {
			d.put(`<circle cx="%d" cy="%d" r="%.1f" fill="#fff" opacity=".85"/>`, d.rand.IntN(width), d.rand.IntN(height), 1.5+d.rand.Float64()*3)
		}
	} else {
		d.trees(9, 1090, 90, s.roof)
	}
	return d.done()
}

// nightTrain crosses a plain.
func nightTrain() string {
	d := draw(17, "#070b1c", "#2b3560")
	for range 170 {
		d.put(`<circle cx="%d" cy="%d" r="%.1f" fill="#fff" opacity="%.2f"/>`, d.rand.IntN(width), d.rand.IntN(760), 0.7+d.rand.Float64()*1.7, 0.3+d.rand.Float64()*0.7)
	}
	d.put(`<defs><linearGradient id="glow" x2="0" y2="1"><stop stop-color="#ffe2a1" stop-opacity=".32"/><stop offset="1" stop-color="#ffe2a1" stop-opacity="0"/></linearGradient></defs>`)
	d.disc(690, 210, 46, "#fdf3d8")
	d.ridge(770, 60, 1.3, "#1c2447")
	d.ridge(830, 30, 2, "#121834")
	d.put(`<path fill="#0a0e20" d="M0 884h900v316H0z"/><path d="M0 888h900" stroke="#4a5788" stroke-width="3"/>`)
	for i := range 5 {
		x := -60 + i*184
		d.put(`<g transform="translate(%d 806)"><rect width="176" height="70" rx="11" fill="#0b1026"/><rect y="50" width="176" height="6" fill="#f3c969"/>`, x)
		for w := range 5 {
			d.put(`<rect x="%d" y="16" width="24" height="22" rx="4" fill="#ffe2a1"/>`, 12+w*32)
		}
		d.put(`</g><g transform="translate(%d 900)">`, x)
		for w := range 5 { // in the wet meadow
			d.put(`<rect x="%d" width="24" height="170" fill="url(#glow)"/>`, 12+w*32)
		}
		d.put(`</g>`)
	}
	d.put(`<path fill="#0b1026" d="M860 806h20q50 12 58 70h-78z"/>`)
	return d.done()
}

// timetable is a line with its stops, alternately named on either side.
func timetable() string {
	d := draw(19, "#f4f1ea", "#e7e1d3")
	type stop struct {
		x, y int
		hour string
	}
	stops := []stop{{310, 120, "20.40"}, {400, 270, "21.55"}, {520, 400, "23.10"}, {580, 570, "1.35"}, {430, 730, "3.20"}, {380, 910, "5.45"}, {520, 1080, "7.12"}}
	d.put(`<path d="M%d %d`, stops[0].x, stops[0].y)
	for i, to := range stops[1:] {
		from := stops[i]
		d.put("C%d %d %d %d %d %d", from.x, (from.y+to.y)/2, to.x, (from.y+to.y)/2, to.x, to.y)
	}
	d.put(`" fill="none" stroke="#1b2036" stroke-width="14" stroke-linecap="round"/>`)
	for i, s := range stops {
		x, anchor := s.x+48, "start"
		if i%2 == 1 {
			x, anchor = s.x-48, "end"
		}
		d.put(`<circle cx="%d" cy="%d" r="19" fill="#f4f1ea" stroke="#8a5a00" stroke-width="9"/><text x="%d" y="%d" font-family="Georgia, serif" font-size="50" fill="#1b2036" text-anchor="%s">%s</text>`, s.x, s.y, x, s.y+17, anchor, s.hour)
	}
	return d.done()
}

// contours are a hill on a map.
func contours() string {
	d := draw(23, "#3d4c33", "#2c3825")
	for i := range 17 {
		r := 60 + float64(i)*52
		d.put(`<path fill="none" stroke="#dfe0b8" stroke-opacity="%.2f" stroke-width="%.1f" d="`, 0.62-float64(i)*0.025, 2+float64((i+1)%5/4)*2)
		for a := 0; a <= 360; a += 6 {
			t := float64(a) * math.Pi / 180
			bend := 1 + 0.16*math.Sin(2*t+0.5+float64(i)*0.06) + 0.07*math.Sin(5*t+1.3) + 0.03*math.Sin(9*t+float64(i)*0.2)
			d.put("%s%.1f %.1f", map[bool]string{true: "M", false: "L"}[a == 0], 520+r*bend*math.Cos(t), 450+r*1.12*bend*math.Sin(t))
		}
		d.put(`z"/>`)
	}
	d.put(`<path d="M120 1130 C260 1010 180 880 330 800 S560 760 520 640 600 500 520 452" fill="none" stroke="#f0c274" stroke-width="9" stroke-linecap="round" stroke-dasharray="1 24"/><path d="M502 452l18-40 18 40z" fill="#f0c274"/>`)
	return d.done()
}

// spines are books on a shelf.
func spines() string {
	d := draw(29, "#f3dfbd", "#e2bf8c")
	x := 96
	colours := []string{"#7a2e1d", "#23485c", "#c98a2b", "#3f5b3a", "#b4532a", "#2b2a44", "#5c2342"}
	for i, colour := range colours {
		w, h := 58+i*13%34, 520+i*37%130
		y := 900 - h
		d.put(`<g><rect x="%d" y="%d" width="%d" height="%d" rx="4" fill="%s"/><rect x="%d" y="%d" width="%d" height="5" fill="#f6e4c0" opacity=".85"/><rect x="%d" y="%d" width="%d" height="5" fill="#f6e4c0" opacity=".85"/><circle cx="%d" cy="%d" r="9" fill="#f6e4c0" opacity=".85"/></g>`,
			x, y, w, h, colour, x, y+52, w, x, y+h-70, w, x+w/2, y+104)
		x += w + 5
	}
	d.put(`<g transform="translate(%d 900) rotate(-13)"><rect y="-560" width="60" height="560" rx="4" fill="#1f6e6a"/><rect y="-506" width="60" height="5" fill="#f6e4c0"/><rect y="-76" width="60" height="5" fill="#f6e4c0"/></g>`, x+132)
	d.put(`<rect y="900" width="900" height="34" fill="#6b431f"/><rect y="934" width="900" height="266" fill="#4c2e14" opacity=".35"/>`)
	return d.done()
}

// A sea is the light of an archipelago.
type sea struct{ top, bottom, disc, water, far, near, foam string }

func noonSea() sea {
	return sea{"#7cc6d6", "#fbe9c8", "#fff7df", "#15788b", "#4b8f86", "#1e5a52", "#ffffff"}
}

func winterSea() sea {
	return sea{"#7f8f9a", "#d9dfe0", "#f6f4ea", "#566b78", "#7d8c92", "#3b4a52", "#eef2f3"}
}

// archipelago is nine islands and a ferry's wake.
func archipelago(s sea) string {
	d := draw(31, s.top, s.bottom)
	d.disc(250, 250, 74, s.disc)
	d.put(`<rect y="520" width="900" height="680" fill="%s"/>`, s.water)
	for i, island := range []struct{ x, y, w, h int }{
		{60, 524, 210, 54},
		{300, 522, 120, 30},
		{480, 526, 260, 80},
		{770, 522, 150, 44},
		{-40, 640, 250, 96},
		{640, 660, 330, 130},
		{260, 700, 150, 52},
		{-60, 880, 330, 150},
		{690, 930, 300, 140},
	} {
		colour := s.far
		if i > 3 {
			colour = s.near
		}
		d.put(`<path fill="%s" d="M%d %dq%d-%d %d-%dt%d %d q%d %d %d %dz"/>`, colour, island.x, island.y, island.w/6, island.h, island.w/2, island.h, island.w/4, island.h/3, island.w/8, island.h/3, island.w/4, island.h*2/3)
		d.put(`<ellipse cx="%d" cy="%d" rx="%d" ry="7" fill="%s" opacity=".35"/>`, island.x+island.w/2, island.y+2, island.w/2, s.foam)
	}
	for i := range 26 {
		y := 560 + i*25
		x := d.rand.IntN(800)
		d.put(`<path d="M%d %dq30-7 60 0t60 0" fill="none" stroke="%s" stroke-opacity=".28" stroke-width="3"/>`, x, y, s.foam)
	}
	d.put(`<path d="M452 1200 C440 1060 380 980 470 866" fill="none" stroke="%s" stroke-opacity=".55" stroke-width="26" stroke-linecap="round"/><path d="M500 1200 C540 1060 530 960 486 866" fill="none" stroke="%s" stroke-opacity=".4" stroke-width="16" stroke-linecap="round"/>`, s.foam, s.foam)
	d.put(`<g transform="translate(414 790)"><path fill="#fff" d="M0 40h130l-22 40H18z"/><path fill="#d7472f" d="M4 54h122l-5 9H9z"/><path fill="#fff" d="M22 12h84v28H22z"/><path fill="#d7472f" d="M70-12h18v24H70z"/><path fill="%s" d="M30 20h10v8H30zM48 20h10v8H48zM66 20h10v8H66zM84 20h10v8H84z"/></g>`, s.water)
	return d.done()
}

// flask stands at a window.
func flask() string {
	d := draw(37, "#4b2f22", "#7d5136")
	d.put(`<rect x="90" y="90" width="720" height="640" rx="46" fill="#e9b97f"/><clipPath id="window"><rect x="90" y="90" width="720" height="640" rx="46"/></clipPath><g clip-path="url(#window)">`)
	d.disc(620, 300, 70, "#fff1d6")
	d.ridge(520, 70, 1.2, "#b97b55")
	d.ridge(610, 50, 1.8, "#8a5640")
	d.put(`</g><rect y="860" width="900" height="340" fill="#3a2318"/><rect y="850" width="900" height="18" fill="#8f6242"/>`)
	d.put(`<g transform="translate(270 430)"><rect width="150" height="430" rx="26" fill="#244a47"/><rect x="18" y="-70" width="114" height="90" rx="16" fill="#c9ced0"/><rect y="96" width="150" height="12" fill="#ffc98a"/><rect y="330" width="150" height="12" fill="#ffc98a"/><rect x="16" y="20" width="16" height="370" rx="8" fill="#fff" opacity=".16"/></g>`)
	d.put(`<g transform="translate(520 720)"><path fill="#c9ced0" d="M0 0h150l-14 126q-2 14-18 14H32q-16 0-18-14z"/><ellipse cx="75" cy="3" rx="75" ry="15" fill="#6b2f12"/></g>`)
	for i := range 3 {
		d.put(`<path d="M%d 700c-34-60 34-90 0-150s24-70 8-120" fill="none" stroke="#fff" stroke-opacity=".4" stroke-width="%d" stroke-linecap="round"/>`, 560+i*38, 13-i*3)
	}
	return d.done()
}
