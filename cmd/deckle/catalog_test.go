package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"deckle/internal/catalog"
	"deckle/internal/dashboard"
	"deckle/internal/sim"
	"deckle/internal/store/memory"
)

// managed is a server with an empty catalog, and how to manage it.
func managed(t *testing.T) (management, *catalog.Catalog) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	cat := catalog.New(memory.NewKV(), memory.NewKV(), catalog.Config{Log: log})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- cat.Run(ctx) }()
	<-cat.Loaded()
	dir := t.TempDir()
	sum := sha256.Sum256([]byte("secret"))
	h, err := dashboard.New(dashboard.Config{APIKeysFile: inFolder(t, dir, "keys", "deploy:"+hex.EncodeToString(sum[:]))}, cat, memory.NewBlobs(), dashboard.Parts{}, log)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.Close()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return management{URL: s.URL, KeyFile: inFolder(t, dir, "key", "secret\n")}, cat
}

func inFolder(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const aDocument = `{
  "publishers": [{"id": "yuki", "name": "Yuki Media", "currency": "USD"}],
  "advertisers": [{"id": "ryokan", "publisher": "yuki", "name": "Ryokan", "dailyBudget": 250000000, "timeZone": "Asia/Tokyo"}]
}`

func TestImportShowsThenChangesThenHasNothingToDo(t *testing.T) {
	m, cat := managed(t)
	file := inFolder(t, t.TempDir(), "catalog.json", aDocument)
	run := func(yes bool) (string, error) {
		var out bytes.Buffer
		err := (&catalogImportCmd{management: m, File: file, Yes: yes}).Run(t.Context(), &out)
		return out.String(), err
	}

	out, err := run(false) // standard input of tests is no terminal
	if err == nil || !strings.Contains(err.Error(), "nothing has been changed") {
		t.Errorf("without -yes: %v", err)
	}
	for _, want := range []string{"create publisher/yuki\n", "create advertiser/ryokan\n", "  name: \"Ryokan\"\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("the diff lacks %q:\n%s", want, out)
		}
	}
	if _, ok := cat.Snapshot().Publisher("yuki"); ok {
		t.Error("a diff has changed something")
	}
	if out, err = run(true); err != nil || !strings.HasSuffix(out, "2 changes made\n") {
		t.Errorf("with -yes: %v\n%s", err, out)
	}
	if out, err = run(true); err != nil || out != "nothing to change\n" {
		t.Errorf("again: %q, %v", out, err)
	}

	// An export changes nothing when it is imported.
	exported := filepath.Join(t.TempDir(), "export.json")
	if err := (&catalogExportCmd{management: m, File: exported}).Run(t.Context(), io.Discard); err != nil {
		t.Fatal(err)
	}
	file = exported
	if out, err = run(true); err != nil || out != "nothing to change\n" {
		t.Errorf("of the export: %q, %v", out, err)
	}
}

func TestExportLeavesNoHalfFile(t *testing.T) {
	m, _ := managed(t)
	dir := t.TempDir()
	file := inFolder(t, dir, "catalog.json", "what was there")
	m.KeyFile = inFolder(t, t.TempDir(), "key", "wrong")
	if err := (&catalogExportCmd{management: m, File: file}).Run(t.Context(), io.Discard); err == nil {
		t.Error("exported with a wrong key")
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != "what was there" {
		t.Errorf("the file is %q, %v", got, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("files: %v, %v", entries, err)
	}
}

func TestImportSaysWhatIsWrong(t *testing.T) {
	m, _ := managed(t)
	wrongKey := m
	wrongKey.KeyFile = inFolder(t, t.TempDir(), "key", "other")
	elsewhere := m
	elsewhere.URL = httptest.NewServer(nil).URL // net/http's 404, in plain text
	open := m
	open.URL = "http://deckle.example:8081"
	for _, tt := range []struct {
		name, document string
		m              management
		want           string
	}{
		{"not JSON", "{", m, "not JSON"},
		{"unknown field", `{"publisher": []}`, m, "publisher: unknown field"},
		{"wrong values", `{"publishers": [{"id": "a b", "name": "", "currency": "usd"}]}`, m, "publishers[0].currency"},
		{"unknown reference", `{"sites": [{"id": "s", "publisher": "nobody"}]}`, m, "sites[0].publisher"},
		{"wrong key", aDocument, wrongKey, "none of the keys"},
		{"another server", aDocument, elsewhere, "is that the admin listener of deckle?"},
		{"plain http over a network", aDocument, open, "unencrypted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := inFolder(t, t.TempDir(), "catalog.json", tt.document)
			err := (&catalogImportCmd{management: tt.m, File: file, Yes: true}).Run(t.Context(), io.Discard)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("err = %v, want %q", err, tt.want)
			}
		})
	}
}

func TestCommandLineOfAdminAndCatalog(t *testing.T) {
	parse := func(args string) (adminCmd, catalogCmd, error) {
		var c struct {
			Admin   adminCmd   `cmd:""`
			Catalog catalogCmd `cmd:""`
		}
		parser, err := kong.New(&c)
		if err != nil {
			t.Fatal(err)
		}
		_, err = parser.Parse(twoDashes(strings.Fields(args)))
		return c.Admin, c.Catalog, err
	}
	if _, _, err := parse("admin password"); err != nil {
		t.Error(err)
	}
	if a, _, err := parse("admin key deploy"); err != nil || a.Key.Name != "deploy" {
		t.Error(a, err)
	}
	if _, c, err := parse("catalog import -url https://admin.example -key-file k -yes catalog.json"); err != nil ||
		c.Import.URL != "https://admin.example" || filepath.Base(c.Import.KeyFile) != "k" || !c.Import.Yes {
		t.Errorf("%+v, %v", c.Import, err)
	}
	if _, c, err := parse("catalog export -key-file k -"); err != nil || c.Export.File != "-" || c.Export.URL != "http://127.0.0.1:8081" {
		t.Errorf("%+v, %v", c.Export, err)
	}
	if _, _, err := parse("catalog export x"); err == nil {
		t.Error("an export without a key")
	}
}

// The commands against the whole program, with its store on disk.
func TestImportIntoARunningServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sum := sha256.Sum256([]byte("secret"))
	keys := inFolder(t, dir, "keys", "deploy:"+hex.EncodeToString(sum[:])+"\n")
	d := startSite(t, sim.Options{}, nil, func(toml, template string) (string, string) {
		return strings.Replace(toml, "[admin]", fmt.Sprintf("[admin]\napi_keys_file = %q", keys), 1), template
	})
	m := management{URL: d.admin, KeyFile: inFolder(t, dir, "key", "secret\n")}
	var out bytes.Buffer
	for { // until its store is open and its catalog read
		_, _, err := m.send(t.Context(), http.MethodGet, "/document", nil, "")
		if err == nil {
			break
		}
		if !strings.Contains(err.Error(), "503") && !strings.Contains(err.Error(), "not read the catalog yet") || t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
	if err := (&catalogImportCmd{management: m, File: inFolder(t, dir, "catalog.json", aDocument), Yes: true}).Run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := (&catalogExportCmd{management: m, File: "-"}).Run(t.Context(), &out); err != nil || !strings.Contains(out.String(), `"Yuki Media"`) {
		t.Errorf("exported %s, %v", out.String(), err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	resp, err := client.PostForm(d.admin+"/login", url.Values{"name": {"ana"}, "password": {demoPassword}})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if page, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(page), "<h1>Overview</h1>") {
		t.Errorf("log-in ends at %s, %v:\n%s", resp.Request.URL, err, page)
	}
}
