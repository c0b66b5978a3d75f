package sim_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckle/internal/sim"
	"deckle/internal/sim/browser"
)

// A capture is a request to a real Prebid Server and what it answered.
type capture struct {
	Request  json.RawMessage
	Status   int
	Response json.RawMessage
}

// Asked what a real Prebid Server was asked, ours answers with the same fields of
// the same kinds, the same bids and the same targeting.
func TestAnswersLikeTheCaptures(t *testing.T) {
	w := start(t, sim.Options{})
	files, err := filepath.Glob("testdata/prebid-server/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no captures: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			var c capture
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(data, &c); err != nil {
				t.Fatal(err)
			}
			status, body, err := post(t, t.Context(), w.PrebidURL+"/openrtb2/auction", string(c.Request))
			if err != nil || status != c.Status {
				t.Fatalf("status %d, %v; want %d", status, err, c.Status)
			}
			if c.Status != http.StatusOK {
				var want string
				if err := json.Unmarshal(c.Response, &want); err != nil || body != want {
					t.Errorf("answer %q, want %q", body, want)
				}
				return
			}
			if diff := cmp.Diff(normal(t, c.Response), normal(t, []byte(body))); diff != "" {
				t.Errorf("answers differ (-captured +ours):\n%s", diff)
			}
		})
	}
}

// normal is an answer without what differs from run to run and from machine to
// machine: the order of seats, times, and the text of URLs and markup.
func normal(t *testing.T, answer []byte) any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(answer, &v); err != nil {
		t.Fatal(err)
	}
	if seats, ok := v["seatbid"].([]any); ok {
		slices.SortFunc(seats, func(a, b any) int {
			return strings.Compare(a.(map[string]any)["seat"].(string), b.(map[string]any)["seat"].(string))
		})
	}
	return generalize("", v)
}

func generalize(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k := range maps.Keys(v) {
			out[k] = generalize(k, v[k])
		}
		return out
	case []any:
		for i := range v {
			v[i] = generalize(key, v[i])
		}
		return v
	case string:
		if key == "adm" || strings.HasPrefix(v, "http:") || strings.HasPrefix(v, "127.0.0.1:") {
			return "text"
		}
	case float64:
		switch key {
		case "auctiontimestamp", "automatad", "optidigital", "pwbid": // milliseconds
			return "time"
		}
	}
	return v
}

// request is a bid request for one imp with a stored request.
func request(storedID, more string) string {
	return fmt.Sprintf(`{"id":"r","imp":[{"id":"i1","ext":{"prebid":{"storedrequest":{"id":%q}}}}],"ext":{"prebid":{"storedrequest":{"id":"pub-default"}}}%s}`, storedID, more)
}

// Seats come in any order: whoever relies on the first one is found out.
func TestSeatsAreShuffled(t *testing.T) {
	w := start(t, sim.Options{})
	firsts := map[string]bool{}
	for range 64 {
		_, body, err := post(t, t.Context(), w.PrebidURL+"/openrtb2/auction", request("tie", ""))
		if err != nil {
			t.Fatal(err)
		}
		var v struct{ SeatBid []struct{ Seat string } }
		if err := json.Unmarshal([]byte(body), &v); err != nil || len(v.SeatBid) != 3 {
			t.Fatalf("%v: %s", err, body)
		}
		firsts[v.SeatBid[0].Seat] = true
	}
	if len(firsts) != 3 {
		t.Errorf("first seats = %v, want each of three now and then", firsts)
	}
}

func TestFormatsSuitTheDevice(t *testing.T) {
	w := start(t, sim.Options{})
	const formats = `"banner":{"format":[{"w":970,"h":250},{"w":728,"h":90},{"w":320,"h":50}]}`
	for ua, want := range map[string]string{"Desktop": "970x250", "iPhone Mobile": "320x50"} {
		body := fmt.Sprintf(`{"id":"r","imp":[{"id":"i1",%s,"ext":{"prebid":{"storedrequest":{"id":"home_leaderboard"}}}}],"device":{"ua":%q}}`, formats, ua)
		_, answer, err := post(t, t.Context(), w.PrebidURL+"/openrtb2/auction", body)
		if err != nil {
			t.Fatal(err)
		}
		var v struct {
			SeatBid []struct{ Bid []struct{ W, H int } }
		}
		if err := json.Unmarshal([]byte(answer), &v); err != nil {
			t.Fatal(err)
		}
		for _, s := range v.SeatBid {
			if got := fmt.Sprintf("%dx%d", s.Bid[0].W, s.Bid[0].H); got != want {
				t.Errorf("%s: size %s, want %s", ua, got, want)
			}
		}
	}
}

func TestInlineBidders(t *testing.T) {
	w := start(t, sim.Options{})
	body := `{"id":"r","imp":[{"id":"top","banner":{"format":[{"w":728,"h":90}]},"ext":{"prebid":{"bidder":{"pwbid":{"x":1}}}}}]}`
	_, answer, err := post(t, t.Context(), w.PrebidURL+"/openrtb2/auction", body)
	if err != nil || !strings.Contains(answer, `"seat":"pwbid"`) || strings.Contains(answer, `"seat":"automatad"`) {
		t.Errorf("answer %s, %v; want only pwbid", answer, err)
	}
	status, answer, err := post(t, t.Context(), w.PrebidURL+"/openrtb2/auction", `{"id":"r","imp":[{"id":"top","ext":{"prebid":{"bidder":{"pwbid":{}}}}}]}`)
	if err != nil || status != 400 || !strings.HasPrefix(answer, "Invalid request: request.imp[0].banner has no sizes") {
		t.Errorf("without sizes: status %d, %q, %v", status, answer, err)
	}
}

func TestNoticesAndRequestsAreRemembered(t *testing.T) {
	w := start(t, sim.Options{})
	for _, path := range []string{"/ev/nurl?b=x-1&p=1.87", "/ev/imp?b=x-1&p=${AUCTION_PRICE}", "/event?t=win&b=x-1"} {
		get(t, w.PrebidURL+path)
	}
	var got []string
	for _, e := range w.Prebid.Events() {
		got = append(got, e.Kind+" "+e.Bid+" "+e.Price)
	}
	if diff := cmp.Diff([]string{"nurl x-1 1.87", "imp x-1 ${AUCTION_PRICE}", "win x-1 "}, got); diff != "" {
		t.Error(diff)
	}
	if _, _, err := post(t, t.Context(), w.PrebidURL+"/openrtb2/auction", request("top", "")); err != nil {
		t.Fatal(err)
	}
	if r := w.Prebid.Requests(); len(r) != 1 || string(r[0].Body) != request("top", "") {
		t.Errorf("requests = %+v", r)
	}
}

// Every fault does what its name says, as a stored imp and as a switch.
func TestFaults(t *testing.T) {
	t.Parallel()
	w := start(t, sim.Options{})
	want := map[sim.Fault]string{
		sim.Hang: "timeout", sim.Drip: "timeout", sim.EndlessHeaders: "timeout", sim.Reset: "error",
		sim.ServerError: "500 Critical", sim.HTMLPage: "200 <!doctype html>", sim.TruncatedJSON: `200 {"id":"x"`,
		sim.Huge: `200 {"id":"aaaa`, sim.GzipBomb: "200     ",
	}
	for _, f := range sim.Faults() {
		t.Run(string(f), func(t *testing.T) {
			patience := browser.Patience
			if want[f] == "timeout" {
				patience = 400 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			status, body, err := post(t, ctx, w.PrebidURL+"/openrtb2/auction", request("fault-"+string(f), ""))
			got := fmt.Sprintf("%d %s", status, body[:min(len(body), 100)])
			switch {
			case ctx.Err() != nil:
				got = "timeout"
			case err != nil:
				got = "error"
			}
			if !strings.HasPrefix(got, want[f]) {
				t.Errorf("got %q, want %q", got, want[f])
			}
		})
	}
	w.Prebid.SetFault(sim.ServerError)
	if status, _, err := post(t, t.Context(), w.PrebidURL+"/openrtb2/auction", request("top", "")); err != nil || status != 500 {
		t.Errorf("with a fault: status %d, %v", status, err)
	}
	w.Prebid.SetFault("")
	if status, _, err := post(t, t.Context(), w.PrebidURL+"/openrtb2/auction", request("top", "")); err != nil || status != 200 {
		t.Errorf("without: status %d, %v", status, err)
	}
}

// A client that leaves does not keep a handler, and a hostile offer is well-formed
// JSON: it is its content that means harm.
func TestHostileOffersAreWellFormed(t *testing.T) {
	w := start(t, sim.Options{})
	for id := range sim.StoredImps() {
		if !strings.HasPrefix(id, "hostile-") {
			continue
		}
		_, body, err := post(t, t.Context(), w.PrebidURL+"/openrtb2/auction", request(id, ""))
		if err != nil || !json.Valid([]byte(body)) || !strings.Contains(body, `"seat":"automatad"`) {
			t.Errorf("%s: %v: %s", id, err, body)
		}
	}
}

// tmax ends the wait for seats that are late; a server that ignores it is as late as
// they are, and has their bids.
func TestTMax(t *testing.T) {
	punctual := start(t, sim.Options{Prebid: sim.PrebidOptions{Latency: time.Minute}})
	_, body, err := post(t, t.Context(), punctual.PrebidURL+"/openrtb2/auction", request("top", `,"tmax":20`))
	if err != nil || strings.Contains(body, "seatbid") || !strings.Contains(body, "context deadline exceeded") {
		t.Errorf("seats later than tmax: %v: %s", err, body)
	}
	late := start(t, sim.Options{Prebid: sim.PrebidOptions{Latency: 60 * time.Millisecond, IgnoreTMax: true}})
	begin := time.Now()
	_, body, err = post(t, t.Context(), late.PrebidURL+"/openrtb2/auction", request("top", `,"tmax":20`))
	if took := time.Since(begin); err != nil || !strings.Contains(body, "seatbid") || took < 60*time.Millisecond {
		t.Errorf("a server that ignores tmax: %v, took %v: %s", err, took, body)
	}
}
