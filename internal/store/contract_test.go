package store_test

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"deckle/internal/store"
	"deckle/internal/store/memory"
	"deckle/internal/store/storetest"
)

// open opens an embedded store in a folder; it is closed when the test ends.
func open(t testing.TB, c store.Config) *store.Store {
	t.Helper()
	st, err := store.Open(t.Context(), c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

func TestContractInMemory(t *testing.T) {
	t.Parallel()
	storetest.Log(t, func(*testing.T) store.Log { return memory.NewLog() })
	storetest.KV(t, func(*testing.T) store.KV { return memory.NewKV() })
	storetest.Blobs(t, func(*testing.T) store.Blobs { return memory.NewBlobs() })
}

func TestContractEmbedded(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "key")
	write(t, key, strings.Repeat("5a", 32)+"\n")
	contract(t, func(t *testing.T) *store.Store {
		return open(t, store.Config{DataDir: t.TempDir(), EncryptionKeyFile: key})
	})
}

// contract runs the suite against a log, a bucket, a sealed one, and assets.
func contract(t *testing.T, fresh func(*testing.T) *store.Store) {
	t.Run("journal", func(t *testing.T) {
		t.Parallel()
		storetest.Log(t, func(t *testing.T) store.Log { return fresh(t).Journal() })
	})
	t.Run("catalog", func(t *testing.T) {
		t.Parallel()
		storetest.KV(t, func(t *testing.T) store.KV { return fresh(t).Catalog() })
	})
	t.Run("keys", func(t *testing.T) {
		t.Parallel()
		storetest.KV(t, func(t *testing.T) store.KV { return fresh(t).Keys() })
	})
	t.Run("assets", func(t *testing.T) {
		t.Parallel()
		storetest.Blobs(t, func(t *testing.T) store.Blobs { return fresh(t).Assets() })
	})
}
