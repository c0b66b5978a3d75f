package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// assets are Blobs in an object store of the engine: chunks, then a message that
// names them. A blob is there when that message is.
type assets struct {
	store   *Store
	objects jetstream.ObjectStore
}

func (s *Store) openAssets(ctx context.Context) (*assets, error) {
	objects, err := s.js.ObjectStore(ctx, assetsBucket)
	if err != nil {
		return nil, fault(ctx, "open assets", err)
	}
	return &assets{store: s, objects: objects}, nil
}

// assetTimeouts is how many times as long as another call one of an asset may
// take: it is up to 64 messages.
const assetTimeouts = 5

const contentTypeHeader = "Content-Type"

func (a *assets) Put(ctx context.Context, data []byte, contentType string) (string, error) {
	if len(data) > MaxBlob {
		return "", fmt.Errorf("put asset of %d bytes: %w: at most %d", len(data), ErrTooLarge, MaxBlob)
	}
	sum := sha256.Sum256(data)
	id := hex.EncodeToString(sum[:])
	operation := "put asset " + id
	ctx, done, err := a.store.calls.beginFor(ctx, assetTimeouts*a.store.config.CallTimeout)
	if err != nil {
		return "", fmt.Errorf("%s: %w", operation, err)
	}
	defer done()
	switch _, err := a.objects.GetInfo(ctx, id); {
	case err == nil:
		return id, nil
	case !errors.Is(err, jetstream.ErrObjectNotFound):
		return "", fault(ctx, operation, err)
	}
	if a.store.folder != nil {
		if err := a.store.folder.take(len(data)); err != nil {
			return "", fmt.Errorf("%s: %w", operation, err)
		}
	}
	meta := jetstream.ObjectMeta{Name: id, Headers: nats.Header{contentTypeHeader: {contentType}}}
	if _, err := a.objects.Put(ctx, meta, bytes.NewReader(data)); err != nil {
		return "", fault(ctx, operation, err)
	}
	return id, nil
}

func (a *assets) Get(ctx context.Context, id string) (Blob, error) {
	operation := "get asset " + id
	if sum, err := hex.DecodeString(id); err != nil || len(sum) != sha256.Size {
		return Blob{}, fmt.Errorf("get asset: %w: %q is no SHA-256", ErrNotFound, id)
	}
	ctx, done, err := a.store.calls.beginFor(ctx, assetTimeouts*a.store.config.CallTimeout)
	if err != nil {
		return Blob{}, fmt.Errorf("%s: %w", operation, err)
	}
	defer done()
	object, err := a.objects.Get(ctx, id)
	switch {
	case errors.Is(err, jetstream.ErrObjectNotFound):
		return Blob{}, fmt.Errorf("%s: %w", operation, ErrNotFound)
	case err != nil:
		return Blob{}, fault(ctx, operation, err)
	}
	defer object.Close()
	return a.read(ctx, id, object)
}

// read reads what an object says of itself and no more.
func (a *assets) read(ctx context.Context, id string, object jetstream.ObjectResult) (Blob, error) {
	operation := "get asset " + id
	info, err := object.Info()
	if err != nil {
		return Blob{}, fault(ctx, operation, err)
	}
	if info.Size > MaxBlob {
		return Blob{}, fmt.Errorf("%s: %w: it says that it has %d bytes", operation, ErrDamaged, info.Size)
	}
	data, err := io.ReadAll(object)
	if err != nil && !errors.Is(err, jetstream.ErrDigestMismatch) {
		return Blob{}, fault(ctx, operation, err)
	}
	if sum := sha256.Sum256(data); err != nil || hex.EncodeToString(sum[:]) != id {
		return Blob{}, fmt.Errorf("%s: %w: it has another digest", operation, ErrDamaged)
	}
	return Blob{Data: data, ContentType: info.Headers.Get(contentTypeHeader)}, nil
}
