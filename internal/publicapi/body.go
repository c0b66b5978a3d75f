package publicapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	bodyTimeout = 10 * time.Second // in which all of a body has come
	maxField    = 128              // bytes of a field's name in an answer
)

// ReadJSON reads the body, at most limit bytes of JSON, into what a pointer points
// to. It comes as application/json or, so that a browser asks no preflight
// (fetch) or can send it at all (navigator.sendBeacon), as text/plain.
//
// Unknown fields are ignored, null is as good as missing. What is no JSON or has a
// name twice, is of the wrong type, too large, too slow or of another media type is
// an [*Error] or becomes one. Whether what must be there is there is for the caller
// to say, by [Missing].
func (r *Request) ReadJSON(limit int64, into any) error {
	if !jsonOrText(r.Header) {
		return &Error{
			Status: http.StatusUnsupportedMediaType, Reason: ReasonMediaType,
			Message: "want application/json or text/plain in UTF-8, without Content-Encoding",
		}
	}
	data, err := r.read(limit)
	if err != nil {
		return err
	}
	return Decode(data, into)
}

func jsonOrText(h http.Header) bool {
	if h.Get("Content-Encoding") != "" {
		return false
	}
	media, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil || media != "application/json" && media != "text/plain" {
		return false
	}
	charset, ok := params["charset"]
	return !ok || strings.EqualFold(charset, "utf-8")
}

// read reads a body in bounded time and space.
func (r *Request) read(limit int64) ([]byte, error) {
	rc := http.NewResponseController(r.w)
	if err := rc.SetReadDeadline(time.Now().Add(bodyTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, fmt.Errorf("bound the reading of a body: %w", err)
	}
	var b bytes.Buffer
	if n := r.ContentLength; n > 0 && n <= limit {
		b.Grow(int(n) + bytes.MinRead)
	}
	if _, err := b.ReadFrom(http.MaxBytesReader(r.w, r.Body, limit)); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, &Error{Status: http.StatusBadRequest, Reason: ReasonBadJSON, Message: "the body ended early"}
		}
		return nil, err
	}
	// The deadline would end a connection whose answer takes longer.
	if err := rc.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, fmt.Errorf("bound the reading of a body: %w", err)
	}
	return b.Bytes(), nil
}

// Decode is ReadJSON for bytes that are there. Its error is an [*Error].
func Decode(data []byte, into any) error {
	err := json.Unmarshal(data, into)
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return &Error{
			Status: http.StatusBadRequest, Reason: ReasonBadJSON, Field: fieldOf(e.JSONPointer),
			Message: "not JSON at byte " + strconv.FormatInt(e.ByteOffset, 10) + ": " + strings.ToValidUTF8(e.Err.Error(), "?"),
		}
	}
	if e, ok := errors.AsType[*json.SemanticError](err); ok {
		return Wrong(fieldOf(e.JSONPointer), "must be "+wanted(e.GoType))
	}
	return &Error{Status: http.StatusBadRequest, Reason: ReasonBadJSON, Message: "not JSON"}
}

// wanted says what JSON a Go type takes.
func wanted(t reflect.Type) string {
	if t == nil {
		return "something else"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return wanted(t.Elem())
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number, not below 0 and not too large"
	}
	return "a whole number that is not too large"
}

// fieldOf writes a JSON Pointer as our fields are written: /imp/2/w → imp[2].w.
// Names of a map are the stranger's, so it is bounded.
func fieldOf(p jsontext.Pointer) string {
	var b strings.Builder
	for token := range p.Tokens() {
		switch {
		case token != "" && strings.Trim(token, "0123456789") == "":
			b.WriteString("[" + token + "]")
		case b.Len() > 0:
			b.WriteString("." + token)
		default:
			b.WriteString(token)
		}
		if b.Len() > maxField {
			break
		}
	}
	field := strings.ToValidUTF8(b.String(), "?")
	if len(field) <= maxField {
		return field
	}
	end := maxField
	for !utf8.RuneStart(field[end]) {
		end--
	}
	return field[:end] + "…"
}
