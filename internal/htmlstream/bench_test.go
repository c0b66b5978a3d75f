package htmlstream_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"deckle/internal/htmlstream"
)

// chunk is how much of a page comes at once from a connection.
const chunk = 4 << 10

// typicalHead is a head of about 100 KB as publishers have them: mostly inline
// scripts, styles and data, between some fifty tags.
func typicalHead() []byte {
	var b strings.Builder
	b.WriteString("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>A quiet week on the coast | Magazine</title>\n")
	tags(&b, 50)
	script := "!function(e,t){var n=t.createElement('script');n.async=!0;if(e.length<10&&t.head){for(var i=0;i<e.length;i++){n.src=e[i]+'?v='+i}}t.head.appendChild(n)}(window.q||[],document);\n"
	style := ".card>.title{color:#123;margin:0 auto;padding:.5rem 1rem}@media (min-width:60em){.card{display:grid;grid-template-columns:1fr 2fr}}\n"
	json := `{"@context":"https://schema.org","@type":"NewsArticle","headline":"A quiet week on the coast","author":{"@type":"Person","name":"Staff"}},` + "\n"
	for _, part := range []struct{ start, body, end string }{
		{"<style>", style, "</style>\n"},
		{"<script>", script, "</script>\n"},
		{`<script type="application/ld+json">`, json, "</script>\n"},
		{"<script>", script, "</script>\n"},
		{"<style>", style, "</style>\n"},
	} {
		b.WriteString(part.start + strings.Repeat(part.body, 19<<10/len(part.body)) + part.end)
	}
	b.WriteString("</head>\n")
	return []byte(b.String())
}

// tagsOnly is a head of about 100 KB with nothing but tags.
func tagsOnly() []byte {
	var b strings.Builder
	b.WriteString("<!doctype html><html><head><meta charset=utf-8>")
	tags(&b, 1000)
	b.WriteString("</head>")
	return []byte(b.String())
}

func tags(b *strings.Builder, n int) {
	for i := range n {
		switch i % 3 {
		case 0:
			fmt.Fprintf(b, "<meta property=\"og:image:%d\" content=\"https://images.example.com/2026/11/%d/coast.jpg\">\n", i, i)
		case 1:
			fmt.Fprintf(b, "<link rel=\"preload\" as=\"font\" type=\"font/woff2\" href=\"/static/fonts/serif-%d.woff2\" crossorigin>\n", i)
		default:
			fmt.Fprintf(b, "<script src=\"/static/js/chunk-%d.min.js\" async defer></script>\n", i)
		}
	}
}

func BenchmarkHead(b *testing.B) {
	for _, doc := range []struct {
		name string
		head []byte
	}{{"typical", typicalHead()}, {"tags", tagsOnly()}} {
		b.Run(doc.name+"/writer", func(b *testing.B) {
			b.SetBytes(int64(len(doc.head)))
			b.ReportAllocs()
			for b.Loop() {
				writeHead(b, doc.head)
			}
		})
		b.Run(doc.name+"/tokenizer", func(b *testing.B) {
			b.SetBytes(int64(len(doc.head)))
			b.ReportAllocs()
			for b.Loop() {
				tokenizeHead(b, doc.head)
			}
		})
		// The quickest run of each, taken in turns: a ratio to trust on a machine
		// that has other things to do.
		b.Run(doc.name+"/ratio", func(b *testing.B) {
			ours, theirs := time.Hour, time.Hour
			for b.Loop() {
				start := time.Now()
				writeHead(b, doc.head)
				between := time.Now()
				tokenizeHead(b, doc.head)
				ours, theirs = min(ours, between.Sub(start)), min(theirs, time.Since(between))
			}
			b.ReportMetric(float64(theirs)/float64(ours), "×")
			b.ReportMetric(float64(len(doc.head))/ours.Seconds()/1e6, "MB/s")
		})
	}
}

func writeHead(b *testing.B, head []byte) {
	filled := 0
	wanted := htmlstream.Options{Metas: []string{"article:section", "article:tag"}, Policies: true} // as the edge does
	w := htmlstream.NewWriter(io.Discard, wanted, func(htmlstream.Point) []byte {
		filled++
		return nil
	})
	writeInChunks(b, w, head)
	if filled != 2 {
		b.Fatalf("%d points in a head, want 2", filled)
	}
}

// tokenizeHead is what the writer is measured against: a loop over the tokenizer
// of x/net/html that copies a head and looks at the name of each tag.
func tokenizeHead(b *testing.B, head []byte) {
	z := html.NewTokenizer(bytes.NewReader(head))
	for {
		t := z.Next()
		if t == html.ErrorToken {
			return
		}
		if _, err := io.Discard.Write(z.Raw()); err != nil {
			b.Fatal(err)
		}
		if t == html.StartTagToken || t == html.EndTagToken {
			z.TagName()
		}
	}
}

func BenchmarkBody(b *testing.B) {
	body := []byte("<body>" + strings.Repeat("<div class=\"card\"><h2>Title</h2><p>Some text with an <a href=\"/x\">link</a> and more of it, as it is in articles.</p></div>\n", 800))
	for _, test := range []struct {
		name   string
		points htmlstream.Point
	}{{"scanned", htmlstream.HeadStart | htmlstream.End}, {"after-the-last-point", htmlstream.HeadStart}} {
		b.Run(test.name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			w := htmlstream.NewWriter(io.Discard, htmlstream.Options{CharsetKnown: true, Points: test.points}, func(htmlstream.Point) []byte { return nil })
			mustWrite(b, w, "<head></head>")
			for b.Loop() {
				writeInChunks(b, w, body)
			}
		})
	}
	b.Run("no-writer", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			writeInChunks(b, io.Discard, body)
		}
	})
}

func writeInChunks(b *testing.B, w io.Writer, doc []byte) {
	b.Helper()
	for len(doc) > 0 {
		n := min(chunk, len(doc))
		if _, err := w.Write(doc[:n]); err != nil {
			b.Fatal(err)
		}
		doc = doc[n:]
	}
}
