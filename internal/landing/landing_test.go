package landing_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"deckle/internal/landing"
)

// A site is a server on this machine with the pages of a test.
type site struct {
	*httptest.Server
	asked atomic.Int32
}

func serve(t *testing.T, h http.HandlerFunc) *site {
	s := &site{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		h(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func local() *landing.Reader {
	return landing.New(landing.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
}

const ryokan = `<!doctype html><html lang="en"><head>
<meta charset="utf-8"><title>Ryokan &amp; Baths | Autumn</title>
<meta property="og:title" content="Nights under
 red maples"><meta property="og:description" content="Eleven houses in the hills above Kyoto">
<meta property="og:site_name" content="Ryokan Association"><meta name="theme-color" content="#9C3B2E">
<meta property="og:image" content="/img/cover.jpg"><meta property="og:image:alt" content="Maples over a stream">
<style>:root{--a:#1f5c5a;--b:#fff;--c:#1F5C5A} a{color:#abc} p{color:#123}</style></head>
<body><nav><h2>Menu</h2><p>This is a menu and nobody should find it in a magazine of theirs.</p></nav>
<h1>Welcome</h1><p>Too short.</p>
<h2>A bath <b>with</b> a<br>view</h2><img src="bath.png" alt="An open-air bath"><img src="/logo.png"><p>Hot springs that face the valley, open until midnight, with tea.</p><p>A second paragraph that is not the first of the section, so it stays out.</p>
<h2>Nothing below</h2>
<h3>Rooms</h3><p>Six mats and a window to the garden, and breakfast &lt;b&gt;in bed&lt;/b&gt;.
<script>document.write("<h2>never</h2>")</script>
<img src="data:image/png;base64,AAAA"><img src="javascript:alert(1)"><img src="tiny.gif" width="1" height="1"><img src="room.webp" data-src="room-large.webp" alt="">
</body></html>`

func TestPage(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/stay/autumn" {
			http.Redirect(w, r, "/stay/autumn", http.StatusFound)
			return
		}
		fmt.Fprint(w, ryokan)
	})
	got, err := local().Read(t.Context(), s.URL+"/go")
	if err != nil {
		t.Fatal(err)
	}
	bath := landing.Picture{URL: s.URL + "/stay/bath.png", Alt: "An open-air bath"}
	room := landing.Picture{URL: s.URL + "/stay/room-large.webp"}
	want := &landing.Page{
		URL: s.URL + "/stay/autumn", Site: "Ryokan Association",
		Title: "Nights under red maples", Description: "Eleven houses in the hills above Kyoto",
		Sections: []landing.Section{
			{Heading: "A bath with a view", Text: "Hot springs that face the valley, open until midnight, with tea.", Picture: &bath},
			{Heading: "Rooms", Text: "Six mats and a window to the garden, and breakfast <b>in bed</b>.", Picture: &room},
		},
		Pictures: []landing.Picture{{URL: s.URL + "/img/cover.jpg", Alt: "Maples over a stream"}, bath, room},
		Theme:    "#9c3b2e", Accent: "#1f5c5a",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("page (-want +got):\n%s", diff)
	}
}

func TestTextsOfPages(t *testing.T) {
	for name, tt := range map[string]struct {
		kind, page  string
		title, desc string
	}{
		"only a title":         {"text/html", "<title>A  tea\nhouse</title>", "A tea house", ""},
		"only a heading":       {"text/html", "<h1>Tea</h1>", "Tea", ""},
		"a paragraph":          {"text/html", "<title>Tea</title><p>We pick the first leaves of the year by hand, in May.</p>", "Tea", "We pick the first leaves of the year by hand, in May."},
		"Japanese, Shift_JIS":  {"text/html; charset=shift_jis", "<title>\x8d\x67\x97\x74</title>", "紅葉", ""},
		"a charset of its own": {"text/html", "<meta charset=shift_jis><title>\x8d\x67\x97\x74</title>", "紅葉", ""},
		"not UTF-8":            {"text/html; charset=utf-8", "<title>a\xff\xfeb</title>", "a\ufffd\ufffdb", ""},
		"hidden characters":    {"text/html; charset=utf-8", "<title>a\u202eb\u0001c\u200b</title>", "ab c", ""},
		"cut off":              {"text/html", "<title>Tea", "Tea", ""},
	} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", tt.kind)
			fmt.Fprint(w, tt.page)
		})
		got, err := local().Read(t.Context(), s.URL)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got.Title != tt.title || got.Description != tt.desc {
			t.Errorf("%s: %q, %q", name, got.Title, got.Description)
		}
	}
}

// What is not a page of the public web is refused, and says why in words that tell
// nothing of what there is.
func TestProblems(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch to := r.URL.Query().Get("to"); {
		case to != "":
			http.Redirect(w, r, to, http.StatusFound)
		case r.URL.Path == "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case r.URL.Path == "/empty":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<body><div id=app></div><script>render()</script>")
		case r.URL.Path == "/json":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"title":"<title>no</title>"}`)
		case r.URL.Path == "/untyped":
			w.Header()["Content-Type"] = nil
			fmt.Fprint(w, "<title>no</title>")
		default:
			http.NotFound(w, r)
		}
	})
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	untrusted.StartTLS()
	defer untrusted.Close()
	for address, want := range map[string]error{
		"":                                 landing.NoURL,
		"ftp://example.com/":               landing.NoURL,
		"file:///etc/passwd":               landing.NoURL,
		"javascript://%0aalert(1)":         landing.NoURL,
		"https://user:secret@example.com/": landing.NoURL,
		"https:///page":                    landing.NoURL,
		"https://exa mple.com/":            landing.NoURL,
		"https://a.example/" + strings.Repeat("a", 2048): landing.NoURL,
		closed.URL:                           landing.Unreachable,
		untrusted.URL:                        landing.NotTrusted,
		s.URL + "/loop":                      landing.Redirects,
		s.URL + "/?to=file:///etc/passwd":    landing.Redirects,
		s.URL + "/?to=http://u:p@127.0.0.1/": landing.Redirects,
		s.URL + "/?to=http://10.0.0.1/":      landing.NotPublic,
		s.URL + "/?to=http://169.254.169.254/latest/meta-data": landing.NotPublic,
		s.URL + "/empty":   landing.NothingThere,
		s.URL + "/json":    landing.NotHTML,
		s.URL + "/untyped": landing.NotHTML,
		s.URL + "/missing": landing.Problem("The page answers with status 404."),
	} {
		if _, err := local().Read(t.Context(), address); !errors.Is(err, want) {
			t.Errorf("%.80s: %v, want %v", address, err, want)
		}
	}
}

// An address within is refused as a literal in every spelling, as what a name resolves
// to, and as where a page redirects to; and nothing is sent there.
func TestOnlyPublicAddresses(t *testing.T) {
	secret := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<title>Secret</title>")
	})
	port := secret.Listener.Addr().(*net.TCPAddr).Port
	reader := landing.New(landing.Config{})
	for _, host := range []string{
		"127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0.0.0.0", "localhost", "[::1]", "[::ffff:127.0.0.1]", "[::]",
		"[::ffff:7f00:1]", "127.0.0.1.", "localhost.",
	} {
		_, err := reader.Read(t.Context(), fmt.Sprintf("http://%s:%d/", host, port))
		if !errors.Is(err, landing.NotPublic) && !errors.Is(err, landing.Unreachable) && !errors.Is(err, landing.NoURL) {
			t.Errorf("%s: %v", host, err)
		}
		if _, err := reader.Picture(t.Context(), fmt.Sprintf("http://%s:%d/a.png", host, port)); err == nil {
			t.Errorf("%s: a picture was read", host)
		}
	}
	for _, ip := range []string{
		"10.0.0.1", "172.16.0.1", "192.168.0.1", "169.254.169.254", "100.64.0.1", "[fd00::1]", "[fe80::1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]",
		"224.0.0.1", "255.255.255.255", "192.0.2.1", "[2001:db8::1]",
	} {
		if _, err := reader.Read(t.Context(), "http://"+ip+"/"); !errors.Is(err, landing.NotPublic) {
			t.Errorf("%s: %v", ip, err)
		}
	}
	if n := secret.asked.Load(); n != 0 {
		t.Errorf("%d requests came to an address within", n)
	}
}

// A name is judged by what it resolves to at the time of the connection.
func TestNamesThatPointWithin(t *testing.T) {
	for _, ip := range []string{"127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "fd00::1"} {
		reader := landing.New(landing.Config{Resolver: resolverOf(t, netip.MustParseAddr(ip))})
		if _, err := reader.Read(t.Context(), "http://rebound.example/"); !errors.Is(err, landing.NotPublic) {
			t.Errorf("a name of %s: %v", ip, err)
		}
	}
}

// On the public internet we are no scanner.
func TestOnlyPortsOfTheWeb(t *testing.T) {
	reader := landing.New(landing.Config{})
	for _, address := range []string{"http://1.1.1.1:22/", "https://[2606:4700::1111]:6379/"} {
		if _, err := reader.Read(t.Context(), address); !errors.Is(err, landing.NotPublic) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestSizes(t *testing.T) {
	bomb := zipped(t, append([]byte("<title>Big</title>"), make([]byte, 16<<20)...))
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/bomb": // 16 MiB behind 16 KiB
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb)
		case "/said.png":
			w.Header().Set("Content-Length", "99999999")
		default:
			_, _ = w.Write(bytes.Repeat([]byte{1}, landing.MaxPictureBytes+len(r.URL.Path)-1))
		}
	})
	if p, err := local().Read(t.Context(), s.URL+"/bomb"); err != nil || p.Title != "Big" {
		t.Errorf("%+v, %v", p, err)
	}
	if data, err := local().Picture(t.Context(), s.URL+"/"); err != nil || len(data) != landing.MaxPictureBytes {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	for _, path := range []string{"/a", "/said.png"} {
		if _, err := local().Picture(t.Context(), s.URL+path); !errors.Is(err, landing.NotAPicture) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func zipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Who asks may go away.
func TestContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	if _, err := local().Read(ctx, s.URL); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestClip(t *testing.T) {
	for _, tt := range []struct {
		text string
		n    int
		want string
	}{
		{"short", 10, "short"},
		{"one two three", 9, "one two…"},
		{"onetwothree", 6, "onetw…"},
		{"紅葉の宿で何もしない", 5, "紅葉の宿…"},
		{"one, two", 6, "one…"},
	} {
		if got := landing.Clip(tt.text, tt.n); got != tt.want || len([]rune(got)) > tt.n {
			t.Errorf("%q to %d: %q", tt.text, tt.n, got)
		}
	}
}

// Whatever a page is made of, what is taken from it is bounded, one line, and can be
// asked for.
func FuzzPage(f *testing.F) {
	f.Add([]byte(ryokan))
	f.Add([]byte(`<base href="//x"><svg/><p><h2><style>#fff<img src=//a>`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p := landing.Parse(data, "https://ryokan.example/a/b")
		for _, s := range p.Sections {
			for _, text := range []string{s.Heading, s.Text, p.Title, p.Description, p.Site} {
				if strings.ContainsAny(text, "\n\r\t\x00") || len([]rune(text)) > 2000 {
					t.Errorf("text %.100q", text)
				}
			}
		}
		if len(p.Sections) > 12 || len(p.Pictures) > 24 {
			t.Errorf("%d sections, %d pictures", len(p.Sections), len(p.Pictures))
		}
		for _, picture := range p.Pictures {
			if u, err := url.Parse(picture.URL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
				t.Errorf("picture %q", picture.URL)
			}
		}
		for _, c := range []string{p.Theme, p.Accent} {
			if c != "" && (len(c) != 7 || strings.Trim(c, "#0123456789abcdef") != "") {
				t.Errorf("colour %q", c)
			}
		}
	})
}
