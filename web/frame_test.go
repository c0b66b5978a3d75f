package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"deckle/internal/sim/browser"
	"deckle/web"
)

func TestFrameHeader(t *testing.T) {
	for method, status := range map[string]int{"GET": 200, "HEAD": 200, "POST": 405} {
		w := httptest.NewRecorder()
		web.Frame().ServeHTTP(w, httptest.NewRequest(method, web.FramePath, nil))
		if w.Code != status || (w.Body.Len() > 0) != (method != "HEAD") {
			t.Errorf("%s: status %d, %d bytes", method, w.Code, w.Body.Len())
		}
		if csp := w.Header().Get("Content-Security-Policy"); status == 200 && (!strings.HasPrefix(csp, "sandbox allow-scripts ") || strings.Contains(csp, "same-origin")) {
			t.Errorf("%s: Content-Security-Policy %q", method, csp)
		}
	}
}

// TestFrame shows an ad in a page whose own policy forbids everything that ads do:
// the frame is not under it. The ad runs, and reaches nothing of the site; a second
// ad, and one that another window sends, change nothing.
func TestFrame(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.Handle(web.FramePath, web.Frame())
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Set-Cookie", "session=1")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'nonce-a'; frame-src 'self'")
		fmt.Fprintf(w, `<!doctype html><script nonce="a">
			window.said = [];
			addEventListener('message', ({data, source}) => {
				if (data.deckleFrame) {
					source.postMessage({deckleAd: document.getElementById('ad').textContent.replace('<\\/', '</')}, '*');
					source.postMessage({deckleAd: 'another'}, '*');
				} else said.push(data);
			});
		</script>
		<script nonce="a" id="ad" type="text/plain"><p>An ad</p><script>
			const reached = {};
			for (const [name, reach] of Object.entries({
				cookie: () => document.cookie, storage: () => localStorage.length, page: () => parent.document.title,
			})) try { reached[name] = String(reach()); } catch { reached[name] = null; }
			parent.postMessage({text: document.body.innerText, origin: self.origin, reached}, '*');
		<\/script></script>
		<iframe src="%s"></iframe>`, web.FramePath)
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	p := browser.Start(t).Open(t, srv.URL, browser.Desktop())
	p.WaitFor(`said.length > 0`)
	said := browser.Eval[struct {
		Text    string             `json:"text"`
		Origin  string             `json:"origin"`
		Reached map[string]*string `json:"reached"`
	}](p, `said[0]`)
	if said.Text != "An ad" || said.Origin != "null" || len(said.Reached) != 3 {
		t.Errorf("the ad says %+v", said)
	}
	for name, got := range said.Reached {
		if got != nil {
			t.Errorf("the ad reached the site's %s: %q", name, *got)
		}
	}
}
