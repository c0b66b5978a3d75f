package edge_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"deckle/internal/edge"
	"deckle/internal/template"
)

// decodable is as much of a page as a reader can show who has got these parts of
// it in gzip until a moment.
func decodable(parts []part, until time.Duration) string {
	var got bytes.Buffer
	for _, p := range parts {
		if p.at <= until {
			got.WriteString(p.text)
		}
	}
	z, err := gzip.NewReader(&got)
	if err != nil {
		return ""
	}
	text, _ := io.ReadAll(z) // ends where the bytes do
	return string(text)
}

// zippedParts answers like html, in gzip, each part complete for its decoder.
func zippedParts(parts ...any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		start, z := time.Now(), gzip.NewWriter(w)
		for _, p := range parts {
			switch p := p.(type) {
			case time.Duration:
				waitUntil(r.Context(), start.Add(p))
			case string:
				_, _ = io.WriteString(z, p)
				_ = z.Flush()
				_ = http.NewResponseController(w).Flush()
			}
		}
		_ = z.Close()
	}
}

// What stands before a hold, and what an origin has flushed, can be shown at once
// in gzip too.
func TestGzipFlows(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{}, zippedParts(40*ms, headPart, bodyPart, 400*ms, lastPart), bids(80*ms, "2.5"))
		r := navigation("/x")
		r.Header.Set("Accept-Encoding", "gzip")
		a := w.get(t.Context(), r)
		for _, want := range []struct {
			text string
			at   time.Duration
		}{
			{`data-deckle="slots"`, 40 * ms},
			{"<title>t</title>", 40 * ms},
			{`data-deckle="bids"`, 80 * ms},
			{"<p>text</p>", 80 * ms},
			{"</html>", 400 * ms},
		} {
			if !strings.Contains(decodable(a.parts, want.at), want.text) {
				t.Errorf("%s cannot be shown after %v", want.text, want.at)
			}
			if strings.Contains(decodable(a.parts, want.at-1), want.text) {
				t.Errorf("%s can be shown before %v", want.text, want.at)
			}
		}
		if got := withoutOurs(decodable(a.parts, a.ended)); got != page {
			t.Errorf("page = %q", got)
		}
	})
}

// A body that breaks off: what had come is with the reader, also what the parser
// still held back.
func TestWhatCameBeforeTheBreakIsTheReaders(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const half = headPart + bodyPart + "<p>half</p"
		w := newWorld(t, setup{}, answerWith(200, map[string]string{"Content-Length": "5000"}, half), bids(0, "1"))
		a := w.get(t.Context(), navigation("/x"))
		if got := withoutOurs(a.body()); got != half || !a.aborted {
			t.Errorf("got %q, aborted: %v", got, a.aborted)
		}
	})
}

// How long each part took is told only where the site wants it told.
func TestServerTimingIsASetting(t *testing.T) {
	for _, on := range []bool{true, false} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t, setup{site: func(s *edge.Site) { s.ServerTiming = on }}, html(40*ms, headPart, bodyPart, lastPart), bids(80*ms, "1"))
			resp, _, err := w.overTheWire(t, navigation("/x"))
			if err != nil {
				t.Fatal(err)
			}
			header, trailer := resp.Header.Get("Server-Timing"), resp.Trailer.Get("Server-Timing")
			if !on && header+trailer != "" {
				t.Errorf("switched off: %q, %q", header, trailer)
			}
			if on && header != `deckle;desc="run", match;dur=0.0, origin;dur=40.0` {
				t.Errorf("header: %s", header)
			}
			if on && trailer != `hold;dur=40.0, auction;dur=80.0, prebid;dur=80.0;desc="bid"` {
				t.Errorf("trailer: %s", trailer)
			}
		})
	}
}

// A page may be held twice: at the end of head, and at its own.
func TestHoldsAddUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := setup{site: func(s *edge.Site) { s.ServerTiming = true }, settings: headHold(100 * ms)}
		a := newWorld(t, s, html(40*ms, page), hang).get(t.Context(), navigation("/x"))
		if got := a.header.Get(http.TrailerPrefix + "Server-Timing"); !strings.HasPrefix(got, "hold;dur=460.0, ") {
			t.Errorf("Server-Timing: %s", got)
		}
	})
}

// A template that is swapped, or taken away, while a page is on its way concerns
// the next page.
func TestTemplateIsReadOnce(t *testing.T) {
	for name, next := range map[string]func(*template.Template) *template.Template{
		"gone": func(*template.Template) *template.Template { return nil },
		"off":  func(*template.Template) *template.Template { return &template.Template{} },
	} {
		bubble(t, func(t *testing.T) {
			swapped := func(s *edge.Site) {
				first := s.Template()
				current := first
				s.Template = func() *template.Template {
					defer func() { current = next(first) }()
					return current
				}
			}
			w := newWorld(t, setup{site: swapped}, html(40*ms, headPart, bodyPart, lastPart), bids(80*ms, "2.5"))
			a := w.get(t.Context(), navigation("/x"))
			var won bidsBlock
			if a.block(t, "bids", &won); won["top"]["hb_pb"] != "2.50" || withoutOurs(a.body()) != page {
				t.Errorf("%s: the first page is %q", name, a.body())
			}
			if a := w.get(t.Context(), navigation("/x")); a.body() != page {
				t.Errorf("%s: the second page is %q", name, a.body())
			}
		})
	}
}

// The bids leave as soon as they are written, also while more of the page is there
// to be written.
func TestBidsLeaveBeforeTheRest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{}, html(40*ms, headPart+bodyPart, 60*ms, lastPart), bids(80*ms, "1"))
		a := w.get(t.Context(), navigation("/x"))
		for _, p := range a.parts {
			if strings.Contains(p.text, `data-deckle="bids"`) && strings.Contains(p.text, "<p>end</p>") {
				t.Errorf("left together: %q", p.text)
			}
		}
		if at := a.when("</html>"); at != 80*ms {
			t.Errorf("the end was with the reader after %v", at)
		}
	})
}

// A page that cannot be written is given up at once, whatever its origin still does.
func TestLostReaderIsNotKept(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{}, html(40*ms, headPart, time.Hour, bodyPart, lastPart), hang)
		lost := &answer{flushing: func(string) error { return errors.New("broken pipe") }}
		w.read(t.Context(), navigation("/x"), lost)
		if !lost.aborted || lost.ended != 40*ms {
			t.Errorf("ended after %v, aborted: %v", lost.ended, lost.aborted)
		}
	})
}
