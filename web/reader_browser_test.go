package web_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"deckle/internal/sim/browser"
)

// What a test sees of the magazine. "here" is the page that is shown.
const (
	magazine = `document.querySelector('deckle-magazine')`
	root     = magazine + `.shadowRoot`
	dialog   = root + `.querySelector('dialog')`
	here     = root + `.querySelector('dialog .page:not([inert])')`
	corner   = root + `.querySelector('.corner')`
	pressed  = corner + `.getAttribute('aria-pressed')`

	shownInSlot = magazine + `?.shadowRoot.querySelector('.slot .page')`
	isOpen      = dialog + `?.open && !` + dialog + `.classList.contains('closing')`
	isClosed    = `!` + dialog + `?.open`
)

// clipped says how a page's corner is: "" unfolded, or the corners of the polygon it
// is clipped to, the side of its flap in cqmin, and whether that has a shadow and
// lies behind the leaf.
const clipped = `((page) => {
	if (!page.classList.contains('folded')) return '';
	const leaf = page.querySelector('.leaf'), flap = page.querySelector('.flap');
	const corners = getComputedStyle(leaf).clipPath.match(/^polygon\((.*)\)$/)?.[1].split(/,(?![^(]*\))/).length;
	const {width, height} = flap.getBoundingClientRect(), box = page.getBoundingClientRect();
	const behind = flap.compareDocumentPosition(leaf) & 4 && getComputedStyle(flap).zIndex === 'auto';
	const shadow = getComputedStyle(flap).filter.includes('drop-shadow');
	return [corners, Math.abs(width - height) < 1 && Math.round(width / Math.min(box.width, box.height) * 100), shadow, Boolean(behind)].join(' ');
})`

const folded6 = "6 6 true true" // six corners, 6cqmin, with a shadow, behind

func slotClip() string { return clipped + `(` + root + `.querySelector('.slot .page'))` }
func openClip() string { return clipped + `(` + here + `)` }

func press(p *browser.Page, keys ...string) {
	for _, k := range keys {
		p.Do(chromedp.KeyEvent(k))
	}
}

// openMagazine opens the site's page, and the magazine in it.
func openMagazine(t *testing.T, b *browser.Browser, s *readerSite, v browser.View) *browser.Page {
	t.Helper()
	p := b.Open(t, s.url, v)
	p.WaitFor(shownInSlot)
	browser.Eval[any](p, `void `+root+`.querySelector('.open').click()`)
	p.WaitFor(isOpen)
	return p
}

func wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(browser.Patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited for %s", what)
		}
		<-tick.C
	}
}

const pinsInBrowser = `new Promise((done) => { const open = indexedDB.open('promovolve-dogear'); open.onsuccess = () => {
	const all = open.result.transaction('pins').objectStore('pins').getAll(); all.onsuccess = () => { open.result.close(); done(all.result) } } })`

// The reader plane in a real browser: one, since starting one takes longer than most
// of these tests.
func TestReaderPlane(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	for name, test := range map[string]func(*testing.T, *browser.Browser){
		"fold comes back":                       testFoldComesBack,
		"bookmark that is gone":                 testBookmarkThatIsGone,
		"without storage":                       testWithoutStorage,
		"fold that was not heard is told later": testFoldThatWasNotHeardIsToldLater,
		"each beacon is told once":              testEachBeaconIsToldOnce,
		"hidden slot is no impression":          testHiddenSlotIsNoImpression,
		"campaign without dog ear":              testCampaignWithoutDogEar,
		"batch starts before the body":          testBatchStartsBeforeTheBody,
		"prerendered page asks nothing":         testPrerenderedPageAsksNothing,
		"unknown page is asked for once more":   testUnknownPageIsAskedForOnceMore,
		"tag on another origin":                 testTagOnAnotherOrigin,
		"counts need permission":                testCountsNeedPermission,
		"keyboard alone":                        testKeyboardAlone,
		"events":                                testEvents,
		"hostile pages and magazines":           testHostilePagesAndMagazines,
		"nothing serious for axe":               testNothingSeriousForAxe,
		"nothing shifts":                        testNothingShifts,
		"screens":                               testScreens,
		"shapes":                                testShapes,
		"longest magazine":                      testLongestMagazine,
		"right to left":                         testRightToLeft,
		"swipe":                                 testSwipe,
		"motion is cheap":                       testMotionIsCheap,
		"reduced motion":                        testReducedMotion,
		"folded page beyond the end":            testFoldedPageBeyondTheEnd,
		"opened again while it closes":          testOpenedAgainWhileItCloses,
		"vertical cover":                        testVerticalCover,
		"heartbeats":                            testHeartbeats,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, b)
		})
	}
}

// The whole story: a reader folds a corner, comes back, meets the page again, and
// straightens it.
func testFoldComesBack(t *testing.T, b *browser.Browser) {
	s := startReaderSite(t, readerPage{})
	p := openMagazine(t, b, s, browser.Desktop())
	press(p, kb.ArrowRight, kb.ArrowRight)
	p.WaitFor(here + `.getAttribute('aria-label') === 'Page 3 of 5'`)
	browser.Eval[any](p, `void `+corner+`.click()`)
	p.WaitFor(pressed + ` === 'true' && ` + openClip() + ` === '` + folded6 + `'`)
	wait(t, "the fold", func() bool { return len(s.foldEvents()) == 1 })
	want := foldEvent{
		Pub: "test-site", URL: s.url + "/", CreativeID: "ferry-1", SlotID: "sidebar-1",
		Event: "fold", FoldToken: "token-ferry-1-1", Page: 2,
	}
	if got := s.foldEvents()[0]; got != want {
		t.Errorf("told %+v, want %+v", got, want)
	}
	press(p, kb.Escape)
	p.WaitFor(isClosed + ` && ` + slotClip() + ` === '` + folded6 + `'`)
	if title := browser.Eval[string](p, root+`.querySelector('.slot .headline').textContent`); title != "Wool, oranges, a slow book" {
		t.Errorf("the slot shows %q, want the page that was folded", title)
	}

	p.Navigate(s.url)
	p.WaitFor(shownInSlot + ` && ` + slotClip() + ` === '` + folded6 + `'`)
	pins := s.asked()[1].Pins
	if len(pins) != 1 || pins[0].SlotID != "sidebar-1" || pins[0].CreativeID != "ferry-1" {
		t.Errorf("the second batch carries %+v, want the pin", pins)
	}
	if got := browser.Eval[string](p, magazine+`.dataset.pinnedPage + ' ' + `+magazine+`.dataset.foldToken`); got != "2 token-ferry-1-2" {
		t.Errorf("the element carries %q", got)
	}
	browser.Eval[any](p, `void `+root+`.querySelector('.open').click()`)
	p.WaitFor(isOpen + ` && ` + here + `.getAttribute('aria-label') === 'Page 3 of 5' && ` + openClip() + ` === '` + folded6 + `'`)
	wait(t, "the bookmark's beacons", func() bool {
		return strings.Contains(s.told(), "click ferry-1 dogeared=1") && strings.Contains(s.told(), "imp ferry-1 dogeared=1")
	})
	p.Screenshot("fold-comes-back")

	browser.Eval[any](p, `void `+corner+`.click()`)
	p.WaitFor(pressed + ` === 'false' && ` + openClip() + ` === ''`)
	wait(t, "the unfold", func() bool { return len(s.foldEvents()) == 2 })
	if got := s.foldEvents()[1]; got.Event != "unfold" || got.FoldToken != "token-ferry-1-2" {
		t.Errorf("told %+v, want the unfold", got)
	}
	press(p, kb.Escape)
	p.WaitFor(isClosed + ` && ` + slotClip() + ` === ''`)
	p.Navigate(s.url)
	p.WaitFor(shownInSlot)
	if pins := s.asked()[2].Pins; len(pins) > 0 {
		t.Errorf("the third batch carries %+v, want nothing", pins)
	}
}

func testBookmarkThatIsGone(t *testing.T, b *browser.Browser) {
	for name, tt := range map[string]struct {
		gone    func(*readerSite)
		slotNow string // whose pin is there beforehand
		kept    int
	}{
		"removed in its slot":           {func(s *readerSite) { s.gone["ferry-1"] = true }, "sidebar-1", 0},
		"removed in a slot not asked":   {func(s *readerSite) { s.gone["ferry-1"] = true }, "elsewhere", 0},
		"not served now":                {func(s *readerSite) { delete(s.winners, "sidebar-1"); s.winners["x-1"] = winner{} }, "sidebar-1", 1},
		"server that does not know yet": {func(s *readerSite) { s.status["/v1/serve/batch"] = 503 }, "sidebar-1", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startReaderSite(t, readerPage{tag: true})
			p := b.Open(t, s.url, browser.Desktop())
			p.WaitFor(shownInSlot)
			browser.Eval[any](p, fmt.Sprintf(`new Promise((done) => { const open = indexedDB.open('promovolve-dogear'); open.onsuccess = () => {
				const t = open.result.transaction('pins', 'readwrite'); t.objectStore('pins').put({slotId: %q, creativeId: 'ferry-1', page: 1, foldedAt: Date.now(), expiresAt: Date.now() + 1e7});
				t.oncomplete = () => { open.result.close(); done() } } })`, tt.slotNow))
			s.change(tt.gone)
			p.Navigate(s.url)
			wait(t, "the second batch", func() bool { return len(s.asked()) == 2 || len(s.heard()) > 0 })
			if tt.kept > 0 {
				p.WaitFor(`performance.getEntriesByName(location.origin + '/v1/serve/batch').length`)
			}
			p.WaitFor(pinsInBrowser + `.then((rows) => rows.length === ` + fmt.Sprint(tt.kept) + `)`)
		})
	}
}

func testWithoutStorage(t *testing.T, b *browser.Browser) {
	for name, script := range map[string]string{
		"absent":  `Object.defineProperty(window, 'indexedDB', {value: undefined})`,
		"blocked": `Object.defineProperty(window, 'indexedDB', {get() { throw new DOMException('', 'SecurityError') }})`,
		"hangs":   `IDBFactory.prototype.open = () => ({})`,
		"full":    `IDBObjectStore.prototype.put = () => { throw new DOMException('', 'QuotaExceededError') }`,
		"fails":   `IDBFactory.prototype.open = () => { const r = {}; setTimeout(() => r.onerror(new Event('error'))); return r }`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startReaderSite(t, readerPage{first: "<script>" + script + "</script>"})
			p := openMagazine(t, b, s, browser.Desktop())
			browser.Eval[any](p, `void `+corner+`.click()`)
			p.WaitFor(pressed + ` === 'true'`)
			wait(t, "the fold", func() bool { return len(s.foldEvents()) == 1 })
			wait(t, "the beacons", func() bool { return s.told() == "click ferry-1, imp ferry-1, view ferry-1" })
			if errs := p.Errors(); len(errs) > 0 {
				t.Errorf("the page saw %q", errs)
			}
		})
	}
}

func testFoldThatWasNotHeardIsToldLater(t *testing.T, b *browser.Browser) {
	s := startReaderSite(t, readerPage{})
	s.change(func(s *readerSite) { s.status["/v1/dogear-event"] = -1 })
	p := openMagazine(t, b, s, browser.Desktop())
	browser.Eval[any](p, `void `+corner+`.click()`)
	p.WaitFor(`performance.getEntriesByName(location.origin + '/v1/dogear-event').length`)
	s.change(func(s *readerSite) { delete(s.status, "/v1/dogear-event") })
	p.Navigate(s.url)
	wait(t, "the fold", func() bool { return len(s.foldEvents()) == 1 })
	if got := s.foldEvents()[0]; got.Event != "fold" || got.FoldToken != "token-ferry-1-1" {
		t.Errorf("told %+v, want the fold of the first visit", got)
	}
}

func testEachBeaconIsToldOnce(t *testing.T, b *browser.Browser) {
	s := startReaderSite(t, readerPage{first: `<script>window.open = () => {}; addEventListener('click', (e) => { if (e.composedPath().some((n) => n.href)) e.preventDefault() })</script>`})
	s.change(func(s *readerSite) { s.status["/v1/imp"] = 503 })
	p := openMagazine(t, b, s, browser.Desktop())
	wait(t, "the click and the view", func() bool { return s.told() == "click ferry-1, view ferry-1" })
	s.change(func(s *readerSite) { delete(s.status, "/v1/imp") })
	for range 2 {
		browser.Eval[any](p, `(() => { `+magazine+`.collapse(); })()`)
		p.WaitFor(isClosed)
		browser.Eval[any](p, `void `+magazine+`.expand(4)`)
		p.WaitFor(isOpen)
		browser.Eval[any](p, `void `+here+`.querySelector('.cta').click()`)
	}
	wait(t, "the impression, told again", func() bool { return s.told() == "click ferry-1, cta ferry-1, imp ferry-1, view ferry-1" })
	got := browser.Eval[string](p, `((a) => [a.href, a.target, a.rel].join(' '))(`+here+`.querySelector('.cta'))`)
	if want := "https://ferry.example/book?ref=deckle _blank noopener sponsored"; got != want {
		t.Errorf("the call to action is %q, want %q", got, want)
	}
}

// An impression needs a cover that has been painted: not one inside something that
// is hidden, invisible or clipped away. Below the fold is painted.
func testHiddenSlotIsNoImpression(t *testing.T, b *browser.Browser) {
	for name, attributes := range map[string]string{
		"hidden":       `hidden`,
		"invisible":    `style="visibility:hidden"`,
		"transparent":  `style="opacity:0"`,
		"without size": `style="height:0;overflow:hidden"`,
		"clipped away": `style="clip-path:inset(50%)"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startReaderSite(t, readerPage{body: `<section ` + attributes + `>` + slot1 + `</section>`})
			p := b.Open(t, s.url, browser.Desktop())
			p.WaitFor(shownInSlot)
			browser.Eval[any](p, `new Promise((done) => setTimeout(done, 300))`)
			if told := s.told(); told != "" {
				t.Fatalf("told %q of what nobody could see", told)
			}
			browser.Eval[any](p, `void (document.querySelector('section').hidden = false, document.querySelector('section').style = '')`)
			wait(t, "the impression and the view", func() bool { return s.told() == "imp ferry-1, view ferry-1" })
		})
	}
	t.Run("below the fold", func(t *testing.T) {
		t.Parallel()
		s := startReaderSite(t, readerPage{body: `<div style="height:9000px"></div>` + slot1})
		b.Open(t, s.url, browser.Desktop())
		wait(t, "the impression", func() bool { return s.told() == "imp ferry-1" })
	})
}

// Without a fold token there is no corner, but a bookmark can be removed.
func testCampaignWithoutDogEar(t *testing.T, b *browser.Browser) {
	s := startReaderSite(t, readerPage{})
	p := openMagazine(t, b, s, browser.Desktop())
	browser.Eval[any](p, `void `+corner+`.click()`)
	wait(t, "the fold", func() bool { return len(s.foldEvents()) == 1 })
	p.WaitFor(pinsInBrowser + `.then((rows) => rows.length === 1)`)
	s.change(func(s *readerSite) {
		w := s.winners["sidebar-1"]
		w.noDogEar = true
		s.winners["sidebar-1"] = w
	})
	p.Navigate(s.url)
	p.WaitFor(shownInSlot)
	browser.Eval[any](p, `void `+magazine+`.expand()`)
	p.WaitFor(isOpen + ` && ` + pressed + ` === 'true'`)
	browser.Eval[any](p, `void `+corner+`.click()`)
	wait(t, "the unfold", func() bool { return len(s.foldEvents()) == 2 })
	p.Navigate(s.url)
	p.WaitFor(shownInSlot)
	browser.Eval[any](p, `void `+magazine+`.expand()`)
	p.WaitFor(isOpen)
	if browser.Eval[bool](p, corner+` !== null`) {
		t.Error("there is a corner, although the campaign has no dog-ear")
	}
}

func testBatchStartsBeforeTheBody(t *testing.T, b *browser.Browser) {
	body := make(chan struct{})
	s := startReaderSite(t, readerPage{slow: body})
	p := b.Open(t, "", browser.Desktop())
	browser.Eval[any](p, fmt.Sprintf(`void (location.href = %q)`, s.url))
	wait(t, "the batch", func() bool { return len(s.asked()) == 1 })
	close(body)
	p.WaitFor(shownInSlot)
	got := s.asked()[0]
	if got.Pub != "test-site" || got.URL != s.url+"/" || len(got.Imp) != 1 || got.Imp[0].ID != "sidebar-1" || got.Imp[0].W != 300 || got.Imp[0].H != 250 {
		t.Errorf("asked for %+v", got)
	}
}

func testPrerenderedPageAsksNothing(t *testing.T, b *browser.Browser) {
	s := startReaderSite(t, readerPage{first: `<script>window.prerendered = true; Object.defineProperty(document, 'prerendering', {get: () => prerendered})</script>`})
	p := b.Open(t, s.url, browser.Desktop())
	p.WaitFor(`window.deckle?.fill`)
	browser.Eval[any](p, `new Promise((done) => setTimeout(done, 300))`)
	if n := len(s.asked()); n > 0 {
		t.Fatalf("%d batches before the activation", n)
	}
	browser.Eval[any](p, `void (prerendered = false, document.dispatchEvent(new Event('prerenderingchange')))`)
	p.WaitFor(shownInSlot)
}

func testUnknownPageIsAskedForOnceMore(t *testing.T, b *browser.Browser) {
	s := startReaderSite(t, readerPage{})
	s.change(func(s *readerSite) { s.retryInMs = 50 })
	p := b.Open(t, s.url, browser.Desktop())
	p.WaitFor(shownInSlot)
	if n := len(s.asked()); n != 2 {
		t.Errorf("%d batches, want two", n)
	}
}

// A site that only has our script tag, from another origin than its own.
func testTagOnAnotherOrigin(t *testing.T, b *browser.Browser) {
	deckle := startReaderSite(t, readerPage{})
	deckle.change(func(s *readerSite) { s.winners["late-1"] = winner{creative: "late", campaign: "k", json: ferry} })
	tag := fmt.Sprintf(`<script async src="%s/_deckle/deckle.js" data-pub="test-site"></script>`, deckle.url)
	s := startReaderSite(t, readerPage{
		bare:  true,
		first: `<script>window.deckle = {cmd: [() => window.ran = (window.ran || 0) + 1]}</script>` + tag,
		head:  tag + tag,
		body:  `<div data-deckle-slot="sidebar-1" data-w="300" data-h="250"></div>`,
	})
	p := b.Open(t, s.url, browser.Desktop())
	p.WaitFor(shownInSlot + ` && window.ran === 1`)
	if n := browser.Eval[int](p, `document.querySelectorAll('deckle-magazine').length`); n != 1 {
		t.Errorf("%d magazines, want one of three tags", n)
	}
	browser.Eval[any](p, `(() => { document.body.insertAdjacentHTML('beforeend', '<div data-deckle-slot="late-1" data-w="320" data-h="100"></div>'); deckle.cmd.push(() => deckle.fill()) })()`)
	p.WaitFor(`document.querySelectorAll('deckle-magazine').length === 2`)
	wait(t, "both impressions at Deckle", func() bool {
		return strings.Contains(deckle.told(), "imp ferry-1") && strings.Contains(deckle.told(), "imp late")
	})
	if got := deckle.asked()[0].URL; got != s.url+"/" {
		t.Errorf("asked for %s, want the page", got)
	}
}

func testCountsNeedPermission(t *testing.T, b *browser.Browser) {
	cmp := func(purpose1 string) string {
		return `<script>__tcfapi = (command, version, hear) => hear({eventStatus: 'tcloaded', gdprApplies: true, purpose: {consents: {1: ` + purpose1 + `}}}, true)</script>`
	}
	for name, tt := range map[string]struct {
		first string
		seen  int
	}{
		"no CMP":      {"", 1},
		"Purpose 1":   {cmp("true"), 1},
		"a refusal":   {cmp("false"), 0},
		"no answer":   {`<script>__tcfapi = () => {}</script>`, 0},
		"then a wish": {cmp("document.cookie.includes('yes')"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startReaderSite(t, readerPage{first: tt.first})
			p := b.Open(t, s.url, browser.Desktop())
			p.WaitFor(shownInSlot)
			wait(t, "the impression", func() bool { return strings.Contains(s.told(), "imp") })
			browser.Eval[any](p, `new Promise((done) => setTimeout(done, 200))`)
			p.Navigate(s.url)
			p.WaitFor(shownInSlot)
			second := s.asked()[1]
			if len(second.Seen) != tt.seen || len(second.Recent) != tt.seen {
				t.Errorf("the second batch says seen %v, recent %v; want %d of each", second.Seen, second.Recent, tt.seen)
			}
		})
	}
}

func testKeyboardAlone(t *testing.T, b *browser.Browser) {
	s := startReaderSite(t, readerPage{body: `<a href="#a" id="before">before</a>` + slot1 + `<a href="#b">after</a>`})
	p := b.Open(t, s.url, browser.Desktop())
	p.WaitFor(shownInSlot)
	press(p, kb.Tab, kb.Tab)
	p.WaitFor(root + `.activeElement?.className === 'open'`)
	press(p, " ")
	p.WaitFor(isOpen + ` && ` + root + `.activeElement === ` + dialog)
	seen := map[string]bool{}
	for range 9 {
		press(p, kb.Tab)
		name := browser.Eval[string](p, root+`.activeElement?.className ?? 'outside'`)
		seen[name] = true
	}
	want := map[string]bool{"close": true, "pages": true, "corner": true, "previous": true, "next": true}
	if !reflect.DeepEqual(seen, want) {
		t.Errorf("Tab goes to %v, want %v", seen, want)
	}
	press(p, kb.End)
	p.WaitFor(here + `.querySelector('.cta') && ` + root + `.querySelector('.status').textContent === 'Page 5 of 5'`)
	press(p, kb.Home)
	p.WaitFor(root + `.querySelector('.status').textContent === 'Page 1 of 5'`)
	browser.Eval[any](p, `void `+corner+`.focus()`)
	press(p, kb.Enter)
	p.WaitFor(pressed + ` === 'true' && ` + root + `.querySelector('.status').textContent.startsWith('Corner folded')`)
	press(p, kb.Escape)
	p.WaitFor(isClosed + ` && ` + root + `.activeElement?.className === 'open'`)
}

// What the magazine says of itself is heard by the page, also from inside.
func testEvents(t *testing.T, b *browser.Browser) {
	s := startReaderSite(t, readerPage{first: `<script>window.heard = [];
		for (const type of ['magazine-expand', 'magazine-page-changed', 'magazine-collapse', 'dogear-fold', 'dogear-unfold', 'cta-click'])
			addEventListener(type, (e) => heard.push(type + ' ' + e.detail.page));
		addEventListener('click', (e) => { if (e.composedPath().some((n) => n.href)) e.preventDefault() })</script>`})
	p := openMagazine(t, b, s, browser.Desktop())
	press(p, kb.End)
	p.WaitFor(here + `.querySelector('.cta')`)
	browser.Eval[any](p, `void (`+corner+`.click(), `+corner+`.click(), `+here+`.querySelector('.cta').click())`)
	press(p, kb.Escape)
	p.WaitFor(isClosed)
	got := browser.Eval[[]string](p, `heard`)
	want := []string{"magazine-expand 0", "magazine-page-changed 4", "dogear-fold 4", "dogear-unfold 4", "cta-click 4", "magazine-collapse 0"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("heard %q, want %q", got, want)
	}
}

func testHostilePagesAndMagazines(t *testing.T, b *browser.Browser) {
	const evil = `"landingUrl":"javascript:window.ran=1","pages":[{"tag":"<img src=x onerror=window.ran=1>","headline":"<script>window.ran=1</script>","sub":"\u202e<b>","body":"</div><iframe srcdoc='<script>parent.ran=1</script>'>","caption":"<svg onload=window.ran=1>","image":{"src":"javascript:window.ran=1","alt":"\"><img src=x onerror=window.ran=1>"},"background":"red;}*{display:none","ink":"url(javascript:1)","accent":"#12","ctaLabel":"<u>go"}]`
	for name, tt := range map[string]struct {
		page readerPage
		json string
		want string
	}{
		"a nonce, strict-dynamic and Trusted Types": {
			page: readerPage{nonce: "abc", csp: "default-src 'self'; script-src 'nonce-abc' 'strict-dynamic'; style-src 'none'; require-trusted-types-for 'script'; trusted-types deckle"},
		},
		"a nonce alone": {
			page: readerPage{nonce: "abc", csp: "default-src 'none'; connect-src 'self'; img-src 'self'; script-src 'nonce-abc'; style-src 'none'"},
		},
		"a tag under Trusted Types": {
			page: readerPage{tag: true, csp: "default-src 'self'; style-src 'none'; require-trusted-types-for 'script'; trusted-types 'none'"},
		},
		"hostile CSS": {
			page: readerPage{head: `<style>* { all: unset !important; display: none !important; width: 1px !important; visibility: hidden !important; --paper: red !important; --f: 99px !important; transition: all 9s !important }
				html, body, main, div { display: block !important; visibility: visible !important; width: auto !important } deckle-magazine { position: fixed !important; transform: scale(9) !important; opacity: 0 !important; pointer-events: none !important; filter: blur(9px) !important; zoom: 3 !important }</style>`},
		},
		"patched prototypes": {
			page: readerPage{first: `<script>
				Array.prototype.extra = String.prototype.extra = function () { throw Error('extra') };
				Array.prototype.toJSON = function () { return 'spoilt' };
				Object.prototype.inherited = 'inherited';
				Element.prototype.closest = ((closest) => function (s) { return closest.call(this, s) })(Element.prototype.closest);
				HTMLElement.prototype.click = HTMLElement.prototype.click;
				window.IntersectionObserver = class { constructor() { throw Error('patched') } };
				navigator.sendBeacon = null; window.matchMedia = ((m) => (q) => m.call(window, q))(matchMedia);
			</script>`},
		},
		"a hostile magazine": {
			json: evil,
			want: `!window.ran && ` + here + `.querySelector('.headline').textContent.includes('<script>') && !` + here + `.querySelector('img, iframe, script, a, b, svg')`,
		},
		"a base element":              {page: readerPage{first: `<base href="https://elsewhere.example/deep/">`}},
		"the element defined already": {page: readerPage{first: `<script>customElements.define('deckle-magazine', class extends HTMLElement { ready = Promise.resolve() })</script>`}, want: "skip"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startReaderSite(t, tt.page)
			if tt.json != "" {
				s.change(func(s *readerSite) { s.winners["sidebar-1"] = winner{creative: "evil", campaign: "k", json: tt.json} })
			}
			if tt.want == "skip" {
				p := b.Open(t, s.url, browser.Desktop())
				p.WaitFor(magazine)
				return
			}
			p := openMagazine(t, b, s, browser.Desktop())
			size := browser.Eval[string](p, `((r) => [r.width, r.height].map(Math.round).join('x'))(`+root+`.querySelector('.slot').getBoundingClientRect())`)
			if size != "300x250" {
				t.Errorf("the slot is %s", size)
			}
			box := browser.Eval[string](p, `((r) => [r.left, r.top, r.width - innerWidth, r.height - innerHeight].map(Math.round).join(' '))(`+dialog+`.getBoundingClientRect())`)
			if box != "0 0 0 0" {
				t.Errorf("the dialog leaves %s uncovered", box)
			}
			browser.Eval[any](p, `void `+corner+`.click()`)
			p.WaitFor(openClip() + ` === '` + folded6 + `'`)
			if tt.want != "" {
				p.WaitFor(tt.want)
			}
			wait(t, "the impression", func() bool { return strings.Contains(s.told(), "imp") })
			for _, m := range p.Console() {
				if m.IsException() && !strings.Contains(m.String(), "elsewhere.example") {
					t.Errorf("the page saw an error: %s", m)
				}
			}
			p.Screenshot("hostile-" + strings.ReplaceAll(name, " ", "-"))
		})
	}
}

func testNothingSeriousForAxe(t *testing.T, b *browser.Browser) {
	axe, err := os.ReadFile(filepath.Join("node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Skip("axe-core is not installed: make test installs it")
	}
	for name, view := range map[string]browser.View{"laptop": browser.Desktop(), "small phone": {Width: 360, Height: 640}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startReaderSite(t, readerPage{})
			p := b.Open(t, s.url, view)
			p.WaitFor(shownInSlot)
			browser.Eval[any](p, string(axe)+`; undefined`)
			judge := func(what string) {
				t.Helper()
				found := browser.Eval[[]string](p, `axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']}).then((r) =>
					r.violations.flatMap((v) => v.nodes.map((n) => v.id + ': ' + n.html.slice(0, 160) + ' ' + (n.any[0]?.message ?? ''))))`)
				for _, f := range found {
					t.Errorf("%s: %s", what, f)
				}
			}
			judge("closed")
			for page := range 5 {
				browser.Eval[any](p, fmt.Sprintf(`void %s.expand(%d)`, magazine, page))
				p.WaitFor(isOpen)
				browser.Eval[any](p, moved)
				judge(fmt.Sprint("page ", page))
				press(p, kb.Escape)
				p.WaitFor(isClosed)
			}
		})
	}
}
