package htmlstream_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"deckle/internal/htmlstream"
)

// metasOf gives what a Writer tells of a document when its head has ended, cut into
// chunks of a size.
func metasOf(t *testing.T, doc string, charsetKnown bool, size int) (metas []string, label string) {
	t.Helper()
	var w *htmlstream.Writer
	w = htmlstream.NewWriter(&bytes.Buffer{}, htmlstream.Options{
		CharsetKnown: charsetKnown,
		Points:       htmlstream.HeadStart | htmlstream.HeadEnd,
		Metas:        []string{"article:section", "article:tag"},
	}, func(pt htmlstream.Point) []byte {
		if pt == htmlstream.HeadEnd {
			for _, m := range w.Metas() {
				metas = append(metas, m.Property+"="+string(m.Content))
			}
			label = w.Charset()
		}
		return nil
	})
	for chunk := range slices.Chunk([]byte(doc), size) {
		mustWrite(t, w, string(chunk))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return metas, label
}

func TestMetas(t *testing.T) {
	long := strings.Repeat("x", htmlstream.MaxMetaContent)
	many := strings.Repeat(`<meta property=article:tag content=t>`, htmlstream.MaxMetas+1)
	for name, c := range map[string]struct {
		head string
		want []string
	}{
		"both":                      {`<meta property="article:section" content="Travel"><meta property='article:tag' content='Food'>`, []string{"article:section=Travel", "article:tag=Food"}},
		"in document order":         {`<meta property=article:tag content=b><meta property=article:section content=a><meta property=article:tag content=c>`, []string{"article:tag=b", "article:section=a", "article:tag=c"}},
		"content first":             {`<meta content=a property=article:tag>`, []string{"article:tag=a"}},
		"as name":                   {`<meta name=article:tag content=a>`, []string{"article:tag=a"}},
		"property beside a name":    {`<meta name="twitter:data1" property="article:tag" content=a>`, []string{"article:tag=a"}},
		"any case and white space":  {`<META PROPERTY=" Article:TAG " CONTENT=A />`, []string{"article:tag=A"}},
		"references as they stand":  {`<meta property=article:tag content="a &amp; b">`, []string{"article:tag=a &amp; b"}},
		"charset and property":      {`<meta charset=utf-8 property=article:tag content=a>`, []string{"article:tag=a"}},
		"empty":                     {`<meta property=article:tag content="">`, []string{"article:tag="}},
		"as long as may be":         {`<meta property=article:tag content=` + long + `>`, []string{"article:tag=" + long}},
		"too long":                  {`<meta property=article:tag content=` + long + `x>`, nil},
		"too long, then a good one": {`<meta property=article:tag content=` + long + `x><meta property=article:tag content=a>`, []string{"article:tag=a"}},
		"the first content counts":  {`<meta property=article:tag content=` + long + `x content=a>`, nil},
		"no content":                {`<meta property=article:tag>`, nil},
		"another property":          {`<meta property=article:tags content=a><meta property=og:article:tag content=b><meta property=a content=c>`, nil},
		"no meta":                   {`<link property=article:tag content=a><metal property=article:tag content=a>`, nil},
		"in a comment":              {`<!-- <meta property=article:tag content=a> -->`, nil},
		"in a script":               {`<script><meta property=article:tag content=a></script>`, nil},
		"in a noscript":             {`<noscript><meta property=article:tag content=a></noscript>`, nil},
		"in a template":             {`<template><meta property=article:tag content=a></template>`, nil},
		"in an attribute":           {`<link title="<meta property=article:tag content=a>">`, nil},
		"in the body":               {`<p><meta property=article:tag content=a>`, nil},
		"after the head":            {`</head><meta property=article:tag content=a>`, nil},
		"cut off":                   {`<meta property=article:tag content="a`, nil},
		"more than are kept":        {many, slices.Repeat([]string{"article:tag=t"}, htmlstream.MaxMetas)},
	} {
		t.Run(name, func(t *testing.T) {
			doc := "<!doctype html><html><head>" + c.head + "</head><body>x"
			for _, size := range []int{len(doc), 1, 7} {
				for _, known := range []bool{true, false} {
					if got, _ := metasOf(t, doc, known, size); !slices.Equal(got, c.want) {
						t.Errorf("in chunks of %d: %q, want %q", size, got, c.want)
					}
				}
			}
		})
	}
}

// Whoever decodes what was found must know in which charset it stands.
func TestCharsetOfTheDocument(t *testing.T) {
	for doc, want := range map[string][2]string{ // by whether the Content-Type names one
		"<head></head>":                                                 {"", ""},
		"\ufeff<head></head>":                                           {"utf-8", "utf-8"},
		"<head><meta charset=' Shift_JIS '></head>":                     {"", "Shift_JIS"},
		"<head><meta charset=a><meta charset=b></head>":                 {"", "a"},
		"\ufeff<head><meta charset=b></head>":                           {"utf-8", "utf-8"},
		"<meta http-equiv=content-type content='a; charset=koi8-r'><p>": {"", "koi8-r"},
	} {
		for i, known := range []bool{true, false} {
			if _, got := metasOf(t, doc, known, len(doc)); got != want[i] {
				t.Errorf("%q, known %v: %q, want %q", doc, known, got, want[i])
			}
		}
	}
}

// What is asked for changes nothing of what is written.
func TestMetasChangeNothing(t *testing.T) {
	for i, doc := range documents(t) {
		plain := scene{doc: doc, fill: everywhere, late: -1}
		asking := plain
		asking.opts.Metas, asking.opts.Policies = []string{"article:section"}, true
		want, wantHoles := play(t, plain, nil)
		got, gotHoles := play(t, asking, nil)
		if got != want || fmt.Sprint(gotHoles) != fmt.Sprint(wantHoles) {
			t.Errorf("document %d: %q, want %q", i, got, want)
		}
	}
}

func TestPolicies(t *testing.T) {
	meta := func(content string) string {
		return `<meta http-equiv="Content-Security-Policy" content="` + content + `">`
	}
	long := "img-src " + strings.Repeat("a", htmlstream.MaxPolicy-len("img-src "))
	const none = "script-src 'none'"
	for name, c := range map[string]struct {
		head string
		want []string
	}{
		"one":                    {meta("img-src *"), []string{"img-src *"}},
		"two, in order":          {meta("a") + meta("b"), []string{"a", "b"}},
		"content first":          {`<meta content=a http-equiv=content-security-policy>`, []string{"a"}},
		"references stay":        {meta("&#39;self&#39;"), []string{"&#39;self&#39;"}},
		"as long as may be":      {meta(long), []string{long}},
		"too long":               {meta(long + "a"), []string{none}},
		"a good one after it":    {meta(long+"a") + meta("b"), []string{none, "b"}},
		"more than are kept":     {strings.Repeat(meta("a"), htmlstream.MaxPolicies+1), append(slices.Repeat([]string{"a"}, htmlstream.MaxPolicies-1), none)},
		"without content":        {`<meta http-equiv=Content-Security-Policy>`, nil},
		"report only":            {`<meta http-equiv=Content-Security-Policy-Report-Only content=a>`, nil},
		"a name":                 {`<meta name=Content-Security-Policy content=a>`, nil},
		"in a template":          {`<template>` + meta("a") + `</template>`, nil},
		"in a noscript":          {`<noscript>` + meta("a") + `</noscript>`, nil},
		"after </head>, in head": {`</head>` + meta("a"), []string{"a"}}, // a parser puts it there
		"in the body":            {`<p>` + meta("a"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			doc := "<!doctype html><head>" + c.head + "<body>x</body>"
			for _, size := range []int{len(doc), 1, 7} {
				w := htmlstream.NewWriter(&bytes.Buffer{}, htmlstream.Options{CharsetKnown: true, Policies: true}, func(htmlstream.Point) []byte { return nil })
				for chunk := range slices.Chunk([]byte(doc), size) {
					mustWrite(t, w, string(chunk))
				}
				var got []string
				for _, p := range w.Policies() {
					got = append(got, string(p))
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("in chunks of %d: %.300q, want %.300q", size, got, c.want)
				}
			}
		})
	}
}
