package web

import (
	"net/http"
	"strconv"
)

// FramePath is where ads stand that Deckle renders itself: a document of its own,
// which is given its markup by postMessage. A frame without an address would be
// under the policy of the page around it, which does not know ads.
const FramePath = Prefix + "frame"

// frameSandbox lets an ad run scripts, open windows and send forms, and go where its
// reader has clicked. Without an origin of its own it reaches nothing of the site
// on whose host it is.
const frameSandbox = "sandbox allow-scripts allow-forms allow-popups allow-popups-to-escape-sandbox allow-top-navigation-by-user-activation"

// frameDocument becomes the first markup that the page around it sends, and says
// when it is ready for that: after the page has been told that this empty document
// has loaded, so that the load it hears next is the ad's. What another window sends,
// or a page on another host, is nothing to it.
const frameDocument = `<!doctype html><meta charset="utf-8"><title>Advertisement</title><style>body{margin:0}</style><script>` +
	`(function(){function take(e){var ad=e.data&&e.data.deckleAd;` +
	`if(e.source!==parent||e.origin!==location.origin||typeof ad!=="string")return;` +
	`removeEventListener("message",take);document.open();document.write(ad);document.close()}` +
	`addEventListener("message",take);` +
	`addEventListener("load",function(){setTimeout(function(){parent.postMessage({deckleFrame:"ready"},location.origin)})})})()</script>`

// Frame serves [FramePath].
func Frame() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD")
			h.Set("Cache-Control", "no-store")
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
			return
		}
		h.Set("Content-Security-Policy", frameSandbox)
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Length", strconv.Itoa(len(frameDocument)))
		h.Set("Cache-Control", aWhile)
		if r.Method == http.MethodGet {
			_, _ = w.Write([]byte(frameDocument)) // an error says that the reader has gone
		}
	})
}
