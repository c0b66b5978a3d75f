package prebid

import (
	"slices"
	"strconv"
	"strings"

	"deckle/internal/auction"
)

// Blame finds the slots whose imps or stored requests a Prebid Server names in the
// plain text of its refusal. It gives its reasons like this, one after the other:
//
//	Invalid request: Stored Imp with ID="top" not found.
//	Invalid request: request.imp[0].ext.prebid.bidder.x failed validation.
//	(root): accountId is required
//
// A reason that names none of our slots would remain without them: then nobody is
// blamed.
func (d *Dialect) Blame(r *auction.Request, text string) []int {
	var blamed []int
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "Invalid request") {
			continue // what the reason before goes on to say
		}
		slots := append(slotsStored(r, line), slotsOfImp(r, line)...)
		if len(slots) == 0 {
			return nil
		}
		blamed = append(blamed, slots...)
	}
	slices.Sort(blamed)
	return slices.Compact(blamed)
}

// slotsStored are the slots with the stored request that reason does not find.
func slotsStored(r *auction.Request, reason string) (slots []int) {
	for i := range r.Slots {
		id := r.Slots[i].Prebid.StoredRequest
		if id != "" && strings.Contains(reason, `Stored Imp with ID="`+id+`" not found`) {
			slots = append(slots, i)
		}
	}
	return slots
}

// slotsOfImp is the slot of the first imp that reason names by its place in the
// request, where not every slot has become one.
func slotsOfImp(r *auction.Request, reason string) []int {
	_, rest, _ := strings.Cut(reason, "request.imp[")
	digits, _, _ := strings.Cut(rest, "]")
	place, err := strconv.Atoi(digits)
	if err != nil {
		return nil
	}
	for i := range r.Slots {
		if _, ok := impExtOf(&r.Slots[i], r.Section); !ok {
			continue
		}
		if place == 0 {
			return []int{i}
		}
		place--
	}
	return nil
}
