package prebid

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"deckle"
	"deckle/internal/auction"
	"deckle/internal/openrtb"
)

// Encode builds the OpenRTB request for the slots that Prebid Server knows: those
// with a stored request or with bidder parameters. The slot's id is the imp's id.
func (d *Dialect) Encode(r *auction.Request, tmax time.Duration) (*auction.Call, error) {
	imps := make([]openrtb.Imp, 0, len(r.Slots))
	for i := range r.Slots {
		if ext, ok := impExtOf(&r.Slots[i], r.Section); ok {
			imp := openrtb.NewImp(&r.Slots[i], r)
			imp.TagID, imp.Ext = ext.GPID, ext
			imps = append(imps, imp)
		}
	}
	if len(imps) == 0 {
		return nil, nil
	}
	req := openrtb.NewBidRequest(r, tmax, d.account)
	req.Imp = imps
	req.Ext = requestExt{Prebid: requestExtPrebid{ReturnAllBidStatus: true}}
	body, err := req.Encode()
	if err != nil {
		return nil, err
	}
	return &auction.Call{URL: d.url, Header: d.header, Body: body}, nil
}

type requestExt struct {
	Prebid requestExtPrebid `json:"prebid"`
}

// requestExtPrebid asks for no targeting and no cache: buckets are ours, and
// Prebid Server's are one step low.
type requestExtPrebid struct {
	ReturnAllBidStatus bool `json:"returnallbidstatus"`
}

type impExt struct {
	GPID   string            `json:"gpid,omitzero"`
	Data   *openrtb.SlotData `json:"data,omitzero"`
	Prebid impExtPrebid      `json:"prebid"`
}

type impExtPrebid struct {
	StoredRequest storedRequest             `json:"storedrequest,omitzero"`
	Bidder        map[string]jsontext.Value `json:"bidder,omitempty"`
}

type storedRequest struct {
	ID string `json:"id"`
}

// impExtOf says how Prebid Server knows the slot, or false if it does not. Bidders
// without parameters are left out: one of them costs the whole page's auction.
func impExtOf(s *deckle.Slot, section string) (impExt, bool) {
	unit := s.UnitPath(section)
	ext := impExt{GPID: unit, Data: openrtb.NewSlotData(s, unit)}
	if s.Kind == deckle.Magazine {
		return ext, false
	}
	if s.Prebid.StoredRequest != "" {
		ext.Prebid.StoredRequest.ID = s.Prebid.StoredRequest
		return ext, true
	}
	for _, b := range s.Prebid.Bidders {
		if isEmptyObject(b.Params) {
			continue
		}
		if ext.Prebid.Bidder == nil {
			ext.Prebid.Bidder = make(map[string]jsontext.Value, len(s.Prebid.Bidders))
		}
		ext.Prebid.Bidder[b.Bidder] = b.Params
	}
	return ext, len(ext.Prebid.Bidder) > 0
}

// isEmptyObject reports whether params hold nothing that could be sent.
func isEmptyObject(params []byte) bool {
	v := jsontext.Value(params).Clone()
	return v.Compact() != nil || v.Kind() != '{' || len(v) == len("{}")
}
