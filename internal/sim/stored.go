package sim

import (
	"maps"
	"time"

	"deckle"
)

// A StoredImp is what a Prebid Server has stored under the id of a slot: sizes,
// and what its seats will offer.
type StoredImp struct {
	Formats []deckle.Size // where the request has none
	Offers  []Offer

	// Fault makes the whole Prebid Server fail for a request with this imp.
	Fault Fault
}

// An Offer is what one seat bids for an imp, whenever it is asked.
type Offer struct {
	Seat string
	CPM  float64 // USD for a thousand impressions
	Deal string
	Wait time.Duration // the seat's own latency; beyond tmax there is no bid

	// Size is offered even if nobody asked for it. Zero: the largest requested
	// format that suits the device.
	Size deckle.Size

	// ImpID is named in the bid in place of the imp's own id.
	ImpID string

	// AdM is the markup, in which [BaseMacro] is filled in. Empty: the seat's own ad.
	// [NoMarkup]: none.
	AdM string

	// Garbage makes the seat answer its server with something that is not JSON.
	Garbage bool

	CrID    string   // default: "cr-" and the seat
	ADomain []string // default: the seat's own
	NURL    string   // default: this server's /ev/nurl
	BURL    string   // default: this server's /ev/burl
}

// NoMarkup as an [Offer.AdM] leaves bid.adm out.
const NoMarkup = "\x00none"

// BaseMacro in an [Offer.AdM] becomes the server's own address, without a scheme:
// "//127.0.0.1:port".
const BaseMacro = "${SIM_BASE}"

// The three seats that bid, by the codes of real Prebid Server adapters.
const (
	automatad   = "automatad"
	optidigital = "optidigital"
	pwbid       = "pwbid"
)

// StoredImps are all stored imps that a [PrebidServer] has unless it is told
// otherwise: those of the demo's template, those of the captures, those that offer
// something bad ("hostile-…", "bad-…") and one a fault ("fault-…").
func StoredImps() map[string]StoredImp {
	all := demoImps()
	maps.Copy(all, captureImps())
	maps.Copy(all, hostileImps())
	for _, f := range Faults() {
		all["fault-"+string(f)] = StoredImp{Formats: mediumRectangle, Fault: f}
	}
	return all
}

var mediumRectangle = []deckle.Size{{W: 300, H: 250}}

// demoImps are the slots of the demo's template. Prices are such that every
// seat wins somewhere, one slot goes to a deal and one to the house.
func demoImps() map[string]StoredImp {
	return map[string]StoredImp{
		"home_leaderboard":    {Offers: []Offer{{Seat: automatad, CPM: 1.87}, {Seat: optidigital, CPM: 2.98}, {Seat: pwbid, CPM: 1.2}}},
		"home_feed":           {Offers: []Offer{{Seat: automatad, CPM: 2.35}, {Seat: optidigital, CPM: 0.75}, {Seat: pwbid, CPM: 2.1}}},
		"section_leaderboard": {Offers: []Offer{{Seat: automatad, CPM: 1.1}, {Seat: pwbid, CPM: 5.1}}},
		"article_leaderboard": {Offers: []Offer{{Seat: automatad, CPM: 4.01}, {Seat: optidigital, CPM: 2.98}, {Seat: pwbid, CPM: 4, Deal: "D-7"}}},
		"article_sidebar":     {Offers: []Offer{{Seat: automatad, CPM: 1.05}, {Seat: pwbid, CPM: 3.4}}},
		"article_incontent":   {Offers: []Offer{{Seat: optidigital, CPM: 1.64}, {Seat: pwbid, CPM: 1.2}}},
		"article_end":         {Offers: []Offer{{Seat: optidigital, CPM: 0.21}}},
	}
}

// captureImps are the stored imps behind the captures of a real Prebid Server.
func captureImps() map[string]StoredImp {
	three := func(a, o, p Offer) StoredImp {
		a.Seat, o.Seat, p.Seat = automatad, optidigital, pwbid
		return StoredImp{Formats: mediumRectangle, Offers: []Offer{a, o, p}}
	}
	one := func(o Offer) StoredImp {
		o.Seat, o.CPM = automatad, 2
		return StoredImp{Formats: mediumRectangle, Offers: []Offer{o}}
	}
	top := three(Offer{CPM: 1.87}, Offer{CPM: 0.75}, Offer{CPM: 1.2})
	top.Formats = []deckle.Size{{W: 728, H: 90}}
	foot := StoredImp{
		Formats: []deckle.Size{{W: 970, H: 250}},
		Offers:  []Offer{{Seat: automatad, CPM: 0.26}, {Seat: pwbid, CPM: 5.1}},
	}
	return map[string]StoredImp{
		"top":          top,
		"side":         three(Offer{CPM: 4.01}, Offer{CPM: 2.98}, Offer{CPM: 4, Deal: "D-7"}),
		"foot":         foot,
		"tie":          three(Offer{CPM: 2}, Offer{CPM: 2}, Offer{CPM: 2}),
		"slow":         three(Offer{CPM: 1}, Offer{CPM: 2}, Offer{CPM: 9, Wait: 3 * time.Second}),
		"bad-garbage":  three(Offer{CPM: 1}, Offer{CPM: 0.5}, Offer{CPM: 2, Garbage: true}),
		"bad-http":     three(Offer{CPM: 1}, Offer{CPM: 0.5}, Offer{CPM: 2, AdM: `<img src="http://insecure.example/x.gif">`}),
		"auto-badimp":  one(Offer{ImpID: "no-such-imp"}),
		"auto-badsize": one(Offer{Size: deckle.Size{W: 1, H: 7777}}),
		"auto-noadm":   one(Offer{AdM: NoMarkup}),
	}
}
