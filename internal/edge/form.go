package edge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"deckle"
	"deckle/internal/auction"
	"deckle/web"
)

// What goes into a page: data blocks, which are never run, and constant runners
// (page-plane.md section 4). Nothing of a stranger is ever concatenated.

// slotEntry is one of __ts_ad_slots.
type slotEntry struct {
	ID          deckle.SlotID       `json:"id"`
	GAMUnitPath string              `json:"gam_unit_path,omitempty"`
	DivID       string              `json:"div_id"`
	Formats     [][2]int            `json:"formats"`
	Targeting   map[string][]string `json:"targeting"`
	Kind        deckle.Kind         `json:"kind"`
	AdServer    deckle.AdServer     `json:"ad_server,omitempty"` // none: the client renders what wins
	DeadlineMS  int64               `json:"deadline_ms,omitempty"`
}

// clientEntry tells the runner which client to load, and how it is to behave.
type clientEntry struct {
	Src string `json:"src"`
	ClientOptions
	Bids string `json:"bids,omitempty"` // "fetch": it asks for them
	SPA  bool   `json:"spa,omitempty"`
}

// readerEntry tells the runner which script fills the magazine slots, and for which
// site it asks.
type readerEntry struct {
	Src string `json:"src"`
	Pub string `json:"pub"`
}

// slotsHole is hole 1: the slots of the page, and the scripts.
func (v *visit) slotsHole(now time.Time, nonce string) []byte {
	block := struct {
		Slots  []slotEntry  `json:"slots"`
		Skip   string       `json:"skip,omitempty"`
		Client *clientEntry `json:"client,omitempty"`
		Reader *readerEntry `json:"reader,omitempty"`
	}{Slots: v.slotEntries(now), Skip: v.skip()}
	if v.client() {
		block.Client = &clientEntry{Src: web.ClientPath(), ClientOptions: v.site.Client, SPA: v.template.SPA}
		if v.site.Fetch {
			block.Client.Bids = "fetch"
		}
		if v.hasMagazine() {
			block.Reader = &readerEntry{Src: web.ReaderPath(), Pub: v.site.ID}
		}
	}
	return hole("slots", block, slotsRunner(), nonce)
}

func (v *visit) slotEntries(now time.Time) []slotEntry {
	entries := make([]slotEntry, len(v.slots))
	for i, s := range v.slots {
		e := slotEntry{
			ID: s.ID, GAMUnitPath: s.UnitPath(v.section), DivID: s.DivID, Kind: s.Kind,
			Formats: make([][2]int, len(s.Formats)), Targeting: make(map[string][]string, len(s.Targeting)),
		}
		if s.AdServer == deckle.NoAdServer {
			e.AdServer = s.AdServer
		}
		for j, f := range s.Formats {
			e.Formats[j] = [2]int{f.W, f.H}
		}
		for _, kv := range s.Targeting {
			e.Targeting[kv.Key] = kv.Values
		}
		if v.auction != nil && s.Kind == deckle.GPT {
			// At least 1: without it the client would not wait for bids at all.
			e.DeadlineMS = max(1, v.deadline().Sub(now).Milliseconds())
		}
		entries[i] = e
	}
	return entries
}

// bidsHole is hole 2: what each slot's winner is to the client and to the ad
// server. A slot without a winner has no entry. Where a policy in a meta stops its
// runner the data block is all: the client, which is there already, reads that.
func (p *page) bidsHole() []byte {
	bids := make(map[deckle.SlotID]map[string]any, len(p.result.Winners))
	for i := range p.result.Winners {
		w := &p.result.Winners[i]
		bids[w.Slot] = p.bidEntry(w)
	}
	nonce, ok := p.doc.scripts.admitMeta(p.metaPolicies(), bidsRunner(), false)
	if !ok {
		return dataBlock("bids", bids)
	}
	return hole("bids", bids, bidsRunner(), nonce)
}

func (p *page) bidEntry(w *auction.Winner) map[string]any {
	entry := map[string]any{"w": w.Size.W, "h": w.Size.H}
	for key, value := range w.Targeting(p.visit.template.TargetingKeys) {
		entry[key] = value
	}
	if w.BURL != "" {
		entry["burl"] = w.BURL
	}
	if w.NURL != "" && !w.EdgeNURL {
		entry["nurl"] = w.NURL
	}
	if on := p.visit.burlOn(w); on != "" {
		entry["burl_on"] = on
	}
	if w.Expires > 0 && w.Expires < deckle.MaxBidAge {
		entry["exp"] = int(w.Expires / time.Second)
	}
	return entry
}

// burlOn says when the client fires a winner's burl; "" is the default, which it is
// not told.
func (v *visit) burlOn(w *auction.Winner) string {
	if on := v.site.edge.config.BURLOn[w.Provider]; on == "render" {
		return on
	}
	return ""
}

// markupBlock holds the winners' markup by hb_adid, for the render bridge; nil
// when nobody won.
func (p *page) markupBlock() []byte {
	if p.result == nil || len(p.result.Winners) == 0 {
		return nil
	}
	markup := make(map[string]string, len(p.result.Winners))
	for _, w := range p.result.Winners {
		markup[w.AdID] = w.AdM
	}
	return dataBlock("markup", markup)
}

// hole is a data block with its runner. A nonce is of base64's characters.
func hole(name string, data any, r runner, nonce string) []byte {
	b := dataBlock(name, data)
	b = append(b, "<script"...)
	if nonce != "" {
		b = append(b, ` nonce="`+nonce+`"`...)
	}
	b = append(b, '>')
	b = append(b, r.text...)
	return append(b, "</script>"...)
}

func dataBlock(name string, data any) []byte {
	b := []byte(`<script type="application/json" data-deckle="` + name + `">`)
	b = append(b, asciiJSON(data)...)
	return append(b, "</script>"...)
}

// asciiJSON is data as JSON that can stand in a script element of any page:
// encoding/json escapes <, >, &, U+2028 and U+2029 and replaces invalid UTF-8;
// what is left beyond ASCII, which can only be in strings, is escaped here.
func asciiJSON(data any) []byte {
	b, err := json.Marshal(data)
	if err != nil {
		panic(fmt.Sprintf("edge: our own types do not encode: %v", err))
	}
	if isASCII(b) {
		return b
	}
	var out bytes.Buffer
	for _, r := range string(b) {
		switch {
		case r < utf8.RuneSelf:
			out.WriteByte(byte(r))
		case r < 0x10000:
			fmt.Fprintf(&out, `\u%04x`, r)
		default: // a surrogate pair
			r -= 0x10000
			fmt.Fprintf(&out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		}
	}
	return out.Bytes()
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
