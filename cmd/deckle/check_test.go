package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
		return c.Run(out)
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
		return (&checkCmd{Files: []string{"x.toml"}}).Run(out)
	})
	if err != nil || !strings.HasSuffix(got, "0 errors, 1 warning\n") {
		t.Errorf("%v, %s", err, got)
	}
}
