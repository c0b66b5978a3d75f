package sim

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strings"
)

// hash is a stable number for a name.
func hash(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return h.Sum64()
}

// A palette is the light of a picture, from the sky to the ground.
type palette struct {
	top, bottom, sun string
	layers           []string // far to near
}

// palettes are four times of day.
func palettes() []palette {
	return []palette{
		{"#f2b591", "#fbe8cf", "#fff6e5", []string{"#c98f86", "#9d6a72", "#6d4a5c", "#3d2f42"}}, // dawn
		{"#8fb8c9", "#e6efe6", "#fffbe8", []string{"#9fb8ad", "#6f958c", "#45706b", "#27494a"}}, // noon
		{"#27345c", "#d9857a", "#ffd9a8", []string{"#8a5c78", "#5c4068", "#382c52", "#1d1a36"}}, // dusk
		{"#d9d4c5", "#f4efe2", "#ffffff", []string{"#bcb7a5", "#918f80", "#64675e", "#3b413d"}}, // fog
	}
}

// landscape draws the picture of the article with that index: always the same one,
// in another light than its neighbours', and according to its section with rails,
// water, a path or roofs in front.
func landscape(index int, name, section string) string {
	const w, h = 1200, 800
	r := rand.New(rand.NewPCG(hash(name), 7))
	all := palettes()
	p := all[(2+index)%len(all)]
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" preserveAspectRatio="xMidYMid slice">`, w, h, w, h)
	fmt.Fprintf(&b, `<defs><linearGradient id="s" x2="0" y2="1"><stop stop-color="%s"/><stop offset=".8" stop-color="%s"/></linearGradient></defs><rect width="%d" height="%d" fill="url(#s)"/>`, p.top, p.bottom, w, h)
	sunX, sunY := 200+r.Float64()*800, 150+r.Float64()*160
	fmt.Fprintf(&b, `<circle cx="%.0f" cy="%.0f" r="150" fill="%s" opacity=".22"/><circle cx="%.0f" cy="%.0f" r="%.0f" fill="%s"/>`, sunX, sunY, p.sun, sunX, sunY, 50+r.Float64()*30, p.sun)
	for i, colour := range p.layers[:3] {
		b.WriteString(ridge(r, w, h, 330+float64(i)*95, 120-float64(i)*25, colour))
	}
	near := p.layers[3]
	switch section {
	case "water":
		b.WriteString(waves(w, h, p.layers[2], p.bottom, near))
	case "town":
		b.WriteString(roofs(r, w, h, near, p.sun))
	case "rail":
		b.WriteString(viaduct(w, h, near, p.sun))
	default:
		b.WriteString(path(r, w, h, near, p.bottom))
	}
	b.WriteString(`</svg>`)
	return b.String()
}

// ridge is a line of hills about y, as a sum of three sines.
func ridge(r *rand.Rand, w, h int, y, height float64, colour string) string {
	a, c, d := r.Float64()*6, r.Float64()*6, r.Float64()*6
	var b strings.Builder
	fmt.Fprintf(&b, `<path fill="%s" d="M0 %d`, colour, h)
	for x := 0; x <= w; x += 20 {
		t := float64(x) / float64(w) * 2 * math.Pi
		lift := 0.6*math.Sin(t+a) + 0.3*math.Sin(2.7*t+c) + 0.1*math.Sin(9*t+d)
		fmt.Fprintf(&b, "L%d %.1f", x, y-lift*height)
	}
	fmt.Fprintf(&b, `L%d %dz"/>`, w, h)
	return b.String()
}

// waves is a lake with a ferry on it.
func waves(w, h int, far, light, near string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<rect y="560" width="%d" height="%d" fill="%s"/>`, w, h-560, far)
	for i := range 9 {
		y := 585 + i*i*2 + i*10
		fmt.Fprintf(&b, `<path d="M%d %dq60-8 120 0t120 0 120 0 120 0 120 0 120 0 120 0 120 0 120 0 120 0 120 0" fill="none" stroke="%s" stroke-opacity="%.2f" stroke-width="%d"/>`, -40-i*37%120, y, light, 0.16+float64(i)*0.03, 2+i/3)
	}
	fmt.Fprintf(&b, `<g fill="%s" transform="translate(640 516)"><path d="M0 44h300l-34 46H36z"/><path d="M52 44V8h170v36z"/><path d="M150 8v-44h26V8z"/></g><g fill="%s" opacity=".85" transform="translate(640 516)"><path d="M66 20h14v12H66zM92 20h14v12H92zM118 20h14v12h-14zM144 20h14v12h-14zM170 20h14v12h-14z"/></g>`, near, light)
	return b.String()
}

// viaduct is a train on arches.
func viaduct(w, h int, near, light string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<path fill="%s" d="M0 560h%dv26H0z"/>`, near, w)
	for x := -20; x < w; x += 130 {
		fmt.Fprintf(&b, `<path fill="%s" d="M%d %dV586h130v%dh-26V660a39 46 0 0 0-78 0v%dz"/>`, near, x, h, h-586, h-660)
	}
	for i := range 4 {
		x := 250 + i*168
		fmt.Fprintf(&b, `<g transform="translate(%d 508)"><rect width="160" height="48" rx="7" fill="%s"/><path fill="%s" opacity=".9" d="M14 12h22v16H14zM46 12h22v16H46zM78 12h22v16H78zM110 12h22v16h-22z"/></g>`, x, near, light)
	}
	return b.String()
}

// path is a way up a near hill.
func path(r *rand.Rand, w, h int, near, light string) string {
	var b strings.Builder
	b.WriteString(ridge(r, w, h, 630, 50, near))
	fmt.Fprintf(&b, `<path d="M520 %d C700 740 420 700 560 650 S 640 610 600 585" fill="none" stroke="%s" stroke-width="26" stroke-opacity=".55" stroke-linecap="round"/>`, h+20, light)
	for range 7 {
		x, y, s := r.Float64()*float64(w), 640+r.Float64()*90, 0.6+r.Float64()*0.8
		fmt.Fprintf(&b, `<path transform="translate(%.0f %.0f) scale(%.2f)" fill="%s" d="M0 0-26 0 0-80 26 0z"/>`, x, y, s, near)
	}
	return b.String()
}

// roofs is a town at the foot of the hills, with its windows lit.
func roofs(r *rand.Rand, w, h int, near, light string) string {
	var b strings.Builder
	for x := -30; x < w; {
		width, top := 80+r.IntN(70), 540+r.IntN(90)
		fmt.Fprintf(&b, `<path fill="%s" d="M%d %dV%dl%d-%d %d %dV%dz"/>`, near, x, h, top, width/2, 34+r.IntN(20), width-width/2, 34, h)
		for y := top + 60; y < h-30; y += 56 {
			if r.IntN(3) > 0 {
				fmt.Fprintf(&b, `<rect x="%d" y="%d" width="15" height="22" fill="%s" opacity=".8"/>`, x+18+r.IntN(width-50), y, light)
			}
		}
		x += width + r.IntN(8)
	}
	fmt.Fprintf(&b, `<path fill="%s" d="M560 %dV430l34-90 34 90V%dz"/><circle cx="594" cy="462" r="13" fill="%s" opacity=".9"/>`, near, h, h, light)
	return b.String()
}
