package catalog

import (
	"errors"
	"fmt"
	"strings"
)

// Errors that a caller decides on. Errors of the store (store.ErrUnavailable and
// those that wrap it) come through wrapped.
var (
	// ErrNotLoaded says that this node has not read the catalog yet.
	ErrNotLoaded = errors.New("catalog has not been loaded yet")

	// ErrNotFound says that the catalog does not hold an entity, or only its tombstone.
	ErrNotFound = errors.New("not in the catalog")

	// ErrInvalid is wrapped by every [InvalidError].
	ErrInvalid = errors.New("invalid")

	// ErrConflict is wrapped by every [ConflictError].
	ErrConflict = errors.New("changed by somebody else")
)

// A Problem is one thing that is wrong with an entity or a document.
type Problem struct {
	Field  string `json:"field"`   // path: "pages[2].image.src"; "" for the whole
	Msg    string `json:"message"` // what is wrong
	Remedy string `json:"remedy,omitempty"`
}

// String is the problem in one line.
func (p Problem) String() string {
	s := p.Msg
	if p.Field != "" {
		s = p.Field + ": " + s
	}
	if p.Remedy != "" {
		s += " (" + p.Remedy + ")"
	}
	return s
}

// maxProblems is how many problems an [InvalidError] names.
const maxProblems = 100

// An InvalidError has all that is wrong with what was to be written. Nothing was.
type InvalidError struct {
	Problems []Problem // the first 100, in the order of the fields
	More     int       // how many there are beyond
}

// Error gives one line for each problem.
func (e *InvalidError) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.String())
	}
	if e.More > 0 {
		fmt.Fprintf(&b, "\nand %d more", e.More)
	}
	return b.String()
}

func (e *InvalidError) Unwrap() error { return ErrInvalid }

// A ConflictError says that a write was based on an older revision than the
// newest, and that nothing was written.
type ConflictError struct {
	Kind     Kind
	ID       string
	Revision uint64  // the newest; 0: there is none
	Current  *Record // the newest, nil where there is none and for approvals
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%s %q has been changed by somebody else: its revision is %d", e.Kind, e.ID, e.Revision)
}

func (e *ConflictError) Unwrap() error { return ErrConflict }

// problems collects what is wrong with a thing, or with a part of it.
type problems struct {
	list []Problem
	more int

	at   string    // path of the part
	into *problems // those of the whole; nil for the whole
}

func (p *problems) root() *problems {
	if p.into != nil {
		return p.into
	}
	return p
}

// below gives the problems of a part.
func (p *problems) below(field string) *problems {
	return &problems{at: join(p.at, field), into: p.root()}
}

// add reports a problem of a field; remedy may be empty.
func (p *problems) add(field, remedy, format string, args ...any) {
	root := p.root()
	if len(root.list) == maxProblems {
		root.more++
		return
	}
	root.list = append(root.list, Problem{Field: join(p.at, field), Msg: fmt.Sprintf(format, args...), Remedy: remedy})
}

// err is nil when there are none.
func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	return &InvalidError{Problems: p.list, More: p.more}
}

// join puts a field below a path.
func join(path, field string) string {
	if path == "" || field == "" || strings.HasPrefix(field, "[") {
		return path + field
	}
	return path + "." + field
}
