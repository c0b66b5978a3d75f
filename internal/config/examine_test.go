package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// What holds one reader's bids is for no shared cache, and for one view.
func TestHTMLCache(t *testing.T) {
	for value, valid := range map[string]bool{
		"private, no-store": true, "no-store": true, "private, max-age=0": true, "private, no-cache": true, "Private, Max-Age=0, must-revalidate": true,
		"public": false, "max-age=0": false, "private, max-age=600": false, "private, s-maxage=1": false, "private, public": false,
		"private, max-age=0, stale-while-revalidate=60": false, "private, immutable": false, "private, max-age": false, "private; x": false, "": false,
	} {
		file := filepath.Join(t.TempDir(), "deckle.toml")
		text := "[[site]]\nid = \"a\"\nhosts = [\"a.test\"]\norigin = \"http://b.test\"\ntemplates = \"t.toml\"\nhtml_cache = \"" + value + "\"\n[integrations.prebid]\nserver_url = \"http://c.test\"\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, problems := config.Load(file)
		if got := len(problems.Errors()) == 0; got != valid {
			t.Errorf("%q: %v", value, problems)
		}
	}
}

// A certificate comes from files or by ACME, and HTTP/3 needs one.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"cert.pem", "key.pem"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const files, acme = "tls_cert = \"cert.pem\"\ntls_key = \"key.pem\"\n", "acme_hosts = [\"www.example.com\"]\n"
	for server, want := range map[string]string{
		"":                        "",
		files:                     "",
		acme:                      "",
		files + "http3 = true":    "",
		acme + "http3 = true":     "",
		files + acme:              "server.acme_hosts: tls_cert is there already",
		"http3 = true":            "server.http3: HTTP/3 is TLS always",
		`tls_cert = "cert.pem"`:   "server.tls_cert: tls_cert and tls_key belong together",
		`tls_key = "key.pem"`:     "server.tls_cert: tls_cert and tls_key belong together",
		`acme_hosts = ["a b"]`:    "server.acme_hosts",
		`acme_hosts = ["*.a.de"]`: "server.acme_hosts",
	} {
		file := filepath.Join(dir, "deckle.toml")
		text := "[[site]]\nid = \"a\"\nhosts = [\"a.test\"]\norigin = \"http://b.test\"\ntemplates = \"t.toml\"\n[integrations.prebid]\nserver_url = \"http://c.test\"\n[server]\n" + server + "\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, problems := config.Load(file)
		got := ""
		for _, p := range problems.Errors() {
			if strings.HasPrefix(p.Key, "server") {
				got = p.Key + ": " + p.Msg
			}
		}
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", server, got, want)
		}
	}
}

// A certificate authority asks back at one port only.
func TestPortOfACME(t *testing.T) {
	for listen, warned := range map[string]bool{":443": false, "192.0.2.1:443": false, ":8443": true, ":8080": true} {
		file := filepath.Join(t.TempDir(), "deckle.toml")
		text := "[server]\nlisten = \"" + listen + "\"\nacme_hosts = [\"www.example.com\"]\n[[site]]\nid = \"a\"\nhosts = [\"a.test\"]\norigin = \"http://b.test\"\ntemplates = \"t.toml\"\n[integrations.prebid]\nserver_url = \"http://c.test\"\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, problems := config.Load(file)
		got := slices.ContainsFunc(problems, func(p config.Problem) bool { return p.Key == "server.acme_hosts" })
		if got != warned || len(problems.Errors()) > 0 {
			t.Errorf("%s: %v, want a warning: %v", listen, problems, warned)
		}
	}
}

// A mode and what is said about the engine belong together.
func TestStoreMode(t *testing.T) {
	for store, want := range map[string]string{
		``:                  "",
		`mode = "external"`: "store.mode: is external, and no engine is named",
		"mode = \"external\"\nexternal = { urls = [\"nats://127.0.0.1:4222\"] }": "",
		`external = { urls = ["nats://127.0.0.1:4222"] }`:                        "store.external: has no effect",
		`mode = "clustered"`: "store.mode: not built yet: a store of more than one node",
	} {
		file := filepath.Join(t.TempDir(), "deckle.toml")
		text := "[[site]]\nid = \"a\"\nhosts = [\"a.test\"]\norigin = \"http://b.test\"\ntemplates = \"t.toml\"\n[integrations.prebid]\nserver_url = \"http://c.test\"\n[store]\n" + store + "\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, problems := config.Load(file)
		got := ""
		for _, p := range problems {
			if strings.HasPrefix(p.Key, "store") {
				got = p.Key + ": " + p.Msg
			}
		}
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", store, got, want)
		}
	}
}
