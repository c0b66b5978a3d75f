package api

import (
	"fmt"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"deckle/internal/catalog"
	"deckle/internal/token"
)

// A DebugToken makes the batches of a site explain themselves.
type DebugToken struct {
	Site    string    `json:"site"`
	Token   string    `json:"token"`   // "debug" of the body of POST /v1/serve/batch
	Expires time.Time `json:"expires"` // when it is no longer believed
}

// MintDebug makes a debug token for a site, with the current key of its publisher. A
// site that the catalog does not have is [catalog.ErrNotFound].
func MintDebug(s *catalog.Snapshot, site string, now time.Time) (DebugToken, error) {
	x, ok := s.Site(site)
	if !ok {
		return DebugToken{}, fmt.Errorf("debug token for site %.64q: %w", site, catalog.ErrNotFound)
	}
	ring, ok := s.KeyRing(x.Publisher)
	if !ok {
		return DebugToken{}, fmt.Errorf("debug token for site %q: its publisher has no keys: %w", site, catalog.ErrNotFound)
	}
	return DebugToken{
		Site:    site,
		Token:   token.NewRing(ring.Current.Secret, nil).MintDebug(site, now),
		Expires: now.UTC().Truncate(time.Minute).Add(token.DebugWindow), // tokens know minutes
	}, nil
}

func (a *API) debugToken(c call) error {
	var asked struct {
		Site string `json:"site"`
	}
	if err := json.Unmarshal(c.body, &asked, json.RejectUnknownMembers(true)); err != nil {
		return badJSON(err)
	}
	if asked.Site == "" {
		return invalid(catalog.Problem{Field: "site", Msg: "missing", Remedy: "the id of a site of the catalog"})
	}
	s, err := a.snapshot()
	if err != nil {
		return err
	}
	t, err := MintDebug(s, asked.Site, time.Now())
	if err != nil {
		return err
	}
	writeJSON(c.w, http.StatusOK, jsonMedia, t)
	return nil
}
