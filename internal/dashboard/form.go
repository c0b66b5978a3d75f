package dashboard

import (
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"deckle"
	"deckle/internal/catalog"
)

// A form shows an entity as fields that are called as its JSON is, so that what the
// catalog says is wrong finds its field. Between the two stands url.Values: what a
// browser posts, and what a form is filled from.

// A group is a fieldset.
type group struct {
	Legend string
	Help   string
	Fields []field
	// Buttons act on the group, each by a value of "action".
	Buttons []button
}

type button struct{ Action, Label string }

// A field is one control of a form with what is entered in it.
type field struct {
	Name     string
	Label    string
	Kind     string // text, number, area, select, check, checks, file, picture, colour, fixed
	Value    string
	Options  []option
	Help     string
	Unit     string // of a number: the currency
	Range    string // of an amount, for people: the catalog speaks of micros
	Error    string
	Note     string // of a colour: what becomes of it
	Optional bool
	Width    string // "" = half, "narrow" = a third, "full"
	Minor    bool   // behind "More", which is open where something is to be said of it
}

// Major are the fields that are always seen.
func (g group) Major() []field { return g.only(func(f field) bool { return !f.Minor }) }

// Minor are those behind "More".
func (g group) Minor() []field { return g.only(func(f field) bool { return f.Minor }) }

func (g group) only(keep func(field) bool) (fields []field) {
	for _, f := range g.Fields {
		if keep(f) {
			fields = append(fields, f)
		}
	}
	return fields
}

// Open reports whether "More" is open.
func (g group) Open() bool {
	return slices.ContainsFunc(g.Fields, func(f field) bool { return f.Minor && (f.Error != "" || f.Note != "") })
}

// Thumbnail is the picture that a field names, if it is one of ours.
func (f field) Thumbnail() string {
	if f.Kind == "picture" && strings.HasPrefix(f.Value, catalog.AssetPath) {
		return f.Value
	}
	return ""
}

// ID is that of the control in the document.
func (f field) ID() string {
	return "f-" + strings.NewReplacer(".", "-", "[", "-", "]", "").Replace(f.Name)
}

// Describe lists the ids of what describes the control.
func (f field) Describe() string {
	var ids []string
	if f.Error != "" {
		ids = append(ids, f.ID()+"-error")
	}
	if f.Kind == "colour" {
		ids = append(ids, f.ID()+"-note")
	}
	if f.Help != "" {
		ids = append(ids, f.ID()+"-help")
	}
	return strings.Join(ids, " ")
}

type option struct {
	Value, Label string
	Chosen       bool
}

// fill puts posted values and what is wrong with them into fields. What belongs to
// no field is returned.
func fill(groups []group, values url.Values, problems []catalog.Problem) (rest []catalog.Problem) {
	taken := make([]bool, len(problems))
	for g := range groups {
		for i := range groups[g].Fields {
			f := &groups[g].Fields[i]
			f.take(values)
			for j, p := range problems {
				if !taken[j] && within(p.Field, f.Name) {
					taken[j] = true
					f.Error = strings.TrimPrefix(f.Error+"; "+f.explain(p), "; ")
				}
			}
		}
	}
	for j, p := range problems {
		if !taken[j] {
			rest = append(rest, p)
		}
	}
	return rest
}

// take fills a control.
func (f *field) take(values url.Values) {
	chosen := values[f.Name]
	if f.Kind != "checks" && f.Kind != "select" && f.Kind != "file" {
		f.Value = values.Get(f.Name)
		return
	}
	for i := range f.Options {
		f.Options[i].Chosen = slices.Contains(chosen, f.Options[i].Value)
	}
	for _, value := range chosen { // what is there stays visible, also where it should not be
		known := slices.ContainsFunc(f.Options, func(o option) bool { return o.Value == value })
		if !known && value != "" {
			f.Options = append(f.Options, option{Value: value, Label: value, Chosen: true})
		}
	}
}

// within reports whether a problem of path is shown at the field called name: it is
// of the field itself, of something in it, or of what the field is a part of.
func within(path, name string) bool {
	return path == name || strings.HasPrefix(path, name+".") || strings.HasPrefix(path, name+"[") ||
		path != "" && (strings.HasPrefix(name, path+".") || strings.HasPrefix(name, path+"["))
}

// explain is what is wrong, and the remedy after it, in the words of a form.
func (f *field) explain(p catalog.Problem) string {
	remedy := p.Remedy
	if f.Range != "" && remedy != "" {
		remedy = f.Range
	}
	chosen := slices.ContainsFunc(f.Options, func(o option) bool { return o.Chosen && o.Value != "" })
	switch {
	case f.Kind != "check" && f.Kind != "file" && f.Value == "" && !chosen && !f.Optional:
		if len(f.Options) > 0 {
			return "Choose something here."
		}
		return strings.TrimSuffix("This is needed: "+remedy, ": ")
	case remedy == "":
		return p.Msg
	case f.Range != "":
		return "Write " + remedy
	}
	return p.Msg + ": " + remedy
}

// A reader reads posted values, and collects what cannot be read.
type reader struct {
	values   url.Values
	problems []catalog.Problem
}

func (r *reader) text(name string) string { return strings.TrimSpace(r.values.Get(name)) }

func (r *reader) bad(name, format string, args ...any) {
	r.problems = append(r.problems, catalog.Problem{Field: name, Msg: fmt.Sprintf(format, args...)})
}

// lines are the entries of a list: one a line, or with commas between them.
func (r *reader) lines(name string) []string {
	return strings.FieldsFunc(strings.Join(r.values[name], "\n"), func(c rune) bool { return c == '\n' || c == '\r' || c == ',' || c == ' ' || c == '\t' })
}

// micros reads an amount of money as people write it.
func (r *reader) micros(name string) int64 {
	text := r.text(name)
	if text == "" {
		return 0
	}
	micros, err := parseAmount(text)
	if err != nil {
		r.bad(name, "%v", err)
	}
	return micros
}

// parseAmount reads "2500", "2,500.50" or "2500.5" as micros. A comma only ever
// stands before three digits, so that "2,50" is not read as 250.
func parseAmount(text string) (int64, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	if groups := strings.Split(whole, ","); len(groups) > 1 {
		for i, g := range groups {
			if i > 0 && len(g) != 3 || len(g) > 3 || g == "" {
				return 0, fmt.Errorf("%.40q is not an amount: write 2500.50", text)
			}
		}
		whole = strings.Join(groups, "")
	}
	if strings.ContainsAny(whole+fraction, "eE") {
		return 0, fmt.Errorf("%.40q is not an amount: write 2500.50", text)
	}
	if strings.Contains(text, ".") {
		whole += "." + fraction
	}
	n, err := deckle.ParseDecimal(whole)
	if err != nil {
		return 0, fmt.Errorf("%.40q is not an amount: write 2500.50", text)
	}
	n.Mul(n, big.NewRat(1e6, 1))
	if !n.IsInt() || !n.Num().IsInt64() {
		return 0, fmt.Errorf("%.40q is too large, or has more than six decimals", text)
	}
	return n.Num().Int64(), nil
}

// plainAmount is the opposite: without separators, for a field.
func plainAmount(micros int64) string {
	if micros == 0 {
		return ""
	}
	return deckle.CPM(micros).String()
}

func (r *reader) whole(name string) int {
	text := r.text(name)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		r.bad(name, "%.40q is not a whole number", text)
	}
	return n
}

func (r *reader) decimal(name string) float64 {
	text := r.text(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n != n || n > 1e12 || n < -1e12 {
		r.bad(name, "%.40q is not a number", text)
		return 0
	}
	return n
}

// pairs reads lines of "key = amount".
func (r *reader) pairs(name string) map[string]deckle.CPM {
	var out map[string]deckle.CPM
	for line := range strings.Lines(r.values.Get(name)) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		key, text, found := strings.Cut(line, "=")
		key = strings.TrimSpace(key)
		micros, err := parseAmount(strings.TrimSpace(text))
		switch _, twice := out[key]; {
		case !found || key == "":
			r.bad(name, "%.60q is not of the form ID = amount", line)
		case err != nil:
			r.bad(name, "%s: %v", key, err)
		case twice:
			r.bad(name, "%s stands there twice", key)
		default:
			if out == nil {
				out = map[string]deckle.CPM{}
			}
			out[key] = deckle.CPM(micros)
		}
	}
	return out
}

func formatPairs(m map[string]deckle.CPM) string {
	var lines []string
	for key, p := range m {
		lines = append(lines, key+" = "+p.String())
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// rules reads lines of "path = category, category".
func (r *reader) rules(name string) (rules []catalog.CategoryRule) {
	for line := range strings.Lines(r.values.Get(name)) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		i := strings.LastIndexByte(line, '=') // a path may have one
		if i < 0 {
			r.bad(name, "%.60q is not of the form PATH = CATEGORY", line)
			continue
		}
		rule := catalog.CategoryRule{Path: strings.TrimSpace(line[:i])}
		for c := range strings.SplitSeq(line[i+1:], ",") {
			if c = strings.TrimSpace(c); c != "" {
				rule.Categories = append(rule.Categories, c)
			}
		}
		rules = append(rules, rule)
	}
	return rules
}

func formatRules(rules []catalog.CategoryRule) string {
	var lines []string
	for _, r := range rules {
		lines = append(lines, r.Path+" = "+strings.Join(r.Categories, ", "))
	}
	return strings.Join(lines, "\n")
}

// shapes reads "300x250" entries.
func (r *reader) shapes(name string) (shapes []catalog.Shape) {
	for _, text := range r.lines(name) {
		w, h, found := strings.Cut(strings.ReplaceAll(strings.ToLower(text), "×", "x"), "x")
		width, errW := strconv.Atoi(w)
		height, errH := strconv.Atoi(h)
		if !found || errW != nil || errH != nil {
			r.bad(name, "%.40q is not a size: write 300x250", text)
			continue
		}
		shapes = append(shapes, catalog.Shape{W: width, H: height})
	}
	return shapes
}

func formatShapes(shapes []catalog.Shape) string {
	var out []string
	for _, s := range shapes {
		out = append(out, fmt.Sprintf("%dx%d", s.W, s.H))
	}
	return strings.Join(out, ", ")
}
