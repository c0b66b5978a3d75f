package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDistIsCurrent(t *testing.T) {
	if err := run("..", true); err != nil {
		t.Error(err)
	}
}

func TestCheckFindsWhatIsNotCurrent(t *testing.T) {
	want := map[string][]byte{"a.js": []byte("1"), "b.js": []byte("2")}
	for name, spoil := range map[string]func(dir string) error{
		"changed":   func(dir string) error { return os.WriteFile(filepath.Join(dir, "a.js"), []byte("0"), 0o644) },
		"missing":   func(dir string) error { return os.Remove(filepath.Join(dir, "b.js")) },
		"left over": func(dir string) error { return os.WriteFile(filepath.Join(dir, "c.js"), nil, 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "dist")
			if err := write(dir, want); err != nil {
				t.Fatal(err)
			}
			if err := compare(dir, want); err != nil {
				t.Errorf("fresh: %v", err)
			}
			if err := spoil(dir); err != nil {
				t.Fatal(err)
			}
			if err := compare(dir, want); err == nil {
				t.Error("compare found nothing")
			}
			if err := write(dir, want); err != nil {
				t.Fatal(err)
			}
			if err := compare(dir, want); err != nil {
				t.Errorf("written again: %v", err)
			}
		})
	}
}
