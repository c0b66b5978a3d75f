package config

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2/unstable"

	"deckle"
)

// A table reads the keys of one TOML table. Every method asks for a key, gives
// its default, and reports what is wrong with the value; a default is returned
// for a value that cannot be used. After the last key, close reports those that
// nobody asked for.
type table struct {
	doc   *document
	path  string
	val   *value // nil: the table is absent and every key has its default
	known []string
}

// A fault is what is wrong with a value, and the remedy.
type fault struct {
	msg, remedy string
}

// faultf makes a fault.
func faultf(remedy, format string, args ...any) *fault {
	return &fault{fmt.Sprintf(format, args...), remedy}
}

// table is the table of the whole file.
func (d *document) table() *table { return &table{doc: d, val: d.root} }

// find is the value of a key; nil when it is absent or cannot be read at all.
func (t *table) find(key string) *value {
	t.known = append(t.known, key)
	if t.val == nil {
		return nil
	}
	v := t.val.field(key)
	if v == nil {
		return nil
	}
	if v.kind == unstable.Invalid {
		return nil
	}
	t.doc.where[join(t.path, key)] = v.start
	return v
}

// has reports whether the file says anything about a key.
func (t *table) has(key string) bool { return t.val != nil && t.val.field(key) != nil }

// at is where the table stands, or would.
func (t *table) at() int {
	if t.val == nil {
		return t.doc.at(t.path)
	}
	return t.val.start
}

// read converts the value of a key, whose kind has to be one of kinds.
func read[T any](t *table, key string, def T, want string, kinds []unstable.Kind, convert func(*value) (T, *fault)) T {
	v := t.find(key)
	if v == nil {
		return def
	}
	if out, ok := convertAt(t.doc, join(t.path, key), v, want, kinds, convert); ok {
		return out
	}
	return def
}

// convertAt converts one value and reports what is wrong with it under a path.
func convertAt[T any](d *document, path string, v *value, want string, kinds []unstable.Kind, convert func(*value) (T, *fault)) (out T, ok bool) {
	if !slices.Contains(kinds, v.kind) {
		d.errorf(v.start, path, quotesRemedy(v.kind, kinds), "is %s, must be %s", kindName(v.kind), want)
		return out, false
	}
	out, bad := convert(v)
	if bad != nil {
		d.errorf(v.start, path, bad.remedy, "%s", bad.msg)
		return out, false
	}
	return out, true
}

// quotesRemedy is the remedy where only quotes are missing, or too many.
func quotesRemedy(is unstable.Kind, want []unstable.Kind) string {
	scalar := func(k unstable.Kind) bool { return k != unstable.Array && k != unstable.Table }
	switch {
	case slices.Contains(want, unstable.String) && scalar(is):
		return "write it in quotes"
	case is == unstable.String && slices.ContainsFunc(want, scalar):
		return "write it without quotes"
	}
	return ""
}

// kindName is what people call a kind of value.
func kindName(k unstable.Kind) string {
	switch k {
	case unstable.String:
		return "a string"
	case unstable.Bool:
		return "true or false"
	case unstable.Integer:
		return "a whole number"
	case unstable.Float:
		return "a number with a fraction"
	case unstable.Array:
		return "a list"
	case unstable.Table:
		return "a table"
	default:
		return "a date or time"
	}
}

var (
	stringKind = []unstable.Kind{unstable.String}
	boolKind   = []unstable.Kind{unstable.Bool}
	intKind    = []unstable.Kind{unstable.Integer}
	numberKind = []unstable.Kind{unstable.Integer, unstable.Float}
	exactKind  = []unstable.Kind{unstable.Integer, unstable.Float, unstable.String}
	arrayKind  = []unstable.Kind{unstable.Array}
	tableKind  = []unstable.Kind{unstable.Table}
)

// A check says what is wrong with a string, or gives it back as it is used.
type check func(string) (string, *fault)

// checked converts a string that has to pass all checks.
func checked(checks []check) func(*value) (string, *fault) {
	return func(v *value) (string, *fault) {
		s := v.text
		for _, c := range checks {
			var bad *fault
			if s, bad = c(s); bad != nil {
				return "", bad
			}
		}
		return s, nil
	}
}

// str reads a string. Checks do not see the default, nor an empty string where
// the default is empty: it says the same as leaving the key out.
func (t *table) str(key, def string, checks ...check) string {
	return read(t, key, def, "a string", stringKind, func(v *value) (string, *fault) {
		if v.text == "" && def == "" {
			return "", nil
		}
		return checked(checks)(v)
	})
}

// required reads a string that the file has to give.
func (t *table) required(key, remedy string, checks ...check) string {
	if !t.has(key) {
		t.missing(key, remedy)
	}
	return read(t, key, "", "a string", stringKind, checked(checks))
}

// missing reports a key that has to be there.
func (t *table) missing(key, remedy string) {
	t.known = append(t.known, key)
	t.doc.errorf(t.at(), join(t.path, key), remedy, "is missing")
}

// oneOf reads a string of a closed set, of which the first is the default. It may
// be named again.
func (t *table) oneOf(key string, options ...string) string {
	def := options[0]
	return t.str(key, def, func(s string) (string, *fault) {
		if slices.Contains(options, s) {
			return s, nil
		}
		slices.Sort(options)
		return "", faultf("must be one of: "+strings.Join(slices.Compact(options), ", "), "%.80q is not known", s)
	})
}

// boolean reads true or false.
func (t *table) boolean(key string, def bool) bool {
	return read(t, key, def, "true or false", boolKind, func(v *value) (bool, *fault) { return v.text == "true", nil })
}

// integer reads a whole number within bounds.
func (t *table) integer(key string, def, least, most int) int {
	return read(t, key, def, "a whole number", intKind, func(v *value) (int, *fault) {
		n, err := strconv.ParseInt(strings.ReplaceAll(v.text, "_", ""), 0, 64)
		if err != nil || n < int64(least) || n > int64(most) {
			return 0, faultf(fmt.Sprintf("from %d to %d", least, most), "%s is out of range", v.text)
		}
		return int(n), nil
	})
}

// millis reads a whole number of milliseconds within bounds.
func (t *table) millis(key string, def, least, most time.Duration) time.Duration {
	n := t.integer(key, int(def.Milliseconds()), int(least.Milliseconds()), int(most.Milliseconds()))
	return time.Duration(n) * time.Millisecond
}

// duration reads a string like "30s" or "1m30s" within bounds.
func (t *table) duration(key string, def, least, most time.Duration) time.Duration {
	return read(t, key, def, `a string like "30s"`, stringKind, func(v *value) (time.Duration, *fault) {
		d, err := time.ParseDuration(v.text)
		if err != nil {
			return 0, faultf(`write it like "30s", "3m" or "1h"`, "%q is not a duration", v.text)
		}
		if d < least || d > most {
			return 0, faultf(fmt.Sprintf("from %s to %s", least, most), "%s is out of range", v.text)
		}
		return d, nil
	})
}

// share reads a number from 0 to 1.
func (t *table) share(key string, def float64) float64 {
	return read(t, key, def, "a number", numberKind, func(v *value) (float64, *fault) {
		f, err := strconv.ParseFloat(strings.ReplaceAll(v.text, "_", ""), 64)
		if err != nil || !(f >= 0 && f <= 1) { // not a number is refused, too
			return 0, faultf("from 0.0 to 1.0", "%s is out of range", v.text)
		}
		return f, nil
	})
}

// cpm reads a price exactly, from the digits in the file.
func (t *table) cpm(key string) deckle.CPM {
	return read(t, key, 0, "a number", numberKind, func(v *value) (deckle.CPM, *fault) { return price(v) })
}

// price is a literal as a price of zero or more.
func price(v *value) (deckle.CPM, *fault) {
	p, err := deckle.ParseCPM(decimalText(v))
	if err != nil || p < 0 {
		return 0, faultf(fmt.Sprintf("a decimal number from 0 to %s", deckle.MaxCPM), "%.40s is not a price", v.text)
	}
	return p, nil
}

// decimalText is a literal without what only TOML allows in it: a plus sign and
// underscores.
func decimalText(v *value) string {
	return strings.ReplaceAll(strings.TrimPrefix(v.text, "+"), "_", "")
}

// factor is a number, or a string with one, above zero.
func factor(v *value) (*big.Rat, *fault) {
	r, err := deckle.ParseDecimal(decimalText(v))
	if err != nil || r.Sign() <= 0 || r.Cmp(maxFactor) > 0 {
		return nil, faultf("a decimal number above 0 and up to 1000000", "%.40q is not usable", v.text)
	}
	return r, nil
}

var maxFactor = big.NewRat(1e6, 1)

// strs reads a list of strings that all pass the checks.
func (t *table) strs(key string, def []string, checks ...check) []string {
	list := t.list(key)
	if list == nil {
		return def
	}
	out := make([]string, 0, len(list))
	for i, v := range list {
		if s, ok := convertAt(t.doc, t.elem(key, i, v), v, "a string", stringKind, checked(checks)); ok {
			out = append(out, s)
		}
	}
	return out
}

// once is a check that no two strings of a list are equal.
func once() check {
	seen := map[string]bool{}
	return func(s string) (string, *fault) {
		if seen[s] {
			return "", faultf("name each once", "%q is named twice", s)
		}
		seen[s] = true
		return s, nil
	}
}

// requiredStrs reads a list of at least one string.
func (t *table) requiredStrs(key, remedy string, checks ...check) []string {
	if !t.has(key) {
		t.missing(key, remedy)
		return nil
	}
	if v := t.val.field(key); v.kind == unstable.Array && len(v.elems) == 0 {
		t.doc.errorf(v.start, join(t.path, key), remedy, "is empty")
	}
	return t.strs(key, nil, checks...)
}

// list is the elements of a list; nil when the key is absent or no list.
func (t *table) list(key string) []*value {
	return read(t, key, nil, "a list", arrayKind, func(v *value) ([]*value, *fault) {
		return append([]*value{}, v.elems...), nil
	})
}

// elem is the path of an element, whose place is remembered.
func (t *table) elem(key string, i int, v *value) string {
	path := fmt.Sprintf("%s[%d]", join(t.path, key), i)
	t.doc.where[path] = v.start
	return path
}

// sub is a table below this one, present or not.
func (t *table) sub(key string) *table {
	v := read(t, key, nil, "a table", tableKind, func(v *value) (*value, *fault) { return v, nil })
	return &table{doc: t.doc, path: join(t.path, key), val: v}
}

// tables are the tables of a list ([[key]]).
func (t *table) tables(key string) []*table {
	var out []*table
	for i, v := range t.list(key) {
		path := t.elem(key, i, v)
		if v.kind != unstable.Table {
			t.doc.errorf(v.start, path, "", "is %s, must be a table", kindName(v.kind))
			continue
		}
		out = append(out, &table{doc: t.doc, path: path, val: v})
	}
	return out
}

// free calls each for every key of a table in which all keys are allowed.
func (t *table) free(each func(key string, v *value)) {
	if t.val == nil {
		return
	}
	for _, f := range t.val.fields {
		if v := t.find(f.name); v != nil {
			each(f.name, v)
		}
	}
}

// close reports the keys that nobody asked for.
func (t *table) close() {
	if t.val == nil {
		return
	}
	for _, f := range t.val.fields {
		if slices.Contains(t.known, f.name) {
			continue
		}
		remedy := "remove it"
		if near := nearest(f.name, t.known); near != "" {
			remedy = "did you mean " + near + "?"
		}
		t.doc.errorf(f.val.key, join(t.path, f.name), remedy, "is not a key here")
	}
}

// nearest is the known key that a misspelt one is most like, or "".
func nearest(key string, known []string) string {
	best, least := "", 1+len(key)/3
	for _, k := range known {
		if d := distance(key, k); d <= least && (best == "" || d < distance(key, best)) {
			best = k
		}
	}
	return best
}

// distance is the Levenshtein distance of two keys.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
