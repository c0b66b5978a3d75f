package edge_test

import (
	"net/http"
	"strings"
	"testing"
)

// A request target means one thing only (RFC 9112 section 3.2): what reaches the
// origin is what was matched.
func TestRequestTargets(t *testing.T) {
	for target, c := range map[string]struct {
		origin string // what the origin gets; "" for nothing
		slots  bool
	}{
		"/x":                        {"/x", true},
		"/x?":                       {"/x?", true},
		"/x?a=//b?c":                {"/x?a=//b?c", true},
		"//x":                       {"//x", true},
		"//evil.test/x":             {"//evil.test/x", true},
		"//x//y%2Fz/..?q":           {"//x//y%2Fz/..?q", true},
		"http://www.test/x?y":       {"/x?y", true},
		"HTTP://www.test/x":         {"/x", true},
		"http://www.test":           {"/", true},
		"http://www.test?q":         {"/?q", true},
		"http://www.test//x":        {"//x", true},
		"http://www.test/plain?/x":  {"/plain?/x", false},
		"http://other.test/x":       {"/x", true}, // its Host is www.test all the same
		"http://www.test/_deckle/x": {"", false},
		"http://www.test/exact":     {"", false},
	} {
		bubble(t, func(t *testing.T) {
			got := ""
			w := newWorld(t, setup{}, func(w http.ResponseWriter, r *http.Request) { got = r.RequestURI; html(page)(w, r) }, bids(0, "1"))
			r := navigation("/")
			r.RequestURI = target
			a := w.get(t.Context(), r)
			if got != c.origin {
				t.Errorf("%s reached the origin as %q, want %q", target, got, c.origin)
			}
			if slots := strings.Contains(a.body(), `data-deckle="slots"`); slots != c.slots {
				t.Errorf("%s has slots: %v", target, slots)
			}
		})
	}
}

// We are no proxy for the world, and guess no target.
func TestWhatIsNoRequestForASite(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{}, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("the origin was asked for %s", r.RequestURI) }, hang)
		for _, c := range []struct{ method, target string }{
			{"CONNECT", "www.test:443"},
			{"CONNECT", "/x"},
			{"CONNECT", "/_deckle/x"},
			{"GET", ""},
			{"GET", "x"},
			{"GET", "x/y"},
			{"GET", "mailto:x"},
			{"GET", "http:/x"},
			{"GET", "http://"},
			{"GET", "?x"},
			{"GET", "*x"},
		} {
			r := navigation("/")
			r.Method, r.RequestURI = c.method, c.target
			a := w.get(t.Context(), r)
			if a.status != 400 || a.header.Get("Cache-Control") != "no-store" || a.aborted {
				t.Errorf("%s %q: %d %v", c.method, c.target, a.status, a.header)
			}
		}
	})
}

// OPTIONS * is the origin's to answer.
func TestOptionsOfTheServer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		got := ""
		w := newWorld(t, setup{}, func(w http.ResponseWriter, r *http.Request) { got = r.Method + " " + r.RequestURI; w.WriteHeader(204) }, hang)
		r := navigation("/")
		r.Method, r.RequestURI = "OPTIONS", "*"
		if a := w.get(t.Context(), r); a.status != 204 || got != "OPTIONS *" {
			t.Errorf("%d, origin got %q", a.status, got)
		}
	})
}

// Own paths that are prefixes own what is below, exact ones only themselves.
func TestOwnPathsWhateverTheMethod(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{}, func(http.ResponseWriter, *http.Request) { t.Error("the origin was asked") }, hang)
		for _, method := range []string{"GET", "HEAD", "POST", "OPTIONS"} {
			for _, path := range []string{"/_deckle/", "/_deckle/a/b?c", "/exact", "/exact?d"} {
				r := navigation(path)
				r.Method, r.Host = method, "unknown.test" // on every host
				if a := w.get(t.Context(), r); a.status != 404 {
					t.Errorf("%s %s: %d", method, path, a.status)
				}
			}
		}
	})
}

// The origin is asked for what the reader takes and we can read; where nothing goes
// in, for whatever the reader takes.
func TestAcceptEncoding(t *testing.T) {
	for name, c := range map[string]struct {
		accept []string
		page   string
	}{
		"none":                   {nil, "identity"},
		"empty":                  {[]string{""}, "identity"},
		"browsers":               {[]string{"gzip, deflate, br, zstd"}, "gzip, br, zstd"},
		"nothing that we read":   {[]string{"compress, dcz, deflate"}, "identity"},
		"identity":               {[]string{"identity"}, "identity"},
		"identity as well":       {[]string{"gzip, identity;q=0.5"}, "gzip, identity;q=0.5"},
		"never identity":         {[]string{"identity;q=0, br"}, "identity;q=0, br"},
		"nothing at all":         {[]string{"identity;q=0"}, "identity"},
		"any case":               {[]string{"GZip, BR;Q=0.5"}, "gzip, br;q=0.5"},
		"its older name":         {[]string{"x-gzip"}, "gzip"},
		"anything":               {[]string{"*"}, "gzip, br, zstd"},
		"anything with weight":   {[]string{"br, *;q=0.1"}, "br, gzip;q=0.1, zstd;q=0.1"},
		"in a second line":       {[]string{"br", "gzip"}, "br, gzip"},
		"weight zero":            {[]string{"gzip;q=0"}, "identity"},
		"weight 0.000":           {[]string{"gzip; q=0.000"}, "identity"},
		"weight with spaces":     {[]string{"gzip ; q = 0"}, "identity"},
		"weight above zero":      {[]string{"gzip;q=0.001"}, "gzip;q=0.001"},
		"weight one":             {[]string{"gzip;q=1.0"}, "gzip;q=1.0"},
		"weight ten":             {[]string{"gzip;q=10"}, "gzip"}, // no weight at all, and not zero
		"no number":              {[]string{"gzip;q=x, br;q=NaN, zstd;q=0.1234567"}, "gzip, br, zstd"},
		"anything but":           {[]string{"*;q=0"}, "identity"},
		"zero, in a second line": {[]string{"br", "gzip;q=0"}, "br"},
		"refused by name":        {[]string{"gzip;q=0, *"}, "br, zstd"},
		"refused by name, after": {[]string{"*, br", "gzip;q=0"}, "br, zstd"},
		"one of its two names":   {[]string{"gzip, x-gzip;q=0"}, "gzip"},
		"the other of them":      {[]string{"x-gzip;q=0, gzip"}, "gzip"},
		"a capital Q":            {[]string{"gzip;Q=0"}, "identity"},
		"another's weight":       {[]string{"br;q=0, gzip"}, "gzip"},
		"a name that is longer":  {[]string{"gzipped"}, "identity"},
		"twice":                  {[]string{"gzip, gzip;q=0.5"}, "gzip"},
	} {
		bubble(t, func(t *testing.T) {
			var got http.Header
			w := newWorld(t, setup{}, func(w http.ResponseWriter, r *http.Request) { got = r.Header; html(page)(w, r) }, bids(0, "1"))
			for path, want := range map[string]string{"/x": c.page, "/plain": strings.Join(c.accept, "|")} {
				r := navigation(path)
				if c.accept != nil {
					r.Header["Accept-Encoding"] = c.accept
				}
				w.get(t.Context(), r)
				if got := strings.Join(got["Accept-Encoding"], "|"); got != want {
					t.Errorf("%s: %s: Accept-Encoding = %q, want %q", name, path, got, want)
				}
			}
		})
	}
}
