package sim_test

import (
	"fmt"
	"testing"

	"deckle/internal/sim"
	"deckle/internal/sim/browser"
)

// The magazine looks finished without any ad, on a laptop and on a phone: nothing
// is wider than the screen, every picture is there, the console is clean. With
// SCREENSHOTS=folder there is something to look at.
func TestMagazineOnScreens(t *testing.T) {
	t.Parallel()
	w := start(t, sim.Options{})
	b := browser.Start(t)
	for screen, view := range map[string]browser.View{"laptop": browser.Desktop(), "phone": browser.Phone()} {
		for name, path := range map[string]string{"home": "/", "section": "/rail/", "article": "/2026/11/night-ferry/"} {
			t.Run(name+" on a "+screen, func(t *testing.T) {
				page := b.Open(t, w.PublisherURL+path, view)
				broken := browser.Eval[[]string](page, `(async () => {
					const images = [...document.images];
					for (const i of images) i.loading = 'eager';
					await Promise.all(images.map((i) => i.decode().catch(() => {})));
					return images.filter((i) => i.naturalWidth === 0).map((i) => i.src);
				})()`)
				if len(broken) > 0 {
					t.Errorf("pictures that are not there: %q", broken)
				}
				if got := browser.Eval[string](page, `document.documentElement.scrollWidth + " of " + innerWidth`); got != browser.Eval[string](page, `innerWidth + " of " + innerWidth`) {
					t.Errorf("the page is wider than the screen: %s", got)
				}
				page.ScreenshotWhole(fmt.Sprintf("magazine-%s-%s", name, screen))
				if errs := page.Errors(); len(errs) > 0 {
					t.Errorf("console errors: %q", errs)
				}
			})
		}
	}
}
