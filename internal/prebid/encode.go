package prebid

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"deckle"
	"deckle/internal/auction"
	"deckle/internal/consent"
)

// Encode builds the OpenRTB request for the slots that Prebid Server knows: those
// with a stored request or with bidder parameters. The slot's id is the imp's id.
func (d *Dialect) Encode(r *auction.Request, tmax time.Duration) (*auction.Call, error) {
	imps := make([]imp, 0, len(r.Slots))
	for i := range r.Slots {
		if ext, ok := impExtOf(&r.Slots[i], r.Section); ok {
			imps = append(imps, impOf(&r.Slots[i], r, ext))
		}
	}
	if len(imps) == 0 {
		return nil, nil
	}
	body, err := json.Marshal(bidRequest{
		ID:     r.ID,
		Imp:    imps,
		Site:   siteOf(&r.Site, d.account),
		Device: deviceOf(&r.Device),
		User:   user{Consent: r.Consent.TCString},
		Regs:   regsOf(&r.Consent),
		TMax:   tmax.Milliseconds(),
		Cur:    []string{r.Currency},
		BAdv:   r.Site.BAdv,
		BCat:   r.Site.BCat,
		Source: sourceOf(r.Site.SChain),
		Ext:    requestExt{Prebid: requestExtPrebid{ReturnAllBidStatus: true}},
	}, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) // a reader's User-Agent may be any bytes
	if err != nil {
		return nil, fmt.Errorf("encode bid request: %w", err)
	}
	return &auction.Call{URL: d.url, Header: d.header, Body: body}, nil
}

// The request, in the words of OpenRTB 2.6 section 3.2. What is zero is left out:
// Prebid Server merges its stored request below ours.

type bidRequest struct {
	ID     string     `json:"id"`
	Imp    []imp      `json:"imp"`
	Site   site       `json:"site"`
	Device device     `json:"device,omitzero"`
	User   user       `json:"user,omitzero"`
	Regs   regs       `json:"regs,omitzero"`
	TMax   int64      `json:"tmax"` // ms
	Cur    []string   `json:"cur"`
	BAdv   []string   `json:"badv,omitempty"`
	BCat   []string   `json:"bcat,omitempty"`
	Source *source    `json:"source,omitzero"`
	Ext    requestExt `json:"ext"`
}

type requestExt struct {
	Prebid requestExtPrebid `json:"prebid"`
}

// requestExtPrebid asks for no targeting and no cache: buckets are ours, and
// Prebid Server's are one step low.
type requestExtPrebid struct {
	ReturnAllBidStatus bool `json:"returnallbidstatus"`
}

type imp struct {
	ID          string         `json:"id"`
	Banner      banner         `json:"banner"`
	TagID       string         `json:"tagid,omitzero"`
	Secure      int            `json:"secure"`
	BidFloor    jsontext.Value `json:"bidfloor,omitzero"`
	BidFloorCur string         `json:"bidfloorcur,omitzero"`
	Ext         impExt         `json:"ext"`
}

type banner struct {
	Format []format `json:"format"`
}

type format struct {
	W int `json:"w"`
	H int `json:"h"`
}

type impExt struct {
	GPID   string       `json:"gpid,omitzero"`
	Prebid impExtPrebid `json:"prebid"`
}

type impExtPrebid struct {
	StoredRequest storedRequest             `json:"storedrequest,omitzero"`
	Bidder        map[string]jsontext.Value `json:"bidder,omitempty"`
}

type storedRequest struct {
	ID string `json:"id"`
}

// impOf is the imp of a slot.
func impOf(s *deckle.Slot, r *auction.Request, ext impExt) imp {
	i := imp{ID: string(s.ID), TagID: ext.GPID, Secure: 1, Ext: ext}
	i.Banner.Format = make([]format, len(s.Formats))
	for n, f := range s.Formats {
		i.Banner.Format[n] = format(f)
	}
	if s.Floor > 0 {
		i.BidFloor, i.BidFloorCur = jsontext.Value(s.Floor.String()), r.Currency // exact, never a float
	}
	return i
}

// impExtOf says how Prebid Server knows the slot, or false if it does not. Bidders
// without parameters are left out: one of them costs the whole page's auction.
func impExtOf(s *deckle.Slot, section string) (impExt, bool) {
	ext := impExt{GPID: s.UnitPath(section)}
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

type site struct {
	Domain    string    `json:"domain,omitzero"`
	Page      string    `json:"page,omitzero"`
	Ref       string    `json:"ref,omitzero"`
	Publisher publisher `json:"publisher,omitzero"`
}

type publisher struct {
	ID string `json:"id"`
}

func siteOf(s *auction.Site, account string) site {
	return site{Domain: s.Domain, Page: s.Page, Ref: s.Ref, Publisher: publisher{account}}
}

type device struct {
	UA       string `json:"ua,omitzero"`
	IP       string `json:"ip,omitzero"`
	IPv6     string `json:"ipv6,omitzero"`
	Language string `json:"language,omitzero"`
}

func deviceOf(d *auction.Device) device {
	out := device{UA: d.UA, Language: d.Language}
	switch ip := d.IP.Unmap().WithZone(""); {
	case ip.Is4():
		out.IP = ip.String()
	case ip.Is6():
		out.IPv6 = ip.String()
	}
	return out
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
