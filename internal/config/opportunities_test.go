package config

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"deckle"
	"deckle/internal/template"
)

const opportunitiesFile = "testdata/every-key.toml"

func TestEveryKeyOfATemplate(t *testing.T) {
	got, problems := LoadTemplate(opportunitiesFile, SiteDefaults{})
	if got == nil {
		t.Fatal(problems)
	}
	settings := template.Settings{
		Enabled:        true,
		AuctionTimeout: 500 * time.Millisecond,
		HeadHold:       400 * time.Millisecond,
		Buckets: deckle.PriceBuckets{
			Ranges:    []deckle.PriceRange{{Max: 5_000_000, Increment: 50_000}, {Max: 20_000_000, Increment: 500_000}},
			Precision: 2,
		},
		TargetingKeys: []string{"hb_pb", "hb_bidder", "hb_adid", "hb_size"},
		PreferDeals:   true,
	}
	if diff := cmp.Diff(settings, got.Settings); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	params := `{"accountId":1,"siteId":16,"zoneId":1000,"floor":1.10,"sizes":[15,16],"video":false,"key with space":"é` + "\u2028" + `"}`
	slots := []deckle.Slot{
		{
			ID: "atf_sidebar_ad", Kind: deckle.GPT, DivID: "div-atf-sidebar", AdServer: deckle.GAM,
			GAMUnitPath: "/21765378893/publisher/{section}/atf-sidebar",
			Formats:     []deckle.Size{{W: 300, H: 250}, {W: 300, H: 600}},
			Floor:       500_000,
			Targeting:   []deckle.KeyValues{{Key: "pos", Values: []string{"atf"}}, {Key: "zone", Values: []string{"sidebar", "article"}}},
			Prebid:      deckle.PrebidParams{StoredRequest: "atf_sidebar_request"},
			APSID:       "aps-slot-atf-sidebar",
		},
		{
			ID: "in_article", Kind: deckle.GPT, DivID: "in_article", AdServer: deckle.GAM,
			GAMUnitPath: "/21765378893/in_article",
			Formats:     []deckle.Size{{W: 336, H: 280}},
			Floor:       1_000_000,
			Prebid:      deckle.PrebidParams{Bidders: []deckle.BidderParams{{Bidder: "rubicon", Params: []byte(params)}}},
			APSID:       "aps-in-article",
		},
		{
			ID: "back_cover", Kind: deckle.Magazine, DivID: "back_cover", AdServer: deckle.GAM,
			Formats: []deckle.Size{{W: 600, H: 800}},
		},
	}
	if diff := cmp.Diff(slots, got.Slots, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("slots (-want +got):\n%s", diff)
	}
	if len(problems) > 0 {
		t.Errorf("problems: %v", problems)
	}
}

// slotFile is a valid template file whose one slot has some more lines.
func slotFile(settings, slot string) []byte {
	return fmt.Appendf(nil, `
[creative_opportunities]
gam_network_id = "123"
%s
[[slot]]
id = "a"
page_patterns = ["/"]
formats = [{ width = 300, height = 250 }]
%s`, settings, slot)
}

func TestDefaultsOfATemplate(t *testing.T) {
	got, problems := parseTemplate("x.toml", slotFile("", ""), SiteDefaults{AuctionTimeout: 700 * time.Millisecond, AdServer: deckle.GAM})
	if got == nil || len(problems) > 0 {
		t.Fatal(problems)
	}
	dense, _ := deckle.Granularity("dense")
	want := template.Settings{
		Enabled: true, AuctionTimeout: 700 * time.Millisecond, HeadHold: 700 * time.Millisecond,
		Buckets: dense, TargetingKeys: []string{"hb_pb", "hb_bidder", "hb_adid"},
	}
	if diff := cmp.Diff(want, got.Settings); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	s := got.Slots[0]
	if s.Kind != deckle.GPT || s.GAMUnitPath != "/123/a" || s.DivID != "a" || s.Floor != 0 || s.Prebid.StoredRequest != "a" || s.APSID != "" {
		t.Errorf("slot = %+v", s)
	}
}

func TestWhatIsNotBuiltIsRefusedInATemplate(t *testing.T) {
	settings := map[string]string{"targeting_keys": `["hb_adid", "hb_cache_id"]`}
	if len(settings) != len(unbuiltOfTemplate) {
		t.Fatal("test every row of the tables in unbuilt.go")
	}
	files := map[string][]byte{}
	for key, literal := range settings {
		files["creative_opportunities."+key] = slotFile(key+" = "+literal, "")
	}
	for path, text := range files {
		got, problems := parseTemplate("x.toml", text, SiteDefaults{})
		if got != nil || len(problems) != 1 || problems[0].Key != path || !strings.HasPrefix(problems[0].Msg, "not built yet: ") {
			t.Errorf("%s: %v", path, problems)
		}
	}
}

func TestHeadHoldFollowsTheTimeout(t *testing.T) {
	got, problems := parseTemplate("x.toml", slotFile("auction_timeout_ms = 300", ""), SiteDefaults{})
	if got == nil || got.HeadHold != 300*time.Millisecond {
		t.Errorf("%v, %v; want a hold of 300ms", got, problems)
	}
	got, problems = parseTemplate("x.toml", slotFile("head_hold_ms = 0", ""), SiteDefaults{})
	if got == nil || got.HeadHold != 0 || got.AuctionTimeout != time.Second {
		t.Errorf("%v, %v; want no hold", got, problems)
	}
}

func TestFloorsAreExact(t *testing.T) {
	for literal, want := range map[string]deckle.CPM{
		"0": 0, "0.1": 100_000, "1.496": 1_496_000, "+2.5": 2_500_000, "1_000.000_001": 1_000_000_001,
		"15e-1": 1_500_000, "0.0000005": 1, "0.0000004999999999999999999": 0, "999999.999999": 999_999_999_999,
	} {
		got, problems := parseTemplate("x.toml", slotFile("", "floor_price = "+literal), SiteDefaults{})
		if got == nil || got.Slots[0].Floor != want {
			t.Errorf("floor_price = %s: %v, %v; want %d micros", literal, got, problems, want)
		}
	}
	for _, literal := range []string{"-0.1", "nan", "inf", "1000001", "0x10", "1e300", `"0.5"`} {
		if got, _ := parseTemplate("x.toml", slotFile("", "floor_price = "+literal), SiteDefaults{}); got != nil {
			t.Errorf("floor_price = %s passes: %v", literal, got.Slots[0].Floor)
		}
	}
}

func TestUnitPaths(t *testing.T) {
	for written, want := range map[string]string{
		"/{network_id}/{slot_id}":     "/123/a",
		"/9,8/news/{section}/a":       "/9,8/news/{section}/a",
		"/{network_id}/{section}.top": "/123/{section}.top",
		"123/a":                       "", "/123": "", "/abc/a": "", "/123/{page}": "", "/123/a b": "", "/123//a": "", "/123/a/": "",
	} {
		got, _ := parseTemplate("x.toml", slotFile("", fmt.Sprintf("gam_unit_path = %q", written)), SiteDefaults{})
		switch {
		case got == nil && want != "":
			t.Errorf("%s is refused", written)
		case got != nil && got.Slots[0].GAMUnitPath != want:
			t.Errorf("%s = %q, want %q", written, got.Slots[0].GAMUnitPath, want)
		}
	}
}

func TestLimitsOfATemplate(t *testing.T) {
	manySlots := func(n int) []byte {
		var b strings.Builder
		b.WriteString("[creative_opportunities]\ngam_network_id = \"1\"\n")
		for i := range n {
			fmt.Fprintf(&b, "[[slot]]\nid = \"s%d\"\npage_patterns = [\"/%d\"]\nformats = [{ width = 1, height = 1 }]\n", i, i)
		}
		return []byte(b.String())
	}
	manyPatterns := func(n int) []byte {
		patterns := make([]string, n)
		for i := range patterns {
			patterns[i] = fmt.Sprintf("'/%d'", i)
		}
		return slotFile("", "exclude = ["+strings.Join(patterns, ", ")+"]")
	}
	for _, c := range []struct {
		what string
		data []byte
		want string
	}{
		{"2000 slots", manySlots(template.MaxSlots), ""},
		{"2001 slots", manySlots(template.MaxSlots + 1), "2001 slots, 2000 are allowed"},
		{"50 patterns", manyPatterns(template.MaxPatterns - 1), ""},
		{"51 patterns", manyPatterns(template.MaxPatterns), "51 patterns, 50 are allowed for a slot"},
		{"long pattern", slotFile("", "exclude = ['/"+strings.Repeat("a", 256)+"']"), "is 257 bytes long"},
		{"alternatives", slotFile("", "exclude = ['/{"+strings.Repeat("a,", 64)+"a}']"), "64"},
	} {
		got, problems := parseTemplate("x.toml", c.data, SiteDefaults{})
		errs := problems.Errors()
		switch {
		case c.want == "" && got == nil:
			t.Errorf("%s: %v", c.what, errs)
		case c.want != "" && (len(errs) != 1 || !strings.Contains(errs[0].String(), c.want)):
			t.Errorf("%s: %v, want one error with %q", c.what, errs, c.want)
		}
	}
}

// TestBeginningsOfATemplate reads every beginning of a valid file: editors
// truncate first and write then.
func TestBeginningsOfATemplate(t *testing.T) {
	data := readTestdata(t, opportunitiesFile)
	valid := 0
	for n := range data {
		got, problems := parseTemplate("x.toml", data[:n], SiteDefaults{})
		checkPlaces(t, data[:n], problems)
		if (got == nil) != (len(problems.Errors()) > 0) {
			t.Fatalf("the first %d bytes: template %v, problems %v", n, got, problems)
		}
		if got != nil {
			valid++
		}
	}
	if valid == 0 {
		t.Error("no beginning is valid: then there would be nothing to wait for")
	}
}

func TestAnEmptiedFileIsNotValid(t *testing.T) {
	for _, text := range []string{"", "\n", "# nothing"} {
		if got, _ := parseTemplate("x.toml", []byte(text), SiteDefaults{}); got != nil {
			t.Errorf("%q is a valid template", text)
		}
	}
	if got, problems := parseTemplate("x.toml", []byte("[creative_opportunities]\n"), SiteDefaults{}); got == nil || len(got.Slots) != 0 {
		t.Errorf("a file without slots is not valid: %v", problems)
	}
}

// TestOnlySomeProblemsAreTold has so many warnings that no problem is told after
// them, but for the error: without it the file would pass.
func TestOnlySomeProblemsAreTold(t *testing.T) {
	var warnings strings.Builder
	for i := range maxProblems + 10 {
		fmt.Fprintf(&warnings, "k%d = '='\n", i)
	}
	text := slotFile("", "[slot.targeting]\n"+warnings.String()+"[slot.providers.prebid]\n")
	got, problems := parseTemplate("x.toml", text, SiteDefaults{})
	if got != nil || len(problems) != maxProblems+1 || len(problems.Errors()) != 1 {
		t.Errorf("template %v with %d problems, %d errors", got, len(problems), len(problems.Errors()))
	}
}

func FuzzLoadTemplate(f *testing.F) {
	f.Add(readTestdata(f, opportunitiesFile))
	f.Add([]byte("slot = 1\n[slot.a]\nx = [[{a.b=1}]]\n[[slot]]\n\"\" = {}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, problems := parseTemplate("x.toml", data, SiteDefaults{})
		checkPlaces(t, data, problems)
		if (got == nil) != (len(problems.Errors()) > 0) {
			t.Errorf("template %v with problems %v", got, problems)
		}
	})
}
