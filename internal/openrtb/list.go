package openrtb

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A list reads an array of at most maxItems, and counts the elements that are not
// of its type instead of failing on them. Null is an empty array.
type list[T any] struct {
	items []T
	unread

	// left is how many elements may still be read in the whole answer. All of its
	// lists share it; also what is replaced by a duplicate name has been read.
	left *int
}

// unread is what a list has seen and does not hold.
type unread struct {
	malformed int
	cut       bool // nothing was left for some of its elements
}

// A sharer is an element with a list of its own.
type sharer interface{ share(left *int) }

func (l *list[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*l = list[T]{left: l.left} // of duplicate names the last counts
	return eachElement(dec, maxItems, func() error {
		if *l.left == 0 {
			l.cut = true
			return dec.SkipValue()
		}
		*l.left--
		v, err := dec.ReadValue()
		if err != nil {
			return err
		}
		var item T
		if s, ok := any(&item).(sharer); ok {
			s.share(l.left)
		}
		if json.Unmarshal(v, &item, lenient) != nil {
			l.malformed++
			return nil
		}
		if l.items == nil {
			l.items = make([]T, 0, 4) // a page has about that many slots
		}
		l.items = append(l.items, item)
		return nil
	})
}

// texts reads an array of at most maxTexts strings. Null is an empty array.
type texts []string

func (t *texts) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*t = (*t)[:0] // of duplicate names the last counts
	return eachElement(dec, maxTexts, func() error {
		var s string
		if err := json.UnmarshalDecode(dec, &s); err != nil {
			return err
		}
		*t = append(*t, s)
		return nil
	})
}

// eachElement reads an array whose elements read reads, at most so many.
func eachElement(dec *jsontext.Decoder, most int, read func() error) error {
	switch dec.PeekKind() {
	case 'n':
		return dec.SkipValue()
	case '[':
	default:
		return errors.New("not an array")
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for n := 0; dec.PeekKind() != ']'; n++ {
		if n == most {
			return fmt.Errorf("more than %d elements", most)
		}
		if err := read(); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}
