package sim

import (
	_ "embed"
	"strings"
	"text/template"
)

//go:embed demo/creative-opportunities.toml
var demoTemplate string

//go:embed demo/deckle.toml
var demoConfig string

// Template is the creative-opportunities.toml of the magazine: a slot for every ad
// container of its pages.
func Template() string { return demoTemplate }

// ConfigOptions are what [World.Config] cannot know.
type ConfigOptions struct {
	Listen, AdminListen string   // host:port
	Hosts               []string // of the public listener, without ports
	TemplateFile        string
	DataDir             string
	PasswordFile        string // of the dashboard; "" for none
}

// Config is a deckle.toml that puts Deckle in front of the world: readers without a
// TC string get bids (unknown_place = "other").
func (w *World) Config(o ConfigOptions) string {
	quote := func(s string) string { return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"` }
	t := template.Must(template.New("deckle.toml").Funcs(template.FuncMap{"q": quote}).Parse(demoConfig))
	var b strings.Builder
	data := struct {
		ConfigOptions
		PublisherURL, PrebidURL, GPTURL string
	}{o, w.PublisherURL, w.PrebidURL, w.GPTURL()}
	if err := t.Execute(&b, data); err != nil {
		panic(err) // our own template, tested
	}
	return b.String()
}

// Articles are the paths of the magazine's articles, the latest first.
func Articles() []string {
	var paths []string
	for _, a := range articles() {
		paths = append(paths, a.Path())
	}
	return paths
}

// SampleArticle is the path of an article with every kind of slot: one that goes to
// the house, since its only bid is low, and others that go to the exchange.
const SampleArticle = "/2026/11/night-ferry/"
