package sim

import (
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"deckle"
)

const gptPath = "/tag/js/gpt.js"

// AdServerOptions configures an [AdServer]. The zero value is ready to use.
type AdServerOptions struct {
	// Latency is how long an ad request takes at least.
	Latency time.Duration

	// HousePrice is the price of the house ads: a bid whose hb_pb is below it loses
	// to them. Defaults to 0.50 of the currency of hb_pb.
	HousePrice deckle.CPM

	// OlderInterface leaves out setConfig and getConfig, as GPT did before 2025.
	OlderInterface bool

	// UniversalCreative is the script of Prebid Universal Creative that the line items
	// load. Empty: our own creative, which speaks the same protocol.
	UniversalCreative []byte
}

// An AdServer is a test double of Google Publisher Tag and of an ad server behind
// it. The library (gpt/gpt.js) follows Google's public reference; gpt/README.md
// lists what it does not do. The ad server has three kinds of line items:
//
//   - price priority for header bidding: wins with hb_pb at or above the house
//     price and renders a Prebid creative in a frame of another origin;
//   - house ads for everything else;
//   - nothing, where the last part of the unit path contains "empty" or the
//     targeting says sim_ad=empty. "house" asks for a house ad in the same ways.
type AdServer struct {
	options  AdServerOptions
	mux      http.ServeMux
	requests record[Request]
	served   record[Served]
}

// A Served is one slot of an ad request and what it got.
type Served struct {
	At        time.Time
	UnitPath  string
	Sizes     []string            // as asked, "300x250"
	Targeting map[string][]string // slot over page
	LineItem  string              // prebid, house or empty
}

//go:embed gpt/gpt.js
var gptJS []byte

//go:embed gpt/creative.js
var creativeJS []byte

// NewAdServer makes an ad server.
func NewAdServer(o AdServerOptions) *AdServer {
	if o.HousePrice == 0 {
		o.HousePrice = 500_000
	}
	s := &AdServer{options: o}
	s.mux.HandleFunc("GET "+gptPath, s.script(gptJS))
	s.mux.HandleFunc("GET /gampad/ads", s.ads)
	s.mux.HandleFunc("GET /gampad/creative/prebid", s.prebidCreative)
	s.mux.HandleFunc("GET /gampad/creative/house", s.houseCreative)
	universal := o.UniversalCreative
	if len(universal) == 0 {
		universal = creativeJS
	}
	s.mux.HandleFunc("GET /creative.js", s.script(universal))
	s.mux.HandleFunc("GET /img", image)
	return s
}

func (s *AdServer) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Requests are the ad requests, oldest first: with single request one a page.
func (s *AdServer) Requests() []Request { return s.requests.snapshot() }

// Served are the slots that have been answered, oldest first.
func (s *AdServer) Served() []Served { return s.served.snapshot() }

// script serves a script; gpt.js learns its options from the first line.
func (s *AdServer) script(body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("Cache-Control", "private, max-age=900")
		if r.URL.Path == gptPath && s.options.OlderInterface {
			fmt.Fprintln(w, "window.googletag=window.googletag||{cmd:[]};googletag.simOlderInterface=true;")
		}
		_, _ = w.Write(body)
	}
}

// adResponse is what /gampad/ads says about one slot. Between gpt.js and Google
// this is private, so the form is our own.
type adResponse struct {
	Empty        bool   `json:"empty"`
	Size         [2]int `json:"size"`
	Frame        string `json:"frame"` // path of the creative's document
	AdvertiserID int64  `json:"advertiserId"`
	CampaignID   int64  `json:"campaignId"`
	LineItemID   int64  `json:"lineItemId"`
	CreativeID   int64  `json:"creativeId"`
}

// maxSlots bounds an ad request.
const maxSlots = 64

// ads answers GET /gampad/ads?url=&cust_params=&(iu=&sz=&scp=)…: the parameters
// of Google's ad tags (https://support.google.com/admanager/answer/1068325), those
// of a slot once for each slot.
func (s *AdServer) ads(w http.ResponseWriter, r *http.Request) {
	note(&s.requests, r)
	q := r.URL.Query()
	units, sizes, scps := q["iu"], q["sz"], q["scp"]
	if len(units) == 0 || len(units) > maxSlots || len(sizes) != len(units) || len(scps) != len(units) {
		http.Error(w, "an ad request needs iu, sz and scp once for each slot", http.StatusBadRequest)
		return
	}
	responses := make([]adResponse, 0, len(units))
	for i, unit := range units {
		slot := Served{
			At: time.Now(), UnitPath: unit, Sizes: strings.Split(sizes[i], "|"),
			Targeting: targeting(q.Get("cust_params"), scps[i]),
		}
		slot.LineItem = s.lineItem(slot)
		s.served.add(slot)
		responses = append(responses, respond(slot, q.Get("url"), r.UserAgent()))
	}
	if !wait(r.Context(), s.options.Latency) {
		return
	}
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "application/json")
	_ = json.MarshalWrite(w, responses)
}

// targeting reads "k=v1,v2&k2=v" of page and slot; the slot's keys win
// (https://developers.google.com/publisher-tag/reference#googletag.Slot.setTargeting).
func targeting(page, slot string) map[string][]string {
	all := map[string][]string{}
	for _, text := range []string{page, slot} {
		values, _ := url.ParseQuery(text) // what cannot be read is not targeting
		for key, v := range values {
			all[key] = strings.Split(v[len(v)-1], ",")
		}
	}
	return all
}

// lineItem chooses what serves a slot.
func (s *AdServer) lineItem(slot Served) string {
	unit := slot.UnitPath[strings.LastIndexByte(slot.UnitPath, '/')+1:]
	for _, kind := range []string{"empty", "house"} {
		if strings.Contains(unit, kind) || slices.Contains(slot.Targeting["sim_ad"], kind) {
			return kind
		}
	}
	pb, err := deckle.ParseCPM(first(slot.Targeting["hb_pb"]))
	if err != nil || first(slot.Targeting["hb_adid"]) == "" || pb < s.options.HousePrice {
		return "house"
	}
	return "prebid"
}

// respond makes the response for a slot whose line item is chosen.
func respond(slot Served, page, ua string) adResponse {
	if slot.LineItem == "empty" {
		return adResponse{Empty: true}
	}
	resp := adResponse{
		AdvertiserID: number("advertiser", slot.LineItem), CampaignID: number("order", slot.LineItem),
		LineItemID: number("line item", slot.LineItem, first(slot.Targeting["hb_pb"])),
		CreativeID: number("creative", slot.LineItem),
	}
	if slot.LineItem == "house" {
		size := largestFor(ua, parseSizes(slot.Sizes))
		resp.Size = [2]int{size.W, size.H}
		resp.Frame = fmt.Sprintf("/gampad/creative/house?w=%d&h=%d", size.W, size.H)
		return resp
	}
	// Prebid's guide has one creative of 1x1 for all sizes, which the page resizes once
	// it hands the markup over; with hb_size there is a line item for each size.
	// https://docs.prebid.org/adops/gam-creative-banner-sbs.html
	resp.Size = [2]int{1, 1}
	if sizes := parseSizes(slot.Targeting["hb_size"]); len(sizes) == 1 {
		resp.Size = [2]int{sizes[0].W, sizes[0].H}
	}
	targetingMap, _ := json.Marshal(slot.Targeting, json.Deterministic(true)) // a map of strings
	resp.Frame = "/gampad/creative/prebid?" + url.Values{"url": {page}, "targeting": {string(targetingMap)}}.Encode()
	return resp
}

// parseSizes reads "300x250"; what is not a size is left out.
func parseSizes(texts []string) []deckle.Size {
	var sizes []deckle.Size
	for _, text := range texts {
		w, h, _ := strings.Cut(text, "x")
		width, errW := strconv.Atoi(w)
		height, errH := strconv.Atoi(h)
		if errW == nil && errH == nil {
			sizes = append(sizes, deckle.Size{W: width, H: height})
		}
	}
	return sizes
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// number is a stable id, like those of an ad server, for a thing with that name.
func number(name ...string) int64 {
	return 1_000_000_000 + int64(hash(strings.Join(name, "/"))%1_000_000_000)
}

// prebidDocument is the creative that Prebid's guide gives for GAM, with the
// macros %%PATTERN:url%% and %%PATTERN:TARGETINGMAP%% filled in.
// https://docs.prebid.org/adops/gam-creative-banner-sbs.html
var prebidDocument = template.Must(template.New("prebid").Parse(`<!doctype html>
<html><head><meta charset="utf-8"><title>ad</title><style>body{margin:0;overflow:hidden}</style></head><body>
<script src="/creative.js"></script>
<script>
var ucTagData = {};
ucTagData.adServerDomain = "";
ucTagData.pubUrl = {{.PubURL}};
ucTagData.targetingMap = {{.Targeting}};
try { ucTag.renderAd(document, ucTagData); } catch (e) { console.log(e); }
</script>
</body></html>
`))

// prebidCreative is the document of a header bidding line item's frame.
func (s *AdServer) prebidCreative(w http.ResponseWriter, r *http.Request) {
	data := struct {
		PubURL    string
		Targeting map[string][]string
	}{PubURL: r.FormValue("url")}
	if err := json.Unmarshal([]byte(r.FormValue("targeting")), &data.Targeting); err != nil {
		http.Error(w, "targeting is not a map of lists", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_ = prebidDocument.Execute(w, data)
}

// houseCreative is the document of a house ad's frame.
func (s *AdServer) houseCreative(w http.ResponseWriter, r *http.Request) {
	size := deckle.Size{W: within(r.FormValue("w"), 300), H: within(r.FormValue("h"), 250)}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, `<!doctype html><html><head><meta charset="utf-8"><title>house ad</title><style>body{margin:0;overflow:hidden}img{display:block}</style></head><body>`+
		`<img src="/img?s=house+ad&w=%[1]d&h=%[2]d" width="%[1]d" height="%[2]d" alt="Slow Lines on paper, four issues a year"></body></html>`, size.W, size.H)
}
