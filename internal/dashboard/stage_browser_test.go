package dashboard_test

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"deckle/internal/catalog"
	"deckle/internal/sim/browser"
)

// paints reports how much of the screen is of a colour, in pixels. A frame without an
// origin tells nobody what is in it: what it shows is seen.
func (d *desk) paints(c color.RGBA) (n int) {
	d.t.Helper()
	var shot []byte
	d.Do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) (err error) {
		shot, err = chromedp.Run(ctx, chromedp.CaptureScreenshot())
		return err
	}))
	m, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		d.t.Fatal(err)
	}
	return count(m, c)
}

func count(m image.Image, c color.RGBA) (n int) {
	b := m.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			r, g, bl, _ := m.At(x, y).RGBA()
			if near8(r, c.R) && near8(g, c.G) && near8(bl, c.B) {
				n++
			}
		}
	}
	return n
}

func near8(got uint32, want uint8) bool {
	d := int(got>>8) - int(want)
	return d >= -3 && d <= 3
}

// waitForPaint returns when the screen has so much of a colour.
func (d *desk) waitForPaint(c color.RGBA, least int) {
	d.t.Helper()
	var got int
	for end := time.Now().Add(browser.Patience); time.Now().Before(end); {
		if got = d.paints(c); got >= least {
			return
		}
	}
	d.t.Fatalf("%d pixels of %v, want %d", got, c, least)
}

// written is what somebody can write in a headline who wants to run something.
const written = `</script><script>top.ran=1</script><img src=x onerror="top.ran=1">`

var (
	petrol = color.RGBA{0x1d, 0x3b, 0x3a, 255}
	brick  = color.RGBA{0x8c, 0x2f, 0x1f, 255}
)

// petrolMagazine is what populate has, in a colour that nothing else on the page has,
// and with a picture of another such colour.
func petrolMagazine(w *world) {
	w.t.Helper()
	x, _ := w.catalog.Snapshot().Creative("ryokan-magazine-001")
	next := *x
	asset, err := catalog.Rehost(w.t.Context(), w.blobs, plain(brick))
	if err != nil {
		w.t.Fatal(err)
	}
	next.Pages = append([]catalog.Page{{
		Headline: written, Background: "#1d3b3a", Ink: "#ffffff", Image: &catalog.Image{Src: asset.Src, Alt: written}, Layout: "split",
	}}, x.Pages...)
	w.put(&next)
}

func plain(c color.RGBA) []byte {
	m := image.NewRGBA(image.Rect(0, 0, 400, 300))
	for i := 0; i < len(m.Pix); i += 4 {
		m.Pix[i], m.Pix[i+1], m.Pix[i+2], m.Pix[i+3] = c.R, c.G, c.B, 255
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// The magazine is painted in the inbox, picture and all, by the element that readers
// get; what is in it runs nothing and breaks no policy.
func TestStageIsPainted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.populate()
	petrolMagazine(w)
	d := sit(t, browser.Start(t), w.serve(), browser.Desktop())
	for _, path := range []string{"/inbox", "/creatives/ryokan-magazine-001/preview", "/creatives/ryokan-magazine-001"} {
		d.open(path)
		browser.Eval[any](d.Page, `document.querySelector('iframe[src*="magazine-001"]').scrollIntoView()`)
		d.waitForPaint(petrol, 10_000)
		d.waitForPaint(brick, 10_000)
		if browser.Eval[bool](d.Page, `!!document.querySelector('iframe').contentDocument || 'ran' in window`) {
			t.Errorf("%s: the page reaches into the frame, or something has run", path)
		}
	}
	d.open("/inbox")
	d.Do(chromedp.WaitVisible(`button[value="approve"]:focus`)) // no frame takes it away
	d.calm()
}

// A stage that is opened by itself, where a test can look into it, is as poor as in its
// frame: it has no origin, no cookie and no storage, and asks for nothing.
func TestStageReachesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.populate()
	petrolMagazine(w)
	d := sit(t, browser.Start(t), w.serve(), browser.Desktop())
	d.open("/stage/creatives/ryokan-magazine-001?version=2")
	d.WaitFor(`[...document.querySelectorAll('deckle-magazine')].every((m) => m.shadowRoot?.querySelector('img')?.naturalWidth === 400)`)
	got := browser.Eval[map[string]any](d.Page, `(async () => {
		const attempt = async (what) => { try { return String(await what()); } catch (e) { return e.name; } };
		return {
			origin: String(self.origin),
			cookie: await attempt(() => document.cookie),
			storage: await attempt(() => localStorage.length),
			database: await attempt(() => new Promise((done, fail) => { const r = indexedDB.open('x'); r.onsuccess = () => done('open'); r.onerror = () => fail(r.error); })),
			dashboard: await attempt(() => fetch('/').then((r) => r.status)),
			picture: await attempt(() => new Promise((done, fail) => { const i = new Image(); i.onload = () => done('loaded'); i.onerror = () => fail(new TypeError()); i.src = '/_deckle/asset/' + 'a'.repeat(64); })),
			elsewhere: await attempt(() => new Promise((done, fail) => { const i = new Image(); i.onload = () => done('loaded'); i.onerror = () => fail(new TypeError()); i.src = 'http://127.0.0.2:1/x.png'; })),
			inline: (() => { const s = document.createElement('script'); s.textContent = 'window.inline = 1'; document.body.append(s); return String(window.inline); })(),
			ran: String(window.ran),
			covers: document.querySelectorAll('deckle-magazine').length,
			shapes: [...document.querySelectorAll('deckle-magazine')].map((m) => { const {width, height} = m.shadowRoot.querySelector('.slot').getBoundingClientRect(); return Math.round(width / m.parentElement.style.zoom) + 'x' + Math.round(height / m.parentElement.style.zoom); }).join(' '),
		};
	})()`)
	for what, want := range map[string]any{
		"origin": "null", "cookie": "SecurityError", "storage": "SecurityError", "database": "SecurityError", "dashboard": "TypeError",
		"picture": "TypeError", "elsewhere": "TypeError", "inline": "undefined", "ran": "undefined", "covers": 3.0,
	} {
		if got[what] != want {
			t.Errorf("%s: %v, want %v", what, got[what], want)
		}
	}
	// Zoom is a part of what a rectangle measures in some versions, and not in others.
	if shapes, _ := got["shapes"].(string); !strings.Contains(shapes, "300x250") || !strings.Contains(shapes, "300x600") {
		t.Errorf("shapes %s", shapes)
	}
	judgeByAxe(t, d.Page, "a stage", axeCore(t))
	// A cover opens, as for a reader.
	browser.Eval[any](d.Page, `document.querySelector('deckle-magazine').shadowRoot.querySelector('.open').click()`)
	d.WaitFor(`document.querySelector('deckle-magazine').shadowRoot.querySelector('dialog').open`)
}

// The frame follows the form as somebody types, and says what becomes of a colour; a
// picture is there as soon as it has been chosen. Nothing is saved by that.
func TestEditorFollows(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.populate()
	d := sit(t, browser.Start(t), w.serve(), browser.Desktop())
	before := w.catalog.Snapshot().Revision()
	d.open("/creatives/new?campaign=autumn")
	d.Do(chromedp.Click(`.page .more summary`))
	d.fill("pages[0].headline", written)
	d.fill("landingUrl", "javascript:alert(1)")
	d.fill("pages[0].background", "#1d3b3a")
	d.waitForPaint(petrol, 10_000)
	d.fill("pages[0].ink", "#2a4a49")
	d.WaitFor(`document.getElementById('f-pages-0-ink-note').textContent.includes('saved as #ffffff')`)
	d.Screenshot("editor-note")
	browser.Eval[any](d.Page, `(() => { const i = document.querySelector('[name="pages[0].ink"]'); i.value = '#ffffff'; i.dispatchEvent(new Event('input', {bubbles: true})); })()`)
	d.WaitFor(`document.getElementById('f-pages-0-ink-note').textContent === ''`)

	d.Do(chromedp.SetUploadFiles(`[name="pages[0].image.file"]`, []string{file(t, t.TempDir(), "brick.png", string(plain(brick)))}))
	d.WaitFor(`document.querySelector('[name="pages[0].image.src"]').value.startsWith('/_deckle/asset/')`)
	d.waitForPaint(brick, 10_000)
	d.Do(chromedp.Click(`.thumb`))
	d.WaitFor(`/^\d+ \d+$/.test(document.querySelector('[name="pages[0].image.focus"]').value)`)
	if w.catalog.Snapshot().Revision() != before {
		t.Error("typing has saved something")
	}
	d.Do(chromedp.Click(`button[value="keep"]`), chromedp.WaitVisible(`[role="status"]`))
	d.waitForPaint(brick, 10_000)
	if browser.Eval[bool](d.Page, `'ran' in window`) {
		t.Error("something has run")
	}
	d.calm()
}

// Without our script, a button shows the same in the same frame.
func TestPreviewByButton(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.populate()
	d := sit(t, browser.Start(t), w.serve(), browser.Desktop())
	d.open("/creatives/new?campaign=autumn")
	browser.Eval[any](d.Page, `document.querySelector('form.editor').addEventListener('input', (e) => e.stopImmediatePropagation(), true)`) // as if it were not there
	d.Do(chromedp.Click(`.page .more summary`))
	d.fill("pages[0].background", "#1d3b3a")
	d.fill("pages[0].headline", "By button")
	if n := d.paints(petrol); n > 1000 {
		t.Fatalf("the frame follows by itself: %d pixels", n)
	}
	d.Do(chromedp.Click(`button[formtarget="stage"]`))
	d.waitForPaint(petrol, 10_000)
	if got := browser.Eval[string](d.Page, `document.querySelector('[name="pages[0].headline"]').value`); got != "By button" {
		t.Errorf("the form has %q", got)
	}
	d.calm()
}
