package auction

import (
	"cmp"
	"math/big"
	"slices"
	"strings"

	"deckle"
)

// What one bid may be at most, in bytes.
const (
	maxSeat   = 64
	maxID     = 512
	maxURL    = 8 << 10
	maxMarkup = 64 << 10 // also after its macros are filled in
)

// A candidate is an offer that may win.
type candidate struct {
	offer    *Offer
	price    deckle.CPM
	slot     int // its place in the request
	rank     int // its provider's place in the configuration
	bidID    string
	currency string
}

// judge turns the offers of one answer into candidates, and counts why the others
// are none. What it decides does not depend on the order of the offers.
func (h *House) judge(r *Request, rank int, a *Answer) ([]candidate, map[NonBidReason]int) {
	nonBids := make(map[NonBidReason]int)
	for _, n := range a.NonBids {
		nonBids[n.Reason]++
	}
	// OpenRTB: cur defaults to USD.
	currency := strings.ToUpper(cmp.Or(a.Currency, "USD"))
	rate, convertible := h.currency.Rate(currency, r.Currency)
	candidates := make([]candidate, 0, len(a.Offers))
	for i := range a.Offers {
		o := &a.Offers[i]
		o.Seat = cmp.Or(o.Seat, h.providers[rank].Name)
		slot := r.slot(o.ImpID)
		reason := fault(r, o, slot)
		var price deckle.CPM
		if reason == "" {
			price, reason = h.price(o, rate, convertible)
		}
		if reason == "" && price < r.Slots[slot].Floor {
			reason = ReasonBelowFloor
		}
		if reason != "" {
			nonBids[reason]++
			continue
		}
		candidates = append(candidates, candidate{o, price, slot, rank, a.BidID, currency})
	}
	return unique(candidates, r.PreferDeals, nonBids), nonBids
}

// fault is the first rule that an offer breaks, apart from those about its price.
// slot is its slot's place in the request, or -1.
func fault(r *Request, o *Offer, slot int) NonBidReason {
	switch {
	case !bounded(o):
		return ReasonMalformed
	case o.ID == "":
		return ReasonMissingID
	case slot < 0:
		return ReasonUnknownImp
	case o.MType != 0 && o.MType != mtypeBanner:
		return ReasonMediaType
	case !fits(&r.Slots[slot], o):
		return ReasonSize
	case strings.TrimSpace(o.AdM) == "":
		return ReasonNoMarkup
	case len(o.AdM) > maxMarkup:
		return ReasonMarkupTooLarge
	case insecure(o.AdM):
		return ReasonInsecureMarkup
	case slices.ContainsFunc(o.ADomain, func(d string) bool { return blockedDomain(r.Site.BAdv, d) }):
		return ReasonBlockedADomain
	case slices.ContainsFunc(o.Cat, func(c string) bool { return blockedCategory(r.Site.BCat, c) }):
		return ReasonBlockedCategory
	}
	return ""
}

const mtypeBanner = 1 // OpenRTB 2.6, Bid.mtype

// bounded reports whether no field of an offer is larger than any honest one.
func bounded(o *Offer) bool {
	return len(o.Seat) <= maxSeat && o.Exp >= 0 &&
		len(o.ID) <= maxID && len(o.AdID) <= maxID && len(o.CrID) <= maxID && len(o.DealID) <= maxID &&
		len(o.NURL) <= maxURL && len(o.BURL) <= maxURL
}

// price is what an offer pays, in the request's currency, adjusted, rounded once.
func (h *House) price(o *Offer, rate *big.Rat, convertible bool) (deckle.CPM, NonBidReason) {
	if !convertible {
		return 0, ReasonCurrency
	}
	factors := make([]*big.Rat, 0, 2)
	if rate != nil {
		factors = append(factors, rate)
	}
	if f := h.adjustments[o.Seat]; f != nil {
		factors = append(factors, f)
	}
	price, err := deckle.ParseCPM(o.Price, factors...)
	if err != nil || price <= 0 {
		return 0, ReasonInvalidPrice
	}
	return price, ""
}

// fits reports whether an offer has the size of one of the slot's formats. One
// without a size fits where only one is possible.
func fits(s *deckle.Slot, o *Offer) bool {
	if o.W == 0 && o.H == 0 {
		return len(s.Formats) == 1
	}
	return slices.Contains(s.Formats, deckle.Size{W: o.W, H: o.H})
}

// size is the size that a fitting offer will have.
func size(s *deckle.Slot, o *Offer) deckle.Size {
	if o.W == 0 && o.H == 0 {
		return s.Formats[0]
	}
	return deckle.Size{W: o.W, H: o.H}
}

// insecure is Prebid Server's rule for secure markup: it names http: and nowhere
// https:, plain or percent-encoded.
func insecure(adm string) bool {
	return names(adm, "http") && !names(adm, "https")
}

func names(adm, scheme string) bool {
	return strings.Contains(adm, scheme+":") || strings.Contains(adm, scheme+"%3A") || strings.Contains(adm, scheme+"%3a")
}

// blockedDomain reports whether an advertiser's domain is one of the blocked ones
// or below one. Bidders also send addresses where only a domain belongs.
func blockedDomain(blocked []string, domain string) bool {
	if len(blocked) == 0 {
		return false
	}
	domain = strings.ToLower(strings.TrimSpace(domain))
	if _, rest, ok := strings.Cut(domain, "://"); ok {
		domain = rest
	}
	if i := strings.IndexAny(domain, "/?#:"); i >= 0 {
		domain = domain[:i]
	}
	domain = strings.TrimSuffix(domain, ".")
	return slices.ContainsFunc(blocked, func(b string) bool {
		rest, ok := strings.CutSuffix(domain, b)
		return ok && (rest == "" || strings.HasSuffix(rest, "."))
	})
}

// blockedCategory reports whether a category is one of the blocked ones or a
// subcategory of one: IAB7 blocks IAB7-28 (IAB Content Taxonomy 1.0).
func blockedCategory(blocked []string, cat string) bool {
	return slices.ContainsFunc(blocked, func(b string) bool {
		rest, ok := strings.CutPrefix(cat, b)
		return ok && (rest == "" || rest[0] == '-')
	})
}

// unique keeps the best of the candidates with the same seat and id and counts
// the others. It takes over the slice.
func unique(cs []candidate, preferDeals bool, nonBids map[NonBidReason]int) []candidate {
	slices.SortFunc(cs, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.offer.Seat, b.offer.Seat), cmp.Compare(a.offer.ID, b.offer.ID), compare(a, b, preferDeals))
	})
	n := len(cs)
	cs = slices.CompactFunc(cs, func(a, b candidate) bool {
		return a.offer.Seat == b.offer.Seat && a.offer.ID == b.offer.ID
	})
	if dropped := n - len(cs); dropped > 0 {
		nonBids[ReasonDuplicateID] += dropped
	}
	return cs
}

// compare orders candidates from the best to the worst: deals first where they
// are preferred, then the price; ties by provider, seat and bid id.
func compare(a, b candidate, preferDeals bool) int {
	if preferDeals && (a.offer.DealID == "") != (b.offer.DealID == "") {
		if a.offer.DealID != "" {
			return -1
		}
		return 1
	}
	if c := cmp.Or(
		cmp.Compare(b.price, a.price),
		cmp.Compare(a.rank, b.rank),
		cmp.Compare(a.offer.Seat, b.offer.Seat),
		cmp.Compare(a.offer.ID, b.offer.ID),
	); c != 0 {
		return c
	}
	return compareContent(a.offer, b.offer)
}

// compareContent separates offers of one seat with the same id, so that not even
// among those the order of arrival decides. Offers that it calls equal are equal.
func compareContent(a, b *Offer) int {
	return cmp.Or(
		cmp.Compare(a.ImpID, b.ImpID),
		cmp.Compare(a.Price, b.Price), // two texts may be one price
		cmp.Compare(a.DealID, b.DealID),
		cmp.Compare(a.W, b.W),
		cmp.Compare(a.H, b.H),
		cmp.Compare(a.Exp, b.Exp),
		cmp.Compare(a.CrID, b.CrID),
		cmp.Compare(a.AdID, b.AdID),
		cmp.Compare(a.AdM, b.AdM),
		cmp.Compare(a.NURL, b.NURL),
		cmp.Compare(a.BURL, b.BURL),
		slices.Compare(a.ADomain, b.ADomain),
	)
}
