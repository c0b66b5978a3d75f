package dashboard_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// A description is the OpenAPI document, as tests judge answers by it.
type description struct {
	t    testing.TB
	root map[string]any
}

func describe(t testing.TB, w *world) *description {
	t.Helper()
	d := &description{t: t}
	if err := json.Unmarshal([]byte(w.ask("GET", "/api/v1/openapi.json", "").body), &d.root); err != nil {
		t.Fatal(err)
	}
	return d
}

// at follows names down from the root.
func (d *description) at(names ...string) any {
	var v any = d.root
	for _, n := range names {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[n]
	}
	return v
}

// operation is what is said of a method of a path as it was asked for.
func (d *description) operation(method, path string) map[string]any {
	for template, methods := range d.at("paths").(map[string]any) {
		pattern := "^" + regexp.MustCompile(`\{\w+\}`).ReplaceAllString(regexp.QuoteMeta(template), `[^/]+`) + "$"
		pattern = strings.NewReplacer(`\{id\}`, `[^/]+`, `\{site\}`, `[^/]+`, `\{creative\}`, `[^/]+`).Replace(pattern)
		if ok, _ := regexp.MatchString(pattern, path); ok {
			op, _ := methods.(map[string]any)[strings.ToLower(method)].(map[string]any)
			return op
		}
	}
	return nil
}

// judge says in what an answer differs from what is described.
func (d *description) judge(method, path string, a *answer) error {
	op := d.operation(method, path)
	if op == nil {
		return d.judgeProblem(a) // an answer to what there is not
	}
	responses := op["responses"].(map[string]any)
	r, ok := responses[fmt.Sprint(a.StatusCode)].(map[string]any)
	if !ok {
		return fmt.Errorf("status %d is not described", a.StatusCode)
	}
	r = d.resolve(r)
	for name := range asMap(r["headers"]) {
		if a.Header.Get(name) == "" {
			return fmt.Errorf("header %s is described, and not there", name)
		}
	}
	content := asMap(r["content"])
	if len(content) == 0 {
		if a.body != "" {
			return fmt.Errorf("a body that is not described: %.80q", a.body)
		}
		return nil
	}
	media := a.Header.Get("Content-Type")
	described, ok := content[media].(map[string]any)
	if !ok {
		if _, image := content["image/*"]; image && strings.HasPrefix(media, "image/") {
			return nil
		}
		return fmt.Errorf("content type %q is not described", media)
	}
	if !strings.HasSuffix(media, "json") {
		return nil // a text, whatever it says
	}
	return d.judgeBody(a.body, asMap(described["schema"]))
}

func (d *description) judgeProblem(a *answer) error {
	if media := a.Header.Get("Content-Type"); media != "application/problem+json" {
		return fmt.Errorf("status %d with content type %q", a.StatusCode, media)
	}
	return d.judgeBody(a.body, map[string]any{"$ref": "#/components/schemas/Problem"})
}

func (d *description) judgeBody(body string, schema map[string]any) error {
	var v any
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	return d.validate(v, schema, "")
}

func asMap(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func (d *description) resolve(schema map[string]any) map[string]any {
	for {
		ref, ok := schema["$ref"].(string)
		if !ok {
			return schema
		}
		target, ok := d.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...).(map[string]any)
		if !ok {
			d.t.Fatalf("$ref %q leads nowhere", ref)
		}
		schema = target
	}
}

// validate is JSON Schema 2020-12, as much of it as we use; the use of anything
// else is an error.
func (d *description) validate(v any, schema map[string]any, at string) error {
	schema = d.resolve(schema)
	for keyword, want := range schema {
		bad := func(format string, args ...any) error {
			return fmt.Errorf("%s: %s (%s)", at, fmt.Sprintf(format, args...), keyword)
		}
		switch keyword {
		case "description", "default", "required", "additionalProperties":
		case "type":
			if !isType(v, want.(string)) {
				return bad("%v is not %v", v, want)
			}
		case "const":
			if v != want {
				return bad("%v is not %v", v, want)
			}
		case "enum":
			if !slices.Contains(want.([]any), v) {
				return bad("%v is none of %v", v, want)
			}
		case "pattern":
			if s, ok := v.(string); ok && !regexp.MustCompile(want.(string)).MatchString(s) {
				return bad("%q does not match", s)
			}
		case "format":
			if _, err := time.Parse(time.RFC3339, v.(string)); want != "date-time" || err != nil {
				return bad("%v", v)
			}
		case "minimum", "maximum":
			if n, ok := v.(float64); ok && (keyword == "minimum" && n < want.(float64) || keyword == "maximum" && n > want.(float64)) {
				return bad("%v", n)
			}
		case "minLength", "maxLength", "minItems", "maxItems":
			if n := length(v); keyword[:3] == "min" && n < int(want.(float64)) || keyword[:3] == "max" && n > int(want.(float64)) {
				return bad("%d", n)
			}
		case "properties":
			if err := d.validateObject(asMap(v), schema, at); err != nil {
				return err
			}
		case "items":
			list, _ := v.([]any)
			for i, e := range list {
				if err := d.validate(e, want.(map[string]any), fmt.Sprintf("%s[%d]", at, i)); err != nil {
					return err
				}
			}
		default:
			return bad("this test does not know the keyword")
		}
	}
	return nil
}

func (d *description) validateObject(v, schema map[string]any, at string) error {
	properties := asMap(schema["properties"])
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if _, ok := v[name.(string)]; !ok {
			return fmt.Errorf("%s: %v is missing", at, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		property, known := properties[name].(map[string]any)
		if !known {
			switch more := schema["additionalProperties"].(type) {
			case map[string]any:
				property = more
			case bool:
				return fmt.Errorf("%s: %q is not described", at, name)
			}
		}
		if err := d.validate(v[name], property, at+"."+name); err != nil {
			return err
		}
	}
	return nil
}

func isType(v any, want string) bool {
	switch v := v.(type) {
	case map[string]any:
		return want == "object"
	case []any:
		return want == "array"
	case string:
		return want == "string"
	case bool:
		return want == "boolean"
	case float64:
		return want == "number" || want == "integer" && v == float64(int64(v))
	}
	return false
}

func length(v any) int {
	switch v := v.(type) {
	case string:
		return utf8.RuneCountInString(v)
	case []any:
		return len(v)
	}
	return 0
}
