package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
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
	value, ok := readWhole(data, limit, &p)
	if ok {
		decodeValue(value, reflect.ValueOf(into).Elem(), &p)
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

// decodeValue reads one value by the type of v: structs by the json names of their
// fields, maps, slices, pointers, and scalars.
func decodeValue(value jsontext.Value, v reflect.Value, p *problems) {
	switch {
	case value.Kind() == 'n':
		p.add("", "leave it out", "must not be null")
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		decodeValue(value, v.Elem(), p)
	case v.Kind() == reflect.Struct:
		decodeObject(value, p, func(name string) (reflect.Value, bool) {
			field, ok := fieldOf(v.Type(), name)
			if !ok {
				return reflect.Value{}, false
			}
			return v.FieldByIndex(field), true
		}, fieldNames(v.Type()))
	case v.Kind() == reflect.Map:
		m := reflect.MakeMap(v.Type())
		decodeObjectInto(value, m, p)
		v.Set(m)
	case v.Kind() == reflect.Slice:
		decodeArray(value, v, p)
	default:
		decodeScalar(value, v, p)
	}
}

// decodeObject reads the members of an object into what field gives for their
// names.
func decodeObject(value jsontext.Value, p *problems, field func(name string) (reflect.Value, bool), known []string) {
	members(value, p, func(name string, member jsontext.Value) {
		v, ok := field(name)
		if !ok {
			p.add(name, "known are "+strings.Join(known, ", "), "unknown field")
			return
		}
		decodeValue(member, v, p.below(name))
	})
}

func decodeObjectInto(value jsontext.Value, m reflect.Value, p *problems) {
	members(value, p, func(name string, member jsontext.Value) {
		v := reflect.New(m.Type().Elem()).Elem()
		decodeValue(member, v, p.below(name))
		m.SetMapIndex(reflect.ValueOf(name), v)
	})
}

// members calls yield for every member of an object that is valid JSON.
func members(value jsontext.Value, p *problems, yield func(name string, member jsontext.Value)) {
	if value.Kind() != '{' {
		p.add("", "", "must be an object")
		return
	}
	d := jsontext.NewDecoder(bytes.NewReader(value))
	d.ReadToken() // {
	for d.PeekKind() == '"' {
		token, err := d.ReadToken()
		if err != nil {
			return
		}
		name := token.String()
		member, err := d.ReadValue()
		if err != nil {
			return
		}
		yield(name, member.Clone())
	}
}

func decodeArray(value jsontext.Value, v reflect.Value, p *problems) {
	if value.Kind() != '[' {
		p.add("", "", "must be a list")
		return
	}
	d := jsontext.NewDecoder(bytes.NewReader(value))
	d.ReadToken() // [
	list := reflect.MakeSlice(v.Type(), 0, 0)
	for i := 0; d.PeekKind() != ']'; i++ {
		item, err := d.ReadValue()
		if err != nil {
			return
		}
		element := reflect.New(v.Type().Elem()).Elem()
		decodeValue(item.Clone(), element, p.below(fmt.Sprintf("[%d]", i)))
		list = reflect.Append(list, element)
	}
	v.Set(list)
}

func decodeScalar(value jsontext.Value, v reflect.Value, p *problems) {
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

// fieldOf finds the field of a struct with a json name, also within an embedded
// struct.
func fieldOf(t reflect.Type, name string) ([]int, bool) {
	for _, f := range reflect.VisibleFields(t) {
		if !f.Anonymous && jsonName(f) == name {
			return f.Index, true
		}
	}
	return nil, false
}

func fieldNames(t reflect.Type) []string {
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		if !f.Anonymous {
			names = append(names, jsonName(f))
		}
	}
	slices.Sort(names)
	return names
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
