package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// seatAuction is one auction of a [PrebidServer] while it runs.
type seatAuction struct {
	req    *bidRequest
	stored []StoredImp // one an imp
	base   string      // "//host:port" of the server's own URLs
	start  time.Time
	resp   *bidResponse
	cur    string
	rate   float64       // units of cur for one US dollar
	least  time.Duration // every seat takes at least this long
	tmax   time.Duration // and is late from here on; 0 = never

	bids    map[string][]bid    // by seat
	late    map[string][]nonBid // by seat
	garbled []string            // seats that sent garbage
	longest time.Duration       // of the seats' own latencies, at most tmax
}

// offers collects what every seat bids for every imp.
func (a *seatAuction) offers() {
	for i := range a.req.Imp {
		im, st := &a.req.Imp[i], &a.stored[i]
		for _, o := range st.Offers {
			if _, known := a.bids[o.Seat]; !known {
				a.bids[o.Seat] = nil
			}
			takes := max(o.Wait, a.least)
			switch {
			case a.tmax > 0 && takes >= a.tmax:
				a.longest = max(a.longest, a.tmax)
				a.late[o.Seat] = append(a.late[o.Seat], nonBid{im.ID, nonBidTimeout})
			case o.Garbage:
				a.garbled = append(a.garbled, o.Seat)
			default:
				a.longest = max(a.longest, takes)
				a.bids[o.Seat] = append(a.bids[o.Seat], a.bid(im, st, o, i))
			}
		}
	}
}

// bid makes an offer into the bid of the imp with index i.
func (a *seatAuction) bid(im *imp, st *StoredImp, o Offer, i int) bid {
	size := o.Size
	if size.W == 0 {
		size = largestFor(a.req.Device.UA, im.formats(st))
	}
	id := fmt.Sprintf("%s-%s-%d", o.Seat, a.req.ID, i)
	notice := func(kind, more string) string {
		return "http:" + a.base + "/ev/" + kind + "?b=" + id + "&p=${AUCTION_PRICE}" + more
	}
	b := bid{
		ID: id, ImpID: im.ID, Price: o.CPM * a.rate,
		NURL: notice("nurl", ""), BURL: notice("burl", ""), LURL: notice("lurl", "&l=${AUCTION_LOSS}"),
		AdM: creative(a.base, o.Seat, id, size), ADomain: []string{o.Seat + ".example"}, CrID: "cr-" + o.Seat,
		DealID: o.Deal, W: size.W, H: size.H, Exp: 300, MType: 1,
	}
	override(&b.ImpID, o.ImpID)
	override(&b.AdM, strings.ReplaceAll(o.AdM, BaseMacro, a.base))
	override(&b.CrID, o.CrID)
	override(&b.NURL, o.NURL)
	override(&b.BURL, o.BURL)
	if o.ADomain != nil {
		b.ADomain = o.ADomain
	}
	if o.AdM == NoMarkup {
		b.AdM, b.NURL = "", "" // the server would have to ask nurl for the markup, and does not
	}
	b.Ext.OrigBidCPM, b.Ext.OrigBidCur = o.CPM, "USD"
	b.Ext.Prebid.Type = "banner"
	b.Ext.Prebid.Meta.AdapterCode = o.Seat
	events := fmt.Sprintf("&b=%s&a=%s&bidder=%s&ts=%d", id, a.req.Site.Publisher.ID, o.Seat, a.start.UnixMilli())
	b.Ext.Prebid.Events.Win = "http:" + a.base + "/event?t=win" + events
	b.Ext.Prebid.Events.Imp = "http:" + a.base + "/event?t=imp" + events
	return b
}

func override(field *string, value string) {
	if value != "" {
		*field = value
	}
}

// report says in ext how the seats fared.
func (a *seatAuction) report(elapsed time.Duration) {
	ext := &a.resp.Ext
	ext.ResponseTimeMillis = map[string]int64{}
	for seat := range a.bids {
		ext.ResponseTimeMillis[seat] = elapsed.Milliseconds()
	}
	fail := func(seat string, code int, message string) {
		if ext.Errors == nil {
			ext.Errors = map[string][]extMessage{}
		}
		ext.Errors[seat] = append(ext.Errors[seat], extMessage{code, message})
	}
	for _, seat := range slices.Sorted(maps.Keys(a.late)) {
		fail(seat, errTimeout, "context deadline exceeded")
		if a.req.Ext.Prebid.ReturnAllBidStatus {
			ext.Prebid.SeatNonBid = append(ext.Prebid.SeatNonBid, seatNonBid{NonBid: a.late[seat], Seat: seat})
		}
	}
	for _, seat := range a.garbled {
		fail(seat, errBadResponse, "cannot unmarshal []openrtb2.SeatBid: expect \", but found \x00")
	}
}

// seatBids are the seats that bid, in the order that shuffle makes.
func (a *seatAuction) seatBids(shuffle func([]string)) []seatBid {
	seats := slices.Sorted(maps.Keys(a.bids))
	shuffle(seats)
	var all []seatBid
	for _, seat := range seats {
		if len(a.bids[seat]) > 0 {
			all = append(all, seatBid{Bid: a.bids[seat], Seat: seat})
		}
	}
	return all
}

// target puts hb_… keys on the bids, by the rules of ext.prebid.targeting.
func (a *seatAuction) target(rules targetingRules) {
	winners := a.winners(rules.PreferDeals)
	ranges := granularityRanges(granularityName(rules.PriceGranularity))
	for seat, bids := range a.bids {
		for i := range bids {
			b := &bids[i]
			keys := map[string]string{}
			values := targetingValues(b, seat, floatBucket(ranges, b.Price), strings.TrimPrefix(a.base, "//"), rules.IncludeFormat)
			for key, value := range values {
				if isTrue(rules.IncludeWinners) && winners[b.ImpID] == b.ID {
					keys[key] = value
				}
				if isTrue(rules.IncludeBidderKeys) || rules.AlwaysIncludeDeals && b.DealID != "" {
					keys[bidderKey(key, seat)] = value
				}
			}
			b.Ext.Prebid.Targeting = keys
		}
	}
}

// winners is the id of the best bid by impid: deals first where asked for, then
// the highest price, then the seat's name.
func (a *seatAuction) winners(preferDeals bool) map[string]string {
	best := map[string]bid{}
	for _, seat := range slices.Sorted(maps.Keys(a.bids)) {
		for _, b := range a.bids[seat] {
			other, taken := best[b.ImpID]
			deal := preferDeals && b.DealID != "" && other.DealID == ""
			noDeal := preferDeals && b.DealID == "" && other.DealID != ""
			if !taken || deal || !noDeal && b.Price > other.Price {
				best[b.ImpID] = b
			}
		}
	}
	ids := map[string]string{}
	for impID, b := range best {
		ids[impID] = b.ID
	}
	return ids
}

// targetingValues are a bid's targeting without a bidder's name. There is no
// hb_adid: Prebid Server leaves that to who renders.
func targetingValues(b *bid, seat, bucket, host string, format bool) map[string]string {
	v := map[string]string{
		"hb_bidder": seat, "hb_pb": bucket, "hb_size": fmt.Sprintf("%dx%d", b.W, b.H),
		"hb_cache_host": host, "hb_cache_path": "/cache",
	}
	if format {
		v["hb_format"] = "banner"
	}
	if b.DealID != "" {
		v["hb_deal"] = b.DealID
	}
	return v
}

// bidderKey is key for one bidder, cut to the 20 characters that GAM allows.
func bidderKey(key, seat string) string {
	const limit = 20
	key += "_" + seat
	return key[:min(len(key), limit)]
}

// granularityName is the name in ext.prebid.targeting.pricegranularity, or "".
func granularityName(v jsontext.Value) string {
	if v.Kind() != '"' {
		return ""
	}
	name, err := jsontext.AppendUnquote(nil, v)
	if err != nil {
		return ""
	}
	return string(name)
}

// isTrue reads a rule that is on unless it is switched off.
func isTrue(b *bool) bool { return b == nil || *b }
