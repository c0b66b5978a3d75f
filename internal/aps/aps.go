// Package aps speaks the OpenRTB dialect of Amazon Publisher Services: one request
// for all of a page's slots that Amazon knows, one bid response in which display
// bids name a creative's address in place of markup. It is pure.
//
// Only that dialect has prices that can be read. The one before it answers with
// opaque price codes, which no auction can compare; package config refuses it.
package aps

import (
	"net/http"
	"time"

	"deckle"
	"deckle/internal/auction"
	"deckle/internal/openrtb"
)

// Config configures a [Dialect].
type Config struct {
	Endpoint  string // the URL that requests go to
	AccountID string // the publisher's account, sent as ext.account

	// ScriptCreatives lets creatives run as a script in the frame that the ad server
	// gives them. Without it only those win that bring a frame of their own.
	ScriptCreatives bool
}

// A Dialect is an [auction.Dialect] for APS.
type Dialect struct {
	config Config
	header http.Header // of every call; never changed
}

// New makes the dialect that c describes.
func New(c Config) *Dialect {
	return &Dialect{c, http.Header{
		"Content-Type":      {"application/json"},
		"Accept":            {"application/json"},
		"User-Agent":        {"deckle"},
		"X-Openrtb-Version": {"2.6"},
	}}
}

// currency is that of every price of APS.
const currency = "USD"

// Encode builds the request for the slots that have an id at Amazon, which is sent
// as imp.tagid.
func (d *Dialect) Encode(r *auction.Request, tmax time.Duration) (*auction.Call, error) {
	var imps []openrtb.Imp
	for i := range r.Slots {
		if s := &r.Slots[i]; s.APSID != "" && s.Kind != deckle.Magazine {
			imps = append(imps, impOf(s, r))
		}
	}
	if len(imps) == 0 {
		return nil, nil
	}
	req := openrtb.NewBidRequest(r, tmax, "")
	req.Imp = imps
	req.Cur = []string{currency}
	req.Ext = requestExt{Account: d.config.AccountID}
	body, err := req.Encode()
	if err != nil {
		return nil, err
	}
	return &auction.Call{URL: d.config.Endpoint, Header: d.header, Body: body}, nil
}

type requestExt struct {
	Account string `json:"account"`
}

type impExt struct {
	GPID string            `json:"gpid,omitzero"`
	Data *openrtb.SlotData `json:"data,omitzero"`
}

// impOf is the imp of a slot. Amazon's own adapter for Prebid.js gives a banner the
// size of its first format beside the list.
func impOf(s *deckle.Slot, r *auction.Request) openrtb.Imp {
	unit := s.UnitPath(r.Section)
	imp := openrtb.NewImp(s, r)
	imp.TagID = s.APSID
	imp.Ext = impExt{GPID: unit, Data: openrtb.NewSlotData(s, unit)}
	if len(s.Formats) > 0 {
		imp.Banner.W, imp.Banner.H = s.Formats[0].W, s.Formats[0].H
	}
	return imp
}

// Blame blames nobody: what APS says of a request that it refuses is not documented.
func (d *Dialect) Blame(*auction.Request, string) []int { return nil }
