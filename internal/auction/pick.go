package auction

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"net/url"
	"time"

	"deckle"
)

// maxPageMarkup is how many bytes of markup one page may hold.
const maxPageMarkup = 256 << 10

// conclude picks the winners from what was heard by now and reports on everyone
// who was asked. A_deadline may have passed: what it does is bounded by the slots
// and the providers, not by what they have sent (see judge).
func (h *House) conclude(ctx context.Context, r *Request, heard []reply, start time.Time) *Result {
	res := &Result{}
	res.Winners, res.losses = h.pick(r, heard)
	res.Elapsed = time.Since(start)
	res.Providers = make([]ProviderResult, 0, len(heard))
	for rank := range heard {
		rep := &heard[rank]
		switch {
		case rep.status == "":
			continue
		case rep.status == StatusBid && rep.bids == 0:
			rep.status = StatusNoBid
		case rep.status == StatusTimeout:
			res.Deadline = res.Deadline || errors.Is(ctx.Err(), context.DeadlineExceeded)
			if rep.elapsed == 0 {
				rep.elapsed = res.Elapsed
			}
		}
		res.Providers = append(res.Providers, ProviderResult{
			Name:    h.providers[rank].Name,
			Status:  rep.status,
			Elapsed: rep.elapsed,
			Bids:    rep.bids,
			NonBids: rep.nonBids,
			NBR:     rep.nbr,
		})
	}
	return res
}

// pick chooses at most one winner a slot, in the order of the slots. Where the
// page has no room for the markup of the best bid, the next one gets its chance.
// Only what wins is built.
func (h *House) pick(r *Request, heard []reply) ([]Winner, []loss) {
	var all []candidate
	for i := range heard {
		all = append(all, heard[i].best...)
	}
	sortBySlot(all, r.PreferDeals)

	var winners []Winner
	won := make(map[int]*candidate, len(r.Slots))
	room, filled := maxPageMarkup, -1
	for i := range all {
		switch c := &all[i]; {
		case c.slot == filled:
		case c.size > room:
			heard[c.rank].nonBids[ReasonMarkupTooLarge]++
		default:
			winners = append(winners, h.win(r, c))
			won[c.slot] = c
			room, filled = room-c.size, c.slot
		}
	}
	return winners, losses(heard, won)
}

// win makes a winner of a candidate.
func (h *House) win(r *Request, c *candidate) Winner {
	o, p, slot := c.offer, &h.providers[c.rank], &r.Slots[c.slot]
	m := c.macros(r)
	adm, _ := m.fill(o.AdM, c.size)
	return Winner{
		Bid: Bid{
			Provider: p.Name,
			Seat:     o.Seat,
			ID:       o.ID,
			Slot:     slot.ID,
			Price:    c.price,
			Paid:     o.Price,
			PaidCur:  c.currency,
			Size:     size(slot, o),
			AdM:      adm,
			CrID:     o.CrID,
			DealID:   o.DealID,
			ADomain:  o.ADomain,
			NURL:     h.noticeURL(&m, o.NURL),
			BURL:     h.noticeURL(&m, o.BURL),
			Expires:  expires(o.Exp),
		},
		AdID:     newAdID(),
		Bucket:   r.Buckets.Bucket(c.price),
		EdgeNURL: p.FireNURL,
		Unlisted: r.Unlisted[slot.ID],
	}
}

// noticeURL fills the macros of a notice's URL. A URL that nobody could open is
// counted and left out; the bid stands, its bidder goes without a notice.
func (h *House) noticeURL(m *macros, raw string) string {
	if raw == "" {
		return ""
	}
	filled, ok := m.fill(raw, 2*maxURL)
	if !ok || !isNoticeURL(filled) {
		h.metrics.notice(noticeBadURL)
		return ""
	}
	return filled
}

// isNoticeURL reports whether raw is an absolute http or https URL without
// credentials.
func isNoticeURL(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil
}

// expires is OpenRTB's bid.exp, in seconds, within our own limit.
func expires(exp int) time.Duration {
	if exp == 0 || exp > int(deckle.MaxBidAge/time.Second) {
		return deckle.MaxBidAge
	}
	return time.Duration(exp) * time.Second
}

// newAdID is 128 random bits in 22 characters of base64url.
func newAdID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}
