package dashboard_test

import (
	"context"
	"fmt"
	"image/color"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"deckle/internal/catalog"
	"deckle/internal/heartbeat"
	"deckle/internal/sim/browser"
)

type action = chromedp.Action[chromedp.Void]

// dark makes a tab prefer dark colours.
func dark() action {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}},
		})
		return err
	})
}

// withoutScript switches JavaScript off in the pages of a tab.
func withoutScript() action {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	})
}

// A desk is somebody at a browser, logged in.
type desk struct {
	*browser.Page
	t   *testing.T
	url string
}

func sit(t *testing.T, b *browser.Browser, url string, v browser.View, before ...action) *desk {
	t.Helper()
	d := &desk{b.Open(t, "", v), t, url}
	d.Do(before...)
	d.Navigate(url + "/")
	d.fill("name", "ana")
	d.Do(chromedp.SendKeys(`[name="password"]`, password+kb.Enter), chromedp.WaitVisible(".tiles"))
	return d
}

func (d *desk) open(path string) {
	d.t.Helper()
	d.Navigate(d.url + path)
}

// fill types into a field, or chooses in it.
func (d *desk) fill(name, value string) {
	d.t.Helper()
	d.Do(chromedp.SendKeys(fmt.Sprintf(`[name="%s"]`, name), value))
}

func (d *desk) choose(name, value string) {
	d.t.Helper()
	d.Do(chromedp.SetValue(fmt.Sprintf(`select[name="%s"]`, name), value))
}

func (d *desk) tick(name, value string) {
	d.t.Helper()
	d.Do(chromedp.Click(fmt.Sprintf(`[name="%s"][value="%s"]`, name, value)))
}

// save sends the form of the page, by Enter in a field of it.
func (d *desk) save(in string) {
	d.t.Helper()
	d.Do(chromedp.SendKeys(fmt.Sprintf(`[name="%s"]`, in), kb.Enter), chromedp.WaitVisible(`[role="status"]`))
}

// calm fails the test if the page has broken its policy, or said anything else is
// wrong.
func (d *desk) calm() {
	d.t.Helper()
	for _, m := range d.Console() {
		d.t.Errorf("console: %s", m)
	}
}

// From an empty catalog to an approved creative, as the sales desk would do it.
func TestFromNothingToAnApprovedCreative(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	for name, before := range map[string][]action{"with script": nil, "without script": {withoutScript()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			d := sit(t, b, w.serve(), browser.Desktop(), before...)

			d.open("/publishers/new")
			d.fill("id", "yuki")
			d.fill("name", "Yuki Media")
			d.fill("currency", "usd")
			d.save("name")

			d.open("/sites/new")
			d.choose("id", "yuki-site")
			d.choose("publisher", "yuki")
			d.save("floors.site")

			d.open("/advertisers/new?publisher=yuki")
			d.fill("id", "ryokan")
			d.fill("name", "Ryokan Association")
			d.fill("dailyBudget", "250")
			d.fill("timeZone", "Asia/Tokyo")
			d.save("name")

			d.open("/campaigns/new?advertiser=ryokan")
			d.fill("id", "autumn")
			d.fill("maxCpm", "4.50")
			d.fill("dailyBudget", "120")
			d.fill("landingUrl", "https://ryokan.example/autumn")
			d.tick("categories", catalog.ContentTaxonomy().Categories()[0])
			d.choose("productCategory", catalog.ProductTaxonomy().Categories()[0])
			d.save("name")

			d.open("/creatives/new?campaign=autumn")
			d.fill("id", "maples")
			d.fill("pages[0].headline", "Nights under red maples")
			picture := file(t, t.TempDir(), "hill.png", string(picture(color.RGBA{220, 214, 226, 255}, color.RGBA{92, 110, 84, 255})))
			d.Do(chromedp.SetUploadFiles(`[name="pages[0].image.file"]`, []string{picture}))
			d.fill("pages[0].image.alt", "A hill")
			d.Do(chromedp.Click(`button[value="add"]`), chromedp.WaitVisible(`[name="pages[1].headline"]`))
			d.fill("pages[1].headline", "Stay two nights")
			d.save("pages[1].headline")

			d.open("/inbox")
			d.Do(chromedp.WaitVisible(`button[value="approve"]:focus`), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(`[role="status"]`))
			s := w.catalog.Snapshot()
			if got := s.Approvals("yuki-site", "maples"); got.Serving() != 1 || got.Decisions[0].By != "ana" {
				t.Errorf("approvals %+v", got)
			}
			if c, _ := s.Creative("maples"); len(c.Pages) != 2 || c.Pages[0].Image == nil {
				t.Errorf("creative %+v", c)
			}
			if n := len(s.Queue("", s.Audit(1)[0].At)); n != 0 {
				t.Errorf("%d creatives wait", n)
			}
			d.calm()
		})
	}
}

// A keyboard is enough for the inbox: Enter approves what has the focus, Tab leads
// to the reason, Enter in it rejects.
func TestInboxByKeyboard(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.populate()
	d := sit(t, browser.Start(t), w.serve(), browser.Desktop())
	d.open("/inbox?site=yuki-site")
	d.Do(chromedp.WaitVisible(`[aria-label="Approve Nights under red maples on yuki-site"]:focus`))
	d.Do(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent("Too loud."), chromedp.KeyEvent(kb.Enter))
	d.Do(chromedp.WaitVisible(`[aria-label="Approve The small one on yuki-site"]:focus`))
	d.Do(chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(".empty"))
	s := w.catalog.Snapshot()
	if a := s.Approvals("yuki-site", "ryokan-magazine-001"); a.State(1) != catalog.Rejected {
		t.Errorf("rejected: %+v", a)
	}
	if a := s.Approvals("yuki-site", "ryokan-small"); a.State(1) != catalog.Approved {
		t.Errorf("approved: %+v", a)
	}
	d.calm()
}

// why is the explanation of a page on which everything happens.
const why = "/why?url=https://site-1.example/travel/an-article&pins=sidebar-1%20=%20mag-2-2-1"

// everyPage are the pages that a person sees, with something on them.
var everyPage = []string{
	"/", "/inbox", "/publishers", "/publishers/yuki", "/sites", "/sites/yuki-site", "/advertisers", "/campaigns", "/campaigns/autumn",
	"/campaigns/new", "/creatives", "/creatives/ryokan-magazine-001", "/creatives/ryokan-magazine-001/preview", "/audit", "/reports", "/reports?by=campaign,creative&site=site-1", "/reports?from=2020-01-01&to=2020-01-31", "/budgets", "/why", why, "/campaigns/camp-1-1",
	"/creatives/new?campaign=autumn", "/drafts/ryokan-magazine-001", "/inbox?site=yuki-site", "/nothing",
}

// Pages are accessible as far as a program can tell, fit every screen, and keep to
// their policy; SCREENSHOTS has pictures of them all.
func TestPagesInTheBrowser(t *testing.T) {
	t.Parallel()
	axe := axeCore(t)
	w := newWorld(t, nil)
	w.populate()
	w.report(time.Now().AddDate(0, 0, -8))
	w.decide()
	w.draw()
	url := w.serve()
	b := browser.Start(t)
	for name, screen := range map[string]struct {
		view   browser.View
		before []action
		pages  []string
	}{
		"light": {browser.View{Width: 1280, Height: 860}, nil, everyPage},
		"dark":  {browser.View{Width: 1280, Height: 860}, []action{dark()}, []string{"/", "/inbox", "/campaigns", "/creatives/ryokan-magazine-001", "/drafts/ryokan-magazine-001", "/creatives/ryokan-magazine-001/preview", "/inbox?site=yuki-site", "/audit", "/reports", "/budgets", why, "/campaigns/camp-1-1"}},
		"small": {browser.View{Width: 360, Height: 740}, nil, everyPage},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			login := b.Open(t, "", screen.view)
			login.Do(screen.before...)
			login.Navigate(url + "/login")
			judgeByAxe(t, login, "/login", axe)
			login.Screenshot(name + "-login")

			d := sit(t, b, url, screen.view, screen.before...)
			for _, path := range screen.pages {
				d.open(path)
				judgeByAxe(t, d.Page, path, axe)
				if over := browser.Eval[int](d.Page, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
					t.Errorf("%s is %d pixels wider than the screen", path, over)
				}
				d.ScreenshotWhole(name + inFileName.Replace(path))
			}
			d.wrongForm()
			judgeByAxe(t, d.Page, "a form with errors", axe)
			d.ScreenshotWhole(name + "-wrong")
			d.open("/publishers/umi")
			d.Do(chromedp.Click(`details.remove summary`), chromedp.WaitVisible(`[name="sure"]`))
			judgeByAxe(t, d.Page, "a rotation of keys", axe)
			d.ScreenshotWhole(name + "-rotation")
			d.open("/why")
			d.Do(chromedp.Click(`form[action="/why/token"] button`), chromedp.WaitVisible(`#token`))
			judgeByAxe(t, d.Page, "a debug token", axe)
			d.ScreenshotWhole(name + "-token")
			d.lostRace(w)
			judgeByAxe(t, d.Page, "a lost race", axe)
			d.ScreenshotWhole(name + "-lost")
			for _, m := range d.Console() {
				if !strings.Contains(m.String(), "404") && !strings.Contains(m.String(), "400") && !strings.Contains(m.String(), "409") {
					t.Errorf("console: %s", m)
				}
			}
		})
	}
}

// draw leaves a creative with a version that is shown, one that waits and a draft with
// something to say about, and magazines that fail in pages.
func (w *world) draw() {
	w.t.Helper()
	if _, err := w.catalog.Approve(w.t.Context(), "yuki-site", "ryokan-magazine-001", 1, catalog.Write{By: "ben"}); err != nil {
		w.t.Fatal(err)
	}
	x, _ := w.catalog.Snapshot().Creative("ryokan-magazine-001")
	next := *x
	next.LandingURL = "https://www.elsewhere.example/autumn" // another domain: nobody is trusted with it
	next.Pages = slices.Clone(x.Pages)
	next.Pages[0].Headline = "Evenings under red maples"
	next.Pages[0].Background, next.Pages[0].Ink, next.Pages[0].Accent = "#1d3b3a", "#f2eee4", "#e9b66a"
	w.put(&next)
	w.parts.Heartbeats = heard{
		{Site: "yuki-site", Stage: heartbeat.Render, Reason: "module", Pages: 1204},
		{Site: "kaze-site", Stage: heartbeat.Slot, Reason: "missing", Pages: 37},
		{Site: "yuki-site", Stage: heartbeat.Serve, Reason: "status_503", Pages: 2},
	}
	w.open()
	p := w.logIn("ben")
	form := parse(w.t, p.get("/creatives/ryokan-magazine-001")).form()
	form.Set("pages[0].ink", "#24504e")
	form.Set("pages[0].headline", "Winter, in a bath under the snow")
	form.Set("action", "keep")
	if a := p.send("/creatives/ryokan-magazine-001", form); a.StatusCode != http.StatusSeeOther {
		w.t.Fatalf("%d\n%s", a.StatusCode, a.body)
	}
}

type heard []heartbeat.Count

func (h heard) Day() []heartbeat.Count { return h }

// inFileName writes a path as a part of the name of a picture.
var inFileName = strings.NewReplacer("/", "-", "?", "_", "&", "_", "=", "-", ":", "", "%20", "-")

// wrongForm leaves a form on the screen with what is wrong with it.
func (d *desk) wrongForm() {
	d.t.Helper()
	d.open("/campaigns/new?advertiser=ryokan")
	d.fill("id", "a b")
	d.fill("maxCpm", "2,50")
	d.Do(chromedp.SendKeys(`[name="name"]`, kb.Enter), chromedp.WaitVisible(`[role="alert"]`))
}

// lostRace leaves a form on the screen whose entity somebody else has changed.
func (d *desk) lostRace(w *world) {
	d.t.Helper()
	d.open("/advertisers/ryokan")
	x, _ := w.catalog.Snapshot().Advertiser("ryokan")
	theirs := *x
	theirs.DailyBudget += 1e6
	theirs.Name += "!"
	w.put(&theirs)
	d.Do(chromedp.SendKeys(`[name="dailyBudget"]`, "0"+kb.Enter), chromedp.WaitVisible(`[role="alert"]`))
}

// axeCore is the script of axe-core.
func axeCore(t *testing.T) string {
	t.Helper()
	axe, err := os.ReadFile(filepath.Join("..", "..", "web", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatalf("%v; run make tools", err)
	}
	return string(axe)
}

func judgeByAxe(t *testing.T, p *browser.Page, what, axe string) {
	t.Helper()
	browser.Eval[any](p, axe+`; undefined`)
	found := browser.Eval[[]string](p, `axe.run(document, {iframes: false, runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']}).then((r) =>
		r.violations.flatMap((v) => v.nodes.map((n) => v.id + ': ' + n.html.slice(0, 160) + ' ' + (n.any[0]?.message ?? ''))))`)
	for _, f := range found {
		t.Errorf("%s: %s", what, f)
	}
}

// What breaks the policy is seen by these tests.
func TestPolicyIsEnforced(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	p := browser.Start(t).Open(t, w.serve()+"/login", browser.Desktop())
	broken := browser.Eval[[]string](p, `new Promise((done) => {
		const seen = [];
		addEventListener('securitypolicyviolation', (e) => { seen.push(e.effectiveDirective); if (seen.length === 3) done(seen.sort()); });
		document.head.append(Object.assign(document.createElement('style'), {textContent: 'body { color: red }'}));
		document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.ran = true'}));
		document.body.append(Object.assign(new Image(), {src: 'http://127.0.0.2:1/x.png'}));
	})`)
	if got := strings.Join(broken, " "); got != "img-src script-src-elem style-src-elem" {
		t.Errorf("violations: %s", got)
	}
	if browser.Eval[bool](p, `window.ran === true`) {
		t.Error("an inline script has run")
	}
	if len(p.Console()) == 0 {
		t.Error("the console says nothing of it, so that the other tests would not see it")
	}
}
