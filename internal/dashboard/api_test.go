package dashboard_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"image/color"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"deckle/internal/catalog"
	"deckle/internal/dashboard/api"
	"deckle/internal/store"
	"deckle/internal/store/memory"
)

var update = flag.Bool("update", false, "write the golden files anew")

// An apiClient asks the API, and holds every answer against the description.
type apiClient struct {
	*world
	description *description
}

func newClient(t testing.TB, w *world) *apiClient {
	return &apiClient{w, describe(t, w)}
}

func (c *apiClient) do(method, path, body string, header ...string) *answer {
	c.t.Helper()
	a := c.api(method, path, body, header...)
	target, _, _ := strings.Cut("/api/v1"+path, "?")
	if err := c.description.judge(method, target, a); err != nil {
		c.t.Errorf("%s %s: %v\n%s", method, path, err, a.body)
	}
	return a
}

// must is do for what has to have a status; it returns the answer.
func (c *apiClient) must(status int, method, path, body string, header ...string) *answer {
	c.t.Helper()
	a := c.do(method, path, body, header...)
	if a.StatusCode != status {
		c.t.Fatalf("%s %s: status %d, want %d\n%s", method, path, a.StatusCode, status, a.body)
	}
	return a
}

func decode[T any](t testing.TB, a *answer) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		t.Fatalf("%v\n%s", err, a.body)
	}
	return v
}

// A record is what a client reads.
type record struct {
	ID       string          `json:"id"`
	Revision uint64          `json:"revision"`
	Value    json.RawMessage `json:"value"`
}

type page struct {
	Items []record `json:"items"`
	Next  string   `json:"next"`
}

// Every field that an entity has, so that every field is described.
var everything = []struct{ collection, id, body string }{
	{"publishers", "yuki", `{"id":"yuki","name":"Yuki Media","currency":"USD"}`},
	{"sites", "yuki-site", `{"id":"yuki-site","publisher":"yuki","status":"warmup","freshnessHours":24,"bidWeight":0.75,
		"floors":{"site":1500000,"categories":{"653":2000000},"slots":{"sidebar-1":2500000}},
		"blockedDomains":["casino.example"],"blockedCategories":["1002"],
		"categoryRules":[{"path":"/travel/*","categories":["653"]}],"autoApprove":false}`},
	{"advertisers", "ryokan", `{"id":"ryokan","publisher":"yuki","name":"Ryokan Association","status":"active","dailyBudget":250000000,"timeZone":"Asia/Tokyo","currency":"USD"}`},
	{"campaigns", "autumn", `{"id":"autumn","advertiser":"ryokan","name":"Autumn leaves","status":"active","categories":["653"],"productCategory":"1551",
		"maxCpm":4500000,"dailyBudget":120000000,"totalBudget":3000000000,"start":"2026-11-01","end":"2027-02-28",
		"sites":["yuki-site"],"frequencyCap":{"count":3,"per":"day"},"dogEar":true,"landingUrl":"https://ryokan.example/autumn"}`},
	{"creatives", "maples", `{"id":"maples","campaign":"autumn","name":"Red maples","status":"active","version":7,
		"pages":[{"headline":"Nights under red maples","sub":"Eleven houses","body":"Hot springs.","caption":"Kyoto","tag":"Travel",
			"image":{"src":"ASSET","alt":"A stream","focus":{"x":0.5,"y":0.25}},
			"background":"#ffffff","ink":"#222222","accent":"#993322","ctaLabel":"See","layout":"split"}],
		"shapes":[{"w":300,"h":250}],"landingUrl":"https://ryokan.example/autumn"}`},
}

// createAll makes one of each.
func (c *apiClient) createAll() {
	c.t.Helper()
	asset := decode[catalog.Asset](c.t, c.upload(http.StatusCreated, picture(color.RGBA{1, 2, 3, 255}, color.RGBA{9, 9, 9, 255})))
	for _, e := range everything {
		a := c.must(http.StatusCreated, "POST", "/"+e.collection, strings.ReplaceAll(e.body, "ASSET", asset.Src))
		if got := a.Header.Get("Location"); got != "/api/v1/"+e.collection+"/"+e.id {
			c.t.Errorf("Location %q", got)
		}
	}
}

func (c *apiClient) upload(status int, data []byte) *answer {
	c.t.Helper()
	a := c.ask("POST", "/api/v1/assets", string(data), "Authorization", "Bearer "+apiKey, "Content-Type", "image/png")
	if err := c.description.judge("POST", "/api/v1/assets", a); err != nil || a.StatusCode != status {
		c.t.Fatalf("upload: %d, %v\n%s", a.StatusCode, err, a.body)
	}
	return a
}

// What is written is what is read, lists have it, and everything in it is described.
func TestEntitiesByAPI(t *testing.T) {
	c := newClient(t, newWorld(t, nil))
	c.createAll()
	for _, e := range everything {
		path := "/" + e.collection + "/" + e.id
		got := c.must(http.StatusOK, "GET", path, "")
		r := decode[record](t, got)
		if tag := got.Header.Get("Etag"); tag != fmt.Sprintf("%q", fmt.Sprint(r.Revision)) {
			t.Errorf("%s: ETag %s of revision %d", path, tag, r.Revision)
		}
		var sent, read map[string]any
		if err := json.Unmarshal([]byte(e.body), &sent); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(r.Value, &read); err != nil {
			t.Fatal(err)
		}
		for name, v := range sent {
			if name != "version" && name != "pages" && !reflect.DeepEqual(v, read[name]) && v != false {
				t.Errorf("%s: %s is %v, was sent as %v", path, name, read[name], v)
			}
		}
		c.must(http.StatusNotModified, "GET", path, "", "If-None-Match", `"0", W/`+got.Header.Get("Etag"))
		if p := decode[page](t, c.must(http.StatusOK, "GET", "/"+e.collection, "")); len(p.Items) != 1 || p.Items[0].Revision != r.Revision {
			t.Errorf("list of %s: %+v", e.collection, p)
		}
		c.must(http.StatusOK, "GET", path+"/history", "")

		// The same again, by PUT: nothing is written.
		again := c.must(http.StatusOK, "PUT", path, string(r.Value), "If-Match", got.Header.Get("Etag"))
		if diff := cmp.Diff(r, decode[record](t, again)); diff != "" {
			t.Errorf("%s: PUT of what was read:\n%s", path, diff)
		}
	}
	for i := len(everything) - 1; i >= 0; i-- {
		path := "/" + everything[i].collection + "/" + everything[i].id
		tag := c.must(http.StatusOK, "GET", path, "").Header.Get("Etag")
		c.must(http.StatusNoContent, "DELETE", path, "", "If-Match", tag)
		c.must(http.StatusNotFound, "GET", path, "")
	}
	events := decode[struct{ Items []api.Event }](t, c.must(http.StatusOK, "GET", "/audit?limit=200", ""))
	if len(events.Items) != 10 {
		t.Errorf("%d entries in the audit log, want 10", len(events.Items))
	}
	for _, e := range events.Items {
		if e.By != "key:tests" {
			t.Errorf("%s by %q", e.Key, e.By)
		}
	}
}

func TestLostRaceShowsWhatIsThere(t *testing.T) {
	c := newClient(t, newWorld(t, nil))
	created := c.must(http.StatusCreated, "POST", "/publishers", `{"id":"yuki","name":"One","currency":"USD"}`)
	first := created.Header.Get("Etag")
	second := c.must(http.StatusOK, "PUT", "/publishers/yuki", `{"id":"yuki","name":"Two","currency":"USD"}`, "If-Match", first).Header.Get("Etag")

	for name, a := range map[string]*answer{
		"put":    c.must(http.StatusConflict, "PUT", "/publishers/yuki", `{"id":"yuki","name":"Three","currency":"USD"}`, "If-Match", first),
		"delete": c.must(http.StatusConflict, "DELETE", "/publishers/yuki", "", "If-Match", first),
		"create": c.must(http.StatusConflict, "POST", "/publishers", `{"id":"yuki","name":"Three","currency":"USD"}`),
		"new":    c.must(http.StatusConflict, "PUT", "/publishers/yuki", `{"id":"yuki","name":"Three","currency":"USD"}`, "If-None-Match", "*"),
	} {
		p := decode[struct {
			Revision uint64
			Current  record
		}](t, a)
		if want := fmt.Sprintf("%q", fmt.Sprint(p.Revision)); want != second || !strings.Contains(string(p.Current.Value), `"Two"`) {
			t.Errorf("%s: %s", name, a.body)
		}
	}
	c.must(http.StatusPreconditionRequired, "PUT", "/publishers/yuki", `{"id":"yuki","name":"Three","currency":"USD"}`)
	c.must(http.StatusPreconditionRequired, "DELETE", "/publishers/yuki", "")
	c.must(http.StatusOK, "PUT", "/publishers/yuki", `{"id":"yuki","name":"Three","currency":"USD"}`, "If-Match", "*")
	c.must(http.StatusNotFound, "PUT", "/publishers/none", `{"id":"none","name":"Three","currency":"USD"}`, "If-Match", "*")
	c.must(http.StatusCreated, "PUT", "/publishers/kaze", `{"id":"kaze","name":"Kaze","currency":"JPY"}`, "If-None-Match", "*")

	// A tombstone keeps its id: who wants it back says that they have seen it.
	c.must(http.StatusNoContent, "DELETE", "/publishers/kaze", "", "If-Match", "*")
	p := decode[api.Problem](t, c.must(http.StatusConflict, "POST", "/publishers", `{"id":"kaze","name":"Kaze","currency":"JPY"}`))
	if !strings.Contains(string(p.Current), `"deleted"`) {
		t.Errorf("a tombstone: %s", p.Current)
	}
	c.must(http.StatusOK, "PUT", "/publishers/kaze", `{"id":"kaze","name":"Kaze","currency":"JPY"}`, "If-Match", fmt.Sprintf("%q", fmt.Sprint(p.Revision)))
}

func TestPages(t *testing.T) {
	c := newClient(t, newWorld(t, nil))
	c.put(&catalog.Publisher{ID: "yuki", Name: "Yuki", Currency: "USD"}, &catalog.Publisher{ID: "kaze", Name: "Kaze", Currency: "USD"})
	for i := range 7 {
		p := map[bool]string{true: "yuki", false: "kaze"}[i%2 == 0]
		c.put(&catalog.Advertiser{ID: fmt.Sprintf("a%d", i), Publisher: p, Name: "A", DailyBudget: 1e6, TimeZone: "UTC"})
	}
	walk := func(path string) (ids []string) {
		for cursor := ""; ; {
			p := decode[page](t, c.must(http.StatusOK, "GET", path+"&cursor="+cursor, ""))
			for _, r := range p.Items {
				ids = append(ids, r.ID)
			}
			if cursor = p.Next; cursor == "" {
				return ids
			}
		}
	}
	if got := walk("/advertisers?limit=2"); fmt.Sprint(got) != "[a0 a1 a2 a3 a4 a5 a6]" {
		t.Errorf("all: %v", got)
	}
	if got := walk("/advertisers?limit=1&publisher=kaze"); fmt.Sprint(got) != "[a1 a3 a5]" {
		t.Errorf("those of one publisher: %v", got)
	}
	if got := walk("/advertisers?publisher=nobody"); got != nil {
		t.Errorf("those of nobody: %v", got)
	}

	// New entries do not move the cursor of the audit log.
	first := decode[struct {
		Items []api.Event
		Next  string
	}](t, c.must(http.StatusOK, "GET", "/audit?limit=3", ""))
	c.put(&catalog.Publisher{ID: "zaze", Name: "Zaze", Currency: "USD"})
	second := decode[struct{ Items []api.Event }](t, c.must(http.StatusOK, "GET", "/audit?limit=3&cursor="+first.Next, ""))
	seen := map[string]bool{}
	for _, e := range append(first.Items, second.Items...) {
		if seen[e.Key] {
			t.Errorf("%s is on two pages", e.Key)
		}
		seen[e.Key] = true
	}
	if len(seen) != 6 || seen["publisher/zaze"] {
		t.Errorf("pages: %v", seen)
	}
}

func TestApprovalsByAPI(t *testing.T) {
	w := newWorld(t, nil)
	w.populate()
	c := newClient(t, w)
	queue := func(query string) []api.Waiting {
		return decode[struct{ Items []api.Waiting }](t, c.must(http.StatusOK, "GET", "/approvals"+query, "")).Items
	}
	all := queue("")
	if len(all) != 4 || len(queue("?site=yuki-site")) != 2 || len(queue("?limit=3")) != 3 {
		t.Fatalf("queue: %+v", all)
	}
	first := decode[struct {
		Items []api.Waiting
		Next  string
	}](t, c.must(http.StatusOK, "GET", "/approvals?limit=1", ""))

	x := all[0]
	path := "/approvals/" + x.Site + "/" + x.Creative
	before := c.must(http.StatusOK, "GET", path, "")
	if tag := before.Header.Get("Etag"); tag != fmt.Sprintf("%q", fmt.Sprint(x.Revision)) {
		t.Errorf("ETag %s, revision %d", tag, x.Revision)
	}
	approve := fmt.Sprintf(`{"version":%d,"state":"approved"}`, x.Version)
	after := c.must(http.StatusOK, "PUT", path, approve, "If-Match", before.Header.Get("Etag"))
	c.must(http.StatusConflict, "PUT", path, fmt.Sprintf(`{"version":%d,"state":"rejected"}`, x.Version), "If-Match", before.Header.Get("Etag"))
	if rest := queue("?cursor=" + first.Next); len(rest) < 2 || rest[0].Site+rest[0].Creative == x.Site+x.Creative {
		t.Errorf("the next page, when the first is decided: %+v", rest)
	}
	for _, y := range queue("") {
		if y.Site == x.Site && y.Creative == x.Creative {
			t.Error("what was approved waits")
		}
	}
	c.must(http.StatusOK, "PUT", path, fmt.Sprintf(`{"version":%d,"state":"rejected"}`, x.Version), "If-Match", after.Header.Get("Etag"))
	c.must(http.StatusNotFound, "GET", "/approvals/yuki-site/none", "")
	for body, field := range map[string]string{
		`{}`:                                  "version state",
		`{"version":1,"state":"pending"}`:     "state",
		`{"version":"1","state":"approved"}`:  "version",
		`{"version":1,"status":"approved"}`:   "status",
		`{"version":-1,"state":"approved"}`:   "version",
		`{"version":1,"state":"approved"} {}`: "",
	} {
		var fields []string
		p := decode[api.Problem](t, c.must(http.StatusBadRequest, "PUT", path, body, "If-Match", `"1"`))
		for _, e := range p.Errors {
			fields = append(fields, e.Field)
		}
		if got := strings.Join(fields, " "); got != field {
			t.Errorf("%s: fields %q, want %q", body, got, field)
		}
	}
}

func TestDocumentByAPI(t *testing.T) {
	w := newWorld(t, nil)
	c := newClient(t, w)
	doc := `{"publishers":[{"id":"yuki","name":"Yuki","currency":"USD"}],"sites":[{"id":"yuki-site","publisher":"yuki"}]}`
	diff := c.must(http.StatusOK, "POST", "/document/diff", doc)
	if d := decode[api.Diff](t, diff); len(d.Steps) != 2 || d.Done != 0 {
		t.Fatalf("diff: %+v", d)
	}
	c.must(http.StatusPreconditionRequired, "POST", "/document/apply", doc)
	c.put(&catalog.Publisher{ID: "yuki", Name: "Another", Currency: "USD"}) // meanwhile
	lost := c.must(http.StatusConflict, "POST", "/document/apply", doc, "If-Match", diff.Header.Get("Etag"))
	if current := decode[struct{ Current api.Diff }](t, lost).Current; len(current.Steps) != 2 || current.Steps[0].What != "update" {
		t.Errorf("what it would do by now: %s", lost.body)
	}
	applied := c.must(http.StatusOK, "POST", "/document/apply", doc, "If-Match", lost.Header.Get("Etag"))
	if d := decode[api.Diff](t, applied); d.Done != 2 {
		t.Errorf("applied: %+v", d)
	}
	again := c.must(http.StatusOK, "POST", "/document/diff", c.must(http.StatusOK, "GET", "/document", "").body)
	if d := decode[api.Diff](t, again); len(d.Steps) != 0 {
		t.Errorf("an export would change: %s", again.body)
	}

	// A store that fails in the middle: it says how far it came, and the rest can be done.
	doc = `{"publishers":[{"id":"a","name":"A","currency":"USD"}],"advertisers":[{"id":"b","publisher":"a","name":"B","dailyBudget":1000000,"timeZone":"UTC"}]}`
	tag := c.must(http.StatusOK, "POST", "/document/diff", doc).Header.Get("Etag")
	w.kv.Fail(memory.Fault{}, memory.Fault{Refuse: store.ErrFull})
	half := c.must(http.StatusServiceUnavailable, "POST", "/document/apply", doc, "If-Match", tag)
	if p := decode[api.Problem](t, half); p.Done == nil || *p.Done != 1 || half.Header.Get("Retry-After") == "" {
		t.Errorf("half done: %s", half.body)
	}
}

func TestAssetsByAPI(t *testing.T) {
	c := newClient(t, newWorld(t, nil))
	data := picture(color.RGBA{200, 200, 200, 255}, color.RGBA{9, 90, 9, 255})
	created := c.upload(http.StatusCreated, data)
	got := c.ask("GET", created.Header.Get("Location"), "", "Authorization", "Bearer "+apiKey)
	if got.body != string(data) || got.Header.Get("Content-Type") != "image/png" || !strings.Contains(got.Header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("%d bytes, %v", len(got.body), got.Header)
	}
	c.upload(http.StatusBadRequest, []byte("GIF89a, or so it says"))
	c.upload(http.StatusRequestEntityTooLarge, make([]byte, catalog.MaxAssetBytes+1))
	c.must(http.StatusNotFound, "GET", "/assets/"+strings.Repeat("a", 64), "")
	c.must(http.StatusUnsupportedMediaType, "POST", "/assets", "{}")
}

// Every problem, as a client sees it.
func TestProblems(t *testing.T) {
	for _, tt := range []struct {
		name         string
		method, path string
		body         string
		header       []string
		edit         func(*world)
	}{
		{name: "no key", method: "GET", path: "/publishers", header: []string{"Authorization", ""}},
		{name: "wrong key", method: "GET", path: "/publishers", header: []string{"Authorization", "Bearer wrong"}},
		{name: "basic", method: "GET", path: "/publishers", header: []string{"Authorization", "Basic dGVzdHM6"}},
		{name: "no such path", method: "GET", path: "/publisher"},
		{name: "no such entity", method: "GET", path: "/publishers/none"},
		{name: "method", method: "PATCH", path: "/publishers/none"},
		{name: "media type", method: "POST", path: "/publishers", body: "id=yuki", header: []string{"Content-Type", "application/x-www-form-urlencoded"}},
		{name: "too large", method: "POST", path: "/publishers", body: `{"id":"` + strings.Repeat("x", catalog.MaxEntityBytes) + `"}`},
		{name: "not json", method: "POST", path: "/publishers", body: `{"id":`},
		{name: "everything wrong", method: "POST", path: "/campaigns", body: `{"id":"a b","advertiser":"nobody","categories":[],"maxCpm":-1,"dailyBudget":"much","start":"soon","landingUrl":"javascript:alert(1)","colour":"red"}`},
		{name: "values wrong", method: "POST", path: "/campaigns", body: `{"id":"a b","advertiser":"nobody","categories":[],"maxCpm":-1,"dailyBudget":1,"start":"soon","landingUrl":"javascript:alert(1)"}`},
		{name: "query", method: "GET", path: "/publishers?limit=201&limit=2&size=3"},
		{name: "limit", method: "GET", path: "/publishers?limit=201"},
		{name: "cursor", method: "GET", path: "/publishers?cursor=***"},
		{name: "id of another", method: "PUT", path: "/publishers/a", body: `{"id":"b","name":"B","currency":"USD"}`, header: []string{"If-Match", `"1"`}},
		{name: "weak match", method: "PUT", path: "/publishers/a", body: `{"id":"a","name":"A","currency":"USD"}`, header: []string{"If-Match", `W/"1"`}},
		{name: "no match", method: "PUT", path: "/publishers/a", body: `{"id":"a","name":"A","currency":"USD"}`},
		{name: "lost race", method: "PUT", path: "/publishers/yuki", body: `{"id":"yuki","name":"Mine","currency":"USD"}`, header: []string{"If-Match", `"9"`}, edit: func(w *world) {
			w.put(&catalog.Publisher{ID: "yuki", Name: "Theirs", Currency: "USD"})
		}},
		{name: "has children", method: "DELETE", path: "/publishers/yuki", header: []string{"If-Match", `*`}, edit: func(w *world) {
			w.put(&catalog.Publisher{ID: "yuki", Name: "Yuki", Currency: "USD"}, &catalog.Site{ID: "yuki-site", Publisher: "yuki"})
		}},
		{name: "from another site", method: "POST", path: "/publishers", body: `{}`, header: []string{"Sec-Fetch-Site", "cross-site"}},
		{name: "store unavailable", method: "POST", path: "/publishers", body: `{"id":"a","name":"A","currency":"USD"}`, edit: func(w *world) {
			w.kv.Fail(memory.Fault{Refuse: store.ErrUnavailable})
		}},
		{name: "store full", method: "POST", path: "/publishers", body: `{"id":"a","name":"A","currency":"USD"}`, edit: func(w *world) {
			w.kv.Fail(memory.Fault{Refuse: store.ErrFull})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, nil)
			if tt.edit != nil {
				tt.edit(w)
			}
			header := append([]string{"Authorization", "Bearer " + apiKey, "Content-Type", "application/json"}, tt.header...)
			merged := http.Header{}
			var flat []string
			for i := 0; i < len(header); i += 2 {
				merged.Set(header[i], header[i+1])
			}
			for k, v := range merged {
				if v[0] != "" {
					flat = append(flat, k, v[0])
				}
			}
			a := w.ask(tt.method, "/api/v1"+tt.path, tt.body, flat...)
			path, _, _ := strings.Cut("/api/v1"+tt.path, "?")
			if err := describe(t, w).judge(tt.method, path, a); err != nil {
				t.Error(err)
			}
			golden(t, filepath.Join("testdata", "problems", strings.ReplaceAll(tt.name, " ", "_")+".txt"), transcript(a))
		})
	}
}

// What a stranger sends comes back in bounded parts only.
func TestProblemsAreShort(t *testing.T) {
	w := newWorld(t, nil)
	deep := strings.Repeat("[", 9000)
	long := strings.Repeat("é", 5000)
	for name, a := range map[string]*answer{
		"deep":                w.api("POST", "/publishers", `{"colour":`+deep),
		"deep in a document":  w.api("POST", "/document/diff", `{"publishers":[{"colour":`+deep),
		"deep in a decision":  w.api("PUT", "/approvals/yuki-site/a", `{"version":`+deep, "If-Match", `"0"`),
		"a long name":         w.api("POST", "/publishers", `{"`+long+`":1}`),
		"a long name, twice":  w.api("POST", "/publishers", `{"`+long+`":1,"`+long+`":2}`),
		"a long parameter":    w.api("GET", "/publishers?"+long+"=1", ""),
		"not UTF-8":           w.api("GET", "/publishers?%ff=1", ""),
		"a long publisher id": w.api("POST", "/publishers", `{"id":"`+long+`","name":"Yuki","currency":"USD"}`),
	} {
		if a.StatusCode != http.StatusBadRequest || len(a.body) > 2<<10 || !utf8.ValidString(a.body) {
			t.Errorf("%s: status %d, %d bytes: %.300s", name, a.StatusCode, len(a.body), a.body)
		}
	}
}

// transcript is an answer as a reviewer reads it; times are not compared.
func transcript(a *answer) string {
	var b strings.Builder
	fmt.Fprintln(&b, a.StatusCode, http.StatusText(a.StatusCode))
	for _, k := range []string{"Allow", "Accept", "Cache-Control", "Content-Type", "Etag", "Retry-After", "Www-Authenticate"} {
		if v := a.Header.Get(k); v != "" {
			fmt.Fprintf(&b, "%s: %s\n", k, v)
		}
	}
	fmt.Fprintln(&b)
	for line := range strings.Lines(a.body) {
		if name, _, ok := strings.Cut(line, ":"); ok && (strings.Contains(name, `"created"`) || strings.Contains(name, `"updated"`)) {
			line = name + ": …\n"
		}
		b.WriteString(line)
	}
	return b.String()
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update writes it anew):\n%s", path, diff)
	}
}

// A POST with an Idempotency-Key is done once.
func TestIdempotency(t *testing.T) {
	c := newClient(t, newWorld(t, nil))
	const body = `{"id":"yuki","name":"Yuki","currency":"USD"}`
	first := c.must(http.StatusCreated, "POST", "/publishers", body, "Idempotency-Key", "k1")
	r := decode[record](t, first)
	c.must(http.StatusNoContent, "DELETE", "/publishers/yuki", "", "If-Match", first.Header.Get("Etag"))
	again := c.must(http.StatusCreated, "POST", "/publishers", body, "Idempotency-Key", "k1")
	if again.body != first.body || again.Header.Get("Etag") != first.Header.Get("Etag") || again.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("again: %v\n%s", again.Header, again.body)
	}
	c.must(http.StatusNotFound, "GET", "/publishers/"+r.ID, "") // it was not done again

	c.must(http.StatusUnprocessableEntity, "POST", "/publishers", `{"id":"kaze","name":"Kaze","currency":"USD"}`, "Idempotency-Key", "k1")
	c.must(http.StatusBadRequest, "POST", "/publishers", body, "Idempotency-Key", strings.Repeat("k", 256))
	other := c.ask("POST", "/api/v1/publishers", `{"id":"kaze","name":"Kaze","currency":"USD"}`, "Authorization", "Bearer another key", "Content-Type", "application/json", "Idempotency-Key", "k1")
	if other.StatusCode != http.StatusCreated || other.Header.Get("Idempotency-Replayed") != "" {
		t.Errorf("the key of another client: %d %s", other.StatusCode, other.body)
	}

	// "Ask again" is not an answer to keep; what is wrong with the request is.
	c.kv.Fail(memory.Fault{Refuse: store.ErrUnavailable})
	c.must(http.StatusServiceUnavailable, "POST", "/publishers", `{"id":"z","name":"Z","currency":"USD"}`, "Idempotency-Key", "k2")
	c.must(http.StatusCreated, "POST", "/publishers", `{"id":"z","name":"Z","currency":"USD"}`, "Idempotency-Key", "k2")
	c.must(http.StatusBadRequest, "POST", "/publishers", `{}`, "Idempotency-Key", "k3")
	if a := c.must(http.StatusBadRequest, "POST", "/publishers", `{}`, "Idempotency-Key", "k3"); a.Header.Get("Idempotency-Replayed") != "true" {
		t.Error("a refusal was made again")
	}
}

// A document that was refused for what its sender had not seen may be sent again with
// the same key; once it is applied, the key is of that request with that tag.
func TestIdempotencyOfADocument(t *testing.T) {
	c := newClient(t, newWorld(t, nil))
	const body = `{"publishers":[{"id":"yuki","name":"Yuki","currency":"USD"}]}`
	tag := c.must(http.StatusOK, "POST", "/document/diff", body).Header.Get("Etag")
	c.must(http.StatusPreconditionRequired, "POST", "/document/apply", body, "Idempotency-Key", "k")
	c.must(http.StatusConflict, "POST", "/document/apply", body, "Idempotency-Key", "k", "If-Match", `"stale"`)
	first := c.must(http.StatusOK, "POST", "/document/apply", body, "Idempotency-Key", "k", "If-Match", tag)
	if first.Header.Get("Idempotency-Replayed") != "" {
		t.Error("the answer to another tag was replayed")
	}
	again := c.must(http.StatusOK, "POST", "/document/apply", body, "Idempotency-Key", "k", "If-Match", tag)
	if again.Header.Get("Idempotency-Replayed") != "true" || again.body != first.body {
		t.Errorf("again: %v\n%s", again.Header, again.body)
	}
	c.must(http.StatusUnprocessableEntity, "POST", "/document/apply", body, "Idempotency-Key", "k", "If-Match", `"stale"`)
	c.must(http.StatusUnprocessableEntity, "POST", "/document/diff", body, "Idempotency-Key", "k", "If-Match", tag)
}

// The second request comes while the first is at work; a day later the key is free.
func TestIdempotencyInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.kv.Fail(memory.Fault{Delay: 5 * time.Second})
		const body = `{"id":"yuki","name":"Yuki","currency":"USD"}`
		first := make(chan *answer, 1)
		go func() { first <- w.api("POST", "/publishers", body, "Idempotency-Key", "k") }()
		synctest.Wait()
		if a := w.api("POST", "/publishers", body, "Idempotency-Key", "k"); a.StatusCode != http.StatusConflict || a.Header.Get("Retry-After") != "1" {
			t.Errorf("meanwhile: %d %s", a.StatusCode, a.body)
		}
		if a := <-first; a.StatusCode != http.StatusCreated {
			t.Errorf("first: %d %s", a.StatusCode, a.body)
		}
		time.Sleep(24*time.Hour - time.Minute)
		if a := w.api("POST", "/publishers", body, "Idempotency-Key", "k"); a.Header.Get("Idempotency-Replayed") != "true" {
			t.Error("forgotten within the day")
		}
		time.Sleep(2 * time.Minute)
		if a := w.api("POST", "/publishers", body, "Idempotency-Key", "k"); a.Header.Get("Idempotency-Replayed") != "" {
			t.Error("remembered after a day")
		}
	})
}

func TestRequestsOfAKeyAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		ok := 0
		var last *answer
		for range 300 {
			if last = w.api("GET", "/publishers", ""); last.StatusCode == http.StatusOK {
				ok++
			}
		}
		if ok != 200 || last.StatusCode != http.StatusTooManyRequests || last.Header.Get("Retry-After") != "1" {
			t.Errorf("%d of 300 at once; the last: %d, Retry-After %q", ok, last.StatusCode, last.Header.Get("Retry-After"))
		}
		if a := w.ask("GET", "/api/v1/publishers", "", "Authorization", "Bearer another key"); a.StatusCode != http.StatusOK {
			t.Errorf("another key: %d", a.StatusCode)
		}
		time.Sleep(time.Second)
		if a := w.api("GET", "/publishers", ""); a.StatusCode != http.StatusOK {
			t.Errorf("a second later: %d", a.StatusCode)
		}
	})
}

// Every route is described, and everything that is described is a route.
func TestDescriptionIsOfWhatThereIs(t *testing.T) {
	w := newWorld(t, nil)
	d := describe(t, w)
	if d.root["openapi"] != "3.1.0" {
		t.Errorf("openapi %v", d.root["openapi"])
	}
	ids := map[string]bool{}
	for path, methods := range d.at("paths").(map[string]any) {
		target := strings.TrimPrefix(strings.NewReplacer("{id}", "x", "{site}", "x", "{creative}", "x").Replace(path), "/api/v1")
		for method, op := range methods.(map[string]any) {
			id, _ := op.(map[string]any)["operationId"].(string)
			if id == "" || ids[id] {
				t.Errorf("%s %s: operationId %q", method, path, id)
			}
			ids[id] = true
			a := w.api(strings.ToUpper(method), target, "")
			if a.StatusCode == http.StatusMethodNotAllowed || a.StatusCode == http.StatusNotFound && strings.Contains(a.body, "no such path") {
				t.Errorf("%s %s is described, and answers %d", method, path, a.StatusCode)
			}
		}
		for _, method := range []string{"GET", "POST", "PUT", "DELETE", "PATCH"} {
			_, described := methods.(map[string]any)[strings.ToLower(method)]
			if a := w.api(method, target, ""); !described && a.StatusCode != http.StatusMethodNotAllowed {
				t.Errorf("%s %s is not described, and answers %d", method, path, a.StatusCode)
			}
		}
	}
	if len(ids) != 45 {
		t.Errorf("%d operations", len(ids))
	}
}

// Whatever comes is answered as described, and never by an error of ours.
func FuzzAPI(f *testing.F) {
	for _, e := range everything {
		f.Add("POST", "/"+e.collection, e.body)
		f.Add("PUT", "/"+e.collection+"/"+e.id, e.body)
	}
	f.Add("POST", "/document/diff", `{"publishers":[{"id":"a","name":"A","currency":"USD"}],"delete":["publisher/a"],"approvals":[{"site":"a","creative":"b","state":"approved"}]}`)
	f.Add("POST", "/assets", "\x89PNG\r\n\x1a\n")
	f.Add("PUT", "/approvals/a/b", `{"version":1,"state":"approved"}`)
	w := newWorld(f, nil)
	d := describe(f, w)
	f.Fuzz(func(t *testing.T, method, path, body string) {
		if method != "POST" && method != "PUT" || !strings.HasPrefix(path, "/") || strings.Trim(path, "abcdefghijklmnopqrstuvwxyz0123456789-_/") != "" {
			t.Skip()
		}
		w.t = t
		a := w.ask(method, "/api/v1"+path, body, "Authorization", "Bearer "+apiKey, "Content-Type", "application/json", "If-Match", `"1"`)
		if a.StatusCode == http.StatusMovedPermanently || a.StatusCode == http.StatusTemporaryRedirect {
			t.Skip()
		}
		if a.StatusCode == http.StatusInternalServerError {
			t.Errorf("status 500: %s", w.log)
		}
		if err := d.judge(method, "/api/v1"+path, a); err != nil {
			t.Errorf("%s %s: %v\n%s", method, path, err, a.body)
		}
	})
}
