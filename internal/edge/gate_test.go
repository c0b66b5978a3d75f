package edge_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"deckle"
	"deckle/internal/edge"
	"deckle/internal/template"
)

// slotsBlock is what a test reads of hole 1.
type slotsBlock struct {
	Slots []struct {
		ID          string
		GAMUnitPath string `json:"gam_unit_path"`
		DivID       string `json:"div_id"`
		Formats     [][2]int
		Targeting   map[string][]string
		Kind        string
		DeadlineMS  int64 `json:"deadline_ms"`
	}
	Skip   string
	Client map[string]string
}

// bidsBlock is what a test reads of hole 2.
type bidsBlock map[string]map[string]any

const page = headPart + bodyPart + lastPart

const refused = "CQdZmkAQdZmkAAfABAENCWEgAAAAAAAAAAYgAAAAAAAA.IAAA.YAAAAAAAAAAA"

// What goes into a page, who is asked and how it may be kept, for every outcome
// of the gate (page-plane.md sections 2 and 5).
func TestGate(t *testing.T) {
	const private, shared = "private, no-store", "public, max-age=60"
	set := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for name, c := range map[string]struct {
		setup   setup
		request func(*http.Request)
		path    string
		slots   bool
		client  bool
		skip    string
		asked   bool // bidders
		cache   string
	}{
		"run":                        {setup{}, nil, "/x", true, true, "", true, private},
		"no slot":                    {setup{}, nil, "/plain/x", false, false, "", false, shared},
		"method POST":                {setup{}, func(r *http.Request) { r.Method = "POST" }, "/x", false, false, "", false, shared},
		"method HEAD":                {setup{}, func(r *http.Request) { r.Method = "HEAD" }, "/x", false, false, "", false, private},
		"HEAD without a slot":        {setup{}, func(r *http.Request) { r.Method = "HEAD" }, "/plain", false, false, "", false, shared},
		"iframe":                     {setup{}, set("Sec-Fetch-Dest", "iframe"), "/x", false, false, "", false, private},
		"image":                      {setup{}, set("Sec-Fetch-Dest", "image"), "/x", false, false, "", false, private},
		"no fetch metadata":          {setup{}, func(r *http.Request) { r.Header.Del("Sec-Fetch-Dest") }, "/x", true, true, "", true, private},
		"no fetch metadata, no html": {setup{}, func(r *http.Request) { r.Header.Del("Sec-Fetch-Dest"); r.Header.Set("Accept", "*/*") }, "/x", false, false, "", false, private},
		"html in a second line": {setup{}, func(r *http.Request) {
			r.Header.Del("Sec-Fetch-Dest")
			r.Header["Accept"] = []string{"image/*", "Text/HTML"}
		}, "/x", true, true, "", true, private},
		"prefetch in a second line": {setup{}, func(r *http.Request) { r.Header["Purpose"] = []string{"x", "prefetch"} }, "/x", true, true, "prefetch", false, private},
		"a bot in capitals":         {setup{}, set("User-Agent", "GOOGLEBOT/2.1"), "/x", true, false, "", false, private},
		"a blank agent":             {setup{}, set("User-Agent", " "), "/x", true, false, "", false, private},
		"prefetch":                  {setup{}, set("Sec-Purpose", "prefetch;prerender"), "/x", true, true, "prefetch", false, private},
		"prefetch, Purpose":         {setup{}, set("Purpose", "Prefetch"), "/x", true, true, "prefetch", false, private},
		"prefetch, X-Moz":           {setup{}, set("X-Moz", "prefetch"), "/x", true, true, "prefetch", false, private},
		"preview":                   {setup{}, set("X-Purpose", "preview"), "/x", true, true, "prefetch", false, private},
		"bot":                       {setup{}, set("User-Agent", "Mozilla/5.0 (compatible; GoogleBot/2.1; +http://www.google.com/bot.html)"), "/x", true, false, "", false, private},
		"no agent":                  {setup{}, func(r *http.Request) { r.Header.Del("User-Agent") }, "/x", true, false, "", false, private},
		"a telephone by Cubot":      {setup{}, set("User-Agent", "Mozilla/5.0 (Linux; Android 13; CUBOT P80) AppleWebKit/537.36"), "/x", true, true, "", true, private},
		"no consent":                {setup{}, set("Cookie", "euconsent-v2="+refused), "/x", true, true, "no_consent", false, private},
		"prefetch before consent": {setup{}, func(r *http.Request) {
			r.Header.Set("Cookie", "euconsent-v2="+refused)
			r.Header.Set("Purpose", "prefetch")
		}, "/x", true, true, "prefetch", false, private},
		"site switched off":    {setup{site: func(s *edge.Site) { s.Enabled = false }}, nil, "/x", false, false, "", false, shared},
		"file switched off":    {setup{settings: func(s *template.Settings) { s.Enabled = false }}, nil, "/x", false, false, "", false, shared},
		"no template":          {setup{site: func(s *edge.Site) { s.Template = func() *template.Template { return nil } }}, nil, "/x", false, false, "", false, shared},
		"auction switched off": {setup{config: func(c *edge.Config) { c.AuctionEnabled = false }}, nil, "/x", true, true, "", false, private},
		"magazine slots only": {setup{
			slots:    []deckle.Slot{{ID: "mag", Kind: deckle.Magazine, DivID: "m", Formats: []deckle.Size{{W: 300, H: 250}}}},
			patterns: []template.Patterns{{Include: []string{"/**"}}},
		}, nil, "/x", true, true, "", false, private},
		"another html_cache": {setup{site: func(s *edge.Site) { s.HTMLCache = "private, max-age=0" }}, nil, "/x", true, true, "", true, "private, max-age=0"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				asked := 0
				origin := func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Cache-Control", shared)
					w.Header().Set("Etag", `"1"`)
					html(page)(w, r)
				}
				bidder := func(w http.ResponseWriter, r *http.Request) { asked++; bids(0, "2.5")(w, r) }
				w := newWorld(t, c.setup, origin, bidder)
				r := navigation(c.path)
				if c.request != nil {
					c.request(r)
				}
				a := w.get(t.Context(), r)

				var slots slotsBlock
				var won bidsBlock
				if got := a.block(t, "slots", &slots); got != c.slots {
					t.Errorf("slots in the page: %v, want %v", got, c.slots)
				}
				if got := slots.Client != nil; got != c.client {
					t.Errorf("client in the page: %v, want %v", got, c.client)
				}
				if slots.Skip != c.skip {
					t.Errorf("skip = %q, want %q", slots.Skip, c.skip)
				}
				if got := a.block(t, "bids", &won); got != c.asked || (asked == 1) != c.asked || asked > 1 {
					t.Errorf("bids in the page: %v, bidders asked %d times, want %v", got, asked, c.asked)
				}
				for _, s := range slots.Slots {
					if waits := s.DeadlineMS > 0; waits != c.asked {
						t.Errorf("slot %s waits for bids: %v, want %v", s.ID, waits, c.asked)
					}
				}
				if got := a.header.Get("Cache-Control"); got != c.cache {
					t.Errorf("Cache-Control = %q, want %q", got, c.cache)
				}
				if got, want := a.header.Get("Etag") != "", c.cache == shared; got != want {
					t.Errorf("Etag kept: %v, want %v", got, want)
				}
				if r.Method == "HEAD" {
					return
				}
				if got := withoutOurs(a.body()); got != page {
					t.Errorf("page = %q, want %q", got, page)
				}
			})
		})
	}
}

// Hole 1 and hole 2 say what the client needs, and nothing of a stranger can
// leave its string.
func TestForm(t *testing.T) {
	bubble(t, func(t *testing.T) {
		hostile := `</script><script>alert(1)</script><!--` + "\u2028\u2029é\U0001F600\xff" + `"'`
		bidder := func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, `{"id":"1","cur":"USD","seatbid":[{"seat":"</script>","bid":[{"id":"</script>","impid":"top","price":2.5,"w":300,"h":250,`+
				`"burl":"javascript:alert(1)","adm":"</script><script>alert(1)</script><!--`+"\u2028\u2029é\U0001F600\xff"+`\"'"}]}]}`)
		}
		tmpl := setup{
			slots: []deckle.Slot{{
				ID: "top", Kind: deckle.GPT, GAMUnitPath: "/1/{section}/top", DivID: "div:top",
				Formats:   []deckle.Size{{W: 300, H: 250}, {W: 320, H: 50}},
				Targeting: []deckle.KeyValues{{Key: "pos", Values: []string{hostile}}, {Key: "zone", Values: []string{"a", "b"}}},
				Prebid:    deckle.PrebidParams{StoredRequest: "top"},
			}},
			patterns: []template.Patterns{{Include: []string{"/**"}}},
		}
		w := newWorld(t, tmpl, html(page), bidder)
		a := w.get(t.Context(), navigation("/News%3Cb%3E/x"))

		for _, b := range []byte(ours.FindString(a.body())) {
			if b >= 0x80 {
				t.Fatalf("byte %#x in what we injected", b)
			}
		}
		if n := strings.Count(strings.ToLower(a.body()), "<script"); n != 5 {
			t.Errorf("%d script elements in the page, want our 5: %s", n, a.body())
		}
		var slots slotsBlock
		a.block(t, "slots", &slots)
		if len(slots.Slots) != 1 {
			t.Fatalf("slots = %+v", slots)
		}
		s := slots.Slots[0]
		readable := strings.ToValidUTF8(hostile, "\ufffd")
		if s.ID != "top" || s.GAMUnitPath != "/1/News_b_/top" || s.DivID != "div:top" || len(s.Formats) != 2 ||
			s.Targeting["pos"][0] != readable || len(s.Targeting["zone"]) != 2 || s.Kind != "gpt" || s.DeadlineMS != 500 {
			t.Errorf("slot = %+v", s)
		}
		if c := slots.Client; c["gpt"] != "page" || c["gpt_url"] != "https://gpt.test/gpt.js" || c["init"] != "early" || !strings.HasPrefix(c["src"], "/_deckle/") {
			t.Errorf("client = %v", c)
		}
		var won bidsBlock
		a.block(t, "bids", &won)
		b := won["top"]
		if b["hb_pb"] != "2.50" || b["hb_bidder"] != "</script>" || b["w"] != 300.0 || b["h"] != 250.0 || b["burl"] != nil {
			t.Errorf("bid = %v", b)
		}
		adid, _ := b["hb_adid"].(string)
		if len(adid) != 22 {
			t.Errorf("hb_adid = %q", adid)
		}
		var markup map[string]string
		a.block(t, "markup", &markup)
		if len(markup) != 1 || markup[adid] != readable {
			t.Errorf("markup = %q, want %q", markup, readable)
		}
	})
}

// More slots than one page may have: the first ones of the file.
func TestSlotsOfOnePageAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var s setup
		for i := range template.MaxSlotsPerPage + 5 {
			s.slots = append(s.slots, slot(deckle.SlotID("s"+string(rune('A'+i%26))+string(rune('a'+i/26)))))
			s.patterns = append(s.patterns, template.Patterns{Include: []string{"/**"}})
		}
		w := newWorld(t, s, html(page), bids(0, "1"))
		var slots slotsBlock
		w.get(t.Context(), navigation("/x")).block(t, "slots", &slots)
		if len(slots.Slots) != template.MaxSlotsPerPage || slots.Slots[0].ID != "sAa" {
			t.Errorf("%d slots, first %q", len(slots.Slots), slots.Slots[0].ID)
		}
	})
}

// Where nobody has won, the page says so, and holds no markup.
func TestPageWithoutWinners(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{}, html(page), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
		a := w.get(t.Context(), navigation("/x"))
		var won bidsBlock
		if !a.block(t, "bids", &won) || len(won) != 0 || strings.Contains(a.body(), `data-deckle="markup"`) {
			t.Errorf("page = %q", a.body())
		}
	})
}

// Where the charset is not known before the page, the page's own word on it stays
// within the bytes in which browsers look for it.
func TestSlotsFollowTheCharset(t *testing.T) {
	const head, rest = `<!doctype html><html><head>`, `<meta charset="utf-8"><title>t</title></head><body></body></html>`
	for contentType, want := range map[string]string{
		"text/html; charset=utf-8":    rest,
		"text/html":                   "<title>",
		"text/html; charset=nonsense": "<title>",
	} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t, setup{}, answerWith(200, map[string]string{"Content-Type": contentType}, head+rest), bids(0, "1"))
			a := w.get(t.Context(), navigation("/x"))
			if got := a.after("slots"); !strings.HasPrefix(got, want) {
				t.Errorf("%s: after the slots stands %q", contentType, got)
			}
		})
	}
}
