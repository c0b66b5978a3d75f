package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"deckle/internal/config"
)

// The other one of the two files gets one answer, not advice about its keys.
func TestMistakenFiles(t *testing.T) {
	dir := t.TempDir()
	main, slots := filepath.Join(dir, "a.toml"), filepath.Join(dir, "b.toml")
	if err := errors.Join(
		os.WriteFile(main, []byte("[server]\nlisten = \":80\"\n[[site]]\nid = \"a\"\n"), 0o600),
		os.WriteFile(slots, []byte("[creative_opportunities]\n[[slot]]\nid = \"a\"\n"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	_, problems := config.Load(slots)
	if len(problems) != 1 || problems[0].Msg != "this is a template file" {
		t.Errorf("a template file as deckle.toml: %v", problems)
	}
	_, problems = config.LoadTemplate(main, config.SiteDefaults{})
	if len(problems) != 1 || problems[0].Msg != "this is a deckle.toml" {
		t.Errorf("a deckle.toml as template file: %v", problems)
	}
}
