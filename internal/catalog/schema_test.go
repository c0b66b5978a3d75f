package catalog_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"deckle/internal/catalog"
)

// A schema judges JSON by the part of JSON Schema 2020-12 that our schema uses. A
// keyword that it does not know fails the test.
type schema struct {
	defs map[string]any
}

func loadSchema(t testing.TB) (schema, map[string]any) {
	var root map[string]any
	if err := json.Unmarshal(catalog.CreativeSchema(), &root); err != nil {
		t.Fatal(err)
	}
	return schema{root["$defs"].(map[string]any)}, root
}

// valid reports whether a value (of encoding/json, numbers as float64) is valid.
func (s schema) valid(rule map[string]any, v any) bool {
	for keyword, arg := range rule {
		if !s.keyword(rule, keyword, arg, v) {
			return false
		}
	}
	return true
}

func (s schema) keyword(rule map[string]any, keyword string, arg, v any) bool {
	text, isText := v.(string)
	number, isNumber := v.(float64)
	list, isList := v.([]any)
	object, isObject := v.(map[string]any)
	switch keyword {
	case "$schema", "$id", "title", "description", "$defs":
		return true
	case "$ref":
		return s.valid(s.defs[strings.TrimPrefix(arg.(string), "#/$defs/")].(map[string]any), v)
	case "type":
		return map[string]bool{
			"string": isText, "number": isNumber, "integer": isNumber && number == float64(int64(number)), "array": isList, "object": isObject,
		}[arg.(string)]
	case "enum":
		return slices.Contains(arg.([]any), v)
	case "const":
		return arg == v
	case "anyOf":
		return slices.ContainsFunc(arg.([]any), func(r any) bool { return s.valid(r.(map[string]any), v) })
	case "pattern":
		return !isText || regexp.MustCompile(arg.(string)).MatchString(text)
	case "minLength":
		return !isText || utf8.RuneCountInString(text) >= int(arg.(float64))
	case "maxLength":
		return !isText || utf8.RuneCountInString(text) <= int(arg.(float64))
	case "minimum":
		return !isNumber || number >= arg.(float64)
	case "maximum":
		return !isNumber || number <= arg.(float64)
	case "minItems":
		return !isList || len(list) >= int(arg.(float64))
	case "maxItems":
		return !isList || len(list) <= int(arg.(float64))
	case "items":
		return !slices.ContainsFunc(list, func(item any) bool { return !s.valid(arg.(map[string]any), item) })
	case "required":
		return !isObject || !slices.ContainsFunc(arg.([]any), func(name any) bool { _, ok := object[name.(string)]; return !ok })
	case "properties":
		for name, r := range arg.(map[string]any) {
			if member, ok := object[name]; ok && !s.valid(r.(map[string]any), member) {
				return false
			}
		}
		return true
	case "additionalProperties":
		for name := range object {
			if _, ok := rule["properties"].(map[string]any)[name]; !ok {
				return arg.(bool)
			}
		}
		return true
	}
	panic("the schema has a keyword that the test does not know: " + keyword)
}

// formValid is what the validator says of a creative's form, in the world of the
// example, where it is otherwise in order.
func formValid(w *world, data []byte) (bool, error) {
	e, err := catalog.Decode(catalog.KindCreative, data)
	if err == nil {
		err = catalog.CheckCreativeForm(e.(*catalog.Creative))
	}
	if err != nil && !errors.Is(err, catalog.ErrInvalid) {
		w.Fatal(err)
	}
	return err == nil, err
}

func TestSchemaSaysWhatTheValidatorSays(t *testing.T) {
	s, root := loadSchema(t)
	w := newWorld(t, catalog.Config{})
	page := func(m members) members { return members{"pages": []any{merged(members{"headline": "a"}, m)}} }
	image := func(m members) members {
		return members{"pages": []any{members{"image": merged(members{"src": asset, "alt": "a"}, m)}}}
	}
	for _, test := range []struct {
		name string
		with members
		want bool
	}{
		{"as it is", nil, true},
		{"every field", members{
			"name": "Ryokan", "status": "paused", "version": 3, "shapes": []members{{"w": 300, "h": 250}}, "landingUrl": "https://a.example/b?c=d#e",
			"pages": []any{members{
				"headline": "a", "sub": "b", "body": "c\nd", "caption": "e", "tag": "f", "background": "#000000", "ink": "#ffffff", "accent": "#FF0000",
				"ctaLabel": "g", "layout": "split", "image": members{"src": asset, "alt": "h", "focus": members{"x": 0.5, "y": 1}},
			}},
		}, true},
		{"empty texts are as good as none", merged(page(members{"sub": "", "ink": "", "layout": ""}), members{"campaign": "", "landingUrl": "", "status": "", "name": ""}), true},
		{"id missing", members{"id": nil}, false},
		{"id", members{"id": "a/b"}, false},
		{"id of 65", members{"id": strings.Repeat("a", 65)}, false},
		{"campaign", members{"campaign": "a b"}, false},
		{"name of 120", members{"name": strings.Repeat("漢", 120)}, true},
		{"name of 121", members{"name": strings.Repeat("漢", 121)}, false},
		{"status", members{"status": "ended"}, false},
		{"version negative", members{"version": -1}, false},
		{"version text", members{"version": "1"}, false},
		{"version large", members{"version": 4294967296}, false},
		{"unknown", members{"html": "x"}, false},
		{"pages missing", members{"pages": nil}, false},
		{"no pages", members{"pages": []any{}}, false},
		{"12 pages", members{"pages": slices.Repeat([]any{members{"headline": "a"}}, 12)}, true},
		{"13 pages", members{"pages": slices.Repeat([]any{members{"headline": "a"}}, 13)}, false},
		{"pages no list", members{"pages": members{}}, false},
		{"empty page", members{"pages": []any{members{}}}, false},
		{"page with empty headline only", members{"pages": []any{members{"headline": ""}}}, false},
		{"page of a body", members{"pages": []any{members{"body": "a"}}}, true},
		{"page of an image", image(nil), true},
		{"page of a caption", members{"pages": []any{members{"caption": "a"}}}, false},
		{"headline of 121", page(members{"headline": strings.Repeat("a", 121)}), false},
		{"headline of two lines", page(members{"headline": "a\nb"}), false},
		{"sub of 201", page(members{"sub": strings.Repeat("a", 201)}), false},
		{"body of 2000", page(members{"body": strings.Repeat("é", 2000)}), true},
		{"body of 2001", page(members{"body": strings.Repeat("é", 2001)}), false},
		{"body with tab", page(members{"body": "a\tb"}), false},
		{"caption of 201", page(members{"caption": strings.Repeat("a", 201)}), false},
		{"tag of 41", page(members{"tag": strings.Repeat("a", 41)}), false},
		{"cta of 41", page(members{"ctaLabel": strings.Repeat("a", 41)}), false},
		{"delete character", page(members{"tag": "a\x7f"}), false},
		{"right-to-left override", page(members{"ctaLabel": "\u202emoc.live"}), false},
		{"line separator in a body", page(members{"body": "a\u2028b"}), false},
		{"zero width space", page(members{"headline": "a\u200bb"}), false},
		{"joiners and marks", page(members{"headline": "می\u200cخواهم 👩\u200d🌾\u200f!"}), true},
		{"colour", page(members{"ink": "#fff"}), false},
		{"accent", page(members{"accent": "red"}), false},
		{"background", page(members{"background": "url(x)"}), false},
		{"layout", page(members{"layout": "wide"}), false},
		{"unknown of a page", page(members{"video": "x"}), false},
		{"page no object", members{"pages": []any{"a"}}, false},
		{"src", image(members{"src": "https://a.example/a.png"}), false},
		{"src with dots", image(members{"src": "/_deckle/asset/../x"}), false},
		{"src upper case", image(members{"src": strings.ToUpper(asset)}), false},
		{"src missing", image(members{"src": nil}), false},
		{"alt missing", image(members{"alt": nil}), false},
		{"alt empty", image(members{"alt": ""}), false},
		{"alt of 301", image(members{"alt": strings.Repeat("a", 301)}), false},
		{"focus", image(members{"focus": members{"x": 0, "y": 0.25}}), true},
		{"focus of x", image(members{"focus": members{"x": 1}}), true},
		{"focus beyond", image(members{"focus": members{"x": 1.01, "y": 0}}), false},
		{"focus negative", image(members{"focus": members{"x": -0.1, "y": 0}}), false},
		{"focus text", image(members{"focus": "center"}), false},
		{"shape", members{"shapes": []members{{"w": 1, "h": 10000}}}, true},
		{"shape without height", members{"shapes": []members{{"w": 1}}}, false},
		{"shape of half a pixel", members{"shapes": []members{{"w": 1.5, "h": 1}}}, false},
		{"shape large", members{"shapes": []members{{"w": 10001, "h": 1}}}, false},
		{"50 shapes", members{"shapes": slices.Repeat([]members{{"w": 1, "h": 1}}, 50)}, true},
		{"51 shapes", members{"shapes": slices.Repeat([]members{{"w": 1, "h": 1}}, 51)}, false},
	} {
		checkForm(t, w, s, root, test.name, edit(t, formExample(), test.with), &test.want)
	}
	for _, landing := range []struct {
		url  string
		want bool
	}{
		{"https://a.example", true},
		{"http://a.example:8080/", true},
		{"https://xn--e1afmkfd.example/%D0%BF?q=%20&r=[1]#x", true},
		{"https://a.example/путь", true},
		{"https://localhost:1/", true},
		{"https://127.0.0.1/", true},
		{"HTTPS://a.example/", false},
		{"ftp://a.example/", false},
		{"javascript:alert(1)", false},
		{"//a.example/", false},
		{"https:/a.example", false},
		{"https://", false},
		{"https://-a.example/", false},
		{"https://a.example:99999999/", false},
		{"https://user@a.example/", false},
		{"https://a.example\\@b.example/", false},
		{"https://[::1]/", false},
		{"https://пример.example/", false},
		{"https://a.example/a b", false},
		{"https://a.example/\"", false},
		{"https://a.example/<", false},
		{"https://a.example/%zz", false},
		{"https://a.example/\n", false},
		{"https://a.example/\u0085", false},
		{"https://a.example/\u00a0", false},
		{"https://a.example/\u2028", false},
		{"https://a.example/\u202e", false},
		{"https://a.example/\ufeff", false},
		{"https://a.example/" + strings.Repeat("a", 2048-18), true},
		{"https://a.example/" + strings.Repeat("a", 2049-18), false},
	} {
		checkForm(t, w, s, root, landing.url, edit(t, formExample(), members{"landingUrl": landing.url}), &landing.want)
	}
}

func formExample() *catalog.Creative {
	return &catalog.Creative{ID: "ryokan", Content: catalog.Content{Pages: []catalog.Page{{Headline: "A quiet room"}}}}
}

func merged(a, b members) members {
	out := maps.Clone(a)
	for name, v := range b {
		if out[name] = v; v == nil {
			delete(out, name)
		}
	}
	return out
}

// fataler is a testing.T or a rapid.T.
type fataler interface {
	Errorf(format string, args ...any)
}

// checkForm compares the schema with the validator; and both with want, if there is
// one.
func checkForm(t fataler, w *world, s schema, root map[string]any, name string, data []byte, want *bool) {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	bySchema := s.valid(root, v)
	byValidator, err := formValid(w, data)
	if bySchema != byValidator {
		t.Errorf("%s: valid by schema %v, by validator %v (%v): %s", name, bySchema, byValidator, err, data)
	}
	if want != nil && bySchema != *want {
		t.Errorf("%s: valid %v, want %v (%v)", name, bySchema, *want, err)
	}
}

// Creatives that nobody has thought of.
func TestSchemaAndValidatorAgree(t *testing.T) {
	s, root := loadSchema(t)
	w := newWorld(t, catalog.Config{})
	text := rapid.OneOf(
		rapid.StringN(0, 50, 300), rapid.SampledFrom([]string{"", "a", "#12ab9F", "https://a.example/x", asset, "active", "split", "a\nb", "\x00"}),
		rapid.Map(rapid.IntRange(30, 2100), func(n int) string { return strings.Repeat("x", n) }),
	)
	number := rapid.OneOf(rapid.SampledFrom([]any{0, 1, -1, 0.5, 300, 10000, 10001}), rapid.Map(text, func(s string) any { return s }))
	object := func(t *rapid.T, label string, fields map[string]func() any) members {
		out := members{}
		for _, name := range sortedKeys(fields) {
			if rapid.IntRange(0, 3).Draw(t, label+name) > 0 {
				out[name] = fields[name]()
			}
		}
		return out
	}
	rapid.Check(t, func(t *rapid.T) {
		draw := func() any { return text.Draw(t, "text") }
		num := func() any { return number.Draw(t, "number") }
		page := func() any {
			return object(t, "page ", map[string]func() any{
				"headline": draw, "sub": draw, "body": draw, "caption": draw, "tag": draw, "background": draw, "ink": draw, "ctaLabel": draw, "layout": draw,
				"image": func() any {
					return object(t, "image ", map[string]func() any{"src": draw, "alt": draw, "focus": func() any {
						return object(t, "focus ", map[string]func() any{"x": num, "y": num})
					}})
				},
			})
		}
		creative := object(t, "", map[string]func() any{
			"id": draw, "name": draw, "campaign": draw, "status": draw, "landingUrl": draw,
			"shapes": func() any { return []any{object(t, "shape ", map[string]func() any{"w": num, "h": num})} },
		})
		var pages []any
		for range rapid.IntRange(0, 13).Draw(t, "pages") {
			pages = append(pages, page())
		}
		creative["pages"] = pages
		if pages == nil {
			creative["pages"] = []any{}
		}
		data, err := json.Marshal(creative)
		if err != nil {
			t.Fatal(err)
		}
		checkForm(t, w, s, root, fmt.Sprint(len(pages), " pages"), data, nil)
	})
}
