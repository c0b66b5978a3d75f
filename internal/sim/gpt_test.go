package sim_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"deckle/internal/sim"
	"deckle/internal/sim/browser"
)

// Each case is a page's script in testdata/gpt.js and what it must find: the
// behaviours that Google's reference promises, through both interfaces where both
// have them.
func TestGPTDouble(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("testdata/gpt.js")
	if err != nil {
		t.Fatal(err)
	}
	b := browser.Start(t)
	for _, older := range []bool{false, true} {
		w := start(t, sim.Options{AdServer: sim.AdServerOptions{OlderInterface: older}})
		html := `<!doctype html><title>t</title><script>window.googletag = {cmd: []};` + string(script) + `</script>` +
			`<script src="` + w.GPTURL() + `"></script><div id="a"></div><div id="b"></div><div id="c"></div>`
		w.Publisher.Handle("/", sim.Page{Chunks: []string{html}})
		page := b.Open(t, w.PublisherURL, browser.Desktop())
		names := browser.Eval[[]string](page, `Object.keys(cases)`)
		if len(names) == 0 {
			t.Fatal("no cases")
		}
		for _, name := range names {
			if older && strings.Contains(name, "setConfig") {
				continue
			}
			t.Run(name, func(t *testing.T) {
				page.Navigate(w.PublisherURL)
				result := browser.Eval[struct{ Got, Want json.RawMessage }](page, `run(`+quote(t, name)+`)`)
				if diff := cmp.Diff(string(result.Want), string(result.Got)); diff != "" {
					t.Errorf("older interface %t (-want +got):\n%s", older, diff)
				}
			})
		}
		for _, e := range page.Errors() {
			if !strings.Contains(e, "on purpose") {
				t.Errorf("console: %s", e)
			}
		}
	}
}

func quote(t *testing.T, s string) string {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
