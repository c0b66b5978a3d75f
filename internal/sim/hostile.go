package sim

// HostileMark is the global that hostile markup and strings try to set on the
// publisher's page. A test that finds it on the top window has found a hole.
const HostileMark = "__hostile"

// hostileImps are stored imps whose only bid is well-formed and means harm: it
// must be shown in its frame, or refused, and nothing of it may run in the page.
func hostileImps() map[string]StoredImp {
	hostile := func(o Offer) StoredImp {
		o.Seat, o.CPM = automatad, 3
		return StoredImp{Formats: mediumRectangle, Offers: []Offer{o}}
	}
	const set = "window." + HostileMark + "=1"
	return map[string]StoredImp{
		// Closes the script element that carries the JSON, and opens one of its own.
		"hostile-script": hostile(Offer{
			AdM:  `<p>ad</p></script><script>` + set + `</script><!--<script>`,
			CrID: `</script><script>` + set + `</script>`,
		}),
		// Line separators end a line of JavaScript, but not one of JSON.
		"hostile-separators": hostile(Offer{AdM: "<p>ad\u2028" + set + "\u2029</p>", CrID: "a\u2028b\u2029c"}),
		// Every quote and escape, and an end of comment.
		"hostile-quotes": hostile(Offer{
			AdM:  `<p title='"&quot;\'>"'\` + "`${" + set + "}`" + `-->]]></p>`,
			CrID: `"'\` + "`${" + set + "}`",
			BURL: `https://bidder.example/"onload="` + set + `"></script><script>` + set + `</script>`,
		}),
		// Notices that are not addresses.
		"hostile-urls": hostile(Offer{
			AdM:  `<p>ad</p>`,
			NURL: `javascript:` + set,
			BURL: `javascript:` + set,
		}),
		// A creative that reaches for the page around it, and reports that it has tried
		// (an event of the kind "ran"). Its frame has another origin.
		"hostile-parent": hostile(Offer{AdM: `<p>ad</p><script>
for (const attempt of [
	() => { parent.` + HostileMark + `=1 },
	() => { top.` + HostileMark + `=1 },
	() => { top.document.body.innerHTML = "" },
	() => { top.location = "about:blank#hostile" },
	() => { top.postMessage(JSON.stringify({message: "Prebid Request", adId: "of another slot"}), "*") },
]) try { attempt() } catch (e) {}
new Image().src = "` + BaseMacro + `/ev/ran?b=hostile-parent";
</script>`}),
	}
}
