// Package browser opens pages in a real headless Chromium for tests: one process a
// test, a clean profile a page, every console message kept, and nothing left behind.
package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/device"
)

// Patience is how long a page may take to become what a test waits for. It is
// generous: a loaded machine is slow, and a test that passes does not wait.
const Patience = 20 * time.Second

// userAgent is a reader's. The browser's own says HeadlessChrome, which every list of
// bots has.
const userAgent = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0.0.0 Safari/537.36"

// A Browser is a running Chromium.
type Browser struct {
	ctx context.Context
}

// Start starts a browser that ends with the test. Without a Chromium on this
// machine the test fails with a message that says how to get one: CHROMIUM names
// the program where it is not found by itself.
func Start(t testing.TB) *Browser {
	t.Helper()
	program, err := find()
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program),
		chromedp.NoSandbox, // containers seldom allow its namespaces, and the pages are ours
		chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.UserDataDir(t.TempDir()),
		chromedp.UserAgent(userAgent),
	)
	allocator, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	t.Cleanup(func() { _ = chromedp.Cancel(ctx) }) // waits for the process, so that its folder can go
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", program, err)
	}
	return &Browser{ctx: ctx}
}

// find is the path of a Chromium or Chrome.
func find() (string, error) {
	if program := os.Getenv("CHROMIUM"); program != "" {
		return program, nil
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if program, err := exec.LookPath(name); err == nil {
			return program, nil
		}
	}
	return "", fmt.Errorf("no Chromium on this machine, and this test is about a real browser: " +
		"install it (Debian: apt-get install chromium) or name the program in CHROMIUM")
}

// A View is the screen that a page is seen on.
type View struct {
	Width, Height int64
	Phone         bool // a phone's user agent, pixel density and touch; the size is then its own
}

// Desktop is a common laptop's screen.
func Desktop() View { return View{Width: 1366, Height: 900} }

// Phone is a common phone.
func Phone() View { return View{Phone: true} }

// emulate makes a tab look like the view.
func (v View) emulate() chromedp.Action[chromedp.Void] {
	if v.Phone {
		return chromedp.Emulate(device.IPhone13)
	}
	return chromedp.EmulateViewport(v.Width, v.Height)
}

// A Page is a tab with cookies and storage of its own.
type Page struct {
	t    testing.TB
	ctx  context.Context
	view View

	mu      sync.Mutex
	console []chromedp.ConsoleMessage
}

// Open opens a tab, and a URL in it unless that is empty. It returns when the
// document has loaded. A page that cannot be opened ends the test.
func (b *Browser) Open(t testing.TB, url string, v View) *Page {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	p := &Page{t: t, ctx: ctx, view: v}
	messages := chromedp.Console(ctx)
	var collecting sync.WaitGroup
	collecting.Go(func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			p.mu.Lock()
			p.console = append(p.console, m)
			p.mu.Unlock()
		}
	})
	t.Cleanup(func() { cancel(); collecting.Wait() })
	p.do("show the page", v.emulate())
	if url != "" {
		p.Navigate(url)
	}
	return p
}

// do runs actions within Patience, or ends the test with what the page has said.
func (p *Page) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, Patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.t.Fatalf("%s: %v\nconsole:\n%s", what, err, p.transcript())
	}
}

// Navigate opens a URL in the tab and returns when it has loaded.
func (p *Page) Navigate(url string) {
	p.t.Helper()
	p.do("open "+url, chromedp.Navigate(url))
}

// Do runs chromedp actions, within [Patience].
func (p *Page) Do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	p.do("act", actions...)
}

// WaitFor returns when the JavaScript expression is true. It ends the test, with
// what the page has said, when it does not become true within [Patience]. The tab
// may be on its way to another document, where it is asked again.
func (p *Page) WaitFor(expression string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, Patience+time.Second)
	defer cancel()
	poll := chromedp.Poll[any](expression, chromedp.WithPollingInterval(20*time.Millisecond), chromedp.WithPollingTimeout(Patience))
	_, err := chromedp.Run(ctx, poll)
	for err != nil && onItsWay(err) && ctx.Err() == nil {
		_, err = chromedp.Run(ctx, poll)
	}
	if err != nil {
		p.t.Fatalf("wait for %s: %v\nconsole:\n%s", expression, err, p.transcript())
	}
}

// onItsWay reports whether a document went away while it was asked: the protocol
// has no code of its own for that.
func onItsWay(err error) bool {
	for _, text := range []string{"Cannot find context", "context was destroyed", "target navigated"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

// Eval is the value of a JavaScript expression, or what its promise becomes,
// read as JSON into a T. An exception ends the test.
func Eval[T any](p *Page, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, Patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("evaluate %s: %v\nconsole:\n%s", expression, err, p.transcript())
	}
	return v
}

// Console is what the page and its frames have said so far, oldest first.
func (p *Page) Console() []chromedp.ConsoleMessage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]chromedp.ConsoleMessage(nil), p.console...)
}

// Errors are the exceptions that nobody caught and the errors on the console.
func (p *Page) Errors() []string {
	var errs []string
	for _, m := range p.Console() {
		if m.IsException() || m.Type == chromedp.ConsoleError {
			errs = append(errs, describe(m))
		}
	}
	return errs
}

func (p *Page) transcript() string {
	var text string
	for _, m := range p.Console() {
		text += describe(m) + "\n"
	}
	return text
}

func describe(m chromedp.ConsoleMessage) string {
	if m.URL == "" {
		return m.String()
	}
	return fmt.Sprintf("%s (%s:%d)", m, m.URL, m.Line+1)
}

// Screenshot writes what is on the screen to name.png in the folder that
// SCREENSHOTS names; without that it does nothing.
func (p *Page) Screenshot(name string) { p.capture(name, chromedp.CaptureScreenshot()) }

// ScreenshotWhole is Screenshot for the whole document. For that the screen grows
// as tall as the document: the browser paints neither lazy pictures nor the frames
// of other origins where they are not on it.
func (p *Page) ScreenshotWhole(name string) {
	p.t.Helper()
	if os.Getenv("SCREENSHOTS") == "" {
		return
	}
	size := Eval[[2]int64](p, `[innerWidth, document.documentElement.scrollHeight]`)
	p.do("grow", chromedp.EmulateViewport(size[0], size[1]))
	Eval[bool](p, `new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(true), 300)))`)
	p.capture(name, chromedp.CaptureScreenshot())
	p.do("shrink", p.view.emulate())
}

func (p *Page) capture(name string, action chromedp.Action[[]byte]) {
	p.t.Helper()
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		return
	}
	ctx, cancel := context.WithTimeout(p.ctx, Patience)
	defer cancel()
	png, err := chromedp.Run(ctx, action)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600)
	}
	if err != nil {
		p.t.Errorf("screenshot %s: %v", name, err)
	}
}
