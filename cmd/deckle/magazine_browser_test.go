package main

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"deckle/internal/sim"
	"deckle/internal/sim/browser"
)

// What a test sees of the magazine in the article's text.
const (
	placed   = `document.querySelector('#div-article-magazine deckle-magazine')`
	placedIn = placed + `?.shadowRoot`
	opened   = placedIn + `?.querySelector('dialog')?.open`
	isFolded = placedIn + `?.querySelector('.slot .page.folded')`
	bookmark = `new Promise((done) => { const open = indexedDB.open('promovolve-dogear'); open.onsuccess = () => {
		const all = open.result.transaction('pins').objectStore('pins').getAll();
		all.onsuccess = () => { open.result.close(); done(all.result.map((pin) => pin.creativeId).join()) } } })`
)

// The whole story in front of the real server: a reader folds a corner, reloads, and
// meets the ad at its folded page; the desk sees it in its report, apart from what was
// met by chance; it pauses the campaign, and at the next page the bookmark is gone.
func TestFoldedCornerComesBack(t *testing.T) {
	d := startDemo(t, sim.Options{}, nil)
	if err := stocked(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	b := browser.Start(t)
	reader := b.Open(t, d.url+sim.SampleArticle, browser.Desktop())
	reader.WaitFor(placedIn + `?.querySelector('.slot .page')`)
	creative := foldSecondPage(reader)

	comeBack(t, reader, d.url+sim.SampleArticle, isFolded)
	if again := browser.Eval[string](reader, bookmark); again != creative {
		t.Fatalf("the bookmark is of %q, %q was folded", again, creative)
	}
	if page := browser.Eval[string](reader, placed+`.dataset.pinnedPage`); page != "1" {
		t.Errorf("it is opened at page %q, want 1", page)
	}
	reader.Screenshot("story-honoured")

	desk := logIn(t, b, d)
	campaign := strings.Split(creative, "-")[0] + "-2026"
	if creative == "pell-resoled" {
		campaign = "pell-moor-2026"
	}
	awaitReport(t, desk, d, campaign)
	pauseCampaign(desk, d, campaign)

	comeBack(t, reader, d.url+sim.SampleArticle, placedIn+`?.querySelector('.slot .page:not(.folded)')`)
	reader.WaitFor(bookmark + `.then((pins) => pins === '')`)
	reader.Screenshot("story-gone")
	if errs := append(reader.Errors(), desk.Errors()...); len(errs) > 0 {
		t.Errorf("the browser says %q", errs)
	}
}

// comeBack opens a page until the reader sees something in the magazine's place. A
// page does not wait for a storage that takes longer than 400 ms, as it may on a
// machine that runs a whole test suite: then that page has no bookmarks.
func comeBack(t *testing.T, p *browser.Page, url, see string) {
	t.Helper()
	within(t, func() bool {
		p.Navigate(url)
		p.WaitFor(placedIn + `?.querySelector('.slot .page')`)
		return browser.Eval[bool](p, `Boolean(`+see+`)`)
	})
}

// foldSecondPage opens the magazine, folds the corner of its second page, and closes
// it. It returns the creative's id.
func foldSecondPage(p *browser.Page) string {
	browser.Eval[any](p, `void `+placedIn+`.querySelector('.open').click()`)
	p.WaitFor(opened)
	p.Screenshot("story-open")
	p.Do(chromedp.KeyEvent(kb.ArrowRight))
	p.WaitFor(placedIn + `.querySelector('dialog .page:not([inert])').getAttribute('aria-label').startsWith('Page 2')`)
	browser.Eval[any](p, `void `+placedIn+`.querySelector('.corner').click()`)
	p.WaitFor(placedIn + `.querySelector('.corner').getAttribute('aria-pressed') === 'true'`)
	p.Screenshot("story-folded")
	p.Do(chromedp.KeyEvent(kb.Escape))
	p.WaitFor(isFolded)
	p.Screenshot("story-collapsed")
	return browser.Eval[string](p, bookmark)
}

// logIn opens the desk.
func logIn(t *testing.T, b *browser.Browser, d *demoSite) *browser.Page {
	t.Helper()
	p := b.Open(t, d.admin+"/", browser.Desktop())
	p.WaitFor(`document.querySelector('input[type=password]')`)
	p.Do(chromedp.SendKeys(`[name="name"]`, "ana"), chromedp.SendKeys(`[name="password"]`, demoPassword+kb.Enter))
	p.WaitFor(`document.querySelector('.tiles')`)
	return p
}

// awaitReport waits until the desk's report of a campaign has the fold, and the
// impression of the bookmark apart from that of the ad that was met by chance.
func awaitReport(t *testing.T, desk *browser.Page, d *demoSite, campaign string) {
	t.Helper()
	within(t, func() bool {
		desk.Navigate(d.admin + "/reports?by=campaign&campaign=" + campaign)
		seen := browser.Eval[string](desk, `document.querySelector('main').innerText.replace(/\s+/g, ' ')`)
		return strings.Contains(seen, "bookmarked") && strings.Contains(seen, "Pins kept 100% of 1 folded")
	})
	desk.ScreenshotWhole("story-report")
}

func pauseCampaign(desk *browser.Page, d *demoSite, campaign string) {
	desk.Navigate(d.admin + "/campaigns/" + campaign)
	desk.ScreenshotWhole("story-campaign")
	browser.Eval[any](desk, `(() => { const status = document.querySelector('select[name=status]'); status.value = 'paused'; status.form.requestSubmit() })()`)
	desk.WaitFor(`document.querySelector('select[name=status]')?.value === 'paused' && document.readyState === 'complete'`)
}
