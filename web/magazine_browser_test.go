package web_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/memory"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"deckle/internal/sim/browser"
)

// The magazine's place is kept free while it is on its way, and nothing moves when
// it comes.
func testNothingShifts(t *testing.T, b *browser.Browser) {
	s := startReaderSite(t, readerPage{
		first: `<script>window.shift = 0; new PerformanceObserver((list) => { for (const e of list.getEntries()) shift += e.value }).observe({type: 'layout-shift', buffered: true})</script>`,
		body:  `<div id="div-sidebar"></div><p>` + strings.Repeat("text below it ", 200) + `</p>`,
	})
	p := openMagazine(t, b, s, browser.Desktop())
	browser.Eval[any](p, `void `+corner+`.click()`)
	press(p, kb.Escape)
	p.WaitFor(isClosed)
	browser.Eval[any](p, frames)
	if shift := browser.Eval[float64](p, `shift`); shift > 0 {
		t.Errorf("layout shift %v, want none", shift)
	}
}

const frames = `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 100))))`

// On every screen the whole magazine is on it, its controls are large enough for a
// finger, and nothing is wider than its page.
func testScreens(t *testing.T, b *browser.Browser) {
	views := map[string]browser.View{
		"small phone": {Width: 360, Height: 640}, "landscape phone": {Width: 844, Height: 390}, "laptop": browser.Desktop(),
	}
	if os.Getenv("DECKLE_SLOW") != "" {
		views["tiny"], views["tablet"] = browser.View{Width: 320, Height: 480}, browser.View{Width: 820, Height: 1180}
		views["phone"], views["wide"] = browser.Phone(), browser.View{Width: 2560, Height: 1200}
	}
	for name, view := range views {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startReaderSite(t, readerPage{})
			p := openMagazine(t, b, s, view)
			for page := range 5 {
				p.WaitFor(`Math.abs(` + here + `.getBoundingClientRect().left - ` + root + `.querySelector('.pages').getBoundingClientRect().left) < 1 && ` + here + `.getAttribute('aria-label') === 'Page ` + fmt.Sprint(page+1) + ` of 5'`)
				browser.Eval[any](p, moved)
				wrong := browser.Eval[[]string](p, `(() => {
					const wrong = [], dialog = `+dialog+`, page = `+here+`;
					const inside = (e, what) => { const r = e.getBoundingClientRect();
						if (r.left < -1 || r.top < -1 || r.right > innerWidth + 1 || r.bottom > innerHeight + 1) wrong.push(what + ' leaves the screen: ' + JSON.stringify(r)) };
					inside(page, 'page');
					for (const e of dialog.querySelectorAll('button')) {
						inside(e, e.className);
						const {width, height} = e.getBoundingClientRect();
						if (Math.min(width, height) < 44) wrong.push(e.className + ' is ' + width + 'x' + height);
					}
					for (const e of page.querySelectorAll('.tag, .headline, .sub, .body, .cta')) {
						const {left, right} = e.getBoundingClientRect(), box = page.getBoundingClientRect();
						if (left < box.left || right > box.right + 1) wrong.push(e.className + ' leaves its page');
						if (e.scrollWidth > e.clientWidth + 1) wrong.push(e.className + ' is cut off');
					}
					return wrong;
				})()`)
				for _, w := range wrong {
					t.Errorf("page %d: %s", page, w)
				}
				press(p, kb.ArrowRight)
			}
		})
	}
}

// moved is when nothing moves any more but the hint.
const moved = `Promise.all([...` + dialog + `.getAnimations({subtree: true})].filter((a) => a.timeline === document.timeline && a.animationName !== 'hint').map((a) => a.finished.catch(() => {}))).then(() => ` + frames + `)`

// Every shape of slot shows the headline whole, in every script, and a corner that
// has been folded.
func testShapes(t *testing.T, b *browser.Browser) {
	for name, json := range map[string]string{"Latin": ferry, "Japanese": ryokan, "Arabic": arabic, "accents": accents} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testShapesOf(t, b, json)
		})
	}
}

// accents needs two lines in a leaderboard, and stands out of them above and below.
var accents = strings.Replace(ferry, "Sleep in one country, wake in another", "Åg Çj Éq Äp Ôÿ Šg åj É, Äg Ôj Šq Åp Çÿ Ég Äj Ôq", 1)

func testShapesOf(t *testing.T, b *browser.Browser, json string) {
	var body string
	s := startReaderSite(t, readerPage{tag: true})
	s.change(func(s *readerSite) {
		for _, size := range [][2]int{{728, 90}, {970, 250}, {300, 250}, {336, 280}, {300, 600}, {160, 600}, {320, 100}, {320, 50}} {
			id := fmt.Sprintf("s%dx%d", size[0], size[1])
			body += fmt.Sprintf(`<p><div data-deckle-slot=%q data-w="%d" data-h="%d"></div>`, id, size[0], size[1])
			s.winners[id] = winner{creative: "c" + id, campaign: "k", json: json}
		}
		s.page.body = body
	})
	p := b.Open(t, s.url, browser.View{Width: 1100, Height: 2600})
	p.WaitFor(`document.querySelectorAll('deckle-magazine').length === 8`)
	browser.Eval[any](p, `void document.querySelectorAll('deckle-magazine').forEach((m) => { m.dataset.pinnedPage = '0'; m.creative = m.creative })`)
	p.WaitFor(allReady)
	browser.Eval[any](p, frames)
	for _, w := range browser.Eval[[]string](p, `[...document.querySelectorAll('deckle-magazine')].flatMap((m) => {
		const wrong = [], slot = m.parentElement.dataset.deckleSlot, q = (s) => m.shadowRoot.querySelector(s);
		const page = q('.page').getBoundingClientRect(), headline = q('.headline'), h = headline.getBoundingClientRect();
		if (headline.scrollHeight > headline.clientHeight + 2) wrong.push('headline is cut off');
		const lines = `+ink+`(headline), tag = q('.tag').getBoundingClientRect();
		// The boxes of the glyphs are larger than their ink, but what clips them is not to be nearer.
		if (lines.top < h.top - 1 || lines.bottom > h.bottom + 1) wrong.push('glyphs are cut off: ' + [lines.top - h.top, h.bottom - lines.bottom]);
		if (lines.top < page.top || lines.bottom > page.bottom || h.right > page.right) wrong.push('headline leaves the slot');
		if (tag.height && tag.top < page.top + 4) wrong.push('the tag touches the edge');
		if (parseFloat(getComputedStyle(headline).fontSize) < 13) wrong.push('headline is too small');
		const flap = q('.flap').getBoundingClientRect(), side = Math.max(12, 0.06 * Math.min(page.width, page.height));
		if (Math.abs(flap.width - side) > 0.6 || Math.abs(flap.right - page.right) > 0.6 || Math.abs(flap.top - page.top) > 0.6) wrong.push('flap ' + JSON.stringify(flap));
		if (getComputedStyle(q('.leaf')).clipPath.split(',').length !== 6) wrong.push('not clipped');
		return wrong.map((w) => slot + ': ' + w);
	})`) {
		t.Error(w)
	}
	p.Screenshot("shapes")
}

// Pages of a magazine bound on the right follow one another from right to left.
func testRightToLeft(t *testing.T, b *browser.Browser) {
	for name, tt := range map[string]struct{ html, json, writing, position string }{
		"Arabic":            {`lang="ar" dir="rtl"`, arabic, "horizontal-tb", "الصفحة 2 من 3"},
		"vertical Japanese": {`lang="ja" style="writing-mode: vertical-rl"`, ryokan, "vertical-rl", "3ページ中2ページ"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startReaderSite(t, readerPage{html: tt.html})
			s.change(func(s *readerSite) { s.winners["sidebar-1"] = winner{creative: "c", campaign: "k", json: tt.json} })
			p := openMagazine(t, b, s, browser.Desktop())
			press(p, kb.ArrowLeft)
			p.WaitFor(here + `.getAttribute('aria-label') === '` + tt.position + `' && ` + root + `.querySelector('.status').textContent === '` + tt.position + `'`)
			browser.Eval[any](p, moved)
			got := browser.Eval[string](p, `getComputedStyle(`+here+`.querySelector('.text')).writingMode`)
			if got != tt.writing {
				t.Errorf("text is %s, want %s", got, tt.writing)
			}
			browser.Eval[any](p, `void `+corner+`.click()`)
			p.WaitFor(openClip() + ` === '` + folded6 + `'`)
			side := browser.Eval[string](p, `((f, p) => Math.abs(f.left - p.left) < 1 && Math.abs(f.top - p.top) < 1 ? 'left' : 'elsewhere')(`+here+`.querySelector('.flap').getBoundingClientRect(), `+here+`.getBoundingClientRect())`)
			if side != "left" {
				t.Errorf("the flap is %s, want it at the outer corner, on the left", side)
			}
			press(p, kb.ArrowRight)
			p.WaitFor(root + `.querySelector('.pages .page').matches(':not([inert])')`)
		})
	}
}

// A finger turns pages, and neither finger nor wheel nor key moves the page behind.
func testSwipe(t *testing.T, b *browser.Browser) {
	s := startReaderSite(t, readerPage{body: slot1 + `<div style="height:5000px"></div>`})
	p := openMagazine(t, b, s, browser.Phone())
	browser.Eval[any](p, moved)
	swipe(p, -300, 0)
	p.WaitFor(root + `.querySelector('.status').textContent === 'Page 2 of 5'`)
	swipe(p, -300, 0)
	p.WaitFor(root + `.querySelector('.status').textContent === 'Page 3 of 5'`)
	swipe(p, 300, 0)
	p.WaitFor(root + `.querySelector('.status').textContent === 'Page 2 of 5'`)
	press(p, kb.End)
	p.WaitFor(here + `.querySelector('.cta')`)
	browser.Eval[any](p, moved)
	swipe(p, 0, -400)
	p.Do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: "mouseWheel", X: 200, Y: 300, DeltaX: 0.01, DeltaY: 400})
		return err
	}))
	browser.Eval[any](p, frames)
	press(p, " ", kb.ArrowDown, kb.PageDown)
	browser.Eval[any](p, frames)
	if y := browser.Eval[float64](p, `scrollY`); y != 0 {
		t.Errorf("the page behind has moved by %v", y)
	}
	press(p, kb.Escape)
	p.WaitFor(isClosed)
	swipe(p, 0, -400)
	p.WaitFor(`scrollY > 100`)
}

// swipe draws a finger over the middle of the screen.
func swipe(p *browser.Page, x, y float64) {
	touch := func(kind input.DispatchTouchEventType, points ...*input.TouchPoint) {
		p.Do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, input.DispatchTouchEvent, input.DispatchTouchEventParams{
				Type: kind, TouchPoints: append([]*input.TouchPoint{}, points...), // JSON has [], not null
			})
			return err
		}))
		browser.Eval[any](p, `new Promise((done) => requestAnimationFrame(() => done()))`)
	}
	at := func(part float64) *input.TouchPoint {
		return &input.TouchPoint{X: 195 + x*(part-0.5), Y: 350 + y*(part-0.5)}
	}
	touch("touchStart", at(0))
	for i := range 10 {
		touch("touchMove", at(float64(i+1)/10))
	}
	touch("touchEnd")
}

// What moves while the magazine opens is moved by the compositor: transforms and
// opacity, and one plain colour behind them.
func testMotionIsCheap(t *testing.T, b *browser.Browser) {
	s := startReaderSite(t, readerPage{})
	p := b.Open(t, s.url, browser.Desktop())
	p.WaitFor(shownInSlot)
	got := browser.Eval[string](p, `(`+magazine+`.expand(), [...new Set(`+dialog+`.getAnimations({subtree: true}).flatMap((a) =>
		a.effect.getKeyframes().flatMap((k) => Object.keys(k))))].filter((k) => !['offset', 'easing', 'composite', 'computedOffset'].includes(k)).sort().join(' '))`)
	if want := "backgroundColor opacity transform translate"; got != want {
		t.Errorf("it animates %s, want %s", got, want)
	}
}

// Readers who do not want motion see none.
func testReducedMotion(t *testing.T, b *browser.Browser) {
	s := startReaderSite(t, readerPage{first: `<script>matchMedia = ((match) => (q) => q.includes('reduced-motion: reduce') ? {matches: true} : match.call(window, q))(matchMedia)</script>`})
	p := openMagazine(t, b, s, browser.Desktop())
	p.Do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: "reduce"}}})
		return err
	}))
	p.WaitFor(`(({animationDuration, animationTimingFunction}) => animationDuration === '4.6s' && /^step/.test(animationTimingFunction))(getComputedStyle(` + root + `.querySelector('.hint')))`)
	if n := browser.Eval[int](p, root+`.querySelector('.stage').getAnimations().length`); n > 0 {
		t.Errorf("%d animations of the stage", n)
	}
	got := browser.Eval[string](p, `(`+magazine+`.collapse(), String(`+dialog+`.open))`)
	if got != "false" {
		t.Error("the dialog is still open")
	}
}

// A creative of which a newer version has fewer pages opens at its last.
func testFoldedPageBeyondTheEnd(t *testing.T, b *browser.Browser) {
	s := startReaderSite(t, readerPage{})
	p := b.Open(t, s.url, browser.Desktop())
	p.WaitFor(shownInSlot)
	browser.Eval[any](p, `void (`+magazine+`.dataset.pinnedPage = '11', `+magazine+`.creative = `+magazine+`.creative, `+magazine+`.expand(99))`)
	p.WaitFor(isOpen + ` && ` + here + `.getAttribute('aria-label') === 'Page 5 of 5' && ` + openClip() + ` === '` + folded6 + `'`)
}

// A browser closes at the second Escape, whatever still moves; what the reader opens
// after that stays open.
func testOpenedAgainWhileItCloses(t *testing.T, b *browser.Browser) {
	s := startReaderSite(t, readerPage{})
	p := openMagazine(t, b, s, browser.Desktop())
	browser.Eval[any](p, moved)
	browser.Eval[any](p, `void (`+magazine+`.collapse(), `+dialog+`.close(), `+magazine+`.expand())`)
	browser.Eval[any](p, `new Promise((done) => setTimeout(done, 600))`)
	if !browser.Eval[bool](p, isOpen) {
		t.Error("it has closed by itself")
	}
}

// The text of a vertical cover stands where its lines begin, on the right; in a
// leaderboard it is horizontal and keeps clear of the button.
func testVerticalCover(t *testing.T, b *browser.Browser) {
	for name, view := range map[string]browser.View{"phone": browser.Phone(), "laptop": browser.Desktop()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startReaderSite(t, readerPage{tag: true, html: `lang="ja" style="writing-mode:vertical-rl"`, body: `<div data-deckle-slot="sidebar-1" data-w="728" data-h="90"></div>`})
			s.change(func(s *readerSite) { s.winners["sidebar-1"] = winner{creative: "c", campaign: "k", json: ryokan} })
			p := openMagazine(t, b, s, view)
			browser.Eval[any](p, moved)
			if off := browser.Eval[float64](p, `((t, p) => Math.abs(t.right - p.right))(`+here+`.querySelector('.text').getBoundingClientRect(), `+here+`.getBoundingClientRect())`); off > 1 {
				t.Errorf("the text ends %v px from the right edge", off)
			}
			if view.Width < 728 {
				return
			}
			if wrong := browser.Eval[string](p, `((h, b) => h.right > b.left ? 'the headline ends at ' + h.right + ', the button begins at ' + b.left : '')(`+ink+`(`+root+`.querySelector('.slot .headline')), `+root+`.querySelector('.open svg').getBoundingClientRect())`); wrong != "" {
				t.Error(wrong)
			}
		})
	}
}

// ink is where the lines of an element are.
const ink = `((e) => { const range = document.createRange(); range.selectNodeContents(e); return range.getBoundingClientRect() })`

// Opening and closing leaves nothing behind.
func TestMemoryIsFlat(t *testing.T) {
	if os.Getenv("DECKLE_SLOW") == "" {
		t.Skip("DECKLE_SLOW is not set")
	}
	t.Parallel()
	const cycles = 200
	s := startReaderSite(t, readerPage{first: `<script>Element.prototype.animate = undefined</script>`})
	p := openMagazine(t, browser.Start(t), s, browser.Desktop())
	const some = 20
	cycle := func(n int) counters {
		for range n / some {
			browser.Eval[any](p, fmt.Sprintf(`(async () => { for (let i = 0; i < %d; i++) {
				const m = %s; m.expand(i %% 5); await new Promise((d) => setTimeout(d)); %s.click(); m.collapse(); await new Promise((d) => setTimeout(d));
			} })()`, some, magazine, corner))
		}
		return count(t, p)
	}
	first := cycle(cycles / 2)
	// A cover that leaked in every cycle would be thousands of nodes.
	if last := cycle(cycles); last.nodes > first.nodes+60 || last.listeners > first.listeners+25 || last.heap > first.heap+first.heap/4 {
		t.Errorf("after %d cycles %+v, before %+v", cycles, last, first)
	}
}

type counters struct{ nodes, listeners, heap int64 }

// count counts what is left after the garbage has been collected.
func count(t *testing.T, p *browser.Page) counters {
	t.Helper()
	var c counters
	p.Do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		if _, err := cdp.Call(ctx, target, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
			return err
		}
		dom, err := cdp.Call(ctx, target, memory.GetDOMCounters, cdp.Empty{})
		if err != nil {
			return err
		}
		heap, err := cdp.Call(ctx, target, runtime.GetHeapUsage, cdp.Empty{})
		c = counters{nodes: dom.Nodes, listeners: dom.JsEventListeners, heap: int64(heap.UsedSize)}
		return err
	}))
	return c
}

// The longest magazine that the catalog takes fits into every slot and can be read
// to its end on a small phone.
func testLongestMagazine(t *testing.T, b *browser.Browser) {
	words := func(word string, length int) string { return strings.Repeat(word+" ", length)[:length] }
	page := func(layout string) string {
		return fmt.Sprintf(`{"tag":%q,"headline":%q,"sub":%q,"body":%q,"caption":%q,"ctaLabel":%q,"layout":%q,"image":{"src":"/pictures/night-ferry.svg","alt":"x"},"background":"#1d1a36","ink":"#fdf6ea"}`,
			words("tag", 40), words("headline", 120), words("sub", 200), words("body", 2000), words("caption", 200), words("label", 40), layout)
	}
	pages := strings.Repeat(page("full")+","+page("split")+","+page("text")+",", 4)
	longest := `"landingUrl":"https://a.example/","pages":[` + strings.TrimSuffix(pages, ",") + `]`
	s := startReaderSite(t, readerPage{tag: true})
	s.change(func(s *readerSite) {
		for _, size := range [][2]int{{300, 250}, {728, 90}, {320, 50}, {320, 100}, {300, 600}} {
			id := fmt.Sprintf("s%dx%d", size[0], size[1])
			s.page.body += fmt.Sprintf(`<p><div data-deckle-slot=%q data-w="%d" data-h="%d"></div>`, id, size[0], size[1])
			s.winners[id] = winner{creative: "c" + id, campaign: "k", json: longest}
		}
	})
	p := b.Open(t, s.url, browser.View{Width: 320, Height: 568})
	p.WaitFor(`document.querySelectorAll('deckle-magazine').length === 5`)
	p.WaitFor(allReady)
	for _, w := range browser.Eval[[]string](p, `[...document.querySelectorAll('deckle-magazine')].flatMap((m) => {
		const box = m.shadowRoot.querySelector('.page').getBoundingClientRect(), r = m.shadowRoot.querySelector('.headline').getBoundingClientRect();
		return r.top < box.top || r.bottom > box.bottom ? [m.parentElement.dataset.deckleSlot + ': the headline leaves the slot'] : [];
	})`) {
		t.Error(w)
	}
	browser.Eval[any](p, `void `+magazine+`.expand()`)
	p.WaitFor(isOpen)
	for page := range 3 {
		browser.Eval[any](p, moved)
		wrong := browser.Eval[string](p, `(() => {
			const text = `+here+`.querySelector('.text'), box = text.getBoundingClientRect();
			if (text.tabIndex !== 0) return 'the text cannot be scrolled by keyboard';
			text.scrollTop = 1e6;
			const {top, bottom} = `+here+`.querySelector('.cta').getBoundingClientRect();
			if (top < box.top || bottom > box.bottom) return 'the call to action cannot be reached';
			const ticks = `+dialog+`.querySelector('.ticks').getBoundingClientRect();
			const [previous, next] = ['.previous', '.next'].map((b) => `+dialog+`.querySelector(b).getBoundingClientRect());
			return ticks.left < previous.right || ticks.right > next.left ? 'the ticks are below the buttons' : '';
		})()`)
		if wrong != "" {
			t.Errorf("page %d: %s", page, wrong)
		}
		press(p, kb.PageDown)
	}
}
