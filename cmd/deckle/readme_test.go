package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// The README's two files are what they say they are: deckle check has nothing to
// say about them, and the example path has the example slot.
func TestReadmeConfiguration(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllSubmatch(readme, -1)
	if len(blocks) != 3 {
		t.Fatalf("%d toml blocks in the README, want deckle.toml, creative-opportunities.toml and a slot more for it", len(blocks))
	}
	dir := t.TempDir()
	files := []string{filepath.Join(dir, "deckle.toml"), filepath.Join(dir, "creative-opportunities.toml")}
	for i, text := range [][]byte{blocks[0][1], slices.Concat(blocks[1][1], []byte("\n"), blocks[2][1])} {
		if err := os.WriteFile(files[i], text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := (&checkCmd{Files: files[:1]}).Run(t.Context(), &out); err != nil || !bytes.Contains(out.Bytes(), []byte("0 errors, 0 warnings")) {
		t.Errorf("deckle check: %v\n%s", err, out.Bytes())
	}
	out.Reset()
	if err := (&matchCmd{File: files[1], URLs: []string{"/2026/11/article"}}).Run(&out); err != nil || !bytes.Contains(out.Bytes(), []byte("atf_sidebar_ad")) || !bytes.Contains(out.Bytes(), []byte("article_magazine")) {
		t.Errorf("deckle match: %v\n%s", err, out.Bytes())
	}
}

// The examples of every key, at the top of the repository, are valid.
func TestExampleConfiguration(t *testing.T) {
	for _, file := range []string{"../../deckle.example.toml", "../../creative-opportunities.example.toml"} {
		var out bytes.Buffer
		if err := (&checkCmd{Files: []string{file}}).Run(t.Context(), &out); err != nil {
			t.Errorf("%v\n%s", err, out.Bytes())
		}
	}
}
