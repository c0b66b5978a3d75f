package publicapi

import (
	"net/http"
	"time"
)

// Reasons that every endpoint has. What else there is (those of tokens, say) comes
// from the packages that refuse.
const (
	ReasonBadJSON     = "bad_json"      // 400: the body is no JSON value, or has a name twice
	ReasonMissing     = "missing_field" // 400
	ReasonWrong       = "wrong_field"   // 400
	ReasonUnknownPub  = "unknown_pub"   // 404
	ReasonMethod      = "method"        // 405
	ReasonTimeout     = "timeout"       // 408
	ReasonTooLarge    = "too_large"     // 413
	ReasonMediaType   = "media_type"    // 415
	ReasonRate        = "rate"          // 429
	ReasonInternal    = "internal"      // 500
	ReasonUnavailable = "unavailable"   // 503
)

// An Error is an answer that is not a success. A browser gets it as one line of
// JSON: {"error":"must be a text","reason":"wrong_field","field":"pins[2].slotId"}.
type Error struct {
	Status     int           `json:"-"`
	Message    string        `json:"error"`           // for people
	Reason     string        `json:"reason"`          // for programs: lower case and underscores
	Field      string        `json:"field,omitempty"` // of the body or query, where one is to blame: imp[0].w
	RetryAfter time.Duration `json:"-"`               // above 0: when to ask again, told in whole seconds
}

func (e *Error) Error() string {
	if e.Field != "" {
		return e.Field + ": " + e.Message
	}
	return e.Message
}

// Missing is 400: the request needs field.
func Missing(field string) *Error {
	return &Error{Status: http.StatusBadRequest, Reason: ReasonMissing, Field: field, Message: "is missing"}
}

// Wrong is 400: field is not what it must be. problem says what that is, "must be
// above 0", and repeats nothing of the field.
func Wrong(field, problem string) *Error {
	return &Error{Status: http.StatusBadRequest, Reason: ReasonWrong, Field: field, Message: problem}
}

// Forbidden is 403 for a reason that the endpoint's contract names.
func Forbidden(reason, message string) *Error {
	return &Error{Status: http.StatusForbidden, Reason: reason, Message: message}
}

// UnknownPub is 404: there is no such site.
func UnknownPub() *Error {
	return &Error{Status: http.StatusNotFound, Reason: ReasonUnknownPub, Field: "pub", Message: "there is no such site"}
}

// TooMany is 429: this address asks too often, and may ask again after a while.
func TooMany(after time.Duration) *Error {
	return &Error{Status: http.StatusTooManyRequests, Reason: ReasonRate, Message: "too many requests from this address", RetryAfter: max(after, time.Second)}
}

// Unavailable is 503: this node cannot answer now, and may after a while.
func Unavailable(after time.Duration) *Error {
	return &Error{Status: http.StatusServiceUnavailable, Reason: ReasonUnavailable, Message: "not ready, ask again later", RetryAfter: max(after, time.Second)}
}
