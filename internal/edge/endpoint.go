package edge

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"time"

	"deckle"
	"deckle/internal/auction"
	"deckle/internal/consent"
	"deckle/internal/publicapi"
	"deckle/internal/telemetry"
	"deckle/internal/template"
)

// What POST /auction takes at most.
const (
	maxAuctionBody = 256 << 10
	maxAdUnits     = 40
	maxSizes       = 20
	maxBidders     = 50
	maxSide        = 10_000 // CSS pixels
)

// AuctionEndpoint answers POST /auction: bids for ad units that a page's script
// names, for pages without a template, slots that come late, and refreshes. Floors,
// parameters and ad unit path of a code are its template's; a code that no template
// has gets the site's default floor, and the stored request of its own name.
//
// Only pages on the site's own hosts may ask.
func (e *Edge) AuctionEndpoint(c BidsConfig) http.Handler {
	return e.bidsHandler(&c, bidsEndpoint{telemetry.Endpoint, http.MethodPost, (*siteProxy).fromOwnSite, (*asking).auction})
}

// adUnits is the body, in Prebid's words.
type adUnits struct {
	AdUnits []adUnit `json:"adUnits"`
}

type adUnit struct {
	Code       string `json:"code"`
	MediaTypes struct {
		Banner *struct {
			Sizes [][2]int `json:"sizes"`
		} `json:"banner"`
	} `json:"mediaTypes"`
	Bids []struct {
		Bidder string          `json:"bidder"`
		Params json.RawMessage `json:"params"`
	} `json:"bids"`
}

func (a *asking) auction(r *publicapi.Request) (publicapi.Answer, error) {
	arrived := time.Now()
	site := a.site
	var body adUnits
	if err := r.ReadJSON(maxAuctionBody, &body); err != nil {
		return publicapi.Answer{}, err
	}
	asked := time.Now() // a slow body costs its sender, not the bidders
	page := asNavigation(r.Request, site.pagePath(r.Request))
	v := &visit{site: site, arrived: arrived, template: site.Template()}
	slots, err := a.slots(site, v, body.AdUnits)
	if err != nil {
		return publicapi.Answer{}, err
	}
	v.slots = slots
	a.visit = v
	v.path = template.Normalize(rawPath(page))
	v.section = deckle.Section(v.path)
	v.outcome = a.edge.gateUnits(page, v)

	answer := bidResponse{ID: newID(), Cur: cmp.Or(site.Currency, "USD"), SeatBid: []seatBid{}}
	if v.outcome != outcomeRun {
		answer.Ext = &responseExt{Skip: string(v.outcome)}
		return respond(answer), nil
	}
	req := a.edge.auctionRequest(page, v)
	answer.ID = req.ID
	res := a.hold(r.Context(), req, asked.Add(a.config.Timeout))
	answer.SeatBid = seatBids(res.Winners, v)
	return respond(answer), nil
}

func respond(r bidResponse) publicapi.Answer {
	return publicapi.Answer{Status: http.StatusOK, Body: asciiJSON(r)}
}

// pagePath is the path of the site's page that asks, as far as its browser tells.
func (s *siteProxy) pagePath(r *http.Request) string {
	if u, err := url.Parse(r.Referer()); err == nil && s.serves(u, r) {
		if path, ok := pathOf(u.EscapedPath()); ok {
			return path
		}
	}
	return "/"
}

// gateUnits is the gate (page-plane.md section 2) for ad units in place of a page's
// slots.
func (e *Edge) gateUnits(page *http.Request, v *visit) outcome {
	switch {
	case !v.site.Enabled || v.template == nil || !v.template.Enabled:
		return outcomeDisabled
	case len(v.slots) == 0:
		return outcomeNoSlot
	case isSpeculative(page.Header):
		return outcomePrefetch
	case IsBot(page.UserAgent()):
		return outcomeBot
	}
	v.consent = consent.Read(page.Header, e.config.Consent)
	switch {
	case !e.config.AuctionEnabled:
		return outcomeNoAuction
	case !v.consent.Auction:
		return outcomeNoConsent
	}
	return outcomeRun
}

// slots are the slots that ad units ask for. An error names the first unit that is
// not one.
func (a *asking) slots(site *siteProxy, v *visit, units []adUnit) ([]deckle.Slot, error) {
	switch {
	case len(units) == 0:
		return nil, publicapi.Missing("adUnits")
	case len(units) > maxAdUnits:
		return nil, publicapi.Wrong("adUnits", fmt.Sprintf("must be %d at most", maxAdUnits))
	}
	slots := make([]deckle.Slot, 0, len(units))
	seen := make(map[string]bool, len(units))
	v.unlisted = make(map[deckle.SlotID]bool)
	for i := range units {
		u, field := &units[i], fmt.Sprintf("adUnits[%d]", i)
		if !isCode(u.Code) {
			return nil, publicapi.Wrong(field+".code", "must be 1 to 64 of A–Z a–z 0–9 _ -")
		}
		if seen[u.Code] {
			return nil, publicapi.Wrong(field+".code", "is there twice")
		}
		seen[u.Code] = true
		s, err := a.slot(site, v, u, field)
		if err != nil {
			return nil, err
		}
		slots = append(slots, s)
	}
	return slots, nil
}

var codePattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func isCode(s string) bool { return codePattern.MatchString(s) }

// slot is the slot of one ad unit: the template's of that code, or one of its own.
// Its formats are what the page asks for.
func (a *asking) slot(site *siteProxy, v *visit, u *adUnit, field string) (deckle.Slot, error) {
	s := deckle.Slot{
		ID: deckle.SlotID(u.Code), Kind: deckle.GPT, Floor: a.config.DefaultFloors[site.ID],
		Prebid: deckle.PrebidParams{StoredRequest: u.Code},
	}
	known := false
	if v.template != nil {
		if t, ok := v.template.Slot(s.ID); ok {
			s, known = *t, true
		}
	}
	v.unlisted[s.ID] = !known
	if s.Kind != deckle.GPT {
		return s, publicapi.Wrong(field+".code", "is a magazine slot, for which nobody bids here")
	}
	switch banner := u.MediaTypes.Banner; {
	case banner != nil && len(banner.Sizes) > 0:
		formats, err := formatsOf(banner.Sizes, field+".mediaTypes.banner.sizes")
		if err != nil {
			return s, err
		}
		s.Formats = formats
	case !known:
		return s, publicapi.Missing(field + ".mediaTypes.banner.sizes")
	}
	if !known && a.config.ClientParams && len(u.Bids) > 0 {
		params, err := paramsOf(u, field)
		if err != nil {
			return s, err
		}
		s.Prebid = deckle.PrebidParams{Bidders: params}
	}
	return s, nil
}

func formatsOf(sizes [][2]int, field string) ([]deckle.Size, error) {
	if len(sizes) > maxSizes {
		return nil, publicapi.Wrong(field, fmt.Sprintf("must be %d at most", maxSizes))
	}
	formats := make([]deckle.Size, len(sizes))
	for i, s := range sizes {
		if s[0] < 1 || s[1] < 1 || s[0] > maxSide || s[1] > maxSide {
			return nil, publicapi.Wrong(fmt.Sprintf("%s[%d]", field, i), fmt.Sprintf("must be a width and a height from 1 to %d", maxSide))
		}
		formats[i] = deckle.Size{W: s[0], H: s[1]}
	}
	return formats, nil
}

// paramsOf are the bidders' parameters that a browser sends.
func paramsOf(u *adUnit, field string) ([]deckle.BidderParams, error) {
	if len(u.Bids) > maxBidders {
		return nil, publicapi.Wrong(field+".bids", fmt.Sprintf("must be %d at most", maxBidders))
	}
	params := make([]deckle.BidderParams, len(u.Bids))
	for i, b := range u.Bids {
		if !isCode(b.Bidder) {
			return nil, publicapi.Wrong(fmt.Sprintf("%s.bids[%d].bidder", field, i), "must be a bidder code")
		}
		var object map[string]json.RawMessage
		if json.Unmarshal(b.Params, &object) != nil || len(object) == 0 {
			return nil, publicapi.Wrong(fmt.Sprintf("%s.bids[%d].params", field, i), "must be an object that is not empty")
		}
		params[i] = deckle.BidderParams{Bidder: b.Bidder, Params: b.Params}
	}
	return params, nil
}

// The answer, in the words of OpenRTB 2.6 section 4.2.

type bidResponse struct {
	ID      string       `json:"id"`
	Cur     string       `json:"cur"`
	SeatBid []seatBid    `json:"seatbid"`
	Ext     *responseExt `json:"ext,omitempty"`
}

type responseExt struct {
	Skip string `json:"skip"` // the gate's reason why nobody was asked
}

type seatBid struct {
	Seat string `json:"seat"`
	Bid  []bid  `json:"bid"`
}

type bid struct {
	ID      string        `json:"id"`
	ImpID   deckle.SlotID `json:"impid"`
	Price   json.Number   `json:"price"` // exact, never a float
	AdM     string        `json:"adm"`
	W       int           `json:"w"`
	H       int           `json:"h"`
	CrID    string        `json:"crid"`
	ADomain []string      `json:"adomain,omitempty"`
	DealID  string        `json:"dealid,omitempty"`
	NURL    string        `json:"nurl,omitempty"` // where the client is to fire it
	BURL    string        `json:"burl,omitempty"`
	Exp     int           `json:"exp"` // seconds
	Ext     bidExt        `json:"ext"`
}

type bidExt struct {
	Targeting map[string]string `json:"targeting"`
	BURLOn    string            `json:"burl_on,omitempty"` // render; absent: when the creative asks
}

// seatBids are the winners by seat, in the order of the seats' names.
func seatBids(winners []auction.Winner, v *visit) []seatBid {
	bySeat := make(map[string][]bid)
	for i := range winners {
		w := &winners[i]
		b := bid{
			ID: w.ID, ImpID: w.Slot, Price: json.Number(w.Price.String()), AdM: w.AdM, W: w.Size.W, H: w.Size.H, CrID: w.CrID,
			ADomain: w.ADomain, DealID: w.DealID, BURL: w.BURL, Exp: int(w.Expires / time.Second),
			Ext: bidExt{w.Targeting(v.template.TargetingKeys), v.burlOn(w)},
		}
		if !w.EdgeNURL {
			b.NURL = w.NURL
		}
		bySeat[w.Seat] = append(bySeat[w.Seat], b)
	}
	seats := make([]seatBid, 0, len(bySeat))
	for seat, bids := range bySeat {
		seats = append(seats, seatBid{seat, bids})
	}
	slices.SortFunc(seats, func(a, b seatBid) int { return cmp.Compare(a.Seat, b.Seat) })
	return seats
}
