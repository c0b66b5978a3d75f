package main

import (
	"context"
	"slices"
	"strings"
	"testing"

	"deckle/internal/sim"
	"deckle/internal/sim/browser"
)

// Amazon beside Prebid Server, in a real page: the better bid of the two wins, and
// its creative, which is an address, is shown in a frame of its own. A creative that
// would run as a script wins nothing.
func TestAPSInBrowser(t *testing.T) {
	world, err := sim.Start(context.WithoutCancel(t.Context()), sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	d, ended := serveDemo(t, ctx, world, nil, func(toml, _ string) (string, string) {
		toml = strings.Replace(toml, "[auction]\n", "[auction]\nproviders = [\"prebid\", \"aps\"]\n", 1)
		toml += "\n[integrations.aps]\nendpoint = \"" + world.APSURL + "/e/pb/bid\"\naccount_id = \"" + sim.APSAccount + "\"\ntimeout_ms = 5000\n"
		template := slots("", "tie", "side")
		for id, aps := range map[string]string{"tie": "aps-sidebar", "side": "aps-script"} {
			template = strings.Replace(template, `id = "`+id+`"`, `id = "`+id+`"`+"\nproviders = { aps = { slot_id = \""+aps+"\" } }", 1)
		}
		return toml, template
	})
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
		if err := world.Close(); err != nil {
			t.Errorf("close the world: %v", err)
		}
	})

	p := browser.Start(t).Open(t, d.testPage("/2026/aps", "", "tie", "side"), browser.Desktop())
	p.WaitFor(`seen.requested.length === 2 && seen.rendered.length === 2`)
	got := browser.Eval[[]requested](p, `seen.requested`)
	slices.SortFunc(got, func(a, b requested) int { return strings.Compare(a.Div, b.Div) })
	if got[0].Bidder != "automatad" || got[0].HBPB != "4.00" || got[1].Bidder != "amazon" || got[1].HBPB != "2.40" {
		t.Errorf("requested %+v, want side by automatad and tie by amazon", got)
	}
	within(t, func() bool { return len(world.APS.Events()) > 0 })
	if events := world.APS.Events(); len(events) != 1 || events[0].Kind != "imp" {
		t.Errorf("Amazon has counted %+v, want one impression", events)
	}
	d.waitForEvents(t, "burl", 1)
	if nurl := d.events("nurl"); len(nurl) != 1 || !strings.HasPrefix(nurl[0], "automatad-") {
		t.Errorf("nurl of %v, want automatad's alone", nurl)
	}
	if asked := string(world.APS.Requests()[0].Body); !strings.Contains(asked, `"tagid":"aps-sidebar"`) || !strings.Contains(asked, `"ext":{"account":"5001"}`) {
		t.Errorf("Amazon was asked %s", asked)
	}
	if errs := p.Errors(); len(errs) > 0 {
		t.Errorf("the page has said %q", errs)
	}
}
