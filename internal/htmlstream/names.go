package htmlstream

// A tag is what the scanner must know of a tag name. No bit: an element like any
// other.
type tag uint32

const (
	tagHTML tag = 1 << iota
	tagHead
	tagBody
	tagFrameset
	tagBr
	tagP
	tagMeta
	tagTemplate
	tagSelect
	tagColumns // col, colgroup
	tagPre     // pre, listing: they swallow a newline that follows
	tagForeign // svg, math
	tagScript
	tagPlaintext

	rawText         // its content is raw text (or RCDATA) up to its end tag
	keepsHead       // its start tag does not end head
	joinsHead       // its start tag puts it into head even after </head>
	noFrameset      // in the body it settles that no frameset will replace that
	mayBeIgnored    // its start tag may be dropped, depending on what is open
	breaksForeign   // its start tag ends svg or math
	mayBreakForeign // it depends on its attributes whether it does
	badInSelect     // within select parsers of different age disagree on it
	integration     // within svg or math it may contain HTML
)

// maxName is the length of the longest name that classify knows as HTML.
const maxName = len("blockquote")

// classify gives the tag for a name in lower case.
func classify(name []byte) tag {
	switch string(name) {
	case "html":
		return tagHTML | mayBeIgnored | badInSelect
	case "head":
		return tagHead | mayBeIgnored | breaksForeign
	case "body":
		return tagBody | mayBeIgnored | breaksForeign
	case "frameset":
		return tagFrameset | mayBeIgnored
	case "base", "basefont", "bgsound", "link":
		return keepsHead | joinsHead
	case "meta":
		return tagMeta | keepsHead | joinsHead | breaksForeign
	case "title":
		return rawText | keepsHead | joinsHead | badInSelect | integration
	case "noframes", "style":
		return rawText | keepsHead | joinsHead | badInSelect
	case "script":
		return tagScript | rawText | keepsHead | joinsHead
	case "noscript":
		return rawText | keepsHead | badInSelect
	case "template":
		return tagTemplate | keepsHead | joinsHead | badInSelect
	case "textarea", "xmp", "iframe":
		return rawText | noFrameset | badInSelect
	case "noembed":
		return rawText | badInSelect
	case "plaintext":
		return tagPlaintext | badInSelect
	case "svg", "math":
		return tagForeign | badInSelect
	case "select":
		return tagSelect | noFrameset
	case "col", "colgroup":
		return tagColumns | mayBeIgnored | badInSelect
	case "pre", "listing":
		return tagPre | noFrameset | breaksForeign
	case "p":
		return tagP | breaksForeign
	case "br":
		return tagBr | noFrameset | breaksForeign
	case "table":
		return noFrameset | breaksForeign | badInSelect
	case "caption", "tbody", "td", "tfoot", "th", "thead", "tr", "frame", "form":
		return mayBeIgnored | badInSelect
	case "applet", "marquee", "object":
		return noFrameset | badInSelect
	case "input", "keygen":
		return badInSelect
	case "area", "button", "wbr":
		return noFrameset
	case "dd", "dt", "embed", "hr", "img", "li":
		return noFrameset | breaksForeign
	case "b", "big", "blockquote", "center", "code", "div", "dl", "em", "h1", "h2", "h3", "h4", "h5", "h6", "i", "menu", "nobr", "ol", "ruby", "s", "small", "span", "strike", "strong", "sub", "sup", "tt", "u", "ul", "var":
		return breaksForeign
	case "font":
		return mayBreakForeign
	case "mi", "mo", "mn", "ms", "mtext", "annotation-xml", "foreignobject", "desc":
		return integration
	}
	return 0
}
