package aps

import (
	"fmt"
	"html"
	"net/url"

	"deckle/internal/auction"
	"deckle/internal/openrtb"
)

// Decode reads a bid response, and turns the creatives that its bids name into
// markup. Offers have no notices: APS counts by its creatives.
func (d *Dialect) Decode(_ *auction.Request, body []byte) (auction.Answer, error) {
	a, _, err := openrtb.Decode(body, func(o *auction.Offer, ext *bidExt) auction.NonBidReason {
		o.NURL, o.BURL, o.LURL = "", "", ""
		if ext.CreativeURL == "" { // with markup of its own, or with none
			if o.AdM != "" && ext.TagType == tagScript && !d.config.ScriptCreatives {
				return auction.ReasonScriptCreative
			}
			return ""
		}
		var reason auction.NonBidReason
		o.AdM, reason = d.markup(o, ext)
		return reason
	})
	return a, err
}

// bidExt is how a display bid says where its creative is.
type bidExt struct {
	CreativeURL string `json:"creativeurl"`
	TagType     string `json:"tagtype"`
}

// tagScript is the TagType of a creative that is to run as a script.
const tagScript = "script"

// maxURL is how long the address of a creative may be, in bytes.
const maxURL = 8 << 10

// markup is what shows the creative that ext names, or why it may not be shown.
func (d *Dialect) markup(o *auction.Offer, ext *bidExt) (string, auction.NonBidReason) {
	u, err := url.Parse(ext.CreativeURL)
	switch {
	case err != nil, len(ext.CreativeURL) > maxURL, u.Hostname() == "", u.User != nil:
		return "", auction.ReasonMalformed
	case u.Scheme != "https" && u.Scheme != "": // without one it is as secure as the page
		return "", auction.ReasonInsecureMarkup
	}
	switch ext.TagType {
	case "iframe":
		return frame(ext.CreativeURL, o.W, o.H), ""
	case tagScript:
		if !d.config.ScriptCreatives {
			return "", auction.ReasonScriptCreative
		}
		return `<script src="` + html.EscapeString(ext.CreativeURL) + `"></script>`, ""
	}
	return "", auction.ReasonMalformed
}

// frame is an iframe of that size, or of the size of what holds it. Whoever stands
// in it stays in it: it may open windows and go where its reader has clicked, and
// does not navigate the page by itself.
func frame(src string, w, h int) string {
	width, height := "100%", "100%"
	if w > 0 && h > 0 {
		width, height = fmt.Sprint(w), fmt.Sprint(h)
	}
	return `<iframe src="` + html.EscapeString(src) + `" width="` + width + `" height="` + height + `"` +
		` sandbox="allow-scripts allow-same-origin allow-forms allow-popups allow-popups-to-escape-sandbox allow-top-navigation-by-user-activation"` +
		` scrolling="no" frameborder="0" marginwidth="0" marginheight="0" style="border:0;display:block" title="Advertisement"></iframe>`
}
