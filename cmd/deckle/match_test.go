package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// printed runs one of deckle's commands that only prints, in a folder with files.
func printed(t *testing.T, files map[string]string, run func(out *strings.Builder) error) (string, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.WriteFile(filepath.Clean(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	err := run(&out)
	return out.String(), err
}

const matchFile = `
[creative_opportunities]
gam_network_id = "123"
[[slot]]
id = "top"
gam_unit_path = "/{network_id}/{section}/top"
page_patterns = ["/news{,/**}", "/20**"]
exclude = ["/news/sponsored{,/**}"]
formats = [{ width = 300, height = 250 }]
[[slot]]
id = "back_cover"
kind = "magazine"
page_patterns = ["/20**"]
formats = [{ width = 300, height = 250 }]
`

func TestMatchSaysWhichSlotsAURLHas(t *testing.T) {
	got, err := printed(t, map[string]string{"slots.toml": matchFile}, func(out *strings.Builder) error {
		c := matchCmd{File: "slots.toml", URLs: []string{
			"https://www.example.com/2026/11/article?utm=1#top", "/news/sponsored/x", "/nothing", "/News", "/news/",
		}}
		return c.Run(out)
	})
	want := `/2026/11/article
  slot  top         page_patterns[1] "/20**"  /123/2026/top
  slot  back_cover  page_patterns[0] "/20**"  magazine
/news/sponsored/x
  excluded  top  page_patterns[0] "/news{,/**}"  but exclude[0] "/news/sponsored{,/**}"
  no slot: the page is passed on as it is
/nothing
  no slot: the page is passed on as it is
/News
  near miss  top  page_patterns[0] "/news{,/**}"  only the case differs; patterns are case-sensitive
  no slot: the page is passed on as it is
/news/
  slot  top  page_patterns[0] "/news{,/**}"  /123/news/top
`
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMatchOfAnInvalidFilePrintsItsProblems(t *testing.T) {
	got, err := printed(t, map[string]string{"slots.toml": "[creative_opportunities]\nspaa = true\n"}, func(out *strings.Builder) error {
		return (&matchCmd{File: "slots.toml", URLs: []string{"/"}}).Run(out)
	})
	if err != (exitError{1}) || !strings.HasPrefix(got, "slots.toml:2:1: error: creative_opportunities.spaa: ") {
		t.Errorf("%v, %s", err, got)
	}
}

// What is neither a path nor a URL would only be guessed at.
func TestMatchRefusesWhatIsNoURL(t *testing.T) {
	file := filepath.Join(t.TempDir(), "creative-opportunities.toml")
	if err := os.WriteFile(file, []byte(slots("", "top")), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, u := range []string{"news/", "yukiblog.jp/2026/x", ""} {
		var out strings.Builder
		if err := (&matchCmd{File: file, URLs: []string{u}}).Run(&out); err == nil {
			t.Errorf("%q is taken for %s", u, out.String())
		}
	}
}
