package catalog

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/publicsuffix"

	"deckle"
)

var (
	idPattern       = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	currencyPattern = regexp.MustCompile(`^[A-Z]{3}$`)
)

func (p *problems) id(field, id string) {
	if !idPattern.MatchString(id) {
		p.add(field, "1 to 64 of A-Z a-z 0-9 _ -", "%s is not an id", quote(id))
	}
}

// text checks the length of a line of plain text in characters.
func (p *problems) text(field, s string, least, most int) {
	n := utf8.RuneCountInString(s)
	switch {
	case n < least || n > most:
		p.add(field, fmt.Sprintf("%d to %d characters", least, most), "has %d characters", n)
	case strings.ContainsFunc(s, isControl):
		p.add(field, "plain text", "has control characters")
	case !utf8.ValidString(s):
		p.add(field, "plain text in UTF-8", "is not UTF-8")
	}
}

// paragraphs checks text that may have line breaks.
func (p *problems) paragraphs(field, s string, most int) {
	n := utf8.RuneCountInString(s)
	switch {
	case n > most:
		p.add(field, fmt.Sprintf("at most %d characters", most), "has %d characters", n)
	case strings.ContainsFunc(s, func(r rune) bool { return isControl(r) && r != '\n' }):
		p.add(field, "plain text with line breaks (LF)", "has control characters")
	case !utf8.ValidString(s):
		p.add(field, "plain text in UTF-8", "is not UTF-8")
	}
}

// isControl says of what is no plain text: controls, line separators, and what nobody
// sees or what shows text in another order and so as something else than it is. What
// joins letters and emoji stays, and marks of direction, which reorder nothing strong.
func isControl(r rune) bool {
	return unicode.Is(controls, r)
}

// controls are in creative.schema.json as well.
var controls = &unicode.RangeTable{LatinOffset: 2, R16: []unicode.Range16{
	{Lo: 0x00, Hi: 0x1f, Stride: 1},
	{Lo: 0x7f, Hi: 0x9f, Stride: 1},
	{Lo: 0x200b, Hi: 0x200b, Stride: 1}, // zero width space
	{Lo: 0x2028, Hi: 0x202e, Stride: 1}, // separators, embeddings and overrides
	{Lo: 0x2060, Hi: 0x206f, Stride: 1}, // invisible operators, isolates
	{Lo: 0xfeff, Hi: 0xfeff, Stride: 1}, // byte order mark
	{Lo: 0xfff9, Hi: 0xfffb, Stride: 1}, // annotations
}}

func (p *problems) status(s Status, allowed ...Status) {
	if !slices.Contains(allowed, s) {
		p.add("status", fmt.Sprintf("one of %v", allowed), "%s is not a status", quote(string(s)))
	}
}

func (p *problems) reference(field string, k Kind, id string, found bool) {
	if !found {
		p.add(field, "", "there is no %s %s", k, quote(id))
	}
}

func (p *problems) category(field string, t *Taxonomy, id string) {
	if _, ok := t.CategoryName(id); !ok {
		remedy := ""
		if t.FirstTierOnly {
			remedy = "only its first tier is built in; load the full table for the others"
		}
		p.add(field, remedy, "%s is not an id of %s", quote(id), t.Name)
	}
}

func (p *problems) floor(field string, c deckle.CPM) {
	if c < 0 || c > deckle.MaxCPM {
		p.add(field, "micros for a thousand impressions: 0 to 1000000000000 (a million)", "%d is out of range", c)
	}
}

func (p *problems) budget(field string, m deckle.Money) {
	if m < 1 || m > MaxBudget {
		p.add(field, "micros: 1 to 1000000000000000 (a billion)", "%d is out of range", m)
	}
}

func (p *problems) atMost(field string, n, most int) {
	if n > most {
		p.add(field, fmt.Sprintf("at most %d", most), "has %d entries", n)
	}
}

func (p *problems) distinct(field string, list []string) {
	seen := make(map[string]bool, len(list))
	for i, s := range list {
		if seen[s] {
			p.add(fmt.Sprintf("%s[%d]", field, i), "", "%s is there twice", quote(s))
		}
		seen[s] = true
	}
}

// A URL that we send readers to: http or https, a host in ASCII, no user, and nothing
// that cannot be seen (controls, spaces, marks of direction).
const urlExpression = `^https?://[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?([/?#](%[0-9A-Fa-f]{2}|[^\x00-\x20\x7f%"<>\\^` + "`" + `{|}\p{Z}\p{Cc}\p{Cf}])*)?$`

var (
	urlPattern    = regexp.MustCompile(urlExpression)
	numberPattern = regexp.MustCompile(`^([0-9]+|0x[0-9a-f]*)$`) // an IPv4 number, in lower case
	hostPattern   = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$`)
)

func (p *problems) url(field, s string) {
	if utf8.RuneCountInString(s) > maxURL || !urlPattern.MatchString(s) {
		p.add(field, "http:// or https://, a host (xn-- for others than ASCII), at most 2048 characters", "%s is not a URL that readers can be sent to", quote(s))
	}
}

// landing checks a valid URL that readers are sent to, beyond what its form says: what a
// person reads and approves must be what a browser opens. A browser takes every host
// whose last part is a number for an IPv4 address (URL Standard, "ends in a number"),
// so that http://2130706433/ and http://0x7f.1/ are 127.0.0.1.
//
// Whether an address is private is not asked: any name may resolve to one, and it is
// the reader's browser that goes there, not we.
func (p *problems) landing(field, s string) {
	host := landingHost(s)
	if !urlPattern.MatchString(s) || !numberPattern.MatchString(host[strings.LastIndexByte(host, '.')+1:]) {
		return
	}
	if a, err := netip.ParseAddr(host); err != nil || !a.Is4() {
		p.add(field, "four numbers from 0 to 255, such as 192.0.2.1", "the host %s is an address that is not written as one", quote(host))
	}
}

// landingHost is the host of a valid landing URL in lower case.
func landingHost(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return ""
	}
	return strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
}

// landingDomain is the registrable domain of a landing URL: the part that somebody
// has registered. A host that has none (an address, localhost) stands for itself.
func landingDomain(s string) string {
	host := landingHost(s)
	if _, err := netip.ParseAddr(host); err == nil {
		return host
	}
	domain, err := publicsuffix.EffectiveTLDPlusOne(host)
	if err != nil {
		return host
	}
	return domain
}

// quote shows what somebody has written, shortened.
func quote(s string) string {
	if r := []rune(s); len(r) > maxCharactersShown {
		s = string(r[:maxCharactersShown]) + "…"
	}
	return fmt.Sprintf("%q", s)
}
