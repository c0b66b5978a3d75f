package edge

import (
	"deckle"
	"deckle/internal/auction"
	"deckle/internal/telemetry"
)

// event is what is told of a visit, without its auction.
func (v *visit) event(from telemetry.Source) telemetry.Event {
	e := telemetry.Event{At: v.arrived, Site: v.site.ID, From: from, Outcome: string(v.outcome), Slots: make([]deckle.SlotID, 0, len(v.slots))}
	for i := range v.slots {
		if v.slots[i].Kind == deckle.GPT {
			e.Slots = append(e.Slots, auction.SlotLabel(v.slots[i].ID, v.unlisted[v.slots[i].ID]))
		}
	}
	return e
}

// record tells what became of a page with slots. Its auction has been canceled by
// now, if it had not ended. p is nil where nothing of ours went to the reader.
func (e *Edge) record(v *visit, p *page) {
	if e.config.Record == nil || len(v.slots) == 0 {
		return
	}
	event := v.event(telemetry.Page)
	if v.auction != nil {
		event.Where = string(nowhere)
		if p != nil {
			event.Where, event.HoldMS = string(p.where), p.held.Milliseconds()
		}
		event.Held(v.auction.Result(), p != nil && p.told)
	}
	e.config.Record(event)
}
