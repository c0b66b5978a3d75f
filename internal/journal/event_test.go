package journal_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"deckle/internal/journal"
)

// Ids are remembered by projections, and so are the same for ever.
func TestEventIDs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		event journal.Event
		want  string
	}{
		// printf 5f58f22dc9ffcbbd | sha256sum
		{journal.Event{Kind: journal.Impression, RequestID: "5f58f22dc9ffcbbd", Lease: "x"}, "01" + "f6c8dc3ecb384e5a21e5f66b0f76f0"},
		{journal.Event{Kind: journal.Unfold, RequestID: "5f58f22dc9ffcbbd", At: at(1)}, "06" + "f6c8dc3ecb384e5a21e5f66b0f76f0"},
		// printf n1-7-1 | sha256sum
		{journal.Event{Kind: journal.Lease, Lease: "n1-7-1", RequestID: "x"}, "07" + "7fe51b43dcb92db2f3c25dc8db5656"},
		{journal.Event{Kind: journal.Seal, Lease: "n1-7-1"}, "08" + "7fe51b43dcb92db2f3c25dc8db5656"},
	} {
		if got := c.event.ID().String(); got != c.want {
			t.Errorf("%s: got %s, want %s", c.event.Kind, got, c.want)
		}
	}
	if journal.Click.ID("0000000000000001") == journal.Click.ID("0000000000000002") {
		t.Error("two requests have one id")
	}
}

func TestKindsHaveNames(t *testing.T) {
	t.Parallel()
	var names []string
	for k := journal.Kind(0); k < 10; k++ {
		names = append(names, k.String())
	}
	want := []string{"kind 0", "impression", "view", "click", "cta", "fold", "unfold", "lease", "seal", "kind 9"}
	if !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
}

// valid are events of every kind, of which a test breaks one field.
func valid(k journal.Kind) journal.Event {
	e := journal.Event{
		Kind: k, At: at(0), Site: "garden", Slot: "sidebar-1", Advertiser: "adv", Campaign: "camp", Creative: "mag", Version: 1,
		URL: "https://garden.example/roses/@home", Category: "275", RequestID: "5f58f22dc9ffcbbd",
	}
	switch k {
	case journal.Impression:
		e.Price, e.Leases = 2_000, []string{"l-1", "l-2"}
	case journal.Fold:
		e.Page = 11
	case journal.Unfold:
		e.Verified = true
	case journal.Lease:
		return journal.Event{Kind: k, At: at(0), Lease: "l-1", Line: "campaign/camp/2026-11-30", Amount: 1}
	case journal.Seal:
		return journal.Event{Kind: k, At: at(0), Lease: "l-1", Line: "advertiser/adv/2026-11-30"}
	}
	return e
}

func TestValidEvents(t *testing.T) {
	t.Parallel()
	for k := journal.Impression; k <= journal.Seal; k++ {
		if e := valid(k); e.Validate() != nil {
			t.Errorf("%s: %v", k, e.Validate())
		}
	}
	for name, change := range map[string]func(*journal.Event){
		"free":                func(e *journal.Event) { e.Price = 0 },
		"free without leases": func(e *journal.Event) { e.Price, e.Leases = 0, nil },
		"dog-eared":           func(e *journal.Event) { e.Price, e.Leases, e.Dogeared = 0, nil, true },
		"suspect":             func(e *journal.Event) { e.Suspect = 7 },
		"bare percent":        func(e *journal.Event) { e.URL = "https://garden.example/100%" },
		"http":                func(e *journal.Event) { e.URL = "http://garden.example" },
		"no category":         func(e *journal.Event) { e.Category = "" },
		"longest":             func(e *journal.Event) { e.Site, e.URL = strings.Repeat("s", 64), "https://"+strings.Repeat("u", 2_040) },
		"any script":          func(e *journal.Event) { e.Slot = "サイドバー" },
		"8 leases":            func(e *journal.Event) { e.Leases = strings.Split("12345678", "") },
	} {
		e := valid(journal.Impression)
		if change(&e); e.Validate() != nil {
			t.Errorf("%s: %v", name, e.Validate())
		}
	}
	anonymous := journal.Event{Kind: journal.Unfold, At: at(0), Site: "s", Slot: "s", Creative: "c", RequestID: "0000000000000000"}
	if err := anonymous.Validate(); err != nil {
		t.Errorf("an unfold without a token: %v", err)
	}
}

func TestInvalidEvents(t *testing.T) {
	t.Parallel()
	readers := []journal.Kind{journal.Impression, journal.View, journal.Click, journal.CTA, journal.Fold, journal.Unfold}
	most := readers[:5] // what an unfold needs not
	imp := readers[:1]
	leases := []journal.Kind{journal.Lease, journal.Seal}
	unpriced := append(slices.Clone(readers[1:]), leases...)
	all := append(slices.Clone(readers), leases...)
	for _, c := range []struct {
		kinds          []journal.Kind
		field, problem string
		change         func(*journal.Event)
	}{
		{all, "Kind", "not known", func(e *journal.Event) { e.Kind = 0 }},
		{all, "Kind", "not known", func(e *journal.Event) { e.Kind = 9 }},
		{all, "At", "between", func(e *journal.Event) { e.At = time.Time{} }},
		{all, "At", "between", func(e *journal.Event) { e.At = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC) }},

		{readers, "Site", "missing", func(e *journal.Event) { e.Site = "" }},
		{readers, "Slot", "missing", func(e *journal.Event) { e.Slot = "" }},
		{readers, "Creative", "missing", func(e *journal.Event) { e.Creative = "" }},
		{most, "Advertiser", "missing", func(e *journal.Event) { e.Advertiser = "" }},
		{most, "Campaign", "missing", func(e *journal.Event) { e.Campaign = "" }},
		{most, "Version", "missing", func(e *journal.Event) { e.Version = 0 }},
		{most, "URL", "missing", func(e *journal.Event) { e.URL = "" }},
		{readers, "Site", "64 bytes", func(e *journal.Event) { e.Site = strings.Repeat("s", 65) }},
		{readers, "Slot", "control", func(e *journal.Event) { e.Slot = "a\x00b" }},
		{readers, "Advertiser", "control", func(e *journal.Event) { e.Advertiser = "a\u0085b" }},
		{readers, "Campaign", "UTF-8", func(e *journal.Event) { e.Campaign = "\xff" }},
		{readers, "Category", "64 bytes", func(e *journal.Event) { e.Category = strings.Repeat("c", 65) }},
		{readers, "RequestID", "16 lower-case", func(e *journal.Event) { e.RequestID = "" }},
		{readers, "RequestID", "16 lower-case", func(e *journal.Event) { e.RequestID = "5F58F22DC9FFCBBD" }},
		{readers, "RequestID", "16 lower-case", func(e *journal.Event) { e.RequestID = "5f58f22dc9ffcbb" }},
		{readers, "Suspect", "not known", func(e *journal.Event) { e.Suspect = 8 }},

		{readers, "URL", "query", func(e *journal.Event) { e.URL += "?utm_id=1" }},
		{readers, "URL", "fragment", func(e *journal.Event) { e.URL += "#me" }},
		{readers, "URL", "credentials", func(e *journal.Event) { e.URL = "https://me:secret@garden.example/" }},
		{readers, "URL", "absolute", func(e *journal.Event) { e.URL = "/roses" }},
		{readers, "URL", "absolute", func(e *journal.Event) { e.URL = "javascript:alert(1)" }},
		{readers, "URL", "absolute", func(e *journal.Event) { e.URL = "https:///roses" }},
		{readers, "URL", "2048 bytes", func(e *journal.Event) { e.URL = "https://" + strings.Repeat("u", 2_041) }},
		{readers, "URL", "control", func(e *journal.Event) { e.URL += "\n" }},

		{imp, "Price", "negative", func(e *journal.Event) { e.Price = -1 }},
		{imp, "Price", "free", func(e *journal.Event) { e.Dogeared = true }},
		{imp, "Leases", "free", func(e *journal.Event) { e.Dogeared, e.Price = true, 0 }},
		{imp, "Leases", "nothing pays", func(e *journal.Event) { e.Leases = nil }},
		{imp, "Leases", "missing", func(e *journal.Event) { e.Leases = []string{"l", ""} }},
		{imp, "Leases", "twice", func(e *journal.Event) { e.Leases = []string{"l", "m", "l"} }},
		{imp, "Leases", "more than 8", func(e *journal.Event) { e.Leases = strings.Split("123456789", "") }},

		{unpriced, "Price", "belong", func(e *journal.Event) { e.Price = 1 }},
		{unpriced, "Leases", "belong", func(e *journal.Event) { e.Leases = []string{"l"} }},
		{imp, "Page", "belong", func(e *journal.Event) { e.Page = 1 }},
		{most, "Verified", "belong", func(e *journal.Event) { e.Verified = true }},
		{readers, "Lease", "belong", func(e *journal.Event) { e.Lease = "l" }},
		{readers, "Line", "belong", func(e *journal.Event) { e.Line = "campaign/c" }},
		{readers, "Amount", "belong", func(e *journal.Event) { e.Amount = 1 }},
		{leases[1:], "Amount", "belong", func(e *journal.Event) { e.Amount = 1 }},

		{leases, "Lease", "missing", func(e *journal.Event) { e.Lease = "" }},
		{leases, "Line", "missing", func(e *journal.Event) { e.Line = "" }},
		{leases, "Line", "no campaign", func(e *journal.Event) { e.Line = "campaign/" }},
		{leases, "Line", "no campaign", func(e *journal.Event) { e.Line = "site/s" }},
		{leases, "Line", "160 bytes", func(e *journal.Event) { e.Line = "campaign/" + strings.Repeat("c", 152) }},
		{leases[:1], "Amount", "above zero", func(e *journal.Event) { e.Amount = 0 }},
		{leases[:1], "Amount", "above zero", func(e *journal.Event) { e.Amount = -1 }},
		{leases, "Site", "belong", func(e *journal.Event) { e.Site = "s" }},
		{leases, "Slot", "belong", func(e *journal.Event) { e.Slot = "s" }},
		{leases, "Advertiser", "belong", func(e *journal.Event) { e.Advertiser = "a" }},
		{leases, "Campaign", "belong", func(e *journal.Event) { e.Campaign = "c" }},
		{leases, "Creative", "belong", func(e *journal.Event) { e.Creative = "c" }},
		{leases, "Version", "belong", func(e *journal.Event) { e.Version = 1 }},
		{leases, "URL", "belong", func(e *journal.Event) { e.URL = "https://garden.example/" }},
		{leases, "Category", "belong", func(e *journal.Event) { e.Category = "1" }},
		{leases, "RequestID", "belong", func(e *journal.Event) { e.RequestID = "5f58f22dc9ffcbbd" }},
		{leases, "Dogeared", "belong", func(e *journal.Event) { e.Dogeared = true }},
		{leases, "Suspect", "belong", func(e *journal.Event) { e.Suspect = 1 }},
	} {
		for _, k := range c.kinds {
			e := valid(k)
			c.change(&e)
			err := e.Validate()
			f, ok := errors.AsType[*journal.FieldError](err)
			if !ok || f.Field != c.field || !strings.Contains(f.Problem, c.problem) || f.Kind != e.Kind {
				t.Errorf("%s: got %v, want one that %s has %q", k, err, c.field, c.problem)
			}
		}
	}
}

// Everything that is valid can be written, in an envelope that is not larger than
// was made room for.
func TestTheLargestEventIsRepresentable(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("i", 63)
	e := valid(journal.Impression)
	e.Site, e.Slot, e.Advertiser, e.Campaign, e.Creative, e.Category = id+"1", id+"2", id+"3", id+"4", id+"5", id+"6"
	e.URL, e.Leases = "https://"+strings.Repeat("u", 2_040), nil
	for _, c := range "abcdefgh" {
		e.Leases = append(e.Leases, id+string(c))
	}
	e.Version, e.Price, e.Suspect = 1<<32-1, 1<<62, 7
	if err := e.Validate(); err != nil {
		t.Fatal(err)
	}
	data, err := journal.Encode([]journal.Event{e})
	if err != nil || len(data) > 4_096 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

func BenchmarkValidate(b *testing.B) {
	e := valid(journal.Impression)
	b.ReportAllocs()
	for b.Loop() {
		if err := e.Validate(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkID(b *testing.B) {
	e := valid(journal.Impression)
	b.ReportAllocs()
	for b.Loop() {
		_ = e.ID()
	}
}
