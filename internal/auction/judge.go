package auction

import (
	"cmp"
	"context"
	"math/big"
	"slices"
	"strings"

	"deckle"
)

// What one bid may be at most.
const (
	maxSeat   = 64       // bytes
	maxID     = 512      // bytes
	maxURL    = 8 << 10  // bytes
	maxMarkup = 64 << 10 // bytes, also after its macros are filled in
	maxList   = 32       // advertiser domains, and categories
)

// MaxOffers is how many offers of one answer are looked at: 40 slots with 50 seats
// or so for each.
const MaxOffers = 2048

// maxTries is how many candidates of an answer are kept for a slot. The second and
// the rest count where the page has no room for the markup of those before.
const maxTries = 8

// A candidate is an offer that may win.
type candidate struct {
	offer    *Offer
	price    deckle.CPM
	slot     int // its place in the request
	rank     int // its provider's place in the configuration
	size     int // bytes of its markup with the macros filled in
	bidID    string
	currency string
}

// A verdict is what judge says of one answer.
type verdict struct {
	bids    int         // offers that could win
	best    []candidate // of those, the best of each slot: at most maxTries
	nonBids map[NonBidReason]int
	losses  []loss // of bidders that want to know: all that may lose, and all that have lost
}

// judge turns the offers of one answer into candidates, and counts why the others
// are none. What it decides of at most MaxOffers does not depend on their order.
//
// Everything that takes time in proportion to what a stranger sent is done here,
// within the time of that stranger's answer: when ctx ends, judge gives up on the
// answer at the next offer, with the context's error.
func (h *House) judge(ctx context.Context, r *Request, rank int, a *Answer) (verdict, error) {
	v := verdict{nonBids: make(map[NonBidReason]int)}
	for _, n := range a.NonBids {
		v.nonBids[n.Reason]++
	}
	if extra := len(a.Offers) - MaxOffers; extra > 0 {
		v.nonBids[ReasonTooMany] += extra
		a.Offers = a.Offers[:MaxOffers]
	}
	if len(a.BidID) > maxID {
		a.BidID = "" // only a macro stands for it
	}
	currency := strings.ToUpper(cmp.Or(a.Currency, "USD"))
	rate, convertible := h.currency.Rate(currency, r.Currency)
	candidates := make([]candidate, 0, len(a.Offers))
	for i := range a.Offers {
		if err := ctx.Err(); err != nil {
			return verdict{}, err
		}
		o := &a.Offers[i]
		o.Seat = cmp.Or(o.Seat, h.providers[rank].Name)
		c := candidate{offer: o, slot: r.slot(o.ImpID), rank: rank, bidID: a.BidID, currency: currency}
		reason := fault(r, o, c.slot)
		if reason == "" {
			c.price, reason = h.price(o, rate, convertible)
		}
		if reason == "" {
			reason = c.weigh(r)
		}
		h.mayLose(&v, r, &c, reason)
		if reason != "" {
			v.nonBids[reason]++
			continue
		}
		candidates = append(candidates, c)
	}
	candidates = unique(candidates, r.PreferDeals, v.nonBids)
	v.bids, v.best = len(candidates), best(candidates, r.PreferDeals)
	return v, ctx.Err()
}

// mayLose notes an offer whose bidder wants to know if it loses. reason is why it
// has lost already, if it has.
func (h *House) mayLose(v *verdict, r *Request, c *candidate, reason NonBidReason) {
	o := c.offer
	if !h.providers[c.rank].FireLURL || o.LURL == "" || len(o.LURL) > maxURL || len(v.losses) == maxLosses {
		return
	}
	l := loss{offer: o, request: r.ID, bidID: c.bidID, currency: c.currency, slot: c.slot}
	if reason != "" {
		l.code = lossOf(reason)
	}
	v.losses = append(v.losses, l)
}

// weigh is the first rule that a candidate with a price breaks.
func (c *candidate) weigh(r *Request) NonBidReason {
	if c.price < r.Slots[c.slot].Floor {
		return ReasonBelowFloor
	}
	m := c.macros(r)
	if c.size = m.size(c.offer.AdM); c.size > maxMarkup {
		return ReasonMarkupTooLarge
	}
	if m.blank(c.offer.AdM) {
		return ReasonNoMarkup
	}
	return ""
}

// macros are the values that the macros of the candidate's markup stand for.
func (c *candidate) macros(r *Request) macros {
	return macrosOf(r.ID, c.bidID, c.currency, c.offer)
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
		len(o.NURL) <= maxURL && len(o.BURL) <= maxURL && len(o.LURL) <= maxURL &&
		len(o.ADomain) <= maxList && len(o.Cat) <= maxList
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

// best sorts candidates by slot and keeps the best of each, at most maxTries. It
// takes over the slice.
func best(cs []candidate, preferDeals bool) []candidate {
	sortBySlot(cs, preferDeals)
	slot, n := -1, 0
	return slices.DeleteFunc(cs, func(c candidate) bool {
		if c.slot != slot {
			slot, n = c.slot, 0
		}
		n++
		return n > maxTries
	})
}

// sortBySlot sorts candidates by the order of their slots, those of one slot from
// the best to the worst.
func sortBySlot(cs []candidate, preferDeals bool) {
	slices.SortFunc(cs, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.slot, b.slot), compare(a, b, preferDeals))
	})
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
		cmp.Compare(a.LURL, b.LURL),
		slices.Compare(a.ADomain, b.ADomain),
	)
}
