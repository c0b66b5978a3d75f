package dashboard_test

import (
	"fmt"
	"image/color"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"deckle/internal/catalog"
	"deckle/internal/heartbeat"
	"deckle/internal/publicapi"
)

// draftOf is where a draft has been kept.
func draftOf(t *testing.T, a *answer) string {
	t.Helper()
	to, _, _ := strings.Cut(a.Header.Get("Location"), "?")
	if a.StatusCode != http.StatusSeeOther || !strings.HasPrefix(to, "/drafts/") {
		t.Fatalf("%d to %q\n%s", a.StatusCode, a.Header.Get("Location"), a.body)
	}
	return to
}

// A draft has whatever was entered, right or not, and is nowhere but here, until it is
// published.
func TestDraft(t *testing.T) {
	w := newWorld(t, nil)
	w.populate()
	p := w.logIn("ana")
	before, waiting := w.catalog.Snapshot().Revision(), len(w.catalog.Snapshot().Queue("", time.Now()))

	form := parse(t, p.get("/creatives/new?campaign=autumn")).form()
	form.Set("landingUrl", "not an address")
	form.Set("pages[0].image.focus", "here")
	form.Set("pages[0].ink", "red")
	form.Set("action", "keep")
	at := draftOf(t, p.send("/creatives/new", form))
	page := p.get(at + "?done=kept")
	tr := parse(t, page)
	tr.check(at)
	form = tr.form()
	for name, want := range map[string]string{"campaign": "autumn", "landingUrl": "not an address", "pages[0].image.focus": "here", "pages[0].ink": "red"} {
		if form.Get(name) != want {
			t.Errorf("%s was kept as %q", name, form.Get(name))
		}
	}
	if got := text(parse(t, p.get("/creatives")).one("section", "aria-labelledby", "drafts")); !strings.Contains(got, "by ana") {
		t.Errorf("the list has %q", got)
	}
	stageOf(t, p.get("/stage"+at))

	// Enter keeps it; publishing says what is wrong, beside the fields, and keeps nothing.
	form.Set("id", "sakura")
	form.Set("pages[0].headline", "Blossoms")
	draftOf(t, p.send(at, form))
	form = parse(t, p.get(at)).form()
	form.Set("action", "publish")
	a := p.send(at, form)
	tr = parse(t, a)
	tr.check(at)
	for _, id := range []string{"f-landingUrl-error", "f-pages-0-ink-error"} {
		if len(tr.all("p", "id", id)) != 1 {
			t.Errorf("%d without %s", a.StatusCode, id)
		}
	}
	if s := w.catalog.Snapshot(); s.Revision() != before || len(s.Queue("", time.Now())) != waiting {
		t.Error("a draft has come into the catalog")
	}

	form = tr.form()
	form.Set("landingUrl", "https://ryokan.example/sakura")
	form.Set("pages[0].image.focus", "")
	form.Set("pages[0].ink", "#333333")
	form.Set("pages[0].background", "#222222")
	form.Set("action", "publish")
	a = p.send(at, form)
	if a.Header.Get("Location") != "/creatives/sakura?done=corrected" {
		t.Fatalf("%d to %q\n%s", a.StatusCode, a.Header.Get("Location"), a.body)
	}
	if flash := text(parse(t, p.get(a.Header.Get("Location"))).one("div", "role", "status")); !strings.Contains(flash, "black or white") {
		t.Errorf("what was changed: %q", flash)
	}
	if x, ok := w.catalog.Snapshot().Creative("sakura"); !ok || x.Pages[0].Ink != "#ffffff" {
		t.Errorf("published %+v", x)
	}
	if a := p.get(at); a.StatusCode != http.StatusNotFound {
		t.Errorf("the draft is still there: %d", a.StatusCode)
	}
}

// A draft of a creative that is being shown changes nothing of it, and nobody but its
// authors finds it.
func TestDraftOfWhatIsShown(t *testing.T) {
	w := newWorld(t, nil)
	w.populate()
	site, _ := w.catalog.Snapshot().Site("yuki-site")
	trusting := *site
	trusting.AutoApprove = true // what would approve anything that is put
	w.put(&trusting)
	p, q := w.logIn("ana"), w.logIn("ben")
	form := parse(t, p.get("/creatives/ryokan-magazine-001")).form()
	form.Set("pages[0].headline", "Mornings")
	form.Set("action", "keep")
	if at := draftOf(t, p.send("/creatives/ryokan-magazine-001", form)); at != "/drafts/ryokan-magazine-001" {
		t.Fatal(at)
	}
	if x, _ := w.catalog.Snapshot().Creative("ryokan-magazine-001"); x.Version != 1 || x.Pages[0].Headline != "Nights under red maples" {
		t.Errorf("%+v", x)
	}
	if got := text(parse(t, q.get("/creatives/ryokan-magazine-001")).one("section", "aria-labelledby", "drafted")); !strings.Contains(got, "ana has kept it") {
		t.Errorf("%q", got)
	}

	// Two people: the second one is shown both, and may save over it.
	mine, theirs := parse(t, p.get("/drafts/ryokan-magazine-001")).form(), parse(t, q.get("/drafts/ryokan-magazine-001")).form()
	theirs.Set("pages[0].sub", "Theirs")
	draftOf(t, q.send("/drafts/ryokan-magazine-001", theirs))
	mine.Set("pages[0].sub", "Mine")
	a := p.send("/drafts/ryokan-magazine-001", mine)
	tr := parse(t, a)
	tr.check("a lost race of drafts")
	if got := text(tr.one("section", "aria-labelledby", "lost")); a.StatusCode != http.StatusConflict || !containsAll(got, []string{"ben", "Cover: Below it", "Mine", "Theirs"}) {
		t.Fatalf("%d %q", a.StatusCode, got)
	}
	mine = tr.form()
	draftOf(t, p.send("/drafts/ryokan-magazine-001", mine))

	// Somebody publishes past the draft: it shows both when it is published, too.
	x, _ := w.catalog.Snapshot().Creative("ryokan-magazine-001")
	next := *x
	next.Name = "Renamed"
	w.put(&next)
	mine = parse(t, p.get("/drafts/ryokan-magazine-001")).form()
	mine.Set("action", "publish")
	a = p.send("/drafts/ryokan-magazine-001", mine)
	if got := text(parse(t, a).one("section", "aria-labelledby", "lost")); a.StatusCode != http.StatusConflict || !strings.Contains(got, "Renamed") {
		t.Fatalf("%d %q", a.StatusCode, got)
	}
	mine = parse(t, a).form()
	mine.Set("action", "publish")
	if a := p.send("/drafts/ryokan-magazine-001", mine); a.StatusCode != http.StatusSeeOther || !strings.HasPrefix(a.Header.Get("Location"), "/creatives/ryokan-magazine-001") {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	if x, _ := w.catalog.Snapshot().Creative("ryokan-magazine-001"); x.Version != 2 || x.Pages[0].Sub != "Mine" || x.Pages[0].Headline != "Mornings" {
		t.Errorf("%+v", x)
	}
	if a := p.get("/drafts/ryokan-magazine-001"); a.StatusCode != http.StatusNotFound {
		t.Errorf("the draft is still there: %d", a.StatusCode)
	}
}

func TestDraftThrownAway(t *testing.T) {
	w := newWorld(t, nil)
	w.populate()
	p := w.logIn("ana")
	at := draftOf(t, p.send("/creatives/new", url.Values{"action": {"keep"}, "name": {"Scratch"}}))
	old := parse(t, p.get(at)).form()
	form := parse(t, p.get(at)).form()
	form.Set("name", "Scratch 2")
	draftOf(t, p.send(at, form))
	if a := p.send(at+"/delete", url.Values{"draftRevision": {old.Get("draftRevision")}}); a.StatusCode != http.StatusConflict {
		t.Errorf("by an old page: %d", a.StatusCode)
	}
	now := parse(t, p.get(at)).form()
	if a := p.send(at+"/delete", url.Values{"draftRevision": {now.Get("draftRevision")}}); a.Header.Get("Location") != "/creatives?done=dropped" {
		t.Errorf("%d to %q", a.StatusCode, a.Header.Get("Location"))
	}
	// Who has it open still loses nothing.
	a := p.send(at, now)
	if got := parse(t, a); a.StatusCode != http.StatusConflict || got.value("name") != "Scratch 2" {
		t.Fatalf("%d", a.StatusCode)
	}
	draftOf(t, p.send(at, parse(t, a).form()))
	for _, path := range []string{"/drafts/new.x", "/drafts/a%2fb", "/drafts/" + strings.Repeat("a", 65), "/drafts/none"} {
		if a := p.get(path); a.StatusCode != http.StatusNotFound {
			t.Errorf("GET %s: %d", path, a.StatusCode)
		}
		if a := p.send(path, url.Values{"revision": {"1"}}); a.StatusCode < 400 && path != "/drafts/none" {
			t.Errorf("POST %s: %d to %s", path, a.StatusCode, a.Header.Get("Location"))
		}
	}
}

// A node without a place for drafts offers none.
func TestWithoutDrafts(t *testing.T) {
	w := newWorld(t, nil)
	w.parts.Drafts, w.parts.Landing = nil, nil
	w.open()
	w.populate()
	p := w.logIn("ana")
	tr := parse(t, p.get("/creatives/new"))
	if len(tr.all("button", "value", "keep"))+len(tr.all("form", "action", "/landing")) > 0 {
		t.Error("drafts are offered")
	}
	for path, form := range map[string]url.Values{"/creatives/new": {"action": {"keep"}}, "/landing": {"address": {"https://ryokan.example/"}}, "/drafts/x": {}} {
		if a := p.send(path, form); a.StatusCode < 400 {
			t.Errorf("%s: %d", path, a.StatusCode)
		}
	}
}

// A landing page becomes a draft: its words, its pictures as ours, its colours.
func TestFromALandingPage(t *testing.T) {
	w := newWorld(t, nil)
	w.populate()
	p := w.logIn("ana")
	site := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/maples.png":
			_, _ = rw.Write(picture(color.RGBA{200, 90, 60, 255}, color.RGBA{30, 60, 30, 255}))
		case "/broken.png":
			_, _ = rw.Write([]byte("no picture"))
		case "/inside":
			http.Redirect(rw, r, "http://169.254.169.254/latest/meta-data", http.StatusFound)
		case "/":
			rw.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(rw, `<title>Ryokan</title><meta property="og:title" content="Nights under &lt;b&gt;red&lt;/b&gt; maples"><meta name=description content="Eleven houses">
				<meta name=theme-color content="#9c3b2e"><meta property="og:image" content="/broken.png"><style>a{color:#1f5c5a}</style>
				<h2>The houses</h2><p>Each of them has a garden, and a bath that faces the valley.</p><img src="/maples.png" alt="Red maples">
				<h2>Getting there</h2><p>By train to Kyoto, and then by the small bus up the hill.</p>`)
		default:
			http.NotFound(rw, r)
		}
	}))
	t.Cleanup(site.Close)
	at := draftOf(t, p.send("/landing", url.Values{"address": {site.URL}, "campaign": {"autumn"}}))
	tr := parse(t, p.get(at+"?done=read"))
	tr.check(at)
	form := tr.form()
	for name, want := range map[string]string{
		"campaign": "autumn", "landingUrl": site.URL, "pageCount": "3",
		"pages[0].headline": "Nights under <b>red</b> maples", "pages[0].sub": "Eleven houses", "pages[0].accent": "#1f5c5a",
		"pages[0].image.alt": "Red maples", "pages[1].headline": "The houses", "pages[2].body": "By train to Kyoto, and then by the small bus up the hill.",
		"pages[2].background": "#9c3b2e",
	} {
		if form.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, form.Get(name), want)
		}
	}
	if src := form.Get("pages[0].image.src"); !strings.HasPrefix(src, catalog.AssetPath) || p.get(src).StatusCode != http.StatusOK {
		t.Errorf("the picture is %q", src)
	}
	form.Set("id", "from-page")
	form.Set("action", "publish")
	if a := p.send(at, form); a.StatusCode != http.StatusSeeOther || strings.HasPrefix(a.Header.Get("Location"), "/drafts/") {
		t.Errorf("publish: %d\n%s", a.StatusCode, a.body)
	}

	for address, want := range map[string]string{
		"":                         "not the address of a web page",
		"file:///etc/passwd":       "not the address of a web page",
		"http://10.0.0.1/":         "not on the public internet",
		site.URL + "/inside":       "not on the public internet",
		site.URL + "/maples.png":   "not a web page",
		site.URL + "/nothing":      "status 404",
		"http://user:pw@127.0.0.1": "not the address of a web page",
	} {
		a := p.send("/landing", url.Values{"address": {address}, "campaign": {"autumn"}})
		tr := parse(t, a)
		tr.check(address)
		if got := text(tr.one("p", "id", "address-error")); a.StatusCode != http.StatusBadRequest || !strings.Contains(got, want) {
			t.Errorf("%q: %d %q", address, a.StatusCode, got)
		}
		if tr.value("address") != address || tr.value("campaign") != "autumn" {
			t.Errorf("%q: what was entered is gone", address)
		}
	}
}

// What browsers tell of pages stands on the overview, in words.
func TestWhereMagazinesFail(t *testing.T) {
	w := newWorld(t, nil)
	w.populate()
	p := w.logIn("ana")
	if strings.Contains(p.get("/").body, "Where magazines fail") {
		t.Error("nobody listens, and the overview speaks of it")
	}
	ear := heartbeat.New(heartbeat.Config{
		Sites:   func(id string) bool { return id == "yuki-site" },
		Address: func(*http.Request) netip.Addr { return netip.MustParseAddr("192.0.2.1") },
	})
	w.parts.Heartbeats = ear
	w.open()
	p = w.logIn("ana")
	if got := text(parse(t, p.get("/")).one("section", "aria-labelledby", "failures")); !strings.Contains(got, "Nowhere that this node has heard of") {
		t.Errorf("%q", got)
	}
	tell := ear.Endpoint(publicapi.New(publicapi.NewMetrics(), slog.New(slog.DiscardHandler)))
	for _, told := range []string{
		`"stage":"render","reason":"module"`, `"stage":"render","reason":"module"`, `"stage":"slot","reason":"missing"`, `"stage":"slot","reason":"none"`,
		`"stage":"serve","reason":"status_503"`, `"stage":"serve","reason":"status_500"`, `"stage":"serve","reason":"network"`,
		`"stage":"script","reason":"no_pub"`, `"stage":"render","reason":"exception"`, `"stage":"render","reason":"of_tomorrow"`,
	} {
		rec := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), "POST", heartbeat.Path, strings.NewReader(`{"pub":"yuki-site",`+told+`}`))
		r.Header.Set("Content-Type", "application/json")
		tell.ServeHTTP(rec, r)
		if rec.Code != http.StatusNoContent {
			t.Fatal(rec.Code, rec.Body)
		}
	}
	tr := parse(t, p.get("/"))
	tr.check("/")
	got := text(tr.one("section", "aria-labelledby", "failures"))
	if !containsAll(got, []string{
		"script of the magazine was not loaded", "slot of the template is not in the page", "The page has no slot", "answered 503", "answered 500",
		"did not come back", "does not know its site", "Drawing the magazine failed", "Another reason: of_tomorrow", "4 of 4: the ad is drawn",
	}) {
		t.Errorf("%q", got)
	}
	if rows := tr.all("tr"); !strings.Contains(text(rows[1]), "not loaded") || !strings.HasSuffix(text(rows[1]), " 2") {
		t.Errorf("the most frequent is not first: %q", text(rows[1]))
	}
}
