package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/prometheus/client_golang/prometheus"

	"deckle"
	"deckle/internal/catalog"
	"deckle/internal/publicapi"
	"deckle/internal/serve"
	"deckle/internal/token"
)

// Everything that is no batch gets its status and a reason, and nothing happens.
func TestRefusals(t *testing.T) {
	valid := ask(sidebar)
	without := func(member string) string { return strings.Replace(valid, `"`+member+`"`, `"x"`, 1) }
	with := func(b batch) string { return ask(sidebar, b) }
	long := strings.Repeat("x", 65)
	many := func(n int, each func(i int) string) (out []string) {
		for i := range n {
			out = append(out, each(i))
		}
		return out
	}
	seen := map[string]any{}
	for i := range 501 {
		seen[fmt.Sprint("creative-", i)] = map[string]int{"h": 1}
	}
	w := newWorld(t)
	w.put(&catalog.Site{ID: "other", Publisher: "yuki"})
	before := w.Snapshot().Revision()
	for _, test := range []struct {
		name, body string
		status     int
		reason     string
		field      string
		header     []string
	}{
		{name: "empty", body: "", status: 400, reason: "bad_json"},
		{name: "no JSON", body: "{", status: 400, reason: "bad_json"},
		{name: "not UTF-8", body: "{\"pub\":\"\xff\"}", status: 400, reason: "bad_json", field: "pub"},
		{name: "a list", body: "[]", status: 400, reason: "wrong_field"},
		{name: "a name twice", body: `{"pub":"a","pub":"b"}`, status: 400, reason: "bad_json", field: "pub"},
		{name: "two values", body: valid + valid, status: 400, reason: "bad_json"},
		{name: "no pub", body: without("pub"), status: 400, reason: "missing_field", field: "pub"},
		{name: "no url", body: without("url"), status: 400, reason: "missing_field", field: "url"},
		{name: "no imp", body: without("imp"), status: 400, reason: "missing_field", field: "imp"},
		{name: "no id", body: without("id"), status: 400, reason: "missing_field", field: "imp[0].id"},
		{name: "no width", body: without("w"), status: 400, reason: "missing_field", field: "imp[0].w"},
		{name: "no height", body: without("h"), status: 400, reason: "missing_field", field: "imp[0].h"},
		{name: "pub is a number", body: with(batch{"pub": 1}), status: 400, reason: "wrong_field", field: "pub"},
		{name: "pub is null", body: with(batch{"pub": nil}), status: 400, reason: "missing_field", field: "pub"},
		{name: "no imps", body: with(batch{"imp": []any{}}), status: 400, reason: "missing_field", field: "imp"},
		{name: "41 imps", body: ask(imps(many(41, func(i int) string { return fmt.Sprintf("s%d 1x1", i) })...)), status: 400, reason: "wrong_field", field: "imp"},
		{name: "an id too long", body: ask(imps(long + " 1x1")), status: 400, reason: "wrong_field", field: "imp[0].id"},
		{name: "an id that is none", body: ask(imps("a|b 1x1")), status: 400, reason: "wrong_field", field: "imp[0].id"},
		{name: "an id twice", body: ask(imps("a 1x1", "b 1x1", "a 2x2")), status: 400, reason: "wrong_field", field: "imp[2].id"},
		{name: "below nothing", body: ask(imps("a -1x1")), status: 400, reason: "wrong_field", field: "imp[0].w"},
		{name: "too high", body: ask(imps("a 1x10001")), status: 400, reason: "wrong_field", field: "imp[0].h"},
		{name: "half a pixel", body: strings.Replace(valid, "300", "300.5", 1), status: 400, reason: "wrong_field", field: "imp[0].w"},
		{name: "url too long", body: with(batch{"url": "https://yukiblog.jp/" + strings.Repeat("x", 2029)}), status: 400, reason: "wrong_field", field: "url"},
		{name: "no URL", body: with(batch{"url": "yukiblog.jp/a"}), status: 400, reason: "wrong_field", field: "url"},
		{name: "another scheme", body: with(batch{"url": "ftp://yukiblog.jp/a"}), status: 400, reason: "wrong_field", field: "url"},
		{name: "credentials", body: with(batch{"url": "https://a:b@yukiblog.jp/a"}), status: 400, reason: "wrong_field", field: "url"},
		{name: "credentials that are empty", body: with(batch{"url": "https://@yukiblog.jp/a"}), status: 400, reason: "wrong_field", field: "url"},
		{name: "credentials behind a backslash", body: with(batch{"url": `https://evil.example\@yukiblog.jp/a`}), status: 400, reason: "wrong_field", field: "url"},
		{name: "a backslash for a slash", body: with(batch{"url": `https://evil.example\.yukiblog.jp/a`}), status: 400, reason: "wrong_field", field: "url"},
		{name: "no host", body: with(batch{"url": "https:///yukiblog.jp"}), status: 400, reason: "wrong_field", field: "url"},
		{name: "a port alone", body: with(batch{"url": "https://:443/"}), status: 400, reason: "wrong_field", field: "url"},
		{name: "no number for a port", body: with(batch{"url": "https://yukiblog.jp:a/"}), status: 400, reason: "wrong_field", field: "url"},
		{name: "an escape in the host", body: with(batch{"url": "https://yukiblog%2ejp/"}), status: 400, reason: "wrong_field", field: "url"},
		{name: "a control character", body: with(batch{"url": "https://yukiblog.jp/\u0085"}), status: 400, reason: "wrong_field", field: "url"},
		{name: "201 pins", body: with(batch{"pins": pins(many(201, func(i int) string { return fmt.Sprintf("s%d c", i) })...)}), status: 400, reason: "wrong_field", field: "pins"},
		{name: "a pin without a slot", body: with(batch{"pins": pins(" c")}), status: 400, reason: "missing_field", field: "pins[0].slotId"},
		{name: "a pin without a creative", body: with(batch{"pins": pins("a c", "b ")}), status: 400, reason: "missing_field", field: "pins[1].creativeId"},
		{name: "a pin too long", body: with(batch{"pins": pins("a " + long)}), status: 400, reason: "wrong_field", field: "pins[0].creativeId"},
		{name: "two pins of a slot", body: with(batch{"pins": pins("a c", "a d")}), status: 400, reason: "wrong_field", field: "pins[1].slotId"},
		{name: "501 seen", body: with(batch{"seen": seen}), status: 400, reason: "wrong_field", field: "seen"},
		{name: "seen below nothing", body: with(batch{"seen": map[string]any{"jet": map[string]int{"d": -1}}}), status: 400, reason: "wrong_field", field: "seen.jet.d"},
		{name: "seen too long", body: with(batch{"seen": map[string]any{long: twice}}), status: 400, reason: "wrong_field", field: "seen"},
		{name: "41 recent", body: with(batch{"recent": many(41, func(i int) string { return "c" })}), status: 400, reason: "wrong_field", field: "recent"},
		{name: "recent too long", body: with(batch{"recent": []string{"c", long}}), status: 400, reason: "wrong_field", field: "recent[1]"},
		{name: "64 KiB and one byte", body: valid + strings.Repeat(" ", 64<<10+1-len(valid)), status: 413, reason: "too_large"},
		{name: "a form", body: valid, status: 415, reason: "media_type", header: []string{"Content-Type", "application/x-www-form-urlencoded"}},
		{name: "unknown pub", body: with(batch{"pub": "nobody"}), status: 404, reason: "unknown_pub", field: "pub"},
		{name: "a site without hosts", body: with(batch{"pub": "other"}), status: 404, reason: "unknown_pub", field: "pub"},
		{name: "another host", body: with(batch{"url": "https://evil.example/a"}), status: 403, reason: "page_host"},
		{name: "the host in another's path", body: with(batch{"url": "https://evil.example/@yukiblog.jp/%"}), status: 403, reason: "page_host"},
		{name: "the host in another's query", body: with(batch{"url": "https://evil.example?@yukiblog.jp"}), status: 403, reason: "page_host"},
		{name: "the host in another's fragment", body: with(batch{"url": "https://evil.example#@yukiblog.jp"}), status: 403, reason: "page_host"},
		{name: "a host below", body: with(batch{"url": "https://a.yukiblog.jp/a"}), status: 403, reason: "page_host"},
		{name: "another origin", body: valid, status: 403, reason: "origin", header: []string{"Origin", "https://evil.example"}},
		{name: "an opaque origin", body: valid, status: 403, reason: "origin", header: []string{"Origin", "null"}},
		{name: "a debug token that is none", body: with(batch{"debug": "x.y"}), status: 403, reason: "debug_token"},
		{name: "a debug token of another site", body: with(batch{"debug": ring.MintDebug("other", now)}), status: 403, reason: "debug_token"},
		{name: "a debug token that is too old", body: with(batch{"debug": ring.MintDebug(site, now.Add(-11*time.Minute))}), status: 403, reason: "debug_token"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, body := w.ask(test.body, test.header...)
			if a.status != test.status || a.Reason != test.reason || a.Field != test.field || a.Error == "" || bytes.Count(body, []byte("\n")) != 1 {
				t.Errorf("%d %s, want %d %s of %q", a.status, body, test.status, test.reason, test.field)
			}
			w.settle()
			if len(w.reserved) > 0 || w.Snapshot().Revision() != before {
				t.Error("something has happened")
			}
		})
	}
}

// At its limits a batch is answered, and what it has beyond its fields is ignored.
func TestLimits(t *testing.T) {
	id := strings.Repeat("i", 64)
	var slots, pinned []string
	for i := range 40 {
		slots = append(slots, fmt.Sprintf("%s%02d 10000x1", id[:62], i))
	}
	seen := map[string]any{}
	for i := range 200 {
		pinned = append(pinned, fmt.Sprintf("%03d %s", i, strings.Repeat("é", 64)))
		seen[fmt.Sprint(i)] = twice
	}
	for i := range 300 {
		seen[fmt.Sprint("other-", i)] = map[string]int{"h": 1}
	}
	body := ask(imps(slots...), batch{
		"url": "https://yukiblog.jp/" + strings.Repeat("x", 2028), "pins": pins(pinned...), "seen": seen,
		"recent": []string{id}, "unknown": map[string]any{"of": []int{1}},
	})
	w := newWorld(t)
	body += strings.Repeat(" ", 64<<10-len(body))
	a, answer := w.ask(body)
	if a.status != http.StatusOK || len(a.Seatbid) != 40 {
		t.Errorf("%d %s", a.status, answer)
	}
}

func TestAnswers(t *testing.T) {
	w := newWorld(t)
	w.campaign("fly", func(c *catalog.Campaign) { c.End = "2026-12-24" })
	w.broke["inn"] = true
	for name, header := range map[string][]string{
		"as text":              nil,
		"as JSON":              {"Content-Type", "application/json"},
		"from another host":    {"Origin", "https://www.yukiblog.jp:8443"},
		"in capitals":          {"Origin", "https://YUKIBLOG.jp"},
		"without an origin":    {"Origin", ""},
		"with what a CDN adds": {"Accept-Encoding", "gzip"},
	} {
		t.Run(name, func(t *testing.T) {
			a, body := w.ask(ask(sidebar), header...)
			if a.status != http.StatusOK {
				t.Fatalf("%d %s", a.status, body)
			}
			winner := a.Seatbid[0].Winner
			end := time.Date(2026, 12, 24, 15, 0, 0, 0, time.UTC) // the day after begins in Tokyo
			if winner.PinExpiresAt != end.UnixMilli() {
				t.Errorf("bookmarks end at %v, want %v", time.UnixMilli(winner.PinExpiresAt).UTC(), end)
			}
			if *a.ReclassifyInMs != 47*time.Hour.Milliseconds() || a.RetryInMs != nil {
				t.Errorf("ask again: %s", body)
			}
		})
	}
}

// A site that is suspended answers nothing, whatever is bookmarked.
func TestSuspendedSite(t *testing.T) {
	w := newWorld(t)
	w.site(func(s *catalog.Site) { s.Status = catalog.Suspended })
	rec := post(w.handler(), ask(sidebar, batch{"pins": pins("sidebar-1 jet")}))
	if rec.Code != http.StatusNoContent || rec.Body.Len() > 0 || rec.Header().Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	if rec := post(w.handler(), ask(sidebar, batch{"url": "https://evil.example/"})); rec.Code != http.StatusForbidden {
		t.Errorf("of another host: %d", rec.Code)
	}
}

// When the browser may ask again depends on what is known of the page.
func TestAskAgain(t *testing.T) {
	w := newWorld(t)
	w.known = false
	a, body := w.ask(ask(sidebar))
	if a.Seatbid[0].Reason != "stale" || a.RetryInMs == nil || *a.RetryInMs <= 0 || a.ReclassifyInMs != nil {
		t.Errorf("of a page that nobody knows: %s", body)
	}
	w.known, w.page.At = true, now.Add(-100*time.Hour)
	a, body = w.ask(ask(sidebar))
	if a.Seatbid[0].Reason != "stale" || a.RetryInMs != nil || a.ReclassifyInMs == nil || *a.ReclassifyInMs != 0 {
		t.Errorf("of a page of which old things are known: %s", body)
	}
}

func TestNotReady(t *testing.T) {
	w := newWorld(t)
	h := w.handler()
	w.ready = false
	api := publicapi.New(publicapi.NewMetrics(), slog.New(slog.DiscardHandler))
	cold := unread(w)
	for name, h := range map[string]http.Handler{
		"store closed":       serve.Endpoint(api, func() *serve.Server { return nil }),
		"fold cold":          h,
		"catalog not loaded": cold.handler(),
	} {
		t.Run(name, func(t *testing.T) {
			rec := post(h, ask(sidebar))
			if rec.Code != http.StatusServiceUnavailable || rec.Header().Get("Retry-After") != "5" || rec.Header().Get("Access-Control-Allow-Origin") != "*" {
				t.Errorf("%d %v", rec.Code, rec.Header())
			}
			r := httptest.NewRequest(http.MethodOptions, serve.BatchPath, nil)
			rec = httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			if rec.Code != http.StatusNoContent || rec.Header().Get("Access-Control-Max-Age") != "86400" {
				t.Errorf("OPTIONS: %d %v", rec.Code, rec.Header())
			}
		})
	}
	if _, err := serve.New(cold.config(), serve.NewMetrics()).Explain(&serve.Batch{}); err == nil {
		t.Error("it explains what it does not know")
	}
}

func TestRateLimit(t *testing.T) {
	w := newWorld(t)
	c := w.config()
	c.Limit = publicapi.Limit{PerMinute: 60, Burst: 2}
	s := serve.New(c, serve.NewMetrics())
	h := serve.Endpoint(publicapi.New(publicapi.NewMetrics(), slog.New(slog.DiscardHandler)), func() *serve.Server { return s })
	for i, want := range []int{200, 400, 429} { // what is wrong counts as well
		body := ask(sidebar)
		if i == 1 {
			body = "{"
		}
		if rec := post(h, body); rec.Code != want {
			t.Errorf("request %d: %d, want %d", i, rec.Code, want)
		}
	}
	w.at = w.at.Add(time.Second)
	if rec := post(h, ask(sidebar)); rec.Code != 200 {
		t.Errorf("a second later: %d", rec.Code)
	}
}

// Who announces a body and sends none is told at once what does not depend on it.
func TestNoAnswerWaitsForABody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.config()
	c.Limit = publicapi.Limit{PerMinute: 1, Burst: 1}
	limited := serve.New(c, serve.NewMetrics())
	api := publicapi.New(publicapi.NewMetrics(), slog.New(slog.DiscardHandler))
	limiting := serve.Endpoint(api, func() *serve.Server { return limited })
	post(limiting, ask(sidebar)) // takes the one that there is
	const length = "Content-Length: 10\r\n"
	for _, c := range []struct {
		handler http.Handler
		method  string
		header  string
		status  int
	}{
		{w.handler(), "PUT", length, 405},
		{w.handler(), "OPTIONS", length, 204},
		{w.handler(), "POST", length, 415},
		{w.handler(), "POST", "Content-Type: text/plain\r\nContent-Length: 65537\r\n", 413},
		{limiting, "POST", length, 429},
		{serve.Endpoint(api, func() *serve.Server { return nil }), "POST", length, 503},
	} {
		t.Run(strconv.Itoa(c.status), func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(c.handler)
			defer server.Close()
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil { // half of what a body has
				t.Fatal(err)
			}
			fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\n%s\r\n", c.method, serve.BatchPath, c.header)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != c.status {
				t.Error(resp.Status)
			}
		})
	}
}

func TestNothingIsReservedForWhoHasGone(t *testing.T) {
	w := newWorld(t)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(gone, http.MethodPost, serve.BatchPath, strings.NewReader(ask(sidebar)))
	r.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	w.handler().ServeHTTP(rec, r)
	if rec.Code != http.StatusServiceUnavailable || len(w.reserved) > 0 {
		t.Errorf("%d, reserved: %v", rec.Code, w.reserved)
	}
}

// What is shown is byte for byte what the catalog has.
func TestPagesAreUnchanged(t *testing.T) {
	w := newWorld(t)
	w.creative("ryokan", func(c *catalog.Creative) {
		c.Pages = []catalog.Page{{Headline: "Bäder & </script> \u200d \"5\"", Background: "#ffffff", Ink: "#000000"}}
	})
	w.approve("ryokan")
	rec := post(w.handler(), ask(sidebar))
	pool := w.Snapshot().Lookup(site, travel)
	for c := range pool.All() {
		if c.Creative.ID == "ryokan" && !bytes.Contains(rec.Body.Bytes(), c.PagesJSON) {
			t.Errorf("%s\nis not in\n%s", c.PagesJSON, rec.Body)
		}
	}
	if !jsontext.Value(rec.Body.Bytes()).IsValid() || !strings.Contains(rec.Body.String(), "ryokan") {
		t.Errorf("answer is %s", rec.Body)
	}
}

// A query may say who the reader is: it gets into no token, and so into no journal.
func TestQueryIsNotKept(t *testing.T) {
	w := newWorld(t)
	for address, want := range map[string]string{
		"https://yukiblog.jp/a?user=hana":       "https://yukiblog.jp/a",
		"https://yukiblog.jp/a#hana":            "https://yukiblog.jp/a",
		"https://yukiblog.jp?user=hana#x":       "https://yukiblog.jp",
		"http://www.yukiblog.jp:8080/a/%3f?x=1": "http://www.yukiblog.jp:8080/a/%3f",
		"https://yukiblog.jp/100%":              "https://yukiblog.jp/100%",
		"https://yukiblog.jp/%zz/?50%#100%":     "https://yukiblog.jp/%zz/",
		"https://yukiblog.jp#100%":              "https://yukiblog.jp",
		"https://YukiBlog.JP./a:b@c":            "https://YukiBlog.JP./a:b@c",
	} {
		a, _ := w.ask(ask(sidebar, batch{"url": address}))
		winner := a.Seatbid[0].Winner
		if got := a.beacon(t, token.Imp, winner.ImpURL).URL; got != want {
			t.Errorf("%s: beacon has %s", address, got)
		}
		f, err := w.verifier().Fold(winner.FoldToken, site, "sidebar-1", winner.CreativeID, now)
		if err != nil || f.URL != want {
			t.Errorf("%s: fold has %s, %v", address, f.URL, err)
		}
	}
}

// What a browser has told about its reader is gone when it has its answer.
func TestNothingIsKept(t *testing.T) {
	w := newWorld(t)
	w.put(&catalog.Creative{ID: "known-to-hana", Campaign: "fly", Content: catalog.Content{Pages: []catalog.Page{{Headline: "x"}}}})
	p := serve.NewPipeline(w.market())
	p.Explain(w.question(ask(imps("hana-1 300x250", "b 300x600"), batch{
		"url": "https://yukiblog.jp/hana", "recent": []string{"recent-of-hana"},
		"pins": pins("hana-1 known-to-hana", "elsewhere-hana unheard-of-hana", "c jet"),
		"seen": map[string]any{"known-to-hana": twice, "seen-by-hana": twice},
	})))
	serve.Forget(p)
	if kept := fmt.Sprintf("%+v", *p); p.Batch != nil || strings.Contains(kept, "hana") {
		t.Errorf("kept: %s", kept)
	}
}

// A slot's four beacons and its reservation belong together, and no two slots share.
func TestRequestIDs(t *testing.T) {
	w := newWorld(t)
	a, _ := w.ask(ask(imps("a 300x600", "b 300x250", "c 320x50"), batch{"pins": pins("b jet")}))
	all := map[string]bool{}
	for _, s := range a.Seatbid {
		imp := a.beacon(t, token.Imp, s.Winner.ImpURL)
		for e, address := range map[token.Event]string{token.View: s.Winner.ViewURL, token.Click: s.Winner.ClickURL, token.CTA: s.Winner.CTAURL} {
			if b := a.beacon(t, e, address); b.RequestID != imp.RequestID {
				t.Errorf("%s: %s is of %s, the impression of %s", s.ID, e, b.RequestID, imp.RequestID)
			}
		}
		held, reserved := w.reserved[imp.RequestID]
		if reserved != (s.Dogear == nil) || held.price != imp.Price || reserved && held.campaign != imp.Campaign {
			t.Errorf("%s: reserved is %+v, the token says %+v", s.ID, held, imp)
		}
		all[imp.RequestID] = true
	}
	if len(all) != 3 || len(w.reserved) != 2 {
		t.Errorf("request ids %v, reserved %v", all, w.reserved)
	}
}

// The dashboard asks by URL alone, and nothing is reserved.
func TestExplainForTheDashboard(t *testing.T) {
	w := newWorld(t)
	c := w.config()
	poor := map[string]bool{"autumn": true, "spring": true}
	c.Afford = func(campaign *catalog.Campaign, _ *catalog.Advertiser, _ deckle.Money, _ time.Time) bool {
		return !poor[campaign.ID]
	}
	s := serve.New(c, serve.NewMetrics())
	e, err := s.Explain(&serve.Batch{URL: pageURL, Imps: []serve.Imp{{ID: "sidebar-1", W: 300, H: 250}}})
	if err != nil {
		t.Fatal(err)
	}
	if e.Site != site || e.Slots[0].Creative != "jet" || len(w.reserved) > 0 {
		t.Errorf("explained: %+v, reserved: %v", e, w.reserved)
	}
	for field, b := range map[string]*serve.Batch{
		"url": {URL: "https://elsewhere.example/", Imps: []serve.Imp{{ID: "a", W: 1, H: 1}}},
		"pub": {Pub: "nobody", URL: pageURL, Imps: []serve.Imp{{ID: "a", W: 1, H: 1}}},
		"imp": {URL: pageURL},
	} {
		_, err := s.Explain(b)
		if e, ok := err.(*publicapi.Error); !ok || e.Field != field {
			t.Errorf("%+v: %v, want it to blame %s", b, err, field)
		}
	}
}

func TestMetrics(t *testing.T) {
	w := newWorld(t)
	w.reject("sakura")
	m := serve.NewMetrics()
	s := serve.New(w.config(), m)
	h := serve.Endpoint(publicapi.New(publicapi.NewMetrics(), slog.New(slog.DiscardHandler)), func() *serve.Server { return s })
	post(h, ask(imps("a 300x600", "b 300x250", "c 320x50", "d 1x1"), batch{"pins": pins("b jet", "c sakura", "elsewhere sakura")}))
	post(h, ask(sidebar, batch{"pub": "nobody"}))
	r := prometheus.NewRegistry()
	if err := m.Register(r); err != nil {
		t.Fatal(err)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, metric := range f.Metric {
			name := f.GetName()
			for _, l := range metric.Label {
				name += " " + l.GetValue()
			}
			got[name] = metric.Counter.GetValue()
		}
	}
	want := map[string]float64{
		"deckle_batch_slots_total filled yuki-site":  2,
		"deckle_batch_slots_total honored yuki-site": 1,
		"deckle_batch_slots_total used yuki-site":    1,
		"deckle_batch_pins_removed_total yuki-site":  2,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("metrics are %v, want %v", got, want)
	}
}
