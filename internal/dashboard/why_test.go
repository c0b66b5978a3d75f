package dashboard_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"deckle/internal/catalog"
	"deckle/internal/token"
)

// deciding is a world in which everything is open, logged in.
func deciding(t testing.TB) *person {
	w := newWorld(t, nil)
	w.populate()
	w.report(longAgo)
	w.decide()
	return w.logIn("ana")
}

func ask(values ...string) string {
	v := url.Values{}
	for i := 0; i < len(values); i += 2 {
		v.Set(values[i], values[i+1])
	}
	return "/why?" + v.Encode()
}

const travel = "https://site-1.example/travel/an-article?who=me#top"

// An explanation says in words what became of each slot, and why.
func TestWhyThisAd(t *testing.T) {
	t.Parallel()
	p := deciding(t)
	a := p.get(ask("url", travel, "pins", "sidebar-1 = mag-2-2-1\nelsewhere = gone"))
	tr := parse(t, a)
	slots := tr.all("article")
	if len(slots) != 4 {
		t.Fatalf("%d: %d slots\n%s", a.StatusCode, len(slots), text(tr.one("main")))
	}
	for i, want := range [][]string{
		{"sidebar-1 300×600", "mag-2-2-1", "Tea House Uji, Autumn leaves", "The reader has bookmarked it in this slot.", "no budget is touched"},
		{"in-article-1 300×250", "mag-3-2-1", "Kiln & Glaze, Autumn leaves", "It pays 5.764 USD for a thousand impressions.", "The next one, “mag-1-1-2”, sets the price", "up to 20.00 USD", "Floor 2.50 USD Price 5.764 USD"},
		{"footer-1 320×100", "It pays 2.50 USD", "No other advertiser was left to compete with, so that it pays the floor."},
		{"footer-2 320×50", "Empty", "a creative, a campaign and an advertiser are shown once a page"},
	} {
		got := text(slots[i])
		for _, part := range want {
			if !strings.Contains(got, part) {
				t.Errorf("slot %d does not say %q:\n%s", i, part, got)
			}
		}
	}
	main := text(tr.one("main"))
	for _, part := range []string{
		"Attractions 150 by a category rule of the site, 100% sure", "not seen too often by this browser 18",
		"left after bookmarks were honoured 18 → 12", "bid weight α = 0.5", "by the template of site-1",
	} {
		if !strings.Contains(main, part) {
			t.Errorf("the page does not say %q:\n%s", part, main)
		}
	}
	if strings.Contains(main, "who=me") {
		t.Error("the explanation has the query of the address")
	}
	for _, n := range tr.all("table", "class", "cards contenders") {
		if rows := (tree{t, n}).all("tr"); len(rows) < 2 {
			t.Errorf("contenders: %s", text(n))
		}
	}
}

// Slots can be typed in; what stands in the way of an answer is said.
func TestWhyQuestions(t *testing.T) {
	t.Parallel()
	p := deciding(t)
	for name, tt := range map[string]struct {
		ask    string
		status int
		says   string
	}{
		"typed in":             {ask("url", travel, "slots", "box-1 300x250\n\n box-2  160×600 "), http.StatusOK, "2 slots on site-1"},
		"nobody has been here": {ask("url", "https://site-1.example/about"), http.StatusOK, "no category rule of the site fits its path"},
		"stale":                {ask("url", "https://site-1.example/about"), http.StatusOK, "What the page is about is not known"},
		"no slots":             {ask("url", "https://site-1.example/plain"), http.StatusBadRequest, "no magazine slots by its site’s template"},
		"another's":            {ask("url", "https://elsewhere.example/"), http.StatusBadRequest, "of no site of deckle.toml"},
		"not in the catalog":   {ask("url", "https://site-9.example/"), http.StatusBadRequest, "a site that the catalog does not have yet"},
		"no address":           {ask("url", "site-1.example/travel/x"), http.StatusBadRequest, "Paste it with https://"},
		"no size":              {ask("url", travel, "slots", "box-1"), http.StatusBadRequest, `"box-1" is not a slot`},
		"no bookmark":          {ask("url", travel, "pins", "box-1"), http.StatusBadRequest, `"box-1" is not a bookmark`},
		"twice":                {ask("url", travel, "slots", "a 1x1\na 2x2"), http.StatusBadRequest, "is that of another imp"},
		"too large":            {ask("url", travel, "slots", "a 99999x1"), http.StatusBadRequest, "must be 1 to 10000"},
	} {
		a := p.get(tt.ask)
		main := text(parse(t, a).one("main"))
		if a.StatusCode != tt.status || !strings.Contains(main, tt.says) {
			t.Errorf("%s: %d, does not say %q:\n%s", name, a.StatusCode, tt.says, main)
		}
	}
	// A template that is not known: slots are typed in, and the site is that of the host.
	p.parts.SlotsOf = nil
	p.open()
	p = p.logIn("ana")
	if a := p.get(ask("url", travel)); a.StatusCode != http.StatusBadRequest {
		t.Errorf("without a template: %d", a.StatusCode)
	}
	if a := p.get(ask("url", travel, "slots", "a 300x250")); !strings.Contains(text(parse(t, a).one("main")), "1 slot on site-1") {
		t.Errorf("without a template, typed in: %d", a.StatusCode)
	}
	p.parts.Explain = nil
	p.open()
	p = p.logIn("ana")
	if a := p.get(ask("url", travel)); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "Nothing is decided here") {
		t.Errorf("not open: %d", a.StatusCode)
	}
}

// A debug token is shown once, and is one of the site.
func TestDebugTokens(t *testing.T) {
	t.Parallel()
	p := deciding(t)
	keys := &token.Verifier{Keys: func(string) (*token.Ring, bool) {
		ring, ok := p.catalog.Snapshot().KeyRing("umi")
		return token.NewRing(ring.Current.Secret, nil), ok
	}}
	believed := func(text, site string) bool { return keys.Debug(text, site, time.Now()) == nil }

	if n := len(parse(t, p.get("/why")).all("form", "action", "/why/token")); n != 1 {
		t.Errorf("%d forms make a token", n)
	}
	a := p.send("/why/token", url.Values{"site": {"site-2"}})
	shown := text(parse(t, a).one("textarea"))
	if a.StatusCode != http.StatusOK || !believed(shown, "site-2") || believed(shown, "site-1") {
		t.Errorf("%d: token %q", a.StatusCode, shown)
	}
	if example := text(parse(t, a).one("pre")); !strings.Contains(example, shown) || a.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("the example: %s", example)
	}
	if a := p.send("/why/token", url.Values{"site": {"nowhere"}}); a.StatusCode != http.StatusNotFound {
		t.Errorf("of no site: %d", a.StatusCode)
	}

	c := newClient(t, p.world)
	made := decode[struct {
		Token   string
		Expires time.Time
	}](t, c.must(http.StatusOK, "POST", "/debug-token", `{"site":"site-1"}`))
	if left := time.Until(made.Expires); !believed(made.Token, "site-1") || left > token.DebugWindow || left < token.DebugWindow-2*time.Minute {
		t.Errorf("made %+v", made)
	}
	c.must(http.StatusNotFound, "POST", "/debug-token", `{"site":"nowhere"}`)
	c.must(http.StatusBadRequest, "POST", "/debug-token", `{}`)
	c.must(http.StatusBadRequest, "POST", "/debug-token", `{"site":1}`)
}

// A rotation is for who has said that they know what it does, happens once, and is in
// the audit log. One of them harms no token, two of them do.
func TestKeyRotation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.populate()
	p := w.logIn("ana")
	before, _ := w.catalog.Snapshot().KeyRing("yuki")
	old := token.NewRing(before.Current.Secret, nil).MintDebug("yuki-site", time.Now())
	taken := func() bool {
		ring, _ := w.catalog.Snapshot().KeyRing("yuki")
		v := &token.Verifier{Keys: func(string) (*token.Ring, bool) {
			var previous []byte
			if ring.Previous != nil {
				previous = ring.Previous.Secret
			}
			return token.NewRing(ring.Current.Secret, previous), true
		}}
		return v.Debug(old, "yuki-site", time.Now()) == nil
	}

	tr := parse(t, p.get("/publishers/yuki"))
	form := tree{t, tr.one("form", "action", "/publishers/yuki/keys")}
	if _, required := attr(form.one("input", "name", "sure"), "required"); !required {
		t.Error("nobody has to say that they are sure")
	}
	v := url.Values{"revision": {form.value("revision")}}
	if a := p.send("/publishers/yuki/keys", v); a.StatusCode != http.StatusBadRequest {
		t.Errorf("without a word: %d", a.StatusCode)
	}
	v.Set("sure", "yes")
	if a := p.send("/publishers/yuki/keys", v); a.Header.Get("Location") != "/publishers/yuki?done=rotated" || !taken() {
		t.Errorf("a rotation: %d, and the old token is taken: %v", a.StatusCode, taken())
	}
	if a := p.send("/publishers/yuki/keys", v); a.StatusCode != http.StatusConflict || !taken() {
		t.Errorf("the same again: %d, and the old token is taken: %v", a.StatusCode, taken())
	}
	for _, page := range []string{"/audit", "/publishers/yuki/history"} {
		if got := text(parse(t, p.get(page)).one("main")); !strings.Contains(got, "ana rotated the keys of publisher yuki") {
			t.Errorf("%s says %s", page, got)
		}
	}
	if got := text(parse(t, p.get("/publishers/yuki")).one("form", "action", "/publishers/yuki/keys").Parent); !strings.Contains(got, "The present key is 0 minutes old.") {
		t.Errorf("a young key: %s", got)
	}

	c := newClient(t, w)
	tag := c.must(http.StatusOK, "GET", "/publishers/yuki/keys", "").Header.Get("Etag")
	c.must(http.StatusPreconditionRequired, "POST", "/publishers/yuki/keys/rotate", "")
	after := c.must(http.StatusOK, "POST", "/publishers/yuki/keys/rotate", "", "If-Match", tag)
	c.must(http.StatusConflict, "POST", "/publishers/yuki/keys/rotate", "", "If-Match", tag)
	if taken() || after.Header.Get("Etag") == tag || strings.Contains(after.body, "secret") {
		t.Errorf("two rotations: the old token is taken: %v\n%s", taken(), after.body)
	}
	c.must(http.StatusNotFound, "GET", "/publishers/nobody/keys", "")
	c.must(http.StatusNotFound, "POST", "/publishers/nobody/keys/rotate", "", "If-Match", tag)
	if a := w.catalog.Snapshot().Audit(1); a[0].By != "key:tests" {
		t.Errorf("audit log: %+v", a)
	}
}

// Budgets stand under the advertiser who pays, today's and totals first.
func TestBudgetsPage(t *testing.T) {
	t.Parallel()
	p := deciding(t)
	tr := parse(t, p.get("/budgets"))
	if got := texts(tr.all("h2")); !slices.Equal(got, []string{"Kiln & Glaze", "Ryokan Association", "Tea House Uji"}) {
		t.Errorf("advertisers %v", got)
	}
	rows := tree{t, tr.all("tbody")[1]}.all("tr")
	if len(rows) != 5 {
		t.Fatalf("%d lines", len(rows))
	}
	if got := texts(tree{t, rows[0]}.all("td"))[2:]; !slices.Equal(got, []string{"40.00", "14.10", "12.34", "6.00", "21.66", "0.42", "3.82"}) {
		t.Errorf("the advertiser's day: %v", got)
	}
	if got := texts(tree{t, rows[4]}.all("td"))[1]; got != "in total" {
		t.Errorf("the last line is %s", got)
	}
	if about, _ := attr(tree{t, rows[0]}.one("svg", "role", "img"), "aria-label"); about != "14.10 USD spent of 40.00 USD; 4.24 USD more is leased" {
		t.Errorf("the meter: %s", about)
	}
	if got := text(tr.one("main")); !strings.Contains(got, "made smaller") || !strings.Contains(got, "1 more are of campaigns that the catalog does not have") {
		t.Errorf("%s", got)
	}
	if n := len(tree{t, parse(t, p.get("/budgets?past=yes")).all("tbody")[1]}.all("tr")); n != 6 {
		t.Errorf("%d lines with days past", n)
	}
	if n := len(parse(t, p.get("/budgets?of=adv-1")).all("tbody")); n != 1 {
		t.Errorf("%d tables of one advertiser", n)
	}

	// A campaign has its own lines above its form, and the last days as a chart.
	panel := tree{t, parse(t, p.get("/campaigns/camp-1-2")).one("section", "aria-labelledby", "spent")}
	if got := text(panel.one("div", "class", "now")); !strings.Contains(got, "Today 1.37 USD of 3.00 USD") {
		t.Errorf("the panel says %s", got)
	}
	judgeChart(t, tree{t, panel.one("figure")})

	p.parts.Budgets = nil
	p.open()
	p = p.logIn("ana")
	if got := text(parse(t, p.get("/budgets")).one("main")); !strings.Contains(got, "Budgets are not open") {
		t.Errorf("not open: %s", got)
	}
	if got := text(parse(t, p.get("/campaigns/camp-1-2")).one("section", "aria-labelledby", "spent")); !strings.Contains(got, "in UTC") {
		t.Errorf("a campaign without budgets: %s", got)
	}
}

// Forms offer the categories that the catalog knows, also those that the operator has
// brought.
func TestFormsOfferTheCatalogsCategories(t *testing.T) {
	t.Parallel()
	read := func(name, rows string) *catalog.Taxonomy {
		x, err := catalog.LoadTaxonomy(name, strings.NewReader("Unique ID\tParent\tName\tTier 1\n"+rows))
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	w := newWorldOf(t, nil, catalog.Config{
		Content: read("content", "900\t\tTidepools\tTidepools\n"), Products: read("products", "77\t\tLanterns\tLanterns\n"),
	})
	p := w.logIn("ana")
	for path, names := range map[string][]string{"/campaigns/new": {"Tidepools", "Lanterns"}, "/sites/new": {"Lanterns"}} {
		page := text(parse(t, p.get(path)).one("main"))
		for _, name := range names {
			if !strings.Contains(page, name) {
				t.Errorf("%s does not offer %s", path, name)
			}
		}
	}
}
