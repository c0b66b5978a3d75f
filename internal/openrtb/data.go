package openrtb

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"deckle"
)

// SlotData is imp.ext.data, where Prebid's bidders look for first-party data of an
// ad unit: the targeting that its template gives it in the ad server, and its path
// there. It says nothing of a reader.
type SlotData struct {
	unit      string // empty: no ad server that has one
	targeting []deckle.KeyValues
}

// NewSlotData is the data of a slot with that ad unit path; nil where there is
// nothing to say.
func NewSlotData(s *deckle.Slot, unit string) *SlotData {
	if s.AdServer != deckle.GAM {
		unit = ""
	}
	if unit == "" && len(s.Targeting) == 0 {
		return nil
	}
	return &SlotData{unit, s.Targeting}
}

// MarshalJSONTo writes the data. The name that Prebid has given a meaning is ours to
// fill, whatever a template's keys are called.
func (d *SlotData) MarshalJSONTo(enc *jsontext.Encoder) error {
	data := make(map[string]any, len(d.targeting)+1)
	for _, kv := range d.targeting {
		data[kv.Key] = kv.Values
	}
	delete(data, "adserver")
	if d.unit != "" {
		data["adserver"] = adServer{Name: "gam", AdSlot: d.unit}
	}
	return json.MarshalEncode(enc, data, json.Deterministic(true))
}

type adServer struct {
	Name   string `json:"name"`
	AdSlot string `json:"adslot"`
}
