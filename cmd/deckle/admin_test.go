package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deckle/internal/dashboard/access"
)

func TestPasswordOfStandardInput(t *testing.T) {
	for text, want := range map[string]string{
		"correct horse battery\n":   "correct horse battery",
		"correct horse battery\r\n": "correct horse battery",
		"correct horse battery":     "correct horse battery",
		"":                          "",
	} {
		if got, err := passwordLine(strings.NewReader(text)); err != nil || string(got) != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	if _, err := passwordLine(strings.NewReader("one\ntwo\n")); err == nil {
		t.Error("two lines were taken for a password")
	}
}

// What the two commands print is what the server reads.
func TestAdminMakesWhatOpens(t *testing.T) {
	dir := t.TempDir()
	hash, err := access.HashPassword([]byte("correct horse battery"))
	if err != nil {
		t.Fatal(err)
	}
	password := filepath.Join(dir, "password")
	if err := os.WriteFile(password, []byte(hash+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := access.OpenDoor(password, slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}

	var out bytes.Buffer
	if err := (&adminKeyCmd{Name: "deploy"}).Run(&out); err != nil {
		t.Fatal(err)
	}
	keys := filepath.Join(dir, "keys")
	if err := os.WriteFile(keys, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := access.OpenKeys(keys, slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}
	if err := (&adminKeyCmd{Name: "not a name"}).Run(&out); err == nil {
		t.Error("a key without a name")
	}
}
