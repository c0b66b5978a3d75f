package deckle_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// layers are the project's packages from the ground up. A package imports only
// from layers below its own, and every package is in one.
var layers = [][]string{
	{"deckle"},
	{
		"deckle/internal/template", "deckle/internal/htmlstream", "deckle/internal/consent", "deckle/internal/obs", "deckle/internal/store", "deckle/web",
		"deckle/internal/token", "deckle/internal/quality", "deckle/internal/publicapi", "deckle/internal/publicnet",
	},
	{"deckle/internal/store/memory", "deckle/internal/store/storetest", "deckle/internal/journal", "deckle/internal/auction", "deckle/internal/clock"},
	{"deckle/internal/openrtb", "deckle/internal/auction/auctiontest", "deckle/internal/telemetry"},
	{"deckle/internal/journal/journaltest", "deckle/internal/projection", "deckle/internal/prebid", "deckle/internal/aps", "deckle/internal/config", "deckle/internal/catalog"},
	{"deckle/internal/budget", "deckle/internal/classify", "deckle/internal/landing"},
	{"deckle/internal/edge", "deckle/internal/serve", "deckle/internal/track", "deckle/internal/heartbeat", "deckle/internal/dashboard/access", "deckle/internal/dashboard/report"},
	{"deckle/internal/dashboard/api"},
	{"deckle/internal/dashboard"},
	{"deckle/internal/sim", "deckle/internal/sim/browser", "deckle/internal/sim/desk", "deckle/internal/sim/readers"},
	{"deckle/cmd/deckle", "deckle/web/build"}, // programs
}

func layerOf(pkg string) int {
	return slices.IndexFunc(layers, func(l []string) bool { return slices.Contains(l, pkg) })
}

func TestImportsPointDown(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != ".") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		pkg := strings.TrimSuffix("deckle/"+filepath.ToSlash(filepath.Dir(path)), "/.")
		seen[pkg] = true
		checkImports(t, path, pkg)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range slices.Concat(layers...) {
		if !seen[pkg] {
			t.Errorf("%s is in a layer and does not exist", pkg)
		}
	}
}

func checkImports(t *testing.T, path, pkg string) {
	t.Helper()
	layer := layerOf(pkg)
	if layer < 0 {
		t.Errorf("%s: package %s is in no layer", path, pkg)
		return
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range file.Imports {
		imported := strings.Trim(spec.Path.Value, `"`)
		ours := imported == "deckle" || strings.HasPrefix(imported, "deckle/")
		if ours && layerOf(imported) >= layer {
			t.Errorf("%s: %s imports %s, which is not below it", path, pkg, imported)
		}
	}
}

// The vocabulary depends on the standard library alone.
func TestVocabularyIsStandardLibraryOnly(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			if imported := strings.Trim(spec.Path.Value, `"`); strings.Contains(strings.Split(imported, "/")[0], ".") || strings.HasPrefix(imported, "deckle") {
				t.Errorf("%s imports %s", path, imported)
			}
		}
	}
}
