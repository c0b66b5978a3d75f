package api

import (
	"net/http"
	"strings"

	"deckle/internal/catalog"
	"deckle/internal/dashboard/report"
)

// An operation is what the description says of a route, and what is demanded of a
// request because of it.
type operation struct {
	id      string // operationId
	summary string
	tag     string
	open    bool // needs no key
	query   []parameter
	accept  string // media types of the body
	limit   int64  // bytes of the body; 0: none
	large   bool   // one of the few that are worked on at once, although its body is small
	takes   string // schema of the body; "" with a limit: bytes
	match   string // "revision", "revision or new", "diff": what If-Match has to name
	gives   string // schema of a success; "" = none
	csv     bool   // a success may be CSV, too; without a schema it is nothing else
	status  int    // of a success
	also    []int  // further statuses, beyond those that every route has
}

type parameter struct{ name, doc string }

// accepts reports whether a body may have this Content-Type.
func (o *operation) accepts(contentType string) bool {
	if o.takes != "" {
		return isJSON(contentType)
	}
	media, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	return strings.HasPrefix(media, "image/") || strings.TrimSpace(media) == "application/octet-stream"
}

var paging = []parameter{
	{"limit", "How many at most, 1 to 200; 50 by default."},
	{"cursor", "`next` of the page before."},
}

// routes is the whole API.
func (a *API) routes() []route {
	var all []route
	for _, k := range catalog.Kinds() {
		all = append(all, a.collection(k)...)
	}
	var asked []parameter
	for _, p := range report.Parameters() {
		asked = append(asked, parameter{p[0], p[1]})
	}
	return append(
		all,
		route{"GET", "/approvals", a.queue, operation{
			id: "listWaiting", tag: "approvals", summary: "What waits for approval, the oldest first",
			query: append([]parameter{{"site", "Of this site alone."}}, paging...), gives: "WaitingList",
		}},
		route{"GET", "/approvals/{site}/{creative}", a.decisions, operation{
			id: "getApprovals", tag: "approvals", summary: "The decisions on a creative on a site", gives: "Approvals", also: []int{404},
		}},
		route{"PUT", "/approvals/{site}/{creative}", a.decide, operation{
			id: "decide", tag: "approvals", summary: "Approve or reject a version of a creative on a site",
			accept: jsonMedia, limit: maxBody, takes: "Decision", match: "revision", gives: "Approvals", also: []int{404},
		}},
		route{"POST", "/assets", a.upload, operation{
			id: "uploadAsset", tag: "assets", summary: "Check an image and keep it",
			accept: "image/png, image/jpeg, image/gif, image/webp, image/svg+xml", limit: maxAsset, gives: "Asset", status: http.StatusCreated,
		}},
		route{"GET", "/assets/{id}", a.asset, operation{
			id: "getAsset", tag: "assets", summary: "An image, by the SHA-256 of its bytes", also: []int{304, 404},
		}},
		route{"GET", "/audit", a.audit, operation{
			id: "listAudit", tag: "audit", summary: "Who changed what, the newest first", query: paging, gives: "EventList",
		}},
		route{"GET", "/document", a.export, operation{
			id: "exportDocument", tag: "document", summary: "The whole catalog as one document", gives: "Document",
		}},
		route{"POST", "/document/diff", a.diff, operation{
			id: "diffDocument", tag: "document", summary: "What a document would change; nothing is written",
			accept: jsonMedia, limit: maxDocument, takes: "Document", gives: "Diff",
		}},
		route{"POST", "/document/apply", a.apply, operation{
			id: "applyDocument", tag: "document", summary: "Change what a document says, if it is what its diff has shown",
			accept: jsonMedia, limit: maxDocument, takes: "Document", match: "diff", gives: "Diff",
		}},
		route{"POST", "/debug-token", a.debugToken, operation{
			id: "makeDebugToken", tag: "sites", summary: "Make a token with which the batches of a site explain themselves, for ten minutes",
			accept: jsonMedia, limit: maxBody, takes: "DebugTokenRequest", gives: "DebugToken", also: []int{404},
		}},
		route{"GET", "/publishers/{id}/keys", a.showKeys, operation{
			id: "getKeys", tag: "publishers", summary: "When the keys of a publisher's tokens were made", gives: "Keys", also: []int{404},
		}},
		route{"POST", "/publishers/{id}/keys/rotate", a.rotateKeys, operation{
			id: "rotateKeys", tag: "publishers", match: "revision", gives: "Keys", also: []int{404},
			summary: "Sign tokens with a new key; what the previous one has signed is no longer taken",
		}},
		route{"GET", "/reports", a.report, operation{
			id: "report", tag: "reports", summary: "What happened, as JSON or CSV", query: asked, gives: "Report", csv: true, large: true, also: []int{406},
		}},
		route{"GET", "/reports.csv", a.report, operation{
			id: "reportAsCSV", tag: "reports", summary: "What happened, as CSV", query: asked, csv: true, large: true,
		}},
		route{"GET", "/openapi.json", a.openAPI, operation{
			id: "getDescription", tag: "description", summary: "This description", open: true, gives: "Description",
		}},
	)
}

const jsonMedia = "application/json"

// collection are the routes of one kind of entity.
func (a *API) collection(k catalog.Kind) []route {
	name := strings.ToUpper(string(k)[:1]) + string(k)[1:]
	tag := plural(k)
	one, many := "/"+tag+"/{id}", "/"+tag
	query := paging
	if p := parentOf(k); p != "" {
		query = append([]parameter{{string(p), "Those of this " + string(p) + " alone."}}, paging...)
	}
	return []route{
		{"GET", many, a.list(k), operation{
			id: "list" + name + "s", tag: tag, summary: "List " + tag + ", in the order of their ids", query: query, gives: name + "List",
		}},
		{"POST", many, a.create(k), operation{
			id: "create" + name, tag: tag, summary: "Create a " + string(k), accept: jsonMedia, limit: maxBody, takes: name,
			gives: name + "Record", status: http.StatusCreated, also: []int{409},
		}},
		{"GET", one, a.get(k), operation{
			id: "get" + name, tag: tag, summary: "Read a " + string(k), gives: name + "Record", also: []int{304, 404},
		}},
		{"PUT", one, a.replace(k), operation{
			id: "put" + name, tag: tag, summary: "Replace a " + string(k) + " as a whole", accept: jsonMedia, limit: maxBody, takes: name,
			match: "revision or new", gives: name + "Record", also: []int{201, 404},
		}},
		{"DELETE", one, a.remove(k), operation{
			id: "delete" + name, tag: tag, summary: "Delete a " + string(k) + "; a tombstone stays", match: "revision", status: http.StatusNoContent, also: []int{404},
		}},
		{"GET", one + "/history", a.history(k), operation{
			id: "get" + name + "History", tag: tag, summary: "Who changed what in a " + string(k) + ", the newest first", gives: "ChangeList", also: []int{404},
		}},
	}
}
