package track_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"deckle/internal/journal"
	"deckle/internal/store"
	"deckle/internal/store/memory"
	"deckle/internal/token"
	"deckle/internal/track"
)

// What is journaled is what the token says, and what only an impression has is only
// in it.
func TestEventsAreWhatTheTokenSays(t *testing.T) {
	inBubble(t, func(n *node, _ *memory.Log) {
		n.want("imp", n.ask("GET", n.beacon(token.Imp, filled(1)), ""), 204, "")
		n.want("view", n.ask("POST", n.beacon(token.View, filled(1))+"&dogeared=1", "ignored"), 204, "")
		pinned := filled(2)
		pinned.Dogeared, pinned.Price, pinned.Leases, pinned.Category = true, 0, nil, ""
		n.want("pinned imp", n.ask("GET", n.beacon(token.Imp, pinned), ""), 204, "")
		n.want("click", n.ask("GET", n.beacon(token.Click, pinned), ""), 204, "")
		n.want("cta", n.ask("GET", "/v1/cta?dogeared=1&"+n.beacon(token.CTA, filled(1))[len("/v1/cta?"):], ""), 204, "")
		fold := n.foldToken()
		n.want("fold", n.ask("POST", track.DogearPath, dogear("fold", fold)), 204, "")
		n.want("unfold", n.ask("POST", track.DogearPath, dogear("unfold", fold)), 204, "")
		n.want("unfold without a token", n.ask("POST", track.DogearPath, dogear("unfold", "")), 204, "")

		base := journal.Event{
			Site: "blog", URL: "https://blog.example/hikes", Slot: "sidebar-1",
			Creative: "ryokan", Version: 3, Campaign: "autumn", Advertiser: "inn",
		}
		event := func(k journal.Kind, change func(*journal.Event)) journal.Event {
			e := base
			e.Kind, e.At = k, time.Now().UTC()
			change(&e)
			return e
		}
		first := func(e *journal.Event) { e.RequestID, e.Category = "0000000000000001", "653" }
		second := func(e *journal.Event) { e.RequestID, e.Dogeared = "0000000000000002", true }
		got := n.events()
		want := []journal.Event{
			event(journal.Impression, func(e *journal.Event) {
				first(e)
				e.Price, e.Leases = 1_460, []string{"n1-7", "n1-12"}
			}),
			event(journal.View, first), // what the browser adds does not matter
			event(journal.Impression, second),
			event(journal.Click, second),
			event(journal.CTA, first),
			event(journal.Fold, func(e *journal.Event) { e.RequestID, e.Page = got[5].RequestID, 2 }),
			event(journal.Unfold, func(e *journal.Event) { e.RequestID, e.Verified = got[5].RequestID, true }),
			event(journal.Unfold, func(e *journal.Event) { e.RequestID, e.URL, e.Version = got[7].RequestID, "", 0 }),
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateApproxTime(time.Second)); diff != "" {
			t.Error(diff)
		}
		if got[7].RequestID == got[5].RequestID {
			t.Error("an unfold without a token has the id of the fold")
		}
	})
}

// The event of a pin is free even where a token that we have signed says otherwise.
func TestPinIsFree(t *testing.T) {
	inBubble(t, func(n *node, _ *memory.Log) {
		pinned := filled(1)
		pinned.Dogeared = true
		for _, suffix := range []string{"", "&dogeared=1", "&dogeared=0"} {
			n.want(suffix, n.ask("GET", n.beacon(token.Imp, pinned)+suffix, ""), 204, "")
		}
		if got := n.events(); len(got) != 1 || got[0].Price != 0 || got[0].Leases != nil || !got[0].Dogeared {
			t.Errorf("%+v", got)
		}
	})
}

func TestStatuses(t *testing.T) {
	inBubble(t, func(n *node, _ *memory.Log) {
		forged := token.NewRing(make([]byte, 32), nil)
		others := slot()
		others.Site = "others"
		shop := slot()
		shop.Site = "shop"
		edit := func(from, to string) string { return strings.Replace(dogear("fold", n.foldToken()), from, to, 1) }
		imp := n.ring.MintBeacon(token.Imp, filled(1), time.Now())
		const path = track.DogearPath
		for name, c := range map[string]struct {
			method, target, body string
			status               int
			reason, field        string
		}{
			"no token":               {"GET", "/v1/imp", "", 403, "bad_format", ""},
			"empty token":            {"GET", "/v1/imp?t=", "", 403, "bad_format", ""},
			"broken escape":          {"GET", "/v1/imp?t=%zz." + imp, "", 403, "bad_format", ""},
			"other parameter":        {"GET", "/v1/imp?x=" + imp, "", 403, "bad_format", ""},
			"garbage":                {"GET", "/v1/view?t=a.b", "", 403, "bad_payload", ""},
			"forged":                 {"GET", "/v1/imp?t=" + forged.MintBeacon(token.Imp, filled(1), time.Now()), "", 403, "bad_signature", ""},
			"imp token at click":     {"GET", "/v1/click?t=" + imp, "", 403, "bad_signature", ""},
			"imp token at view":      {"GET", "/v1/view?t=" + imp, "", 403, "bad_signature", ""},
			"fold token at imp":      {"GET", "/v1/imp?t=" + n.foldToken(), "", 403, "bad_payload", ""},
			"unknown site":           {"GET", "/v1/imp?t=" + n.ring.MintBeacon(token.Imp, token.Beacon{Slot: others, RequestID: filled(1).RequestID}, time.Now()), "", 403, "bad_signature", ""},
			"HEAD":                   {"HEAD", "/v1/imp?t=" + imp, "", 405, "method", ""},
			"DELETE":                 {"DELETE", "/v1/cta?t=" + imp, "", 405, "method", ""},
			"preflight of a beacon":  {"OPTIONS", "/v1/imp", "", 204, "", ""},
			"preflight of a fold":    {"OPTIONS", path, "", 204, "", ""},
			"GET of a fold":          {"GET", path, "", 405, "method", ""},
			"no JSON":                {"POST", path, "fold", 400, "bad_json", ""},
			"no object":              {"POST", path, "[]", 400, "wrong_field", ""},
			"name twice":             {"POST", path, edit(`"pub"`, `"pub":"shop","pub"`), 400, "bad_json", "pub"},
			"no pub":                 {"POST", path, edit(`"pub"`, `"x"`), 400, "missing_field", "pub"},
			"no url":                 {"POST", path, edit(`"url"`, `"x"`), 400, "missing_field", "url"},
			"no creative":            {"POST", path, edit(`"creativeId"`, `"x"`), 400, "missing_field", "creativeId"},
			"no slot":                {"POST", path, edit(`"slotId"`, `"x"`), 400, "missing_field", "slotId"},
			"no event":               {"POST", path, edit(`"event"`, `"x"`), 400, "missing_field", "event"},
			"unknown event":          {"POST", path, edit(`"fold"`, `"crumple"`), 400, "wrong_field", "event"},
			"fold without a token":   {"POST", path, dogear("fold", ""), 400, "missing_field", "foldToken"},
			"null token":             {"POST", path, edit(`"foldToken":`, `"foldToken":null,"x":`), 400, "missing_field", "foldToken"},
			"page as text":           {"POST", path, edit(`"page":2`, `"page":"2"`), 400, "wrong_field", "page"},
			"page below the cover":   {"POST", path, edit(`"page":2`, `"page":-1`), 400, "wrong_field", "page"},
			"long id":                {"POST", path, edit(`"sidebar-1"`, `"`+strings.Repeat("s", 65)+`"`), 400, "wrong_field", "slotId"},
			"long url":               {"POST", path, edit(`"https:`, `"`+strings.Repeat("u", 2_049)), 400, "wrong_field", "url"},
			"unknown pub":            {"POST", path, edit(`"blog"`, `"nobody"`), 404, "unknown_pub", "pub"},
			"unknown pub, unfold":    {"POST", path, strings.Replace(dogear("unfold", ""), `"blog"`, `"nobody"`, 1), 404, "unknown_pub", "pub"},
			"bad format":             {"POST", path, dogear("fold", "abc"), 403, "bad_format", ""},
			"bad payload":            {"POST", path, dogear("fold", "a.b"), 403, "bad_payload", ""},
			"other slot":             {"POST", path, edit(`"sidebar-1"`, `"sidebar-2"`), 403, "slot_mismatch", ""},
			"other creative":         {"POST", path, edit(`"ryokan"`, `"onsen"`), 403, "creative_mismatch", ""},
			"forged fold":            {"POST", path, dogear("fold", forged.MintFold(slot(), time.Now())), 403, "bad_signature", ""},
			"token of another site":  {"POST", path, dogear("fold", n.ring.MintFold(shop, time.Now())), 403, "bad_signature", ""},
			"fold at another site":   {"POST", path, edit(`"blog"`, `"shop"`), 403, "bad_signature", ""},
			"imp token as fold":      {"POST", path, dogear("fold", imp), 403, "bad_payload", ""},
			"too large":              {"POST", path, edit(`"https:`, `"`+strings.Repeat("u", 16<<10)), 413, "too_large", ""},
			"slot with a control":    {"POST", path, strings.Replace(dogear("unfold", ""), `"sidebar-1"`, `"a\u0000"`, 1), 400, "wrong_field", "slotId"},
			"slot of 256 bytes":      {"POST", path, strings.Replace(dogear("unfold", ""), `"sidebar-1"`, `"`+strings.Repeat("\U0001F56E", 64)+`"`, 1), 400, "wrong_field", "slotId"},
			"slot with a space":      {"POST", path, strings.Replace(dogear("unfold", ""), `"sidebar-1"`, `"sidebar 1"`, 1), 400, "wrong_field", "slotId"},
			"fold with such a slot":  {"POST", path, edit(`"sidebar-1"`, `"サイド"`), 400, "wrong_field", "slotId"},
			"unfold of what is not":  {"POST", path, strings.Replace(dogear("unfold", ""), `"ryokan"`, `"never"`, 1), 204, "", ""},
			"unfold at another pub":  {"POST", path, strings.Replace(dogear("unfold", ""), `"blog"`, `"others"`, 1), 204, "", ""},
			"slot that is no string": {"POST", path, edit(`"sidebar-1"`, `1`), 400, "wrong_field", "slotId"},
		} {
			got := n.ask(c.method, c.target, c.body)
			n.want(name, got, c.status, c.reason)
			if field := fmt.Sprintf(`"field":%q`, c.field); c.field != "" && !strings.Contains(got.body, field) {
				t.Errorf("%s: %v, want %s", name, got, field)
			}
		}
		for _, media := range []string{"application/x-www-form-urlencoded", "text/html", "application/json; charset=latin1"} {
			header := http.Header{"Content-Type": {media}}
			n.want(media, n.askAs(reader, header, "POST", path, dogear("fold", n.foldToken())), 415, "media_type")
		}
		if got := n.events(); len(got) > 0 {
			t.Errorf("what was refused is in the journal: %+v", got)
		}
		if n.counted("unfold", "unknown") != 2 || n.counted("imp", "bad_signature") != 2 || n.counted("fold", "bad_signature") != 3 {
			t.Error("refusals are not counted")
		}
		if n.said.Len() > 0 {
			t.Errorf("strangers make us talk: %s", n.said.String())
		}
	})
}

// A node that is not ready promises nothing, and says so to every page.
func TestNotReady(t *testing.T) {
	inBubble(t, func(n *node, _ *memory.Log) {
		asleep := true
		n.config.Ready = func() bool { return !asleep }
		n.serve()
		targets := map[string]string{track.DogearPath: dogear("unfold", "")}
		for e := range map[token.Event]bool{token.Imp: true, token.View: true, token.Click: true, token.CTA: true} {
			targets[n.beacon(e, filled(1))] = ""
		}
		for target, body := range targets {
			n.want(target, n.ask("POST", target, body), 503, "unavailable")
			n.want(target, n.ask("OPTIONS", target, ""), 204, "")
			n.want(target, n.ask("PUT", target, ""), 405, "method")
		}
		asleep = false
		n.config.Catalog = catalogUnread
		n.serve()
		for target, body := range targets {
			n.want(target, n.ask("POST", target, body), 503, "unavailable")
		}
		if len(n.events()) > 0 {
			t.Error("something was journaled")
		}
	})
}

// Tokens live exactly as long as the contract says, in whole minutes of the clock of
// whoever minted them.
func TestWindows(t *testing.T) {
	inBubble(t, func(n *node, _ *memory.Log) {
		const minute = time.Minute
		request := 0
		for _, c := range []struct {
			event    token.Event
			age      time.Duration // of the token, negative: it is ahead
			accepted bool
		}{
			{token.Imp, 5 * minute, true},
			{token.Imp, 6 * minute, false},
			{token.Imp, -2 * minute, true},
			{token.Imp, -3 * minute, false},
			{token.View, 5 * minute, true},
			{token.View, 6 * minute, false},
			{token.Click, 32 * minute, true},
			{token.Click, 33 * minute, false},
			{token.Click, -2 * minute, true},
			{token.Click, -3 * minute, false},
			{token.CTA, 32 * minute, true},
			{token.CTA, 33 * minute, false},
		} {
			request++
			text := n.ring.MintBeacon(c.event, filled(request), time.Now().Add(-c.age))
			got := n.ask("GET", "/v1/"+string(c.event)+"?t="+text, "")
			if c.accepted {
				n.want(fmt.Sprint(c), got, 204, "")
			} else {
				n.want(fmt.Sprint(c), got, 403, "stale")
			}
		}
		for age, accepted := range map[time.Duration]bool{30 * minute: true, 31 * minute: false, -30 * minute: true, -31 * minute: false} {
			got := n.ask("POST", track.DogearPath, dogear("fold", n.ring.MintFold(slot(), time.Now().Add(-age))))
			if accepted {
				n.want(fmt.Sprint("fold ", age), got, 204, "")
			} else {
				n.want(fmt.Sprint("fold ", age), got, 403, "stale")
			}
		}
	})
}

// A bookmark may be removed whatever has become of its token, creative and campaign.
func TestUnfoldIsAlwaysPossible(t *testing.T) {
	inBubble(t, func(n *node, _ *memory.Log) {
		n.delete("creative", "ryokan")
		n.delete("campaign", "autumn")
		old := n.ring.MintFold(slot(), time.Now().Add(-24*time.Hour))
		for _, text := range []string{"", old, "no token at all", n.foldToken()} {
			n.want("unfold", n.ask("POST", track.DogearPath, dogear("unfold", text)), 204, "")
		}
		var verified []bool
		ids := map[string]bool{}
		for _, e := range n.events() {
			verified = append(verified, e.Verified)
			ids[e.RequestID] = true
			if e.Creative != "ryokan" || e.Site != "blog" || e.Campaign != "autumn" || e.Advertiser != "inn" {
				t.Errorf("%+v", e)
			}
		}
		if !slices.Equal(verified, []bool{false, false, false, true}) || len(ids) != 4 {
			t.Errorf("verified %v, %d ids", verified, len(ids))
		}
	})
}

// However often and however written: a token counts once, and an answer is a promise.
func TestReplays(t *testing.T) {
	inBubble(t, func(n *node, _ *memory.Log) {
		fold, imp := n.foldToken(), n.ring.MintBeacon(token.Imp, filled(1), time.Now())
		for i := range 1_000 {
			n.want("fold", n.askAs(many(i), browser, "POST", track.DogearPath, dogear("fold", fold)), 204, "")
			n.want("imp", n.askAs(many(i), browser, "GET", "/v1/imp?t="+imp, ""), 204, "")
			n.want("escaped", n.askAs(many(i), browser, "GET", "/v1/imp?t="+escaped(imp, i), ""), 204, "")
		}
		accepted := 0
		for i, text := range spellings(fold) {
			switch got := n.askAs(many(i), browser, "POST", track.DogearPath, dogear("fold", text)); {
			case got.status == 204:
				accepted++
			case got.status != 403:
				t.Errorf("spelling %d: %v", i, got)
			}
		}
		for i, text := range spellings(imp) {
			if got := n.askAs(many(i), browser, "GET", "/v1/imp?t="+strings.ReplaceAll(escaped(text, 0), "+", "%20"), ""); got.status != 403 {
				t.Errorf("spelling %d of a beacon: %v", i, got)
			}
		}
		if accepted > 0 {
			t.Errorf("%d other spellings were taken", accepted)
		}
		if got, want := n.kinds(), map[journal.Kind]int{journal.Fold: 1, journal.Impression: 1}; !cmp.Equal(got, want) {
			t.Errorf("journaled %v, want %v", got, want)
		}
		if n.counted("fold", "counted") != 1 || n.counted("fold", "repeat") != 999 {
			t.Error("repeats are not counted as such")
		}
		if c := n.report(); c.Folds != 1 || c.Organic.Impressions != 1 || c.Unbilled.Duplicate != 0 {
			t.Errorf("report %+v", c)
		}
	})
}

// many is the address of one of many readers.
func many(n int) string { return fmt.Sprintf("203.0.%d.%d", n/250, n%250+1) }

// spellings are a thousand other texts that some decoder would take for the same
// token.
func spellings(text string) []string {
	payload, mac, _ := strings.Cut(text, ".")
	raw, err := base64.RawURLEncoding.DecodeString(mac)
	if err != nil {
		panic(err)
	}
	list := []string{
		text + "=", payload + "=." + mac, payload + "==." + mac + "==", text + ".", "." + text, text + "\n", " " + text, text + " ",
		payload + "." + base64.StdEncoding.EncodeToString(raw), payload + "." + base64.URLEncoding.EncodeToString(raw),
		strings.ToUpper(text), strings.ToLower(text), payload + ". " + mac, text + "#", text + "&", text + "\x00",
	}
	for i := 1; len(list) < 900; i++ { // line breaks, which encoding/base64 ignores
		at := i * 7 % len(text)
		list = append(list, text[:at]+strings.Repeat("\n", 1+i/len(text))+text[at:], text[:at]+"\r\n"+strings.Repeat("\r", i%13)+text[at:])
	}
	// The last character of each part has bits that decode to nothing.
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	for i := range len(alphabet) {
		for _, other := range []string{payload[:len(payload)-1] + alphabet[i:i+1] + "." + mac, payload + "." + mac[:len(mac)-1] + alphabet[i:i+1]} {
			if other != text {
				list = append(list, other)
			}
		}
	}
	return list
}

// Those who come while the first is on its way wait for it and share its fate.
func TestDuplicatesAtOnce(t *testing.T) {
	inBubble(t, func(n *node, log *memory.Log) {
		for i, c := range []struct {
			fault  memory.Fault
			status int
			took   time.Duration
			events int
		}{
			{memory.Fault{Delay: 900 * time.Millisecond}, 204, 900 * time.Millisecond, 1},
			{memory.Fault{Delay: 900 * time.Millisecond, Refuse: store.ErrFull}, 503, 900 * time.Millisecond, 1},
			{memory.Fault{}, 204, 0, 2},
		} {
			log.Fail(c.fault)
			target := n.beacon(token.Imp, filled(i))
			start := time.Now()
			answers := make(chan answer, 50)
			for i := range 50 {
				go func() { answers <- n.askAs(many(i), browser, "GET", target, "") }()
			}
			for range 50 {
				if got := <-answers; got.status != c.status {
					t.Fatalf("%v, want %d", got, c.status)
				}
			}
			if took := time.Since(start); took < c.took || took > c.took+10*time.Millisecond {
				t.Errorf("took %v, want %v", took, c.took)
			}
			if got := len(n.events()); got != c.events || log.Pending() > 0 {
				t.Errorf("%d events, want %d", got, c.events)
			}
		}
	})
}

// Who hangs up while the event is on its way takes nothing from those who wait for
// the same one, nor from what has happened.
func TestReaderHangsUp(t *testing.T) {
	inBubble(t, func(n *node, log *memory.Log) {
		log.Fail(memory.Fault{Delay: 500 * time.Millisecond})
		target := n.beacon(token.Imp, filled(1))
		var statuses [3]chan int
		var hangUps [3]func()
		for i := range statuses {
			statuses[i] = make(chan int, 1)
			r, hangUp := request(target)
			hangUps[i] = hangUp
			defer hangUp()
			go func() { statuses[i] <- n.send(reader, r).status }()
			synctest.Wait() // the first one is writing, the others wait for it
		}
		hangUps[0]()
		hangUps[2]()
		if got := <-statuses[2]; got != 503 { // nobody reads it
			t.Errorf("waiting, and gone: %d", got)
		}
		if a, b := <-statuses[0], <-statuses[1]; a != 204 || b != 204 {
			t.Errorf("writing, and gone: %d; waiting: %d", a, b)
		}
		if got := len(n.events()); got != 1 {
			t.Errorf("%d events", got)
		}
	})
}
