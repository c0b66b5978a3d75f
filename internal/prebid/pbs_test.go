package prebid_test

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"deckle"
	"deckle/internal/auction"
	"deckle/internal/auction/auctiontest"
	"deckle/internal/consent"
	"deckle/internal/prebid"
)

// A realServer is a Prebid Server that somebody has, as the environment describes
// it:
//
//	DECKLE_PBS_URL      http://127.0.0.1:8000
//	DECKLE_PBS_ACCOUNT  the publisher's account there; may be empty
//	DECKLE_PBS_STORED   the id of a stored request for an imp that it knows; may be empty
//	DECKLE_PBS_BIDDERS  bidders with their parameters, {"appnexus":{"placementId":1}}; may be empty
type realServer struct {
	url, account, stored string
	bidders              []deckle.BidderParams
}

func realServerOf(t *testing.T) *realServer {
	t.Helper()
	s := &realServer{url: os.Getenv("DECKLE_PBS_URL"), account: os.Getenv("DECKLE_PBS_ACCOUNT"), stored: os.Getenv("DECKLE_PBS_STORED")}
	if s.url == "" {
		t.Skip("DECKLE_PBS_URL names no Prebid Server")
	}
	var bidders map[string]json.RawMessage
	if err := json.Unmarshal([]byte(cmp.Or(os.Getenv("DECKLE_PBS_BIDDERS"), "{}")), &bidders); err != nil {
		t.Fatalf("DECKLE_PBS_BIDDERS: %v", err)
	}
	for name, params := range bidders {
		s.bidders = append(s.bidders, deckle.BidderParams{Bidder: name, Params: params})
	}
	return s
}

// request asks for one slot for each of params.
func (s *realServer) request(params ...deckle.PrebidParams) *auction.Request {
	r := auctiontest.Request()
	r.Test = true // nobody pays
	r.Consent = consent.Decision{Auction: true, GDPR: consent.No, FullAddress: true}
	r.Site.Page = "https://" + r.Site.Domain + "/"
	r.Device.UA = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36"
	slots := r.Slots[:0]
	for i, p := range params {
		slot := r.Slots[i]
		slot.Floor, slot.Prebid = 0, p
		slots = append(slots, slot)
	}
	r.Slots = slots
	return r
}

func (s *realServer) hold(t *testing.T, r *auction.Request, timeout time.Duration) *auction.Result {
	t.Helper()
	h := auction.New(auction.Config{Providers: []auction.Provider{{
		Name: "prebid", Timeout: timeout, Dialect: prebid.New(prebid.Config{ServerURL: s.url, AccountID: s.account}),
	}}}, auction.NewMetrics(), slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})))
	defer h.Close()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	res := h.Start(ctx, r).Result()
	t.Logf("%v: %+v, %d winners", res.Elapsed, res.Providers, len(res.Winners))
	return res
}

// known is how the server can be asked for bids; the test is skipped where nothing
// says so.
func (s *realServer) known(t *testing.T) deckle.PrebidParams {
	t.Helper()
	switch {
	case s.stored != "":
		return deckle.PrebidParams{StoredRequest: s.stored}
	case len(s.bidders) > 0:
		return deckle.PrebidParams{Bidders: s.bidders}
	}
	t.Skip("neither DECKLE_PBS_STORED nor DECKLE_PBS_BIDDERS says what the server knows")
	return deckle.PrebidParams{}
}

// TestRealPrebidServer runs what the mock has taught us against a real one.
func TestRealPrebidServer(t *testing.T) {
	s := realServerOf(t)
	unknown := deckle.PrebidParams{StoredRequest: "deckle-no-such-stored-request"}
	answers := func(t *testing.T, res *auction.Result) {
		t.Helper()
		if got := res.Providers[0].Status; got != auction.StatusBid && got != auction.StatusNoBid {
			t.Errorf("status = %s, want bid or nobid", got)
		}
	}
	t.Run("answers", func(t *testing.T) {
		r := s.request(s.known(t))
		res := s.hold(t, r, 5*time.Second)
		answers(t, res)
		for i := range res.Winners {
			auctiontest.CheckWinner(t, r, &res.Winners[i])
		}
	})
	t.Run("a stored request that it does not have", func(t *testing.T) {
		res := s.hold(t, s.request(unknown), 5*time.Second)
		if got := res.Providers[0]; got.Status != auction.StatusHTTPStatus {
			t.Errorf("provider = %+v, want http_status", got)
		}
	})
	t.Run("the same beside one that it has", func(t *testing.T) {
		res := s.hold(t, s.request(s.known(t), unknown), 5*time.Second)
		answers(t, res)
		if got := res.Providers[0].NonBids[auction.ReasonImpRefused]; got != 1 {
			t.Errorf("%d slots left out, want one", got)
		}
	})
	t.Run("no consent", func(t *testing.T) {
		r := s.request(s.known(t))
		r.Consent = consent.Decision{Auction: true, GDPR: consent.Yes}
		if res := s.hold(t, r, 5*time.Second); res.Providers[0].Status == auction.StatusParse {
			t.Errorf("provider = %+v", res.Providers[0])
		}
	})
	t.Run("hardly any time", func(t *testing.T) {
		start := time.Now()
		s.hold(t, s.request(s.known(t)), 30*time.Millisecond)
		if took := time.Since(start); took > time.Second {
			t.Errorf("took %v", took)
		}
	})
	t.Run("bytes that are no text", func(t *testing.T) {
		r := s.request(s.known(t))
		r.Device.UA, r.Device.Hints = "\xff\x00"+strings.Repeat("x", 500), &auction.ClientHints{Mobile: new(true)}
		answers(t, s.hold(t, r, 5*time.Second))
	})
}
