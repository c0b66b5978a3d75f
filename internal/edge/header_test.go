package edge_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"deckle/internal/edge"
)

// answerWith is an origin that answers with this header and body, whatever is
// asked.
func answerWith(status int, header map[string]string, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		for k, v := range header {
			w.Header().Set(k, v)
		}
		for k, v := range header { // a second line of the same name
			if name, ok := strings.CutPrefix(k, "+"); ok {
				w.Header().Del(k)
				w.Header().Add(name, v)
			}
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// Answers that nothing may go into pass as they came, with the origin's caching.
func TestUntouched(t *testing.T) {
	type header = map[string]string
	for name, c := range map[string]struct {
		status int
		header header
	}{
		"404":                     {404, nil},
		"500":                     {500, nil},
		"204":                     {204, nil},
		"301":                     {301, header{"Location": "https://elsewhere.test/"}},
		"json":                    {200, header{"Content-Type": "application/json"}},
		"xhtml":                   {200, header{"Content-Type": "application/xhtml+xml"}},
		"no type that parses":     {200, header{"Content-Type": "text/html; charset"}},
		"two types":               {200, header{"Content-Type": "text/html", "+Content-Type": "text/plain"}},
		"unicode is utf-16":       {200, header{"Content-Type": "text/html; charset=unicode"}},
		"ucs-2 is utf-16":         {200, header{"Content-Type": `text/html; charset=" UCS-2"`}},
		"csISO2022JP":             {200, header{"Content-Type": "text/html; charset=csISO2022JP"}},
		"second disposition":      {200, header{"Content-Disposition": "inline", "+Content-Disposition": "attachment"}},
		"utf-16":                  {200, header{"Content-Type": "text/html; charset=UTF-16LE"}},
		"iso-2022-jp":             {200, header{"Content-Type": "text/html; charset=ISO-2022-JP"}},
		"no-transform":            {200, header{"Cache-Control": "public, No-Transform"}},
		"attachment":              {200, header{"Content-Disposition": `Attachment; filename="x.html"`}},
		"an unknown coding":       {200, header{"Content-Encoding": "deflate"}},
		"two codings":             {200, header{"Content-Encoding": "gzip, gzip"}},
		"second policy forbids":   {200, header{"Content-Security-Policy": "script-src * 'unsafe-inline', script-src 'none'"}},
		"two codings, two lines":  {200, header{"Content-Encoding": "gzip", "+Content-Encoding": "br"}},
		"policy in a second line": {200, header{"Content-Security-Policy": "img-src *", "+Content-Security-Policy": "script-src 'none'"}},
		"policy, reported":        {200, header{"Content-Security-Policy-Report-Only": "default-src 'none'"}},
		"policy, empty list":      {200, header{"Content-Security-Policy": "script-src"}},
		"policy, no types":        {200, header{"Content-Security-Policy": "trusted-types 'none'"}},
		"policy, empty types":     {200, header{"Content-Security-Policy": "trusted-types"}},
		"policy, sandboxed":       {200, header{"Content-Security-Policy": "sandbox allow-same-origin"}},
		"policy, sandbox":         {200, header{"Content-Security-Policy": "sandbox allow-scripts"}},
		"policy, first directive": {200, header{"Content-Security-Policy": "script-src 'none'; script-src 'self' 'unsafe-inline'"}},
		"policy in capitals":      {200, header{"Content-Security-Policy": "SCRIPT-SRC 'NONE'"}},
		"policy for elements":     {200, header{"Content-Security-Policy": "script-src 'self' 'unsafe-inline'; script-src-elem 'none'"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				if c.header == nil {
					c.header = header{}
				}
				if c.header["Cache-Control"] == "" {
					c.header["Cache-Control"] = "public, max-age=60"
				}
				c.header["Etag"], c.header["X-Own"] = `"1"`, "kept"
				body := page
				if c.status == 204 {
					body = ""
				}
				w := newWorld(t, setup{}, answerWith(c.status, c.header, body), hang)
				a := w.get(t.Context(), navigation("/x"))
				if a.status != c.status || a.body() != body || a.ended != 0 {
					t.Errorf("got %d %q after %v", a.status, a.body(), a.ended)
				}
				for k, v := range c.header {
					if got := a.header.Values(strings.TrimPrefix(k, "+")); !slices.Contains(got, v) {
						t.Errorf("%s = %q, want %q", k, got, v)
					}
				}
			})
		})
	}
}

// Which statuses make a page: two, and with error_pages those of errors.
func TestStatusesThatLetUsIn(t *testing.T) {
	for status, c := range map[int]struct{ always, errorPages bool }{
		200: {true, true}, 203: {true, true}, 201: {false, false}, 301: {false, false},
		400: {false, true}, 404: {false, true}, 500: {false, true}, 599: {false, true}, 600: {false, false},
	} {
		for errorPages, want := range map[bool]bool{false: c.always, true: c.errorPages} {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{site: func(s *edge.Site) { s.ErrorPages = errorPages }}, answerWith(status, nil, page), bids(0, "1"))
				a := w.get(t.Context(), navigation("/x"))
				if got := strings.Contains(a.body(), "data-deckle"); got != want || a.status != status {
					t.Errorf("%d, error_pages %v: injected %v, status %d", status, errorPages, got, a.status)
				}
			})
		}
	}
}

// After its body has changed, a page's header is true of what is written.
func TestHeaderTruth(t *testing.T) {
	bubble(t, func(t *testing.T) {
		gone := map[string]string{
			"Etag": `"1"`, "Last-Modified": "Mon, 30 Nov 2026 10:00:00 GMT", "Expires": "Mon, 30 Nov 2026 11:00:00 GMT", "Age": "5",
			"Surrogate-Control": "max-age=60", "Surrogate-Key": "a b", "CDN-Cache-Control": "max-age=60",
			"X-Accel-Expires": "60", "Edge-Control": "max-age=60", "X-LiteSpeed-Cache-Control": "max-age=60",
			"Cloudflare-CDN-Cache-Control": "max-age=60", "Akamai-Surrogate-Control": "max-age=9",
			"Content-Length": "", "Accept-Ranges": "bytes", "Content-MD5": "x", "Digest": "x", "Repr-Digest": "x", "Content-Digest": "x",
			"Alt-Svc": `h3=":443"`, "Keep-Alive": "timeout=5", "Cache-Control": "public, max-age=60", "X-Hop": "1", "Connection": "X-Hop",
		}
		sent := map[string]string{"Vary": "Accept-Language", "X-Own": "kept", "Set-Cookie": "a=b; Domain=.origin.test; Path=/"}
		for k, v := range gone {
			sent[k] = v
		}
		sent["Content-Length"] = strconv.Itoa(len(page))
		w := newWorld(t, setup{site: func(s *edge.Site) { s.Preconnect = []string{"https://ads.test"}; s.ServerTiming = true }},
			answerWith(200, sent, page), bids(0, "1"))
		a := w.get(t.Context(), navigation("/x"))
		for k := range gone {
			if got := a.header.Get(k); got != "" && k != "Cache-Control" {
				t.Errorf("%s = %q survived", k, got)
			}
		}
		for k, want := range map[string]string{
			"Cache-Control": "private, no-store", "Vary": "Accept-Language", "X-Own": "kept",
			"Content-Type": "text/html; charset=utf-8", "Set-Cookie": "a=b; Domain=www.test; Path=/",
		} {
			if got := a.header.Get(k); got != want {
				t.Errorf("%s = %q, want %q", k, got, want)
			}
		}
		if got, want := strings.Join(a.header["Link"], ", "), "<https://gpt.test>; rel=preconnect, <https://ads.test>; rel=preconnect"; got != want {
			t.Errorf("Link = %q, want %q", got, want)
		}
		timing := a.header.Get("Server-Timing") + ", " + a.header.Get(http.TrailerPrefix+"Server-Timing")
		for _, part := range []string{`deckle;desc="run"`, "match;dur=", "origin;dur=", "hold;dur=", "auction;dur=", `prebid;dur=`} {
			if !strings.Contains(timing, part) {
				t.Errorf("Server-Timing %q lacks %s", timing, part)
			}
		}
	})
}

// What is asked of the origin can only be answered with the whole page, in a
// coding that we read; and the origin learns who asked from those we trust.
func TestOriginRequest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var got *http.Request
		origin := func(w http.ResponseWriter, r *http.Request) { got = r; html(page)(w, r) }
		trust := setup{config: func(c *edge.Config) { c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")} }}
		w := newWorld(t, trust, origin, bids(0, "1"))
		r := navigation("/a//b/%2e%2e/c%2Fd;x?q=1&&r=%zz")
		for k, v := range map[string]string{
			"If-None-Match": `"1"`, "If-Modified-Since": "x", "Range": "bytes=0-1", "If-Range": "x",
			"Accept-Encoding": "zstd, br;q=0.9, GZIP;q=0.5, *;q=0", "Cookie": "a=b", "X-Forwarded-For": "203.0.113.9, 192.0.2.200",
			"X-Forwarded-Proto": "https", "X-Forwarded-Host": "www.test", "Forwarded": "for=evil", "Connection": "X-Hop", "X-Hop": "1",
		} {
			r.Header.Set(k, v)
		}
		r.Host = "internal.lb"
		a := w.get(t.Context(), r)
		if a.status != 200 || got == nil {
			t.Fatalf("status %d", a.status)
		}
		if want := "/a//b/%2e%2e/c%2Fd;x?q=1&&r=%zz"; got.RequestURI != want {
			t.Errorf("request line %q, want %q", got.RequestURI, want)
		}
		for k, want := range map[string]string{
			"If-None-Match": "", "If-Modified-Since": "", "Range": "", "If-Range": "", "X-Hop": "", "Forwarded": "",
			"Accept-Encoding": "zstd, br;q=0.9, gzip;q=0.5", "Cookie": "a=b", "X-Forwarded-For": "203.0.113.9, 192.0.2.200, 192.0.2.7",
			"X-Forwarded-Proto": "https", "X-Forwarded-Host": "www.test",
		} {
			if v := got.Header.Get(k); v != want {
				t.Errorf("%s = %q, want %q", k, v, want)
			}
		}
		if got.Host != "www.test" {
			t.Errorf("Host = %q", got.Host)
		}
	})
}

func TestForwardedFromStrangersIsNotBelieved(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var got *http.Request
		w := newWorld(t, setup{}, func(w http.ResponseWriter, r *http.Request) { got = r; html(page)(w, r) }, bids(0, "1"))
		for _, path := range []string{"/x", "/plain"} { // both ways to the origin
			r := navigation(path)
			r.Header.Set("X-Forwarded-For", "1.2.3.4")
			r.Header.Set("X-Forwarded-Host", "evil.test")
			r.Header.Set("X-Forwarded-Proto", "https")
			w.get(t.Context(), r)
			if got.Header.Get("X-Forwarded-For") != "192.0.2.7" || got.Header.Get("X-Forwarded-Proto") != "http" || got.Header.Get("X-Forwarded-Host") != "www.test" {
				t.Errorf("%s: forwarded %v", path, got.Header)
			}
		}
	})
}

// An origin that answers 304 or 206 though nothing of that kind was asked is
// asked once more.
func TestUnaskedPartialAnswersAreFetchedAgain(t *testing.T) {
	for _, status := range []int{304, 206} {
		bubble(t, func(t *testing.T) {
			asked := 0
			origin := func(w http.ResponseWriter, r *http.Request) {
				if asked++; asked == 1 {
					w.WriteHeader(status)
					return
				}
				html(page)(w, r)
			}
			w := newWorld(t, setup{}, origin, bids(0, "1"))
			a := w.get(t.Context(), navigation("/x"))
			if asked != 2 || a.status != 200 || withoutOurs(a.body()) != page {
				t.Errorf("asked %d times, got %d %q", asked, a.status, a.body())
			}
		})
	}
}

// The answer that was asked for again is not read on.
func TestUnaskedPartialAnswerIsLeft(t *testing.T) {
	bubble(t, func(t *testing.T) {
		gone := make(chan struct{})
		asked := false
		origin := func(w http.ResponseWriter, r *http.Request) {
			if asked {
				html(page)(w, r)
				return
			}
			asked = true
			defer close(gone)
			w.WriteHeader(206)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
		a := newWorld(t, setup{}, origin, bids(0, "1")).get(t.Context(), navigation("/x"))
		<-gone
		if withoutOurs(a.body()) != page {
			t.Errorf("page = %q", a.body())
		}
	})
}

// A client whose gpt.js is on the site itself needs no connection to it.
func TestNoPreconnectToOurselves(t *testing.T) {
	for _, url := range []string{"", "/gpt.js"} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t, setup{site: func(s *edge.Site) { s.Client.GPTURL = url }}, html(page), bids(0, "1"))
			if got := w.get(t.Context(), navigation("/x")).header["Link"]; got != nil {
				t.Errorf("%q: Link = %q", url, got)
			}
		})
	}
}

// A request with a body cannot be sent twice.
func TestPartialAnswerToABodyStays(t *testing.T) {
	bubble(t, func(t *testing.T) {
		asked := 0
		w := newWorld(t, setup{}, func(w http.ResponseWriter, r *http.Request) { asked++; answerWith(206, nil, page)(w, r) }, hang)
		r := navigation("/x")
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader("q=1")), 3
		if a := w.get(t.Context(), r); asked != 1 || a.status != 206 || a.body() != page {
			t.Errorf("asked %d times, got %d %q", asked, a.status, a.body())
		}
	})
}

func TestRedirectsToTheOriginHostBecomePublic(t *testing.T) {
	hosts := func(s *edge.Site) { s.Hosts, s.HostHeader = []string{"www.test", "test", "m.test"}, "test" }
	for location, want := range map[string]string{
		"https://test/x":             "https://test/x", // the site's own: else a loop between two of its hosts
		"https://m.test/x":           "https://m.test/x",
		"http://origin.test/x?y":     "http://www.test/x?y",
		"http://origin.test.evil/x":  "http://origin.test.evil/x",
		"https://xorigin.test/x":     "https://xorigin.test/x",
		"/relative":                  "/relative",
		"http://www.test/other-port": "http://www.test/other-port",
		"http://origin.test:9090/x":  "http://origin.test:9090/x", // something else on that machine
		"http://ORIGIN.test/x":       "http://www.test/x",
	} {
		for _, path := range []string{"/x", "/plain"} {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{site: hosts}, answerWith(302, map[string]string{"Location": location}, ""), hang)
				if got := w.get(t.Context(), navigation(path)).header.Get("Location"); got != want {
					t.Errorf("%s: %s became %s, want %s", path, location, got, want)
				}
			})
		}
	}
}

// Redirects and cookies of the origin's host become those of the host that the
// reader asked, as the reader sees it.
func TestPublicHostOfAnswers(t *testing.T) {
	site := func(s *edge.Site) { s.Hosts, s.HostHeader = []string{"www.test", "m.test"}, "backend.test" }
	trust := func(c *edge.Config) { c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")} }
	want := []string{
		"a=1; Domain=www.test", "b=2; Path=/; Domain=www.test; Secure", "c=3; domain=m.test", "d=4; Domain=.other.test", "e=Domain=origin.test", "f=6; Domain=",
	}
	origin := func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Set-Cookie"] = []string{
			"a=1; Domain=.origin.test", "b=2; Path=/; domain = Backend.test; Secure", "c=3; domain=m.test", "d=4; Domain=.other.test", "e=Domain=origin.test", "f=6; Domain=",
		}
		w.Header().Set("Location", "http://backend.test:8080/x")
		w.WriteHeader(http.StatusFound)
	}
	eachWay(t, func(t *testing.T, path string) {
		r := navigation(path)
		r.Host = "www.test:8443"
		r.Header.Set("X-Forwarded-Proto", "https")
		a := newWorld(t, setup{site: site, config: trust}, origin, hang).get(t.Context(), r)
		if got := a.header["Set-Cookie"]; !slices.Equal(got, want) {
			t.Errorf("Set-Cookie = %q, want %q", got, want)
		}
		if got := a.header.Get("Location"); got != "https://www.test:8443/x" {
			t.Errorf("Location = %s", got)
		}
	})
}

// A domain that is the site's own stays, even if the origin goes by it.
func TestCookiesOfTheSitesOwnHostsStay(t *testing.T) {
	eachWay(t, func(t *testing.T, path string) {
		site := func(s *edge.Site) { s.Hosts, s.HostHeader = []string{"www.test", "test"}, "test" }
		w := newWorld(t, setup{site: site}, answerWith(200, map[string]string{"Set-Cookie": "a=1; Domain=.test"}, page), hang)
		if got := w.get(t.Context(), navigation(path)).header.Get("Set-Cookie"); got != "a=1; Domain=.test" {
			t.Errorf("Set-Cookie = %q", got)
		}
	})
}

// Hints are for readers who get the client; the origin's own hints and timings
// stay.
func TestHintsOfThePage(t *testing.T) {
	for agent, want := range map[string][]string{
		"Mozilla/5.0": {"</a.css>; rel=preload", "<https://gpt.test>; rel=preconnect"},
		"":            {"</a.css>; rel=preload"},
	} {
		bubble(t, func(t *testing.T) {
			own := map[string]string{"Link": "</a.css>; rel=preload", "Server-Timing": "app;dur=5"}
			w := newWorld(t, setup{site: func(s *edge.Site) { s.ServerTiming = true }}, answerWith(200, own, page), bids(0, "1"))
			r := navigation("/x")
			r.Header.Set("User-Agent", agent)
			a := w.get(t.Context(), r)
			if got := a.header["Link"]; !slices.Equal(got, want) {
				t.Errorf("%q: Link = %q, want %q", agent, got, want)
			}
			if got := a.header["Server-Timing"]; len(got) != 2 || got[0] != "app;dur=5" {
				t.Errorf("Server-Timing = %q", got)
			}
		})
	}
}

func zipped(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, s)
	_ = z.Close()
	return b.String()
}

func unzipped(t *testing.T, s string) (string, error) {
	t.Helper()
	z, err := gzip.NewReader(strings.NewReader(s))
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(z)
	return string(b), err
}

// A coding comes out as it went in, with both holes filled.
func TestCodings(t *testing.T) {
	for name, body := range map[string]string{
		"gzip": zipped(headPart) + zipped(bodyPart+lastPart), // two members, as RFC 1952 allows
		"br":   edge.Encoded("br", page),
		"zstd": edge.Encoded("zstd", headPart) + edge.Encoded("zstd", bodyPart+lastPart), // two frames
	} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t, setup{}, answerWith(200, map[string]string{"Content-Encoding": name}, body), bids(0, "1"))
			r := navigation("/x")
			r.Header.Set("Accept-Encoding", "gzip, br, zstd")
			a := w.get(t.Context(), r)
			text, err := edge.Decoded(name, a.body())
			if err != nil || a.header.Get("Content-Encoding") != name || withoutOurs(text) != page {
				t.Errorf("%s: got %q, %v, header %v", name, text, err, a.header)
			}
			if !strings.Contains(text, `data-deckle="bids"`) {
				t.Errorf("%s: no bids in %q", name, text)
			}
		})
	}
}

// What an origin has written so far is with the reader, in every coding, while the
// origin still thinks; and so are slots and bids.
func TestCodingsAreStreamed(t *testing.T) {
	for _, name := range []string{"gzip", "br", "zstd"} {
		bubble(t, func(t *testing.T) {
			origin := func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/html; charset=utf-8")
				w.Header().Set("Content-Encoding", name)
				z := edge.NewEncoder(name, w)
				for _, part := range []string{"<head></head>", "<body><p>text</p>"} {
					_, _ = io.WriteString(z, part)
					_ = z.Flush()
					_ = http.NewResponseController(w).Flush()
					wait(time.Second)
				}
				_, _ = io.WriteString(z, "</body>")
				_ = z.Close()
			}
			w := newWorld(t, setup{}, origin, bids(300*ms, "1"))
			a := w.get(t.Context(), navigation("/x"))
			for text, at := range map[string]time.Duration{
				"<head>": 0, `data-deckle="slots"`: 0, `data-deckle="bids"`: 300 * ms, "</head>": 300 * ms, "text</p>": time.Second, "</body>": 2 * time.Second,
			} {
				if got := whenDecoded(name, a, text); got != at {
					t.Errorf("%s: %s was with the reader after %v, want %v", name, text, got, at)
				}
			}
		})
	}
}

// whenDecoded is answer.when for what is encoded.
func whenDecoded(coding string, a *answer, text string) time.Duration {
	for i := range a.parts {
		so := answer{parts: a.parts[:i+1]}
		if decoded, _ := edge.Decoded(coding, so.body()); strings.Contains(decoded, text) {
			return a.parts[i].at
		}
	}
	return -1
}

// The older name of the coding, and a coding that is none.
func TestOtherNamesOfCodings(t *testing.T) {
	for coding, body := range map[string]string{"x-gzip": zipped(page), "GZIP": zipped(page), "identity": page} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t, setup{}, answerWith(200, map[string]string{"Content-Encoding": coding}, body), bids(0, "1"))
			a := w.get(t.Context(), navigation("/x"))
			text := a.body()
			if coding != "identity" {
				text, _ = unzipped(t, text)
			}
			if !strings.Contains(text, `data-deckle="bids"`) || withoutOurs(text) != page || a.header.Get("Content-Encoding") != coding {
				t.Errorf("%s: %q, header %v", coding, text, a.header)
			}
		})
	}
}

// Servers pad, and browsers do not mind.
func TestGzipWithTrailingBytes(t *testing.T) {
	for _, trailing := range []string{"\x00\x00\x00\x00", "garbage", "\x1f"} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t, setup{}, answerWith(200, map[string]string{"Content-Encoding": "gzip"}, zipped(page)+trailing), bids(0, "1"))
			r := navigation("/x")
			r.Header.Set("Accept-Encoding", "gzip")
			a := w.get(t.Context(), r)
			text, err := unzipped(t, a.body())
			if err != nil || a.aborted || withoutOurs(text) != page {
				t.Errorf("%q: %v, aborted %v", trailing, err, a.aborted)
			}
		})
	}
}

// A page that ends too early, or grows out of all proportion, does not look whole
// to its reader.
func TestBrokenBodiesAreCutOffVisibly(t *testing.T) {
	type body struct{ coding, body, length string }
	cases := map[string]body{"shorter than it says": {"", page, "5000"}}
	for _, coding := range []string{"gzip", "br", "zstd"} {
		whole := edge.Encoded(coding, page)
		cases[coding+" cut off"] = body{coding, whole[:len(whole)-12], ""}
		cases[coding+" cut at its end"] = body{coding, whole[:len(whole)-1], ""}
		cases[coding+" corrupt"] = body{coding, whole[:len(whole)/2] + "00000000" + whole[len(whole)/2+8:], ""}
		cases[coding+", not at all"] = body{coding, page, ""}
		cases[coding+", a bomb"] = body{coding, edge.Encoded(coding, "<!doctype html><body>"+strings.Repeat(" ", 12<<20)), ""}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				header := map[string]string{"Content-Encoding": c.coding, "Content-Length": c.length}
				for k, v := range header {
					if v == "" {
						delete(header, k)
					}
				}
				w := newWorld(t, setup{}, answerWith(200, header, c.body), bids(0, "1"))
				r := navigation("/x")
				r.Header.Set("Accept-Encoding", "gzip, br, zstd")
				a := w.get(t.Context(), r)
				if !a.aborted {
					t.Errorf("looks whole: %d bytes", len(a.body()))
				}
				if _, err := edge.Decoded(c.coding, a.body()); c.coding != "" && a.body() != "" && err == nil {
					t.Error("is a whole body")
				}
				if len(a.body()) > 1<<20 {
					t.Errorf("%d bytes of a bomb passed on", len(a.body()))
				}
			})
		})
	}
}

func TestOriginDown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{site: func(s *edge.Site) { s.Origin.Host = "down.test" }}, html(page), hang)
		for _, path := range []string{"/x", "/plain"} {
			a := w.get(t.Context(), navigation(path))
			if a.status != 502 || a.header.Get("Cache-Control") != "no-store" || !strings.Contains(a.body(), "did not answer") || a.ended != 0 {
				t.Errorf("%s: got %d %v %q after %v", path, a.status, a.header, a.body(), a.ended)
			}
		}
	})
}

func TestHostsAndOwnPaths(t *testing.T) {
	bubble(t, func(t *testing.T) {
		asked := ""
		w := newWorld(t, setup{}, func(w http.ResponseWriter, r *http.Request) { asked = r.RequestURI; html(page)(w, r) }, bids(0, "1"))
		for path, own := range map[string]bool{
			"/_deckle/x": true, "/_deckle/../x": true, "/exact": true, "/exact?q": true,
			"/exact/": false, "//exact": false, "/%65xact": false, "/x/../exact": false, "/_deckl%65/x": false, "/Exact": false,
		} {
			asked = ""
			a := w.get(t.Context(), navigation(path))
			if got := a.status == 404 && asked == ""; got != own {
				t.Errorf("%s is ours: %v, want %v", path, got, own)
			}
			if !own && asked != path {
				t.Errorf("%s reached the origin as %s", path, asked)
			}
		}
		for host, known := range map[string]bool{
			"www.test": true, "WWW.test:8080": true, "www.test.": true, "www.test:": true, "other.test": false, "": false,
			"www.test:80.evil.com": false, "www.test:80;,x=()": false, "[www.test]": false, "[::1]": false, "[::1": false,
		} {
			r := navigation("/x")
			r.Host = host
			if a := w.get(t.Context(), r); (a.status == 200) != known || !known && a.status != 421 {
				t.Errorf("host %q: %d", host, a.status)
			}
		}
	})
}

// A site may be at an address.
func TestHostsThatAreAddresses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{site: func(s *edge.Site) { s.Hosts = []string{"2001:db8::1", "192.0.2.1"} }}, html(page), bids(0, "1"))
		for host, known := range map[string]bool{
			"[2001:db8::1]": true, "[2001:DB8:0::1]:8080": true, "192.0.2.1:80": true,
			"2001:db8::1": false, "[2001:db8::1": false, "[2001:db8::1]x": false, "[2001:db8::2]": false, "[192.0.2.1]x:80": false,
		} {
			r := navigation("/x")
			r.Host = host
			if a := w.get(t.Context(), r); (a.status == 200) != known {
				t.Errorf("%s: %d", host, a.status)
			}
		}
	})
}
