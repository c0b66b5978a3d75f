package config

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/pelletier/go-toml/v2/unstable"
)

// appendJSON writes a TOML value as JSON, numbers as exactly as they stand in the
// file. What JSON cannot say is reported, and written as null.
func appendJSON(b []byte, d *document, path string, v *value) []byte {
	switch v.kind {
	case unstable.Table:
		b = append(b, '{')
		for i, f := range v.fields {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendQuoted(b, f.name), ':')
			b = appendJSON(b, d, join(path, f.name), f.val)
		}
		return append(b, '}')
	case unstable.Array:
		b = append(b, '[')
		for i, e := range v.elems {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, d, path+"["+strconv.Itoa(i)+"]", e)
		}
		return append(b, ']')
	case unstable.String:
		return appendQuoted(b, v.text)
	case unstable.Bool:
		return append(b, v.text...)
	case unstable.Integer:
		if n, err := strconv.ParseInt(strings.ReplaceAll(v.text, "_", ""), 0, 64); err == nil { // hexadecimal as well
			return strconv.AppendInt(b, n, 10)
		}
	case unstable.Float:
		if text := decimalText(v); jsontext.Value(text).IsValid() {
			return append(b, text...)
		}
	}
	if v.kind != unstable.Invalid { // that has been reported
		d.errorf(v.start, path, "write it as a string", "%.40s cannot be said in JSON", v.text)
	}
	return append(b, "null"...)
}

// appendQuoted writes a JSON string. TOML is UTF-8, so nothing is replaced.
func appendQuoted(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}
