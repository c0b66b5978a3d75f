package dashboard_test

import (
	"encoding/json"
	"image/color"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deckle/internal/catalog"
)

// stagePolicy is that of every stage, but for its nonce.
var stagePolicy = regexp.MustCompile(`^default-src 'none'; script-src 'nonce-([A-Za-z0-9+/=]{24})'; style-src 'nonce-([A-Za-z0-9+/=]{24})'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox allow-scripts$`)

// A staged is what a stage is given to draw.
type staged struct {
	Pages      []catalog.Page
	LandingURL string
}

// stageOf reads a stage: it has its policy, runs our two scripts and nothing else, and
// holds the creative as data.
func stageOf(t *testing.T, a *answer) (s staged) {
	t.Helper()
	nonce := stagePolicy.FindStringSubmatch(a.Header.Get("Content-Security-Policy"))
	if a.StatusCode != http.StatusOK || nonce == nil || nonce[1] != nonce[2] {
		t.Fatalf("%d, policy %q", a.StatusCode, a.Header.Get("Content-Security-Policy"))
	}
	tr := parse(t, a)
	scripts := tr.all("script")
	if len(scripts) != 3 || len(tr.all("script", "nonce", nonce[1])) != 2 || len(tr.all("img"))+len(tr.all("iframe")) > 0 {
		t.Errorf("%d scripts, pictures or frames that the creative has brought:\n%s", len(scripts), a.body)
	}
	if err := json.Unmarshal([]byte(text(tr.one("script", "id", "creative"))), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStage(t *testing.T) {
	w := newWorld(t, nil)
	w.populate()
	p := w.logIn("ana")
	s := stageOf(t, p.get("/stage/creatives/ryokan-magazine-001?version=1"))
	if len(s.Pages) != 3 || s.Pages[0].Headline != "Nights under red maples" || s.LandingURL != "https://ryokan.example/autumn" {
		t.Errorf("drawn: %+v", s)
	}
	// A document without an origin sends no cookies; the address of a picture is enough,
	// and of that picture alone.
	src := s.Pages[0].Image.Src
	a := w.ask("GET", src, "")
	if a.StatusCode != http.StatusOK || a.Header.Get("Content-Type") != "image/png" || a.Header.Get("Cross-Origin-Resource-Policy") != "cross-origin" || !strings.HasPrefix(a.Header.Get("Cache-Control"), "private") {
		t.Errorf("%s: %d %v", src, a.StatusCode, a.Header)
	}
	parts := strings.Split(src, "/")
	other, err := catalog.Rehost(t.Context(), w.blobs, picture(color.RGBA{1, 2, 3, 255}, color.RGBA{3, 2, 1, 255}))
	if err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"another picture": strings.Replace(src, parts[3], strings.TrimPrefix(other.Src, catalog.AssetPath), 1),
		"a later time":    strings.Replace(src, "/"+parts[4]+"/", "/99999999999/", 1),
		"no time":         strings.Replace(src, "/"+parts[4]+"/", "/x/", 1),
		"another mac":     src[:len(src)-1] + map[bool]string{true: "0", false: "1"}[src[len(src)-1] == '1'],
		"half a mac":      src[:len(src)-32],
	} {
		if a := w.ask("GET", path, ""); a.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", name, a.StatusCode)
		}
	}
	for _, path := range []string{
		"/stage/creatives/ryokan-magazine-001", "/stage/creatives/ryokan-magazine-001?version=2", "/stage/creatives/ryokan-magazine-001?version=x",
		"/stage/creatives/none?version=1", "/stage/drafts/none", "/stage/drafts/..%2f",
	} {
		if a := p.get(path); a.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, a.StatusCode)
		}
		if a := w.ask("GET", path, ""); a.StatusCode != http.StatusSeeOther {
			t.Errorf("%s without a session: %d", path, a.StatusCode)
		}
	}
}

// The address of a picture ends by itself.
func TestSignedAddressesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.populate()
		p := w.logIn("ana")
		of := func() string {
			return stageOf(t, p.get("/stage/creatives/ryokan-magazine-001?version=1")).Pages[0].Image.Src
		}
		src := of()
		for _, tt := range []struct {
			after  time.Duration
			status int
		}{{5 * time.Minute, http.StatusOK}, {6 * time.Minute, http.StatusNotFound}} {
			time.Sleep(tt.after)
			if a := w.ask("GET", src, ""); a.StatusCode != tt.status {
				t.Errorf("after another %v: %d", tt.after, a.StatusCode)
			}
		}
		if of() == src {
			t.Error("the next one is the same")
		}
		if w.ask("GET", of(), "").StatusCode != http.StatusOK {
			t.Error("the next one is not good")
		}
	})
}

// Beside the version that waits stands the one that is shown.
func TestInboxShowsBothVersions(t *testing.T) {
	w := newWorld(t, nil)
	w.populate()
	p := w.logIn("ana")
	if _, err := w.catalog.Approve(t.Context(), "yuki-site", "ryokan-magazine-001", 1, catalog.Write{By: "ana"}); err != nil {
		t.Fatal(err)
	}
	x, _ := w.catalog.Snapshot().Creative("ryokan-magazine-001")
	next := *x
	next.LandingURL = "https://elsewhere.example/" // so that nobody is trusted to approve it
	next.Pages = []catalog.Page{{Headline: "Mornings"}}
	w.put(&next)

	var shown []string
	tr := parse(t, p.get("/inbox?site=yuki-site"))
	for _, n := range tr.all("iframe") {
		src, _ := attr(n, "src")
		s := stageOf(t, p.get(src))
		title, _ := attr(n, "title")
		shown = append(shown, title+": "+s.Pages[0].Headline)
	}
	want := []string{
		"Nights under red maples, version 2, as readers see it: Mornings", "Nights under red maples, version 2, as readers see it, opened: Mornings",
		"Nights under red maples, version 1, as readers see it: Nights under red maples", "Nights under red maples, version 1, as readers see it, opened: Nights under red maples",
	}
	if got := strings.Join(shown, "\n"); !containsAll(got, want) {
		t.Errorf("frames:\n%s", got)
	}
	if labels := text(tr.one("main")); !strings.Contains(labels, "Version 2, which waits") || !strings.Contains(labels, "Version 1, which is shown") {
		t.Error("the versions are not told apart")
	}
	// What a site shows is not shown as another site's.
	if a := p.get("/stage/creatives/ryokan-magazine-001?version=1&site=kaze-site"); a.StatusCode != http.StatusNotFound {
		t.Errorf("%d", a.StatusCode)
	}
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// hostile is what somebody writes who wants to run something.
const hostile = `</script><script>top.ran=1</script><img src=x onerror="top.ran=1"><!--<script>` + "\u2028" + `';alert(1)//{{.}}`

// No text of a creative becomes markup, and no address in a form makes a stage load
// what is not ours.
func TestStageOfAForm(t *testing.T) {
	w := newWorld(t, nil)
	w.populate()
	p := w.logIn("ana")
	form := url.Values{
		"pageCount": {"2"}, "name": {hostile}, "landingUrl": {"javascript:alert(1)"},
		"pages[0].headline": {hostile}, "pages[0].body": {hostile}, "pages[0].ink": {hostile}, "pages[0].image.src": {"https://evil.example/x.png"},
		"pages[1].background": {"#202020"}, "pages[1].ink": {"#303030"}, "pages[1].image.src": {catalog.AssetPath + "../../logout"},
	}
	s := stageOf(t, p.send("/stage", form))
	if s.Pages[0].Headline != hostile || s.Pages[0].Image != nil || s.Pages[1].Image != nil || s.Pages[1].Ink != "#ffffff" {
		t.Errorf("drawn: %+v", s)
	}
	a := p.send("/stage/draft", form)
	var drafted struct {
		Creative   staged
		Set, Notes map[string]string
	}
	if err := json.Unmarshal([]byte(a.body), &drafted); err != nil || a.Header.Get("Content-Type") != "application/json" {
		t.Fatal(err, a.Header)
	}
	if note := drafted.Notes["pages[1].ink"]; !strings.Contains(note, "saved as #ffffff") || len(drafted.Notes) != 1 || len(drafted.Set) != 0 {
		t.Errorf("notes %v, set %v", drafted.Notes, drafted.Set)
	}
	form.Del("pages[0].image.src")
	a = p.upload("/stage/draft", form, "pages[0].image.file", picture(color.RGBA{9, 9, 9, 255}, color.RGBA{7, 7, 7, 255}))
	if err := json.Unmarshal([]byte(a.body), &drafted); err != nil || !strings.HasPrefix(drafted.Set["pages[0].image.src"], catalog.AssetPath) || drafted.Creative.Pages[0].Image == nil {
		t.Errorf("an upload: %s, %v", a.body, err)
	}
	if a := w.post("/stage", form); a.StatusCode != http.StatusSeeOther {
		t.Errorf("without a session: %d", a.StatusCode)
	}
}
