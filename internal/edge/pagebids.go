package edge

import (
	"net/http"
	"time"

	"deckle"
	"deckle/internal/auction"
	"deckle/internal/publicapi"
	"deckle/internal/telemetry"
)

// A pageBids is the answer to GET /__ts/page-bids: what the two holes of the page
// would have held.
type pageBids struct {
	Slots  []slotEntry                      `json:"slots"`
	Bids   map[deckle.SlotID]map[string]any `json:"bids"`
	Markup map[string]string                `json:"markup"` // by hb_adid
	Skip   string                           `json:"skip,omitempty"`
}

// PageBids answers GET /__ts/page-bids?path=…: the slots of the page at that path,
// and the winners of an auction held for whoever asks. The gate is the page's own.
// It is for pages that have no bids of their own: single-page navigation, consent
// that came late, a prerendered page that is shown, one that came back, bids =
// "fetch".
//
// A page of another site gets nothing: bids are for one reader, and an auction costs
// bidders something.
func (e *Edge) PageBids(c BidsConfig) http.Handler {
	return e.bidsHandler(&c, bidsEndpoint{telemetry.PageBids, http.MethodGet, (*siteProxy).fromOwnPage, (*asking).pageBids})
}

func (a *asking) pageBids(r *publicapi.Request) (publicapi.Answer, error) {
	arrived := time.Now()
	query := r.URL.Query()
	if !query.Has("path") {
		return publicapi.Answer{}, publicapi.Missing("path")
	}
	path, ok := pathOf(query.Get("path"))
	if !ok {
		return publicapi.Answer{}, publicapi.Wrong("path", "must be the path of a page: begin with one slash, be percent-encoded, and have 8,192 bytes at most")
	}

	page := asNavigation(r.Request, path)
	v := a.edge.plan(page, a.site, arrived)
	a.visit = v
	answer := pageBids{Slots: []slotEntry{}, Bids: map[deckle.SlotID]map[string]any{}, Markup: map[string]string{}, Skip: v.skip()}
	if v.hole1() {
		answer.Slots = v.slotEntries(arrived)
	}
	if v.outcome == outcomeRun {
		res := a.hold(r.Context(), a.edge.auctionRequest(page, v), v.deadline())
		answer.fill(v, res)
	}
	return publicapi.Answer{Status: http.StatusOK, Body: asciiJSON(answer)}, nil
}

// fill puts the winners into the answer.
func (b *pageBids) fill(v *visit, res *auction.Result) {
	p := &page{visit: v}
	for i := range res.Winners {
		w := &res.Winners[i]
		b.Bids[w.Slot] = p.bidEntry(w)
		b.Markup[w.AdID] = w.AdM
	}
}
