package store_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"deckle/internal/store"
)

const secret = "the ring of a publisher"

// keyFile makes an encryption_key_file.
func keyFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	write(t, path, text)
	return path
}

var (
	oneKey   = strings.Repeat("0f", 32) + "\n"
	otherKey = base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
)

// onDisk reports whether a store's files have a text.
func onDisk(t *testing.T, dir, text string) (found bool) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		found = found || bytes.Contains(data, []byte(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// putSecret opens a store, puts the secret into keys, and closes it.
func putSecret(t *testing.T, c store.Config) {
	t.Helper()
	st, err := store.Open(t.Context(), c, discard)
	if err != nil {
		t.Fatal(err)
	}
	_, err = st.Keys().Put(t.Context(), "publisher/a", []byte(secret), 0)
	if err := errors.Join(err, st.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestKeysAreSealed(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{"": "", "hexadecimal": keyFile(t, oneKey), "base64": keyFile(t, otherKey)} {
		c := store.Config{DataDir: t.TempDir(), EncryptionKeyFile: file}
		putSecret(t, c)
		if got, want := onDisk(t, c.DataDir, secret), file == ""; got != want {
			t.Errorf("key %q: on disk: %v, want %v", name, got, want)
		}
		st := open(t, c)
		if e, err := st.Keys().Get(t.Context(), "publisher/a"); err != nil || string(e.Value) != secret {
			t.Errorf("key %q: get = %q, %v", name, e.Value, err)
		}
	}
}

func TestKeyFilesThatAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	putSecret(t, store.Config{DataDir: dir, EncryptionKeyFile: keyFile(t, oneKey)})
	before := contents(t, dir)
	for name, test := range map[string]struct{ file, want string }{
		"missing": {filepath.Join(t.TempDir(), "none"), "no such file"},
		"short":   {keyFile(t, "0f0f"), "openssl rand -hex 32"},
		"empty":   {keyFile(t, ""), "openssl rand -hex 32"},
		"words":   {keyFile(t, "correct horse battery staple"), "openssl rand -hex 32"},
		"another": {keyFile(t, otherKey), "wrong key"},
		"none":    {"", "give store.encryption_key_file the key"},
	} {
		st, err := store.Open(t.Context(), store.Config{DataDir: dir, EncryptionKeyFile: test.file}, discard)
		if err == nil {
			t.Errorf("%s: opened, %v", name, st.Close())
			continue
		}
		if !strings.Contains(err.Error(), test.want) || errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: %v\ndoes not say %q", name, err, test.want)
		}
		if strings.Contains(err.Error(), "0f0f") || strings.Contains(err.Error(), "horse") {
			t.Errorf("%s: %v\ntells the key", name, err)
		}
	}
	for path, sum := range contents(t, dir) {
		if filepath.Ext(path) == ".blk" && before[path] != sum {
			t.Errorf("%s was changed", path)
		}
	}
	// Importing asks for the key before it makes anything.
	to := t.TempDir()
	if _, err := store.ImportFrom(t.Context(), store.Config{DataDir: to, EncryptionKeyFile: keyFile(t, otherKey)}, dir, false, discard); err == nil || len(contents(t, to)) > 0 {
		t.Errorf("import with another key: %v, and made %v", err, contents(t, to))
	}
}

func TestPlainKeysAreSaid(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	putSecret(t, store.Config{DataDir: dir})
	if status, err := store.Inspect(t.Context(), store.Config{DataDir: dir, EncryptionKeyFile: keyFile(t, oneKey)}, discard); err != nil || status.UnsealedKeys != 1 {
		t.Errorf("inspect: %+v, %v; want 1 unsealed", status, err)
	}
	var log bytes.Buffer
	c := store.Config{DataDir: dir, EncryptionKeyFile: keyFile(t, oneKey)}
	st, err := store.Open(t.Context(), c, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if !strings.Contains(log.String(), "unsealed") || strings.Contains(log.String(), secret) {
		t.Errorf("log: %s", log.String())
	}
	if status, err := st.Status(t.Context()); err != nil || status.UnsealedKeys != 1 {
		t.Errorf("status = %+v, %v; want 1 unsealed", status, err)
	}
	e, err := st.Keys().Get(t.Context(), "publisher/a")
	if err != nil || string(e.Value) != secret {
		t.Fatalf("get = %q, %v", e.Value, err)
	}
	// Written again, it is sealed.
	if _, err := st.Keys().Put(t.Context(), "publisher/a", e.Value, e.Revision); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if status, err := open(t, c).Status(t.Context()); err != nil || status.UnsealedKeys != 0 {
		t.Errorf("status = %+v, %v; want none unsealed", status, err)
	}
}

// Whoever can write to the engine cannot give one publisher another's ring, or a
// changed one.
func TestSealedValuesStayWhereTheyAre(t *testing.T) {
	t.Parallel()
	st := open(t, store.Config{DataDir: t.TempDir(), EncryptionKeyFile: keyFile(t, oneKey)})
	if _, err := st.Keys().Put(t.Context(), "a", []byte(secret), 0); err != nil {
		t.Fatal(err)
	}
	stream, err := store.JetStream(st).Stream(t.Context(), "KV_keys")
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := stream.GetLastMsgForSubject(t.Context(), "$KV.keys.a")
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Clone(sealed.Data)
	changed[len(changed)-1] ^= 1
	for key, value := range map[string][]byte{"moved": sealed.Data, "changed": changed, "cut": sealed.Data[:10]} {
		if _, err := store.JetStream(st).PublishMsg(t.Context(), &nats.Msg{Subject: "$KV.keys." + key, Data: value}); err != nil {
			t.Fatal(err)
		}
		if e, err := st.Keys().Get(t.Context(), key); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("%s: get = %q, %v; want ErrDamaged", key, e.Value, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := st.Keys().Watch(ctx, func(store.Change) error { return nil }); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("watch: %v, want ErrDamaged", err)
	}
}
