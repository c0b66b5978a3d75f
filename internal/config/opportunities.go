package config

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2/unstable"

	"deckle"
	"deckle/internal/template"
)

// SiteDefaults are what deckle.toml says where a site's template file is silent.
// The zero value is a deckle.toml that is silent, too.
type SiteDefaults struct {
	AuctionTimeout time.Duration   // [auction].timeout_ms; 1s
	DeadlineSlack  time.Duration   // [auction].deadline_slack_ms; 0
	AdServer       deckle.AdServer // [[site]].ad_server; gam
}

// TemplateDefaults are the defaults of one site's template file.
func (c *Config) TemplateDefaults(s *Site) SiteDefaults {
	return SiteDefaults{AuctionTimeout: c.Auction.Timeout, DeadlineSlack: c.Auction.DeadlineSlack, AdServer: s.AdServer}
}

// LoadTemplate reads a creative-opportunities.toml. It reports everything that is
// wrong with the file at once, in the order of its lines; the template is nil if
// an error is among that.
func LoadTemplate(path string, defaults SiteDefaults) (*template.Template, Problems) {
	t, _, problems := LoadPatterns(path, defaults)
	return t, problems
}

// LoadPatterns is LoadTemplate, and returns the patterns of every slot as they
// are written as well, for those who explain a template to people.
func LoadPatterns(path string, defaults SiteDefaults) (*template.Template, []template.Patterns, Problems) {
	data, err := readFile(path)
	if err != nil {
		return nil, nil, unreadable(path, err)
	}
	o, t := readTemplate(path, data, defaults)
	return t, o.patterns, o.doc.problems
}

// parseTemplate reads the text of a template file that stands at path.
func parseTemplate(path string, data []byte, defaults SiteDefaults) (*template.Template, Problems) {
	o, t := readTemplate(path, data, defaults)
	return t, o.doc.problems
}

// readTemplate reads the text of a template file. The template is nil if there is
// an error among the problems of its document.
func readTemplate(path string, data []byte, defaults SiteDefaults) (*opportunities, *template.Template) {
	defaults.AuctionTimeout = cmp.Or(defaults.AuctionTimeout, defaultTimeout)
	defaults.AdServer = cmp.Or(defaults.AdServer, deckle.GAM)
	d, complete := parseDocument(path, data)
	o := &opportunities{doc: d, defaults: defaults, ids: map[string]int{}}
	if d.hasSites() && !d.hasSlots() {
		d.mistaken("deckle.toml", "name the template file that its [[site]].templates names")
		return o, nil
	}
	if complete {
		o.read(d.table())
	}
	var t *template.Template
	if !d.invalid {
		t = o.compile()
	}
	d.problems.sort()
	return o, t
}

// opportunities reads one template file.
type opportunities struct {
	doc      *document
	defaults SiteDefaults

	networkID string
	settings  template.Settings
	slots     []deckle.Slot
	patterns  []template.Patterns
	paths     []string       // of the slots, `slot[3]`
	ids       map[string]int // id → index in slots
}

func (o *opportunities) read(root *table) {
	if !root.has("creative_opportunities") {
		// Also what keeps a file that has been emptied by accident from counting.
		root.missing("creative_opportunities", "begin the file with [creative_opportunities]")
	}
	o.readSettings(root.sub("creative_opportunities"))
	slots := root.tables("slot")
	if len(slots) > template.MaxSlots {
		o.doc.errorf(slots[template.MaxSlots].at(), "slot", "split the site", "%d slots, %d are allowed", len(slots), template.MaxSlots)
	}
	for _, s := range slots {
		o.readSlot(s)
	}
	root.close()
}

var (
	networkPattern = regexp.MustCompile(`^[0-9]{1,20}(,[0-9]{1,20})?$`) // with an MCM child's code
	divPattern     = regexp.MustCompile(`^[A-Za-z0-9_:.-]{1,128}$`)
)

func (o *opportunities) readSettings(t *table) {
	defer t.close()
	o.networkID = t.str("gam_network_id", "", matches(networkPattern, `the digits of your Google Ad Manager network code, like "21765378893"`))
	timeout := t.millis("auction_timeout_ms", o.defaults.AuctionTimeout, time.Millisecond, maxTimeout)
	if key, slack := join(t.path, "auction_timeout_ms"), o.defaults.DeadlineSlack; leavesNoTime(slack, timeout) && o.doc.given(key) {
		o.doc.warnf(o.doc.at(key), key, "more than twice that, or a smaller slack", "[auction].deadline_slack_ms, %d, can leave bidders no time of it", slack.Milliseconds())
	}
	o.settings = template.Settings{
		AuctionTimeout: timeout,
		HeadHold:       t.millis("head_hold_ms", timeout, 0, timeout),
		Buckets:        o.readBuckets(t),
		TargetingKeys:  o.readTargetingKeys(t),
		PreferDeals:    t.boolean("prefer_deals", false),
		SPA:            t.boolean("spa", false),
		Enabled:        t.boolean("enabled", true),
	}
	for _, u := range unbuiltOfTemplate {
		if u.on(&o.settings) {
			o.doc.refuse(join(t.path, u.key), u.what)
		}
	}
	if !o.settings.Enabled {
		o.doc.warnf(o.doc.at("creative_opportunities.enabled"), "creative_opportunities.enabled", "", "the site has no ads while this is false")
	}
}

// maxRanges bounds a custom price granularity.
const maxRanges = 100

// readBuckets reads the price granularity. Buckets of our own come with "custom"
// alone.
func (o *opportunities) readBuckets(t *table) deckle.PriceBuckets {
	name := t.oneOf("price_granularity", "dense", "low", "medium", "high", "auto", "custom")
	custom := deckle.PriceBuckets{Precision: t.integer("price_precision", 2, 0, 6)}
	ranges := t.tables("price_buckets")
	if len(ranges) > maxRanges {
		o.doc.errorf(ranges[maxRanges].at(), join(t.path, "price_buckets"), "", "%d ranges, %d are allowed", len(ranges), maxRanges)
	}
	var lower deckle.CPM
	for _, t := range ranges {
		r := o.readRange(t, lower)
		if step := precisionStep(custom.Precision); r.Increment%step != 0 {
			o.doc.warnf(o.doc.at(t.path+".increment"), t.path+".increment", "raise price_precision, or the step", "%s is finer than price_precision shows: different buckets get one hb_pb", r.Increment)
		}
		custom.Ranges = append(custom.Ranges, r)
		lower = r.Max
	}
	if name == "custom" {
		const remedy = "list ranges, like [{ max = 5.0, increment = 0.05 }]"
		if path := join(t.path, "price_buckets"); !t.has("price_buckets") {
			t.missing("price_buckets", remedy)
		} else if len(ranges) == 0 && o.doc.given(path) {
			o.doc.errorf(o.doc.at(path), path, remedy, "is empty")
		}
		return custom
	}
	for _, key := range []string{"price_buckets", "price_precision"} {
		if t.has(key) {
			path := join(t.path, key)
			o.doc.errorf(o.doc.at(path), path, `say price_granularity = "custom", or remove it`, "has no effect with price_granularity %q", name)
		}
	}
	b, _ := deckle.Granularity(name) // every name of oneOf but custom is one
	return b
}

// precisionStep is the least price that hb_pb shows with so many decimals.
func precisionStep(decimals int) deckle.CPM {
	step := deckle.CPM(1)
	for range 6 - decimals {
		step *= 10
	}
	return step
}

// readRange reads one range of price_buckets, above the maximum before it.
func (o *opportunities) readRange(t *table, lower deckle.CPM) deckle.PriceRange {
	defer t.close()
	r := deckle.PriceRange{Max: t.requiredCPM("max"), Increment: t.requiredCPM("increment")}
	if r.Max <= lower && o.doc.given(t.path+".max") {
		o.doc.errorf(o.doc.at(t.path+".max"), t.path+".max", "ranges ascend", "%s is not above %s", r.Max, lower)
	}
	if r.Increment <= 0 && o.doc.given(t.path+".increment") {
		o.doc.errorf(o.doc.at(t.path+".increment"), t.path+".increment", "give a step above 0", "%s is not a step", r.Increment)
	}
	return r
}

// requiredCPM reads a price that the file has to give.
func (t *table) requiredCPM(key string) deckle.CPM {
	if !t.has(key) {
		t.missing(key, "give a number")
	}
	return t.cpm(key)
}

// targetingKeys are what may be set on a slot from a winning bid.
var targetingKeys = []string{
	"hb_pb", "hb_bidder", "hb_adid", "hb_size", "hb_deal", "hb_format", "hb_source",
	"hb_cache_host", "hb_cache_path", "hb_cache_id",
}

func (o *opportunities) readTargetingKeys(t *table) []string {
	keys := t.strs("targeting_keys", []string{"hb_pb", "hb_bidder", "hb_adid"}, once(), func(s string) (string, *fault) {
		if !slices.Contains(targetingKeys, s) {
			return "", faultf("of: "+strings.Join(targetingKeys, " "), "%.80q is not known", s)
		}
		return s, nil
	})
	path := join(t.path, "targeting_keys")
	if !slices.Contains(keys, "hb_adid") {
		o.doc.warnf(o.doc.at(path), path, "add hb_adid", "without hb_adid a creative cannot ask for the markup of its bid")
	}
	return keys
}

// readSlot reads one [[slot]].
func (o *opportunities) readSlot(t *table) {
	id := t.required("id", `name the slot, like "atf_sidebar_ad"`, isID)
	s := deckle.Slot{
		ID:       deckle.SlotID(id),
		Kind:     deckle.Kind(t.oneOf("kind", string(deckle.GPT), string(deckle.Magazine))),
		DivID:    t.str("div_id", id, matches(divPattern, "1 to 128 of A–Z a–z 0–9 _ : . -")),
		Floor:    t.cpm("floor_price"),
		AdServer: deckle.AdServer(t.oneOf("ad_server", string(o.defaults.AdServer), string(deckle.GAM), string(deckle.NoAdServer))),
	}
	p := template.Patterns{Include: o.readPatterns(t, "page_patterns"), Exclude: o.readPatterns(t, "exclude")}
	if len(p.Include)+len(p.Exclude) > template.MaxPatterns {
		path := join(t.path, "page_patterns")
		o.doc.errorf(o.doc.at(path), path, "use braces, or ** where it says the same", "%d patterns, %d are allowed for a slot", len(p.Include)+len(p.Exclude), template.MaxPatterns)
	}
	s.Formats = o.readFormats(t)
	s.GAMUnitPath = o.readUnitPath(t, &s)
	s.Targeting = readTargeting(t.sub("targeting"))
	o.readProviders(t, &s)
	t.close()

	if first, dup := o.ids[id]; dup && id != "" {
		o.doc.errorf(o.doc.at(t.path+".id"), t.path+".id", "give each slot its own", "%q is the id of %s already", id, o.paths[first])
	} else {
		o.ids[id] = len(o.slots)
	}
	o.slots = append(o.slots, s)
	o.patterns = append(o.patterns, p)
	o.paths = append(o.paths, t.path)
}

// readPatterns reads a list of patterns; each fault points into its pattern.
func (o *opportunities) readPatterns(t *table, key string) []string {
	if key == "page_patterns" && !t.has(key) {
		t.missing(key, `say on which pages the slot is, like ["/20**"]`)
	}
	list := t.list(key)
	if key == "page_patterns" && t.has(key) && list != nil && len(list) == 0 {
		path := join(t.path, key)
		o.doc.errorf(o.doc.at(path), path, "", "is empty: the slot would be on no page")
	}
	var out []string
	for i, v := range list {
		path := t.elem(key, i, v)
		if v.kind != unstable.String {
			o.doc.errorf(v.start, path, "", "is %s, must be a string", kindName(v.kind))
			continue
		}
		if _, err := template.ParsePattern(v.text); err != nil {
			o.patternError(v, path, err)
			continue
		}
		out = append(out, v.text)
	}
	return out
}

// patternError reports what is wrong with a pattern, at its own place where the
// string is written as it is read.
func (o *opportunities) patternError(v *value, path string, err error) {
	e, ok := errors.AsType[*template.PatternError](err)
	if !ok {
		o.doc.errorf(v.start, path, "", "%v", err)
		return
	}
	at := v.start
	if inner := o.doc.data[v.start+1:]; strings.HasPrefix(string(inner[:min(len(inner), len(v.text))]), v.text) {
		at += 1 + e.Offset
	}
	o.doc.errorf(at, path, e.Remedy, "%.80q %s", e.Pattern, e.Msg)
}

const (
	maxFormats = 64
	maxPixels  = 10_000
)

// readFormats reads the sizes of a slot.
func (o *opportunities) readFormats(t *table) []deckle.Size {
	path := join(t.path, "formats")
	if !t.has("formats") {
		t.missing("formats", "list sizes, like [{ width = 300, height = 250 }]")
	}
	list := t.tables("formats")
	switch {
	case t.has("formats") && len(list) == 0 && t.val.field("formats").kind == unstable.Array:
		o.doc.errorf(o.doc.at(path), path, "list sizes, like [{ width = 300, height = 250 }]", "is empty")
	case len(list) > maxFormats:
		o.doc.errorf(list[maxFormats].at(), path, "", "%d formats, %d are allowed", len(list), maxFormats)
	}
	var sizes []deckle.Size
	for _, f := range list {
		s := deckle.Size{W: requiredPixels(f, "width"), H: requiredPixels(f, "height")}
		f.str("media_type", "banner", isBanner)
		f.close()
		if slices.Contains(sizes, s) && s.W > 0 && s.H > 0 {
			o.doc.warnf(f.at(), f.path, "remove it", "%s is listed twice", s)
			continue
		}
		sizes = append(sizes, s)
	}
	return sizes
}

func isBanner(s string) (string, *fault) {
	if s != "banner" {
		return "", faultf(`"banner" is the only one for now`, "media type %.80q is not supported", s)
	}
	return s, nil
}

func requiredPixels(t *table, key string) int {
	if !t.has(key) {
		t.missing(key, "give a whole number of pixels")
	}
	return t.integer(key, 0, 1, maxPixels)
}

// unitPattern is an ad unit path: a network code, and then parts of what Google
// Ad Manager allows in a code (see [deckle.Section]).
var unitPattern = regexp.MustCompile(`^/[0-9]{1,20}(,[0-9]{1,20})?(/[A-Za-z0-9_.*!:()<\\-]{1,100})+$`)

// readUnitPath reads the ad unit path and fills in what does not depend on the
// page; {section} stays.
func (o *opportunities) readUnitPath(t *table, s *deckle.Slot) string {
	const defaultPath = "/{network_id}/{slot_id}"
	path := join(t.path, "gam_unit_path")
	written := t.str("gam_unit_path", defaultPath, notEmpty)
	if s.Kind != deckle.GPT && !t.has("gam_unit_path") {
		return "" // the reader plane asks no ad server
	}
	if strings.Contains(written, "{network_id}") && o.networkID == "" {
		if !o.doc.faulty("creative_opportunities.gam_network_id") {
			o.doc.errorf(o.doc.at(path), path, "set gam_network_id in [creative_opportunities], or write the whole path", "%s needs a network id", written)
		}
		return written
	}
	unit := strings.NewReplacer("{network_id}", o.networkID, "{slot_id}", string(s.ID)).Replace(written)
	if !unitPattern.MatchString(strings.ReplaceAll(unit, "{section}", "section")) && s.ID != "" {
		o.doc.errorf(o.doc.at(path), path, `like "/21765378893/publisher/atf-sidebar"; it may hold {network_id} {slot_id} {section}`, "%.120q is not an ad unit path", written)
	}
	return unit
}

// readTargeting reads what the template sets on a slot.
func readTargeting(t *table) []deckle.KeyValues {
	var out []deckle.KeyValues
	t.free(func(key string, v *value) {
		path := join(t.path, key)
		checkTargetingKey(t.doc, path, key, v)
		kv := deckle.KeyValues{Key: key}
		switch v.kind {
		case unstable.String:
			kv.Values = []string{v.text}
		case unstable.Array:
			kv.Values = t.strs(key, nil)
			if len(v.elems) == 0 {
				t.doc.errorf(v.start, path, "give a value, or remove the key", "is empty")
			}
		default:
			t.doc.errorf(v.start, path, "GPT drops everything else", "is %s, must be a string or a list of strings", kindName(v.kind))
		}
		checkTargetingValues(t.doc, path, v, kv.Values)
		out = append(out, kv)
	})
	return out
}

// Google Ad Manager's limits of key-values
// (support.google.com/admanager/answer/10020177).
const (
	maxTargetingKey   = 20
	maxTargetingValue = 40
	keyForbidden      = "\"'=!+#*~;^()<>[], &"
	valueForbidden    = "\"'=!+#*~;^()<>[]"
)

// checkTargetingKey refuses the keys that Deckle sets itself and warns of those
// that Google Ad Manager does not take.
func checkTargetingKey(d *document, path, key string, v *value) {
	switch {
	case key == "ts_initial" || slices.Contains(targetingKeys, key):
		d.errorf(v.key, path, "choose another key", "is set by Deckle itself")
	case key == "" || len([]rune(key)) > maxTargetingKey || strings.ContainsAny(key, keyForbidden):
		d.warnf(v.key, path, "at most 20 characters, without spaces and \" ' = ! + # * ~ ; ^ ( ) < > [ ] , &", "Google Ad Manager does not take this key")
	}
}

// checkTargetingValues warns of values that Google Ad Manager does not take.
func checkTargetingValues(d *document, path string, v *value, values []string) {
	for _, s := range values {
		if s == "" || len([]rune(s)) > maxTargetingValue || strings.ContainsAny(s, valueForbidden) {
			d.warnf(v.start, path, "1 to 40 characters, without \" ' = ! + # * ~ ; ^ ( ) < > [ ]", "Google Ad Manager does not take the value %.80q", s)
		}
	}
}

// readProviders reads who is asked for a slot, and as whom.
func (o *opportunities) readProviders(t *table, s *deckle.Slot) {
	providers, alias := t.sub("providers"), t.sub("provider")
	given := providers.has("prebid")
	s.Prebid = readPrebid(providers.sub("prebid"))
	if s.Kind == deckle.GPT && !given {
		s.Prebid.StoredRequest = string(s.ID)
	}
	if s.Kind == deckle.Magazine && given {
		o.doc.warnf(providers.at(), providers.path, "remove it", "nobody is asked for bids on a magazine slot")
		s.Prebid = deckle.PrebidParams{}
	}
	aps := providers.sub("aps")
	if alias.has("aps") {
		if aps.val != nil {
			o.doc.errorf(alias.at(), alias.path, "keep one of the two", "[slot.provider.aps] and [slot.providers.aps] are the same")
		}
		aps = alias.sub("aps")
	}
	if aps.val != nil {
		s.APSID = aps.required("slot_id", "the slot's id at Amazon", isPlain)
	}
	aps.close()
	providers.close()
	alias.close()
}

// readPrebid reads how Prebid Server learns about a slot: exactly one of its two
// ways, and never an empty table, for an imp without parameters of any bidder
// costs the whole page's auction.
func readPrebid(t *table) deckle.PrebidParams {
	if t.val == nil {
		return deckle.PrebidParams{}
	}
	p := deckle.PrebidParams{StoredRequest: t.str("stored_request", "", isPlain)}
	list := t.sub("bidders")
	list.free(func(name string, v *value) {
		path := join(list.path, name)
		switch {
		case v.kind != unstable.Table:
			t.doc.errorf(v.start, path, "", "is %s, must be a table", kindName(v.kind))
		case len(v.fields) == 0:
			t.doc.errorf(v.start, path, "give the bidder's parameters, or remove it", "is empty")
		default:
			p.Bidders = append(p.Bidders, deckle.BidderParams{Bidder: name, Params: appendJSON(nil, t.doc, path, v)})
		}
	})
	t.close()
	switch {
	case t.has("stored_request") && t.has("bidders"):
		t.doc.errorf(t.doc.at(list.path), t.path, "keep one of the two", "stored_request and bidders exclude each other")
	case list.val != nil && len(list.val.fields) == 0:
		t.doc.errorf(list.at(), list.path, "name a bidder, or remove it", "is empty")
	case !t.has("bidders") && (!t.has("stored_request") || t.val.field("stored_request").isEmptyString()):
		t.doc.errorf(t.at(), t.path, "say stored_request or bidders; without the table the stored request has the slot's id", "is empty")
	}
	return p
}

// compile makes the template of a file without errors and reports what can be
// said of all its patterns together.
func (o *opportunities) compile() *template.Template {
	t, err := template.New(o.settings, o.slots, o.patterns)
	if err != nil {
		o.compileErrors(err)
		return nil
	}
	for _, c := range t.Conflicts() {
		o.conflict(c)
	}
	for _, w := range t.Warnings() {
		path := o.place(w.Place)
		if w.Pattern == "" {
			o.doc.warnf(o.doc.at(path), path, w.Remedy, "%s", w.Msg)
			continue
		}
		o.doc.warnf(o.doc.at(path), path, w.Remedy, "%q %s", w.Pattern, w.Msg)
	}
	if cost := t.Cost(); cost.WildcardNodes > cheapNodes {
		o.doc.notef(o.doc.at("slot[0]"), "slot", "patterns that begin with a wildcard (%d) are read along with every path, as one automaton of %d nodes; a literal first segment would cost nothing on other paths", cost.WildcardFirst, cost.WildcardNodes)
	}
	if o.doc.invalid {
		return nil
	}
	return t
}

// cheapNodes is how large the automaton of the patterns that begin with a
// wildcard may be before anybody has to know of it: a handful of patterns.
const cheapNodes = 64

// conflict reports two slots that name one element of one page. Where that could
// not be decided it is a warning: the file may well be right.
func (o *opportunities) conflict(c template.Conflict) {
	path := o.paths[c.B] + ".div_id"
	if c.Undecided {
		o.doc.warnf(o.doc.at(path), path, "give one another div_id, or write simpler patterns",
			"%q is also the div_id of %s, and the patterns are too entangled to prove that the two never meet", c.DivID, o.paths[c.A])
		return
	}
	o.doc.errorf(o.doc.at(path), path, "give one another div_id, or exclude from one what the other includes",
		"%q is also the div_id of %s, and both are on %q", c.DivID, o.paths[c.A], c.Path)
}

// compileErrors reports what the compiled set refuses beyond single patterns.
func (o *opportunities) compileErrors(err error) {
	list, ok := errors.AsType[template.Errors](err)
	if !ok {
		o.doc.errorf(0, "slot", "", "%v", err)
		return
	}
	for _, e := range list {
		path := o.place(e.Place)
		o.doc.errorf(o.doc.at(path), path, "", "%v", e.Err)
	}
}

// place is the key of the file that a place of the template stands for.
func (o *opportunities) place(p template.Place) string {
	path := o.paths[p.Slot]
	switch {
	case p.Index < 0:
		return path
	case p.Exclude:
		return fmt.Sprintf("%s.exclude[%d]", path, p.Index)
	default:
		return fmt.Sprintf("%s.page_patterns[%d]", path, p.Index)
	}
}
