package sim_test

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"deckle"
	"deckle/internal/aps"
	"deckle/internal/auction"
	"deckle/internal/sim"
)

// The dialect and the mock understand each other, without having anything in
// common: three slots, of which one has a bid that may be shown.
func TestAPS(t *testing.T) {
	w, err := sim.Start(t.Context(), sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	slot := func(id deckle.SlotID, aps string, floor deckle.CPM) deckle.Slot {
		return deckle.Slot{ID: id, Kind: deckle.GPT, APSID: aps, Floor: floor, Formats: []deckle.Size{{W: 300, H: 250}}}
	}
	dense, _ := deckle.Granularity("dense")
	r := &auction.Request{
		ID: "r1", Currency: "USD", Buckets: dense,
		Slots: []deckle.Slot{slot("side", "aps-sidebar", 500_000), slot("script", "aps-script", 0), slot("low", "aps-low", 500_000), slot("none", "aps-unknown", 0)},
	}
	hold := func(account string) *auction.Result {
		h := auction.New(auction.Config{Providers: []auction.Provider{{
			Name: "aps", Timeout: 5 * time.Second,
			Dialect: aps.New(aps.Config{Endpoint: w.APSURL + "/e/pb/bid", AccountID: account}),
		}}}, auction.NewMetrics(), slog.New(slog.DiscardHandler))
		defer h.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		return h.Start(ctx, r).Result()
	}
	res := hold(sim.APSAccount)
	if len(res.Winners) != 1 || res.Winners[0].Slot != "side" || res.Winners[0].Bucket != "2.40" || res.Winners[0].Seat != "amazon" {
		t.Fatalf("winners = %+v", res.Winners)
	}
	if got := res.Providers[0].NonBids[auction.ReasonScriptCreative]; got != 1 {
		t.Errorf("non-bids = %v, want one script", res.Providers[0].NonBids)
	}
	_, rest, _ := strings.Cut(res.Winners[0].AdM, `<iframe src="`)
	src, _, _ := strings.Cut(rest, `"`)
	resp, err := http.Get("http:" + strings.ReplaceAll(src, "&amp;", "&"))
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("the creative %s: %v, %v", src, resp, err)
	}
	resp.Body.Close()
	if res := hold("another"); res.Providers[0].Status != auction.StatusNoBid {
		t.Errorf("another account: %+v", res.Providers)
	}
}
