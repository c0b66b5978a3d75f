package dashboard

import (
	"strings"

	"deckle/internal/heartbeat"
)

// Heartbeats are how far magazines came in pages where something failed, as browsers
// tell; see [heartbeat.Ear].
type Heartbeats interface {
	// Day is what was heard in the last 24 hours, the most frequent first.
	Day() []heartbeat.Count
}

// A failed is one way in which magazines fail in pages, in words. What browsers say is a
// stranger's word.
type failed struct {
	Site   string
	Stage  string // how far the page came
	What   string
	Remedy string // what somebody can do
	Pages  string
}

// maxFailures is how many ways to fail are shown.
const maxFailures = 12

func failures(heard []heartbeat.Count) (out []failed) {
	for _, c := range heard[:min(len(heard), maxFailures)] {
		f := failed{Site: c.Site, Pages: count(c.Pages)}
		f.Stage = stageWords(c.Stage)
		f.What, f.Remedy = failureWords(c.Stage, c.Reason)
		out = append(out, f)
	}
	return out
}

// stageWords say how far a page came. The stages are in the order of a page.
func stageWords(s heartbeat.Stage) string {
	switch s {
	case heartbeat.Script:
		return "1 of 4: the script starts"
	case heartbeat.Slot:
		return "2 of 4: a slot is found"
	case heartbeat.Serve:
		return "3 of 4: an ad is chosen"
	case heartbeat.Render:
		return "4 of 4: the ad is drawn"
	}
	return string(s)
}

// failureWords say what a reason means, and what helps. The reasons are those of
// web/client/reader; another one comes from a script of another version.
func failureWords(s heartbeat.Stage, reason string) (what, remedy string) {
	switch string(s) + " " + reason {
	case "script no_pub":
		return "The script does not know its site", "The script tag needs data-pub with the id of the site."
	case "slot none":
		return "The page has no slot", "A page with the script tag needs an element with data-deckle-slot; or leave the tag out there."
	case "slot missing":
		return "A slot of the template is not in the page", "Its element is not there when the page has been read: compare the template’s div with the page’s markup."
	case "serve network":
		return "The batch did not come back", "Readers lost their connection, or something on the way blocks it: an ad blocker, a firewall, the policy of the page (connect-src)."
	case "render module":
		return "The script of the magazine was not loaded", "Mostly the policy of the page: script-src has to allow /_deckle/ of this host."
	case "render exception":
		return "Drawing the magazine failed", "An error of ours, or of a browser too old for it. If it lasts, tell us with the browser’s console."
	}
	switch status, ok := strings.CutPrefix(reason, "status_"); {
	case ok && status == "503":
		return "The batch was answered 503", "A node was not ready yet, or its store does not answer: see “This node”."
	case ok && status == "429":
		return "The batch was answered 429", "Too many batches came from one address: a bot, or readers behind one proxy that is not in trusted_proxies."
	case ok && status == "403":
		return "The batch was answered 403", "The page is on a host that the site does not have: compare its hosts in deckle.toml."
	case ok && status == "404":
		return "The batch was answered 404", "No site has the id in data-pub."
	case ok:
		return "The batch was answered " + status, ""
	}
	return "Another reason: " + reason, ""
}
