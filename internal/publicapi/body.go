package publicapi

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	bodyTimeout = 10 * time.Second       // in which all of a body has come
	linger      = 250 * time.Millisecond // in which one comes that nobody reads
	maxLinger   = 4 << 10                // bytes of such a body
	maxField    = 128                    // bytes of a field's name in an answer
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

// read reads a body in bounded time and space. Its error is an [*Error]: whatever
// goes wrong with a body is its sender's doing, or nobody's.
func (r *Request) read(limit int64) ([]byte, error) {
	r.begun = true
	if err := r.deadline(time.Now().Add(bodyTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, unreadable(err)
	}
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	var b bytes.Buffer
	if n := r.ContentLength; n > 0 {
		b.Grow(int(n) + bytes.MinRead)
	}
	if _, err := b.ReadFrom(http.MaxBytesReader(r.w, r.Body, limit)); err != nil {
		return nil, unreadable(err)
	}
	r.whole = true
	// The deadline would end a connection whose answer takes longer. If that cannot be
	// told, the connection has ended; what it brought came whole.
	_ = r.deadline(time.Time{})
	return b.Bytes(), nil
}

// unreadable is why a body could not be read. A reader who has gone in the middle of
// it gets 400 too, and never sees it.
func unreadable(err error) *Error {
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge(e.Limit)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &Error{Status: http.StatusRequestTimeout, Reason: ReasonTimeout, Message: "the body did not come"}
	}
	return &Error{Status: http.StatusBadRequest, Reason: ReasonBadJSON, Message: "the body ended early or is broken"}
}

func tooLarge(limit int64) *Error {
	return &Error{
		Status: http.StatusRequestEntityTooLarge, Reason: ReasonTooLarge,
		Message: "the body has more than " + strconv.FormatInt(limit, 10) + " bytes",
	}
}

// leaveBody makes sure that the answer does not wait for a body that nobody has read.
// net/http would: before the answer to an HTTP/1 request it reads what is left of the
// body, for as long as that takes.
//
// A small body has mostly come with its header. It is read, in a moment, and the
// connection is kept. Otherwise the answer closes the connection, and net/http reads
// on behind it, in bounded time: a browser that still sends must not find the
// connection reset before it has read the answer.
func (r *Request) leaveBody() {
	if r.whole || r.ContentLength == 0 || r.ProtoMajor != 1 {
		return
	}
	if !r.begun {
		if r.drain() {
			return
		}
		_ = r.deadline(time.Now().Add(bodyTimeout)) // fails for a connection that has ended, say
	}
	r.w.Header().Set("Connection", "close")
}

// drain reads a small body that has come with its header, and reports whether it has.
func (r *Request) drain() bool {
	// Who expects 100 sends nothing before it is read for, and net/http knows.
	if r.Header.Get("Expect") != "" || r.ContentLength > maxLinger || r.deadline(time.Now().Add(linger)) != nil {
		return false
	}
	if _, err := io.CopyN(io.Discard, r.Body, maxLinger+1); !errors.Is(err, io.EOF) {
		return false
	}
	_ = r.deadline(time.Time{}) // as in read
	return true
}

// deadline is when reading the body ends at the latest.
func (r *Request) deadline(t time.Time) error {
	return http.NewResponseController(r.w).SetReadDeadline(t)
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
