package prebid_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"deckle"
	"deckle/internal/auction"
)

func TestBlame(t *testing.T) {
	slot := func(stored string) deckle.Slot {
		return deckle.Slot{ID: "s", Kind: deckle.GPT, Prebid: deckle.PrebidParams{StoredRequest: stored}}
	}
	// The second and the third do not become imps.
	r := &auction.Request{Slots: []deckle.Slot{slot("top"), slot(""), slot("fold"), slot("foot"), slot("top-2"), slot("top")}}
	r.Slots[2].Kind = deckle.Magazine
	const notFound = "Invalid request: Stored Imp with ID=\"foot\" not found.\n"
	for text, want := range map[string][]int{
		notFound: {3},
		"Invalid request: Stored Imp with ID=\"top\" not found.\n":                       {0, 5},
		"Invalid request: Stored Imp with ID=\"top-2\" not found.\n" + notFound:          {3, 4},
		"Invalid request: request.imp[0].ext.prebid.bidder.x failed validation.\n":       {0},
		"Invalid request: request.imp[1].banner has no sizes.\n":                         {3},
		"Invalid request: request.imp[3].ext.prebid.bidder.x failed validation.\n(root)": {5},
		notFound + "Invalid request: request.imp[1].banner has no sizes.\n":              {3},

		// What is no slot's remains without it.
		"":                              nil,
		"Bad Request: request.imp[0]\n": nil,
		"Invalid request: request.site or request.app must be defined.\n":    nil,
		notFound + "Invalid request: request.tmax must be above zero\n":      nil,
		"Invalid request: Stored Imp with ID=\"nope\" not found.\n":          nil,
		"Invalid request: Stored Imp with ID=\"\" not found.\n":              nil,
		"Invalid request: Stored Request with ID=\"top\" not found.\n":       nil,
		"Invalid request: request.imp[4].banner has no sizes.\n":             nil,
		"Invalid request: request.imp[-1].banner has no sizes.\n":            nil,
		"Invalid request: request.imp[99999999999999999999] is too many.\n":  nil,
		"Invalid request: request.imp must contain at least one element.\n":  nil,
		"(root)\nInvalid request: request.imp[x].ext is not what it must be": nil,
	} {
		if diff := cmp.Diff(want, dialect.Blame(r, text)); diff != "" {
			t.Errorf("Blame(%q) (-want +got):\n%s", text, diff)
		}
	}
}

// One stored request that Prebid Server does not know costs its own slot alone.
func TestUnknownStoredRequest(t *testing.T) {
	answer, refusal := readCapture(t, "three-imps"), readCapture(t, "unknown-stored-imp")
	_, refused := refusal.body(t)
	var requests atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		var got struct {
			Imp []struct {
				Ext struct {
					Prebid struct{ StoredRequest struct{ ID string } }
				}
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		for _, i := range got.Imp {
			if i.Ext.Prebid.StoredRequest.ID == "nope" {
				w.WriteHeader(refusal.Status)
				_, _ = w.Write(refused)
				return
			}
		}
		_, _ = w.Write(answer.Response)
	}))
	defer srv.Close()

	r := answer.request()
	unknown := r.Slots[1]
	unknown.ID, unknown.Prebid.StoredRequest = "unknown", "nope"
	r.Slots = append([]deckle.Slot{unknown}, r.Slots...)
	res := hold(t, srv.URL, r)
	var won []string
	for _, w := range res.Winners {
		won = append(won, string(w.Slot))
	}
	if got := strings.Join(won, " "); got != "top side foot" {
		t.Errorf("winners of %s, want top, side and foot", got)
	}
	p := res.Providers[0]
	if diff := cmp.Diff(map[auction.NonBidReason]int{auction.ReasonImpRefused: 1}, p.NonBids); p.Status != "bid" || diff != "" {
		t.Errorf("status %s, non-bids (-want +got):\n%s", p.Status, diff)
	}
	if n := requests.Load(); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
}
