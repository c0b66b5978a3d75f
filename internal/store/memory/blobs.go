package memory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"

	"deckle/internal/store"
)

// Blobs are store.Blobs in memory.
type Blobs struct {
	faults

	mu   sync.Mutex
	byID map[string]store.Blob
}

// NewBlobs makes an empty set of blobs.
func NewBlobs() *Blobs { return &Blobs{byID: map[string]store.Blob{}} }

// Put is that of store.Blobs.
func (b *Blobs) Put(ctx context.Context, data []byte, contentType string) (string, error) {
	if len(data) > store.MaxBlob {
		return "", fmt.Errorf("put blob of %d bytes: %w", len(data), store.ErrTooLarge)
	}
	sum := sha256.Sum256(data)
	id := hex.EncodeToString(sum[:])
	err := b.write(ctx, "put blob "+id, func() error {
		b.mu.Lock()
		defer b.mu.Unlock()
		if _, ok := b.byID[id]; !ok {
			b.byID[id] = store.Blob{Data: slices.Clone(data), ContentType: contentType}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return id, nil
}

// Get is that of store.Blobs.
func (b *Blobs) Get(ctx context.Context, id string) (store.Blob, error) {
	if ctx.Err() != nil {
		return store.Blob{}, fmt.Errorf("get blob: %w: %w", store.ErrUnavailable, context.Cause(ctx))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	blob, ok := b.byID[id]
	if !ok {
		return store.Blob{}, fmt.Errorf("get blob %s: %w", id, store.ErrNotFound)
	}
	return store.Blob{Data: slices.Clone(blob.Data), ContentType: blob.ContentType}, nil
}
