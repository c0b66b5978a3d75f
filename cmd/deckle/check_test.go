package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"deckle/internal/sim"
)

func TestCheckReadsADeckleTOMLWithItsTemplates(t *testing.T) {
	files := map[string]string{
		"deckle.toml": `[[site]]
id = "a"
hosts = ["a.example"]
origin = "http://127.0.0.1:9000"
templates = "slots.toml"
[integrations.prebid]
`,
		"slots.toml": "[creative_opportunities]\ngam_network_id = 123\n",
	}
	got, err := printed(t, files, func(out *strings.Builder) error {
		c := checkCmd{Files: []string{"deckle.toml", "./slots.toml"}} // read once
		return c.Run(t.Context(), out)
	})
	want := `deckle.toml: note: consent.unknown_place: is gdpr and no place can be known: only readers with a TC string get exchange ads
slots.toml:2:18: error: creative_opportunities.gam_network_id: is a whole number, must be a string (write it in quotes)
    gam_network_id = 123
                     ^
1 error, 0 warnings
`
	if err != (exitError{1}) {
		t.Errorf("Run = %v, want exit status 1", err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCheckIsContentWithWarnings(t *testing.T) {
	got, err := printed(t, map[string]string{"x.toml": "[creative_opportunities]\nenabled = false\n"}, func(out *strings.Builder) error {
		return (&checkCmd{Files: []string{"x.toml"}}).Run(t.Context(), out)
	})
	if err != nil || !strings.HasSuffix(got, "0 errors, 1 warning\n") {
		t.Errorf("%v, %s", err, got)
	}
}

// With -probe every stored request is asked for once; the one that Prebid Server
// does not know is named.
func TestCheckProbes(t *testing.T) {
	w, err := sim.Start(t.Context(), sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	slot := func(id, stored string) string {
		return `[[slot]]
id = "` + id + `"
page_patterns = ["/` + id + `"]
formats = [{ width = 300, height = 250 }]
[slot.providers.prebid]
stored_request = "` + stored + `"
`
	}
	files := map[string]string{
		"deckle.toml": `[[site]]
id = "a"
hosts = ["a.example"]
origin = "http://127.0.0.1:9000"
templates = "slots.toml"
[integrations.prebid]
server_url = "` + w.PrebidURL + `"
[consent]
unknown_place = "other"
`,
		"slots.toml": "[creative_opportunities]\ngam_network_id = \"1\"\n" + slot("x", "side") + slot("y", "gone") + slot("z", "side"),
	}
	got, err := printed(t, files, func(out *strings.Builder) error {
		return (&checkCmd{Files: []string{"deckle.toml"}, Probe: true}).Run(t.Context(), out)
	})
	want := `a: slot y: answer 400 of Prebid Server: "Invalid request: Stored Imp with ID=\"gone\" not found."
0 errors, 0 warnings
`
	if err != (exitError{1}) || got != want {
		t.Errorf("%v, %s", err, got)
	}
	requests := w.Prebid.Requests()
	if len(requests) != 2 || !strings.Contains(string(requests[0].Body), `"test":1`) {
		t.Errorf("%d requests, the first %s; want two tests", len(requests), requests[0].Body)
	}
}
