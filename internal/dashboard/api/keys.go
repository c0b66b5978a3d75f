package api

import (
	"context"
	"net/http"
	"time"

	"deckle/internal/catalog"
)

// Keys say when the keys of a publisher were made; the keys are told to nobody.
type Keys struct {
	Publisher string    `json:"publisher"`
	Revision  uint64    `json:"revision"` // for If-Match
	Current   time.Time `json:"current"`
	Previous  time.Time `json:"previous,omitzero"` // absent before the first rotation
}

func (c call) ring(publisher string, ring catalog.KeyRing) {
	k := Keys{Publisher: publisher, Revision: ring.Revision, Current: ring.Current.Created.UTC()}
	if ring.Previous != nil {
		k.Previous = ring.Previous.Created.UTC()
	}
	c.w.Header().Set("Etag", etag(ring.Revision))
	writeJSON(c.w, http.StatusOK, jsonMedia, k)
}

func (a *API) showKeys(c call) error {
	s, err := a.snapshot()
	if err != nil {
		return err
	}
	id := c.r.PathValue("id")
	ring, ok := s.KeyRing(id)
	if !ok {
		return catalog.ErrNotFound
	}
	c.ring(id, ring)
	return nil
}

// rotateKeys makes a publisher's next key, once for each revision of its ring that
// somebody has seen.
func (a *API) rotateKeys(c call) error {
	revision, err := ifMatch(c.r.Header.Get("If-Match"))
	if err != nil {
		return err
	}
	id := c.r.PathValue("id")
	ring, err := a.catalog.RotateKeys(c.r.Context(), id, catalog.Write{By: c.by, Revision: revision})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), 2*time.Second)
	defer cancel()
	_ = a.catalog.WaitForKeys(ctx, id, ring.Revision) // it is durable; this node will have it
	c.ring(id, ring)
	return nil
}
