package auction

import "strconv"

// maxLosses is how many loss notices one answer can cause.
const maxLosses = 256

// A loss is an offer that has not won, of a provider that wants its bidders told
// (OpenRTB lurl). Its notice is made when it is fired: nothing that grows with what
// a stranger sent is done while a page waits.
type loss struct {
	offer    *Offer
	request  string
	bidID    string
	currency string
	slot     int
	code     lossCode // 0: it was still in the running when its answer had been judged
}

// A lossCode is one of OpenRTB's loss reason codes.
type lossCode int

// What happens to offers that broke no rule.
const (
	lostInternally   lossCode = 1
	lostToHigherBid  lossCode = 102
	lostToBidForDeal lossCode = 103
)

// lossOf is the loss reason code of what was wrong with an offer.
func lossOf(reason NonBidReason) lossCode {
	switch reason {
	case ReasonMalformed, ReasonUnknownImp, ReasonMissingID, ReasonDuplicateID, ReasonCurrency, ReasonTooMany:
		return 3
	case ReasonNoMarkup:
		return 7
	case ReasonInvalidPrice:
		return 9
	case ReasonBelowFloor:
		return 100
	case ReasonMarkupTooLarge:
		return 200
	case ReasonSize:
		return 203
	case ReasonMediaType:
		return 204
	case ReasonBlockedADomain:
		return 205
	case ReasonInsecureMarkup:
		return 207
	case ReasonBlockedCategory:
		return 209
	case ReasonScriptCreative:
		return 211
	}
	return lostInternally
}

// losses are the offers of all answers that have not won, as far as their bidders
// want to know, now that the winners are picked. won has a winner by its slot.
func losses(heard []reply, won map[int]*candidate) (all []loss) {
	for i := range heard {
		for _, l := range heard[i].losses {
			if l.code == 0 {
				w := won[l.slot]
				switch {
				case w == nil: // the page had no room for its markup
					l.code = lossOf(ReasonMarkupTooLarge)
				case w.offer == l.offer:
					continue
				case w.offer.DealID != "" && l.offer.DealID == "":
					l.code = lostToBidForDeal
				default:
					l.code = lostToHigherBid
				}
			}
			all = append(all, l)
		}
	}
	return all
}

// url is the loss's notice, or false where there can be none. It says why the offer
// has lost and not to whom: the price of another bid is nobody's to know.
func (l *loss) url() (string, bool) {
	m := macrosOf(l.request, l.bidID, l.currency, l.offer)
	code := strconv.Itoa(int(l.code))
	m[macroLoss] = macroValue{code, escapes(code)}
	m[macroPrice], m[macroMBR] = macroValue{}, macroValue{}
	return m.fill(l.offer.LURL, 2*maxURL)
}
