// Package readers are people in front of a magazine, by what their browsers send:
// a batch for each page, beacons for what they look at, a fold for a corner that
// they want to keep. They know nothing of Deckle but its public interface.
package readers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// A Page is what a visit is to: its URL and its magazine slots.
type Page struct {
	URL  string
	Imps []Imp
}

// An Imp is a magazine slot, in CSS pixels.
type Imp struct {
	ID string `json:"id"`
	W  int    `json:"w"`
	H  int    `json:"h"`
}

// Habits are how likely a reader does what can be done with an ad, from 0 to 1.
type Habits struct {
	View, Click, CTA float64
	Fold             float64 // of one that may be folded
	Unfold           float64 // of one that is
}

// A Deed is something that a reader did and that Deckle was told of.
type Deed struct {
	What   string // imp, view, click, cta, fold, unfold
	Token  string // the beacon's or the fold's; "" for an unfold
	Status int    // of the answer; 0: there was none
}

// A Reader is one browser. It keeps its bookmarks as a browser does, and nothing
// else. It is one goroutine's.
type Reader struct {
	Client *http.Client
	Server string // Deckle's public address, "http://127.0.0.1:8080"
	Pub    string // the site
	Habits Habits
	Rand   *rand.Rand
	Told   func(Deed) // may be nil

	pins map[string]pin // by slot
}

type pin struct {
	SlotID     string `json:"slotId"`
	CreativeID string `json:"creativeId"`
}

// An Answer is what a batch was answered with.
type Answer struct {
	Status    int
	SeatBid   []SeatBid `json:"seatbid"`
	StalePins []string  `json:"stalePins"`
	RetryInMs int       `json:"retryInMs"`
}

// A SeatBid is one slot's outcome.
type SeatBid struct {
	ID     string  `json:"id"`
	Reason string  `json:"reason"`
	Winner *Winner `json:"winner"`
	Dogear *struct {
		Honored bool   `json:"honored"`
		Reason  string `json:"reason"`
	} `json:"dogear"`
}

// A Winner is what fills a slot.
type Winner struct {
	CreativeID string `json:"creativeId"`
	CampaignID string `json:"campaignId"`
	ImpURL     string `json:"impUrl"`
	ViewURL    string `json:"viewUrl"`
	ClickURL   string `json:"clickUrl"`
	CTAURL     string `json:"ctaUrl"`
	FoldToken  string `json:"foldToken"`
}

// Visit opens a page: one batch, and then what the reader does with each ad. It
// returns what the batch was answered with. Beacons that are not answered are no
// error.
func (r *Reader) Visit(ctx context.Context, page Page) (Answer, error) {
	answer, err := r.batch(ctx, page)
	if err != nil || answer.Status != http.StatusOK {
		return answer, err
	}
	r.forget(answer)
	for _, seat := range answer.SeatBid {
		if seat.Winner != nil {
			r.look(ctx, page, seat)
		}
	}
	return answer, nil
}

func (r *Reader) batch(ctx context.Context, page Page) (answer Answer, err error) {
	body, err := json.Marshal(map[string]any{
		"pub": r.Pub, "url": page.URL, "imp": page.Imps, "pins": slices.Collect(maps.Values(r.pins)),
	})
	if err != nil {
		return answer, err
	}
	resp, err := r.post(ctx, "/v1/serve/batch", body)
	if err != nil {
		return answer, fmt.Errorf("ask for ads: %w", err)
	}
	defer resp.Body.Close()
	answer.Status = resp.StatusCode
	if resp.StatusCode != http.StatusOK {
		_, err = io.Copy(io.Discard, resp.Body)
		return answer, err
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return answer, fmt.Errorf("read the batch's answer: %w", err)
	}
	return answer, nil
}

// forget deletes the bookmarks that the answer proves to be dead.
func (r *Reader) forget(a Answer) {
	for _, seat := range a.SeatBid {
		if seat.Dogear != nil && seat.Dogear.Reason == "creative_removed" {
			delete(r.pins, seat.ID)
		}
	}
	maps.DeleteFunc(r.pins, func(_ string, p pin) bool { return slices.Contains(a.StalePins, p.CreativeID) })
}

// look is what the reader does with an ad.
func (r *Reader) look(ctx context.Context, page Page, seat SeatBid) {
	w := seat.Winner
	honoured := seat.Dogear != nil && seat.Dogear.Honored
	r.beacon(ctx, "imp", w.ImpURL, honoured)
	if r.does(r.Habits.View) {
		r.beacon(ctx, "view", w.ViewURL, honoured)
	}
	if !r.does(r.Habits.Click) {
		return
	}
	r.beacon(ctx, "click", w.ClickURL, honoured)
	if r.does(r.Habits.CTA) {
		r.beacon(ctx, "cta", w.CTAURL, honoured)
	}
	switch _, pinned := r.pins[seat.ID]; {
	case pinned && r.does(r.Habits.Unfold):
		delete(r.pins, seat.ID)
		r.dogear(ctx, "unfold", page, seat)
	case !pinned && w.FoldToken != "" && r.does(r.Habits.Fold):
		if r.pins == nil {
			r.pins = map[string]pin{}
		}
		r.pins[seat.ID] = pin{seat.ID, w.CreativeID} // first, as a browser does
		r.dogear(ctx, "fold", page, seat)
	}
}

func (r *Reader) does(likely float64) bool { return r.Rand.Float64() < likely }

func (r *Reader) beacon(ctx context.Context, what, url string, honoured bool) {
	_, token, _ := strings.Cut(url, "?t=")
	if honoured {
		url += "&dogeared=1"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		r.tell(Deed{What: what, Token: token})
		return
	}
	r.tell(Deed{What: what, Token: token, Status: r.status(req)})
}

func (r *Reader) dogear(ctx context.Context, what string, page Page, seat SeatBid) {
	told := map[string]any{"pub": r.Pub, "url": page.URL, "creativeId": seat.Winner.CreativeID, "slotId": seat.ID, "event": what}
	deed := Deed{What: what}
	if what == "fold" {
		deed.Token = seat.Winner.FoldToken
		told["foldToken"], told["page"] = deed.Token, 1
	}
	body, err := json.Marshal(told)
	if err == nil {
		var resp *http.Response
		if resp, err = r.post(ctx, "/v1/dogear-event", body); err == nil {
			deed.Status = drain(resp)
		}
	}
	r.tell(deed)
}

func (r *Reader) post(ctx context.Context, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.Server+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "text/plain") // as a browser that wants no preflight
	req.Header.Set("User-Agent", userAgent)
	return r.Client.Do(req)
}

// userAgent is a browser's: who says nothing is taken for a program.
const userAgent = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"

// status is how a request was answered; 0 if it was not.
func (r *Reader) status(req *http.Request) int {
	req.Header.Set("User-Agent", userAgent)
	resp, err := r.Client.Do(req)
	if err != nil {
		return 0
	}
	return drain(resp)
}

func drain(resp *http.Response) int {
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body) // the status has come
	return resp.StatusCode
}

func (r *Reader) tell(d Deed) {
	if r.Told != nil {
		r.Told(d)
	}
}

// Stream lets n readers open pages one after another, each with a pause of about
// the given length between two, until ctx is done. They begin one after another. It
// is bounded: n requests at most are under way.
func Stream(ctx context.Context, n int, pause time.Duration, reader func(i int) *Reader, page func(*rand.Rand) Page) {
	done := make(chan struct{})
	for i := range n {
		r := reader(i)
		go func() {
			defer func() { done <- struct{}{} }()
			for wait(ctx, time.Duration(r.Rand.Float64()*2*float64(pause))) {
				_, _ = r.Visit(ctx, page(r.Rand)) // a server that is away is asked again at the next page
			}
		}()
	}
	for range n {
		<-done
	}
}

// wait reports whether d has passed before ctx was done.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Client is the browser of the reader with that number, at a loopback address of
// its own, so that a server on loopback can tell readers apart.
func Client(i int) *http.Client {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 1, byte(i>>8), byte(i))}}
	return &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext}, Timeout: 10 * time.Second}
}
