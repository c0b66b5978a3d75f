package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"deckle/internal/catalog"
)

// A Diff is what a document would change, or has changed.
type Diff struct {
	Steps []catalog.Step `json:"steps"`
	Done  int            `json:"done"` // how many of them are done
}

// diffTag is the ETag of a diff: who applies a document says which changes they
// have seen.
func diffTag(d *catalog.Diff) string {
	sum := sha256.Sum256(encode(d))
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}

func diffOf(d *catalog.Diff, done int) Diff {
	out := Diff{Steps: d.Steps, Done: done}
	if out.Steps == nil {
		out.Steps = []catalog.Step{}
	}
	return out
}

func (a *API) plan(c call) (*catalog.Document, *catalog.Diff, error) {
	if _, err := a.snapshot(); err != nil {
		return nil, nil, err
	}
	doc, err := catalog.DecodeDocument(c.body)
	if err != nil {
		return nil, nil, err
	}
	d, err := a.catalog.Import(doc)
	return doc, d, err
}

// diff says what a document would change. It changes nothing.
func (a *API) diff(c call) error {
	_, d, err := a.plan(c)
	if err != nil {
		return err
	}
	c.w.Header().Set("Etag", diffTag(d))
	writeJSON(c.w, http.StatusOK, "application/json", diffOf(d, 0))
	return nil
}

// apply changes what a document says, if that is still what its sender has seen.
func (a *API) apply(c call) error {
	match := c.r.Header.Get("If-Match")
	if match == "" {
		return problem(http.StatusPreconditionRequired, "precondition_required",
			"send If-Match with the ETag of %s/document/diff, so that nothing happens that you have not seen", Prefix)
	}
	doc, d, err := a.plan(c)
	if err != nil {
		return err
	}
	if tag := diffTag(d); match != tag {
		p := problem(http.StatusConflict, "conflict", "the catalog has changed: this document does something else by now").with("Etag", tag)
		p.Current = encode(diffOf(d, 0))
		return p
	}
	// Once begun it goes on when the client has gone: half of a document is valid, and
	// seldom what somebody wants.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.r.Context()), applyTimeout)
	defer cancel()
	done, err := a.catalog.Apply(ctx, d, c.by)
	if err != nil {
		return interrupted(err, d, done)
	}
	a.settleDocument(c.r.Context(), doc)
	writeJSON(c.w, http.StatusOK, "application/json", diffOf(d, done))
	return nil
}

// settleDocument waits, not for long, until this node has nothing left to do for a
// document: whoever sends it again is told that.
func (a *API) settleDocument(ctx context.Context, doc *catalog.Document) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		known := a.catalog.Snapshot().Revision()
		if d, err := a.catalog.Import(doc); err != nil || d.Empty() {
			return
		}
		_ = a.catalog.WaitFor(ctx, known+1) // or the time is over
	}
}

// interrupted says how far it has come, and that applying the document again does
// the rest.
func interrupted(err error, d *catalog.Diff, done int) error {
	p := problemOf(err)
	if p.Status == http.StatusInternalServerError {
		return err
	}
	p.Detail = strings.TrimSuffix(p.Detail, ".") + fmt.Sprintf("; %d of %d changes are done", done, len(d.Steps)) + "; send the document again for the rest"
	p.Done = new(done)
	return p
}

// export is the catalog as a document.
func (a *API) export(c call) error {
	s, err := a.snapshot()
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Disposition", `attachment; filename="catalog.json"`)
	writeJSON(c.w, http.StatusOK, "application/json", s.Export())
	return nil
}

// upload checks an image and keeps it.
func (a *API) upload(c call) error {
	asset, err := catalog.Rehost(c.r.Context(), a.blobs, c.body)
	if err != nil {
		return err
	}
	c.w.Header().Set("Location", Prefix+"/assets/"+assetID(asset.Src))
	writeJSON(c.w, http.StatusCreated, "application/json", asset)
	return nil
}

// assetID is the last part of an asset's path.
func assetID(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// asset is an image that was uploaded.
func (a *API) asset(c call) error {
	c.w.Header().Set("Cache-Control", Private)
	return ServeAsset(c.w, c.r, a.blobs, c.r.PathValue("id"))
}

// Private is the Cache-Control of an asset that is shown to who may see it, maybe
// before it is approved.
const Private = "private, max-age=31536000, immutable"

// ServeAsset answers with an asset, as something that can only be looked at: an SVG
// of a stranger has no script and no origin of ours. It is named by its content and
// may be kept for a year, by everybody unless the caller has set Cache-Control. The
// error is that of the blobs, and nothing is answered then. Methods other than GET
// and HEAD are refused.
func ServeAsset(w http.ResponseWriter, r *http.Request, blobs catalog.Blobs, id string) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		w.Header().Set("Cache-Control", "no-store")
		http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
		return nil
	}
	if len(id) != 2*sha256.Size || strings.Trim(id, "0123456789abcdef") != "" {
		return catalog.ErrNotFound
	}
	blob, err := blobs.Get(r.Context(), id)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", blob.ContentType)
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox")
	h.Set("X-Content-Type-Options", "nosniff")
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		// Pages with Cross-Origin-Embedder-Policy show nothing without it.
		h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	}
	h.Set("Etag", `"`+id+`"`)
	if strings.Contains(r.Header.Get("If-None-Match"), id) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	h.Set("Content-Length", strconv.Itoa(len(blob.Data)))
	if r.Method == http.MethodHead {
		return nil
	}
	_, _ = w.Write(blob.Data) // an error says that the client has gone
	return nil
}
