package edge_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"deckle"
	"deckle/internal/template"
	"deckle/web"
)

// short makes hashes and URLs of ours readable: S and B are the runners, C is the
// client, O is the page's own origin.
func shortPolicy(line string) string {
	return strings.NewReplacer(
		web.Hash(web.SlotsRunner()), "S", web.Hash(web.BidsRunner()), "B",
		"http://www.test"+web.ClientPath(), "C", "http://www.test"+web.ReaderPath(), "R", "http://www.test"+web.MagazinePath(), "M", "http://www.test", "O",
	).Replace(line)
}

// noncesOf are the nonces on our runners, in document order; "-" for none.
func noncesOf(body string) (nonces []string) {
	for _, text := range []string{web.SlotsRunner(), web.BidsRunner()} {
		before, _, ok := strings.Cut(body, text)
		if !ok {
			continue
		}
		nonce := "-"
		if tag := before[strings.LastIndex(before, "<"):]; tag != "<script>" {
			nonce = strings.TrimSuffix(strings.TrimPrefix(tag, `<script nonce="`), `">`)
		}
		nonces = append(nonces, nonce)
	}
	return nonces
}

// What becomes of a policy so that our scripts run. Chromium is asked the same in
// TestPoliciesInABrowser.
func TestPolicies(t *testing.T) {
	for policy, c := range map[string]struct {
		want  string // "": it is not changed
		nonce string
	}{
		"script-src 'self' 'unsafe-inline'":                                          {"", "-"},
		"Script-Src 'Self' 'UNSAFE-INLINE'":                                          {"", "-"},
		"default-src 'none'; script-src * 'unsafe-inline'":                           {"default-src 'none'; script-src * 'unsafe-inline'; connect-src O", "-"},
		"img-src 'self'; frame-src 'none'":                                           {"", "-"},
		"script-src 'self' 'unsafe-inline'; script-src 'none'":                       {"", "-"}, // the first counts
		"script-src 'none'; script-src-elem 'unsafe-inline' 'self'":                  {"", "-"},
		"default-src 'self'":                                                         {"default-src 'self'; script-src-elem 'self' S B", "-"},
		"default-src 'self' 'unsafe-inline'":                                         {"", "-"},
		"default-src 'unsafe-inline'":                                                {"default-src 'unsafe-inline'; script-src-elem 'unsafe-inline' C; connect-src 'unsafe-inline' O", "-"},
		"script-src 'self'":                                                          {"script-src 'self' S B", "-"},
		"script-src 'self' 'none'":                                                   {"script-src 'self' 'none' S B", "-"}, // 'none' beside others is nothing
		"script-src 'self'; script-src-elem 'self' 'unsafe-inline'":                  {"", "-"},
		"script-src 'unsafe-inline'; script-src-elem 'self'":                         {"script-src 'unsafe-inline'; script-src-elem 'self' S B", "-"},
		"script-src 'unsafe-inline' https://cdn.test":                                {"script-src 'unsafe-inline' https://cdn.test C", "-"},
		"script-src 'unsafe-inline' 'unsafe-eval' 'report-sample' http:":             {"", "-"},
		"script-src 'nonce-abc'":                                                     {"", "abc"},
		"script-src 'self' 'unsafe-inline' 'nonce-a+/_-='":                           {"", "a+/_-="},
		"script-src 'Nonce-Abc'":                                                     {"", "Abc"},
		"script-src 'NONCE-Abc' 'strict-dynamic'":                                    {"", "Abc"},
		"script-src 'nonce-abc', script-src 'nonce-abc' 'self'":                      {"", "abc"},
		"script-src 'nonce-abc' 'self', script-src 'nonce-xyz' 'self'":               {"script-src 'nonce-abc' 'self', script-src 'nonce-xyz' 'self' S B", "abc"},
		"script-src 'unsafe-inline' 'self', script-src 'nonce-xyz'":                  {"", "xyz"},
		"script-src 'self', script-src 'nonce-xyz'":                                  {"script-src 'self' S B, script-src 'nonce-xyz'", "xyz"},
		"script-src 'self' 'nonce-'":                                                 {"script-src 'self' 'nonce-' S B", "-"},
		"script-src 'self' 'nonce-a\"><b'":                                           {"script-src 'self' 'nonce-a\"><b' S B", "-"},
		"script-src 'self' 'nonce-" + strings.Repeat("a", 300) + "'":                 {"script-src 'self' 'nonce-" + strings.Repeat("a", 300) + "' S B", "-"},
		"script-src 'self' 'unsafe-inline' 'sha256-abc='":                            {"script-src 'self' 'unsafe-inline' 'sha256-abc=' S B", "-"},
		"script-src 'sha512-abc'":                                                    {"script-src 'sha512-abc' S B C", "-"},
		"script-src 'self' 'unsafe-inline' 'sha1-abc'":                               {"", "-"}, // no hash, so nothing
		"script-src 'self' 'unsafe-inline' 'strict-dynamic'":                         {"script-src 'self' 'unsafe-inline' 'strict-dynamic' S B", "-"},
		"script-src 'self' " + web.Hash(web.SlotsRunner()):                           {"script-src 'self' S B", "-"},
		"script-src 'unsafe-inline' http://www.test":                                 {"", "-"},
		"script-src 'unsafe-inline' www.test/_deckle/":                               {"", "-"},
		"script-src 'unsafe-inline' WWW.test" + web.ClientPath():                     {"", "-"},
		"script-src 'unsafe-inline' *.test":                                          {"", "-"},
		"script-src 'unsafe-inline' *.www.test www.test:8080 www.test/x https:":      {"script-src 'unsafe-inline' *.www.test www.test:8080 www.test/x https: C", "-"},
		"connect-src 'none'":                                                         {"connect-src O", "-"},
		"connect-src https://api.test; script-src 'nonce-abc'":                       {"connect-src https://api.test O; script-src 'nonce-abc'", "abc"},
		"connect-src 'self'; default-src 'unsafe-inline' 'self'":                     {"", "-"},
		"require-trusted-types-for 'script'":                                         {"", "-"},
		"require-trusted-types-for 'script'; trusted-types a b":                      {"require-trusted-types-for 'script'; trusted-types a b deckle", "-"},
		"trusted-types *":                                                            {"", "-"},
		"trusted-types a deckle":                                                     {"", "-"},
		"trusted-types Deckle":                                                       {"trusted-types Deckle deckle", "-"},
		"sandbox allow-scripts Allow-Same-Origin":                                    {"", "-"},
		"  ;; script-src\t'self' ,, ; img-src x":                                     {"script-src 'self' S B, , img-src x", "-"},
		"upgrade-insecure-requests; script-src 'nonce-abc'; report-uri /r; x\u00a0y": {"", "abc"},
	} {
		for _, name := range []string{"Content-Security-Policy", "Content-Security-Policy-Report-Only"} {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{}, answerWith(200, map[string]string{name: policy}, page), bids(0, "1"))
				a := w.get(t.Context(), navigation("/x"))
				want := c.want
				if want == "" {
					want = shortPolicy(policy)
				}
				if got := shortPolicy(a.header.Get(name)); got != want {
					t.Errorf("%s: %s\nbecomes %s\n   want %s", name, policy, got, want)
				}
				if got := noncesOf(a.body()); !slices.Equal(got, []string{c.nonce, c.nonce}) {
					t.Errorf("%s: nonces %q, want %q twice", policy, got, c.nonce)
				}
				if got := withoutScripts(a.body()); got != page {
					t.Errorf("%s: without ours: %q", policy, got)
				}
			})
		}
	}
}

// withoutScripts is the origin's page again, also where our runners have a nonce.
func withoutScripts(body string) string {
	for _, text := range []string{web.SlotsRunner(), web.BidsRunner()} {
		if before, after, ok := strings.Cut(body, text); ok {
			body = before[:strings.LastIndex(before, "<")] + "<script>" + text + after
		}
	}
	return withoutOurs(body)
}

// Lines stay lines, and the two headers know of each other: one nonce is on our
// elements.
func TestSeveralPolicyHeaders(t *testing.T) {
	bubble(t, func(t *testing.T) {
		header := map[string]string{
			"Content-Security-Policy":             "img-src *",
			"+Content-Security-Policy":            "script-src 'self'",
			"Content-Security-Policy-Report-Only": "script-src 'nonce-abc'",
		}
		w := newWorld(t, setup{}, answerWith(200, header, page), bids(0, "1"))
		a := w.get(t.Context(), navigation("/x"))
		lines := slices.Sorted(slices.Values(a.header["Content-Security-Policy"]))
		for i := range lines {
			lines[i] = shortPolicy(lines[i])
		}
		if want := []string{"img-src *", "script-src 'self' S B"}; !slices.Equal(lines, want) {
			t.Errorf("%q, want %q", lines, want)
		}
		if got := a.header.Get("Content-Security-Policy-Report-Only"); got != "script-src 'nonce-abc'" {
			t.Errorf("reported: %q", got)
		}
		if got := noncesOf(a.body()); !slices.Equal(got, []string{"abc", "abc"}) {
			t.Errorf("nonces %q", got)
		}
	})
}

// HEAD says what GET would; a bot's page has no client that anything is added for.
func TestPoliciesOfOthers(t *testing.T) {
	origin := answerWith(200, map[string]string{"Content-Security-Policy": "default-src https://cdn.test"}, page)
	head, bot, frame := navigation("/x"), navigation("/x"), navigation("/x")
	head.Method = "HEAD"
	bot.Header.Set("User-Agent", "Googlebot")
	frame.Header.Set("Sec-Fetch-Dest", "iframe")
	for name, c := range map[string]struct {
		r    *http.Request
		want string
	}{
		"a reader": {navigation("/x"), "default-src https://cdn.test; script-src-elem https://cdn.test S B C; connect-src https://cdn.test O"},
		"HEAD":     {head, "default-src https://cdn.test; script-src-elem https://cdn.test S B C; connect-src https://cdn.test O"},
		"a bot":    {bot, "default-src https://cdn.test; script-src-elem https://cdn.test S B"},
		"a frame":  {frame, "default-src https://cdn.test"},
	} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t, setup{}, origin, bids(0, "1"))
			if got := shortPolicy(w.get(t.Context(), c.r).header.Get("Content-Security-Policy")); got != c.want {
				t.Errorf("%s: %s, want %s", name, got, c.want)
			}
		})
	}
}

// A page with magazines loads their script, their element and their pictures as well.
func TestPoliciesOfMagazines(t *testing.T) {
	magazine := slot("top")
	magazine.Kind = deckle.Magazine
	s := setup{slots: []deckle.Slot{magazine}, patterns: []template.Patterns{{Include: []string{"/**"}}}}
	for policy, want := range map[string]string{
		"default-src https://cdn.test":                                            "default-src https://cdn.test; script-src-elem https://cdn.test S B C R M; connect-src https://cdn.test O; img-src https://cdn.test O/_deckle/",
		"default-src 'self' 'unsafe-inline'":                                      "default-src 'self' 'unsafe-inline'",
		"script-src 'nonce-abc'; img-src 'none'":                                  "script-src 'nonce-abc'; img-src O/_deckle/",
		"script-src 'unsafe-inline' www.test/_deckle/; img-src www.test/_deckle/": "script-src 'unsafe-inline' www.test/_deckle/; img-src www.test/_deckle/",
	} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t, s, answerWith(200, map[string]string{"Content-Security-Policy": policy}, page), hang)
			if got := shortPolicy(w.get(t.Context(), navigation("/x")).header.Get("Content-Security-Policy")); got != want {
				t.Errorf("%s\nbecomes %s\n   want %s", policy, got, want)
			}
		})
	}
}

// A policy in a meta binds what follows it, and cannot be helped.
func TestPoliciesInMetas(t *testing.T) {
	meta := func(policy string) string {
		return fmt.Sprintf(`<meta http-equiv="Content-Security-Policy" content="%s">`, policy)
	}
	const late = `<meta charset=utf-8>` // hole 1 comes after it, where no header names the charset
	for name, c := range map[string]struct {
		header, head string
		nonces       []string // nil: nothing goes in at all
		alone        bool     // hole 2 is its data block alone
	}{
		"before hole 1, inline is free":       {"", meta("script-src 'self' 'unsafe-inline'") + late, []string{"-", "-"}, false},
		"before hole 1, not about scripts":    {"", meta("img-src 'none'") + late, []string{"-", "-"}, false},
		"before hole 1, with a nonce":         {"", meta("script-src 'nonce-abc'") + late, []string{"abc", "abc"}, false},
		"before hole 1, without inline":       {"", meta("script-src 'self'") + late, nil, false},
		"before hole 1, without our client":   {"", meta("script-src 'unsafe-inline'") + late, nil, false},
		"before hole 1, with our hashes":      {"", meta("script-src 'self' "+web.Hash(web.SlotsRunner())+" "+web.Hash(web.BidsRunner())) + late, []string{"-", "-"}, false},
		"before hole 1, one hash":             {"", meta("script-src 'self' "+web.Hash(web.SlotsRunner())) + late, []string{"-"}, true},
		"before hole 1, none":                 {"", meta("default-src 'none'") + late, nil, false},
		"before hole 1, types of the site":    {"", meta("trusted-types site") + late, nil, false},
		"before hole 1, our types":            {"", meta("trusted-types site deckle") + late, []string{"-", "-"}, false},
		"before hole 1, two nonces":           {"", meta("script-src 'nonce-abc'") + meta("script-src 'nonce-xyz'") + late, nil, false},
		"before hole 1, one nonce":            {"", meta("script-src 'nonce-abc'") + meta("script-src 'nonce-xyz' 'nonce-abc'") + late, []string{"abc", "abc"}, false},
		"the header has another nonce":        {"script-src 'nonce-xyz'", meta("script-src 'nonce-abc'") + late, nil, false},
		"the header needs none":               {"script-src 'self' 'unsafe-inline'", meta("script-src 'nonce-abc'") + late, []string{"abc", "abc"}, false},
		"after hole 1, with a nonce":          {"", late + meta("script-src 'nonce-abc'"), []string{"-", "abc"}, false},
		"after hole 1, with the same nonce":   {"script-src 'nonce-abc'", late + meta("script-src 'nonce-abc'"), []string{"abc", "abc"}, false},
		"after hole 1, with another nonce":    {"script-src 'nonce-xyz'", late + meta("script-src 'nonce-abc'"), []string{"xyz"}, true},
		"after hole 1, without inline":        {"", late + meta("script-src 'self'"), []string{"-"}, true},
		"after hole 1, none":                  {"", late + meta("script-src 'none'"), []string{"-"}, true},
		"after hole 1, without our client":    {"", late + meta("script-src 'unsafe-inline'"), []string{"-", "-"}, false},
		"after hole 1, references":            {"", late + meta("script-src &#39;nonce-abc&apos;"), []string{"-", "abc"}, false},
		"after hole 1, too long to be judged": {"", late + meta("img-src "+strings.Repeat("a ", 5000)), []string{"-"}, true},
		"after hole 1, long":                  {"", late + meta("script-src 'nonce-abc' "+strings.Repeat("a ", 3000)), []string{"-", "abc"}, false},
		"after hole 1, more than are kept":    {"", late + strings.Repeat(meta("img-src *"), 17), []string{"-"}, true},
		"reported only":                       {"", `<meta http-equiv=Content-Security-Policy-Report-Only content="script-src 'none'">` + late, []string{"-", "-"}, false},
		"in a comment":                        {"", "<!--" + meta("script-src 'none'") + "-->" + late, []string{"-", "-"}, false},
		"in a noscript":                       {"", "<noscript>" + meta("script-src 'none'") + "</noscript>" + late, []string{"-", "-"}, false},
		"without content":                     {"", "<meta http-equiv=Content-Security-Policy>" + late, []string{"-", "-"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				doc := "<!doctype html><head>" + c.head + "</head><body><p>text</body>"
				header := map[string]string{"Content-Type": "text/html"}
				if c.header != "" {
					header["Content-Security-Policy"] = c.header
				}
				w := newWorld(t, setup{}, answerWith(200, header, doc), bids(0, "1"))
				a := w.get(t.Context(), navigation("/x"))
				if got := noncesOf(a.body()); !slices.Equal(got, c.nonces) {
					t.Errorf("nonces %q, want %q in %s", got, c.nonces, a.body())
				}
				var found map[string]any
				if got := a.block(t, "bids", &found); got != (c.nonces != nil) {
					t.Errorf("bids are in the page: %v", got)
				}
				if hasRunner := strings.Contains(a.body(), web.BidsRunner()); hasRunner == c.alone && c.nonces != nil {
					t.Errorf("the runner of hole 2 is in the page: %v", hasRunner)
				}
				if got := withoutScripts(a.body()); got != doc {
					t.Errorf("without ours: %q", got)
				}
			})
		})
	}
}

// Where a meta shuts our scripts out nobody wins, and the page waits for nobody.
func TestNobodyWinsAPageThatIsShut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const doc = `<meta http-equiv=content-security-policy content="script-src 'self'"><meta charset=utf-8><body><p>x</body>`
		w := newWorld(t, setup{}, func(rw http.ResponseWriter, r *http.Request) {
			wait(50 * ms) // the auction is under way
			answerWith(200, map[string]string{"Content-Type": "text/html"}, doc)(rw, r)
		}, hang)
		if a := w.get(t.Context(), navigation("/x")); a.body() != doc || a.ended != 50*ms {
			t.Errorf("%q after %v", a.body(), a.ended)
		}
	})
}
