package sim

import "github.com/go-json-experiment/json/jsontext"

// What a Prebid Server reads of an OpenRTB 2.6 request, as far as ours acts on it.
type bidRequest struct {
	ID   string   `json:"id"`
	Imp  []imp    `json:"imp"`
	Cur  []string `json:"cur"`
	TMax int64    `json:"tmax"` // ms
	Site struct {
		Publisher struct {
			ID string `json:"id"`
		} `json:"publisher"`
	} `json:"site"`
	Device struct {
		UA string `json:"ua"`
	} `json:"device"`
	User struct {
		Consent string `json:"consent"`
		Ext     struct {
			Consent string `json:"consent"` // OpenRTB 2.5's place
		} `json:"ext"`
	} `json:"user"`
	Regs struct {
		GDPR int `json:"gdpr"`
		Ext  struct {
			GDPR int `json:"gdpr"` // OpenRTB 2.5's place
		} `json:"ext"`
	} `json:"regs"`
	Ext struct {
		Prebid struct {
			StoredRequest      storedRequest   `json:"storedrequest"`
			Targeting          *targetingRules `json:"targeting"`
			ReturnAllBidStatus bool            `json:"returnallbidstatus"`
		} `json:"prebid"`
	} `json:"ext"`
}

type imp struct {
	ID     string `json:"id"`
	Banner struct {
		Format []struct {
			W int `json:"w"`
			H int `json:"h"`
		} `json:"format"`
	} `json:"banner"`
	Ext struct {
		Prebid struct {
			StoredRequest storedRequest             `json:"storedrequest"`
			Bidder        map[string]jsontext.Value `json:"bidder"`
		} `json:"prebid"`
	} `json:"ext"`
}

type storedRequest struct {
	ID string `json:"id"`
}

// targetingRules is request.ext.prebid.targeting. What is absent is true but for
// the last three.
type targetingRules struct {
	PriceGranularity   jsontext.Value `json:"pricegranularity"` // a name, or an object that is read as the default
	IncludeWinners     *bool          `json:"includewinners"`
	IncludeBidderKeys  *bool          `json:"includebidderkeys"`
	IncludeFormat      bool           `json:"includeformat"`
	PreferDeals        bool           `json:"preferdeals"`
	AlwaysIncludeDeals bool           `json:"alwaysincludedeals"`
}

// What it answers. The order of fields is that of the captures.
type bidResponse struct {
	ID      string      `json:"id"`
	SeatBid []seatBid   `json:"seatbid,omitempty"`
	Cur     string      `json:"cur,omitempty"`
	NBR     int         `json:"nbr,omitzero"`
	Ext     responseExt `json:"ext"`
}

type seatBid struct {
	Bid  []bid  `json:"bid"`
	Seat string `json:"seat"`
}

type bid struct {
	ID      string   `json:"id"`
	ImpID   string   `json:"impid"`
	Price   float64  `json:"price"`
	NURL    string   `json:"nurl,omitempty"`
	BURL    string   `json:"burl,omitempty"`
	LURL    string   `json:"lurl,omitempty"`
	AdM     string   `json:"adm,omitempty"`
	ADomain []string `json:"adomain,omitempty"`
	CrID    string   `json:"crid"`
	DealID  string   `json:"dealid,omitempty"`
	W       int      `json:"w"`
	H       int      `json:"h"`
	Exp     int      `json:"exp"`
	MType   int      `json:"mtype"`
	Ext     bidExt   `json:"ext"`
}

type bidExt struct {
	OrigBidCPM float64 `json:"origbidcpm"`
	OrigBidCur string  `json:"origbidcur"`
	Prebid     struct {
		Events struct {
			Win string `json:"win"`
			Imp string `json:"imp"`
		} `json:"events"`
		Meta struct {
			AdapterCode string `json:"adaptercode"`
		} `json:"meta"`
		Targeting map[string]string `json:"targeting,omitempty"`
		Type      string            `json:"type"`
	} `json:"prebid"`
}

type responseExt struct {
	Errors             map[string][]extMessage `json:"errors,omitempty"`
	Warnings           map[string][]extMessage `json:"warnings,omitempty"`
	ResponseTimeMillis map[string]int64        `json:"responsetimemillis,omitempty"`
	TMaxRequest        int64                   `json:"tmaxrequest,omitzero"`
	Prebid             struct {
		AuctionTimestamp int64        `json:"auctiontimestamp"` // ms
		SeatNonBid       []seatNonBid `json:"seatnonbid,omitempty"`
	} `json:"prebid"`
}

type extMessage struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

type seatNonBid struct {
	NonBid []nonBid `json:"nonbid"`
	Seat   string   `json:"seat"`
}

type nonBid struct {
	ImpID      string `json:"impid"`
	StatusCode int    `json:"statuscode"`
}

// Codes that Prebid Server uses.
const (
	nbrInvalidRequest   = 2     // OpenRTB no-bid reason: invalid request
	nonBidTimeout       = 101   // Prebid's non-bid status: error, timeout
	errTimeout          = 1     // ext.errors: the bidder did not answer in time
	errBadResponse      = 14    // ext.errors: the bidder's answer could not be read
	warnDebugNotAllowed = 10002 // ext.warnings
)
