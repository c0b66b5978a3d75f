package config

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// A document is a TOML file as a tree that remembers where everything stands. A
// decoder into structs would stop at the first value of a wrong type; the tree
// lets every fault be told at once. It collects the problems of its file.
type document struct {
	file     string
	data     []byte
	lines    []int // offsets of the starts of lines
	root     *value
	where    map[string]int // path → offset of what has been read there
	problems Problems
	invalid  bool // whether an error is among them
}

// A value is a TOML value and its place.
type value struct {
	// kind is String, Integer, Float, Bool, a date or time, Array, or Table
	// (inline ones too). Invalid: there is a value, which cannot be read and has
	// been reported.
	kind unstable.Kind

	text   string   // what a string means; the literal of any other scalar
	start  int      // offset of the value; of a table's header
	key    int      // offset of its key
	elems  []*value // of an Array
	fields []field  // of a Table, in file order

	// header: this table has its own [header], or this array grows by [[header]].
	header bool
	// closed: written in one piece ({…}, […]); nothing may be added below.
	closed bool

	path string // of a Table: its dotted key
}

// A field is a key of a table with its value.
type field struct {
	name string
	val  *value
}

// field is the value of a key, or nil.
func (v *value) field(name string) *value {
	for _, f := range v.fields {
		if f.name == name {
			return f.val
		}
	}
	return nil
}

// isEmptyString reports whether v is "".
func (v *value) isEmptyString() bool { return v.kind == unstable.String && v.text == "" }

// parseDocument reads TOML. It reports faults of syntax into the document's
// problems and leaves out what it cannot read. complete is false when the rest
// of the file could not be read: then what seems missing may be there.
func parseDocument(file string, data []byte) (d *document, complete bool) {
	data = slices.Clip(bytes.TrimPrefix(data, []byte("\ufeff"))) // Windows editors; the parser finds offsets by capacity
	d = &document{
		file:  file,
		data:  data,
		lines: []int{0},
		root:  &value{kind: unstable.Table, header: true},
		where: map[string]int{},
	}
	for i, c := range data {
		if c == '\n' {
			d.lines = append(d.lines, i+1)
		}
	}
	complete = d.build()
	if len(d.problems) == 0 {
		d.checkSpec()
	}
	return d, complete
}

// checkSpec lets the whole library judge the file: the parser alone leaves the
// ranges of numbers and dates and some redefinitions of tables unchecked.
func (d *document) checkSpec() {
	var whole map[string]any
	err := toml.Unmarshal(d.data, &whole)
	if err == nil {
		return
	}
	if e, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, column := e.Position()
		d.errorf(d.offset(line, column), strings.Join(e.Key(), "."), "", "%s", strings.TrimPrefix(e.Error(), "toml: "))
		return
	}
	d.errorf(0, "", "", "%v", err)
}

// build makes the tree. It goes on after a line that is no `key = value`, so
// that one forgotten quote does not hide what else is wrong.
func (d *document) build() (complete bool) {
	b := builder{doc: d, cur: d.root}
	for next := 0; ; {
		b.base = next
		b.parser.Reset(d.data[next:])
		end := next
		for b.parser.NextExpression() {
			end = b.expression(b.parser.Expression())
		}
		err := b.parser.Error()
		if err == nil {
			return true
		}
		if next = b.recoverFrom(err, end); next < 0 {
			return false
		}
	}
}

// A builder turns the parser's expressions into a document's tree.
type builder struct {
	doc    *document
	parser unstable.Parser
	base   int    // offset of what the parser reads
	cur    *value // the table of the last header
}

// recoverFrom reports a fault of syntax in the expression that follows offset
// end. If that is a `key = value` of one line, the key is kept without a value
// and the offset of the next line is returned; else −1.
func (b *builder) recoverFrom(err error, end int) int {
	d := b.doc
	at, msg := len(d.data), err.Error()
	if e, ok := errors.AsType[*unstable.ParserError](err); ok {
		at = b.base + int(b.parser.Range(e.Highlight).Offset)
	}
	start := d.skipTrivia(end, "")
	line := d.lineEnd(start)
	name, _, found := bytes.Cut(d.data[start:line], []byte("="))
	key := strings.TrimSpace(string(name))
	if !found || !isBare(key) || at > line {
		d.errorf(at, "", "what follows could not be read", "%s", msg)
		return -1
	}
	remedy := ""
	if strings.HasPrefix(msg, "unexpected character") {
		remedy = "strings stand in quotes"
	}
	d.errorf(at, join(b.cur.path, key), remedy, "%s", msg)
	if b.cur.field(key) == nil {
		b.cur.fields = append(b.cur.fields, field{key, &value{start: start, key: start}})
	}
	return min(line+1, len(d.data))
}

// expression adds one `key = value` or header and returns its end.
func (b *builder) expression(n *unstable.Node) (end int) {
	if n.Kind == unstable.KeyValue {
		return b.keyValue(b.cur, n)
	}
	keys, end := b.keys(n.Key())
	b.cur = b.open(keys, n.Kind == unstable.ArrayTable)
	return b.doc.lineEnd(end)
}

// A keyPart is one part of a dotted key.
type keyPart struct {
	name  string
	start int
}

func (b *builder) keys(it unstable.Iterator) (parts []keyPart, end int) {
	for it.Next() {
		r := it.Node().Raw
		start := b.base + int(r.Offset)
		parts = append(parts, keyPart{string(it.Node().Data), start})
		end = start + int(r.Length)
	}
	return parts, end
}

// open goes to the table of a [header] or starts one for a [[header]].
func (b *builder) open(keys []keyPart, array bool) *value {
	last := keys[len(keys)-1]
	parent := b.descend(b.doc.root, keys[:len(keys)-1])
	v := parent.field(last.name)
	path := join(parent.path, last.name)
	start := b.doc.lineStart(keys[0].start) // of the bracket: no more than white space stands before it
	fresh := &value{kind: unstable.Table, start: start, key: last.start, header: true, path: path}
	if array {
		fresh.path = path + "[0]"
	}
	switch {
	case v == nil && array:
		list := &value{kind: unstable.Array, start: last.start, key: last.start, header: true, elems: []*value{fresh}}
		parent.fields = append(parent.fields, field{last.name, list})
		return fresh
	case v == nil:
		parent.fields = append(parent.fields, field{last.name, fresh})
		return fresh
	case array && v.kind == unstable.Array && v.header:
		fresh.path = fmt.Sprintf("%s[%d]", path, len(v.elems))
		v.elems = append(v.elems, fresh)
		return fresh
	case !array && v.kind == unstable.Table && !v.header && !v.closed:
		v.header, v.start = true, start
		return v
	}
	b.duplicate(parent, last, v)
	return fresh // read, but part of nothing
}

// descend goes down dotted keys from a table, making tables that are not there.
func (b *builder) descend(v *value, keys []keyPart) *value {
	for _, k := range keys {
		next := v.field(k.name)
		switch {
		case next == nil:
			next = &value{kind: unstable.Table, start: k.start, key: k.start, path: join(v.path, k.name)}
			v.fields = append(v.fields, field{k.name, next})
		case next.kind == unstable.Array && next.header:
			next = next.elems[len(next.elems)-1] // a header below [[…]] means its last table
		case next.kind != unstable.Table || next.closed:
			b.duplicate(v, k, next)
			return &value{kind: unstable.Table, start: k.start, key: k.start, path: join(v.path, k.name)}
		}
		v = next
	}
	return v
}

// duplicate reports a key of a table that has a value already.
func (b *builder) duplicate(of *value, k keyPart, first *value) {
	line, _ := b.doc.position(first.key)
	b.doc.errorf(k.start, join(of.path, k.name), "keep one of the two", "is set already, on line %d", line)
}

// keyValue adds `key = value` to a table and returns its end.
func (b *builder) keyValue(to *value, n *unstable.Node) (end int) {
	keys, end := b.keys(n.Key())
	last := keys[len(keys)-1]
	v, end := b.value(n.Value(), b.doc.skipTrivia(end, "="))
	v.key = last.start
	to = b.descend(to, keys[:len(keys)-1])
	if first := to.field(last.name); first != nil {
		b.duplicate(to, last, first)
		return end
	}
	to.fields = append(to.fields, field{last.name, v})
	return end
}

// value converts a value that starts at an offset (the parser keeps no place for
// arrays) and returns its end.
func (b *builder) value(n *unstable.Node, start int) (v *value, end int) {
	v = &value{kind: n.Kind, start: start, key: start}
	switch n.Kind {
	case unstable.Array, unstable.InlineTable:
		end = start + 1
		for it := n.Children(); it.Next(); {
			end = b.doc.skipTrivia(end, ",")
			if n.Kind == unstable.InlineTable {
				end = b.keyValue(v, it.Node())
				continue
			}
			var elem *value
			elem, end = b.value(it.Node(), end)
			v.elems = append(v.elems, elem)
		}
		if n.Kind == unstable.InlineTable {
			v.kind = unstable.Table
		}
		v.closed = true
		return v, b.doc.skipTrivia(end, ",") + 1
	default:
		v.text = string(n.Data)
		return v, b.base + int(n.Raw.Offset+n.Raw.Length)
	}
}

// skipTrivia goes over white space, comments and one separator.
func (d *document) skipTrivia(at int, separator string) int {
	for at < len(d.data) {
		switch c := d.data[at]; {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			at++
		case c == '#':
			at = d.lineEnd(at)
		case string(c) == separator:
			at, separator = at+1, ""
		default:
			return at
		}
	}
	return at
}

// lineEnd is the offset of the newline that ends the line of an offset.
func (d *document) lineEnd(at int) int {
	if i := bytes.IndexByte(d.data[min(at, len(d.data)):], '\n'); i >= 0 {
		return at + i
	}
	return len(d.data)
}

// lineStart is the offset of the first character that is no white space in the
// line of an offset.
func (d *document) lineStart(at int) int {
	line, _ := d.position(at)
	start := d.lines[line-1]
	for start < at && (d.data[start] == ' ' || d.data[start] == '\t') {
		start++
	}
	return start
}

// position is the line and column of an offset, both from 1; columns are bytes.
func (d *document) position(at int) (line, column int) {
	line = sort.SearchInts(d.lines, at+1)
	return line, at - d.lines[line-1] + 1
}

// offset is the reverse of position.
func (d *document) offset(line, column int) int {
	return d.lines[max(1, min(line, len(d.lines)))-1] + max(column, 1) - 1
}

// excerpt is the line of an offset with a caret below it.
func (d *document) excerpt(at int) string {
	const maxBytes = 120 // a longer line would bury the caret
	line, column := d.position(at)
	text := strings.TrimRight(string(d.data[d.lines[line-1]:d.lineEnd(at)]), "\r")
	if len(text) > maxBytes || strings.TrimSpace(text) == "" {
		return ""
	}
	indent := strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, text[:min(column-1, len(text))])
	return fmt.Sprintf("    %s\n    %s^", strings.ToValidUTF8(text, "?"), indent)
}

// maxProblems bounds what is said of one file. Nobody reads more.
const maxProblems = 1000

// report adds a problem. Beyond the bound it may be left out, but never the only
// error: a file is invalid because of its errors.
func (d *document) report(s Severity, at int, key, msg, remedy string) {
	if len(d.problems) >= maxProblems && (s != Error || d.invalid) {
		return
	}
	d.invalid = d.invalid || s == Error
	line, column := d.position(at)
	d.problems = append(d.problems, Problem{
		Severity: s, File: d.file, Line: line, Column: column,
		Key: key, Msg: msg, Remedy: remedy, Excerpt: d.excerpt(at),
	})
}

// errorf reports an error at an offset.
func (d *document) errorf(at int, key, remedy, format string, args ...any) {
	d.report(Error, at, key, fmt.Sprintf(format, args...), remedy)
}

// warnf reports a warning at an offset.
func (d *document) warnf(at int, key, remedy, format string, args ...any) {
	d.report(Warning, at, key, fmt.Sprintf(format, args...), remedy)
}

// notef reports a note at an offset.
func (d *document) notef(at int, key, format string, args ...any) {
	d.report(Note, at, key, fmt.Sprintf(format, args...), "")
}

// faulty reports whether there is an error about a path.
func (d *document) faulty(path string) bool {
	return slices.ContainsFunc(d.problems, func(p Problem) bool { return p.Key == path && p.Severity == Error })
}

// given reports whether the file has a value at a path that could be used.
func (d *document) given(path string) bool {
	_, ok := d.where[path]
	return ok && !d.faulty(path)
}

// at is the offset of what has been read under a path, or of the nearest table
// around it.
func (d *document) at(path string) int {
	for {
		if at, ok := d.where[path]; ok {
			return at
		}
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			return 0
		}
		path = path[:i]
	}
}

// join is the path of a key in a table, of which TOML's own quoting is kept.
func join(path, key string) string {
	if !isBare(key) {
		key = strconv.Quote(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// isBare reports whether a key needs no quotes.
func isBare(key string) bool {
	return key != "" && strings.Trim(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}
