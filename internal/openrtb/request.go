// Package openrtb reads and writes what all our dialects share of OpenRTB 2.6: it
// turns an auction's request into a BidRequest, and a BidResponse of any stranger
// into offers, within bounds. It is pure.
//
// A dialect adds what its provider has of its own: extensions, and how it names a
// slot. Nothing here trusts or judges what a response says.
package openrtb

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"deckle"
	"deckle/internal/auction"
	"deckle/internal/consent"
)

// A BidRequest is the request, in the words of OpenRTB 2.6 section 3.2. What is
// zero is left out: some providers merge what they have stored below ours.
type BidRequest struct {
	ID     string   `json:"id"`
	Imp    []Imp    `json:"imp"`
	Site   site     `json:"site"`
	Device device   `json:"device,omitzero"`
	User   user     `json:"user,omitzero"`
	Regs   regs     `json:"regs,omitzero"`
	Test   int      `json:"test,omitzero"`
	TMax   int64    `json:"tmax"` // ms
	Cur    []string `json:"cur"`
	BAdv   []string `json:"badv,omitempty"`
	BCat   []string `json:"bcat,omitempty"`
	Source *source  `json:"source,omitzero"`
	Ext    any      `json:"ext,omitzero"`
}

// NewBidRequest is the BidRequest for r: all of it but its imps and its extension.
// The request's account at the provider may be empty.
func NewBidRequest(r *auction.Request, tmax time.Duration, account string) BidRequest {
	test := 0
	if r.Test {
		test = 1
	}
	return BidRequest{
		ID:     r.ID,
		Test:   test,
		Site:   site{Domain: r.Site.Domain, Page: r.Site.Page, Ref: r.Site.Ref, Publisher: publisher{account}},
		Device: deviceOf(&r.Device),
		User:   user{Consent: r.Consent.TCString},
		Regs:   regsOf(&r.Consent),
		TMax:   tmax.Milliseconds(),
		Cur:    []string{r.Currency},
		BAdv:   r.Site.BAdv,
		BCat:   r.Site.BCat,
		Source: sourceOf(r.Site.SChain),
	}
}

// Encode is the request as JSON. A reader's User-Agent may be any bytes.
func (r *BidRequest) Encode() ([]byte, error) {
	body, err := json.Marshal(r, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, fmt.Errorf("encode bid request: %w", err)
	}
	return body, nil
}

// An Imp is one slot that bids are asked for.
type Imp struct {
	ID          string         `json:"id"`
	Banner      banner         `json:"banner"`
	TagID       string         `json:"tagid,omitzero"`
	Secure      int            `json:"secure"`
	BidFloor    jsontext.Value `json:"bidfloor,omitzero"`
	BidFloorCur string         `json:"bidfloorcur,omitzero"`
	Ext         any            `json:"ext,omitzero"`
}

// NewImp is the imp of a slot: its id is the slot's. TagID and Ext are the
// dialect's.
func NewImp(s *deckle.Slot, r *auction.Request) Imp {
	i := Imp{ID: string(s.ID), Secure: 1}
	i.Banner.Format = make([]format, len(s.Formats))
	for n, f := range s.Formats {
		i.Banner.Format[n] = format(f)
	}
	if s.Floor > 0 {
		i.BidFloor, i.BidFloorCur = jsontext.Value(s.Floor.String()), r.Currency // exact, never a float
	}
	return i
}

type banner struct {
	Format []format `json:"format"`
	W      int      `json:"w,omitzero"` // for those that want one size beside the list
	H      int      `json:"h,omitzero"`
}

type format struct {
	W int `json:"w"`
	H int `json:"h"`
}

// site is the page, as far as bidders may know it.
type site struct {
	Domain    string    `json:"domain,omitzero"`
	Page      string    `json:"page,omitzero"`
	Ref       string    `json:"ref,omitzero"`
	Publisher publisher `json:"publisher,omitzero"`
}

type publisher struct {
	ID string `json:"id"`
}

type user struct {
	Consent string `json:"consent"` // the TC string
}

type regs struct {
	GDPR *int    `json:"gdpr,omitzero"`
	Ext  regsExt `json:"ext,omitzero"`
}

// regsExt is where Prebid Server looks for Global Privacy Control: a string.
type regsExt struct {
	GPC string `json:"gpc"`
}

func regsOf(d *consent.Decision) regs {
	var r regs
	switch d.GDPR {
	case consent.Yes:
		r.GDPR = new(1)
	case consent.No:
		r.GDPR = new(0)
	case consent.Unknown: // absent, so that the server's own default decides
	}
	if d.GPC {
		r.Ext.GPC = "1"
	}
	return r
}

type source struct {
	SChain schain `json:"schain"`
}

type schain struct {
	Complete int          `json:"complete"`
	Nodes    []schainNode `json:"nodes"`
	Ver      string       `json:"ver"`
}

type schainNode struct {
	ASI string `json:"asi"`
	SID string `json:"sid"`
	HP  int    `json:"hp"`
}

// sourceOf is the supply chain, which begins with this publisher and is therefore
// complete. Without nodes there is none.
func sourceOf(nodes []auction.SChainNode) *source {
	if len(nodes) == 0 {
		return nil
	}
	c := schain{Complete: 1, Ver: "1.0", Nodes: make([]schainNode, len(nodes))}
	for i, n := range nodes {
		c.Nodes[i] = schainNode{ASI: n.ASI, SID: n.SID, HP: 1}
	}
	return &source{c}
}
