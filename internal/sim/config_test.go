package sim_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deckle"
	"deckle/internal/config"
	"deckle/internal/sim"
)

// The demo's two files are valid.
func TestDemoFilesAreValid(t *testing.T) {
	w := start(t, sim.Options{})
	dir := t.TempDir()
	file := filepath.Join(dir, "deckle.toml")
	write(t, filepath.Join(dir, "creative-opportunities.toml"), sim.Template())
	write(t, file, w.Config(sim.ConfigOptions{
		Listen: "127.0.0.1:8080", AdminListen: "127.0.0.1:8081", Hosts: []string{"127.0.0.1", "localhost"},
		TemplateFile: "creative-opportunities.toml", DataDir: filepath.Join(dir, "data"),
	}))
	cfg, problems := config.Load(file)
	for _, p := range problems {
		if !strings.Contains(p.String(), "warning: site[0].gpt_url") { // http: is fit for trying out alone
			t.Error(p.String())
		}
	}
	if cfg == nil {
		t.Fatal("no configuration")
	}
	if cfg.Consent.UnknownPlace != "other" || cfg.Sites[0].GPTURL != w.GPTURL() {
		t.Errorf("unknown_place = %q, gpt_url = %q", cfg.Consent.UnknownPlace, cfg.Sites[0].GPTURL)
	}
	tmpl, problems := config.LoadTemplate(cfg.Sites[0].Templates, config.SiteDefaults{})
	for _, p := range problems {
		t.Error(p.String())
	}
	if tmpl == nil {
		t.Fatal("no template")
	}
	stored := sim.StoredImps()
	for _, s := range tmpl.Slots {
		if s.Kind == deckle.Magazine {
			continue // no bidder is asked
		}
		if _, ok := stored[string(s.ID)]; !ok {
			t.Errorf("slot %s has no stored imp", s.ID)
		}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
