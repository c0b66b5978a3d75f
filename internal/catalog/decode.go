package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Limits of what is read.
const (
	MaxEntityBytes   = 256 << 10
	MaxDocumentBytes = 64 << 20
)

// Decode reads an entity as JSON: unknown fields, duplicate names, nulls and wrong
// types are problems, and all of them are named. What the values mean is judged by
// [Catalog.Put]. Its error is an [*InvalidError].
func Decode(k Kind, data []byte) (Entity, error) {
	e := newEntity(k)
	if e == nil {
		return nil, fmt.Errorf("decode %s: there is no such kind of entity", k)
	}
	return e, decode(data, e, MaxEntityBytes)
}

// decode reads data into the struct that into points to.
func decode(data []byte, into any, limit int) error {
	var p problems
	if value, ok := readWhole(data, limit, &p); ok {
		decoder{}.value(value, reflect.ValueOf(into).Elem(), &p)
	}
	return p.err()
}

// readWhole checks that data is one JSON value (RFC 8259, no name twice in an
// object, valid UTF-8).
func readWhole(data []byte, limit int, p *problems) (jsontext.Value, bool) {
	if len(data) > limit {
		p.add("", fmt.Sprintf("at most %d bytes", limit), "is too large: %d bytes", len(data))
		return nil, false
	}
	d := jsontext.NewDecoder(bytes.NewReader(data))
	value, err := d.ReadValue()
	if err == nil {
		value = value.Clone() // the decoder's until its next call
		if _, more := d.ReadToken(); more == io.EOF {
			return value, true
		}
		p.add("", "one JSON value", "has something after its end, at byte %d", d.InputOffset())
		return nil, false
	}
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		p.add(pointerPath(syntax.JSONPointer), "", "not JSON at byte %d: %v", syntax.ByteOffset, syntax.Err)
	} else {
		p.add("", "", "not JSON: %v", err)
	}
	return nil, false
}

// pointerPath writes a JSON Pointer as our paths: /pages/2/image → pages[2].image.
func pointerPath(pointer jsontext.Pointer) string {
	path := ""
	for token := range pointer.Tokens() {
		if token != "" && strings.Trim(token, "0123456789") == "" {
			path += "[" + token + "]"
		} else {
			path = join(path, token)
		}
	}
	return path
}

// A decoder reads values that are valid JSON into our types, and goes on after
// what it cannot read. It knows the fields of the structs that it has met, by their
// json names.
type decoder map[reflect.Type]map[string][]int

// value reads one value by the type of v: a struct, a map, a slice, a pointer to
// one, or a scalar.
func (d decoder) value(value jsontext.Value, v reflect.Value, p *problems) {
	switch {
	case value.Kind() == 'n':
		p.add("", "leave it out", "must not be null")
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(value, v.Elem(), p)
	case v.Kind() == reflect.Struct:
		d.object(value, v, p)
	case v.Kind() == reflect.Map:
		m := reflect.MakeMap(v.Type())
		members(value, p, func(name string, member jsontext.Value) {
			element := reflect.New(v.Type().Elem()).Elem()
			d.value(member, element, p.below(name))
			m.SetMapIndex(reflect.ValueOf(name), element)
		})
		v.Set(m)
	case v.Kind() == reflect.Slice:
		d.list(value, v, p)
	default:
		scalar(value, v, p)
	}
}

func (d decoder) object(value jsontext.Value, v reflect.Value, p *problems) {
	fields := d[v.Type()]
	if fields == nil {
		fields = fieldsOf(v.Type())
		d[v.Type()] = fields
	}
	members(value, p, func(name string, member jsontext.Value) {
		index, ok := fields[name]
		if !ok {
			p.add(name, "known are "+strings.Join(slices.Sorted(maps.Keys(fields)), ", "), "unknown field")
			return
		}
		d.value(member, v.FieldByIndex(index), p.below(name))
	})
}

func (d decoder) list(value jsontext.Value, v reflect.Value, p *problems) {
	if value.Kind() != '[' {
		p.add("", "", "must be a list")
		return
	}
	items := jsontext.NewDecoder(bytes.NewReader(value))
	_, err := items.ReadToken() // [
	list := reflect.MakeSlice(v.Type(), 0, 0)
	for i := 0; err == nil && items.PeekKind() != ']'; i++ {
		var item jsontext.Value
		if item, err = items.ReadValue(); err == nil {
			element := reflect.New(v.Type().Elem()).Elem()
			d.value(item, element, p.below(fmt.Sprintf("[%d]", i)))
			list = reflect.Append(list, element)
		}
	}
	v.Set(list)
}

// members calls yield for every member of an object. The member is valid until
// yield returns.
func members(value jsontext.Value, p *problems, yield func(name string, member jsontext.Value)) {
	if value.Kind() != '{' {
		p.add("", "", "must be an object")
		return
	}
	d := jsontext.NewDecoder(bytes.NewReader(value))
	_, err := d.ReadToken() // {
	for err == nil && d.PeekKind() == '"' {
		var name jsontext.Token
		if name, err = d.ReadToken(); err != nil {
			return
		}
		text := name.String() // the token is the decoder's until its next call
		var member jsontext.Value
		if member, err = d.ReadValue(); err == nil {
			yield(text, member)
		}
	}
}

func scalar(value jsontext.Value, v reflect.Value, p *problems) {
	if err := json.Unmarshal(value, v.Addr().Interface()); err == nil {
		return
	}
	want := "must be a whole number"
	switch v.Kind() {
	case reflect.String:
		want = "must be a text"
	case reflect.Bool:
		want = "must be true or false"
	case reflect.Float64:
		want = "must be a number"
	case reflect.Int64: // Money and CPM
		want = "must be a whole number of micros (2.50 is 2500000)"
	}
	p.add("", "", "%s, not %.40s", want, value)
}

// fieldsOf are the fields of a struct by their json names, with those of structs
// that are embedded in it.
func fieldsOf(t reflect.Type) map[string][]int {
	fields := map[string][]int{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			fields[name] = f.Index
		}
	}
	return fields
}
