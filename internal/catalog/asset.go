package catalog

import "context"

// Blobs keeps assets by their content.
type Blobs interface {
	// Put stores data and returns its name, the SHA-256 in hexadecimal, when it is
	// durable. The same data has the same name. data is not kept.
	Put(ctx context.Context, data []byte, contentType string) (id string, err error)

	// Get returns what Put was given; store.ErrNotFound when there is none.
	Get(ctx context.Context, id string) (data []byte, contentType string, err error)
}

// An Asset is an image that we serve ourselves.
type Asset struct {
	Path        string `json:"src"` // /_deckle/asset/<SHA-256>
	ContentType string `json:"contentType"`
	W           int    `json:"w"` // 0 for an SVG without a size
	H           int    `json:"h"`
}

// Rehost checks an image and keeps it. Its error is an [*InvalidError] for bytes
// that are not a harmless PNG, JPEG, GIF, WebP or SVG within the limits.
func Rehost(ctx context.Context, b Blobs, data []byte) (Asset, error) { return Asset{}, nil }
