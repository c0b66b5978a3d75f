package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A Severity says what a problem does to its file.
type Severity string

const (
	Error   Severity = "error"   // the file is not used
	Warning Severity = "warning" // the file is used, and probably not meant like this
	Note    Severity = "note"    // nothing is wrong; worth knowing
)

// A Problem is one thing that is to be said of a file.
type Problem struct {
	Severity Severity
	File     string
	Line     int    // 1-based; 0: the file as a whole
	Column   int    // 1-based, in bytes; 0 with Line
	Key      string // dotted, `site[0].origin`; "" where no key is concerned
	Msg      string // what is wrong
	Remedy   string // what to do about it; may be empty
	Excerpt  string // the line of the file, with a caret below; may be empty
}

// String is the problem in one line, as compilers write it:
// "deckle.toml:3:9: error: server.listen: … (remedy)".
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	fmt.Fprintf(&b, ": %s: ", p.Severity)
	if p.Key != "" {
		b.WriteString(p.Key + ": ")
	}
	b.WriteString(p.Msg)
	if p.Remedy != "" {
		b.WriteString(" (" + p.Remedy + ")")
	}
	return b.String()
}

// Problems are everything that is to be said of one or more files, in the order
// of files and lines.
type Problems []Problem

// Errors are those that keep the file from being used.
func (ps Problems) Errors() Problems { return ps.of(Error) }

// Warnings are those that do not.
func (ps Problems) Warnings() Problems { return ps.of(Warning) }

func (ps Problems) of(s Severity) Problems {
	var out Problems
	for _, p := range ps {
		if p.Severity == s {
			out = append(out, p)
		}
	}
	return out
}

// Err is nil when there is no error among the problems; else it has one line for
// each of the first errors, fit for a log.
func (ps Problems) Err() error {
	const most = 20
	errs := ps.Errors()
	if len(errs) == 0 {
		return nil
	}
	var lines []string
	for _, p := range errs[:min(most, len(errs))] {
		lines = append(lines, p.String())
	}
	if more := len(errs) - most; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return errors.New(strings.Join(lines, "\n"))
}

// WriteTo writes every problem as a line, followed by its excerpt.
func (ps Problems) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	for _, p := range ps {
		b.WriteString(p.String() + "\n")
		if p.Excerpt != "" {
			b.WriteString(p.Excerpt + "\n")
		}
	}
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

// sort puts the problems into the order of their lines; those of one place stay
// in the order in which they were found.
func (ps Problems) sort() {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}
