package auction_test

import (
	"math/big"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckle"
	"deckle/internal/auction"
	"deckle/internal/auction/auctiontest"
)

// judge holds an auction in which one provider makes these offers.
func judge(t *testing.T, c auction.Config, r *auction.Request, a auction.Answer) *auction.Result {
	t.Helper()
	var res *auction.Result
	synctest.Test(t, func(t *testing.T) {
		c.Providers = []auction.Provider{{Name: "p", Dialect: decoded{"http://p/", a}}}
		c.Dial = auctiontest.Network{"p": auctiontest.Replies(auctiontest.OK("{}"))}.Dial
		h := house(c)
		res = h.Start(t.Context(), r).Result()
		h.Close()
	})
	return res
}

// decoded is a dialect whose answer is fixed.
type decoded struct {
	url    string
	answer auction.Answer
}

func (d decoded) Encode(*auction.Request, time.Duration) (*auction.Call, error) {
	return &auction.Call{URL: d.url}, nil
}

func (d decoded) Blame(*auction.Request, string) []int { return nil }

func (d decoded) Decode(*auction.Request, []byte) (auction.Answer, error) {
	a := d.answer
	a.Offers = append([]auction.Offer(nil), a.Offers...)
	return a, nil
}

func TestJudge(t *testing.T) {
	tests := []struct {
		name   string
		change func(*auction.Offer)
		want   auction.NonBidReason // empty: it wins
	}{
		{"as it should be", func(*auction.Offer) {}, ""},
		{"no seat", func(o *auction.Offer) { o.Seat = "" }, ""},
		{"seat of 65 bytes", func(o *auction.Offer) { o.Seat = strings.Repeat("s", 65) }, "malformed"},
		{"no id", func(o *auction.Offer) { o.ID = "" }, "missing_id"},
		{"id of 513 bytes", func(o *auction.Offer) { o.ID = strings.Repeat("i", 513) }, "malformed"},
		{"nurl of more than 8 KiB", func(o *auction.Offer) { o.NURL = "https://n.example/" + strings.Repeat("n", 8<<10) }, "malformed"},
		{"burl of more than 8 KiB", func(o *auction.Offer) { o.BURL = "https://n.example/" + strings.Repeat("n", 8<<10) }, "malformed"},
		{"adid of 513 bytes", func(o *auction.Offer) { o.AdID = strings.Repeat("i", 513) }, "malformed"},
		{"crid of 513 bytes", func(o *auction.Offer) { o.CrID = strings.Repeat("i", 513) }, "malformed"},
		{"dealid of 513 bytes", func(o *auction.Offer) { o.DealID = strings.Repeat("i", 513) }, "malformed"},
		{"33 domains", func(o *auction.Offer) { o.ADomain = make([]string, 33) }, "malformed"},
		{"33 categories", func(o *auction.Offer) { o.Cat = make([]string, 33) }, "malformed"},
		{"as large as it may be", func(o *auction.Offer) {
			o.Seat, o.ID, o.AdID = strings.Repeat("s", 64), strings.Repeat("i", 512), strings.Repeat("i", 512)
			o.CrID, o.DealID = strings.Repeat("i", 512), strings.Repeat("i", 512)
			o.NURL, o.BURL = "https://n.example/"+strings.Repeat("n", 8<<10-18), "https://n.example/"+strings.Repeat("n", 8<<10-18)
			o.ADomain, o.Cat = make([]string, 32), make([]string, 32)
		}, ""},
		{"negative exp", func(o *auction.Offer) { o.Exp = -1 }, "malformed"},

		{"no impid", func(o *auction.Offer) { o.ImpID = "" }, "unknown_imp"},
		{"impid of no slot", func(o *auction.Offer) { o.ImpID = "TOP" }, "unknown_imp"},

		{"no price", func(o *auction.Offer) { o.Price = "" }, "invalid_price"},
		{"price null", func(o *auction.Offer) { o.Price = "null" }, "invalid_price"},
		{"price in quotes", func(o *auction.Offer) { o.Price = `"1"` }, "invalid_price"},
		{"price zero", func(o *auction.Offer) { o.Price = "0.0" }, "invalid_price"},
		{"price below half a micro", func(o *auction.Offer) { o.Price = "0.0000004" }, "invalid_price"},
		{"negative price", func(o *auction.Offer) { o.Price = "-1" }, "invalid_price"},
		{"infinite price", func(o *auction.Offer) { o.Price = "1e400" }, "invalid_price"},
		{"price above a million", func(o *auction.Offer) { o.Price = "1000001" }, "invalid_price"},
		{"at the floor", func(o *auction.Offer) { o.Price = "0.5" }, ""},
		{"a micro below the floor", func(o *auction.Offer) { o.Price = "0.499999" }, "below_floor"},
		{"rounded up to the floor", func(o *auction.Offer) { o.Price = "0.4999995" }, ""},

		{"mtype banner", func(o *auction.Offer) { o.MType = 1 }, ""},
		{"mtype video", func(o *auction.Offer) { o.MType = 2 }, "media_type"},
		{"the other format", func(o *auction.Offer) { o.W, o.H = 300, 600 }, ""},
		{"turned", func(o *auction.Offer) { o.W, o.H = 250, 300 }, "size"},
		{"no size, two formats", func(o *auction.Offer) { o.W, o.H = 0, 0 }, "size"},
		{"no height", func(o *auction.Offer) { o.H = 0 }, "size"},
		{"no size, one format", func(o *auction.Offer) { o.ImpID, o.W, o.H = "single", 0, 0 }, ""},

		{"no markup", func(o *auction.Offer) { o.AdM = "" }, "no_markup"},
		{"blank markup", func(o *auction.Offer) { o.AdM = " \n\t" }, "no_markup"},
		{"64 KiB of markup", func(o *auction.Offer) { o.AdM = strings.Repeat("m", 64<<10) }, ""},
		{"a byte more", func(o *auction.Offer) { o.AdM = strings.Repeat("m", 64<<10+1) }, "markup_too_large"},
		{"more by its macros", func(o *auction.Offer) {
			o.AdM = strings.Repeat("${AUCTION_IMP_ID}${AUCTION_AD_ID}", 1900)
			o.AdID = strings.Repeat("x", 100)
		}, "markup_too_large"},
		{"less by its macros", func(o *auction.Offer) { o.AdM = "m" + strings.Repeat("${AUCTION_MIN_TO_WIN}", 3200) }, "markup_too_large"},
		{"http:", func(o *auction.Offer) { o.AdM = `<img src="http://a.example/x">` }, "insecure_markup"},
		{"http%3A", func(o *auction.Offer) { o.AdM = `http%3A%2F%2Fa.example` }, "insecure_markup"},
		{"http%3a", func(o *auction.Offer) { o.AdM = `http%3a%2f%2fa.example` }, "insecure_markup"},
		{"http: and https:", func(o *auction.Offer) { o.AdM = `<a href="https://a.example"><img src="http://a.example/x">` }, ""},
		{"http: and https%3A", func(o *auction.Offer) { o.AdM = `http://a.example?u=https%3A%2F%2Fb.example` }, ""},

		{"blocked domain", func(o *auction.Offer) { o.ADomain = []string{"ok.example", "rival.example"} }, "blocked_adomain"},
		{"below a blocked domain", func(o *auction.Offer) { o.ADomain = []string{"shop.rival.example"} }, "blocked_adomain"},
		{"blocked domain as an address", func(o *auction.Offer) { o.ADomain = []string{" HTTPS://www.Rival.example:443/x?y "} }, "blocked_adomain"},
		{"blocked domain with a dot", func(o *auction.Offer) { o.ADomain = []string{"rival.example."} }, "blocked_adomain"},
		{"ends like a blocked domain", func(o *auction.Offer) { o.ADomain = []string{"arrival.example", "rival.example.org"} }, ""},
		{"blocked category", func(o *auction.Offer) { o.Cat = []string{"IAB1", "IAB7"} }, "blocked_category"},
		{"below a blocked category", func(o *auction.Offer) { o.Cat = []string{"IAB7-28"} }, "blocked_category"},
		{"begins like a blocked category", func(o *auction.Offer) { o.Cat = []string{"IAB70"} }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := request()
			r.Slots[0].Floor = 500_000
			r.Slots[0].Formats = []deckle.Size{{W: 300, H: 250}, {W: 300, H: 600}}
			r.Slots = append(r.Slots, deckle.Slot{ID: "single", Formats: []deckle.Size{{W: 320, H: 50}}})
			r.Site.BAdv, r.Site.BCat = []string{"rival.example"}, []string{"IAB7"}
			o := offer("seat", "1", "2")
			tt.change(&o)
			res := judge(t, auction.Config{}, r, auction.Answer{Offers: []auction.Offer{o}})
			if won := len(res.Winners) == 1; won != (tt.want == "") {
				t.Errorf("winners = %+v", res.Winners)
			}
			want := map[auction.NonBidReason]int{}
			if tt.want != "" {
				want[tt.want] = 1
			}
			if diff := cmp.Diff(want, res.Providers[0].NonBids); diff != "" {
				t.Errorf("non-bids (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAbsentSizeIsTheOnlyFormat(t *testing.T) {
	o := offer("seat", "1", "2")
	o.W, o.H = 0, 0
	if w := judge(t, auction.Config{}, request(), auction.Answer{Offers: []auction.Offer{o}}).Winners[0]; w.Size != (deckle.Size{W: 300, H: 250}) {
		t.Errorf("size = %v, want 300x250", w.Size)
	}
}

func TestSeatDefaultsToProvider(t *testing.T) {
	if w := judge(t, auction.Config{}, request(), auction.Answer{Offers: []auction.Offer{offer("", "1", "2")}}).Winners[0]; w.Seat != "p" {
		t.Errorf("seat = %q, want p", w.Seat)
	}
}

func TestDuplicateIDs(t *testing.T) {
	offers := []auction.Offer{offer("a", "1", "1"), offer("a", "1", "3"), offer("a", "1", "2"), offer("b", "1", "0.5")}
	res := judge(t, auction.Config{}, request(), auction.Answer{Offers: offers})
	p := res.Providers[0]
	if res.Winners[0].Paid != "3" || p.Bids != 2 || p.NonBids[auction.ReasonDuplicateID] != 2 {
		t.Errorf("paid %s, %+v; want the best of a's, b's other seat kept", res.Winners[0].Paid, p)
	}
}

// Two texts may be one price. Which of them is paid does not depend on their order.
func TestDuplicateIDsWithOnePrice(t *testing.T) {
	for _, texts := range [][2]string{{"1", "1.0"}, {"1.0", "1"}} {
		res := judge(t, auction.Config{}, request(), auction.Answer{Offers: []auction.Offer{offer("a", "1", texts[0]), offer("a", "1", texts[1])}})
		if got := res.Winners[0].Paid; got != "1" {
			t.Errorf("of %v, %s is paid; want 1", texts, got)
		}
	}
}

func TestCurrencyAndAdjustment(t *testing.T) {
	rates := auction.Rates{Base: "usd", Units: map[string]*big.Rat{"EUR": big.NewRat(108, 100), "JPY": big.NewRat(1, 150), "BAD": new(big.Rat)}}
	adjust := map[string]*big.Rat{"cut": big.NewRat(9, 10)}
	for _, tt := range []struct {
		name, seat, price, from, to string
		want                        deckle.CPM // 0: reason currency
	}{
		{"same", "s", "1.5", "USD", "USD", 1_500_000},
		{"absent is USD", "s", "1.5", "", "USD", 1_500_000},
		{"any case", "s", "1.5", "usd", "Usd", 1_500_000},
		{"to base", "s", "1.5", "EUR", "USD", 1_620_000},
		{"from base", "s", "1.08", "USD", "EUR", 1_000_000},
		{"by way of the base", "s", "162", "JPY", "EUR", 1_000_000},
		{"unknown but the same", "s", "1", "CHF", "CHF", 1_000_000},
		{"unknown", "s", "1", "CHF", "USD", 0},
		{"into unknown", "s", "1", "USD", "CHF", 0},
		{"a rate of zero", "s", "1", "BAD", "USD", 0},
		{"adjusted", "cut", "2", "USD", "USD", 1_800_000},
		{"adjusted and converted", "cut", "1", "EUR", "USD", 972_000},
		// 0.0000005 × 1.08 × 0.9 = 0.486 micros; rounded twice it would be 1.
		{"rounded once", "cut", "0.0000005", "EUR", "USD", -1},
	} {
		r := request()
		r.Currency = tt.to
		res := judge(t, auction.Config{Currency: rates, Adjustments: adjust}, r,
			auction.Answer{Currency: tt.from, Offers: []auction.Offer{offer(tt.seat, "1", tt.price)}})
		switch {
		case tt.want == 0:
			if res.Providers[0].NonBids[auction.ReasonCurrency] != 1 {
				t.Errorf("%s: %+v, want reason currency", tt.name, res.Providers[0])
			}
		case tt.want < 0:
			if res.Providers[0].NonBids[auction.ReasonInvalidPrice] != 1 {
				t.Errorf("%s: %+v, want no price", tt.name, res.Providers[0])
			}
		case len(res.Winners) != 1 || res.Winners[0].Price != tt.want:
			t.Errorf("%s: winners %+v, want price %d", tt.name, res.Winners, tt.want)
		}
	}
}

func TestExpires(t *testing.T) {
	for exp, want := range map[int]time.Duration{
		0: 5 * time.Minute, 1: time.Second, 300: 5 * time.Minute, 301: 5 * time.Minute, 1 << 62: 5 * time.Minute,
	} {
		o := offer("s", "1", "1")
		o.Exp = exp
		if got := judge(t, auction.Config{}, request(), auction.Answer{Offers: []auction.Offer{o}}).Winners[0].Expires; got != want {
			t.Errorf("exp %d: expires after %v, want %v", exp, got, want)
		}
	}
}

// Markup of a whole page is bounded; a bid that does not fit makes room for the
// next best of its slot.
func TestPageMarkup(t *testing.T) {
	r := request()
	r.Slots = nil
	var a auction.Answer
	for _, slot := range []string{"s1", "s2", "s3", "s4", "s5"} {
		r.Slots = append(r.Slots, deckle.Slot{ID: deckle.SlotID(slot), Formats: []deckle.Size{{W: 300, H: 250}}})
		large, small := offer("large", "l-"+slot, "2"), offer("small", "s-"+slot, "1")
		large.ImpID, small.ImpID = slot, slot
		large.AdM = strings.Repeat("m", 60<<10)
		a.Offers = append(a.Offers, small, large)
	}
	res := judge(t, auction.Config{}, r, a)
	var seats []string
	for _, w := range res.Winners {
		seats = append(seats, w.Seat)
	}
	if diff := cmp.Diff([]string{"large", "large", "large", "large", "small"}, seats); diff != "" {
		t.Errorf("winners (-want +got):\n%s", diff)
	}
	if n := res.Providers[0].NonBids[auction.ReasonMarkupTooLarge]; n != 1 {
		t.Errorf("markup_too_large = %d, want 1", n)
	}
}

func TestUnusableNoticeURLs(t *testing.T) {
	for _, u := range []string{"javascript:alert(1)", "//n.example/x", "https://", "https://u:p@n.example/", "ftp://n.example/", "https://n.example/%zz", "x"} {
		o := offer("s", "1", "1")
		o.NURL, o.BURL = u, u
		w := judge(t, auction.Config{}, request(), auction.Answer{Offers: []auction.Offer{o}}).Winners[0]
		if w.NURL != "" || w.BURL != "" {
			t.Errorf("%s: nurl %q and burl %q, want none", u, w.NURL, w.BURL)
		}
	}
}
