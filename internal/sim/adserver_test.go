package sim_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	"deckle/internal/sim"
)

func TestLineItems(t *testing.T) {
	w := start(t, sim.Options{})
	tests := []struct {
		name, unit, scp, page string
		want                  string
		size                  [2]int
	}{
		{"no bid", "/1/top", "", "", "house", [2]int{300, 250}},
		{"bid", "/1/top", "hb_pb=1.20&hb_adid=x", "", "prebid", [2]int{1, 1}},
		{"bid with its size", "/1/top", "hb_pb=1.20&hb_adid=x&hb_size=728x90", "", "prebid", [2]int{728, 90}},
		{"bid at the house price", "/1/top", "hb_pb=0.50&hb_adid=x", "", "prebid", [2]int{1, 1}},
		{"bid below the house price", "/1/top", "hb_pb=0.49&hb_adid=x", "", "house", [2]int{300, 250}},
		{"price without an ad id", "/1/top", "hb_pb=9.00", "", "house", [2]int{300, 250}},
		{"price that is none", "/1/top", "hb_pb=lots&hb_adid=x", "", "house", [2]int{300, 250}},
		{"house by unit", "/1/top/house", "hb_pb=9.00&hb_adid=x", "", "house", [2]int{300, 250}},
		{"house by the page's targeting", "/1/top", "hb_pb=9.00&hb_adid=x", "sim_ad=house", "house", [2]int{300, 250}},
		{"slot over page", "/1/top", "sim_ad=empty", "sim_ad=house", "empty", [2]int{}},
		{"empty by unit", "/1/empty", "hb_pb=9.00&hb_adid=x", "", "empty", [2]int{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			q := url.Values{"iu": {test.unit}, "sz": {"300x250|300x50"}, "scp": {test.scp}, "cust_params": {test.page}, "url": {"https://site.example/"}}
			resp, body := get(t, w.AdServerURL+"/gampad/ads?"+q.Encode())
			var ads []struct {
				Empty bool
				Size  [2]int
			}
			if err := json.Unmarshal([]byte(body), &ads); err != nil || resp.StatusCode != http.StatusOK || len(ads) != 1 {
				t.Fatalf("status %d, %v: %s", resp.StatusCode, err, body)
			}
			served := w.AdServer.Served()
			if got := served[len(served)-1].LineItem; got != test.want || ads[0].Size != test.size {
				t.Errorf("served %s %v, want %s %v", got, ads[0].Size, test.want, test.size)
			}
		})
	}
	resp, _ := get(t, w.AdServerURL+"/gampad/ads?iu=/1/a&sz=300x250")
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a request without scp: status %d", resp.StatusCode)
	}
}
