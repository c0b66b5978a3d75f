package journal_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"deckle"
	"deckle/internal/journal"
	"deckle/internal/journal/journaltest"
)

// golden are envelopes whose bytes must never change: journals are full of them.
var golden = map[string][]journal.Event{
	"kinds": {
		{
			Kind: journal.Impression, At: at(0), Site: "garden", Slot: "sidebar-1", Advertiser: "adv-1", Campaign: "camp-1",
			Creative: "mag-1", Version: 3, URL: "https://garden.example/roses", Category: "275",
			RequestID: "5f58f22dc9ffcbbd", Price: 4_200, Leases: []string{"n1-7-1", "n1-7-2"},
		},
		{
			Kind: journal.View, At: at(1_043), Site: "garden", Slot: "sidebar-1", Advertiser: "adv-1", Campaign: "camp-1",
			Creative: "mag-1", Version: 3, URL: "https://garden.example/roses", Category: "275",
			RequestID: "5f58f22dc9ffcbbd",
		},
		{
			Kind: journal.Click, At: at(1_000), Site: "garden", Slot: "footer", Advertiser: "adv-1", Campaign: "camp-1",
			Creative: "mag-2", Version: 1, URL: "https://garden.example/roses",
			RequestID: "00000000000000ff", Dogeared: true, Suspect: journal.SuspectBot | journal.SuspectRate,
		},
		{
			Kind: journal.CTA, At: at(9_000), Site: "garden", Slot: "footer", Advertiser: "adv-1", Campaign: "camp-1",
			Creative: "mag-2", Version: 1, URL: "https://garden.example/roses",
			RequestID: "00000000000000ff", Dogeared: true,
		},
		{
			Kind: journal.Fold, At: at(9_000), Site: "garden", Slot: "footer", Advertiser: "adv-1", Campaign: "camp-1",
			Creative: "mag-2", Version: 1, URL: "https://garden.example/roses",
			RequestID: "0123456789abcdef", Page: 2,
		},
		{
			Kind: journal.Fold, At: at(9_001), Site: "garden", Slot: "footer", Advertiser: "adv-1", Campaign: "camp-1",
			Creative: "mag-2", Version: 1, URL: "https://garden.example/rosemary",
			RequestID: "123456789abcdef0",
		},
		{
			Kind: journal.Unfold, At: at(70_000), Site: "garden", Slot: "footer", Creative: "mag-2",
			RequestID: "0123456789abcdef", Verified: true,
		},
		{Kind: journal.Lease, At: at(70_001), Lease: "n1-7-1", Line: "campaign/camp-1/2026-11-30", Amount: 2_000_000},
		{Kind: journal.Seal, At: at(700_001), Lease: "n1-7-1", Line: "campaign/camp-1/2026-11-30"},
	},
	"extremes": {
		{Kind: journal.Seal, At: time.UnixMilli(253_402_300_799_999).UTC()},
		{
			Kind: journal.Impression, At: time.UnixMilli(0).UTC(), Site: "ゴミ", Version: math.MaxUint32, RequestID: "ffffffffffffffff",
			Price: math.MaxInt64, Leases: strings.Split("ABCDEFGHIJKLMNOP", ""), Dogeared: true, Suspect: 255,
			Page: math.MaxUint16, Verified: true, Lease: "ゴミ", Line: strings.Repeat("l", 200), Amount: math.MaxInt64,
		},
		{Kind: journal.Fold, At: time.UnixMilli(0).UTC(), RequestID: "0000000000000000"},
	},
}

// at is a moment some milliseconds after 2026-11-30T12:00:00Z.
func at(ms int64) time.Time { return time.UnixMilli(1_796_040_000_000 + ms).UTC() }

func TestGoldenBytes(t *testing.T) {
	t.Parallel()
	for name, events := range golden {
		want := readHex(t, "v1-"+name+".hex")
		got, err := journal.Encode(events)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s encodes to\n%sgolden\n%s", name, hex.Dump(got), hex.Dump(want))
		}
		decoded, err := journal.Decode(want)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(events, decoded); diff != "" {
			t.Errorf("%s decodes otherwise (-want +got):\n%s", name, diff)
		}
	}
}

// readHex reads pairs of hexadecimal digits; # begins a comment.
func readHex(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var digits strings.Builder
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		digits.WriteString(strings.Join(strings.Fields(line), ""))
	}
	data, err := hex.DecodeString(digits.String())
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return data
}

func TestRoundTripOfAnything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(anyEvent(), 1, 30).Draw(t, "events")
		data, err := journal.Encode(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := journal.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

// anyEvent makes everything that the encoding has a form for, whatever it means.
func anyEvent() *rapid.Generator[journal.Event] {
	text := rapid.OneOf(
		rapid.SampledFrom([]string{"", "", "a", "b", "c", "\x00", "\xff"}),
		rapid.StringN(0, 40, 80),
		rapid.Just(strings.Repeat("x", 4_096)),
	)
	money := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Min(0))
	return rapid.Custom(func(t *rapid.T) (e journal.Event) {
		e.Kind = journal.Kind(rapid.IntRange(1, 8).Draw(t, "Kind"))
		e.At = time.UnixMilli(rapid.Int64Range(0, 253_402_300_799_999).Draw(t, "At")).UTC()
		for _, field := range []*string{&e.Site, &e.Slot, &e.Advertiser, &e.Campaign, &e.Creative, &e.URL, &e.Category, &e.Lease, &e.Line} {
			*field = text.Draw(t, "text")
		}
		e.RequestID = rapid.StringMatching(`([0-9a-f]{16})?`).Draw(t, "RequestID")
		e.Version = rapid.Uint32().Draw(t, "Version")
		e.Price = deckle.Money(money.Draw(t, "Price"))
		e.Amount = deckle.Money(money.Draw(t, "Amount"))
		if n := rapid.IntRange(0, 16).Draw(t, "n"); n > 0 {
			e.Leases = rapid.SliceOfN(text.Filter(func(s string) bool { return s != "" }), n, n).Draw(t, "Leases")
		}
		e.Dogeared = rapid.Bool().Draw(t, "Dogeared")
		e.Verified = rapid.Bool().Draw(t, "Verified")
		e.Suspect = journal.Suspect(rapid.Uint8().Draw(t, "Suspect"))
		e.Page = rapid.Uint16().Draw(t, "Page")
		return e
	})
}

// What was encoded is the same as before in every envelope that a journal has.
func TestRoundTripOfADay(t *testing.T) {
	t.Parallel()
	g := journaltest.New(3, journaltest.Config{})
	for range 100 {
		want := g.Take(50)
		data, err := journal.Encode(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := journal.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	}
}

// Times are those of the node to the millisecond, whatever its zone.
func TestTimesLoseWhatIsBelowAMillisecond(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("", 9*3600)
	data, err := journal.Encode([]journal.Event{{Kind: journal.Seal, At: at(1).Add(999_999).In(zone)}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := journal.Decode(data)
	if err != nil || got[0].At != at(1) {
		t.Errorf("got %v, %v, want %v", got, err, at(1))
	}
}

// Fifty events of one campaign are small, and so are their readers' surroundings.
func TestEventsAreSmall(t *testing.T) {
	t.Parallel()
	g := journaltest.New(4, journaltest.Config{Sites: 1, Advertisers: 1, Campaigns: 1})
	data, err := journal.Encode(g.Take(50))
	if err != nil {
		t.Fatal(err)
	}
	if per := len(data) / 50; per > 50 {
		t.Errorf("an event of an envelope of 50 has %d bytes, want at most 50", per)
	}
}

// envelope puts a mark, a version and a checksum around events, whatever they are.
func envelope(version byte, events ...byte) []byte {
	data := append([]byte{0xFE, version}, events...)
	return binary.BigEndian.AppendUint32(data, crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)))
}

func TestWhatCannotBeDecoded(t *testing.T) {
	t.Parallel()
	good := envelope(1, 8, 0, 2) // a seal of nothing, 1 ms after 1970
	if _, err := journal.Decode(good); err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(good)
	flipped[4] ^= 0x10
	for _, c := range []struct {
		name  string
		data  []byte
		is    error
		names string
	}{
		{"nothing", nil, journal.ErrCorrupt, "no mark"},
		{"foreign", []byte(`{"kind":"impression"}`), journal.ErrCorrupt, "no mark"},
		{"mark only", good[:1], journal.ErrCorrupt, "no mark"},
		{"no events", envelope(1), journal.ErrCorrupt, "no events"},
		{"cut off", good[:len(good)-1], journal.ErrCorrupt, "checksum"},
		{"a bit flipped", flipped, journal.ErrCorrupt, "checksum"},
		{"version 0", envelope(0, 8, 0, 2), journal.ErrCorrupt, "version 0"},
		{"newer version", envelope(2, 8, 0, 2), journal.ErrNewer, "encoding version 2, and this program reads up to version 1"},
		{"newer kind", envelope(1, 8, 0, 2, 9, 0, 0), journal.ErrNewer, "event 1: kind 9, and this program knows kinds 1 to 8 of encoding version 1"},
		{"kind 0", envelope(1, 0, 0, 2), journal.ErrNewer, "kind 0"},
		{"newer field", envelope(1, 8, 0x80, 0x80, 0x10, 2), journal.ErrNewer, "seal with fields 0x40000"},
		{"kind only", envelope(1, 8), journal.ErrCorrupt, "cut off"},
		{"half an event", envelope(1, 8, 0, 2, 8, 0), journal.ErrCorrupt, "event 1: it is cut off"},
		{"long number", envelope(1, 8, 0, 0x82, 0), journal.ErrCorrupt, "longer than it need be"},
		{"too long number", envelope(1, 8, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2), journal.ErrCorrupt, "out of range"},
		{"before 1970", envelope(1, 8, 0, 1), journal.ErrCorrupt, "At is out of range"},
		{"after 9999", envelope(1, 8, 0, 0xfe, 0xff, 0x8b, 0xc1, 0xb5, 0xe6, 0x73, 8, 0, 2), journal.ErrCorrupt, "At is out of range"},
		{"far after 9999", envelope(1, 8, 0, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1), journal.ErrCorrupt, "At is out of range"},
		{"empty string", envelope(1, 8, 1, 2, 0, 0), journal.ErrCorrupt, "present and 0"},
		{"long string", envelope(1, append([]byte{8, 1, 2, 0, 0x81, 0x20}, make([]byte, 4_097)...)...), journal.ErrCorrupt, "out of range"},
		{"string cut off", envelope(1, 8, 1, 2, 0, 3, 'a', 'b'), journal.ErrCorrupt, "cut off"},
		{"string again", envelope(1, 8, 3, 2, 0, 1, 'a', 0, 1, 'a'), journal.ErrCorrupt, "written out again"},
		{"string not written", envelope(1, 8, 3, 2, 0, 1, 'a', 2), journal.ErrCorrupt, "string 2 has not been written"},
		{"URL shares too much", envelope(1, 8, 0x40, 2, 0, 1, 0), journal.ErrCorrupt, "out of range"},
		{"URL shares less than it could", envelope(1, 8, 0x40, 2, 0, 0, 1, 'a', 8, 0x40, 0, 0, 0, 2, 'a', 'b'), journal.ErrCorrupt, "URL is longer"},
		{"empty URL", envelope(1, 8, 0x40, 2, 0, 0, 0), journal.ErrCorrupt, "present and 0"},
		{"URL again", envelope(1, 8, 0x40, 2, 0, 0, 1, 'a', 8, 0x40, 0, 0, 1, 0), journal.ErrCorrupt, "written out again"},
		{"long URL", envelope(1, append([]byte{8, 0x40, 2, 0, 0, 0x81, 0x20}, make([]byte, 4_097)...)...), journal.ErrCorrupt, "out of range"},
		{"version 0 of a creative", envelope(1, 8, 0x20, 2, 0), journal.ErrCorrupt, "present and 0"},
		{"version beyond 32 bits", envelope(1, 8, 0x20, 2, 0x80, 0x80, 0x80, 0x80, 0x10), journal.ErrCorrupt, "out of range"},
		{"half a request id", envelope(1, 8, 0x80, 1, 2, 1, 2, 3, 4), journal.ErrCorrupt, "cut off"},
		{"negative price", envelope(1, 8, 0x80, 4, 2, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1), journal.ErrCorrupt, "out of range"},
		{"no leases", envelope(1, 8, 0x80, 8, 2, 0), journal.ErrCorrupt, "present and 0"},
		{"17 leases", envelope(1, 8, 0x80, 8, 2, 17), journal.ErrCorrupt, "out of range"},
		{"suspect of nothing", envelope(1, 8, 0x80, 0x20, 2, 0), journal.ErrCorrupt, "present and 0"},
		{"1,025 events", envelope(1, bytes.Repeat([]byte{8, 0, 0}, 1_025)...), journal.ErrCorrupt, "more than 1024 events"},
	} {
		events, err := journal.Decode(c.data)
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.names) || events != nil {
			t.Errorf("%s: got %d events and %v, want %q and %v", c.name, len(events), err, c.names, c.is)
		}
	}
	if _, err := journal.Decode(envelope(1, bytes.Repeat([]byte{8, 0, 0}, 1_024)...)); err != nil {
		t.Errorf("1,024 events: %v", err)
	}
}

func TestWhatCannotBeEncoded(t *testing.T) {
	t.Parallel()
	seal := journal.Event{Kind: journal.Seal, At: at(0)}
	with := func(change func(*journal.Event)) []journal.Event {
		e := seal
		change(&e)
		return []journal.Event{seal, e}
	}
	for name, events := range map[string][]journal.Event{
		"0 events":    {},
		"1025 events": make([]journal.Event, 1_025),
		"Kind":        with(func(e *journal.Event) { e.Kind = 9 }),
		"At":          with(func(e *journal.Event) { e.At = time.Time{} }),
		"RequestID":   with(func(e *journal.Event) { e.RequestID = "00000000000000FF" }),
		"Price":       with(func(e *journal.Event) { e.Price = -1 }),
		"Amount":      with(func(e *journal.Event) { e.Amount = -1 }),
		"Site":        with(func(e *journal.Event) { e.Site = strings.Repeat("u", 4_097) }),
		"Slot":        with(func(e *journal.Event) { e.Slot = strings.Repeat("u", 4_097) }),
		"Advertiser":  with(func(e *journal.Event) { e.Advertiser = strings.Repeat("u", 4_097) }),
		"Campaign":    with(func(e *journal.Event) { e.Campaign = strings.Repeat("u", 4_097) }),
		"Creative":    with(func(e *journal.Event) { e.Creative = strings.Repeat("u", 4_097) }),
		"URL":         with(func(e *journal.Event) { e.URL = strings.Repeat("u", 4_097) }),
		"Category":    with(func(e *journal.Event) { e.Category = strings.Repeat("u", 4_097) }),
		"Lease is":    with(func(e *journal.Event) { e.Lease = strings.Repeat("u", 4_097) }),
		"Line":        with(func(e *journal.Event) { e.Line = strings.Repeat("u", 4_097) }),
		"Leases are":  with(func(e *journal.Event) { e.Leases = make([]string, 17) }),
		"Leases name": with(func(e *journal.Event) { e.Leases = []string{"a", ""} }),
	} {
		if _, err := journal.Encode(events); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// FuzzDecode reads what anybody may have put into a log.
func FuzzDecode(f *testing.F) {
	for name := range golden {
		f.Add(readHex(f, "v1-"+name+".hex"))
	}
	f.Fuzz(func(t *testing.T, data []byte) { decodeAndBack(t, data) })
}

// FuzzEvents reads events behind a right checksum, which no fuzzer would find.
func FuzzEvents(f *testing.F) {
	for name := range golden {
		data := readHex(f, "v1-"+name+".hex")
		f.Add(data[2 : len(data)-4])
	}
	f.Fuzz(func(t *testing.T, events []byte) { decodeAndBack(t, envelope(1, events...)) })
}

// decodeAndBack checks that what decodes encodes to the same bytes.
func decodeAndBack(t *testing.T, data []byte) {
	t.Helper()
	before := bytes.Clone(data)
	events, err := journal.Decode(data)
	if !bytes.Equal(data, before) {
		t.Fatal("Decode changed what it read")
	}
	if err != nil {
		if !errors.Is(err, journal.ErrCorrupt) && !errors.Is(err, journal.ErrNewer) {
			t.Fatalf("unnamed error %v", err)
		}
		return
	}
	again, err := journal.Encode(events)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again, data) {
		t.Fatalf("decoded from\n%sand encoded to\n%s", hex.Dump(data), hex.Dump(again))
	}
}

// A few bytes are not the key to much memory.
func TestMemoryIsBoundedByTheInput(t *testing.T) {
	hostile := envelope(1, bytes.Repeat([]byte{8, 0x80, 8, 0, 16}, 200_000)...) // 16 leases each, and none there
	if n := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = journal.Decode(hostile)
		}
	}).AllocedBytesPerOp(); n > 1<<20 {
		t.Errorf("decoding %d hostile bytes took %d bytes", len(hostile), n)
	}
}

func BenchmarkEncode(b *testing.B) {
	events := journaltest.New(5, journaltest.Config{}).Take(50)
	size := 0
	b.ReportAllocs()
	for b.Loop() {
		data, err := journal.Encode(events)
		if err != nil {
			b.Fatal(err)
		}
		size = len(data)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(events)), "ns/event")
	b.ReportMetric(float64(size)/float64(len(events)), "B/event")
}

func BenchmarkDecode(b *testing.B) {
	data, err := journal.Encode(journaltest.New(5, journaltest.Config{}).Take(50))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := journal.Decode(data); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*50), "ns/event")
}
