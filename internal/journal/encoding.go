package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"strconv"
	"time"

	"deckle"
)

// Errors of what is read from a journal. Both are reasons to stop.
var (
	// ErrCorrupt says that a message is not an envelope as a journal writes it:
	// another program's, or damaged.
	ErrCorrupt = errors.New("not an envelope of a journal")

	// ErrNewer says that an envelope has something that only a newer program can read.
	ErrNewer = errors.New("written by a newer program")
)

// What the encoding fixes; see the package's documentation.
const (
	encodingMark    = 0xFE
	encodingVersion = 1

	headerBytes   = 2
	checksumBytes = 4

	maxEvents = 1_024
	maxString = 4_096
	maxLeases = 16
	maxMilli  = 253_402_300_799_999 // 9999-12-31T23:59:59.999Z
)

// The fields of an event, by their bits.
const (
	hasSite = 1 << iota
	hasSlot
	hasAdvertiser
	hasCampaign
	hasCreative
	hasVersion
	hasURL
	hasRequestID
	hasCategory
	hasPrice
	hasLeases
	hasDogeared
	hasSuspect
	hasPage
	hasVerified
	hasLease
	hasLine
	hasAmount

	knownFields = 1<<iota - 1
)

// castagnoli is the polynomial of the checksum, for which processors have an
// instruction.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Encode makes one envelope of events. It is an error to have none, more than
// 1,024, or one that the encoding has no form for; that is less than
// [Event.Validate] asks. Times lose what is below a millisecond.
func Encode(events []Event) ([]byte, error) {
	if len(events) == 0 || len(events) > maxEvents {
		return nil, fmt.Errorf("encode envelope: %d events, not 1 to %d", len(events), maxEvents)
	}
	w := newEncoder(64 * len(events))
	for i := range events {
		if err := representable(&events[i]); err != nil {
			return nil, fmt.Errorf("encode envelope: event %d: %w", i, err)
		}
		w.add(&events[i])
	}
	return w.seal(), nil
}

// representable reports the field that the encoding has no form for.
func representable(e *Event) error {
	if !e.Kind.known() {
		return e.wrong("Kind", "is not known")
	}
	if ms := e.At.UnixMilli(); ms < 0 || ms > maxMilli {
		return e.wrong("At", "is not between 1970 and 9999")
	}
	if _, ok := ParseRequestID(e.RequestID); !ok && e.RequestID != "" {
		return e.wrong("RequestID", "is not 16 lower-case hexadecimal digits")
	}
	if e.Price < 0 {
		return e.wrong("Price", "is negative")
	}
	if e.Amount < 0 {
		return e.wrong("Amount", "is negative")
	}
	for _, f := range [...]struct{ name, text string }{
		{"Site", e.Site},
		{"Slot", e.Slot},
		{"Advertiser", e.Advertiser},
		{"Campaign", e.Campaign},
		{"Creative", e.Creative},
		{"URL", e.URL},
		{"Category", e.Category},
		{"Lease", e.Lease},
		{"Line", e.Line},
	} {
		if len(f.text) > maxString {
			return e.wrong(f.name, fmt.Sprintf("is longer than %d bytes", maxString))
		}
	}
	if len(e.Leases) > maxLeases {
		return e.wrong("Leases", fmt.Sprintf("are more than %d", maxLeases))
	}
	for _, s := range e.Leases {
		if s == "" || len(s) > maxString {
			return e.wrong("Leases", fmt.Sprintf("name one of not 1 to %d bytes", maxString))
		}
	}
	return nil
}

// An encoder writes one envelope.
type encoder struct {
	buf     []byte
	numbers map[string]uint64 // of the strings that are written out
	url     string            // the URL that was written out last
	last    int64             // At of the event before, in milliseconds
	events  int
}

func newEncoder(capacity int) *encoder {
	w := &encoder{
		buf:     make([]byte, 0, headerBytes+capacity+checksumBytes),
		numbers: make(map[string]uint64),
	}
	w.reset()
	return w
}

// reset begins another envelope.
func (w *encoder) reset() {
	clear(w.numbers)
	*w = encoder{buf: append(w.buf[:0], encodingMark, encodingVersion), numbers: w.numbers}
}

// longest is how many bytes e takes at most, the checksum left out.
func longest(e *Event) int {
	const number = binary.MaxVarintLen64
	n := 1 + 2*number // kind, fields, At
	for _, s := range [...]string{e.Site, e.Slot, e.Advertiser, e.Campaign, e.Creative, e.URL, e.Category, e.Lease, e.Line} {
		n += 1 + 2*binary.MaxVarintLen16 + len(s)
	}
	for _, s := range e.Leases {
		n += 1 + binary.MaxVarintLen16 + len(s)
	}
	return n + 8 + 2 + 5*number // RequestID; Suspect and the number of leases; the other numbers
}

// add writes an event that is representable. What is zero is written as nothing:
// its bit says so.
func (w *encoder) add(e *Event) {
	ms := e.At.UnixMilli()
	w.buf = append(w.buf, byte(e.Kind))
	w.buf = binary.AppendUvarint(w.buf, fieldsOf(e))
	w.buf = binary.AppendVarint(w.buf, ms-w.last)
	w.last = ms
	w.events++

	w.text(e.Site)
	w.text(e.Slot)
	w.text(e.Advertiser)
	w.text(e.Campaign)
	w.text(e.Creative)
	w.number(uint64(e.Version))
	w.address(e.URL)
	if id, ok := ParseRequestID(e.RequestID); ok {
		w.buf = binary.BigEndian.AppendUint64(w.buf, id)
	}
	w.text(e.Category)
	w.number(uint64(e.Price))
	w.number(uint64(len(e.Leases)))
	for _, l := range e.Leases {
		w.text(l)
	}
	if e.Suspect != 0 {
		w.buf = append(w.buf, byte(e.Suspect))
	}
	w.number(uint64(e.Page))
	w.text(e.Lease)
	w.text(e.Line)
	w.number(uint64(e.Amount))
}

func fieldsOf(e *Event) (fields uint64) {
	set := func(bit uint64, is bool) {
		if is {
			fields |= bit
		}
	}
	set(hasSite, e.Site != "")
	set(hasSlot, e.Slot != "")
	set(hasAdvertiser, e.Advertiser != "")
	set(hasCampaign, e.Campaign != "")
	set(hasCreative, e.Creative != "")
	set(hasVersion, e.Version != 0)
	set(hasURL, e.URL != "")
	set(hasRequestID, e.RequestID != "")
	set(hasCategory, e.Category != "")
	set(hasPrice, e.Price != 0)
	set(hasLeases, len(e.Leases) > 0)
	set(hasDogeared, e.Dogeared)
	set(hasSuspect, e.Suspect != 0)
	set(hasPage, e.Page != 0)
	set(hasVerified, e.Verified)
	set(hasLease, e.Lease != "")
	set(hasLine, e.Line != "")
	set(hasAmount, e.Amount != 0)
	return fields
}

func (w *encoder) number(n uint64) {
	if n != 0 {
		w.buf = binary.AppendUvarint(w.buf, n)
	}
}

func (w *encoder) text(s string) {
	if s != "" && w.first(s) {
		w.buf = binary.AppendUvarint(w.buf, uint64(len(s)))
		w.buf = append(w.buf, s...)
	}
}

// address writes a URL. Those of a site begin alike.
func (w *encoder) address(s string) {
	if s == "" || !w.first(s) {
		return
	}
	shared := common(w.url, s)
	w.buf = binary.AppendUvarint(w.buf, uint64(shared))
	w.buf = binary.AppendUvarint(w.buf, uint64(len(s)-shared))
	w.buf = append(w.buf, s[shared:]...)
	w.url = s
}

// first writes the number of a string, and reports whether it is 0: then it has to
// be written out.
func (w *encoder) first(s string) bool {
	n, ok := w.numbers[s]
	w.buf = binary.AppendUvarint(w.buf, n)
	if !ok {
		w.numbers[s] = uint64(len(w.numbers) + 1)
	}
	return !ok
}

// common is how many bytes a and b begin with alike.
func common(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// seal ends the envelope with its checksum and returns it.
func (w *encoder) seal() []byte {
	w.buf = binary.BigEndian.AppendUint32(w.buf, crc32.Checksum(w.buf, castagnoli))
	return w.buf
}

// Decode reads one envelope. Its errors wrap [ErrCorrupt] or [ErrNewer]; then
// nothing of it is returned. Memory is bounded by the length of data and the 1,024
// events that an envelope has at most, whoever wrote it.
func Decode(data []byte) ([]Event, error) {
	return new(decoder).decode(make([]Event, 0, min(len(data)/32, maxEvents)), data)
}

// A decoder reads envelopes, one after the other.
type decoder struct {
	rest    []byte              // of the envelope
	texts   []string            // of the envelope, by their number − 1
	written map[string]struct{} // the same
	url     string              // the URL that was written out last
	last    int64               // At of the event before, in milliseconds
	problem string              // the first one; nothing is read any more
}

// decode appends the events of an envelope to events.
func (r *decoder) decode(events []Event, data []byte) ([]Event, error) {
	body, err := open(data)
	if err != nil {
		return nil, err
	}
	r.reset(body)
	for n := 0; len(r.rest) > 0; n++ {
		if n == maxEvents {
			return nil, fmt.Errorf("more than %d events: %w", maxEvents, ErrCorrupt)
		}
		e, err := r.event()
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", n, err)
		}
		events = append(events, e)
	}
	return events, nil
}

// open checks what is around the events of an envelope and returns them.
func open(data []byte) (body []byte, err error) {
	switch {
	case len(data) < headerBytes || data[0] != encodingMark:
		return nil, fmt.Errorf("no mark at the beginning: %w", ErrCorrupt)
	case data[1] > encodingVersion:
		return nil, fmt.Errorf("encoding version %d, and this program reads up to version %d: %w", data[1], encodingVersion, ErrNewer)
	case data[1] == 0:
		return nil, fmt.Errorf("encoding version 0: %w", ErrCorrupt)
	case len(data) <= headerBytes+checksumBytes:
		return nil, fmt.Errorf("no events: %w", ErrCorrupt)
	}
	body, sum := data[:len(data)-checksumBytes], data[len(data)-checksumBytes:]
	if crc32.Checksum(body, castagnoli) != binary.BigEndian.Uint32(sum) {
		return nil, fmt.Errorf("wrong checksum: %w", ErrCorrupt)
	}
	return body[headerBytes:], nil
}

func (r *decoder) reset(body []byte) {
	r.rest, r.texts, r.url, r.last, r.problem = body, r.texts[:0], "", 0, ""
	if r.written == nil {
		r.written = make(map[string]struct{})
	}
	clear(r.written)
}

func (r *decoder) event() (e Event, err error) {
	e.Kind = Kind(r.octet())
	fields := r.uvarint(math.MaxUint64)
	if r.problem == "" && !e.Kind.known() {
		return e, fmt.Errorf("kind %d, and this program knows kinds %d to %d of encoding version %d: %w",
			e.Kind, Impression, Seal, encodingVersion, ErrNewer)
	}
	if unknown := fields &^ knownFields; r.problem == "" && unknown != 0 {
		return e, fmt.Errorf("%s with fields %#x, and this program knows %#x of encoding version %d: %w",
			e.Kind, fields, uint64(knownFields), encodingVersion, ErrNewer)
	}
	r.at(&e)
	r.fields(&e, fields)
	if r.problem != "" {
		return e, fmt.Errorf("%s: %w", r.problem, ErrCorrupt)
	}
	return e, nil
}

func (r *decoder) at(e *Event) {
	zigzag := r.uvarint(math.MaxUint64)
	difference := int64(zigzag>>1) ^ -int64(zigzag&1)
	if difference < -maxMilli || difference > maxMilli {
		r.fail("At is out of range")
		return
	}
	r.last += difference
	if r.last < 0 || r.last > maxMilli {
		r.fail("At is out of range")
	}
	e.At = time.UnixMilli(r.last).UTC()
}

func (r *decoder) fields(e *Event, fields uint64) {
	has := func(bit uint64) bool { return fields&bit != 0 }
	e.Site = r.text(has(hasSite))
	e.Slot = r.text(has(hasSlot))
	e.Advertiser = r.text(has(hasAdvertiser))
	e.Campaign = r.text(has(hasCampaign))
	e.Creative = r.text(has(hasCreative))
	e.Version = uint32(r.number(has(hasVersion), math.MaxUint32))
	e.URL = r.address(has(hasURL))
	e.RequestID = r.requestID(has(hasRequestID))
	e.Category = r.text(has(hasCategory))
	e.Price = deckle.Money(r.number(has(hasPrice), math.MaxInt64))
	e.Leases = r.list(has(hasLeases))
	e.Dogeared = has(hasDogeared)
	e.Suspect = r.suspect(has(hasSuspect))
	e.Page = uint16(r.number(has(hasPage), math.MaxUint16))
	e.Verified = has(hasVerified)
	e.Lease = r.text(has(hasLease))
	e.Line = r.text(has(hasLine))
	e.Amount = deckle.Money(r.number(has(hasAmount), math.MaxInt64))
}

func (r *decoder) fail(problem string) {
	if r.problem == "" {
		r.problem = problem
	}
	r.rest = nil
}

// take cuts n bytes from the rest; nil when there are fewer.
func (r *decoder) take(n int) []byte {
	if n > len(r.rest) {
		r.fail("it is cut off")
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *decoder) octet() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

// uvarint reads a number of at most limit in its shortest form.
func (r *decoder) uvarint(limit uint64) uint64 {
	n, size := binary.Uvarint(r.rest)
	switch {
	case size == 0:
		r.fail("it is cut off")
		return 0
	case size < 0, n > limit:
		r.fail("a number is out of range")
		return 0
	case size > 1 && r.rest[size-1] == 0:
		r.fail("a number is longer than it need be")
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

// number reads a number that is present, and so not 0.
func (r *decoder) number(present bool, limit uint64) uint64 {
	if !present {
		return 0
	}
	n := r.uvarint(limit)
	if n == 0 {
		r.fail("a field is present and 0")
	}
	return n
}

func (r *decoder) suspect(present bool) Suspect {
	if !present {
		return 0
	}
	s := Suspect(r.octet())
	if s == 0 {
		r.fail("a field is present and 0")
	}
	return s
}

func (r *decoder) requestID(present bool) string {
	if !present {
		return ""
	}
	b := r.take(8)
	if b == nil {
		return ""
	}
	return formatRequestID(binary.BigEndian.Uint64(b))
}

func (r *decoder) list(present bool) []string {
	n := int(r.number(present, maxLeases))
	if n == 0 {
		return nil
	}
	list := make([]string, n)
	for i := range list {
		list[i] = r.text(true)
	}
	return list
}

// text reads a string that is written out, or the number of one that has been.
func (r *decoder) text(present bool) string {
	if !present {
		return ""
	}
	if s, ok := r.known(); ok {
		return s
	}
	return r.learn(string(r.take(int(r.number(true, maxString)))))
}

// address reads a URL.
func (r *decoder) address(present bool) string {
	if !present {
		return ""
	}
	if s, ok := r.known(); ok {
		return s
	}
	shared := int(r.uvarint(uint64(len(r.url))))
	s := r.url[:shared] + string(r.take(int(r.uvarint(uint64(maxString-shared)))))
	switch {
	case s == "":
		r.fail("a field is present and 0")
	case common(r.url, s) != shared:
		r.fail("a URL is longer than it need be")
	}
	r.url = r.learn(s)
	return r.url
}

// known reads the number of a string, and reports whether it need not be read.
func (r *decoder) known() (s string, ok bool) {
	n := r.uvarint(math.MaxUint64)
	if n > uint64(len(r.texts)) {
		r.fail("string " + strconv.FormatUint(n, 10) + " has not been written")
	}
	if r.problem != "" {
		return "", true
	}
	if n > 0 {
		return r.texts[n-1], true
	}
	return "", false
}

// learn gives the next number to a string that was written out.
func (r *decoder) learn(s string) string {
	if _, again := r.written[s]; again {
		r.fail("a string is written out again")
	}
	if r.problem != "" {
		return ""
	}
	r.texts = append(r.texts, s)
	r.written[s] = struct{}{}
	return s
}

// formatRequestID is the inverse of parseRequestID.
func formatRequestID(id uint64) string {
	const digits = "0123456789abcdef"
	var b [16]byte
	for i := range b {
		b[i] = digits[id>>(60-4*i)&0xF]
	}
	return string(b[:])
}
