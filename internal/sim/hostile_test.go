package sim_test

import (
	"net/http"
	"testing"
	"time"

	"deckle/internal/sim"
	"deckle/internal/sim/browser"
)

// A page that gives a creative its markup by hand, as the bridge of Prebid.js does.
const bridgePage = `<!doctype html><title>t</title><div id="slot"></div><script>
window.googletag = {cmd: []};
addEventListener('message', (event) => {
	const {message, adId} = JSON.parse(event.data);
	if (message !== 'Prebid Request' || adId !== 'x' || !event.ports[0]) return;
	event.ports[0].postMessage(JSON.stringify({message: 'Prebid Response', adId, ad: window.markup, width: 300, height: 250}));
});
googletag.cmd.push(async () => {
	const answer = await fetch('PREBID_URL/openrtb2/auction', {method: 'POST', body: JSON.stringify(
		{id: 'r', imp: [{id: 'i', ext: {prebid: {storedrequest: {id: 'hostile-parent'}}}}]})});
	window.markup = (await answer.json()).seatbid[0].bid[0].adm;
	googletag.defineSlot('/1/top', [300, 250], 'slot').addService(googletag.pubads())
		.setTargeting('hb_pb', '3.00').setTargeting('hb_adid', 'x');
	googletag.enableServices();
	googletag.display('slot');
});
</script><script src="GPT_URL"></script>`

// Hostile markup really runs in its frame: only then does it mean something that it
// has changed nothing in the page.
func TestHostileMarkupRunsInItsFrame(t *testing.T) {
	t.Parallel()
	w := start(t, sim.Options{})
	w.Publisher.Handle("/", sim.Page{Chunks: []string{replaceURLs(w, bridgePage)}, Header: http.Header{}})
	page := browser.Start(t).Open(t, w.PublisherURL, browser.Desktop())
	deadline := time.After(browser.Patience)
	for ran := false; !ran; {
		select {
		case <-deadline:
			t.Fatalf("the script has not run; the page says %v", page.Console())
		case <-time.After(10 * time.Millisecond):
		}
		for _, e := range w.Prebid.Events() {
			ran = ran || e.Kind == "ran"
		}
	}
	if got := browser.Eval[string](page, "typeof window."+sim.HostileMark+" + location.pathname + document.title"); got != "undefined/t" {
		t.Errorf("the page has become %q", got)
	}
}
