package dashboard

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"deckle/internal/catalog"
)

// keysPanel says how old the keys of a publisher are, and has the button that makes
// the next one.
type keysPanel struct {
	Action   string
	Revision uint64
	Current  time.Time
	Previous time.Time // zero before the first rotation
	Young    string    // how old the current key is, while tokens of the previous one may be out
}

// longestToken is the longest for which a token is taken by default: that of a fold
// (reader-plane.md section 3), with the clocks of two nodes apart as far as they may
// be. Tokens of the previous key are out for so long after a rotation.
const longestToken = 32 * time.Minute

// newKeysPanel is nil for a publisher whose keys this node has not read yet.
func newKeysPanel(s *catalog.Snapshot, publisher string, now time.Time) *keysPanel {
	ring, ok := s.KeyRing(publisher)
	if !ok {
		return nil
	}
	p := &keysPanel{Action: "/publishers/" + publisher + "/keys", Revision: ring.Revision, Current: ring.Current.Created}
	if ring.Previous == nil {
		return p
	}
	p.Previous = ring.Previous.Created
	if age := now.Sub(ring.Current.Created); age < longestToken {
		p.Young = fmt.Sprintf("%d minutes", max(int(age/time.Minute), 0))
	}
	return p
}

// rotateKeys makes a publisher's next key, for who has said that they know what it
// does.
func (d *Dashboard) rotateKeys(v visit) error {
	id := v.r.PathValue("id")
	revision, err := strconv.ParseUint(v.r.PostForm.Get("revision"), 10, 64)
	if err != nil {
		return badForm("It does not say which keys it replaces.")
	}
	if v.r.PostForm.Get("sure") == "" {
		return badForm("Nothing was changed: tick the box that says that you know what it does.")
	}
	ring, err := d.catalog.RotateKeys(v.r.Context(), id, catalog.Write{By: v.session.Name, Revision: revision})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(v.r.Context(), 2*time.Second)
	defer cancel()
	_ = d.catalog.WaitForKeys(ctx, id, ring.Revision) // it is durable; pages will show it
	return v.redirect("/publishers/" + id + "?done=rotated")
}
