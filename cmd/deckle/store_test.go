package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deckle/internal/store"
)

// storeFolder makes the current folder one with a deckle.toml, and with a store
// that has something if used says so.
func storeFolder(t *testing.T, used bool) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "deckle.toml"), []byte(replayConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if !used {
		return dir
	}
	st := openTestStore(t, filepath.Join(dir, "data"))
	for _, id := range []string{"a", "b"} {
		if _, err := st.Journal().Append(t.Context(), id, []byte(id)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := st.Catalog().Put(t.Context(), "site/a", []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func storeStatus(t *testing.T) (string, error) {
	t.Helper()
	var out strings.Builder
	err := (&storeStatusCmd{Config: "deckle.toml"}).Run(t.Context(), &out)
	return out.String(), err
}

// fields is a text with its columns one space apart.
func fields(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.Join(strings.Fields(lines[i]), " ")
	}
	return strings.Join(lines, "\n")
}

func TestStoreStatus(t *testing.T) {
	storeFolder(t, true)
	got, err := storeStatus(t)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"mode embedded\n", "folder data/solo\n", " free\n",
		"stream messages first last bytes of replicas\n", "journal 2 1 2 ", " of replicas", " 64 GiB 1\n", "KV_catalog 1 1 1 ",
	} {
		if !strings.Contains(fields(got), want) {
			t.Errorf("%s\ndoes not say %q", got, want)
		}
	}
}

func TestStoreStatusOfOneInUse(t *testing.T) {
	dir := storeFolder(t, true)
	st := openTestStore(t, filepath.Join(dir, "data"))
	defer st.Close()
	got, err := storeStatus(t)
	if err != nil || !strings.Contains(got, "is in use by process") {
		t.Errorf("%q, %v", got, err)
	}
}

func TestStoreStatusMakesNone(t *testing.T) {
	dir := storeFolder(t, false)
	if got, err := storeStatus(t); err == nil || !strings.Contains(err.Error(), "no store in") {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "data")); err == nil {
		t.Error("it has made one")
	}
}

func TestStoreImport(t *testing.T) {
	from := storeFolder(t, true)
	to := storeFolder(t, false)
	run := func() (string, error) {
		var out strings.Builder
		err := (&storeImportCmd{Config: "deckle.toml", From: filepath.Join(from, "data")}).Run(t.Context(), &out)
		return fields(out.String()), err
	}
	got, err := run()
	want := "from " + filepath.Join(from, "data", "solo") + `
journal 2 messages
auctions 0 messages
KV_catalog 1 message
KV_pages 0 messages
KV_leases 0 messages
KV_keys 0 messages
KV_drafts 0 messages
OBJ_assets 0 messages
`
	if err != nil || got != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
	if _, err := run(); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("again: %v", err)
	}
	st := openTestStore(t, filepath.Join(to, "data"))
	defer st.Close()
	if state, err := st.Journal().State(t.Context()); err != nil || state != (store.LogState{First: 1, Last: 2, Bytes: state.Bytes}) {
		t.Errorf("journal = %+v, %v", state, err)
	}
}
