package dashboard_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image/color"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/html"

	"deckle/internal/catalog"
	"deckle/internal/dashboard"
	"deckle/internal/dashboard/api"
	"deckle/internal/store"
	"deckle/internal/store/memory"
)

const csp = "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// A person has logged in.
type person struct {
	*world
	cookie string
}

func (w *world) logIn(name string) *person {
	w.t.Helper()
	a := w.post("/login", url.Values{"name": {name}, "password": {password}})
	cookies := a.Cookies()
	if a.StatusCode != http.StatusSeeOther || len(cookies) != 1 {
		w.t.Fatalf("log in: %d %v\n%s", a.StatusCode, cookies, a.body)
	}
	return &person{w, cookies[0].Name + "=" + cookies[0].Value}
}

func (w *world) post(path string, form url.Values, header ...string) *answer {
	w.t.Helper()
	return w.ask("POST", path, form.Encode(), append([]string{"Content-Type", "application/x-www-form-urlencoded"}, header...)...)
}

func (p *person) get(path string) *answer {
	p.t.Helper()
	return p.ask("GET", path, "", "Cookie", p.cookie)
}

func (p *person) send(path string, form url.Values) *answer {
	p.t.Helper()
	return p.post(path, form, "Cookie", p.cookie, "Sec-Fetch-Site", "same-origin")
}

// A tree is a parsed page.
type tree struct {
	t    testing.TB
	root *html.Node
}

func parse(t testing.TB, a *answer) tree {
	t.Helper()
	root, err := html.Parse(strings.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	return tree{t, root}
}

// all are the elements of a name whose attributes are as given: "input", "name",
// "id"; a value of "" asks that the attribute is there.
func (tr tree) all(element string, attrs ...string) (found []*html.Node) {
	for n := range tr.root.Descendants() {
		if n.Type != html.ElementNode || element != "*" && n.Data != element {
			continue
		}
		ok := true
		for i := 0; i < len(attrs); i += 2 {
			value, has := attr(n, attrs[i])
			ok = ok && has && (attrs[i+1] == "" || value == attrs[i+1])
		}
		if ok {
			found = append(found, n)
		}
	}
	return found
}

// one is the only such element.
func (tr tree) one(element string, attrs ...string) *html.Node {
	tr.t.Helper()
	found := tr.all(element, attrs...)
	if len(found) != 1 {
		tr.t.Fatalf("%d elements %s %v, want one", len(found), element, attrs)
	}
	return found[0]
}

func attr(n *html.Node, name string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

func text(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data + " ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// value is what a control holds.
func (tr tree) value(name string) string {
	tr.t.Helper()
	for _, n := range tr.all("*", "name", name) {
		switch n.Data {
		case "textarea":
			return strings.TrimPrefix(text(n), "\n")
		case "select":
			for o := range n.Descendants() {
				if _, chosen := attr(o, "selected"); chosen {
					v, _ := attr(o, "value")
					return v
				}
			}
			return ""
		default:
			v, _ := attr(n, "value")
			if kind, _ := attr(n, "type"); kind == "checkbox" {
				if _, checked := attr(n, "checked"); !checked {
					continue
				}
			}
			return v
		}
	}
	return ""
}

// form is what a browser would send from the page's editor.
func (tr tree) form() url.Values {
	tr.t.Helper()
	out := url.Values{}
	for n := range tr.one("form", "class", "editor").Descendants() {
		name, has := attr(n, "name")
		if !has || n.Data == "button" {
			continue
		}
		kind, _ := attr(n, "type")
		_, checked := attr(n, "checked")
		switch {
		case kind == "checkbox" && !checked, kind == "file":
		case kind == "checkbox":
			v, _ := attr(n, "value")
			out.Add(name, v)
		default:
			out.Add(name, tr.value(name))
		}
	}
	return out
}

// check says everything that no page may have, and what every page must.
func (tr tree) check(path string) {
	tr.t.Helper()
	bad := func(format string, args ...any) { tr.t.Errorf("%s: %s", path, fmt.Sprintf(format, args...)) }
	for _, element := range []string{"html", "title", "h1", "main"} {
		if n := len(tr.all(element)); n != 1 {
			bad("%d elements %s", n, element)
		}
	}
	for _, element := range []string{"style", "object", "embed", "base"} {
		if len(tr.all(element)) > 0 {
			bad("has a %s", element)
		}
	}
	for _, n := range tr.all("iframe") {
		sandbox, _ := attr(n, "sandbox")
		if src, _ := attr(n, "src"); sandbox != "allow-scripts" || !strings.HasPrefix(src, "/stage/") {
			bad("has a frame of %s, sandboxed as %q", src, sandbox)
		}
		if title, _ := attr(n, "title"); title == "" {
			bad("has a frame without a title")
		}
	}
	for _, n := range tr.all("script") {
		if src, _ := attr(n, "src"); !strings.HasPrefix(src, "/static/editor.js?") || text(n) != "" || len(tr.all("form", "action", "/landing")) == 0 && len(tr.all("iframe", "name", "stage")) == 0 {
			bad("has a script %s", src)
		}
	}
	ids := map[string]bool{}
	for n := range tr.root.Descendants() {
		for _, a := range n.Attr {
			switch {
			case strings.HasPrefix(a.Key, "on"), a.Key == "style":
				bad("%s has %s", n.Data, a.Key)
			case a.Key == "id" && ids[a.Val]:
				bad("id %q twice", a.Val)
			case a.Key == "id":
				ids[a.Val] = true
			}
		}
	}
	for n := range tr.root.Descendants() {
		for _, a := range n.Attr {
			if a.Key == "for" || a.Key == "aria-describedby" || a.Key == "aria-labelledby" {
				for id := range strings.FieldsSeq(a.Val) {
					if !ids[id] {
						bad("%s=%q names nothing", a.Key, a.Val)
					}
				}
			}
		}
		if n.Data == "input" || n.Data == "select" || n.Data == "textarea" {
			if !tr.labelled(n) {
				bad("%s %v has no label", n.Data, n.Attr)
			}
		}
	}
}

// policy is what a page's Content-Security-Policy is: only pages with frames of ours
// show frames, and only the editor of creatives runs a script, the one that it names.
func (tr tree) policy() string {
	switch scripts := tr.all("script"); {
	case len(scripts) == 1:
		nonce, _ := attr(scripts[0], "nonce")
		if raw, err := base64.StdEncoding.DecodeString(nonce); err != nil || len(raw) != 16 {
			return "a nonce that can be guessed"
		}
		return csp + "; frame-src 'self'; script-src 'nonce-" + nonce + "'; connect-src 'self'"
	case len(tr.all("iframe")) > 0:
		return csp + "; frame-src 'self'"
	}
	return csp
}

func (tr tree) labelled(n *html.Node) bool {
	if kind, _ := attr(n, "type"); kind == "hidden" {
		return true
	}
	if id, ok := attr(n, "id"); ok && len(tr.all("label", "for", id)) == 1 {
		return true
	}
	for p := range n.Ancestors() {
		if p.Data == "label" {
			return true
		}
	}
	return false
}

// Everything that can be reached from the overview is a sound page.
func TestEveryPage(t *testing.T) {
	w := newWorld(t, nil)
	w.populate()
	p := w.logIn("ana")
	seen, queue := map[string]bool{"/": true}, []string{"/"}
	for len(queue) > 0 {
		path := queue[0]
		queue = queue[1:]
		a := p.get(path)
		tr := parse(t, a)
		if a.StatusCode != http.StatusOK || a.Header.Get("Content-Security-Policy") != tr.policy() || a.Header.Get("Cache-Control") != "no-store" {
			t.Fatalf("%s: %d %v", path, a.StatusCode, a.Header)
		}
		tr.check(path)
		for _, n := range tr.all("a", "href", "") {
			href, _ := attr(n, "href")
			if strings.HasPrefix(href, "/") && !seen[href] {
				seen[href] = true
				queue = append(queue, href)
			}
		}
		for _, n := range tr.all("img", "src", "") {
			src, _ := attr(n, "src")
			if a := p.get(src); a.StatusCode != http.StatusOK || a.Header.Get("Cache-Control") != api.Private || !strings.HasPrefix(a.Header.Get("Content-Type"), "image/") {
				t.Errorf("%s: picture %s: %d", path, src, a.StatusCode)
			}
		}
	}
	for _, want := range []string{"/campaigns/autumn", "/creatives/ryokan-small/preview", "/inbox?site=kaze-site", "/sites?of=yuki", "/publishers/yuki/history", "/creatives/new"} {
		if !seen[want] {
			t.Errorf("nothing leads to %s", want)
		}
	}
	css := w.ask("GET", attrOf(t, p.get("/"), "link", "rel", "stylesheet", "href"), "")
	if css.StatusCode != http.StatusOK || !strings.Contains(css.Header.Get("Cache-Control"), "immutable") {
		t.Errorf("stylesheet: %d %v", css.StatusCode, css.Header)
	}
}

func attrOf(t testing.TB, a *answer, element, name, value, want string) string {
	t.Helper()
	v, _ := attr(parse(t, a).one(element, name, value), want)
	return v
}

// Nothing is shown or done for who has not logged in.
func TestNothingWithoutASession(t *testing.T) {
	w := newWorld(t, nil)
	w.populate()
	for _, path := range []string{"/", "/inbox", "/audit", "/publishers", "/publishers/yuki", "/creatives/ryokan-small/preview", "/nothing", "/_deckle/asset/" + strings.Repeat("a", 64), "/stage/new", "/drafts/x", "/stage/drafts/x"} {
		a := w.ask("GET", path, "", "Cookie", "deckle-local=guess; __Host-deckle=guess")
		if to := a.Header.Get("Location"); a.StatusCode != http.StatusSeeOther || !strings.HasPrefix(to, "/login") {
			t.Errorf("GET %s: %d to %q", path, a.StatusCode, to)
		}
	}
	for _, path := range []string{"/publishers/new", "/publishers/yuki", "/publishers/yuki/delete", "/inbox/yuki-site/ryokan-small", "/stage", "/stage/draft", "/landing", "/drafts/x", "/drafts/x/delete"} {
		before := w.catalog.Snapshot().Revision()
		a := w.post(path, url.Values{"id": {"x"}, "name": {"X"}, "currency": {"USD"}, "revision": {"1"}, "version": {"1"}, "decision": {"approve"}})
		if a.StatusCode != http.StatusSeeOther || w.catalog.Snapshot().Revision() != before {
			t.Errorf("POST %s: %d", path, a.StatusCode)
		}
	}
}

// Long lists have pages and a search.
func TestLongLists(t *testing.T) {
	w := newWorld(t, nil)
	p := w.logIn("ana")
	if tr := parse(t, p.get("/publishers")); len(tr.all("input", "type", "search")) != 0 {
		t.Error("a search in an empty list")
	}
	for i := range 60 {
		w.put(&catalog.Publisher{ID: fmt.Sprintf("p%02d", i), Name: fmt.Sprintf("House %02d", i*7%60), Currency: "USD"})
	}
	rows := func(path string) (ids []string, more string) {
		tr := parse(t, p.get(path))
		tr.check(path)
		for _, n := range tr.all("span", "class", "id") {
			ids = append(ids, text(n))
		}
		for _, n := range tr.all("p", "class", "pager") {
			for a := range n.Descendants() {
				if href, ok := attr(a, "href"); ok {
					more = href
				}
			}
		}
		return ids, more
	}
	first, more := rows("/publishers")
	second, end := rows(more)
	if len(first) != 50 || len(second) != 10 || end != "" || second[0] != "p50" {
		t.Errorf("pages of %d and %d, then %q", len(first), len(second), end)
	}
	if ids, _ := rows("/publishers?q=HOUSE+07"); fmt.Sprint(ids) != "[p01]" {
		t.Errorf("by name: %v", ids)
	}
	if ids, _ := rows("/publishers?q=p5"); len(ids) != 10 {
		t.Errorf("by id: %v", ids)
	}
	if a := p.get("/publishers?q=nothing"); !strings.Contains(a.body, "Nothing found") {
		t.Error("an empty result does not say so")
	}
}

// A form comes back with everything that is wrong, at its fields, and with
// everything that was entered; nothing is saved.
func TestFormsKeepWhatWasEntered(t *testing.T) {
	w := newWorld(t, nil)
	w.populate()
	p := w.logIn("ana")
	before := w.catalog.Snapshot().Revision()
	a := p.send("/campaigns/new", url.Values{
		"id": {"a b"}, "name": {"<b>Spring</b>"}, "advertiser": {"ryokan"}, "status": {"paused"}, "landingUrl": {"javascript:alert(1)"},
		"maxCpm": {"2,50"}, "dailyBudget": {"-1"}, "start": {"soon"}, "categories": {"no-such"}, "productCategory": {""},
		"frequencyCap.count": {"5000"}, "frequencyCap.per": {"week"}, "dogEar": {"yes"},
	})
	if a.StatusCode != http.StatusBadRequest || w.catalog.Snapshot().Revision() != before {
		t.Fatalf("%d\n%s", a.StatusCode, a.body)
	}
	tr := parse(t, a)
	tr.check("/campaigns/new")
	for name, want := range map[string]string{
		"id": "a b", "name": "<b>Spring</b>", "advertiser": "ryokan", "status": "paused", "maxCpm": "2,50", "dailyBudget": "-1",
		"start": "soon", "categories": "no-such", "frequencyCap.per": "week", "dogEar": "yes",
	} {
		if got := tr.value(name); got != want {
			t.Errorf("%s holds %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"id", "landingUrl", "maxCpm", "dailyBudget", "start", "productCategory", "frequencyCap.count"} {
		n := tr.one("*", "name", name)
		if invalid, _ := attr(n, "aria-invalid"); invalid != "true" {
			t.Errorf("%s is not marked as wrong", name)
		}
		described, _ := attr(n, "aria-describedby")
		if id := strings.Fields(described + " -")[0]; !strings.HasSuffix(id, "-error") || text(tr.one("p", "id", id)) == "" {
			t.Errorf("%s does not say what is wrong", name)
		}
	}
	if maxCPM := text(tr.one("p", "id", "f-maxCpm-error")); strings.Contains(maxCPM, "out of range") {
		t.Errorf("what could not be read is judged as well: %q", maxCPM)
	}
	for _, name := range []string{"name", "advertiser", "totalBudget", "end"} {
		for _, n := range tr.all("*", "name", name) {
			if _, invalid := attr(n, "aria-invalid"); invalid {
				t.Errorf("%s is marked as wrong", name)
			}
		}
	}
}

// What a page shows, sent back, changes nothing; what is changed in it is saved.
func TestFormsSaveWhatTheyShow(t *testing.T) {
	w := newWorld(t, nil)
	w.populate()
	p := w.logIn("ben")
	for _, path := range []string{"/publishers/yuki", "/sites/yuki-site", "/advertisers/tea-house", "/campaigns/autumn", "/creatives/ryokan-magazine-001"} {
		before := w.catalog.Snapshot().Revision()
		form := parse(t, p.get(path)).form()
		a := p.send(path, form)
		if a.StatusCode != http.StatusSeeOther || w.catalog.Snapshot().Revision() != before {
			t.Errorf("%s: %d, and something was written\n%v", path, a.StatusCode, form)
		}
	}
	form := parse(t, p.get("/campaigns/autumn")).form()
	form.Set("dailyBudget", "1,250.50")
	form.Set("status", "paused")
	if a := p.send("/campaigns/autumn", form); a.Header.Get("Location") != "/campaigns/autumn?done=saved" {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	c, _ := w.catalog.Snapshot().Campaign("autumn")
	if c.DailyBudget != 1_250_500_000 || c.Status != catalog.Paused || !c.DogEar || c.TotalBudget != 3000e6 {
		t.Errorf("saved %+v", c)
	}
	if log := parse(t, p.get("/campaigns/autumn/history")); !strings.Contains(text(log.one("main")), "ben updated") {
		t.Error("the history does not say who")
	}
	if page := parse(t, p.get("/campaigns/autumn?done=saved")); text(page.one("*", "role", "status")) != "Saved." {
		t.Error("the page does not say that it is saved")
	}
}

// Who has lost a race sees both versions, and their own in the form.
func TestLostRaceOfTwoPeople(t *testing.T) {
	w := newWorld(t, nil)
	w.populate()
	ana, ben := w.logIn("ana"), w.logIn("ben")
	mine := parse(t, ana.get("/advertisers/ryokan")).form()
	theirs := parse(t, ben.get("/advertisers/ryokan")).form()
	theirs.Set("dailyBudget", "900")
	if a := ben.send("/advertisers/ryokan", theirs); a.StatusCode != http.StatusSeeOther {
		t.Fatal(a.body)
	}
	mine.Set("dailyBudget", "100")
	a := ana.send("/advertisers/ryokan", mine)
	if a.StatusCode != http.StatusConflict {
		t.Fatalf("%d\n%s", a.StatusCode, a.body)
	}
	tr := parse(t, a)
	tr.check("/advertisers/ryokan")
	race := text(tr.one("section", "aria-labelledby", "lost"))
	for _, want := range []string{"ben", "Budget of a day", "100", "900"} {
		if !strings.Contains(race, want) {
			t.Errorf("does not say %q: %s", want, race)
		}
	}
	if got := tr.value("dailyBudget"); got != "100" {
		t.Errorf("the form holds %q", got)
	}
	if x, _ := w.catalog.Snapshot().Advertiser("ryokan"); x.DailyBudget != 900e6 {
		t.Errorf("saved %d", x.DailyBudget)
	}
	// Knowingly, over it.
	if a := ana.send("/advertisers/ryokan", tr.form()); a.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d\n%s", a.StatusCode, a.body)
	}
	if x, _ := w.catalog.Snapshot().Advertiser("ryokan"); x.DailyBudget != 100e6 {
		t.Errorf("saved %d", x.DailyBudget)
	}

	// A deletion by the other one.
	mine = parse(t, ana.get("/creatives/ryokan-small")).form()
	if a := ben.send("/creatives/ryokan-small/delete", url.Values{"revision": mine["revision"]}); a.StatusCode != http.StatusSeeOther {
		t.Fatal(a.body)
	}
	mine.Set("name", "Mine")
	a = ana.send("/creatives/ryokan-small", mine)
	if a.StatusCode != http.StatusConflict || !strings.Contains(a.body, "Somebody has deleted this meanwhile") {
		t.Errorf("%d\n%s", a.StatusCode, a.body)
	}
	if a := ana.get("/creatives/ryokan-small"); a.StatusCode != http.StatusNotFound {
		t.Errorf("a deleted creative: %d", a.StatusCode)
	}

	// An id that is taken is no race.
	a = ana.send("/publishers/new", url.Values{"id": {"yuki"}, "name": {"Another"}, "currency": {"USD"}})
	if a.StatusCode != http.StatusBadRequest || !strings.Contains(a.body, "taken by another publisher") {
		t.Errorf("%d\n%s", a.StatusCode, a.body)
	}
}

// Pages of a creative are added, moved and removed without a script, and pictures
// come with the form.
func TestCreativeForm(t *testing.T) {
	w := newWorld(t, nil)
	w.populate()
	p := w.logIn("ana")
	press := func(form url.Values, action string) url.Values {
		t.Helper()
		form.Set("action", action)
		a := p.send("/creatives/new", form)
		if a.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d\n%s", action, a.StatusCode, a.body)
		}
		tr := parse(t, a)
		tr.check("/creatives/new after " + action)
		return tr.form()
	}
	form := parse(t, p.get("/creatives/new?campaign=autumn")).form()
	if form.Get("campaign") != "autumn" || form.Get("pageCount") != "1" {
		t.Fatalf("%v", form)
	}
	form.Set("id", "tea")
	form.Set("pages[0].headline", "One")
	form = press(form, "add")
	form.Set("pages[1].headline", "Two")
	form = press(form, "add")
	form.Set("pages[2].headline", "Three")
	form.Set("pages[2].image.focus", "50 30")
	form = press(form, "up 2")
	form = press(form, "drop 0")
	if got := form.Get("pages[0].headline") + " " + form.Get("pages[1].headline") + " " + form.Get("pageCount"); got != "Three Two 2" {
		t.Errorf("pages: %s", got)
	}
	form.Del("action")
	form.Set("pages[0].image.alt", "A hill")
	a := p.upload("/creatives/new", form, "pages[0].image.file", picture(color.RGBA{20, 200, 200, 255}, color.RGBA{9, 90, 9, 255}))
	if a.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d\n%s", a.StatusCode, a.body)
	}
	c, ok := w.catalog.Snapshot().Creative("tea")
	if !ok || len(c.Pages) != 2 || c.Pages[0].Image == nil || c.Pages[0].Image.Alt != "A hill" || *c.Pages[0].Image.Focus != (catalog.Focus{X: 0.5, Y: 0.3}) {
		t.Fatalf("saved %+v", c)
	}
	form = parse(t, p.get("/creatives/tea")).form()
	a = p.upload("/creatives/tea", form, "pages[1].image.file", []byte("no picture"))
	if a.StatusCode != http.StatusBadRequest || text(parse(t, a).one("p", "id", "f-pages-1-image-file-error")) == "" {
		t.Errorf("%d\n%s", a.StatusCode, a.body)
	}
}

func (p *person) upload(path string, form url.Values, name string, data []byte) *answer {
	p.t.Helper()
	var b bytes.Buffer
	m := multipart.NewWriter(&b)
	for key, values := range form {
		for _, v := range values {
			if err := m.WriteField(key, v); err != nil {
				p.t.Fatal(err)
			}
		}
	}
	f, err := m.CreateFormFile(name, "picture")
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := f.Write(data); err != nil {
		p.t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		p.t.Fatal(err)
	}
	return p.ask("POST", path, b.String(), "Content-Type", m.FormDataContentType(), "Cookie", p.cookie)
}

func TestInbox(t *testing.T) {
	w := newWorld(t, nil)
	w.populate()
	p := w.logIn("ana")
	cases := func() []*html.Node { return parse(t, p.get("/inbox")).all("form", "method", "post") }
	decision := func(tr tree, n *html.Node) (string, url.Values) {
		action, _ := attr(n, "action")
		v := url.Values{}
		for d := range n.Descendants() {
			if name, _ := attr(d, "name"); name == "version" || name == "revision" {
				v.Set(name, tr.valueIn(n, name))
			}
		}
		return action, v
	}
	tr := parse(t, p.get("/inbox"))
	forms := tr.all("form", "method", "post")[1:] // the first one logs out
	if len(forms) != 8 {                          // four cases, yes and no
		t.Fatalf("%d forms", len(forms))
	}
	if _, focused := attr(tr.all("button", "value", "approve")[0], "autofocus"); !focused {
		t.Error("the first decision does not have the focus")
	}
	action, yes := decision(tr, forms[0])
	yes.Set("decision", "approve")
	if a := p.send(action, yes); a.StatusCode != http.StatusSeeOther || !strings.HasPrefix(a.Header.Get("Location"), "/inbox?done=approved") {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	if n := len(cases()) - 1; n >= 8 {
		t.Errorf("%d forms after a decision", n)
	}
	// A second time: somebody else's page is old by now.
	yes.Set("decision", "reject")
	yes.Set("reason", "late")
	if a := p.send(action, yes); !strings.HasPrefix(a.Header.Get("Location"), "/inbox?done=decided") {
		t.Errorf("an old page: %d", a.StatusCode)
	}
	if s := w.catalog.Snapshot().Approvals("kaze-site", "ryokan-magazine-001"); s.Serving() != 1 {
		t.Errorf("an old page has changed something: %+v", s)
	}

	action, no := decision(tr, forms[7])
	no.Set("decision", "reject")
	for _, reason := range []string{"", "  ", strings.Repeat("x", 301)} {
		no.Set("reason", reason)
		if a := p.send(action, no); a.StatusCode != http.StatusBadRequest {
			t.Errorf("reason %.10q: %d", reason, a.StatusCode)
		}
	}
	no.Set("reason", "The house is  closed.")
	if a := p.send(action, no); a.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	if log := text(parse(t, p.get("/audit")).one("main")); !strings.Contains(log, "The house is closed.") {
		t.Errorf("the audit log does not say why:\n%s", log)
	}
	for _, v := range []url.Values{{}, {"version": {"1"}, "revision": {"0"}, "decision": {"maybe"}}, {"version": {"-1"}, "revision": {"0"}, "decision": {"approve"}}} {
		if a := p.send(action, v); a.StatusCode != http.StatusBadRequest {
			t.Errorf("%v: %d", v, a.StatusCode)
		}
	}
}

func (tr tree) valueIn(n *html.Node, name string) string {
	return tree{tr.t, n}.value(name)
}

func TestLogIn(t *testing.T) {
	proxied := func(c *dashboard.Config) { c.TrustedProxies = parsePrefixes("10.0.0.0/8") }
	beside := func(c *dashboard.Config) { c.TrustedProxies = parsePrefixes("127.0.0.0/8") }
	for _, tt := range []struct {
		name   string
		edit   func(*dashboard.Config)
		host   string
		header []string
		cookie string // with which a session begins; "": not at all
		status int
	}{
		{name: "this machine by name", host: "localhost:8081", cookie: "deckle-local", status: 303},
		{name: "this machine by address", host: "127.0.0.1:8081", cookie: "deckle-local", status: 303},
		{name: "this machine by IPv6", host: "[::1]:8081", cookie: "deckle-local", status: 303},
		{name: "a network in plain text", host: "admin.example:8081", status: 403},
		{name: "a name that was rebound", host: "localhost.evil.example", status: 403},
		{name: "a peer that lies about https", host: "admin.example", header: []string{"X-Forwarded-Proto", "https"}, status: 403},
		{name: "https by a trusted proxy", edit: proxied, host: "admin.example", header: []string{"X-Forwarded-Proto", "https", "RemoteAddr", "10.1.2.3:4"}, cookie: "__Host-deckle", status: 303},
		{name: "a proxy beside us with a name of its own", host: "127.0.0.1:18081", header: []string{"X-Forwarded-Proto", "http", "X-Forwarded-For", "203.0.113.5"}, status: 403},
		{name: "a proxy that says only its name", host: "127.0.0.1:18081", header: []string{"Via", "1.1 proxy"}, status: 403},
		{name: "a proxy by RFC 7239", host: "localhost", header: []string{"Forwarded", "for=203.0.113.5"}, status: 403},
		{name: "a proxy that says where from", host: "[::1]", header: []string{"X-Real-IP", "203.0.113.5"}, status: 403},
		{name: "a proxy that says anything", host: "localhost", header: []string{"X-Forwarded-Server", "admin"}, status: 403},
		{name: "a trusted proxy in plain text", edit: beside, host: "localhost", header: []string{"X-Forwarded-Proto", "http"}, status: 403},
		{name: "https by a trusted proxy beside us", edit: beside, host: "127.0.0.1:18081", header: []string{"X-Forwarded-Proto", "https", "X-Forwarded-For", "203.0.113.5"}, cookie: "__Host-deckle", status: 303},
		{name: "another machine that says localhost", host: "localhost", header: []string{"RemoteAddr", "192.0.2.1:4"}, status: 403},
		{name: "no password file", edit: func(c *dashboard.Config) { c.PasswordFile = "" }, host: "localhost", status: 503},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, tt.edit)
			ask := func(method, path, body string, header ...string) *answer {
				r := httptest.NewRequestWithContext(t.Context(), method, "http://"+tt.host+path, strings.NewReader(body))
				r.RemoteAddr = "127.0.0.1:50000"
				header = append(header, tt.header...)
				for i := 0; i < len(header); i += 2 {
					if r.Header.Set(header[i], header[i+1]); header[i] == "RemoteAddr" {
						r.RemoteAddr = header[i+1]
					}
				}
				rec := httptest.NewRecorder()
				w.handler.ServeHTTP(rec, r)
				return &answer{rec.Result(), rec.Body.String()}
			}
			form := url.Values{"name": {"ana"}, "password": {password}}.Encode()
			a := ask("POST", "/login", form, "Content-Type", "application/x-www-form-urlencoded")
			if a.StatusCode != tt.status {
				t.Fatalf("status %d, want %d\n%s", a.StatusCode, tt.status, a.body)
			}
			if tt.cookie == "" {
				if len(a.Cookies()) > 0 || len(parse(t, a).all("form")) > 0 {
					t.Errorf("a cookie, or a form: %v", a.Cookies())
				}
				if proxied := len(tt.header) > 0 && tt.header[0] != "RemoteAddr"; proxied && !strings.Contains(a.body, "Not through this proxy") {
					t.Error("the page does not say what to do about the proxy")
				}
				parse(t, a).check("/login")
				return
			}
			c := a.Cookies()[0]
			if c.Name != tt.cookie || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" || c.Secure != (tt.cookie == "__Host-deckle") {
				t.Errorf("cookie %+v", c)
			}
			cookie := c.Name + "=" + c.Value
			if a := ask("GET", "/", "", "Cookie", cookie); a.StatusCode != http.StatusOK {
				t.Errorf("with the cookie: %d", a.StatusCode)
			}
			other := map[string]string{"deckle-local": "__Host-deckle", "__Host-deckle": "deckle-local"}[c.Name]
			if a := ask("GET", "/", "", "Cookie", other+"="+c.Value); a.StatusCode != http.StatusSeeOther {
				t.Errorf("under the other name: %d", a.StatusCode)
			}
			if a := ask("GET", "/login", "", "Cookie", cookie); a.Header.Get("Location") != "/" {
				t.Errorf("log-in of who is in: %d", a.StatusCode)
			}
			if a := ask("POST", "/logout", "", "Cookie", cookie); a.Header.Get("Location") != "/login" || a.Cookies()[0].MaxAge >= 0 {
				t.Errorf("log-out: %d %v", a.StatusCode, a.Cookies())
			}
			if a := ask("GET", "/", "", "Cookie", cookie); a.StatusCode != http.StatusSeeOther {
				t.Errorf("after the log-out: %d", a.StatusCode)
			}
		})
	}
}

func TestLogInLeadsToPathsOfOurs(t *testing.T) {
	w := newWorld(t, nil)
	for next, want := range map[string]string{
		"/campaigns/autumn?done=saved": "/campaigns/autumn?done=saved", "": "/", "//evil.example": "/", "https://evil.example/": "/",
		"/\\evil.example": "/", "javascript:alert(1)": "/", "/\t/evil.example": "/", "evil": "/", "/a/../..//evil.example": "/a/../..//evil.example",
	} {
		a := w.post("/login", url.Values{"name": {"ana"}, "password": {password}, "next": {next}})
		if got := a.Header.Get("Location"); got != want && !(next == "/a/../..//evil.example" && !strings.HasPrefix(got, "//")) {
			t.Errorf("next=%q leads to %q", next, got)
		}
	}
	if a := w.ask("GET", "/campaigns?of=a", ""); a.Header.Get("Location") != "/login?next=%2Fcampaigns%3Fof%3Da" {
		t.Errorf("to the log-in by %q", a.Header.Get("Location"))
	}
}

// A form that is cut off, or none at all, is refused; nothing is made of its half.
func TestFormsThatCannotBeRead(t *testing.T) {
	w := newWorld(t, nil)
	p := w.logIn("ana")
	const encoded, multipart = "application/x-www-form-urlencoded", "multipart/form-data; boundary=b"
	for _, tt := range []struct{ path, media, body string }{
		{"/login", encoded, "name=ana&password=%"},
		{"/publishers/new", encoded, "id=yuki&name=Yuki&currency=USD%"},
		{"/publishers/new", encoded, "id=yuki&name=%ff&currency=USD"},
		{"/creatives/new", encoded, "id=x&landingUrl=https://ryokan.example/&pages%5B0%5D.headline=%ff"},
		{"/stage/draft", encoded, "pages%5B0%5D.headline=%ff"},
		{"/publishers/new", multipart, "--b\r\nContent-Disposition: form-data; name=\"id\"\r\n\r\nyuki"},
	} {
		a := p.ask("POST", tt.path, tt.body, "Cookie", p.cookie, "Content-Type", tt.media)
		if a.StatusCode != http.StatusBadRequest || !strings.Contains(a.body, "cannot be read") {
			t.Errorf("%s, %s: %d\n%s", tt.path, tt.media, a.StatusCode, a.body)
		}
	}
}

func TestTriesToLogInAreLimited(t *testing.T) {
	w := newWorld(t, nil)
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(t, nil)
		try := func(password string) *answer {
			return w.post("/login", url.Values{"name": {"ana"}, "password": {password}})
		}
		for range 5 {
			a := try("wrong")
			if a.StatusCode != http.StatusForbidden || parse(t, a).value("name") != "ana" {
				t.Fatalf("%d\n%s", a.StatusCode, a.body)
			}
		}
		a := try(password)
		if a.StatusCode != http.StatusTooManyRequests || a.Header.Get("Retry-After") != "60" {
			t.Fatalf("%d, Retry-After %q", a.StatusCode, a.Header.Get("Retry-After"))
		}
		time.Sleep(time.Minute)
		if a := try(password); a.StatusCode != http.StatusSeeOther {
			t.Errorf("after the time that was named: %d", a.StatusCode)
		}
	})
}

// What another site posts in somebody's name changes nothing.
func TestCrossSiteRequestsAreRefused(t *testing.T) {
	w := newWorld(t, nil)
	w.populate()
	p := w.logIn("ana")
	for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}} {
		before := w.catalog.Snapshot().Revision()
		a := w.post("/publishers/new", url.Values{"id": {"x"}, "name": {"X"}, "currency": {"USD"}}, append(header, "Cookie", p.cookie)...)
		if a.StatusCode != http.StatusForbidden || w.catalog.Snapshot().Revision() != before {
			t.Errorf("%v: %d", header, a.StatusCode)
		}
		parse(t, a).check("refusal")
	}
}

// Pages that cannot be shown say why.
func TestFailures(t *testing.T) {
	w := newWorld(t, nil)
	w.populate()
	p := w.logIn("ana")
	for _, path := range []string{"/nothing", "/campaigns/none", "/creatives/none/preview", "/publishers/none/history", "/audit?after=nonsense", "/_deckle/asset/none"} {
		a := p.get(path)
		if a.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, a.StatusCode)
		}
		parse(t, a).check(path)
	}
	if a := p.send("/campaigns/autumn", url.Values{}); a.StatusCode != http.StatusBadRequest {
		t.Errorf("a form without a revision: %d", a.StatusCode)
	}
	if a := p.ask("PUT", "/campaigns/autumn", "", "Cookie", p.cookie); a.StatusCode != http.StatusMethodNotAllowed && a.StatusCode != http.StatusNotFound {
		t.Errorf("PUT: %d", a.StatusCode)
	}
	form := parse(t, p.get("/publishers/yuki")).form()
	form.Set("name", "Another")
	for _, err := range []error{store.ErrUnavailable, store.ErrFull} {
		w.kv.Fail(memory.Fault{Refuse: err})
		a := p.send("/publishers/yuki", form)
		if a.StatusCode != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" {
			t.Errorf("%v: %d", err, a.StatusCode)
		}
		parse(t, a).check("unavailable")
	}
	if w.log.Len() > 0 {
		t.Errorf("the log has errors of ours: %s", w.log)
	}
	has := slices.ContainsFunc(w.handler.Checks(), func(c obsCheck) bool { return c.State != "ok" })
	if has {
		t.Errorf("checks: %+v", w.handler.Checks())
	}
}

// Whatever is posted is answered, and never by an error of ours.
func FuzzForms(f *testing.F) {
	w := newWorld(f, nil)
	w.populate()
	p := w.logIn("ana")
	for _, path := range []string{"/sites/new", "/advertisers/new", "/campaigns/new", "/creatives/new", "/publishers/new"} {
		f.Add(path, parse(f, p.get(path)).form().Encode())
	}
	for _, path := range []string{"/sites/yuki-site", "/campaigns/autumn", "/creatives/ryokan-magazine-001"} {
		f.Add(path, parse(f, p.get(path)).form().Encode())
	}
	f.Add("/creatives/new", "pageCount=12&action=drop+3&pages[3].image.focus=1+NaN&shapes=1x")
	f.Add("/inbox/yuki-site/ryokan-small", "version=1&revision=0&decision=approve")
	f.Fuzz(func(t *testing.T, path, body string) {
		if !strings.HasPrefix(path, "/") || strings.Trim(path, "abcdefghijklmnopqrstuvwxyz0123456789-_/") != "" {
			t.Skip()
		}
		w.t = t
		a := w.ask("POST", path, body, "Content-Type", "application/x-www-form-urlencoded", "Cookie", p.cookie)
		if a.StatusCode == http.StatusInternalServerError {
			t.Fatalf("status 500: %s", w.log)
		}
		if strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") && a.StatusCode != http.StatusTemporaryRedirect && a.StatusCode != http.StatusMovedPermanently {
			parse(t, a).check(path)
		}
	})
}
