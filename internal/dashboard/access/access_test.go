package access

import (
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func line(name, secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return name + ":" + hex.EncodeToString(sum[:]) + "\n"
}

func TestKeysLetTheirOwnersIn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	made, madeLine, err := NewKey("made")
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, "\ufeff# keys\n\n"+line("deploy", "one")+strings.ToUpper("x")+line("", "two")+"  "+madeLine+"  \r\n")
	k, err := OpenKeys(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for secret, want := range map[string]string{"one": "deploy", "two": "X", made: "made", "": "", "three": "", "deploy": ""} {
		if got, ok := k.Owner(secret); got != want || ok != (want != "") {
			t.Errorf("Owner(%q) = %q, %v; want %q", secret, got, ok, want)
		}
	}
}

func TestBadKeyFilesSayEveryBadLine(t *testing.T) {
	good := strings.TrimSuffix(line("a", "x"), "\n")
	for _, tt := range []struct{ name, text, want string }{
		{"no colon", "secret\n", `line 1: want "name:sha256"`},
		{"short", "a:abc\n", "line 1: after the name"},
		{"long", good + "ff\n", "line 1: after the name"},
		{"not hexadecimal", "a:" + strings.Repeat("z", 64), "line 1: after the name"},
		{"no name", ":" + strings.Repeat("a", 64), "line 1: the name wants"},
		{"name with a space", "a b:" + strings.Repeat("a", 64), "line 1: the name wants"},
		{"twice the name", good + "\n" + line("a", "y"), "line 2: this name or this key"},
		{"twice the key", good + "\n" + line("b", "x"), "line 2: this name or this key"},
		{"two bad lines", "x\n" + good + "\ny", "line 3: want"},
		{"too many", manyKeys(maxKeys + 1), "line 1001: more than 1000 keys"},
		{"too large", strings.Repeat("#", maxFileBytes+1), "larger than 256 KiB"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "keys")
			write(t, path, tt.text)
			_, err := OpenKeys(path, slog.New(slog.DiscardHandler))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("err = %v, want %q", err, tt.want)
			}
		})
	}
	if _, err := OpenKeys(t.TempDir(), slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a folder was taken for a file of keys")
	}
	if _, err := OpenKeys(filepath.Join(t.TempDir(), "none"), slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a missing file was taken for one without keys")
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		name := "k" + strings.Repeat("i", i%30) + hex.EncodeToString([]byte{byte(i >> 8), byte(i)})
		b.WriteString(line(name, name))
	}
	return b.String()
}

func TestWithoutAFileThereAreNoKeys(t *testing.T) {
	k, err := OpenKeys("", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if name, ok := k.Owner(""); ok || k.Err() != nil {
		t.Errorf("Owner = %q, %v, Err = %v", name, ok, k.Err())
	}
}

func TestKeysAreWithdrawnWhileRunning(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	write(t, path, line("a", "one")+line("b", "two"))
	var log strings.Builder
	k, err := OpenKeys(path, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	owns := func(secret string) bool { _, ok := k.Owner(secret); return ok }
	if !owns("one") || !owns("two") {
		t.Fatal("keys do not let in")
	}

	// A typing error next to a withdrawn key does not keep that key alive.
	write(t, path, line("b", "two")+"oops\n")
	if owns("one") || !owns("two") {
		t.Error("after a change: the withdrawn key is good, or the other one is not")
	}
	if k.Err() == nil || !strings.Contains(log.String(), "line 2") || strings.Contains(log.String(), "oops") {
		t.Errorf("Err = %v, log %q", k.Err(), log.String())
	}

	// Same size, same time: SIGHUP finds it.
	old := time.Now().Add(-time.Hour)
	write(t, path, line("c", "1st"))
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	for range 2 { // read, and remembered
		if !owns("1st") {
			t.Fatal("the key does not let in")
		}
	}
	write(t, path, line("c", "2nd"))
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	k.Reload()
	if owns("1st") || !owns("2nd") {
		t.Error("after Reload: the old key is good, or the new one is not")
	}

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if owns("2nd") || k.Err() == nil {
		t.Error("a key is good though the file has gone")
	}
}

// Two changes within one tick of the file system's clock leave size and time as
// they were; a file that was just changed is not trusted by them.
func TestAChangeRightAfterAChangeIsSeen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	write(t, path, line("a", "1"))
	now := time.Now()
	if err := os.Chtimes(path, now, now); err != nil {
		t.Fatal(err)
	}
	k, err := OpenKeys(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, line("a", "2"))
	if err := os.Chtimes(path, now, now); err != nil {
		t.Fatal(err)
	}
	if _, ok := k.Owner("1"); ok {
		t.Error("a withdrawn key is good")
	}
}

func TestKeyNames(t *testing.T) {
	for name, want := range map[string]bool{"deploy": true, "ci@example.com": true, "名前": true, "": false, "a:b": false, "a b": false, strings.Repeat("x", 65): false, "a\n": false} {
		if _, _, err := NewKey(name); (err == nil) != want {
			t.Errorf("NewKey(%q): %v", name, err)
		}
	}
}

func FuzzParseKeys(f *testing.F) {
	f.Add(line("a", "b") + "# c\n\nx:y")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := parseKeys([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for i, k := range list.keys {
			if !isName(k.name) {
				t.Errorf("key %d is called %q", i, k.name)
			}
		}
		if len(list.keys) > maxKeys {
			t.Errorf("%d keys", len(list.keys))
		}
	})
}
